"""How are a command's words read? tyro makes options from a dataclass; the docstring and examples become --help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Answered(SystemExit):
    """The parser has printed help, or what is wrong with the words; any other SystemExit is not relab's own."""


def parse(args: type[T], name: str, words: Sequence[str], examples: str) -> T:
    """The dataclass filled from `words`; prints help or what is wrong and raises Answered."""
    import tyro

    config: tuple[Any, ...] = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
    text = f"{(args.__doc__ or '').strip()}\n\nExamples:\n{examples.rstrip()}"
    try:
        return tyro.cli(args, prog=f"relab {name}", description=text, args=list(words), config=config)
    except SystemExit as stop:
        raise Answered(stop.code) from None
