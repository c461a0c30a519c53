"""What is written about a proposal? The sections of a lab notebook, as plain data: text and JSON are made of the same.

Summary, derived batch, throughput, key metrics, trainer statistics, utilisation, context, diagnosis, action, rationale,
checks, what came of it, next steps. Each line is a number that is in a record, or says that it is not recorded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relab.advise.calibration import sentence
from relab.advise.proposal import diff_text, shown
from relab.base.documents import Document
from relab.base.text import count, duration, number, plural, wrap
from relab.config import layers
from relab.config.base import ConfigError
from relab.health.examine import Report
from relab.health.render import tried as said_try
from relab.lab.experiment import cells as runs
from relab.lab.experiment.cells import Cell
from relab.lab.loop import deciding, foresee
from relab.lab.loop.drive import Looping
from relab.lab.loop.journal import Trial
from relab.record.clock import elapsed
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
NOT_RECORDED = "not recorded"


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
    flat = layers.flatten(one.config)
    what = [str(flat[key]) for key in ("algo.name", "env.name", "device") if flat.get(key)]
    seeds = ", ".join(str(cell.seed) for cell in cells)
    return [
        f"Config: {', '.join(what) or config}; {plural(len(done), 'run')}, seeds {seeds}",
        f"Derived batch: {batch(one)}",
        f"Throughput: {throughput(done)}",
        f"Key metrics (last, mean over runs): {tail(done, keys_of(loop, one))}",
        f"Trainer statistics (last, mean over runs): {tail(done, TRAINER)}",
        f"Utilisation: {utilisation(done)}",
    ]


def keys_of(loop: Looping, run: History) -> tuple[str, ...]:
    own = [name for name in (loop.plan.metric, f"foreign/{loop.plan.metric}") if name in run.columns]
    return (*own, *(name for name in KEY if name not in own))


def batch(run: History) -> str:
    """envs x steps x agents = rows; only of relab's own trainer, whose settings say it."""
    if not run.trained_by_relab:
        return "not relab's to derive: the settings are another program's"
    flat = layers.flatten(run.config)
    try:
        cfg = layers.from_dict(run.config)
    except (ConfigError, TypeError):
        return NOT_RECORDED
    if not cfg.batch:
        return "none: the algorithm replays"
    factors = [f"{flat[key]} {word}" for key, word in (("algo.envs", "envs"), ("algo.steps", "steps")) if key in flat]
    factors += [f"{cfg.agents} agents"] if cfg.agents > 1 else []
    parts = f"minibatch {cfg.minibatch or 0:,}, {cfg.iterations or 0:,} iterations"
    return f"{' x '.join(factors)} = {cfg.batch:,} rows, {parts}"


def throughput(done: Sequence[History]) -> str:
    steps = [steps_of(run) for run in done]
    seconds = [s for run in done if math.isfinite(s := elapsed(run))]
    speeds = [
        run.columns[name].values[-1] for run in done for name in ("time/sps_mean", "time/sps") if name in run.columns
    ]
    parts = [f"{max(steps):,.0f} steps"]
    parts += [f"{count(float(np.median(speeds)))} steps/s while training"] if speeds else []
    parts += [f"{duration(float(np.median(seconds)))} a run"] if seconds else []
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
    return "; ".join(parts) or NOT_RECORDED


def utilisation(done: Sequence[History]) -> str:
    """What the machine did, where it was recorded; else the share of time that each part of a step took."""
    names = [name for name in done[0].columns if name.startswith("time/") and any(w in name for w in MACHINE)]
    shares = _shares(done[0])
    return "; ".join(part for part in (tail(done, names) if names else "", shares) if part) or NOT_RECORDED


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
    return [*lines, *([f"and {more} more: relab examine"] if more > 0 else [])] or ["nothing was found in its runs"]


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
        lines.append(f"prediction: {sentence(foresee.of_row(trial.scored['score']))}")
    return lines


def next_steps(loop: Looping, trial: Trial, report: Report | None) -> list[str]:
    """What was passed over for it, what else the findings say, and what the ranges leave."""
    lines = [f"passed over: {text}" for text in trial.proposal["passed_over"][:2]]
    others = [f for f in (report.main if report else []) if f.suggest][:2]
    lines += [f"{f.slug}: {'; '.join(map(said_try, f.suggest[:2]))}" for f in others]
    edges = [each.key for each in loop.plan.policy.allow]
    return [
        *lines,
        f"else the next point of {', '.join(edges)}; if none helps, widen `policy.allow` or allow another key",
    ]
