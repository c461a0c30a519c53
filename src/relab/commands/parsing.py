"""How are a command's words read? tyro makes options from a dataclass; the docstring and examples become --help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from relab.base import terminal
from relab.config.base import require
from relab.record import names

T = TypeVar("T")


class Answered(SystemExit):
    """The parser has printed help, or what is wrong with the words; any other SystemExit is not relab's own."""


def vacant(root: Path, name: str) -> Path:
    """The folder of a new run or experiment of that name; it is not there yet, and lies nowhere else than in `root`."""
    folder = named(root, name)
    then = "delete it (it holds no run yet)" if names.is_unborn(folder) else "resume it"
    require(not folder.exists(), f"`--name` must be new, but {folder} exists; {then}, or choose another name")
    return folder


def named(root: Path, name: str) -> Path:
    wrong = names.flaw(name)
    require(not wrong, f"`--name` cannot be used: {wrong}; the folder that it lies in is another option")
    return root / name


def parse(args: type[T], name: str, words: Sequence[str], examples: str) -> T:
    """The dataclass filled from `words`; prints help or what is wrong and raises Answered."""
    import tyro

    config: tuple[Any, ...] = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
    text = f"{(args.__doc__ or '').strip()}\n\nExamples:\n{examples.rstrip()}"
    try:
        with terminal.as_is():  # its colours
            return tyro.cli(args, prog=f"relab {name}", description=text, args=list(words), config=config)
    except SystemExit as stop:
        raise Answered(stop.code) from None
