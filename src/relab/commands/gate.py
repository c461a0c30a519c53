"""relab gate: can a schedule work at all, and what would other bars have decided?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from relab.base import limits
from relab.base.errors import NotFoundError
from relab.base.places import printable
from relab.base.text import plural
from relab.commands.options import AsJson, RunsFolder
from relab.commands.parsing import parse
from relab.config import layers as config
from relab.config.base import require
from relab.record import names

if TYPE_CHECKING:
    from relab.health.gate_replay import Near, Row
    from relab.health.view import View
    from relab.schedules.lint import Lint
    from relab.schedules.schedule import Schedule

EXAMPLES = """
  relab gate lint plan.yaml                              a schedule, or a config with one, before a run is spent on it
  relab gate lint ppo env=fish schedule=plan.yaml        the same for a run, with the floor of step one measured
  relab gate lint --command command.txt                  another program's command line
  relab gate lint --command command.txt --floor step_one_death_count=23.4
  relab gate lint brave-otter                            a run: what its log adds
  relab gate replay brave-otter success.p10=60           what another bar would have decided
  relab gate replay brave-otter success.step_one=none required=1 --json
"""
SHOWN = ("slug", "owner", "message", "note", "exact", "blocks", "numbers")
FEW = 2  # lines of evidence that are shown unasked


@dataclass(frozen=True)
class Gate:
    """Check the gates, stages and alerts of a schedule, or replay a run's gate with other bars."""

    verb: tyro.conf.Positional[str]
    """lint or replay"""
    words: tyro.conf.Positional[tuple[str, ...]] = ()
    """lint: a YAML file, a run, or the words of `relab train`; replay: a run, then key=value"""
    command: Path | None = None
    """lint: file that holds a command line with the schedule's flags"""
    floor: tuple[str, ...] = field(default=())
    """lint: METRIC=VALUE that is expected under any policy"""
    gate: str | None = None
    """replay: name of the gate, where there are several"""
    runs: RunsFolder = Path("runs")
    json: AsJson = False
    verbose: Annotated[bool, tyro.conf.arg(aliases=["-v"])] = False
    """lint: every line of evidence"""


def main(words: Sequence[str]) -> int:
    args = parse(Gate, "gate", words, EXAMPLES)
    require(args.verb in ("lint", "replay"), f"`relab gate` does lint and replay, but got {args.verb!r}")
    return lint_main(args) if args.verb == "lint" else replay_main(args)


# ---- lint


@dataclass
class Target:
    """What is linted: a schedule, and a run's log where there is one."""

    name: str
    schedule: Schedule
    view: View | None = None
    floors: dict[str, float] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)  # what else should be known


def lint_main(args: Gate) -> int:
    from relab.health.gate_lint import linted, with_floors

    target = target_of(args)
    require(bool(target.schedule), f"{target.name} declares no schedule: no gate, stage, queue or alert was found")
    schedule = with_floors(with_floors(target.schedule, target.floors), declared_floors(args.floor, target.schedule))
    lints = linted(schedule, target.view)
    if args.json:
        from relab.base.jsonl import encode

        rows = [{key: getattr(each, key) for key in SHOWN} for each in lints]
        print(encode({"schema": 1, "target": target.name, "lints": rows, "said": target.said}).decode(), end="")
        return 0
    lines = [*head(target.name, schedule), *(f"  note: {line}" for line in (*target.said, *schedule.problems))]
    lines += [line for each in lints for line in shown(each, args.verbose)]
    print("\n".join(map(printable, lines)))
    if not lints:
        print("  nothing found: the bars can be met, the stages fit, the alerts can fire")
    return 0


def head(name: str, schedule: Schedule) -> list[str]:
    """What was found, a line a part."""
    checks = schedule.total // schedule.every if schedule.total and schedule.every else None
    fits = f", {checks} checks in {schedule.total} iterations" if checks is not None else ""
    gates = [
        f"gate {g.name}: {len(g.success)} bars for success, {len(g.failure)} for failure, {g.required} in a row{fits}"
        for g in schedule.gates
    ]
    plans = [f"stages {p.name}: {len(p.stages)}, {p.length} iterations together" for p in schedule.plans]
    alerts = [f"alert {a.name}: {a.when}, {a.patience} checks in a row" for a in schedule.alerts]
    return [name, *(f"  {line}" for line in [*gates, *plans, *alerts])]


def shown(each: Lint, verbose: bool) -> list[str]:
    sure = "" if each.exact else " (with limits)"
    owner = "" if each.owner in each.message[: len(each.owner)] else f"{each.owner}: "
    notes = [line.strip() for line in each.note.splitlines()]
    rest = len(notes) - FEW
    notes = notes if verbose or rest <= 0 else [*notes[:FEW], f"{rest} more lines of evidence: -v"]
    return [f"  {each.slug}{sure}", f"    {owner}{each.message}", *(f"      {line}" for line in notes)]


def target_of(args: Gate) -> Target:
    """The schedule that the words mean: a command line's, a file's, a run's, or one that `relab train` would get."""
    from relab.schedules.command import parse_command

    if args.command is not None:
        require(not args.words, f"`--command` names what is linted, but got {' '.join(args.words)} besides")
        text = limits.read_text(args.command, limits.SETTINGS, errors="replace")
        return Target(str(args.command), parse_command(text))
    require(bool(args.words), "`relab gate lint` needs a YAML file, a run, settings as `relab train` takes them, or"
            " --command FILE")  # fmt: skip
    path = Path(args.words[0])
    if len(args.words) == 1 and path.is_file() and path.suffix in (".yaml", ".yml"):
        return Target(str(path), from_yaml(path))
    if len(args.words) == 1 and "=" not in args.words[0]:
        return from_run(names.place(args.words[0], args.runs))
    return from_settings(args.words)


def from_yaml(path: Path) -> Schedule:
    from relab.schedules.gate import ScheduleError
    from relab.schedules.schedule import from_mapping

    mapping = config.read_yaml(path)
    mapping = mapping["schedule"] if isinstance(mapping.get("schedule"), dict) else mapping
    try:
        return from_mapping(mapping)
    except ScheduleError as error:
        raise config.ConfigError(f"{path}: {error}") from None


def from_run(path: Path) -> Target:
    from relab.health.gate_data import schedule_of
    from relab.health.gate_lint import view_of
    from relab.health.rule import Missing

    view = view_of(path)
    try:
        return Target(view.name, schedule_of(view), view)
    except Missing as error:
        raise config.ConfigError(f"{path}: {error}") from None


def from_settings(words: Sequence[str]) -> Target:
    """Settings of a run to come: checked as `relab train` would, and the floor of step one is measured."""
    from relab.commands.train import layers

    settings = config.resolve(layers(words)).config
    require(settings.schedule is not None, "these settings have no `schedule`: give schedule=FILE.yaml")
    from relab.train import session

    companion: Any = session.companions_of(settings, session.make_env(settings))["schedule"]
    target = Target(" ".join(words), replace(companion.schedule, steps=settings.algo.steps))
    if companion.judge is not None:
        share, noise, n = companion.judge.floor()
        trials = companion.judge.multi.while_training * companion.judge.env.spec.agents
        target.floors = {"step_one_share": share, "step_one_count": share * trials} if share else {}
        target.said.append(f"measured: {share:.4f} ± {noise:.4f} of agents die in their first step under random actions"
                           f" ({n:,} worlds), {share * trials:.3g} of the {trials:,} of a check")  # fmt: skip
    return target


def declared_floors(words: Sequence[str], schedule: Schedule) -> dict[str, float]:
    """METRIC=VALUE words; a floor that no condition asks about is an error."""
    from relab.schedules.gate import ScheduleError, number

    metrics = sorted({c.metric.rpartition("/")[2] for g in schedule.gates for c in g.success})
    floors = config.parse_overrides(words)
    unknown = sorted(set(floors) - set(metrics))
    require(not unknown, f"`--floor`: no gate asks for {', '.join(unknown)}; they ask for {', '.join(metrics)}")
    try:
        return {name: number(text, f"--floor {name}") for name, text in floors.items()}
    except ScheduleError as error:
        raise config.ConfigError(str(error)) from None


# ---- replay


def replay_main(args: Gate) -> int:
    from relab.health import gate_replay
    from relab.health.gate_data import schedule_of
    from relab.health.gate_lint import view_of
    from relab.health.rule import Missing

    require(bool(args.words), "`relab gate replay` needs a run, and changes as key=value")
    run, changes = args.words[0], config.parse_overrides(args.words[1:])
    path = names.place(run, args.runs)
    view = view_of(path)
    try:
        schedule = schedule_of(view)
        gate = gate_of(schedule, args.gate, view.name)
        changed = gate_replay.change(gate, changes)
        rows = gate_replay.rows_of(view, gate, changed)
        near = gate_replay.near_bars(view, schedule, [row.changed for row in rows])
    except Missing as error:
        raise NotFoundError(f"{path} cannot be replayed: its log lacks {error}") from None
    if args.json:
        from relab.base.jsonl import encode

        body = {
            "schema": 1,
            "run": view.name,
            "gate": gate.name,
            "changes": changes,
            "checks": [row.to_dict() for row in rows],
        }
        print(encode(body | {"near": [each.to_dict() for each in near]}).decode(), end="")
        return 0
    print("\n".join(printable(line) for line in replay_text(view.name, gate.name, changes, rows, near)))
    return 0


def gate_of(schedule: Schedule, name: str | None, run: str) -> Any:
    known = [gate.name for gate in schedule.gates]
    require(bool(known), f"{run} declares no gate")
    require(name is not None or len(known) == 1, f"{run} has the gates {', '.join(known)}: choose one with --gate")
    require(name is None or name in known, f"{run} has no gate {name!r}; it has {', '.join(known)}")
    return next(gate for gate in schedule.gates if name in (None, gate.name))


def replay_text(run: str, gate: str, changes: dict[str, str], rows: list[Row], near: list[Near]) -> list[str]:
    overrides = ", ".join(f"{key}={value}" for key, value in changes.items()) or "no changes"
    differ = sum(row.differs for row in rows)
    agree = [row.recorded == row.declared.outcome for row in rows if row.recorded is not None]
    lines = [f"{run}: {gate}, {len(rows)} checks; {overrides}: {differ} decisions differ"]
    if agree:
        lines.append(f"  the bars as declared give the recorded decision in {sum(agree)} of {len(agree)} checks")
    lines.append(f"  {'iteration':>9}  {'recorded':<16}  {'with changes':<16}  stage  what decides")
    lines += [row_text(row) for row in rows]
    return lines + near_text(near)


def row_text(row: Row) -> str:
    after, mark = row.changed, "*" if row.differs else " "
    before = row.recorded or row.declared.outcome
    return f"{mark} {row.iteration:>9}  {before:<16}  {after.outcome:<16}  {after.state.stage:>5}  {deciding(row)}"


def deciding(row: Row) -> str:
    """The failure that holds, or the success bars that do not, each with its value and distance."""
    lost = row.changed.outcome in ("failure_hold", "rollback")
    checks = [c for c in row.changed.failure if c.met] if lost else [c for c in row.changed.success if not c.met]
    parts = [f"{c.condition}: {c.value:.4g}, {abs(c.distance or 0.0):.3g} {'inside' if c.met else 'short'}"
             for c in checks if c.value is not None]  # fmt: skip
    open_ = sum(c.value is None for c in checks)
    parts += [f"{plural(open_, 'window')} not full"] if open_ else []
    return "; ".join(parts) or "all bars met"


def near_text(near: list[Near]) -> list[str]:
    """One line a condition: how many of its values are too near to the bar, and what the nearest would take."""
    groups: dict[str, list[Near]] = {}
    for each in near:
        groups.setdefault(str(each.check.condition), []).append(each)
    lines = ["  too near to the bar to tell (95 %):"] if groups else []
    for name, cases in groups.items():
        most, least = max(cases, key=lambda e: e.need), min(cases, key=lambda e: e.need)
        basis = f"{cases[0].n:,.0f} effective trials, clustered by episode" if cases[0].clustered else (
            f"{cases[0].n:,.0f} trials, were they independent")  # fmt: skip
        lines.append(f"    {name}: {len(cases)} checks, on {basis}; to decide in four of five cases {need_text(least)}"
                     + (f" to {need_text(most)}" if most.need != least.need else ""))  # fmt: skip
    return lines


def need_text(each: Near) -> str:
    episodes = "" if each.episodes is None else f" ({each.episodes:,} episodes)"
    return f"{each.need:,} trials{episodes} at {each.check.value:.4g}"
