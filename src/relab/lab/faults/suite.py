"""How many planted faults does the examiner name, and how often does it cry wolf on healthy runs? The fault suite.

made/FAULT/ENV-sSEED    the runs with the fault in place (kept: asking again trains only what is missing)
blind/NUMBER            what the examiner gets: a copy that nowhere names the fault
faults.json, faults.md  the matrix: was the cause among the first three findings, alone and beside a healthy run
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from relab.base import processes
from relab.base.documents import Document
from relab.base.errors import NotFoundError, UserError
from relab.config.base import ConfigError
from relab.health.chain import lead
from relab.health.examine import Report, examine
from relab.health.rule import SEVERITIES
from relab.lab.faults import hide, run
from relab.lab.faults.catalogue import BASE, FAULTS
from relab.stats.rates import wilson

HEALTHY = "healthy"  # the folder of runs in which nothing was planted
RESUMED = 5 * run.SEEDS_APART
Watch = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """One fault (or none) on one environment with one seed."""

    fault: str | None
    env: str
    seed: int
    kind: str = "run"  # of a healthy case: resume, where the run was stopped half-way and went on

    @property
    def label(self) -> str:
        again = "-resumed" if self.fault is None and self.kind == "resume" else ""
        return f"{self.fault or HEALTHY}/{self.env}-s{self.seed}{again}"

    @property
    def number(self) -> str:
        """What the copy is called: the same each time, and nothing can be read from it."""
        return hashlib.blake2b(self.label.encode(), digest_size=4).hexdigest()


@dataclass
class Score:
    """What the examiner said about one case."""

    case: Case
    first: list[str]  # slugs of the first three findings, no reference
    beside: list[str] | None  # the same, held against a healthy run of another seed
    worst: str | None = None  # highest severity of any finding, no reference
    also: list[str] = field(default_factory=list)  # the cause fired, but not among the first three

    def named(self, slugs: Iterable[str] | None) -> bool:
        return bool(self.causes & set(slugs or ()))

    @property
    def causes(self) -> frozenset[str]:
        return FAULTS[self.case.fault].causes if self.case.fault else frozenset()

    def to_json(self) -> Document:
        beside = None if self.beside is None else self.named(self.beside)
        return {
            "fault": self.case.fault, "env": self.case.env, "seed": self.case.seed, "kind": self.case.kind,
            "causes": sorted(self.causes), "alone": self.named(self.first), "beside": beside,
            "findings": self.first, "findings_beside": self.beside, "worst": self.worst, "further_down": self.also,
        }  # fmt: skip


# ---- Cases


def cases(only: Sequence[str], envs: Sequence[str], seeds: Sequence[int]) -> list[Case]:
    """All faults on the environments where they make sense."""
    chosen = [FAULTS[name] for name in only] if only else list(FAULTS.values())
    return [Case(fault.name, env, seed) for seed in seeds for fault in chosen for env in envs if env in fault.envs]


def healthy_cases(envs: Sequence[str], seeds: Sequence[int]) -> list[Case]:
    """Healthy runs, plain and stopped half-way: a resume is no fault. A resumed run would be its plain twin, hence
    another seed: each counts as one more."""
    kinds = (("run", 0), ("resume", RESUMED))
    return [Case(None, env, seed + more, kind) for seed in seeds for env in envs for kind, more in kinds]


def check(only: Sequence[str], envs: Sequence[str], seeds: Sequence[int]) -> None:
    """An error for a fault or an environment that is not there, or seeds that repeat, before anything is trained."""
    for name, known, what in ((only, FAULTS, "fault"), (envs, BASE, "environment of the suite")):
        unknown = [each for each in name if each not in known]
        if unknown:
            raise NotFoundError(f"there is no {what} {unknown[0]!r}; there are: {', '.join(known)}")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds must be given and differ, but got {', '.join(map(str, seeds)) or 'none'}")


# ---- Making the runs


def case_folder(out: Path, case: Case) -> Path:
    return out / "made" / case.label


def done_file(out: Path, case: Case) -> Path:
    """There once a case is trained."""
    folder = case_folder(out, case)
    return folder.with_name(folder.name + ".done")


def missing(out: Path, todo: Sequence[Case]) -> list[Case]:
    return [case for case in todo if not done_file(out, case).exists()]


def make(out: Path, case: Case) -> str:
    """Train a case unless it is there; one that broke off is made anew. A refusal of relab's, where the planted fault
    leaves nothing to learn from, is returned: the other cases can be asked all the same."""
    folder = case_folder(out, case)
    done = done_file(out, case)
    if done.exists():
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        run.make(case.fault, case.env, case.seed, folder, case.kind)
    except UserError as error:
        if case.fault is None:
            raise
        return f"; not made: {error}"
    done.touch()
    return ""


def make_all(out: Path, todo: Sequence[Case], workers: int, watch: Watch) -> None:
    """Train what is missing, one process per worker; with one worker, here."""
    left = missing(out, todo)
    if workers <= 1:
        for i, case in enumerate(left):
            watch(f"{i + 1} of {len(left)}: {case.label}")
            if refusal := make(out, case):
                watch(f"{case.label}{refusal}")
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with processes.safe_path(), ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(make, out, case): case for case in left}
        for i, job in enumerate(as_completed(jobs)):
            watch(f"{i + 1} of {len(left)}: {jobs[job].label}{job.result()}")


# ---- Asking the examiner


def blind(out: Path, case: Case) -> Path:
    """The copy the examiner sees."""
    copy = out / "blind" / case.number
    shutil.rmtree(copy, ignore_errors=True)
    copy.parent.mkdir(parents=True, exist_ok=True)
    hide.hide(case_folder(out, case), copy, case.fault)
    return copy


def score(out: Path, case: Case, reference: Path | None) -> Score:
    """Examine the copy, alone and beside the reference."""
    copy = blind(out, case)
    alone = examine(copy)
    beside = None if reference is None else slugs(examine(copy, against=reference))
    scored = Score(case, slugs(alone), beside, worst(alone))
    scored.also = sorted({f.slug for f in alone.main} & scored.causes - set(scored.first))
    return scored


def slugs(report: Report) -> list[str]:
    """What a user reads first: the findings that `relab examine` prints."""
    return [f.slug for f in lead(report.main)]


def worst(report: Report) -> str | None:
    return max((f.severity or "info" for f in report.main), key=SEVERITIES.index, default=None)


def reference_of(out: Path, case: Case, seeds: Sequence[int]) -> Path | None:
    """A healthy run of the next seed; none where there is one seed only."""
    if len(seeds) < 2:
        return None
    at = list(seeds).index(case.seed) if case.seed in seeds else 0
    other = seeds[(at + 1) % len(seeds)]
    return blind(out, Case(None, case.env, other))


def planned(only: Sequence[str], envs: Sequence[str], seeds: Sequence[int]) -> list[Case]:
    return [*healthy_cases(envs, seeds), *cases(only, envs, seeds)]


def run_suite(
    out: Path, only: Sequence[str], envs: Sequence[str], seeds: Sequence[int], workers: int, watch: Watch
) -> list[Score]:
    """Plant, train, hide, examine: the score of every case that could be made, healthy ones included."""
    check(only, envs, seeds)
    todo = planned(only, envs, seeds)
    make_all(out, todo, workers, watch)
    unmade = missing(out, todo)
    if unmade:
        watch(f"not counted, for they could not be made: {', '.join(case.label for case in unmade)}")
    return [score(out, case, reference_of(out, case, seeds)) for case in todo if case not in unmade]


# ---- Healthy runs from elsewhere


@dataclass(frozen=True)
class Alarm:
    """A healthy folder: how many of its runs drew a warning or an error, and which rules did it."""

    folder: str
    runs: int
    alarmed: int
    slugs: dict[str, int]
    folder_alarmed: bool  # by any finding, those about the whole folder included

    def to_json(self) -> Document:
        return vars(self).copy()


def alarms(folder: Path, name: str = "") -> Alarm:
    """Examine a folder of healthy runs in whatever format they are."""
    report = examine(folder)
    loud = [f for f in report.main if f.severity in ("warning", "error")]
    runs = {f.run for f in loud if f.run is not None}
    return Alarm(name or folder.name, len(report.runs), len(runs), dict(Counter(f.slug for f in loud)), bool(loud))


def healthy_alarms(out: Path, scores: Sequence[Score], elsewhere: Sequence[Path]) -> list[Alarm]:
    """Each environment's healthy runs as one folder, and each folder given."""
    raised = []
    for env in dict.fromkeys(s.case.env for s in scores if s.case.fault is None):
        folder = out / "healthy" / env
        shutil.rmtree(folder, ignore_errors=True)
        for each in (s.case for s in scores if s.case.fault is None and s.case.env == env):
            hide.hide(case_folder(out, each), folder / each.number, None)
        raised.append(alarms(folder, f"relab {env}"))
    return raised + [alarms(path) for path in elsewhere]


# ---- The matrix


@dataclass(frozen=True)
class Rate:
    """A share with Wilson's interval; None where nothing was counted."""

    hits: int
    n: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


def rate(hits: Sequence[bool]) -> Rate:
    if not hits:
        return Rate(0, 0)
    interval = wilson(sum(hits), len(hits))
    return Rate(sum(hits), len(hits), sum(hits) / len(hits), interval.low, interval.high)


@dataclass(frozen=True)
class Summary:
    """The four numbers: causes named alone and beside a healthy run, false alarms per run and per folder."""

    alone: Rate
    beside: Rate
    healthy_runs: Rate
    healthy_folders: Rate


def summary(scores: Sequence[Score], healthy: Sequence[Alarm]) -> Summary:
    planted = [s for s in scores if s.case.fault is not None]
    runs = [k < each.alarmed for each in healthy for k in range(each.runs)]
    return Summary(
        alone=rate([s.named(s.first) for s in planted]),
        beside=rate([s.named(s.beside) for s in planted if s.beside is not None]),
        healthy_runs=rate(runs),
        healthy_folders=rate([each.folder_alarmed for each in healthy]),
    )


@dataclass(frozen=True)
class Matrix:
    """All scores and alarms, and what one needs to make them again."""

    command: str
    commit: str | None
    seeds: list[int]
    scores: list[Score]
    healthy: list[Alarm]

    @property
    def summary(self) -> Summary:
        return summary(self.scores, self.healthy)

    def to_json(self) -> Document:
        return {
            "command": self.command, "commit": self.commit, "seeds": self.seeds, "summary": asdict(self.summary),
            "cases": [each.to_json() for each in self.scores], "healthy": [each.to_json() for each in self.healthy],
        }  # fmt: skip
