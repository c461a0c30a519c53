"""How do two cores compile, when this machine has no kernels yet? A second process compiles what is needed later.

Numba compiles one kernel at a time in a process, and keeps each on disk. While the run compiles what acts, the second
process compiles what learns; the run waits for that part and finds it on disk. What only makes a run faster is never
waited for. A process that fails or is killed leaves the run to compile by itself. It starts before the run has imported
torch, so nothing here imports that or Numba.
"""

from __future__ import annotations

import atexit
import functools
import os
import select
import subprocess
import sys
from pathlib import Path

from relab.base.processes import PYTHON
from relab.config import registry
from relab.config.run import RunConfig
from relab.record.provenance import usable_cores
from relab.train.device import is_cpu


class Ahead:
    """`target`, a generator function as "module:name", compiles part after part and yields the name of each."""

    def __init__(self, target: str, *words: str):
        command = [*PYTHON, "-m", "relab.train.kernels.ahead", target, *words]
        quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, **quiet)  # type: ignore[call-overload]
        self.parts: set[str] = set()
        self.over = False
        atexit.register(self.leave)

    def leave(self) -> None:
        """The run is over; the process may finish by itself, for the next one."""
        self.process.stdout.close()
        self.process.returncode = self.process.poll() or 0  # or Python warns of a process that still runs

    def ready(self, part: str, wait: bool = False) -> bool:
        """Is the part on disk, or will nobody put it there any more?"""
        out = self.process.stdout
        while part not in self.parts and not self.over and (wait or select.select([out], [], [], 0)[0]):
            line = out.readline()
            self.over = not line
            self.parts.add(line.decode().strip())
        return self.over or part in self.parts


@functools.cache
def start(target: str, *words: str) -> Ahead | None:
    """Once in a process; None where there is no second core, or no second process to be had."""
    try:
        return Ahead(target, *words) if usable_cores() > 1 else None
    except OSError:
        return None


def start_early(cfg: RunConfig) -> Ahead | None:
    """For a run that will want kernels which this machine does not have; asked before anything heavy is imported.

    Only for environments of relab's own: nobody else's code runs in a second process.
    """
    parts = getattr(cfg.algo, "compiled_ahead", lambda: None)()
    if parts is None or not is_cpu(cfg.device) or cfg.env.name not in registry.env_names() or not missing(parts[1]):
        return None
    return start(parts[0], cfg.env.name)


def missing(kernel: str) -> bool:
    """Is "module.function" in none of the folders in which Numba keeps kernels?

    Where it keeps them elsewhere the answer is wrong, and the second process finds that there is nothing to do.
    """
    folder = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(folder)] if folder else [Path(__file__).parents[1], Path.home() / ".cache" / "numba"]
    return not any(True for place in places for _ in place.rglob(f"{kernel}-*.nbi"))


def main(target: str, *words: str) -> None:
    os.nice(5)  # the run goes first
    for part in registry.load(target)(*words):
        try:
            print(part, flush=True)
        except BrokenPipeError:  # the run is over; what is compiled serves the next one
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115


if __name__ == "__main__":
    main(*sys.argv[1:])
