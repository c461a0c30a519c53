"""Do the steps of a log count what they are taken for? Asked first: everything else is told by them."""

from __future__ import annotations

from relab.base.text import plural
from relab.formats.read.step_axis import DOUBT, LEFT_OUT
from relab.health.rule import Evidence, Finding, rule
from relab.health.view import View


@rule("steps-out-of-place", about="axis", algos=(), severity="warning", compared=False)
def steps_out_of_place(view: View) -> Finding | None:
    """
    What: single rows have a step that cannot be theirs: below 0, a hundred times beyond all others, or far from the
        rows on both sides, which go on from each other.
    Why: a counter overflowed or was set back, or two programs wrote into one log. With such a row the run would seem to
        end elsewhere, so it is left out of all that is judged.
    Known problems: a log that was cut together by hand; a last row that was logged far behind all others on purpose.
    Refuted by: the program's own count of its steps at that row.
    Try: look at the rows it names; log the step of the environment with every row.
    """
    gone = view.meta.get(LEFT_OUT)
    if not isinstance(gone, dict):
        return None
    steps, rows = [int(step) for step in gone["steps"]], int(gone["points"])
    names = ", ".join(f"{step:,}" for step in steps) + ", ..." * (rows > len(steps))
    return Finding(f"{plural(rows, 'row')} out of place left out, at step {names}: the others go to"
                   f" {view.last_step:,}", float(rows), None,
                   [Evidence("step", steps, [float(step) for step in steps], "out of the order of the others")],
                   confidence="high")  # fmt: skip


@rule("step-unit-doubtful", about="axis", algos=(), severity="warning", compared=False)
def step_unit_doubtful(view: View) -> Finding | None:
    """
    What: the steps cannot be single steps of the environment: an episode ended that was ten times as long as all steps
        so far, or all episodes together a hundred times; the logged speed, or the updates, make a hundred times as
        many; they are times of the clock; or they are below 0.
    Why: they may count thousands, iterations or seconds. Whatever is judged by a number of steps (whether the run was
        cut short, how quickly others learned) is not asked.
    Known problems: lengths that are counted in other units than steps, such as seconds.
    Refuted by: the program's own count, or a length that is not that of an episode.
    Try: log steps of the environment; of a column that counts thousands say so: `--mapping "{NAME: {name: step,
        factor: 1000}}"`.
    """
    why = view.meta.get(DOUBT)
    if not isinstance(why, str):
        return None
    return Finding(f"what the steps count is doubtful: {why}; nothing is judged by how many there are", None, None,
                   [Evidence("step", [view.last_step], [float(view.last_step)], "the last step")],
                   confidence="high")  # fmt: skip
