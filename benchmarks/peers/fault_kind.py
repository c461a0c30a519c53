"""What is a kind of fault, and what counts as seeing it? Written down for each kind before any of its runs was made.

A finding counts when it is a warning or an error among the first three of its run and is about one of the kind's
topics, or names one of its signs (a logged quantity and the side on which it left what healthy runs show). A topic is
what a practitioner would act on, in words; TOPICS says which rules are about it. A rule that is written later is
entered under the topic it is about when it is written, not after a look at runs. `has-not-learned` is a topic only of
kinds whose log shows hardly more than the return itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.peers.broken import Broken
from benchmarks.peers.scripts import Edits

TOPICS: dict[str, tuple[str, ...]] = {
    "has-not-learned": ("worse-than-random", "plateau", "has-not-learned", "below-known-level", "no-policy-signal"),
    "worse-than-random": ("worse-than-random", "value-sign-turned"),
    "collapsed-later": ("peak-then-collapse", "value-up-return-down"),
    "diverged": ("diverged", "non-finite", "run-incomplete"),
    "step-too-large": ("steps-too-large", "update-too-large", "clip-share-high", "diverged"),
    "step-too-small": ("steps-too-small", "policy-not-moving", "frozen-parameters", "metric-frozen-at-init"),
    "update-has-no-effect": ("ratio-always-one", "policy-not-moving", "frozen-parameters", "metric-frozen-at-init"),
    "rate-at-zero": ("steps-too-small", "policy-not-moving", "frozen-parameters", "learning-rate-zero"),
    "critic-learns-nothing": ("critic-frozen", "critic-not-learning", "critic-expects-nothing", "setting-out-of-range"),
    "critic-too-large": ("value-loss-blow-up", "critic-loss-blow-up", "value-above-bound", "q-overestimation",
                         "value-in-other-units", "value-beyond-end", "no-termination-mask"),
    "reward-scale": ("reward-out-of-scale", "rewards-not-those-of-returns", "value-in-other-units",
                     "value-loss-blow-up", "critic-loss-blow-up"),
    "reward-absent": ("reward-hardly-there", "returns-all-alike", "critic-expects-nothing"),
    "entropy-too-low": ("entropy-collapse", "entropy-punished"),
    "entropy-too-high": ("entropy-runaway", "no-policy-signal", "std-exceeds-action-range", "setting-out-of-range"),
    "temperature": ("temperature-runaway", "temperature-drowns-reward", "temperature-stuck",
                    "target-entropy-unreachable", "setting-out-of-range"),
    "target-frozen": ("target-network-frozen", "targets-stand-still", "critic-expects-nothing"),
    "discount": ("discount-out-of-range", "setting-out-of-range"),
    "exploration-too-long": ("exploration-never-ends", "exploration-off-schedule", "training-apart-from-evaluation"),
    "exploration-missing": ("exploration-off-schedule", "setting-out-of-range", "plateau", "has-not-learned",
                            "below-known-level"),
    "never-started": ("learning-never-started",),
    "replay": ("replay-too-small", "rows-hardly-used", "setting-out-of-range"),
    "evaluation-apart": ("training-apart-from-evaluation", "name-is-not-definition"),
    "impossible-value": ("rate-out-of-range", "negative-kl", "reward-out-of-scale", "value-above-bound",
                         "entropy-sign-turned"),
    "success-against-return": ("success-against-return", "rate-out-of-range"),
    "return-against-length": ("return-against-length", "reward-out-of-scale", "rate-out-of-range"),
    "steps-go-back": ("steps-not-monotone", "resumed-run-lost-its-start"),
    "episodes-cut": ("metric-at-ceiling", "episodes-cut-short", "plateau", "has-not-learned", "below-known-level"),
    "no-returns": ("no-returns", "no-episodes"),
}  # fmt: skip

Sign = tuple[str, str]  # a metric of the glossary, and high or low


class Kind(NamedTuple):
    name: str
    group: str  # implementation, setting, environment, evaluation, bookkeeping
    tool: str  # cleanrl, sb3
    algo: str
    task: str
    what: str  # what was done
    shows: str  # what the log shows of it
    topics: tuple[str, ...]
    signs: tuple[Sign, ...] = ()
    told: bool = False  # whether the log holds the settings
    settings: dict[str, Any] = {}
    edits: Edits = ()  # of the script
    env: type[Broken] | None = None
    judge: type[Broken] | None = None  # the environment of the evaluations, where it is another one
    success: str = ""  # how SB3's log is told of success: turned, percent
    held_out: bool = False

    def shown(self, reached: bool) -> bool:
        """Whether the log of a run shows the fault: accounts contradict themselves whatever became of the run, all
        other faults are to be seen where it stayed below its task's level. Written down before the second held-out
        part was made."""
        return not reached or self.group in ("evaluation", "bookkeeping")


DEVELOPMENT_SEEDS = (10, 11)
HELD_OUT_SEEDS_OF_DEVELOPMENT_KINDS = (12,)
HELD_OUT_SEEDS = (20, 21, 22)
