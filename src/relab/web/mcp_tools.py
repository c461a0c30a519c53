"""What may a program ask about the runs below a folder? Eight questions, each answered in a few lines of text.

Nothing here computes anything of its own: the lines are those of `relab runs`, `examine`, `compare`, `diff`, `next`,
`explain` and `note --search`. Paths are taken below the folder alone, and reading stops when the caller has gone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from relab.base.enclosed import inside, is_path
from relab.base.near import nearest
from relab.base.text import number, plural
from relab.config.base import require
from relab.formats.read import find
from relab.formats.read.find import Loaded, LoadedRuns
from relab.formats.read.hints import of_folder
from relab.health.examine import Report, examine_loaded
from relab.record.bounds import with_error
from relab.record.history import History
from relab.runs.course import course_of, course_on
from relab.runs.index import Index
from relab.runs.listing import Filter, ListedRun, Query, parse_filter, select
from relab.runs.listing import find as find_listed
from relab.web.mcp_answer import answer

MANY_RUNS = 400  # that are read for one answer
LISTED = 60  # runs of a listing
CURVES = 12  # runs whose curves are summed up in one answer
POINTS = 10  # of a curve


@dataclass(frozen=True)
class Bench:
    """The folder whose runs are looked at, and whom to ask whether anybody still waits for the answer."""

    root: Path
    alive: Callable[[], None] = lambda: None  # raises once the caller has gone

    def tell(self, done: int, total: int, name: str) -> None:
        self.alive()

    # ---- Which runs are meant

    def place(self, word: str) -> Path:
        """A path below the folder, or the run that a name (or part of one) means; anything outside is an error."""
        require(is_path(word), f"a path must be one that the system can look for, but got {word[:80]!r}")
        path = inside(self.root, word or ".")
        if path.exists():
            return path
        index = self.index()
        try:
            rows = find_listed(index, word)
        finally:
            index.close()
        require(len(rows) == 1, f"{word[:80]!r} must be one run, but means {len(rows)} below this folder")
        return inside(self.root, str(rows[0].folder))

    def index(self) -> Index:
        index = Index(self.root)
        index.refresh(self.tell)
        return index

    def load(self, word: str) -> tuple[Path, LoadedRuns]:
        """All runs at or below a path; too many are an error that says so, rather than an answer after minutes."""
        path = self.place(word)
        count = len(list(find.find(path)))
        self.alive()
        require(
            count <= MANY_RUNS,
            f"{word or 'this folder'} holds {plural(count, 'run')}, and one answer reads at most {MANY_RUNS}:"
            " name a folder below it or one run; list_runs finds them by name or setting",
        )
        return path, find.load_all(path, of_folder(path), self.tell)

    def report(self, word: str, against: str = "") -> tuple[Path, Report]:
        path, loaded = self.load(word)
        reference = self.place(against) if against else None
        return path, examine_loaded(loaded, path, reference, tell=self.tell, hints=of_folder(path))

    # ---- The eight questions

    def list_runs(self, path: str = "", match: str = "", where: Sequence[str] = (), sort: str = "age") -> str:
        folder = self.place(path)
        require(folder.is_dir(), f"{path} is a file; list_runs takes a folder")
        index = Index(folder)
        index.refresh(self.tell)
        try:
            listed = select(
                index, Query(re.escape(match) or None, [_filter(word) for word in where], sort=sort, limit=LISTED)
            )
            count = index.remarks().runs
        finally:
            index.close()
        head = f"{plural(listed.total, 'run')}" + (f" of {count} below {path or '.'}" if listed.total < count else "")
        more = [f"left out: {listed.total - len(listed.rows)} more runs; narrow it by match or where"] * (
            listed.total > len(listed.rows)
        )
        return answer([head, *more, *map(_line, listed.rows)], "narrow it by match, where or path")

    def examine(self, path: str = "", against: str = "", detail: bool = False) -> str:
        from relab.health import render

        _, report = self.report(path, against)
        every = "" if detail else " (detail=true shows every finding)"
        text = render.text(report, detail).replace("(-v", "(detail=true")  # as an option is called here
        return answer(text.split("\n"), f"examine one run alone{every}")

    def compare(self, paths: Sequence[str] = (), by: str = "", metric: str = "", smallest_effect: float = 0.0,
                detail: bool = False) -> str:  # fmt: skip
        from relab.comparison import build, render
        from relab.comparison.declared import below
        from relab.comparison.task import Options
        from relab.runs import together

        require(math.isfinite(smallest_effect), f"smallest_effect must be a finite number, but is {smallest_effect}")
        places = [self.place(word) for word in paths or [""]]
        require(len(places) <= MANY_RUNS, f"at most {MANY_RUNS} paths at a time, but got {len(places)}")
        words = dict(zip(places, paths or [""]))
        read = together.below(places, lambda path: self.load(words[path])[1])
        options = Options(by or None, metric or None, smallest_effect=smallest_effect)
        result = build.compare(read.runs, options, below(places, read.runs), read.origins)
        result.unread = read.gone
        text = render.text(result, detail).replace("(-v", "(detail=true")
        return answer(text.split("\n"), "compare fewer paths, or name a setting with by")

    def curves(self, path: str, metric: str = "") -> str:
        _, loaded = self.load(path)
        lines = [f"{len(loaded.runs) - CURVES} more runs are left out: name fewer"] * (len(loaded.runs) > CURVES)
        for run in loaded.runs[:CURVES]:
            self.alive()
            lines += _curve(run, metric)
        if len(loaded.runs) == 1 and not metric:
            lines += _every_metric(loaded.runs[0].history)
        return answer(lines, "name one run, or one metric")

    def diff(self, a: str, b: str) -> str:
        from relab.runs.settings import Difference, settings_of

        lines = Difference([settings_of(self.place(word)) for word in (a, b)]).lines()
        head = f"{plural(len(lines), 'setting')} differ from {a} to {b}, biggest first" if lines else "no difference"
        return answer([head, *lines], "the smallest changes are those left out")

    def search_notes(self, words: Sequence[str], log: str = "") -> str:
        from relab.notebook import log as logs
        from relab.notebook import search

        require(bool(words), "search_notes needs at least one word")
        places = [self.place(log)] if log else logs.default_logs(self.root)
        require(bool(places), "there is no LOG.md, notes/ or experiments/LOG.md below this folder; name a log")
        files = [inside(self.root, str(file.relative_to(self.root))) for place in places for file in logs.files(place)]
        hits = search.search(files, list(words))
        return answer(search.text(hits, list(words)).split("\n"), "search for more words")

    def propose(self, path: str = "", against: str = "") -> str:
        from relab.advise import propose, render
        from relab.notebook.log import earlier

        place, report = self.report(path, against)
        advice = propose(report, place, earlier(self.root / "experiments", [self.root / "LOG.md"]))
        return answer(render.text(advice).split("\n"), "propose for one run")

    def explain(self, word: str, run: str = "") -> str:
        from relab.health.words import meanings

        texts = meanings(word, run or None, self.place(run) if run else None)
        return answer("\n\n".join(texts).split("\n"), "explain a longer form of the word")


# ---- Lines


def _filter(word: str) -> Filter:
    condition = parse_filter(word)
    require(condition is not None, f"`where` takes comparisons such as algo.lr=3e-4 or outcome>400, but got {word!r}")
    assert condition is not None
    return condition


def _line(run: ListedRun) -> str:
    outcome = "no outcome" if run.outcome is None else f"{run.metric} {number(run.outcome)}"
    known = run.outcome is not None and run.error is not None and math.isfinite(run.error)
    error = with_error(run.outcome, run.error, (run.low, run.high), number) if known else ""  # type: ignore[arg-type]
    seed = "" if run.seed is None else f" seed {run.seed}"
    what = " ".join(part for part in (run.algo, run.env and f"on {run.env}") if part) or run.format
    steps = "" if run.steps is None else f", {run.steps:,} steps"
    parent = f", parent {run.parent}" if run.parent else ""
    return f"{run.name}: {what}{seed}, {run.state}, {outcome}{error}{steps}{parent}"


def _curve(run: Loaded, metric: str) -> list[str]:
    """One run in two lines: where it began, ended and was best, and ten points on the way."""
    history = run.history
    if metric and metric not in history.columns:
        near = ", ".join(nearest(metric, list(history.columns), most=3))
        return [f"{run.name}: does not log {metric!r}" + (f"; near it are {near}" if near else "")]
    course = course_on(history, metric) if metric else course_of(history)
    points = [point for point in course.points if math.isfinite(point.mean)]
    if not points:
        return [f"{run.name}: no finite value of {course.metric or 'a return'}"]
    high, low = max(points, key=lambda p: p.mean), min(points, key=lambda p: p.mean)
    first, last = points[0], points[-1]
    kept = points[:: max(1, math.ceil(len(points) / POINTS))]
    kept += [last] if kept[-1] is not last else []
    way = ", ".join(f"{number(p.mean)} at {p.step:,}" for p in kept)
    ends = f"first {number(first.mean)}, last {number(last.mean)}"
    peaks = f"highest {number(high.mean)} at step {high.step:,}, lowest {number(low.mean)} at step {low.step:,}"
    thin = f" ({len(kept)} of {plural(len(points), 'point')} shown)" if len(kept) < len(points) else ""
    return [f"{run.name}: {course.metric}: {ends}; {peaks}", f"  course{thin}: {way}"]


def _every_metric(history: History) -> list[str]:
    lines = ["every metric it logs, first -> last (lowest to highest):"]
    for name, (_, values) in sorted(history.columns.items()):
        finite = values[[math.isfinite(x) for x in values]]
        if not len(finite):
            lines.append(f"  {name}: no finite value in {plural(len(values), 'row')}")
            continue
        ends = f"{number(float(finite[0]))} -> {number(float(finite[-1]))}"
        lines.append(f"  {name}: {ends} ({number(float(finite.min()))} to {number(float(finite.max()))})")
    return lines
