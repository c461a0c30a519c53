"""What if relab knows no column of a table? Which ones there are, and the --mapping that would explain them.

The step is guessed by what a column holds: whole numbers that go up. The return is guessed by its name, else it is the
first number that is no step.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from relab.formats.read import common

RETURN = re.compile(r"(?i)rew|ret(?!r)|score|gain|fitness|payoff|perf")
LISTED = 8  # columns


def advice(columns: Mapping[str, Sequence[float]], steps_known: bool = False) -> str:
    """The end of a message about columns of numbers none of which has a meaning; empty where there are none.

    `steps_known`: another column counts the steps.

    >>> advice({"seen": [100.0, 200.0], "payoff": [1.5, 2.5]})
    'the columns seen, payoff are not understood; say what they mean: --mapping seen=step,payoff=return/mean'
    """
    if not columns:
        return ""
    counts = [] if steps_known else [n for n, v in columns.items() if _counts(v)][:1]
    steps = [name for name in columns if common.step_axis(name)] or counts
    rest = [name for name in columns if name not in steps]
    by_name = [name for name in rest if RETURN.search(name)] or rest
    pairs = {name: common.STEP for name in steps if not common.step_axis(name)}
    pairs |= dict.fromkeys(by_name[:1], "return/mean")
    strange = [name for name in columns if not common.step_axis(name)]
    some = ", ".join(strange[:LISTED]) + f" and {len(strange) - LISTED} more" * (len(strange) > LISTED)
    many = len(strange) > 1
    head = f"the columns {some} are" if many else f"the column {some} is"
    return f"{head} not understood; say what {'they mean' if many else 'it means'}: --mapping {_typed(pairs)}"


def _counts(values: Sequence[float]) -> bool:
    numbers = np.asarray(values, np.float64)
    whole = len(numbers) > 1 and bool(np.isfinite(numbers).all()) and bool((numbers == np.floor(numbers)).all())
    return whole and bool((np.diff(numbers) > 0).all())


def _typed(pairs: Mapping[str, str]) -> str:
    """As it is typed in a shell; braces where a name holds what parts the pairs."""
    if any(set(name) & set(",=") or name.startswith("{") for name in pairs):
        quoted = ", ".join(f"{_quoted(name)}: {ours}" for name, ours in pairs.items())
        return shlex.quote("{" + quoted + "}")
    return shlex.quote(",".join(f"{name}={ours}" for name, ours in pairs.items()))


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
