"""How do settings and names of variants stand in a line? Short, unless that makes two of them look alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relab.base.text import plural
from relab.config.views import canonical

KEYS = 4  # settings in a line or a table
LABEL = 30  # of a variant's name


def others(keys: Sequence[str], after: int) -> str:
    """The keys that are not shown, by name; of many the first."""
    left = keys[after:]
    return ", ".join(left[:KEYS]) + (f" and {plural(len(left) - KEYS, 'more key')}" if len(left) > KEYS else "")


def side_by_side(values: Sequence[Any]) -> list[str]:
    """Settings of several variants, short unless that makes two of them look alike.

    >>> side_by_side([0.0003, 0.001]), side_by_side([1700000000.1, 1700000000.2])
    (['0.0003', '0.001'], ['1700000000.1', '1700000000.2'])
    """
    texts = [setting(value) for value in values]
    return texts if len(set(texts)) >= len(set(map(canonical, values))) else [str(value) for value in values]


def setting(value: Any) -> str:
    return "-" if value is None else short(f"{value:g}" if isinstance(value, float) else str(value), 20)


def short(label: str, width: int = LABEL) -> str:
    """Cut in the middle: labels of variants begin alike and differ at their end."""
    head = (width - 1) // 3
    return label if len(label) <= width else label[:head] + "…" + label[head + 1 - width :]
