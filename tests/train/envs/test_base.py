"""Does Worlds add clock, resets, final observations, masks and books as promised? Hand numbers on a scripted env."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import CUT, DIE, DIED, END_WORLD, GO, WAS_CUT, WORLD_ENDED, Params, Scripted

from relab.train.envs.base import Worlds
from relab.train.envs.cartpole import CartPole
from relab.train.envs.pendulum import Pendulum

TIME_LIMIT = 1


def make(n: int = 1, **params) -> Worlds:
    worlds = Worlds(Scripted(Params(**params)), n)
    worlds.reset(np.arange(n))
    return worlds


def play(worlds: Worlds, *actions):
    """Step one world through one tuple of actions (per agent) after the other; returns the last step."""
    for action in actions:
        step = worlds.step(np.array([action]))
    return step


def test_time_limit_truncates_and_resets():
    worlds = make()
    assert play(worlds, (GO, GO), (GO, GO)).episodes is None
    step = play(worlds, (GO, GO))
    assert step.truncated.all()
    assert not step.terminated.any()
    assert step.end.tolist() == [[TIME_LIMIT, TIME_LIMIT]]
    assert step.final_obs.ravel().tolist() == [3, 3]
    assert step.obs.ravel().tolist() == [0, 0]
    assert step.alive.all()
    assert worlds.book.tick.tolist() == [0]
    assert play(worlds, (GO, GO)).reward.tolist() == [[1, 1]]


def test_episodes_carry_sums_lengths_and_every_reducer():
    episodes = play(make(), (GO, GO), (GO, GO), (GO, GO)).episodes
    assert episodes.world.tolist() == [0, 0]
    assert episodes.agent.tolist() == [0, 1]
    assert episodes.ret.tolist() == [6, 6]
    assert episodes.length.tolist() == [3, 3]
    # the channel's values were -1, 2, -3
    assert episodes.info[:, 0].tolist() == [-2, -2 / 3, -3, 2, -3]


def test_books_start_again_with_each_episode():
    worlds = make(agents=1)
    play(worlds, (GO,), (GO,), (GO,))
    episodes = play(worlds, (GO,), (DIE,)).episodes
    assert (episodes.ret[0], episodes.length[0]) == (3, 2)
    assert episodes.info[:, 0].tolist() == [1, 0.5, 2, 2, -1]  # of -1, 2 alone


def test_termination_wins_over_the_time_limit():
    step = play(make(), (GO, GO), (GO, GO), (DIE, GO))
    assert step.terminated.tolist() == [[True, False]]
    assert step.truncated.tolist() == [[False, True]]
    assert step.end.tolist() == [[DIED, TIME_LIMIT]]


def test_an_env_may_truncate_for_its_own_reason():
    step = play(make(), (CUT, GO))
    assert step.truncated.tolist() == [[True, False]]
    assert step.end.tolist() == [[WAS_CUT, 0]]


def test_with_world_a_dead_agent_waits():
    worlds = make()
    step = play(worlds, (DIE, GO))
    assert step.alive.tolist() == [[False, True]]
    assert step.final_obs[0, 0, 0] == 1
    assert step.obs[0, 0, 0] == 1
    step = play(worlds, (DIE, GO))
    assert step.reward.tolist() == [[0, 2]]
    assert not step.terminated.any()
    assert step.episodes is None
    step = play(worlds, (GO, GO))
    assert step.truncated.tolist() == [[False, True]]  # the dead one is not truncated
    assert step.alive.all()
    assert worlds.state.starts.tolist() == [[2, 2]]


def test_with_world_resets_when_all_are_dead():
    worlds = make()
    step = play(worlds, (DIE, GO), (GO, DIE))
    assert step.terminated.tolist() == [[False, True]]
    assert step.alive.all()
    assert worlds.book.tick.tolist() == [0]
    assert step.obs.ravel().tolist() == [0, 0]
    assert step.final_obs[0, 1, 0] == 2


def test_alone_an_agent_restarts_at_once():
    worlds = make(agent_reset="alone", horizon=4)
    step = play(worlds, (GO, GO), (DIE, GO))
    assert step.alive.all()
    assert worlds.state.starts.tolist() == [[2, 1]]
    assert step.final_obs[0, 0, 0] == 2
    assert step.obs.ravel().tolist() == [0, 2]
    step = play(worlds, (GO, GO))
    assert step.reward.tolist() == [[1, 3]]
    step = play(worlds, (GO, GO))  # the clock is the world's: both end, after 2 and 4 steps of their own
    assert step.truncated.all()
    assert step.episodes.length.tolist() == [2, 4]
    assert worlds.state.starts.tolist() == [[3, 2]]


def test_alone_an_agent_that_dies_at_the_limit_restarts_once():
    worlds = make(agent_reset="alone", horizon=1)
    step = play(worlds, (DIE, GO))
    assert step.terminated.tolist() == [[True, False]]
    assert worlds.state.starts.tolist() == [[2, 2]]


@pytest.mark.parametrize("agent_reset", ["alone", "with_world"])
def test_world_over_ends_all(agent_reset):
    worlds = make(agent_reset=agent_reset)
    step = play(worlds, (GO, GO), (DIE, END_WORLD))
    assert step.terminated.tolist() == [[True, False]]
    assert step.truncated.tolist() == [[False, True]]
    assert step.end.tolist() == [[DIED, WORLD_ENDED]]
    assert worlds.book.tick.tolist() == [0]
    assert worlds.state.starts.tolist() == [[2, 2]]


def test_success_is_known_or_unknown():
    actions = (GO, GO), (GO, GO), (DIE, GO)
    assert play(make(), *actions).episodes.success.tolist() == [True, False]
    assert play(make(success=False), *actions).episodes.success is None


def test_unused_slots_are_never_alive():
    worlds = make(agents=3, unused=1)
    assert worlds.alive.tolist() == [[True, True, False]]
    step = play(worlds, (DIE, DIE, DIE))
    assert step.reward.tolist() == [[1, 1, 0]]
    assert step.episodes.agent.tolist() == [0, 1]
    assert worlds.alive.tolist() == [[True, True, False]]  # reset, since all who are used were done


def test_worlds_end_apart():
    worlds = make(n=3)
    step = worlds.step(np.array([(GO, GO), (DIE, DIE), (GO, GO)]))
    assert step.episodes.world.tolist() == [1, 1]
    assert worlds.book.tick.tolist() == [1, 0, 1]
    assert step.obs[..., 0].tolist() == [[1, 1], [0, 0], [1, 1]]


def test_time_limit_can_be_replaced():
    free = Worlds(Scripted(), 1, time_limit=None)
    free.reset(np.zeros(1))
    assert play(free, *[(GO, GO)] * 10).episodes is None
    short = Worlds(Scripted(), 1, time_limit=1)
    short.reset(np.zeros(1))
    assert play(short, (GO, GO)).truncated.all()


def test_simulator_steps_are_counted_per_world():
    worlds = make(n=3)
    worlds.step(np.zeros((3, 2), np.int64))
    worlds.reset(np.arange(3))
    worlds.step(np.zeros((3, 2), np.int64))
    assert worlds.sim_steps == 6


def test_reset_clears_what_was_under_way():
    worlds = make()
    play(worlds, (GO, DIE))
    worlds.reset(np.arange(1))
    assert worlds.alive.all()
    assert worlds.book.tick.tolist() == [0]
    assert play(worlds, (DIE, DIE)).episodes.ret.tolist() == [1, 1]


def test_a_world_depends_on_its_seed_alone():
    forth, back = Worlds(CartPole(), 4), Worlds(CartPole(), 4)
    a, b = forth.reset(np.arange(4)).copy(), back.reset(np.arange(4)[::-1]).copy()
    assert a.tobytes() == b[::-1].tobytes()
    assert len(np.unique(a)) == a.size


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(2, np.int64), r"shape \(1, 2\), but got \(2,\)"),
        (np.zeros((1, 2)), "integer actions, but got dtype float64"),
        (np.array([[0, 4]]), r"must be in 0\.\.3, but world 0, agent 1, component 0 got 4"),
        (np.array([[-1, 0]]), r"world 0, agent 0, component 0 got -1"),
    ],
)
def test_wrong_actions_are_refused(action, message):
    with pytest.raises(ValueError, match=message):
        make().step(action)


def test_float_actions_may_be_single_double_or_strided():
    steps = []
    for action in (np.full((2, 1, 1), 0.5), np.full((2, 1, 1), 0.5, np.float32), np.full((2, 1, 2), 0.5)[..., :1]):
        worlds = Worlds(Pendulum(), 2)
        worlds.reset(np.arange(2))
        steps.append(worlds.step(action).obs.tobytes())
    assert len(set(steps)) == 1


def test_seeds_need_one_per_world():
    with pytest.raises(ValueError, match=r"shape \(3,\), but got shape \(2,\)"):
        make(n=3).reset(np.arange(2))


def test_snapshot_is_a_copy_and_restores_into_any_slot():
    worlds = make(n=3)
    worlds.step(np.array([(GO, GO), (DIE, GO), (GO, GO)]))
    snap = worlds.snapshot()
    worlds.step(np.zeros((3, 2), np.int64))
    assert snap["state.count"].tolist() == [[1, 1], [1, 1], [1, 1]]
    assert all(len(value) == 3 for value in snap.values())
    worlds.restore(snap, rows=[2], from_rows=[1])
    assert worlds.book.tick.tolist() == [2, 2, 1]
    assert worlds.alive[2].tolist() == [False, True]
    assert worlds.obs[..., 0].tolist() == [[2, 2], [1, 2], [1, 1]]
    step = worlds.step(np.zeros((3, 2), np.int64))
    assert step.episodes.world.tolist() == [0, 0, 1]  # slot 2 has one step left


def test_restore_wants_as_many_rows_as_slots():
    worlds = make(n=3)
    with pytest.raises(ValueError, match=r"2 slots need 2 saved rows, but `state\.count` brings 3"):
        worlds.restore(worlds.snapshot(), rows=[0, 1])


def test_render_of_an_env_that_cannot():
    with pytest.raises(ValueError, match="scripted-v1 does not render"):
        make().render()


def test_no_worlds():
    with pytest.raises(ValueError, match="at least one world, but got n = 0"):
        Worlds(Scripted(), 0)
