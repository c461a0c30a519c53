"""What can be wrong with an environment? Worlds behind a fault: of actions, observations, rewards, ends or accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.tasks import ALL
from benchmarks.peers.worlds import Rows, Step, Worlds

Make = Callable[[int, int], Worlds]


class Broken:
    """Passes everything on to the worlds of a task, but for what a subclass changes."""

    def __init__(self, task: str, n: int, seed: int):
        self.inner = ALL[task](n, seed)
        self.rng, self.steps, self.n = np.random.default_rng(seed + 5), 0, n
        self.setup()

    def setup(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def reset(self) -> Rows:
        return self.shown(self.inner.reset())

    def step(self, action: Rows) -> Step:
        self.steps += 1
        now = self.inner.step(self.acted(action))
        return self.changed(now._replace(obs=self.shown(now.obs), final=self.shown(now.final)))

    def acted(self, action: Rows) -> Rows:
        return action

    def shown(self, obs: Rows) -> Rows:
        return obs

    def changed(self, now: Step) -> Step:
        return now


class RewardTimes1000(Broken):
    """The learner sees rewards a thousand times too large; the account of episodes holds the true ones."""

    def changed(self, now: Step) -> Step:
        return now._replace(reward=1000 * now.reward)


class RewardNegated(Broken):
    def changed(self, now: Step) -> Step:
        return now._replace(reward=-now.reward)


class RewardZero(Broken):
    """A reward that is never paid, in the account neither."""

    def changed(self, now: Step) -> Step:
        return now._replace(reward=0 * now.reward, episodes=[e._replace(total=0.0) for e in now.episodes])


class RewardDrowned(Broken):
    """Noise that is hundreds of times larger than the reward, in the account too."""

    def setup(self) -> None:
        self.extra = np.zeros(self.n)

    def changed(self, now: Step) -> Step:
        noise = 300 * (np.abs(now.reward).mean() + 0.1) * self.rng.standard_normal(self.n)
        self.extra += noise
        episodes = [e._replace(total=e.total + float(self.extra[e.world])) for e in now.episodes]
        self.extra[[e.world for e in now.episodes]] = 0
        return now._replace(reward=(now.reward + noise).astype(np.float32), episodes=episodes)


class ObservationZero(Broken):
    def shown(self, obs: Rows) -> Rows:
        return 0 * obs


class ObservationTimes1000(Broken):
    def shown(self, obs: Rows) -> Rows:
        return 1000 * obs


class ObservationShuffled(Broken):
    """Each observation belongs to another world."""

    def shown(self, obs: Rows) -> Rows:
        return obs[self.rng.permutation(self.n)]


class ActionIgnored(Broken):
    """Nine of ten actions are replaced by random ones."""

    def acted(self, action: Rows) -> Rows:
        keep = self.rng.random(self.n) < 0.1
        return np.where(keep if self.inner.choices else keep[:, None], action, self.inner.random())


class ActionTurnsOver(Broken):
    """From the middle of the run on, actions mean their opposite."""

    middle = 800

    def acted(self, action: Rows) -> Rows:
        if self.steps < self.middle:
            return action
        return self.inner.choices - 1 - action if self.inner.choices else -action


class CutShort(Broken):
    """A time limit of twelve steps that somebody forgot."""

    def setup(self) -> None:
        self.inner.horizon = 12


class NeverEnds(Broken):
    """No time limit on a task that has no other end."""

    def setup(self) -> None:
        self.inner.horizon = 10**9


class EndsAtRandom(Broken):
    """Every third step ends the episode."""

    def setup(self) -> None:
        move = self.inner.move

        def cut(action: Rows) -> tuple[Rows, Rows]:
            reward, ended = move(action)
            return reward, ended | (self.rng.random(self.n) < 0.33)

        self.inner.move = cut  # type: ignore[method-assign]


class LastRewardLost(Broken):
    """The learner is not paid for the step that ends an episode; the account is."""

    def changed(self, now: Step) -> Step:
        return now._replace(reward=np.where(now.terminated | now.truncated, 0.0, now.reward).astype(np.float32))


class RewardOffset(Broken):
    """The learner gets a thousand more at each step; the account holds the true rewards."""

    def changed(self, now: Step) -> Step:
        return now._replace(reward=now.reward + np.float32(1000.0))


class ReturnsOver100(Broken):
    """Episodes are accounted in other units, as by a wrapper that normalises rewards."""

    def changed(self, now: Step) -> Step:
        return now._replace(episodes=[e._replace(total=e.total / 100) for e in now.episodes])


class ObservationFrozen(Broken):
    """What was seen first is seen for the whole episode: an array that is never copied."""

    def reset(self) -> Rows:
        self.first = self.inner.reset().copy()
        return self.first.copy()

    def step(self, action: Rows) -> Step:
        now, before = self.inner.step(action), self.first.copy()
        begun = now.terminated | now.truncated
        self.first[begun] = now.obs[begun]
        return now._replace(obs=self.first.copy(), final=before)


class ActionDelayed(Broken):
    """What is carried out was chosen ten steps ago."""

    delay = 10

    def setup(self) -> None:
        self.waiting: list[Rows] = []

    def acted(self, action: Rows) -> Rows:
        self.waiting.append(np.array(action))
        return self.waiting.pop(0) if len(self.waiting) > self.delay else self.inner.random()


class ActionTruncated(Broken):
    """A cast to whole numbers: of actions between -1 and 1 nothing is left."""

    def acted(self, action: Rows) -> Rows:
        return np.trunc(0.999 * action / self.inner.high)


class EndsAsCuts(Broken):
    """Ends are reported as cuts by a time limit, so that a learner bootstraps beyond them."""

    def changed(self, now: Step) -> Step:
        return now._replace(terminated=np.zeros_like(now.terminated), truncated=now.terminated | now.truncated)


def behind(fault: type[Broken]) -> Callable[[str], Make]:
    """How a script or a library makes the worlds of a task behind a fault."""
    return lambda task: lambda n, seed: fault(task, n, seed)  # type: ignore[return-value]
