"""What is written about a proposal? The sections of a lab notebook, as plain data: text and JSON are made of the same.

Summary, derived batch, throughput, key metrics, trainer statistics, utilisation, context, diagnosis, action, rationale,
checks, what came of it, next steps. Each line is a number that is in a record; one line names what no record says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from relab.advise.calibration import sentence, span
from relab.advise.proposal import diff_text, shown
from relab.base.documents import Document, Settings
from relab.base.text import count, duration, number, plural, wrap
from relab.config import layers
from relab.config.base import ConfigError
from relab.health.examine import Report
from relab.health.render import tried as said_try
from relab.lab.experiment import cells as runs
from relab.lab.experiment import template
from relab.lab.experiment.cells import Cell
from relab.lab.loop import deciding, foresee
from relab.lab.loop.drive import Looping
from relab.lab.loop.journal import Trial
from relab.lab.loop.plan import BASE
from relab.record.clock import took
from relab.record.history import History
from relab.record.state import steps_of
from relab.stats import keeping, mean_over_seeds

WIDTH = 110
TRAINER = ("policy/kl", "policy/clip_share", "policy/entropy", "policy/std_mean", "policy/loss", "value/loss",
           "value/explained_variance", "optim/grad_norm", "optim/lr")  # fmt: skip
KEY = ("eval/return_det", "eval/return_sampled", "eval/success_det", "eval/length_det", "return/mean_100",
       "return/success", "return/length")  # fmt: skip
MACHINE = ("cpu", "memory", "rss", "gpu", "vram", "dram", "util")
PARTS = ("collect", "update", "eval", "save", "log")
RECENT = 5  # configs that a proposal is held beside
FINDINGS = 3
OTHERS = 6  # further metrics of a foreign program
ENVS, STEPS = ("n_envs", "num_envs", "envs"), ("n_steps", "num_steps", "steps")  # settings that make a batch


@dataclass
class WriteUp:
    """One proposal, or the base."""

    name: str
    title: str
    sections: dict[str, list[str]] = field(default_factory=dict)
    facts: Document = field(default_factory=dict)

    def text(self) -> str:
        """As plain text, a section after the other."""
        lines = [self.title]
        for head, body in self.sections.items():
            lines += ["", head, *(line for item in body for line in wrap(item, WIDTH, "- "))]
        return "\n".join(lines) + "\n"

    def to_json(self) -> Document:
        return {"schema": 1, "name": self.name, "title": self.title, "sections": self.sections, **self.facts}


def of_trial(loop: Looping, trial: Trial, report: Report | None) -> WriteUp:
    """The write-up of a proposal that has come to its end."""
    stages = [row for row in (trial.first, trial.decided, trial.stands) if row]
    cells = [cell for row in stages for cell in loop.arms.cells(trial.name, row["seeds"])]
    done = [loop.arms.read(cell) for cell in cells if runs.settled(cell)]
    p = trial.proposal
    up = WriteUp(trial.name, f"{trial.name}: {diff_text(p['diff'])} (a change of {trial.parent}): {trial.verdict}")
    up.sections = {
        "Summary": summary(loop, trial.name, cells, done),
        "Context against recent comparable configs": context(loop, trial),
        "Diagnosis": diagnosis(report),
        "Action taken": [f"{key}: {shown(c['from'])} -> {shown(c['to'])}" for key, c in p["diff"].items()],
        "Rationale": [p["rationale"]],
        "Checks": [f"{name}: {text}" for name, text in p["checks"].items()],
        "What came of it": outcome(trial),
        "Next steps (if it stalls)": next_steps(loop, trial, report),
    }
    up.facts = {"k": trial.k, "parent": p["parent"], "parent_config": trial.parent, "diff": p["diff"],
                "verdict": trial.verdict, "predicted": p["predicted"], "first": trial.first, "decided": trial.decided,
                "stands": trial.stands, "score": (trial.scored or {}).get("score"),
                "runs": [cell.folder.name for cell in cells]}  # fmt: skip
    return up


# ---- Summary


def summary(loop: Looping, config: str, cells: Sequence[Cell], done: Sequence[History]) -> list[str]:
    if not done:
        return ["no run of it came to its end"]
    one = done[0]
    short = len(cells) - len(done)
    more = f", and {short} that came to no end" if short else ""
    parts = {
        "Derived batch": batch(one, loop.arms.settings(BASE)),
        "Throughput": throughput(done),
        "Key metrics (last, mean over runs)": tail(done, keys_of(loop, one)),
        "Trainer statistics (last, mean over runs)": tail(done, TRAINER),
        "Utilisation": utilisation(done),
    }
    gone = [head.partition(" (")[0].lower() for head, text in parts.items() if not text]
    who = "its command logs nothing" if loop.plan.command else "its record says nothing"
    return [
        f"Config: {what_ran(loop, config, one)}",
        f"Runs: {len(done)}{more}; seeds {spans(cell.seed for cell in cells)}",
        *(f"{head}: {text}" for head, text in parts.items() if text),
        *([f"Left out, because {who} of it: {', '.join(gone)}"] if gone else []),
    ]


def what_ran(loop: Looping, config: str, run: History) -> str:
    """Algorithm, environment and device; of a command its words and what fills them."""
    if loop.plan.command:
        filled = ", ".join(f"{key} {shown(value)}" for key, value in loop.arms.settings(config).items())
        return f"{filled} in `{template.join(loop.plan.command)}`"
    flat = layers.flatten(run.config)
    return ", ".join(str(flat[key]) for key in ("algo.name", "env.name", "device") if flat.get(key)) or config


def spans(numbers: Iterable[int]) -> str:
    """
    >>> spans([3, 1, 2, 7])
    '1 to 3, 7'
    """
    parts: list[list[int]] = []
    for x in sorted(numbers):
        parts = [*parts[:-1], [parts[-1][0], x]] if parts and x == parts[-1][-1] + 1 else [*parts, [x]]
    return ", ".join(f"{part[0]} to {part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def keys_of(loop: Looping, run: History) -> tuple[str, ...]:
    """The primary metric, the usual ones, and of a foreign program some more of what it logs."""
    own = [name for name in (loop.plan.metric, f"foreign/{loop.plan.metric}") if name in run.columns]
    usual = [name for name in KEY if name not in own]
    others = [name for name in run.columns if name.startswith("foreign/") and name not in own]
    return (*own, *usual, *others[:OTHERS])


def batch(run: History, base: Settings) -> str:
    """envs x steps x agents = rows, where the settings say it; empty where they do not.

    A run's program can write its record: code is imported only where the loop's base names it too.
    """
    flat = layers.flatten(run.config)
    if not run.trained_by_relab:
        return foreign_batch(flat)
    try:
        named = layers.Layer("loop", {key: base[key] for key in ("algo.name", "env.name") if key in base})
        cfg = layers.resolve([named, layers.Layer("run", run.config, trusted=False)], presets=False).config
    except (ConfigError, TypeError):
        return ""
    if not cfg.batch:
        return "none: the algorithm replays"
    factors = [f"{flat[key]} {word}" for key, word in (("algo.envs", "envs"), ("algo.steps", "steps")) if key in flat]
    factors += [f"{cfg.agents} agents"] if cfg.agents > 1 else []
    parts = f"minibatch {cfg.minibatch or 0:,}, {cfg.iterations or 0:,} iterations"
    return f"{' x '.join(factors)} = {cfg.batch:,} rows, {parts}"


def foreign_batch(flat: Settings) -> str:
    """Of a program that says how many environments it has and how many steps each makes between updates."""
    last = {key.rpartition(".")[2]: value for key, value in flat.items() if type(value) is int}
    envs, steps = (next((key for key in names if key in last), "") for names in (ENVS, STEPS))
    return f"{last[envs]} {envs} x {last[steps]} {steps} = {last[envs] * last[steps]:,} rows" if envs and steps else ""


def throughput(done: Sequence[History]) -> str:
    steps = [steps_of(run) for run in done]
    seconds = [s for run in done if math.isfinite(s := took(run))]
    speeds = [
        run.columns[name].values[-1] for run in done for name in ("time/sps_mean", "time/sps") if name in run.columns
    ]
    parts = [f"{max(steps):,.0f} steps a run"]
    parts += [f"{count(float(np.median(speeds)))} steps/s while training"] if speeds else []
    if seconds:
        middle = float(np.median(seconds))
        whole = f" ({count(float(np.median(steps)) / middle)} steps/s from start to end)" if middle > 0 else ""
        parts.append(f"{duration(middle)} each{whole}")
    return ", ".join(parts)


def tail(done: Sequence[History], names: Sequence[str]) -> str:
    """The last value of each metric, the mean over runs and, of several, the lowest and the highest."""
    parts = []
    for name in names:
        last = [
            float(run.columns[name].values[-1]) for run in done if name in run.columns and len(run.columns[name].values)
        ]
        good = [x for x in last if math.isfinite(x)]
        if good:
            span = f" ({number(min(good))} to {number(max(good))})" if len(good) > 1 else ""
            parts.append(f"{name.removeprefix('foreign/')} {number(float(np.mean(good)))}{span}")
    return "; ".join(parts)


def utilisation(done: Sequence[History]) -> str:
    """What the machine did, where it was recorded; else the share of time that each part of a step took."""
    names = [name for name in done[0].columns if name.startswith("time/") and any(w in name for w in MACHINE)]
    shares = _shares(done[0])
    return "; ".join(part for part in (tail(done, names) if names else "", shares) if part)


def _shares(run: History) -> str:
    sums = {
        part: float(np.nansum(run.columns[f"time/{part}_s"].values))
        for part in PARTS
        if f"time/{part}_s" in run.columns
    }
    total = sum(sums.values())
    return "share of time: " + ", ".join(f"{part} {x / total:.0%}" for part, x in sums.items()) if total > 0 else ""


# ---- Context


def context(loop: Looping, trial: Trial) -> list[str]:
    """The parent and the last few configs by the number that decides, each with its seeds."""
    recent = [t.name for t in loop.state.trials if t.k < trial.k][-RECENT:]
    names = list(dict.fromkeys([trial.parent, *recent, trial.name]))
    whose = {trial.name: " (this one)", trial.parent: " (its parent)"}
    lines = [f"{name}{whose.get(name, '')}: {standing(loop, counted(loop, name))}" for name in names]
    noise = loop.state.noise or {}
    return [*lines, f"Noise floor: standard deviation between seeds {number(noise.get('sd', math.nan))} over"
                    f" {noise.get('n', 0)} runs alike; what decides: {deciding.said(loop.plan)}"]  # fmt: skip


def counted(loop: Looping, config: str) -> list[Cell]:
    """Its runs; of a config that was kept only those that had no part in that: what was chosen for is too high."""
    seeds = loop.state.measured(config)
    return loop.arms.cells(config, seeds) or [loop.arms.cell(*pair) for pair in loop.state.cells().get(config, [])]


def standing(loop: Looping, cells: Sequence[Cell]) -> str:
    values = [loop.arms.number(cell).value for cell in cells]
    mean = mean_over_seeds(values)
    if not mean.n:
        return "no number"
    sure = (
        f" [{number(mean.low)}, {number(mean.high)}]"
        if mean.known
        else f" ({number(mean.least)} to {number(mean.most)})"
    )
    gone = f", {mean.gone} without a number" if mean.gone else ""
    return f"{loop.plan.metric} {number(mean.mid)}{sure} ({plural(mean.n, 'seed')}{gone})"


def diagnosis(report: Report | None) -> list[str]:
    """What `relab examine` finds in its runs, with the numbers."""
    if report is None:
        return ["its runs could not be examined"]
    lines = []
    for finding in report.main[:FINDINGS]:
        facts = "; ".join(f"{e.metric} {', '.join(number(x) for x in e.values[-3:])}" for e in finding.evidence[:2])
        since = f", since step {finding.onset:,}" if finding.onset else ""
        lines.append(f"{finding.slug} ({finding.severity}) in {finding.run or finding.group}: {finding.message}{since}"
                     f"{' [' + facts + ']' if facts else ''}")  # fmt: skip
    more = len(report.main) - FINDINGS
    return [*lines, *([f"and {more} more: relab examine"] if more > 0 else [])] or [nothing(report)]


def nothing(report: Report) -> str:
    """That nothing was found says something only where there was something to look at."""
    missing = len({gone.slug for gone in report.not_checked})
    want = f"; {plural(missing, 'rule')} could not be checked for want of data in its log" if missing else ""
    return f"nothing was found in its runs{want}"


# ---- What came of it, what comes next


def outcome(trial: Trial) -> list[str]:
    lines = []
    if trial.first:
        f = trial.first
        then = "it went on" if f["go_on"] else "it was dropped"
        lines.append(f"{plural(len(f['seeds']), 'first seed')}: {f['delta']:+.4g} ± {number(f['error'])}; {then}")
    if trial.decided:
        d = trial.decided
        why = f"noise floor {number(d['floor'])}: {d['void'] or keeping.REASONS[d['reason']]}"
        lines.append(f"{plural(d['n'][1], 'fresh seed')} against {d['n'][0]}: {d['delta']:+.4g} [{d['low']:+.4g},"
                     f" {d['high']:+.4g}] at a one-sided error of {d['alpha']:.3g}, {why}")  # fmt: skip
    if trial.stands:
        s = trial.stands
        lines.append(f"measured again on {plural(len(s['seeds']), 'other seed')}: {s['delta']:+.4g}; it"
                     f" {'stands' if s['stands'] else 'is withdrawn'}")  # fmt: skip
    if trial.scored:
        score = foresee.of_row(trial.scored["score"])
        none = f"none was made ({trial.proposal['predicted']['how']})"
        text = sentence(score) if span(score.predicted, score.kind) != "-" else none
        lines.append(f"prediction: {text}")
    return lines


def next_steps(loop: Looping, trial: Trial, report: Report | None) -> list[str]:
    """What was passed over for it, what else the findings say, and what the ranges leave."""
    lines = [f"passed over: {text}" for text in trial.proposal["passed_over"][:2]]
    others = [f for f in (report.main if report else []) if f.suggest][:2]
    lines += [f"{f.slug}: {'; '.join(map(said_try, f.suggest[:2]))}" for f in others]
    edges = [each.key for each in loop.plan.policy.allow]
    return [
        *lines,
        f"{'else ' if lines else ''}the next point of {', '.join(edges)}; if none helps, widen `policy.allow` or allow"
        " another key",
    ]
