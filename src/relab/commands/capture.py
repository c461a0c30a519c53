"""relab capture: run any program and keep what it logs or prints as a run that relab can examine."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from relab.base import masks, terminal
from relab.base.places import printable
from relab.base.terminal import keep_going
from relab.commands.options import RunsFolder
from relab.commands.parsing import parse, vacant
from relab.config.base import require
from relab.record import names

if TYPE_CHECKING:
    from relab.logger import Logger

EXAMPLES = """
  relab capture -- python train.py --lr 3e-4 --seed 0
  relab capture --name warm-up --env CartPole-v1 --algo ppo --seed 0 -- python train.py
"""
LONGEST = 1 << 20  # characters of a line that are read at a time
SHOWN, NAMED = 3, 5  # lines that were not understood, names of numbers
WOULD_DO = (
    "  A line needs a step and a number, in one of these ways:",
    '    step=1000 reward=22.3      Step 1000 | reward: 22.3      {"step": 1000, "reward": 22.3}',
    '  or let the program write them: from relab.logger import Logger; Logger().log(1000, **{"return/mean": 22.3})',
)


@dataclass(frozen=True)
class Capture:
    """Run a program and keep its numbers in a run folder: those it hands to relab.logger, else those it prints.

    The program's output still appears here and is kept in output.log; the exit code is the program's own. Settings are
    taken from its options (--lr 3e-4). docs/commands.md lists the lines that are understood.
    """

    runs: RunsFolder = Path("runs")
    name: str | None = None
    """name of the run folder; default: date-adjective-animal"""
    env: str | None = None
    """environment, if the program does not say it (CartPole-v1)"""
    algo: str | None = None
    """algorithm, if the program does not say it (ppo)"""
    seed: int | None = None
    """seed, if the program does not say it"""
    dry_run: bool = False
    """only say what would be run, and where its numbers would go"""


def main(words: Sequence[str]) -> int:
    ours, command = split(list(words))
    args = parse(Capture, "capture", ours, EXAMPLES)
    require(bool(command), "the program is missing; write it after two dashes: relab capture -- python train.py")
    if args.dry_run:
        place = args.runs / (args.name or "DATE-NAME")
        print(
            printable(f"would run {shlex.join(masks.masked(command))} and keep its numbers in {place}; nothing was run")
        )
        return 0
    keep_going()
    folder = claim(args)
    printed = Printed(folder, args, command)
    code = watch(command, folder, printed)
    print("\n".join(f"relab: {line}" if i == 0 else line for i, line in enumerate(summary(printed))), file=sys.stderr)
    return code


def summary(printed: Printed) -> list[str]:
    """Where the record is and what of the output is in it; where that is nothing, the first lines and what would do."""
    again = f"relab examine {shlex.quote(str(printed.folder))}"
    if printed.logger is None:  # the program wrote the record itself
        return [f"kept in {printed.folder}; {again}"]
    if printed.numbers:
        more = f" and {len(printed.numbers) - NAMED} more" * (len(printed.numbers) > NAMED)
        some = ", ".join([*printed.numbers][:NAMED]) + more
        return [f"kept {sum(printed.numbers.values())} numbers ({printable(some)}) in {printed.folder}; {again}"]
    if not printed.lines:
        return [f"0 numbers: the program printed nothing; {printed.folder} keeps how it ended", *WOULD_DO]
    first = [f"    {printable(masks.mask(line.strip()))[:100]}" for line in printed.first]
    head = f"0 numbers in {printed.folder}: of {printed.lines} printed lines none was understood; the first ones:"
    return [head, *first, *WOULD_DO]  # fmt: skip


def split(words: list[str]) -> tuple[list[str], list[str]]:
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def claim(args: Capture) -> Path:
    if args.name is None:
        return names.claim(args.runs)[1]
    folder = vacant(args.runs, args.name)
    folder.mkdir(parents=True)
    return folder


def watch(command: list[str], folder: Path, printed: Printed) -> int:
    """Run it, pass its output on, and write a row for each set of numbers it prints, unless it logs by itself."""
    from relab.logger import FOLDER_VARIABLE

    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace", env={**os.environ, FOLDER_VARIABLE: str(folder.resolve()),
                                                          "PYTHONUNBUFFERED": "1"})  # fmt: skip
    except OSError as error:
        folder.rmdir()
        require(False, f"`{command[0]}` could not be started: {error.strerror}")
    with process, open(folder / "output.log", "wb", buffering=0) as log:
        assert process.stdout is not None
        try:
            pump(process.stdout, log, printed)
        except KeyboardInterrupt:  # the program got it too, and ends in its own way
            pump(process.stdout, log, printed)
        code = process.wait()
        with printed.kept(str(folder / "meta.json")):
            printed.close("finished" if code == 0 else "interrupted" if code in (-2, 130) else "failed", code)
    return code if code >= 0 else 128 - code


def pump(source: IO[str], log: IO[bytes], printed: Printed) -> None:
    """Line by line, and long ones in pieces: what a program prints without an end must not fill the memory."""
    hide, begins = masks.Lines(), True
    while piece := source.readline(LONGEST):
        with terminal.as_is():
            sys.stdout.write(piece)
            sys.stdout.flush()
        with printed.kept(log.name):
            log.write(hide(piece).encode("utf-8", "replace"))
            if begins:
                printed.see(piece)
        begins = piece.endswith("\n")


class Printed:
    """The record of what a program prints; gives way to a record that the program writes itself."""

    def __init__(self, folder: Path, args: Capture, command: list[str]) -> None:
        from relab.formats.read.console import Console

        self.folder, self.args, self.command, self.console = folder, args, command, Console()
        self.logger: Logger | None = None
        self.full = False
        self.lines, self.first = 0, list[str]()  # that hold something; those that were not understood
        self.numbers: dict[str, int] = {}  # name -> how many

    @contextlib.contextmanager
    def kept(self, path: str) -> Iterator[None]:
        """A full disk ends what we keep of the program, and not the program."""
        from relab.base.jsonl import DiskFullError, writing

        try:
            with writing(path):
                yield
        except DiskFullError as error:
            if not self.full:
                print(f"relab: {error}", file=sys.stderr)
                print("relab: the program goes on; what it prints is kept again once there is room", file=sys.stderr)
            self.full = True

    def see(self, line: str) -> None:
        rows = list(self.console.feed(line))
        if line.strip():
            self.lines += 1
            self.first += [line] * (not rows and len(self.first) < SHOWN)
        for step, axis, row in rows:
            if self.logger is None and not (self.folder / "meta.json").exists():
                self._start(axis)
            if self.logger is not None:
                self.logger.axis = axis
                self.logger.row(step, row)
                for name in row:
                    self.numbers[name] = self.numbers.get(name, 0) + 1

    def _start(self, axis: str) -> None:
        from relab.formats.read import cleanrl
        from relab.logger import Logger
        from relab.schedules.command import flags_of

        args = self.args
        config = {name: cleanrl.typed(value) for name, value in flags_of(self.command).items()}
        self.logger = Logger(str(self.folder), config, args.seed, args.env, args.algo, axis)
        self.logger.meta["command"] = shlex.join(masks.masked(self.command))

    def close(self, status: str, code: int) -> None:
        if self.logger is None and not (self.folder / "meta.json").exists():
            self._start("env_steps")  # it printed no numbers: the record says so by having none
        if self.logger is not None:
            self.logger.meta["exit_code"] = code
            self.logger.close(status)
