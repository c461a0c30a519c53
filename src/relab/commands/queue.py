"""relab queue: what waits, what runs, and who does it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relab.base import masks
from relab.base.documents import Document
from relab.base.near import hint
from relab.base.places import printable
from relab.base.terminal import keep_going
from relab.commands import dry_run
from relab.commands.parsing import parse, vacant
from relab.commands.queue_options import (
    Add,
    Cancel,
    Clear,
    Common,
    Doing,
    Ids,
    List,
    Orphans,
    Pause,
    Resume,
    Retry,
    Show,
    Work,
)
from relab.config.base import require

if TYPE_CHECKING:
    from relab.lab.execute.entry import Entry
    from relab.lab.execute.queue import Item, Queue

EXAMPLES = """
  relab queue                                          what waits, runs, is done or failed
  relab queue add train ppo env=cartpole seed=0        a training; it resumes if it is cut short
  relab queue add --priority 5 -- python train.py      any program, after two dashes
  relab queue work                                     run what waits, one run a core, until nothing does
  relab queue work --stay --workers 1                  and wait for more
  relab queue pause                                    start nothing new (resume: go on)
  relab queue pause 4f2a                               this entry only; one that runs is asked to checkpoint
  relab queue resume                                   go on with a paused queue
  relab queue resume 4f2a                              with this entry, which was paused
  relab queue cancel 4f2a
  relab queue retry --failed
  relab queue show 4f2a                                its words, its tries, the end of its log
  relab queue clear                                    forget what is done or cancelled
  relab queue orphans --end                            end what a killed relab left running

`relab queue VERB --help` shows the options of a verb.
"""
INTERRUPTED = 130
QUEUED = (
    "train",
    "resume",
    "experiment",
    "sweep",
    "study",
    "capture",
    "eval",
    "video",
    "faults",
    "coverage",
    "convert",
    "report",
)
FLAGS = ("--json", "--elsewhere", "--paused", "--dry-run", "--help", "-h")  # of `add`, that take no value


def main(words: Sequence[str]) -> int:
    verb = words[0] if words and not words[0].startswith("-") else "list"
    require(verb in VERBS, f"`relab queue` has no verb {verb!r}{hint(verb, VERBS, '; the nearest is {!r}')}")
    rest = list(words[1:] if words and words[0] == verb else words)
    if verb == "add":
        return add(rest)
    args_class, do = VERBS[verb]
    args = parse(args_class, "queue" if verb == "list" else f"queue {verb}", rest, examples(verb))
    return do(args)


def examples(verb: str) -> str:
    if verb == "list":
        return EXAMPLES
    return "\n".join(line for line in EXAMPLES.splitlines() if line.startswith(f"  relab queue {verb}"))


def put(args: Common, body: Document, text: Callable[[], str]) -> None:
    """As JSON, or as text without control characters: words and logs are anybody's."""
    if args.json:
        from relab.base.jsonl import encode

        print(encode({"schema": 1, "queue": str(args.folder), **masks.masked(body)}).decode(), end="")
    elif shown := text():
        print("\n".join(printable(line) for line in masks.mask(shown).split("\n")))


def only_say(args: Doing, would: Sequence[str]) -> int:
    return dry_run.say([masks.mask(line) for line in would], args.json)


# ---- Looking


def show_all(args: List) -> int:
    from relab.commands import queue_text
    from relab.lab.execute.away import away
    from relab.lab.execute.outlook import describe, time_left
    from relab.lab.execute.queue import ENDED, STATES

    elsewhere = away()
    if elsewhere and not (args.folder / "waiting").is_dir():  # engines have something, and there is no queue besides
        put(args, {"away": [row.to_json() for row in elsewhere]}, lambda: queue_text.everywhere([], elsewhere))
        return 0
    queue = args.open()
    items = {state: list(queue.items((state,))) for state in STATES}
    if args.top and not args.json:  # of what ended the last ones matter, of the rest the next
        items = {state: some[-args.top :] if state in ENDED else some[: args.top] for state, some in items.items()}
    rows = [describe(queue, item) for entries in items.values() for item in entries]
    counts = queue.counts()
    left = time_left(queue, counts)
    body = {"paused": queue.paused, "counts": counts, "eta_s": left, "entries": [row.to_json() for row in rows]}
    put(args, {**body, "away": [row.to_json() for row in elsewhere]},
        lambda: "\n".join([queue_text.listing(args.folder, queue.paused, counts, rows, left),
                           *([queue_text.everywhere(rows, elsewhere)] if elsewhere else [])]))  # fmt: skip
    return 0


def show_some(args: Show) -> int:
    from relab.commands import queue_text
    from relab.lab.execute.outlook import describe

    queue = args.open()
    require(bool(args.ids), "which entry? `relab queue` lists their ids")
    rows = [describe(queue, queue.find(word)) for word in args.ids]
    put(args, {"entries": [row.to_json() for row in rows]}, lambda: "\n\n".join(map(queue_text.one, rows)))
    return 0


def orphans(args: Orphans) -> int:
    from relab.base import processes

    processes_left = processes.orphans()
    if args.dry_run:
        ends = [f"end process {each.pid} of {each.job}" for each in processes_left if args.end]
        return only_say(args, ends or ["end nothing"])
    gone = [processes.end(each) for each in processes_left] if args.end else [False] * len(processes_left)
    rows = [{**each.to_json(), "ended": ended} for each, ended in zip(processes_left, gone)]

    def text() -> str:
        state = {True: "ended", False: "did not end" if args.end else "runs"}
        what = [f"{row['job']}: {program(row['command'])[:100]}" for row in rows]
        lines = [f"{row['pid']:>8}  {state[row['ended']]:8} {text}" for row, text in zip(rows, what)]
        if not rows:
            return "none: every process that relab started here has its owner"
        return "\n".join([*lines, *([] if args.end else ["relab queue orphans --end ends them"])])

    put(args, {"orphans": rows}, text)
    return 1 if args.end and not all(gone) else 0


def program(command: str) -> str:
    """What a process runs, without the shell around it that keeps its exit code."""
    from relab.lab.execute.keeper import KEEPER

    around = " ".join(KEEPER) + " "
    return command.removeprefix(around).partition(" ")[2] if command.startswith(around) else command


# ---- Adding


def add(words: list[str]) -> int:
    ours, theirs, foreign = split(words)
    args = parse(Add, "queue add", ours, examples("add"))
    require(bool(theirs), "what is to be run? relab queue add train ppo env=cartpole; relab queue add -- python x.py")
    from relab.lab.execute.queue import Queue
    from relab.lab.execute.submit import check_size

    entry = entry_of(theirs, foreign, args.cores, args.memory)
    if not args.elsewhere:
        check_size(entry)
    if args.dry_run:
        makes = f", whose run will be {entry.run}" if entry.run else ""
        return only_say(args, [f"add `{shlex.join(theirs)}`{makes}, with priority {args.priority}, to {args.folder}"])
    item = Queue(args.folder).add(entry, args.priority, "paused" if args.paused else "waiting")
    put(args, {"id": item.id, "state": item.state, "run": entry.run}, lambda: added(args, item, entry.run))
    return 0


def entry_of(words: list[str], foreign: bool, cores: int, memory: float | None) -> Entry:
    from relab.lab.execute import submit

    if foreign:
        return submit.program(words, cores, memory)
    name, near = words[0], hint(words[0], QUEUED, "; the nearest that can is {!r}")
    require(name in QUEUED, f"`{name}` cannot be queued{near};"
                            f" a program of your own stands after two dashes: relab queue add -- {name}")  # fmt: skip
    run = None
    if name == "train":
        words, run = training(words)
    return submit.relab(words, run, None, cores, memory)


def training(words: list[str]) -> tuple[list[str], Path]:
    """The words with the name of the run that they will make; settings that cannot be are an error now."""
    from relab.commands import train
    from relab.config import layers
    from relab.lab.execute.submit import new_run

    args = parse(train.Train, "train", words[1:], train.EXAMPLES)
    origin = train.origin_of(args.words, args.parent, args.runs, args.trust)
    stack = train.layers(args.words, origin, args.trust)
    train.check_files(layers.resolve(stack).config, stack)
    name = new_run() if args.name is None else args.name
    folder = vacant(args.runs, name)
    return [*words, *([] if args.name else ["--name", name])], folder


def added(args: Add, item: Item, run: str | None) -> str:
    where = f" --queue {shlex.quote(str(args.queue))}" if args.queue else ""
    makes = f"; its run will be {run}" if run else ""
    return f"{item.id[:8]} is {item.state}{makes}; relab queue work{where} runs it"


def split(words: list[str]) -> tuple[list[str], list[str], bool]:
    """The options of `add`, the command, and whether it is a program's (after two dashes) or relab's."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 1 if words[at] in FLAGS or "=" in words[at] else 2
    program = words[at : at + 1] == ["--"]
    return words[:at], words[at + program :], program


# ---- Working


def work(args: Work) -> int:
    from relab.lab.execute.queue import Queue
    from relab.lab.execute.worker import Worker

    require(args.workers is None or args.workers >= 1, f"`--workers` must be at least 1, but is {args.workers}")
    folder = args.folder
    require(folder.is_dir() or args.stay, f"there is no queue in {folder}; `relab queue add` makes one")
    if args.dry_run:
        waiting = [f"run {item.id[:8]}" for item in Queue(folder).items(("waiting",))] if folder.is_dir() else []
        return only_say(args, waiting or ["run nothing: nothing waits"])
    keep_going()

    def tell(what: str, item: Item, more: str) -> None:
        line = f"{item.id[:8]} {what}{': ' if more else ''}{more}"
        print(printable(line), file=sys.stderr if args.json else sys.stdout, flush=True)

    outcome = Worker(Queue(folder), args.workers, tell).run(args.stay)
    body = {"done": outcome.done, "failed": outcome.failed, "left": outcome.left, "interrupted": outcome.interrupted}
    put(args, body, lambda: "\n".join(outcome_text(outcome, folder)))
    return INTERRUPTED if outcome.interrupted else 1 if outcome.failed or outcome.left else 0


def outcome_text(outcome: Any, folder: Path) -> list[str]:
    lines = [f"{outcome.done} done, {outcome.failed} failed" + (", interrupted" if outcome.interrupted else "")]
    if outcome.left:
        lines.append(f"{len(outcome.left)} left waiting, for a worker that can run them")
    if outcome.paused:
        lines.append(f"{folder} is paused, and entries wait; relab queue resume")
    return lines


# ---- Changing


def change(args: Ids, words: Sequence[str], do: Callable[[Queue, str], tuple[Item, str]]) -> int:
    queue = args.open()
    if args.dry_run:
        items = [queue.find(word) for word in words]
        verb = type(args).__name__.lower()
        return only_say(args, [f"{verb} {item.id[:8]}, which is {item.state}" for item in items])
    done = [do(queue, word) for word in words]
    rows = [{"id": item.id, "before": item.state, "now": now} for item, now in done]
    put(args, {"entries": rows}, lambda: "\n".join(f"{item.id[:8]} was {item.state}: {now}" for item, now in done))
    return 0


def pause(args: Pause | Resume) -> int:
    from relab.lab.execute import control

    stops = isinstance(args, Pause)
    if args.ids:
        return change(args, args.ids, control.pause if stops else control.resume)
    queue = args.open()
    if args.dry_run:
        return only_say(args, [f"{'pause' if stops else 'go on with'} {args.folder}"])
    queue.pause(stops)
    goes_on = "; what runs goes on" if stops and queue.names("running") else ""
    said = "is paused: nothing new is started" + goes_on if stops else "goes on"
    put(args, {"paused": queue.paused}, lambda: f"{args.folder} {said}")
    return 0


def cancel(args: Cancel) -> int:
    from relab.lab.execute import control

    require(bool(args.ids), "which entry? `relab queue` lists their ids")
    return change(args, args.ids, control.cancel)


def retry(args: Retry) -> int:
    from relab.lab.execute import control

    require(bool(args.ids) != args.failed, "which entry? Give ids, or --failed for all that failed, and not both")
    ids = args.ids or [item.id for item in args.open().items(("failed",))]
    if not ids:
        put(args, {"entries": []}, lambda: "nothing has failed")
        return 0
    return change(args, ids, control.retry)


def clear(args: Clear) -> int:
    from relab.lab.execute import control

    states = ("done", "cancelled", *(("failed",) if args.failed else ()))
    if args.dry_run:
        items = args.open().items(states)
        return only_say(args, [f"forget {item.id[:8]}, which is {item.state}" for item in items] or ["forget nothing"])
    gone = control.clear(args.open(), states)
    put(args, {"cleared": [item.id for item in gone]}, lambda: f"{len(gone)} entries forgotten ({', '.join(states)})")
    return 0


VERBS: dict[str, tuple[Any, Callable[[Any], int]]] = {
    "list": (List, show_all), "add": (Add, lambda args: 0), "work": (Work, work), "pause": (Pause, pause),
    "resume": (Resume, pause), "cancel": (Cancel, cancel), "retry": (Retry, retry), "show": (Show, show_some),
    "clear": (Clear, clear), "orphans": (Orphans, orphans),
}  # fmt: skip
