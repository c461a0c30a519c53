"""Which sequences does a world model learn from? Neighbouring rows of one world, across the ends of episodes.

A replay's slot is a step: seen, done, earned, seen next. A world model wants rows of what was seen with the reward that
arrived with it, and the observation an episode ended with is a row of its own, from which no action was taken.
So a slot gives one row, and two where its episode ends.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from relab.train.kernels.jit import njit
from relab.train.replay import Replay, Rows

COLUMNS = ("obs", "action", "reward", "terminated", "truncated", "alive", "next_obs")


class Sequences(NamedTuple):
    """`batch` sequences of `length` rows, time first."""

    obs: np.ndarray  # float32[T, B, D]
    action: np.ndarray  # [T, B, K]: taken in the row before; zero in the first row of an episode or sequence
    reward: np.ndarray  # float32[T, B]: that arrived with this row
    fresh: np.ndarray  # float32[T, B]: 1 where the memory begins anew, the sequence's first row too
    earned: np.ndarray  # float32[T, B]: 1 where a reward arrived: not in the first row of an episode
    terminal: np.ndarray  # float32[T, B]: 1 where the episode is over and nothing comes after
    last: np.ndarray  # float32[T, B]: 1 in the last row of an episode, over or cut by time
    valid: np.ndarray  # float32[T, B]: 0 where there was nothing left to fill a row with


class Mix(NamedTuple):
    """How much more often some sequences are drawn than others."""

    ends: float = 0.0  # share that is moved so that an episode ends inside
    recent: float = 0.0  # share that begins among the last `steps` rows
    steps: int = 1


EVENLY = Mix()


def draw(replay: Replay, rng: np.random.Generator, batch: int, length: int, ends: float = 0.0) -> Sequences:
    """Sequences whose first slots are drawn evenly; a share `ends` of them such that an episode ends inside."""
    return filled(replay, starts(replay, rng, batch, length, Mix(ends)), length)


def starts(replay: Replay, rng: np.random.Generator, batch: int, length: int, mix: Mix = EVENLY) -> Rows:
    """Where sequences begin."""
    slot, column = first_slots(replay, rng, batch, length)
    ring, ends = replay.ring, mix.ends
    if mix.recent:
        new = rng.random(batch) < mix.recent
        oldest = replay.oldest + (replay.oldest > 0)
        last = max(replay.count - length, oldest)  # in which a whole sequence can begin
        span = min(max(1, mix.steps // replay.columns), last - oldest + 1)
        slot = np.where(new, last - rng.integers(span, size=batch), slot)
    if ends:
        late = rng.random(batch) < ends
        back = rng.integers(0, max(1, length - 1), batch)  # so that the row the episode ends with is in
        move_to_end(ring["terminated"], ring["truncated"], late, back, replay.oldest, replay.count, slot, column)
    return Rows(slot, column)


def filled(replay: Replay, start: Rows, length: int, places: bool = False) -> Sequences:
    """The sequences that begin there.

    `places`: `obs` [T, B, 1] says where a row lies in place of what it is: slot in the ring * columns + column, and for
    what an episode ended with the slot's `final`, which is below 0 (-1 where there is no such field).
    """
    ring, batch = replay.ring, start.slot.size
    rows = blank(ring, length, batch)
    columns = {name: ring[name] for name in COLUMNS if name in (ring.dtype.names or ())}
    if places:
        rows = rows._replace(obs=np.zeros((length, batch, 1), np.int64))
        columns["obs"], none = numbered(replay.slots, replay.columns)
        columns["next_obs"] = ring["final"] if "final" in (ring.dtype.names or ()) else none
    ordered = [columns[name] for name in COLUMNS]
    fill(*ordered, replay.oldest, replay.count, start.slot, start.column, *rows)  # type: ignore[call-arg]
    return rows


@lru_cache(maxsize=2)
def numbered(slots: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(the place of every row of a ring, -1 for each): [slots, columns, 1]."""
    places = np.arange(slots * columns).reshape(slots, columns, 1)
    return places, np.full_like(places, -1)


def blank(ring: np.ndarray, length: int, batch: int) -> Sequences:
    """Rows of zeros, as wide as a replay's."""
    obs = np.zeros((length, batch, ring["obs"].shape[-1]), np.float32)
    action = np.zeros((length, batch, ring["action"].shape[-1]), ring["action"].dtype)
    return Sequences(obs, action, *np.zeros((6, length, batch), np.float32))


def first_slots(replay: Replay, rng: np.random.Generator, batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Where sequences begin: never in the oldest slot once others were thrown away, for what came before it is gone."""
    oldest = replay.oldest + (replay.oldest > 0)
    span = max(1, replay.count - length + 1 - oldest)
    place = rng.integers(span * replay.columns, size=batch)
    return oldest + place // replay.columns, place % replay.columns


@njit(cache=True, nogil=True)
def move_to_end(terminated_SC, truncated_SC, late_B, back_B, oldest, count, slot_B, column_B):
    """Move a chosen sequence's start to shortly before the next end of an episode in its column."""
    S = terminated_SC.shape[0]
    for b in range(slot_B.size):
        if not late_B[b]:
            continue
        s, c = slot_B[b], column_B[b]
        while s < count and not (terminated_SC[s % S, c] or truncated_SC[s % S, c]):
            s += 1
        if s < count:
            slot_B[b] = max(s - back_B[b], oldest + (1 if oldest > 0 else 0))


@njit(cache=True, nogil=True)
def fill(
    obs_SC, action_SC, reward_SC, terminated_SC, truncated_SC, alive_SC, next_SC, oldest, count, slot_B, column_B,
    obs_T, action_T, reward_T, fresh_T, earned_T, terminal_T, last_T, valid_T,
):  # fmt: skip
    """Sequences.*, one sequence after another."""
    S, T = obs_SC.shape[0], obs_T.shape[0]
    for b in range(slot_B.size):
        s, c, k = slot_B[b], column_B[b], 0
        begins = s <= oldest or terminated_SC[(s - 1) % S, c] or truncated_SC[(s - 1) % S, c]
        if not begins:
            begins = not alive_SC[(s - 1) % S, c]
        while k < T and s < count:
            i = s % S
            if not alive_SC[i, c]:
                begins, s = True, s + 1
                continue
            obs_T[k, b], valid_T[k, b] = obs_SC[i, c], np.float32(1.0)
            fresh_T[k, b] = np.float32(1.0) if begins or k == 0 else np.float32(0.0)
            if not begins:
                before = (s - 1) % S
                reward_T[k, b], earned_T[k, b] = reward_SC[before, c], np.float32(1.0)
                if k > 0:
                    action_T[k, b] = action_SC[before, c]
            k += 1
            ends = terminated_SC[i, c] or truncated_SC[i, c]
            if ends and k < T:
                obs_T[k, b], action_T[k, b], reward_T[k, b] = next_SC[i, c], action_SC[i, c], reward_SC[i, c]
                earned_T[k, b], last_T[k, b], valid_T[k, b] = np.float32(1.0), np.float32(1.0), np.float32(1.0)
                terminal_T[k, b] = np.float32(1.0) if terminated_SC[i, c] else np.float32(0.0)
                k += 1
            begins, s = ends, s + 1
