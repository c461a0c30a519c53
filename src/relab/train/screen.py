"""What is seen while a run trains? A live line on a terminal, plain lines elsewhere, JSON lines for programs."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from relab.base import terminal
from relab.base.jsonl import encode
from relab.base.text import count, duration, number, pace

PLAIN_EVERY_S = 2.0
PART_EVERY_S = 10.0  # of plain lines about a part of an iteration
LABELS = {"updates": "updates per iteration", "horizon": "horizon 1/(1-gamma)"}  # derived numbers, for the header

UNITS = {"agent_steps": "steps", "updates": "updates", "iteration": "iterations"}  # what a run counts, by its axis
RECENT = 100  # episodes that return/mean_100 is the mean of, as soon as there are so many
EARNED = ("return/mean_100", "return/mean")  # what the return on the screen may be, the first that is logged
ROUNDING = 1e-12  # share of a mean below which its error is that of adding floats
WINDOW_S = 30.0  # seconds of training that the speed is told by, at least


class Pace:
    """Recent speed: steps over seconds of the later half of a run's rows, since it began to learn.

    A mean of the rows' own speeds would be that of the fast ones, which are few seconds; the row in which learning
    begins, and the first one, may have compiled kernels and are left out.
    """

    def __init__(self) -> None:
        self.rows: deque[tuple[int, float]] = deque()
        self.steps, self.seconds, self.since = 0, 0.0, 0.0
        self.learning = self.begun = False

    def add(self, steps: int, seconds: float, learning: bool) -> None:
        if not self.begun or learning != self.learning:
            self.rows.clear()
            self.steps, self.seconds, self.since = 0, 0.0, 0.0
            self.begun, self.learning = True, learning
            return
        self.rows.append((steps, seconds))
        self.steps, self.seconds, self.since = self.steps + steps, self.seconds + seconds, self.since + seconds
        while self.seconds - self.rows[0][1] > max(WINDOW_S, self.since / 2):
            steps, seconds = self.rows.popleft()
            self.steps, self.seconds = self.steps - steps, self.seconds - seconds

    @property
    def sps(self) -> float | None:
        return self.steps / max(self.seconds, 1e-9) if self.rows else None


class Screen(Protocol):
    def start(self, facts: Mapping[str, Any]) -> None: ...
    def iteration(self, row: Mapping[str, Any]) -> None: ...
    def part(self, row: Mapping[str, Any]) -> None: ...
    def evaluation(self, row: Mapping[str, Any]) -> None: ...
    def note(self, text: str) -> None: ...
    def end(self, facts: Mapping[str, Any]) -> None: ...


def choose(as_json: bool, quiet: bool = False) -> Screen:
    if as_json:
        return JsonLines()
    if quiet:
        return Silent()
    return Live() if terminal.listener().isatty() else Plain()


class Silent:
    def start(self, facts: Mapping[str, Any]) -> None: ...
    def iteration(self, row: Mapping[str, Any]) -> None: ...
    def part(self, row: Mapping[str, Any]) -> None: ...
    def evaluation(self, row: Mapping[str, Any]) -> None: ...
    def note(self, text: str) -> None: ...
    def end(self, facts: Mapping[str, Any]) -> None: ...


class JsonLines:
    """One JSON object per line, `kind` first; numbers that are not finite as in the record."""

    def start(self, facts: Mapping[str, Any]) -> None:
        self.write("start", facts)

    def iteration(self, row: Mapping[str, Any]) -> None:
        self.write("iteration", row)

    def part(self, row: Mapping[str, Any]) -> None:
        self.write("part", row)

    def evaluation(self, row: Mapping[str, Any]) -> None:
        self.write("evaluation", row)

    def note(self, text: str) -> None:
        self.write("note", {"text": text})

    def end(self, facts: Mapping[str, Any]) -> None:
        self.write("end", facts)

    def write(self, kind: str, row: Mapping[str, Any]) -> None:
        say(terminal.harmless(encode({"kind": kind, **row}).decode(), as_json=True))


class Plain:
    """Lines for logs and pipes: a header, a line every few seconds, a line per evaluation, a summary."""

    def __init__(self) -> None:
        self.last = self.last_part = 0.0

    def start(self, facts: Mapping[str, Any]) -> None:
        say("\n".join(header(facts)) + "\n")

    def iteration(self, row: Mapping[str, Any]) -> None:
        if time.monotonic() - self.last >= PLAIN_EVERY_S:
            self.last = self.last_part = time.monotonic()
            say(status_line(row) + "\n")

    def part(self, row: Mapping[str, Any]) -> None:
        if time.monotonic() - self.last_part >= PART_EVERY_S:
            self.last_part = time.monotonic()
            say(f"  {part_line(row)}\n")

    def evaluation(self, row: Mapping[str, Any]) -> None:
        say(evaluation_line(row) + "\n")

    def note(self, text: str) -> None:
        say(text + "\n")

    def end(self, facts: Mapping[str, Any]) -> None:
        say("\n".join(footer(facts)) + "\n")


class Live:
    """A terminal: the last line is drawn over and over, everything else scrolls up above it."""

    def __init__(self) -> None:
        self.last, self.width = 0.0, 0

    def start(self, facts: Mapping[str, Any]) -> None:
        self.above("\n".join(header(facts)))

    def iteration(self, row: Mapping[str, Any]) -> None:
        if time.monotonic() - self.last >= 0.1:
            self.last = time.monotonic()
            self.draw(f"{bar(min(1.0, row['step'] / row['total_steps']))} {status_line(row)}")

    def part(self, row: Mapping[str, Any]) -> None:
        self.draw(f"{bar(row['done'] / row['of'])} {part_line(row)}")

    def draw(self, line: str) -> None:
        with terminal.as_is():
            say("\r" + line.ljust(self.width))
        self.width = len(line)

    def evaluation(self, row: Mapping[str, Any]) -> None:
        self.above(evaluation_line(row))

    def note(self, text: str) -> None:
        self.above(text)

    def end(self, facts: Mapping[str, Any]) -> None:
        self.above("\n".join(footer(facts)))

    def above(self, text: str) -> None:
        with terminal.as_is():
            say("\r" + " " * self.width + "\r")
        say(text + "\n")
        self.width = 0


def say(text: str) -> None:
    """To standard output, at once; where nobody can read it (any more), the run goes on without a listener."""
    out = terminal.listener()
    out.write(text)
    out.flush()


def bar(share: float, cells: int = 20) -> str:
    full = round(share * cells)
    return "█" * full + "░" * (cells - full)


def header(facts: Mapping[str, Any]) -> list[str]:
    """Which run this is, and the numbers that follow from its config."""
    labels = LABELS | ({"iterations": "iterations at least"} if facts["derived"].get("agents", 1) > 1 else {})
    derived = ", ".join(f"{labels.get(name, name)} {number(value)}" for name, value in facts["derived"].items())
    lines = [f"{facts['name']}  {facts['algo']} on {facts['env']}, seed {facts['seed']}, config {facts['config_hash']}"]
    lines += [f"  {derived}"] if derived else []
    random = facts.get("random")
    if random and random.get("return_mean") is not None:
        mean, sd = number(random["return_mean"]), number(random["return_std"])
        lines.append(f"  random policy: return {mean} (sd {sd}, {random['n']} episodes)")
    elif random and random.get("cut"):
        lines.append(f"  random policy: no return; {random['cut']} of {random['n']} episodes were not over after"
                     f" {count(random['cap'])} steps")  # fmt: skip
    return lines


def status_line(row: Mapping[str, Any]) -> str:
    unit = UNITS[row.get("axis", "agent_steps")]
    parts = [f"{count(row['step'])}/{count(row['total_steps'])} {unit}", pace(row["sps"], unit)]
    if row.get("shown"):
        parts += [f"{name} {number(value)}" for name, value in row["shown"].items()]
    elif row.get("return") is not None:
        parts.append(f"return {number(row['return'])} ({earned_by(row)})")
    if row.get("eta_s") is not None:
        parts.append(f"ETA {duration(row['eta_s'])}")
    return "  ".join(parts)


def part_line(row: Mapping[str, Any]) -> str:
    """How far a long part of the iteration that has begun is: iteration 3 of 10: re-rollouts 812 of 4,000."""
    unit = UNITS[row["axis"]]
    at = f"{count(row['step'])}/{count(row['total_steps'])} {unit}"
    if unit == "iterations":
        at = f"iteration {count(row['step'] + 1)} of {count(row['total_steps'])}"
    of = f"{row['what']} {row['done']:,} of {row['of']:,} ({row['done'] / row['of']:.0%})"
    return f"{at}: {of}  ETA {duration(row['eta_s'])}"


def earned_by(row: Mapping[str, Any]) -> str:
    """Which episodes the return is the mean of; an algorithm that does not count them does not say how many."""
    if row["earned"] == "return/mean":
        return "episodes of the last row"
    n = min(row.get("episodes") or 0, RECENT)
    return "recent episodes" if n == 0 else "the only episode" if n == 1 else f"last {n} episodes"


def evaluation_line(row: Mapping[str, Any]) -> str:
    modes = ", ".join(f"{mode} {earned(x['mean'], x['noise'])}" for mode, x in row["modes"].items())
    best = "  best so far" if row["best"] else "  of the policy, which stays as it is" if row.get("stays") else ""
    how = f"mean ± SE, {row['n']} episodes each" if row["n"] > 1 else "1 episode each, which has no standard error"
    return f"  eval at {count(row['step'])}: {row.get('outcome', 'return')} {modes} ({how}){best}"


def earned(mean: float, noise: float) -> str:
    """A mean return with its standard error, as far as there are any: open episodes have no return."""
    if math.isnan(mean):
        return "unknown"
    noise = 0.0 if noise < ROUNDING * abs(mean) else noise  # episodes that earned the same
    return f"{number(mean)} ± {number(noise)}" if math.isfinite(noise) else number(mean)


def footer(facts: Mapping[str, Any]) -> list[str]:
    next_ = [f"  next: {command}" for command in facts["next"]]
    used = [f"  {facts['usage']}"] if facts.get("usage") else []
    used = [f"  {name} {number(value)}" for name, value in (facts.get("shown") or {}).items()] + used
    return [f"{facts['status']}: {facts['why']}; {work(facts)}", *used, f"  record: {facts['folder']}", *next_]


def work(facts: Mapping[str, Any]) -> str:
    """Steps, seconds and speed of one session: those before a resume took time that nobody measured here."""
    began, step = facts.get("began_step", 0), facts["step"]
    unit = UNITS[facts.get("axis", "agent_steps")]
    one = unit.removesuffix("s") if step - began == 1 else unit
    done = f"{count(step - began)} {one} in {duration(facts['elapsed_s'])} ({pace(facts['sps'], unit)})"
    return f"{done} since the resume, {count(step)} in all" if began else done
