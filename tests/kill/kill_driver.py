"""Kills small runs of everything that is registered, again and again, resumes them, and compares the bytes.

    python tests/kill/kill_driver.py KILLS [--seed N] [--lanes N] [--only NAME,NAME] [--folder F] [--write]

A run is killed up to six times: with SIGKILL at a random moment, or at a chosen call that touches the disk (deaths.py),
halfway through a write as well; often before the second checkpoint, and inside resume. Then it is resumed to its end
and held against a run that was left in peace: every deterministic file, every checkpoint, every byte. All are forked
from one warm process, so that a kill costs a fraction of a second. Prints a table and, as its last line, JSON; --write
puts them into benchmarks/results/kills.json and docs/reliability.md. Exit code 1 if anything was lost or differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from kill.deaths import TEARABLE, Deaths
from kill.subjects import SUBJECTS, settings
from relab.base.jsonl import decode
from relab.record import history, names
from relab.record.run_folder import read_meta
from relab.train import checkpoint, session
from small_runs import run

HUNG_S = 120.0
MOST = 6  # kills of one run
FILES = ("config.yaml", "metrics.jsonl", "evals.jsonl", "probes.jsonl")
FACTS = ("status", "step", "config_hash", "init", "init_parts", "spec", "seed")
EARLY = 30  # calls of a resume that come before its run goes on, about
MARKS = ("<!-- kills: begin -->", "<!-- kills: end -->")


# ---- One attempt in a process of its own


def attempt(work: Callable[[], Any], log: Path, kill_after_s: float | None = None) -> int:
    """Run `work` in a forked process, perhaps killed after a while; its exit status (negative: the signal)."""
    pid = os.fork()
    if pid == 0:
        child(work, log)
    began = time.monotonic()
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(pid, signal.SIGKILL)
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - began > HUNG_S:
            os.kill(pid, signal.SIGKILL)
            raise TimeoutError(f"an attempt took more than {HUNG_S:.0f} s; what it printed: {log}")
        time.sleep(0.003)


def child(work: Callable[[], Any], log: Path) -> None:
    code = 1
    try:
        with open(log, "a") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
            try:
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
    finally:
        os._exit(code)


def go(folder: Path, subject: str, deaths: Deaths | None = None) -> None:
    """Begin the run, or go on with it."""
    if deaths is not None:
        deaths.install()
    if (folder / "meta.json").exists():
        session.resume(folder)
    else:
        run(folder, **settings(subject))
    if deaths is not None and deaths.at is None:
        deaths.tell(deaths.calls)


# ---- What must be the same


def fingerprint(folder: Path) -> dict[str, str]:
    """Hashes of all that must not depend on when and how often a run was killed."""
    paths = [folder / name for name in FILES]
    paths += sorted(path for path in (folder / "checkpoints").rglob("*") if path.is_file())
    found = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    meta = read_meta(folder)
    return found | {f"meta.{key}": json.dumps(meta.get(key)) for key in FACTS}


def trouble(folder: Path) -> str:
    """What is wrong with a folder that a kill has left; empty where it can be read and nothing points nowhere."""
    if not (folder / "meta.json").exists():
        return "" if not folder.exists() or names.is_unborn(folder) else "neither a run nor unborn"
    try:
        history.load(folder)
        root = folder / "checkpoints"
        for name in checkpoint.steps(root):
            checkpoint.read(root / name)
        for pointer in ("latest", "best"):
            if checkpoint.read_pointer(root, pointer) is not None:
                checkpoint.locate(root, pointer)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def first_step(folder: Path) -> bool:
    """Whether the second checkpoint is still to come."""
    path = folder / "checkpoints" / "latest.json"
    return not path.exists() or decode(path.read_bytes())["step"] == 0


# ---- One run, killed several times


@dataclass
class Reference:
    """A run that was left in peace."""

    wanted: dict[str, str]
    calls: list[str]  # that touched the disk
    seconds: float

    @property
    def second(self) -> int:
        """The number of the call at which the second checkpoint counts."""
        points = [i for i, call in enumerate(self.calls, 1) if call == "point: replace"]
        return points[2]  # latest and best of the first, then latest of the second


@dataclass
class Story:
    """What happened to one run."""

    subject: str
    kills: int = 0
    early: int = 0  # before the second checkpoint
    chosen: int = 0  # at a chosen call that touches the disk
    torn: int = 0  # halfway through a write
    resuming: int = 0  # inside resume, before the run went on
    unreadable: int = 0  # a kill left a folder that cannot be read, or a pointer to nothing
    lost: int = 0  # could not be resumed to its end
    different: list[str] = field(default_factory=list)
    places: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def reference(root: Path, subject: str) -> Reference:
    folder, report = root / f"reference {subject}", root / f"calls {subject}"
    began = time.monotonic()
    status = attempt(lambda: go(folder, subject, Deaths(report)), root / "log")
    if status != 0:
        raise RuntimeError(f"the reference run of {subject!r} ended with {status}:\n{(root / 'log').read_text()}")
    return Reference(fingerprint(folder), json.loads(report.read_text()), time.monotonic() - began)


def tell(root: Path, subject: str, number: int, ref: Reference, rng: random.Random, most: int) -> Story:
    """Kill a run up to `most` times, let it come to its end, compare."""
    story, folder = Story(subject), root / f"run-{number}"
    log = root / f"log-{number}"
    early = rng.random() < 0.4  # this one is not to reach its second checkpoint for a while
    for _ in range(rng.randint(2, most) if most > 2 else most):
        status = strike(folder, story, ref, rng, log, early)
        if status != -signal.SIGKILL:  # it came to its end before
            break
        note_kill(folder, story)
    status = attempt(lambda: go(folder, subject), log)
    conclude(folder, story, ref, status, log)
    if not (story.lost or story.different or story.unreadable):
        shutil.rmtree(folder)
        log.unlink()
    return story


def strike(folder: Path, story: Story, ref: Reference, rng: random.Random, log: Path, early: bool) -> int:
    """One attempt that is meant to be killed; its status."""
    report = log.with_suffix(".report")
    report.unlink(missing_ok=True)
    begun = (folder / "meta.json").exists()
    if rng.random() < 0.3:
        limit = ref.seconds * (0.3 if early else 1.0)
        status = attempt(lambda: go(folder, story.subject), log, rng.uniform(0.0, limit))
    else:
        torn = rng.random() < 0.4
        deaths = Deaths(report, *choose(ref, rng, early, begun, torn), torn)
        status = attempt(lambda: go(folder, story.subject, deaths), log)
    if report.exists():
        point = json.loads(report.read_text())
        story.chosen += 1
        story.torn += point["torn"]
        story.resuming += point["in_resume"]
        story.places[point["place"]] += 1
    report.unlink(missing_ok=True)
    return status


def choose(ref: Reference, rng: random.Random, early: bool, begun: bool, torn: bool) -> tuple[int, str | None]:
    """Die at the n-th call of a kind, each kind as often as any other; in a resume often at one of its first calls."""
    if begun and not torn and (early or rng.random() < 0.3):
        return rng.randint(1, EARLY), None
    calls = ref.calls[: ref.second if early else None]
    kind = rng.choice(sorted({call for call in calls if not torn or call.endswith(TEARABLE)}))
    most = calls.count(kind)
    return rng.randint(1, max(1, most // 3) if begun else most), kind


def note_kill(folder: Path, story: Story) -> None:
    story.kills += 1
    story.early += first_step(folder)
    wrong = trouble(folder)
    if wrong:
        story.unreadable += 1
        story.notes.append(f"{folder}: {wrong}")
    if not (folder / "meta.json").exists():  # as relab says: delete it and train again
        shutil.rmtree(folder, ignore_errors=True)


def conclude(folder: Path, story: Story, ref: Reference, status: int, log: Path) -> None:
    if status != 0:
        story.lost = 1
        story.notes.append(f"{folder} ended with {status}: {log.read_text()[-400:]}")
        return
    found = fingerprint(folder)
    story.different = [name for name in {**ref.wanted, **found} if ref.wanted.get(name) != found.get(name)]
    if story.different:
        story.notes.append(f"{folder} differs in {', '.join(story.different)}")


# ---- All


def lane(root: Path, refs: dict[str, Reference], number: int, lanes: int, kills: int, seed: int) -> None:
    """Its share of the kills, spread over the subjects; one line a run."""
    rng = random.Random(seed * 1000 + number)
    turns, left = dict.fromkeys(refs, 0), kills
    with open(root / f"lane-{number}.jsonl", "w") as file:
        for i in itertools.count(number, lanes):
            if left <= 0:
                return
            subject = min(turns, key=lambda name: (turns[name], rng.random()))
            story = tell(root, subject, i, refs[subject], rng, min(MOST, left))
            left -= story.kills
            turns[subject] += max(story.kills, 1)
            file.write(json.dumps(vars(story)) + "\n")
            file.flush()


def kill_all(root: Path, kills: int, seed: int, lanes: int, subjects: list[str]) -> dict[str, Any]:
    began = time.monotonic()
    os.environ["XDG_CACHE_HOME"] = str(root / "cache")
    for name in subjects:  # compiles, and loads what all that follow are forked with
        run(root / "warm" / name, **settings(name))
    refs = {name: reference(root, name) for name in subjects}
    share = [kills // lanes + (i < kills % lanes) for i in range(lanes)]
    pids = [fork_lane(root, refs, i, lanes, share[i], seed) for i in range(lanes)]
    failed = [pid for pid in pids if os.waitpid(pid, 0)[1] != 0]
    if failed:
        raise RuntimeError(f"{len(failed)} of {lanes} lanes failed; what they printed is in {root}/*.err")
    rows = [json.loads(line) for path in sorted(root.glob("lane-*.jsonl")) for line in path.read_text().splitlines()]
    return summary(rows, subjects) | {"seed": seed, "seconds": round(time.monotonic() - began, 1)}


def fork_lane(root: Path, refs: dict[str, Reference], number: int, lanes: int, kills: int, seed: int) -> int:
    pid = os.fork()
    if pid == 0:
        child(lambda: lane(root, refs, number, lanes, kills, seed), root / f"lane-{number}.err")
    return pid


COLUMNS = ("runs", "kills", "early", "chosen", "torn", "resuming", "unreadable", "lost", "different")


def summary(rows: list[dict[str, Any]], subjects: list[str]) -> dict[str, Any]:
    by = {name: counts([row for row in rows if row["subject"] == name]) for name in subjects}
    places: Counter[str] = Counter()
    for row in rows:
        places.update(row["places"])
    notes = [note for row in rows for note in row["notes"]]
    return {"total": counts(rows), "by_subject": by, "places": dict(places.most_common()), "notes": notes}


def counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    found = {name: sum(row[name] for row in rows) for name in COLUMNS[1:-1]}
    return {"runs": len(rows), **found, "different": sum(bool(row["different"]) for row in rows)}


def table(found: dict[str, Any]) -> str:
    heads = ("runs", "kills", "before the second checkpoint", "at a chosen write", "of those halfway through it",
             "inside resume", "unreadable in between", "lost", "different bytes")  # fmt: skip
    lines = [f"| what | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    rows = {**found["by_subject"], "**all**": found["total"]}
    lines += [f"| {name} | {' | '.join(f'{row[key]:,}' for key in COLUMNS)} |" for name, row in rows.items()]
    return "\n".join(lines)


def write(found: dict[str, Any]) -> None:
    """benchmarks/results/kills.json, and the table between the marks of docs/reliability.md."""
    from benchmarks.common import ROOT, commit, machine
    from benchmarks.common import write as write_results

    write_results("kills", found)
    page = ROOT / "docs" / "reliability.md"
    page.write_text(put(page.read_text(), found, f"on {machine()['cores']} cores (commit {commit()})"))
    print(f"wrote {page.relative_to(ROOT)}")


def put(page: str, found: dict[str, Any], where: str) -> str:
    """The page with the table between its marks."""
    total, kinds = found["total"], len(found["places"])
    said = (f"{total['kills']:,} kills of {total['runs']:,} runs, at {kinds} kinds of writes and at random moments,"
            f" in {found['seconds']:,.0f} s {where}:")  # fmt: skip
    before, begin, rest = page.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (begin and end):
        raise ValueError(f"the page must hold the marks {MARKS[0]} and {MARKS[1]}, in this order")
    return f"{before}{begin}\n{said}\n\n{table(found)}\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kills", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)))
    parser.add_argument("--lanes", type=int, default=min(os.cpu_count() or 1, 8))
    parser.add_argument("--only", default=",".join(SUBJECTS))
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    root = args.folder or Path(tempfile.mkdtemp(prefix="relab-kills-"))
    root.mkdir(parents=True, exist_ok=True)
    found = kill_all(root, args.kills, args.seed, args.lanes, args.only.split(","))
    print(table(found), *found["notes"], sep="\n")
    if args.write:
        write(found)
    bad = any(found["total"][name] for name in ("unreadable", "lost", "different"))
    if not bad and args.folder is None:
        shutil.rmtree(root)
    print(json.dumps(found))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
