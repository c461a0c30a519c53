"""What is said while an iteration takes long? How far it is, how long the run will take, and that a stop was heard."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from relab.base.text import count, duration

if TYPE_CHECKING:
    from relab.train.loop import Trainer

QUICK_S = 2.0  # an iteration that nobody waits for
PART_EVERY_S = 0.5  # between two looks at how far a long part of an iteration is
FORECAST_S = 10.0  # of learning inside of one iteration, after which its speed is that of the run


class Within:
    """The listener of one iteration (`Stopwatch.tell`)."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.step = trainer, trainer.step
        self.began = self.last = time.perf_counter()
        self.updates = trainer.state.counts.updates
        self.learning: tuple[float, int] | None = None  # when learning was first seen, and the step then

    def __call__(self, what: str, done: int, total: int) -> None:
        if (now := time.perf_counter()) - self.began < QUICK_S or not done:
            return
        if (now - self.began) // PART_EVERY_S > (self.last - self.began) // PART_EVERY_S:
            self.last = now
            self.say_part(what, done, total)
            self.say_forecast(now)
            if self.trainer.stopping():
                self.trainer.say_wait()

    @property
    def is_long(self) -> bool:
        return time.perf_counter() - self.began > QUICK_S

    def say_part(self, what: str, done: int, total: int) -> None:
        trainer, eta = self.trainer, (self.last - self.began) * (total - done) / done
        trainer.screen.part({"step": self.step, "total_steps": trainer.cfg.total_steps, "axis": trainer.clock,
                             "what": what, "done": done, "of": total, "eta_s": eta})  # fmt: skip

    def say_forecast(self, now: float) -> None:
        """Once, where the first row that could tell the speed is far away: whoever started days of work should know."""
        trainer = self.trainer
        if trainer.forecast_said or trainer.clock != "agent_steps" or trainer.state.counts.updates == self.updates:
            return
        if self.learning is None:
            self.learning = now, trainer.step
        since, steps = now - self.learning[0], trainer.step - self.learning[1]
        if since >= FORECAST_S and steps:
            trainer.forecast_said = True
            left = (trainer.cfg.total_steps - trainer.step) * since / steps
            trainer.screen.note(f"  about {duration(left)} at this speed ({count(steps / since)} steps/s) until"
                                f" total_steps = {trainer.cfg.total_steps:,}")  # fmt: skip
