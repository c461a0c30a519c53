"""What now? Commands that fit the state of these runs, and the proposal where there is one."""

from __future__ import annotations

import os
from pathlib import Path

from relab.base.enclosed import listed
from relab.config import registry
from relab.config.views import flatten
from relab.health.rule import Finding
from relab.record.state import would_repeat
from relab.report.parts import Section, section, table
from relab.runs.grouping import Group, Run

ENOUGH = 5  # seeds from which relab answers


def next_steps(groups: list[Group], findings: list[Finding], proposal: str = "") -> Section:
    """At most a handful of commands, each with what it is for; the proposal of `relab next` where there is one."""
    runs = [run for group in groups for run in group.runs]
    rows = [row for run in _first_of_each_state(runs) for row in _for_run(run)]
    rows += [[f"relab explain {f.slug}", "what the rule looks at, and what would refute it"] for f in findings[:1]]
    rows += _for_groups(groups)
    lines = ["no command fits the state of these runs"] if not rows else []
    return section("Next steps", lines, [table(["command", "what for"], rows)] if rows else [], code=proposal)


def place(run: Run) -> str:
    """How a command finds the run from here: its name below runs/, else the way to it."""
    folder = run.history.folder.resolve()
    if folder.parent == Path("runs").resolve():
        return folder.name
    way = os.path.relpath(folder)
    return folder.name if way.startswith("..") else way


def _first_of_each_state(runs: list[Run]) -> list[Run]:
    """One command serves as an example for all runs in the same state; the best of them is worth a look first."""
    first: dict[str, Run] = {}
    for run in sorted(runs, key=lambda r: -r.verdict.final if r.verdict.final == r.verdict.final else 0.0):
        first.setdefault(run.state, run)
    return list(first.values())


def _for_run(run: Run) -> list[list[str]]:
    name, saved = place(run), any(p.is_dir() for p in listed(run.history.folder, "checkpoints"))
    if not run.history.trained_by_relab:
        return [[f"relab examine {name} -v", "every finding, and what to log for the rules that could not run"]]
    if run.state == "running":
        return [[f"relab examine {name} --watch", "look again while it trains"]]
    flat = flatten(run.history.config)
    trust = registry.trust_word(flat.get("env.name"), flat.get("algo.name"))
    undone = run.state in _UNDONE and saved and not (run.state == "failed" and would_repeat(run.history))
    rows = [[f"relab resume {name}{trust}", f"go on: it is {run.state}"]] if undone else []
    if saved and run.verdict.points:
        rows.append(
            [f"relab eval {name} --checkpoint best --episodes 100{trust}", "the best checkpoint on fresh seeds"]
        )
        if isinstance(spec := run.history.meta.get("spec"), dict) and spec.get("renders"):
            rows.append([f"relab video {name} --episode worst{trust}", "watch what goes wrong"])
    return rows


_UNDONE = ("interrupted", "failed", "stale")


def _for_groups(groups: list[Group]) -> list[list[str]]:
    run = groups[0].runs[0]
    few = min(len(group.distinct) for group in groups)
    command = str(run.history.meta.get("command") or "")
    if few >= ENOUGH or not run.history.trained_by_relab or "seed=" not in command:
        return []
    seeds = [r.seed for group in groups for r in group.runs if isinstance(r.seed, int)]
    unused = max(seeds, default=-1) + 1
    words = [f"seed={unused}" if word.startswith("seed=") else word for word in _without_name(command.split())]
    return [[" ".join(words), f"another seed: {few} of {ENOUGH} that an answer needs"]]


def _without_name(words: list[str]) -> list[str]:
    """A second run cannot take the first one's name."""
    at = [i for i, word in enumerate(words) if word == "--name"]
    gone = {j for i in at for j in (i, i + 1)}
    return [word for i, word in enumerate(words) if i not in gone]
