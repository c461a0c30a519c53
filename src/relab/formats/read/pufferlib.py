"""PufferLib: the frames of its terminal dashboard in a log (3.0 has no metric file), and the files of 4.0 and 5.0.

A frame prints rounded numbers: three decimals, steps as 28.7K. Steps are sharpened by the epoch: all frames together
tell how many steps an epoch has, far more exactly than any one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from relab.base import limits
from relab.base.documents import Settings
from relab.base.numbers import to_int
from relab.formats.read import puffer_files, settings_files
from relab.formats.read.source import Listing, Names, Source, problem, put, start
from relab.record.history import History

LOGS = (".log", ".txt", ".out")
LOOK = 1 << 18  # warnings of many workers come before the first frame
MAX_BYTES = 1 << 28
MAX_FRAME = 1 << 22  # bytes of a frame, with what was printed behind it
CORNER = "╭".encode()
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}

# The dashboard spells out the groups that the files shorten; losses have shorter names from 4.0 on.
NAMES: Names = {
    re.sub("^env/", "environment/", re.sub("^loss/", "losses/", name)): meaning
    for name, meaning in puffer_files.NAMES.items()
}
LOSSES = [name.partition("/")[2] for name in NAMES if name.startswith("losses/")]


def sniff(listing: Listing) -> bool:
    return bool(logs(listing)) or bool(puffer_files.sources(listing))


def logs(listing: Listing) -> list[str]:
    """The logs that hold frames."""
    return [name for name in listing.ending(*LOGS) if has_frames(listing.start_of(name, LOOK))]


def has_frames(data: bytes) -> bool:
    return "╭".encode() in data and b"PufferLib" in data


def sources(listing: Listing) -> list[Source]:
    names = logs(listing)
    place = listing.folder if len(names) == 1 else None
    mine = [Source("pufferlib", place or listing.folder / name, (listing.folder / name,)) for name in names]
    return mine + puffer_files.sources(listing)


def read(source: Source) -> History:
    history, file = start(source), source.files[0]
    if file.suffix in (".json", ".ini"):
        return puffer_files.read(history, source, file)
    flat = settings_files.beside(history, source)
    read_log(history, file, flat)
    settings_files.use(history, source, flat)
    return history


def read_log(history: History, file: Path, flat: Settings) -> None:
    """Add the frames of a log as columns; axis agent_steps, as PufferLib counts."""
    size = file.stat().st_size
    if size > MAX_BYTES:
        problem(history, file, f"only the first {MAX_BYTES} of {size} bytes were read")
    drawn = frames(_pieces(file))
    steps = sharpen(drawn, flat.get("train.batch_size"))
    for name in dict.fromkeys(name for frame in drawn for name in frame.numbers):
        at = [i for i, frame in enumerate(drawn) if name in frame.numbers]
        at.sort(key=lambda i: steps[i])  # a resumed run draws its dashboard anew
        values = [drawn[i].numbers[name] for i in at]
        put(history, name, [steps[i] for i in at], values, "agent_steps", NAMES)
    history.meta["read_from"] = f"{len(drawn)} frames of the terminal; values are rounded as they were shown"
    if not drawn:
        problem(history, file, "no whole frame of PufferLib's dashboard is in the log")


# ---- One frame


@dataclass
class Frame:
    """What one drawing of the dashboard shows."""

    shown: str = ""  # steps as they are printed
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        return to_int(self.numbers.get("epoch")) or 0


def _pieces(file: Path) -> Iterator[str]:
    """A log in pieces that begin where a frame does; what is too long to be one is left out."""
    held = b""
    for block in limits.blocks(file, MAX_BYTES):
        held += block
        cut = held.rfind(CORNER)
        yield held[: max(cut, 0)].decode("utf-8", "replace")
        held = held[max(cut, 0) :] if len(held) - cut < MAX_FRAME else b""
    yield held.decode("utf-8", "replace")


def frames(log: str | Iterable[str]) -> list[Frame]:
    """The frames of a log in order; one drawn again with the same epoch and steps counts once, as last drawn."""
    drawn: dict[tuple[int, str], Frame] = {}
    pieces = [log] if isinstance(log, str) else log
    for part in (part for piece in pieces for part in ESCAPE.sub("", piece).split("╭")[1:]):
        inner, closed, _ = part.partition("╰")
        if closed and "PufferLib" in inner:
            frame = parse(inner.splitlines())
            if frame.shown:
                drawn[frame.epoch, frame.shown] = frame
    return list(drawn.values())


def parse(lines: list[str]) -> Frame:
    """Cells by the columns of the headings: Summary, Losses, and two columns of User Stats."""
    frame, columns, group = Frame(), [0, 0], ""
    for line in lines:
        line = line.strip("│")
        if "Summary" in line and "Losses" in line:
            columns, group = [line.index("Evaluate") if "Evaluate" in line else 0, line.index("Losses")], "losses"
        elif line.count("User Stats"):
            columns, group = [line.rindex("User Stats")] * 2, "environment"
        elif group == "losses":
            _summary(frame, line[: columns[0]])
            _cell(frame, "losses", line[columns[1] :])
        elif group:
            _cell(frame, group, line[: columns[0]])
            _cell(frame, group, line[columns[0] :])
    return frame


def _summary(frame: Frame, cell: str) -> None:
    key, _, value = cell.strip().partition(" ")
    value = value.strip()
    if key == "Steps":
        frame.shown = value
    elif key == "Epoch" and re.fullmatch("[0-9]{1,18}", value):
        frame.numbers["epoch"] = float(value)
    elif key == "SPS" and (number := abbreviated(value)) is not None:
        frame.numbers["SPS"] = number[0]
    elif key == "Uptime" and (seconds := duration(value)) is not None:
        frame.numbers["uptime"] = seconds


def _cell(frame: Frame, group: str, cell: str) -> None:
    words = cell.split()
    if len(words) != 2:
        return
    try:
        value = float(words[1])
    except ValueError:
        return
    frame.numbers[f"{group}/{_whole(words[0], group)}"] = value


def _whole(name: str, group: str) -> str:
    """A name that was cut to fit its column, where one of the known losses begins like it."""
    if not name.endswith("…"):
        return name
    fits = [loss for loss in LOSSES if group == "losses" and loss.startswith(name[:-1])]
    return fits[0] if len(fits) == 1 else name[:-1]


def abbreviated(text: str) -> tuple[float, float] | None:
    """A printed number and half of its last digit.

    >>> abbreviated("28.7K"), abbreviated("512"), abbreviated("soon")
    ((28700.0, 50.0), (512.0, 0.5), None)
    """
    match = re.fullmatch(r"(-?[0-9]{1,18})(?:\.([0-9]{1,18}))?([KMBT]?)", text)
    if match is None:
        return None
    unit = UNITS.get(match[3], 1.0)
    whole = round(float(f"{match[1]}.{match[2] or 0}") * unit, 6)
    return whole, 0.5 * unit * 10.0 ** -len(match[2] or "")


def duration(text: str) -> float | None:
    """Seconds of a printed time.

    >>> duration("3m 46s"), duration("1h 2m 3s"), duration("640ms"), duration("A hair past")
    (226.0, 3723.0, 0.64, None)
    """
    parts = re.findall(r"([0-9]{1,18})(ms|[dhms])", text)
    return float(sum(int(n) * SECONDS[unit] for n, unit in parts)) if parts else None


def sharpen(drawn: list[Frame], batch: object = None) -> list[int]:
    """Steps of each frame: epoch times the steps of an epoch where that prints as shown, else as shown."""
    printed = [abbreviated(frame.shown) or (0.0, 0.0) for frame in drawn]
    size = float(batch) if isinstance(batch, int) and batch > 0 else _epoch_size(drawn, printed)
    steps = []
    for frame, (value, error) in zip(drawn, printed, strict=True):
        exact = frame.epoch * size
        steps.append(round(exact if abs(exact - value) <= 1.01 * error else value))
    return steps


def _epoch_size(drawn: list[Frame], printed: Iterable[tuple[float, float]]) -> float:
    """The middle of all steps per epoch that fit what was printed; frames that fit no longer are left out."""
    low, high = 0.0, float("inf")
    for frame, (value, error) in zip(drawn, printed, strict=True):
        if frame.epoch > 0:
            below, above = max(low, (value - error) / frame.epoch), min(high, (value + error) / frame.epoch)
            low, high = (below, above) if below <= above else (low, high)
    return (low + high) / 2 if high < float("inf") else 0.0
