"""Sequences of a replay across the ends of episodes, row by row."""

from __future__ import annotations

import numpy as np

from relab.train.algos.dreamer import sequences
from relab.train.algos.gathering import transition_fields
from relab.train.replay import Replay


def filled(ends: dict[int, str], slots: int = 12, capacity: int = 100) -> Replay:
    """One world; slot t sees t, does t % 2, earns t + 0.5, and sees 100 + t next where its episode ends."""
    replay = Replay(transition_fields(1, np.zeros((1, 1), np.int64)), capacity, 1)
    for t in range(slots):
        end = ends.get(t)
        replay.add(obs=np.full((1, 1), t), action=np.full((1, 1), t % 2), reward=np.full(1, t + 0.5),
                   terminated=np.array([end == "over"]), truncated=np.array([end == "cut"]), alive=np.ones(1, bool),
                   next_obs=np.full((1, 1), 100 + t if end else t + 1))  # fmt: skip
    return replay


def rows_from(replay: Replay, slot: int, length: int) -> sequences.Sequences:
    class From:
        def integers(self, *a, size=None):
            return np.array([slot - replay.oldest - (replay.oldest > 0)])

    return sequences.draw(replay, From(), 1, length)  # type: ignore[arg-type]


def test_an_end_gives_a_row_of_its_own_and_the_next_episode_begins_afresh():
    rows = rows_from(filled({3: "over"}), 2, 5)
    assert rows.obs[:, 0, 0].tolist() == [2, 3, 103, 4, 5]
    assert rows.reward[:, 0].tolist() == [1.5, 2.5, 3.5, 0, 4.5]
    assert rows.action[:, 0, 0].tolist() == [0, 0, 1, 0, 0]  # of the row before: slots 2, 3, none, 4
    assert rows.fresh[:, 0].tolist() == [1, 0, 0, 1, 0]
    assert rows.earned[:, 0].tolist() == [1, 1, 1, 0, 1]
    assert rows.terminal[:, 0].tolist() == [0, 0, 1, 0, 0]
    assert rows.last[:, 0].tolist() == [0, 0, 1, 0, 0]
    assert rows.valid[:, 0].tolist() == [1, 1, 1, 1, 1]


def test_a_cut_by_time_is_a_last_row_that_is_not_terminal():
    rows = rows_from(filled({3: "cut"}), 3, 3)
    assert rows.last[:, 0].tolist() == [0, 1, 0]
    assert rows.terminal[:, 0].tolist() == [0, 0, 0]
    assert rows.fresh[:, 0].tolist() == [1, 0, 1]


def test_what_cannot_be_filled_is_not_valid():
    rows = rows_from(filled({}, slots=4), 2, 5)
    assert rows.valid[:, 0].tolist() == [1, 1, 0, 0, 0]


def test_a_ring_that_went_round_gives_the_same_rows():
    rows = rows_from(filled({7: "over"}, slots=12, capacity=8), 6, 4)
    assert rows.obs[:, 0, 0].tolist() == [6, 7, 107, 8]
    assert rows.reward[:, 0].tolist() == [5.5, 6.5, 7.5, 0]


def test_a_share_of_sequences_can_be_made_to_hold_an_end():
    replay, rng = filled({20: "over", 45: "over"}, slots=60), np.random.default_rng(0)
    rows = sequences.draw(replay, rng, 200, 5, ends=1.0)
    assert rows.terminal.any(0).mean() > 0.7  # no end comes after the last fifth of the slots
    even = sequences.draw(replay, rng, 200, 5)
    assert even.terminal.any(0).mean() < 0.4


def test_a_share_of_sequences_can_begin_among_the_last_steps():
    replay, rng = filled({}, slots=400, capacity=300), np.random.default_rng(0)
    slots = sequences.starts(replay, rng, 400, 5, sequences.Mix(recent=0.5, steps=40)).slot
    assert slots.min() > replay.oldest
    assert slots.max() == 395  # the last in which five rows begin
    share = (slots > 355).mean()
    assert 0.5 < share < 0.66  # half of them, and 40 of 295 of the others
    few = sequences.starts(filled({}, slots=6), rng, 50, 5, sequences.Mix(recent=1.0, steps=1000)).slot
    assert sorted(set(few.tolist())) == [0, 1]
