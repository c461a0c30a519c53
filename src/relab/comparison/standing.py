"""Which variant is better, by how much, or can one not tell yet? In one sentence, the first of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from relab.base.text import number
from relab.comparison import pairs
from relab.comparison.answer import Answer
from relab.comparison.numbers import LEAST
from relab.comparison.render import has_interval, step_text
from relab.comparison.task import Task
from relab.comparison.variant import Variant
from relab.comparison.wording import seeds_words

NAMED = 3  # variants by name; of more their number


def sentence(task: Task, names: Mapping[str, str] | None = None) -> str:
    """Who is better than whom, at a level corrected for the number of comparisons; empty where nothing is compared.

    Nobody declared it beforehand, which is the first word.
    """
    said = _told(task, names)
    return f"Exploratory: {said}" if said else ""


def _told(task: Task, names: Mapping[str, str] | None) -> str:
    rows = [row for row in task.variants if math.isfinite(row.mean.mid) and row.mean.n]
    if len(rows) < 2:
        return ""
    label = {row.label: (names or {}).get(row.label, row.label) for row in task.variants}
    if task.at_ceiling:
        return f"{_all(rows, label)} cannot be told apart: all end at the ceiling ({number(task.ceiling)})."
    outcomes = {row.label: task.outcomes[row.label] for row in rows}
    others = pairs.against_first(outcomes, task.measure, 0.0)
    if len(rows) == 2:
        return _two(rows, others[0], label, _where(task))
    shown = {pair.b: pair.answer for pair in task.pairs if pair.a == rows[0].label}
    ahead = {row.label: _by(shown.get(row.label, answer)) for row, answer in zip(rows[1:], others)}
    return _many(
        rows, [row for row, answer in zip(rows[1:], others) if not is_clear(answer)], ahead, label, _where(task)
    )


def detail(task: Task) -> str:
    """What the numbers of the sentence are."""
    level = "95 % intervals over seeds; " if has_interval(task) else ""
    return f"{task.measure.words}{step_text(task)}; {level}exploratory: no comparison was declared beforehand"


def _where(task: Task) -> str:
    """At which step, where some runs went on after it: what they came to there is not how they end."""
    return f"at step {task.step:,.0f}, where the shortest run ends," if task.beyond else ""


def _two(rows: Sequence[Variant], answer: Answer, label: Mapping[str, str], where: str) -> str:
    first, second = (label[row.label] for row in rows)
    n = f"{rows[0].mean.n} and {rows[1].mean.n} seeds"
    if is_clear(answer):
        return f"{first} is better than {second} by {_by(answer)} ({n})."
    head = f"cannot tell yet whether {first} or {second} is better: "
    if min(row.mean.n for row in rows) < LEAST:
        ends = f"{first} {f'has {where}' if where else 'ends at'} {number(rows[0].mean.mid)}, {second}"
        ends += f" {number(rows[1].mean.mid)}" if where else f" at {number(rows[1].mean.mid)}"
        return f"{head}{ends}, but {n} are too few ({LEAST} each are the least)."
    if len({*rows[0].values, *rows[1].values}) == 1:
        both = f"have {where}" if where else "end at"
        return f"{first} and {second} cannot be told apart: all runs of both {both} {number(rows[0].mean.mid)} ({n})."
    more = f"; {seeds_words(answer.seeds_needed)}" if answer.seeds_needed else ""
    return f"{head}{first} leads by {_by(answer)} ({n}{more})."


def _many(
    rows: Sequence[Variant],
    open_ones: Sequence[Variant],
    ahead: Mapping[str, str],
    label: Mapping[str, str],
    where: str,
) -> str:
    """The first against all others; those that it cannot be told from are named.

    `ahead`: by how much, with the interval that the tables have; who counts as told is decided at the corrected level.
    """
    first, rest = label[rows[0].label], rows[1:]
    leads = f"{first} is highest {where}" if where else f"{first} ends highest,"
    nearest = f"{label[rest[0].label]} by {ahead[rest[0].label]}"
    if not open_ones:
        return f"{first} is better than the {len(rest)} others: ahead of the next, {nearest}."
    few = min(row.mean.n for row in rows) < LEAST
    why = f" (no verdict under {LEAST} seeds)" if few else ""
    if len(open_ones) == len(rest):
        return f"cannot tell yet which of the {len(rows)} is better: {leads} ahead of {nearest}{why}."
    if all(row.mean.n < LEAST for row in open_ones):
        clear = [row for row in rest if row not in open_ones]
        others = "" if len(clear) == 1 else f"{len(clear)} others, the next of them "
        better = f"{first} is better than {others}{label[clear[0].label]} by {ahead[clear[0].label]}"
        return f"{better}; {_all(open_ones, label)}: under {LEAST} seeds, too few to tell."
    return f"{leads} but cannot be told from {_all(open_ones, label)} yet: ahead of {nearest}{why}."


def is_clear(answer: Answer) -> bool:
    """Whether the other one is told from the first."""
    return min(answer.n) >= LEAST and answer.high < 0


def _by(answer: Answer) -> str:
    """How far the first is ahead; an answer is about the other one."""
    if not (math.isfinite(answer.low) and math.isfinite(answer.high)):
        return number(-answer.delta)
    return f"{number(-answer.delta)} [{number(-answer.high)}, {number(-answer.low)}]"


def _all(rows: Sequence[Variant], label: Mapping[str, str]) -> str:
    if len(rows) > NAMED:
        return f"{len(rows)} others" if len(rows) < len(label) else f"All {len(rows)} configs"
    *some, last = (label[row.label] for row in rows)
    return f"{', '.join(some)} and {last}" if some else last
