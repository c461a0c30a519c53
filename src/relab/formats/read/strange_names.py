"""What if relab knows no column of a table? Which ones there are, and the --mapping that would explain them.

The step is guessed by what a column holds: whole numbers that go up. The return is guessed by its name, else it is the
first number that is no step. What is to go down by its name (a cost, a penalty) is one with its sign turned.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from relab.formats.read import common
from relab.formats.read.source import FOREIGN
from relab.record.history import History

RETURN = re.compile(r"(?i)rew|ret(?!r)|score|gain|fitness|payoff|perf")
COST = re.compile(r"(?i)(?<![a-z])(costs?|penalt(y|ies)|regrets?)(?![a-z])|ep(isode|isodic)?[_/ ]*loss|loss[_/ ]*ep")
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
    costs = [name for name in rest if COST.search(name)]
    by_name = [name for name in rest if RETURN.search(name) and name not in costs] or costs or rest
    pairs = {name: common.STEP for name in steps if not common.step_axis(name)}
    pairs |= {name: meaning(name) for name in by_name[:1]}
    strange = [name for name in columns if not common.step_axis(name)]
    some = ", ".join(strange[:LISTED]) + f" and {len(strange) - LISTED} more" * (len(strange) > LISTED)
    many = len(strange) > 1
    head = f"the columns {some} are" if many else f"the column {some} is"
    return f"{head} not understood; say what {'they mean' if many else 'it means'}: --mapping {_typed(pairs)}"


def advice_of(history: History) -> str:
    """The same about the columns of a run that have no name of relab's."""
    columns = {theirs: history.columns[ours].values.tolist() for theirs, ours in history.mapping.items()
               if ours.startswith(FOREIGN) and ours in history.columns}  # fmt: skip
    counted = not any("no column counts steps" in problem.message for problem in history.problems)
    return advice(columns, counted)


def meaning(name: str) -> str:
    """What `--mapping` says of a column that is taken for a return.

    >>> meaning("score"), meaning("episode_cost")
    ('return/mean', '-return/mean')
    """
    return "-return/mean" if COST.search(name) else "return/mean"


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
