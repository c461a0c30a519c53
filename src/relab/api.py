"""How are runs looked at from a notebook? load, examine and compare, with tables and pictures that show themselves.

runs = relab.load("runs/")                          runs of any tool, a table in a notebook
relab.examine(runs)                                 what went wrong
runs.curves("eval/return_det").plot()               a matplotlib figure; .save("curves.pdf")
relab.compare(runs, by="lr")                        which setting is better, and can one tell yet
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relab.base.jsonl import writing
from relab.base.near import nearest
from relab.base.text import plural
from relab.comparison import build, declared, pairs, selected
from relab.comparison.answer import Answer
from relab.comparison.arms import PATH
from relab.comparison.key import env_of
from relab.comparison.task import Options, Task
from relab.config.base import ConfigError, require
from relab.config.views import MISSING, flatten
from relab.formats.read import find
from relab.formats.read.find import Loaded
from relab.formats.read.hints import Hints, of_folder, read_mapping
from relab.formats.read.pattern import Pattern
from relab.formats.read.spec import checked
from relab.formats.read.unread import Unread
from relab.health import examine as health
from relab.runs import grouping
from relab.runs.grouping import Group, Run
from relab.runs.listing import Filter, full_key
from relab.runs.sentences import finals, interval_text, verdict_words
from relab.runs.together import loaded_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PathLike = str | os.PathLike[str]
OWN: dict[str, Callable[[Run], Any]] = {  # what a run is asked for that is no setting
    "env": env_of, "algo": lambda run: flatten(run.history.config).get("algo.name"),
    "name": lambda run: run.name, "state": lambda run: run.state,
}  # fmt: skip


def load(
    *paths: PathLike,
    group: str | None = None,
    spec: Mapping[str, Any] | None = None,
    command: str = "",
    mapping: Mapping[str, Any] | None = None,
) -> Runs:
    """All runs at or below the paths, whoever wrote them; what could not be read is in `.broken` and `.unread`.

    What the logs do not say: load("logs", group="ppo_s{seed}", spec={"horizon": 200}, mapping={"ret": "return/mean"}).
    """
    hints = Hints(
        Pattern.parse(group) if group else None,
        checked(flatten(dict(spec or {}))),
        command,
        read_mapping(dict(mapping or {}), "`mapping`"),
    )
    places = [Path(path) for path in paths or ("runs",)]
    read = loaded_below(places, lambda path: find.load_all(path, of_folder(path, hints)))
    root = places[0] if len(paths) == 1 else None
    return Runs(read.runs, read.broken, ", ".join(str(p) for p in paths or ("runs",)), read.unread, root)


@dataclass
class Runs:
    """Runs that were read, in groups that differ in the seed alone."""

    loaded: list[Loaded]
    broken: list[tuple[Any, str]] = field(default_factory=list)
    path: str = ""
    unread: list[Unread] = field(default_factory=list)  # files and folders that are no run, with the reason
    root: Path | None = None  # the folder whose runs these all are

    def __post_init__(self) -> None:
        self.runs: list[Run] = [grouping.make_run(each.history, each.name) for each in self.loaded]
        self.groups: list[Group] = grouping.grouped(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __getitem__(self, key: str | int) -> Run:
        """A run by position, by name, or by a part of a name that only one has."""
        if isinstance(key, int):
            return self.runs[key]
        fitting = [r for r in self.runs if r.name == key] or [r for r in self.runs if key in r.name]
        if len(fitting) != 1:
            names = ", ".join(r.name for r in fitting or self.runs)[:300]
            raise KeyError(f"{key!r} must be one run, but means {len(fitting)} of: {names}")
        return fitting[0]

    def where(self, test: Callable[[Run], bool] | None = None, **settings: Any) -> Runs:
        """Those that pass a test and have these settings: runs.where(seed=0), runs.where(algo__lr=3e-4).

        As `relab runs` has it: env, algo, name and state are the run's own, and text is read as on the command line.
        """
        chosen = {self._key(key.replace("__", ".")): value for key, value in settings.items()}
        kept = [each for each, run in zip(self.loaded, self.runs)
                if (test is None or test(run)) and all(_has(run, k, v) for k, v in chosen.items())]  # fmt: skip
        return Runs(kept, [], self.path)

    def _key(self, key: str) -> str:
        """A setting by its key or the end of it: lr -> algo.lr; an unknown one is an error that names the nearest."""
        keys = {k for run in self.runs for k in flatten(run.history.config)}
        if key == "seed" or key in OWN:
            return key
        return full_key(key, keys) if keys else _no_settings(key, len(self.runs))

    def metrics(self) -> list[str]:
        """Every metric that any of the runs has."""
        return sorted({name for run in self.runs for name in run.history.columns})

    def curves(self, metric: str | None = None) -> Curves:
        """One metric over all runs; by default what the runs are judged by."""
        name = metric or next((r.verdict.metric for r in self.runs if r.verdict.metric), "")
        have = self.metrics()
        if name not in have:
            close = ", ".join(nearest(name, have, most=3))
            near = f"; near it are {close}" if close else "; `.metrics()` lists those there are"
            raise KeyError(f"no run has the metric {name!r}{near}")
        return Curves(name, self.groups)

    def table(self) -> list[dict[str, Any]]:
        """A row for each run: name, group, seed, state, outcome, verdict, and the settings that differ."""
        keys = grouping.differing(self.groups) if len(self.groups) > 1 else []
        return [
            {"run": run.name, "group": group.label, "seed": run.seed, "state": run.state,
             "metric": run.verdict.metric, "final": run.verdict.final, "verdict": verdict_words(run.verdict),
             **{key: _setting(run, key) for key in keys}}
            for group in self.groups for run in group.runs
        ]  # fmt: skip

    def to_pandas(self) -> Any:
        return _pandas().DataFrame(self.table())

    def __repr__(self) -> str:
        return "\n".join([f"{plural(len(self), 'run')} in {plural(len(self.groups), 'group')} of {self.path}",
                          *(f"  {' | '.join(row)}" for row in self._rows())])  # fmt: skip

    def _repr_html_(self) -> str:
        head = ("group", "seeds", "outcome", "by seed", "state")
        broken = "".join(f"<p>not readable: {escape(source.name)}: {escape(why)}</p>" for source, why in self.broken)
        passed = "".join(f"<p>not read: {escape(str(gone))}</p>" for gone in self.unread)
        return _html_table(head, self._rows()) + broken + passed

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        counted = {id(run) for run in selected.unselected(self.runs)[0]}
        for group in self.groups:
            verdicts = [run.verdict for run in group.distinct if id(run) in counted]
            each = ", ".join(f"{run.seed_name}: {run.verdict.final:.4g}".removeprefix("?: ") for run in group.by_seed)
            states = ", ".join(dict.fromkeys(run.state for run in group.runs))
            total, left = finals(verdicts), len(group.distinct) - len(verdicts)
            seeds = f"{len(verdicts)} fresh, {left} that chose it" if left else str(len(verdicts))
            rows.append((group.label, seeds, interval_text(total) if total.n else "none", each, states))
        return rows


def _has(run: Run, key: str, value: Any) -> bool:
    """Whether a run has a value; what is given as text is compared as `relab runs` does: env="cartpole", lr="3e-4"."""
    actual = OWN[key](run) if key in OWN else _setting(run, key)
    text = value.lower() if key == "env" and isinstance(value, str) else value  # Gymnasium writes CartPole-v1
    return Filter(key, "=", text).holds(actual) if isinstance(text, str) else bool(actual == text)


def _no_settings(key: str, runs: int) -> str:
    raise ConfigError(f"`{key}` is to be a setting, but none of the {runs} runs has any in its record")


def _setting(run: Run, key: str) -> Any:
    if key == "seed":
        return run.seed
    value = flatten(run.history.config).get(key, MISSING)
    return None if value is MISSING else value


@dataclass
class Curves:
    """One metric of many runs."""

    metric: str
    groups: list[Group]

    def plot(self, x: str = "steps") -> Figure:
        """Every seed thin, mean and band where there are enough seeds; a matplotlib figure to go on with."""
        from relab.report.figure import figure

        return figure(self.groups, self.metric, x=x)

    def save(self, path: PathLike, x: str = "steps") -> Path:
        """Write the figure; the ending says how: .png, .pdf, .svg."""
        target = Path(path)
        require(
            target.suffix in (".png", ".pdf", ".svg"), f"a figure ends in .png, .pdf or .svg, but got {target.name}"
        )
        with writing(target):
            self.plot(x).savefig(target, bbox_inches="tight", dpi=150)
        return target

    def table(self) -> list[dict[str, Any]]:
        """Long format: a row for each run and step."""
        return [{"run": run.name, "group": group.label, "seed": run.seed, "step": int(step), self.metric: float(value)}
                for group in self.groups for run in group.runs if self.metric in run.history.columns
                for step, value in zip(*run.history.columns[self.metric])]  # fmt: skip

    def to_pandas(self) -> Any:
        return _pandas().DataFrame(self.table())

    def _repr_svg_(self) -> str:
        import io

        target = io.StringIO()
        self.plot().savefig(target, format="svg", bbox_inches="tight")
        return target.getvalue()

    def __repr__(self) -> str:
        n = sum(self.metric in run.history.columns for group in self.groups for run in group.runs)
        groups = plural(len(self.groups), "group")
        return f"{self.metric} of {plural(n, 'run')} in {groups}; .plot(), .save(path), .to_pandas()"


# ---- Examine


class Examination(health.Report):
    """What `relab examine` says; prints and shows itself."""

    def __repr__(self) -> str:
        from relab.health import render

        return render.text(self)

    def _repr_html_(self) -> str:
        from relab.health import render

        rows = [(f.severity or "", f.slug, f.run or f"group {f.group}", f.message,
                 "; ".join(map(render.tried, f.suggest))) for f in self.main]  # fmt: skip
        left = len(self.findings) - len(rows)
        rest = f" (.main; .findings holds {left} more: limits, and what the reference shows too)" if left else ""
        head = f"<p>{plural(len(self.runs), 'run')}, {plural(len(rows), 'finding')}{rest}</p>"
        return head + (_html_table(("severity", "finding", "run", "what", "try"), rows) if rows else "")

    def to_pandas(self) -> Any:
        return _pandas().DataFrame([f.to_json() for f in self.findings])


def examine(runs: Runs | PathLike, against: Run | PathLike | None = None) -> Examination:
    """What went wrong, since when, with the numbers: the findings of `relab examine`."""
    loaded = load(runs) if not isinstance(runs, Runs) else runs
    reference = against.history.folder if isinstance(against, Run) else against
    report = health.examine_loaded(find.LoadedRuns(loaded.loaded, loaded.broken, loaded.unread), loaded.path, reference)
    return Examination(**vars(report))


# ---- Compare


@dataclass
class Comparison:
    """What the experiment declared whose runs these are; else every other group against the first: exploratory."""

    answers: list[Answer]
    declared: str = ""  # by which experiment
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        lines = [line for x in self.answers for line in (self._said(x), *(f"  {note}" for note in x.notes))]
        said = [note for x in self.answers for note in x.notes]
        return "\n".join([*lines, *(note for note in self.notes if not any(each.startswith(note) for each in said))])

    def _said(self, x: Answer) -> str:
        return x.text if self.declared else f"exploratory: {x.text}"

    def _repr_html_(self) -> str:
        rows = [(" against ".join(reversed(x.names)), x.verdict, f"{x.delta:+.4g}", _ends(x), f"{x.n[0]}, {x.n[1]}")
                for x in self.answers]  # fmt: skip
        sentences = "".join(f"<p>{escape(text)}</p>" for text in (*map(self._said, self.answers), *self.notes))
        better = "better?" if self.declared else "better? (exploratory)"
        return sentences + _html_table(("comparison", better, "difference", "interval", "seeds"), rows)

    def to_pandas(self) -> Any:
        return _pandas().DataFrame([x.to_dict() | {"declared": self.declared} for x in self.answers])


def compare(
    runs: Runs | PathLike,
    other: Runs | PathLike | None = None,
    *,
    by: str | None = None,
    metric: str | None = None,
    at: str | None = None,
    smallest_effect: float = 0.0,
    direction: str | None = None,
    level: float | None = None,
    last: int | None = None,
    reference: str | None = None,
    axis: str | None = None,
) -> Comparison:
    """Is B better than A, and can one tell yet? Two sets of runs, or one set split by its groups or by a config key.

    As `relab compare` does it: runs of one environment, one number a run at a common step, `by` a key or the end of
    one (lr), `axis` (sim_steps, updates ...) what steps count. Of an experiment's folder it answers what the
    experiment declared, with its looks. Else every other group is held against the `reference`, which is the
    command's: the best with five seeds, else the best, unless you name another; in the command's order, at a level
    corrected for the number of those with five seeds on both sides. Of two sets each is a group, as `relab compare A
    B --by path` has it. Runs that may not be compared, of two environments say, are a ConfigError that tells why.
    """
    sets = [each if isinstance(each, Runs) else load(each) for each in (runs, other) if each is not None]
    require(other is None or by is None, "`by` splits one set of runs, but two were given")
    options = Options(PATH if other is not None else by, metric, at, level, last, smallest_effect, direction,
                      reference=reference, axis=axis)  # fmt: skip
    plans = declared.of_runs(list(sets[0])) if len(sets) == 1 and sets[0].root is not None else []
    result = build.compare([run for each in sets for run in each], options, plans, _origins(sets))
    lone = by is not None and len(result.apart) == 1 and not result.tasks
    require(bool(result.tasks), f"the runs do not differ in `{by}`: {result.apart[0][1]}" if lone else _refusal(result))
    notes = [*result.warnings, *result.notes, *(note for task in result.tasks for note in task.notes)]
    notes += [*(f"not compared: {label}: {reason}" for label, reason in result.apart)]
    answered = [pair for task in result.tasks for pair in task.pairs if pair.declared]
    if answered:
        return Comparison([pair.answer for pair in answered], answered[0].declared, notes)
    return Comparison([x for task in result.tasks for x in _answers(task, smallest_effect)], notes=notes)


def _ends(x: Answer) -> str:
    return f"[{x.low:+.4g}, {x.high:+.4g}]" if math.isfinite(x.low) else "none under 5 seeds"


def _origins(sets: Sequence[Runs]) -> dict[int, str]:
    """Which of two sets a run is of: its path, or A and B where the paths are the same."""
    paths = [each.path for each in sets]
    names = paths if all(paths) and len(set(paths)) == len(paths) else ["A", "B"]
    return {id(run): name for each, name in zip(sets, names) for run in each}


def _refusal(result: build.Result) -> str:
    why = "; ".join(f"{label}: {reason}" for label, reason in result.apart[:4])
    return f"no two configs of these {result.runs} runs may be compared: {why or 'there is one config or none'}"


def _answers(task: Task, smallest_effect: float) -> list[Answer]:
    """Every other variant against the reference, best first as on the command line."""
    control = task.reference.label
    labels = [control, *(label for label in task.outcomes if label != control)]
    return pairs.against_first({label: task.outcomes[label] for label in labels}, task.measure, smallest_effect)


# ---- Tables


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Everything in it came from logs: escaped."""
    cells = "".join(f"<th>{escape(word)}</th>" for word in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_pandas() needs pandas: pip install pandas; .table() gives plain rows") from None
    return pandas
