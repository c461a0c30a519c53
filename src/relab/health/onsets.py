"""When did a finding begin? The earliest of the runs that have it: one definition for curves, cards and terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Since:
    """The step at which a finding began in the first of the runs that have it."""

    step: int
    run: str
    dated: int  # runs that have it and say since when
    runs: int  # runs that it was looked for in
    unit: str = "seeds"  # what these are: seeds of one config, else runs

    @property
    def marked(self) -> bool:
        """What was so from the first step on, as a setting is, has no beginning to mark."""
        return self.step > 0

    @property
    def words(self) -> str:
        """since step 14,336 (earliest of 3 of 5 seeds)

        >>> Since(2048, "a", 1, 1).words, Since(2048, "a", 3, 5).words, Since(2048, "a", 5, 5).words
        ('since step 2,048', 'since step 2,048 (earliest of 3 of 5 seeds)', 'since step 2,048 (earliest of 5 seeds)')
        """
        if self.runs < 2:
            return f"since step {self.step:,}"
        some = f"{self.dated} {self.unit}" if self.dated == self.runs else f"{self.dated} of {self.runs} {self.unit}"
        return f"since step {self.step:,} ({'earliest of' if self.dated > 1 else 'in'} {some})"


def earliest(onsets: Iterable[tuple[str, int | None]], runs: int, unit: str = "seeds") -> Since | None:
    """Of (run, step) for each run that has a finding; `runs` are all that it was looked for in. None: nobody knows."""
    dated = [(step, run) for run, step in onsets if step is not None]
    if not dated:
        return None
    step, run = min(dated, key=lambda each: each[0])
    return Since(step, run, len(dated), max(runs, len(dated)), unit)
