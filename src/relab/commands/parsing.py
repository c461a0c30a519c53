"""How are a command's words read? tyro makes options from a dataclass; the docstring and examples become --help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def parse(args: type[T], name: str, words: Sequence[str], examples: str) -> T:
    """The dataclass filled from `words`; prints help or what is wrong and raises SystemExit."""
    import tyro

    config: tuple[Any, ...] = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
    text = f"{(args.__doc__ or '').strip()}\n\nExamples:\n{examples.rstrip()}"
    return tyro.cli(args, prog=f"relab {name}", description=text, args=list(words), config=config)
