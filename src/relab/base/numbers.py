"""Which number did a stranger's log mean? What is a number, and integers that no later sum chokes on."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

MAX_STEP = 2**62  # differences of smaller steps fit into 64 bits as well
HUGE = 2**1023  # integers below are doubles
DIGITS = 308  # an integer with fewer is below HUGE


def to_int(value: Any) -> int | None:
    """A count or step as it was logged, its fraction cut off; None where it is none.

    That is: NaN, the infinities, true and false, nothing, text that is no integer, and what no count reaches.

    >>> to_int(20.0), to_int("7"), to_int(float("nan")), to_int("1e400"), to_int(10**30), to_int(None)
    (20, 7, None, None, None, None)
    """
    if isinstance(value, bool) or (isinstance(value, str) and not (value.isascii() and "_" not in value)):
        return None  # int("1_0") is 10, int("٣") is 3
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < MAX_STEP else None


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a number, NaN and the infinities too; true and false are none.

    >>> is_number(0), is_number(float("nan")), is_number(True), is_number("1"), is_number(None)
    (True, True, False, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_finite(value: Any) -> TypeGuard[float]:
    """A number that can be added to others: neither NaN nor infinite, nor text that looks like one.

    >>> is_finite(0), is_finite(1e300), is_finite(True), is_finite(float("nan")), is_finite("1"), is_finite(10**400)
    (True, True, False, False, False, False)
    """
    return is_number(value) and abs(value) < HUGE


def integer(text: str) -> int | float:
    """The integer that a text spells, ValueError where it spells none; one beyond every double is infinite as 1e400 is.

    >>> integer("-12"), integer("0x1f"), integer("9" * 5000)
    (-12, 31, inf)
    """
    based = text[:2] in ("0x", "0o")
    if len(text) < DIGITS:
        return int(text, 0) if based else int(text)
    return math.inf if based else float(text)
