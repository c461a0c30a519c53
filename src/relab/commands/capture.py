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
from relab.base.terminal import keep_going
from relab.commands.parsing import parse, vacant
from relab.config.base import require
from relab.record import names

if TYPE_CHECKING:
    from relab.logger import Logger

EXAMPLES = """
  relab capture -- python train.py --lr 3e-4 --seed 0
  relab capture --name warm-up --env CartPole-v1 --algo ppo --seed 0 -- python train.py
"""


@dataclass(frozen=True)
class Capture:
    """Run a program and keep its numbers in a run folder: those it hands to relab.logger, else those it prints.

    The program's output still appears here and is kept in output.log; the exit code is the program's own.
    """

    runs: Path = Path("runs")
    """folder that holds the run folders"""
    name: str | None = None
    """name of the run folder; default: date-adjective-animal"""
    env: str | None = None
    """environment, if the program does not say it (CartPole-v1)"""
    algo: str | None = None
    """algorithm, if the program does not say it (ppo)"""
    seed: int | None = None
    """seed, if the program does not say it"""


def main(words: Sequence[str]) -> int:
    ours, command = split(list(words))
    args = parse(Capture, "capture", ours, EXAMPLES)
    require(bool(command), "the program is missing; write it after two dashes: relab capture -- python train.py")
    keep_going()
    folder = claim(args)
    code = watch(command, folder, args)
    print(f"relab: kept in {folder}; relab examine {shlex.quote(str(folder))}", file=sys.stderr)
    return code


def split(words: list[str]) -> tuple[list[str], list[str]]:
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def claim(args: Capture) -> Path:
    if args.name is None:
        return names.claim(args.runs)[1]
    folder = vacant(args.runs, args.name)
    folder.mkdir(parents=True)
    return folder


def watch(command: list[str], folder: Path, args: Capture) -> int:
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
        printed = Printed(folder, args, command)
        try:
            pump(process.stdout, log, printed)
        except KeyboardInterrupt:  # the program got it too, and ends in its own way
            pump(process.stdout, log, printed)
        code = process.wait()
        with printed.kept(str(folder / "meta.json")):
            printed.close("finished" if code == 0 else "interrupted" if code in (-2, 130) else "failed", code)
    return code if code >= 0 else 128 - code


def pump(source: IO[str], log: IO[bytes], printed: Printed) -> None:
    hide = masks.Lines()
    for line in source:
        with terminal.as_is():
            sys.stdout.write(line)
            sys.stdout.flush()
        with printed.kept(log.name):
            log.write(hide(line).encode("utf-8", "replace"))
            printed.see(line)


class Printed:
    """The record of what a program prints; gives way to a record that the program writes itself."""

    def __init__(self, folder: Path, args: Capture, command: list[str]) -> None:
        from relab.formats.read.console import Console

        self.folder, self.args, self.command, self.console = folder, args, command, Console()
        self.logger: Logger | None = None
        self.full = False

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
        for step, axis, row in self.console.feed(line):
            if self.logger is None and not (self.folder / "meta.json").exists():
                self._start(axis)
            if self.logger is not None:
                self.logger.log(step, **row)

    def _start(self, axis: str) -> None:
        from relab.logger import Logger

        args = self.args
        self.logger = Logger(str(self.folder), seed=args.seed, env=args.env, algo=args.algo, axis=axis)
        self.logger.meta["command"] = shlex.join(masks.masked(self.command))

    def close(self, status: str, code: int) -> None:
        if self.logger is None and not (self.folder / "meta.json").exists():
            self._start("env_steps")  # it printed no numbers: the record says so by having none
        if self.logger is not None:
            self.logger.meta["exit_code"] = code
            self.logger.close(status)
