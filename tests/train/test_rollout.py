"""Are batches booked right (who begins, who lives, what a cut left behind), and is an evaluation what it says it is?

Most cases run on a scripted env whose every life has a known length, so that all books can be written by hand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from relab.record.spec import Action, Channel, Spec
from relab.train import rollout
from relab.train.envs import ladder
from relab.train.envs.base import Worlds
from relab.train.envs.cartpole import CartPole
from relab.train.envs.herd import Herd
from relab.train.kernels.rng import mix
from relab.train.rollout import Acted, RandomPolicy, Trajectory

FOREVER = 10**6


class State(NamedTuple):
    age: np.ndarray  # float64[N,A]: steps lived
    life: np.ndarray  # int64[N,A]: which life this is, 0 is the first
    used: np.ndarray  # bool[N,A]
    rng: np.ndarray  # uint64[N]


class Script:
    """lives[world][agent] = lengths of its lives, one after another (the last one again and again).

    Observation (age, life); reward 10 * life + age after the step; it dies at the end of a life, successfully.
    """

    name = "script-v1"
    Params = object

    def __init__(self, lives, agent_reset="with_world", horizon=None, unused=()):
        self.lives, self.unused = lives, unused
        self.spec = Spec(
            env=self.name,
            obs_dim=2,
            action=Action("discrete", 1, n=(3,)),
            agents=len(lives[0]),
            horizon=horizon,
            agent_reset=agent_reset,
            channels=(Channel("age", "steps", "last"),),
            ends=("running", "time_limit", "died"),
            success_ends=("died",),
        )

    def allocate(self, n):
        rows = (n, self.spec.agents)
        used = np.ones(rows, bool)
        for slot in self.unused:
            used[slot] = False
        return State(np.zeros(rows), np.full(rows, -1), used, np.zeros(n, np.uint64))

    def reset(self, state, worlds_N):
        self.reset_agents(state, np.repeat(worlds_N[:, None], self.spec.agents, axis=1))

    def reset_agents(self, state, agents_NA):
        state.age[agents_NA] = 0
        state.life[agents_NA] += 1

    def step(self, state, alive_NA, action, out):
        for i, a in np.argwhere(alive_NA):
            state.age[i, a] += 1
            lengths = self.lives[i % len(self.lives)][a]
            out.reward[i, a] = 10 * state.life[i, a] + state.age[i, a]
            out.info[0, i, a] = state.age[i, a]
            if state.age[i, a] == lengths[min(state.life[i, a], len(lengths) - 1)]:
                out.terminated[i, a], out.end[i, a] = True, 2

    def observe(self, state, obs_NAD):
        obs_NAD[..., 0], obs_NAD[..., 1] = state.age, state.life


class Counter:
    """A recurrent policy whose memory counts the steps since it was cleared; its value is that number, too.

    It writes into the same arrays at every call, as it may.
    """

    memory_dim = 1

    def __init__(self):
        self.buffers: dict[int, Acted] = {}
        self.n_modes: list[int] = []

    def act(self, obs_BD, memory_BM, rng_B, n_mode=0):
        B = len(obs_BD)
        self.n_modes.append(n_mode)
        if B not in self.buffers:
            self.buffers[B] = Acted(np.zeros((B, 1), np.int64), np.zeros(B), np.zeros((B, 1), np.float32), np.zeros(B))
        acted = self.buffers[B]
        acted.value[:] = memory_BM[:, 0]
        acted.memory[:] = memory_BM + 1
        acted.action[:, 0] = obs_BD[:, 0] % 3
        acted.logp[:] = -obs_BD[:, 0]
        return acted

    def to_env(self, action):
        return action


class Steady:
    """A scripted policy for real envs: row by row, the same in any batch; "det" and "sampled" differ on request."""

    memory_dim = 0

    def __init__(self, action: Action, noisy: bool = False):
        self.action, self.random, self.noisy = action, RandomPolicy(action), noisy

    def act(self, obs_BD, memory_BM, rng_B, n_mode=0):
        if self.action.kind == "continuous":
            found = np.tanh(obs_BD[:, 2:4] * 5).astype(np.float32)  # herd: walk to the pasture
        else:
            found = (obs_BD[:, 2:3] + 0.5 * obs_BD[:, 3:4] > 0).astype(np.int64)  # cartpole: push where it falls
        if self.noisy:
            found[n_mode:] = self.random.act(obs_BD[n_mode:], memory_BM, rng_B[n_mode:]).action
        return Acted(found, np.zeros(len(found)), memory_BM)

    def to_env(self, action):
        return action


def begin(env, n: int, steps: int, policy) -> tuple[Worlds, Trajectory, rollout.Cursor]:
    worlds = Worlds(env, n)
    worlds.reset(np.arange(n, dtype=np.uint64))
    rows = n * env.spec.agents
    cursor = rollout.start(worlds, policy, np.arange(rows, dtype=np.uint64))
    row = policy.act(
        np.zeros((1, env.spec.obs_dim), np.float32), np.zeros((1, policy.memory_dim)), cursor.rng_B[:1].copy()
    )
    return worlds, Trajectory.allocate(steps, env.spec, n, row.action, policy.memory_dim), cursor


def gathered(env, n: int, steps: int) -> tuple[Worlds, Trajectory, rollout.Cursor, Counter]:
    policy = Counter()
    worlds, traj, cursor = begin(env, n, steps, policy)
    rollout.collect(worlds, policy, traj, cursor)
    return worlds, traj, cursor, policy


def bits(*rows: str) -> list[list[bool]]:
    """One text per row of the batch, time from left to right."""
    return [[c == "1" for c in row] for row in rows]


# ---- collect


def test_books_of_one_agent_per_world():
    """World 0 dies after 2 steps; world 1 is cut by the time limit of 4; both go on in a new life."""
    worlds, traj, cursor, policy = gathered(Script([[[2, FOREVER]], [[FOREVER]]], horizon=4), 2, 5)
    assert traj.fresh_TB.T.tolist() == bits("10100", "10001")
    assert traj.terminated_TB.T.tolist() == bits("01000", "00000")
    assert traj.truncated_TB.T.tolist() == bits("00000", "00010")
    assert traj.alive_TB.all()
    assert traj.obs_TBD[:, 0].tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 1]]
    assert traj.obs_TBD[:, 1].tolist() == [[0, 0], [1, 0], [2, 0], [3, 0], [0, 1]]
    assert traj.reward_TB.T.tolist() == [[1, 2, 11, 12, 13], [1, 2, 3, 4, 11]]
    assert traj.action_TBK[:, 1, 0].tolist() == [0, 1, 2, 0, 0]
    assert traj.logp_TB[:, 1].tolist() == [0, -1, -2, -3, 0]
    # memory counts the steps of the episode so far, before acting
    assert traj.memory_TBM[..., 0].T.tolist() == [[0, 1, 0, 1, 2], [0, 1, 2, 3, 0]]
    assert traj.value_TB.T.tolist() == [[0, 1, 0, 1, 2], [0, 1, 2, 3, 0]]
    # what the cut left behind: row 1 at t = 3, seen at age 4 of life 0, with the memory of four steps
    ((t, rows, obs, memory),) = traj.final
    assert (t, rows.tolist(), obs.tolist(), memory.tolist()) == (3, [1], [[4, 0]], [[4]])
    assert [(e.world.tolist(), e.ret.tolist(), e.length.tolist()) for e in traj.episodes] == [
        ([0], [3], [2]),
        ([1], [10], [4]),
    ]
    # the next batch goes on where this one ended: world 0 is cut after its fourth step, one step from now
    assert cursor.fresh_B.tolist() == [False, False]
    rollout.collect(worlds, policy, traj, cursor)
    assert traj.fresh_TB.T.tolist() == bits("01000", "00010")
    assert traj.truncated_TB.T.tolist() == bits("10001", "00100")
    assert not traj.terminated_TB.any()
    assert traj.memory_TBM[..., 0].T.tolist() == [[3, 0, 1, 2, 3], [1, 2, 3, 0, 1]]
    assert [(t, rows.tolist(), obs.tolist()) for t, rows, obs, _ in traj.final] == [
        (0, [0], [[4, 1]]),
        (2, [1], [[4, 1]]),
        (4, [0], [[4, 2]]),
    ]
    assert len(traj.episodes) == 3
    assert cursor.fresh_B.tolist() == [True, False]  # row 0's next step is the first of an episode


def test_books_of_agents_that_wait_for_their_world():
    """Lives of 1, 3 and 2 steps: the world begins anew after step 3, and all its agents with it."""
    _, traj, cursor, _ = gathered(Script([[[1], [3], [2]]]), 1, 7)
    assert traj.alive_TB.T.tolist() == bits("1001001", "1111111", "1101101")
    assert traj.fresh_TB.T.tolist() == bits("1001001", "1001001", "1001001")
    assert traj.terminated_TB.T.tolist() == bits("1001001", "0010010", "0100100")
    assert not traj.truncated_TB.any()
    assert traj.final == []
    assert traj.reward_TB.T.tolist() == [[1, 0, 0, 11, 0, 0, 21], [1, 2, 3, 11, 12, 13, 21], [1, 2, 0, 11, 12, 0, 21]]
    assert traj.memory_TBM[:, 1, 0].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert cursor.fresh_B.tolist() == [False, False, False]


def test_a_cut_of_the_world_leaves_nothing_of_the_dead_behind():
    """Agent 0 is dead when the clock stops its world: only agent 1 was cut, and only it needs a bootstrap."""
    _, traj, _, _ = gathered(Script([[[1], [FOREVER]]], horizon=3), 1, 4)
    assert traj.alive_TB.T.tolist() == bits("1001", "1111")
    assert traj.truncated_TB.T.tolist() == bits("0000", "0010")
    ((t, rows, obs, memory),) = traj.final
    assert (t, rows.tolist(), obs.tolist(), memory.tolist()) == (2, [1], [[3, 0]], [[3]])
    assert traj.fresh_TB.T.tolist() == bits("1001", "1001")


def test_books_of_agents_that_restart_alone():
    """Each goes on at once; the clock of the world (5 steps) cuts all three together, whatever their age."""
    _, traj, cursor, _ = gathered(Script([[[2], [3], [FOREVER]]], "alone", horizon=5), 1, 6)
    assert traj.alive_TB.all()
    assert traj.terminated_TB.T.tolist() == bits("010100", "001000", "000000")
    assert traj.truncated_TB.T.tolist() == bits("000010", "000010", "000010")
    assert traj.fresh_TB.T.tolist() == bits("101011", "100101", "100001")
    assert traj.memory_TBM[..., 0].T.tolist() == [[0, 1, 0, 1, 0, 0], [0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 0]]
    ((t, rows, obs, memory),) = traj.final
    assert (t, rows.tolist()) == (4, [0, 1, 2])
    assert obs.tolist() == [[1, 2], [2, 1], [5, 0]]
    assert memory.tolist() == [[1], [2], [5]]
    assert sum(len(e.ret) for e in traj.episodes) == 6
    assert not cursor.fresh_B.any()


def test_slots_that_are_not_used_are_never_alive():
    _, traj, _, _ = gathered(Script([[[2], [2]]], unused=[(0, 1)]), 1, 5)
    assert traj.alive_TB.T.tolist() == bits("11111", "00000")
    assert traj.terminated_TB.T.tolist() == bits("01010", "00000")


def test_what_a_batch_keeps_is_not_overwritten_by_the_next_step():
    """Worlds and policies use their arrays again; final observations and memories must be copies."""
    _, traj, _, _ = gathered(Script([[[FOREVER]], [[FOREVER]]], horizon=2), 2, 6)
    assert [obs.tolist() for _, _, obs, _ in traj.final] == [[[2, k], [2, k]] for k in range(3)]
    assert [memory.tolist() for _, _, _, memory in traj.final] == [[[2], [2]]] * 3


def test_cartpole_is_collected_as_it_is_stepped():
    env = CartPole()
    policy = RandomPolicy(env.spec.action)
    worlds, traj, cursor = begin(env, 8, 60, policy)
    rollout.collect(worlds, policy, traj, cursor)
    twin = Worlds(env, 8)
    obs = twin.reset(np.arange(8, dtype=np.uint64))
    for t in range(60):
        assert np.array_equal(traj.obs_TBD[t], obs.reshape(8, -1))
        step = twin.step(traj.action_TBK[t])
        obs = step.obs
        assert np.array_equal(traj.reward_TB[t], step.reward[:, 0])
        assert np.array_equal(traj.terminated_TB[t], step.terminated[:, 0])
    assert traj.terminated_TB.sum() >= 8
    starts = np.vstack([np.ones((1, 8), bool), traj.ended_TB[:-1]])
    assert np.array_equal(traj.fresh_TB, starts)


@pytest.mark.parametrize("agent_reset", ["alone", "with_world"])
def test_herd_is_booked_without_gaps(agent_reset):
    """Life after life of each sheep: begins fresh, ends flagged, is alive in between, and nothing else is alive."""
    env = Herd(Herd.Params(agent_reset=agent_reset, horizon=25, storm=0.01))
    policy = RandomPolicy(env.spec.action)
    worlds, traj, cursor = begin(env, 6, 200, policy)
    rollout.collect(worlds, policy, traj, cursor)
    returns = []
    for b in range(18):
        inside, total = False, 0.0
        for t in range(200):
            if traj.fresh_TB[t, b]:
                assert traj.alive_TB[t, b]
                assert not inside
                inside, total = True, 0.0
            assert traj.alive_TB[t, b] == inside
            assert traj.reward_TB[t, b] == 0 or inside
            total += traj.reward_TB[t, b]
            if traj.ended_TB[t, b]:
                inside = False
                returns.append(total)
    booked = np.concatenate([e.ret for e in traj.episodes])
    np.testing.assert_allclose(np.sort(returns), np.sort(booked), atol=1e-4)
    assert len(booked) > 100
    assert sum(len(rows) for _, rows, _, _ in traj.final) == traj.truncated_TB.sum() > 0
    assert traj.alive_TB.all() == (agent_reset == "alone")


def test_a_row_does_not_depend_on_how_many_there_are():
    env = Herd()
    few, many = [], []
    for n, found in ((2, few), (5, many)):
        policy = RandomPolicy(env.spec.action)
        worlds, traj, cursor = begin(env, n, 50, policy)
        rollout.collect(worlds, policy, traj, cursor)
        found += [traj.obs_TBD[:, :6], traj.action_TBK[:, :6], traj.reward_TB[:, :6], traj.alive_TB[:, :6]]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(few, many))


# ---- evaluate


def seeds(n: int) -> np.ndarray:
    return mix(np.arange(n))


def test_first_episodes_by_hand():
    """Three worlds with first lives of 3, 1 and 2 steps; world 1 lives on for long, and none of that counts."""
    env = Script([[[3]], [[1, 50]], [[2, 1]]])
    found = rollout.evaluate(env, Counter(), seeds(3), modes=("det",))
    rows = found.episodes["det"]
    assert [row["return"] for row in rows] == [1 + 2 + 3, 1, 1 + 2]
    assert [row["length"] for row in rows] == [3, 1, 2]
    assert [row["seed"] for row in rows] == seeds(3).tolist()
    assert rows[0] == {
        "seed": int(seeds(3)[0]), "return": 6.0, "length": 3, "success": True, "end": "died", "info": {"age": 3.0},
    }  # fmt: skip
    assert found.sim_steps == 3 * 3  # all worlds step until the last first episode is over
    assert found.returns("det").tolist() == [6, 1, 3]


def test_several_agents_each_have_a_first_episode():
    for agent_reset in ("alone", "with_world"):
        env = Script([[[2], [1], [4]], [[1], [3], [3]]], agent_reset)
        rows = rollout.evaluate(env, Counter(), seeds(2), modes=("det",)).episodes["det"]
        assert [(row["agent"], row["length"]) for row in rows] == [(0, 2), (1, 1), (2, 4), (0, 1), (1, 3), (2, 3)]
        assert [row["return"] for row in rows] == [3, 1, 10, 1, 6, 6]
        assert [row["seed"] for row in rows] == np.repeat(seeds(2), 3).tolist()


def test_the_time_limit_is_named():
    env = Script([[[9]], [[2]]], horizon=4)
    rows = rollout.evaluate(env, Counter(), seeds(2), modes=("det",)).episodes["det"]
    assert [(row["end"], row["length"], row["success"]) for row in rows] == [
        ("time_limit", 4, False),
        ("died", 2, True),
    ]


def test_success_is_unknown_where_the_env_does_not_say():
    row = rollout.evaluate(CartPole(), Steady(CartPole().spec.action), seeds(1)).episodes["det"][0]
    assert row["success"] is None
    assert "agent" not in row
    assert "info" not in row


def test_memory_is_cleared_at_every_start(monkeypatch):
    """Agent 0 restarts alone after 2 steps: its memory begins at 0 again while agent 1 still counts."""
    seen = []
    policy = Counter()
    act = policy.act
    monkeypatch.setattr(
        policy, "act", lambda obs, memory, *rest: (seen.append(memory[:, 0].tolist()), act(obs, memory, *rest))[1]
    )
    rollout.evaluate(Script([[[2], [5]]], "alone"), policy, seeds(1), modes=("det",))
    assert seen == [[0, 0], [1, 1], [0, 2], [1, 3], [0, 4]]


def test_both_modes_run_from_the_same_seeds():
    """A policy without noise earns the same in both, to the bit; the first rows are those that take the mode."""
    env, policy = CartPole(), Steady(CartPole().spec.action)
    found = rollout.evaluate(env, policy, seeds(5))
    assert list(found.episodes) == ["det", "sampled"]
    assert found.episodes["det"] == found.episodes["sampled"]
    counter = Counter()
    rollout.evaluate(Script([[[2], [2]]]), counter, seeds(3))
    assert set(counter.n_modes) == {6}


@pytest.mark.parametrize(("modes", "n_mode"), [(("det",), 4), (("sampled",), 0), (("sampled", "det"), 4)])
def test_modes_in_any_order(modes, n_mode):
    """`det` takes the mode wherever it stands in the list."""
    counter = Counter()
    found = rollout.evaluate(Script([[[2]]]), counter, seeds(4), modes=modes)
    assert set(counter.n_modes) == {n_mode}
    assert set(found.episodes) == set(modes)
    env, policy = CartPole(), Steady(CartPole().spec.action, noisy=True)
    both, some = rollout.evaluate(env, policy, seeds(4)), rollout.evaluate(env, policy, seeds(4), modes=modes)
    assert all(some.episodes[mode] == both.episodes[mode] for mode in modes)
    assert both.episodes["det"] != both.episodes["sampled"]


def test_an_unknown_mode_is_an_error():
    with pytest.raises(ValueError, match=r"det.*sampled.*deterministic"):
        rollout.evaluate(CartPole(), Counter(), seeds(2), modes=("deterministic",))


@pytest.mark.parametrize(
    "env", [CartPole(), Herd(), Herd(Herd.Params(agent_reset="alone"))], ids=["cart", "herd", "alone"]
)
def test_an_episode_does_not_depend_on_how_many_are_asked_for(env):
    """More seeds add episodes and change none of the first ones: nothing is selected by length."""
    policy = Steady(env.spec.action, noisy=True)
    all_ = rollout.evaluate(env, policy, seeds(12)).episodes
    for k in (1, 5):
        some = rollout.evaluate(env, policy, seeds(12)[:k]).episodes
        for mode in ("det", "sampled"):
            assert some[mode] == all_[mode][: k * env.spec.agents]
    assert len(all_["det"]) == 12 * env.spec.agents
    assert len({row["return"] for row in all_["sampled"]}) > 1


def test_worlds_may_be_used_again():
    env = Herd()
    policy, worlds = Steady(env.spec.action, noisy=True), Worlds(env, 8)
    first = rollout.evaluate(env, policy, seeds(4), worlds=worlds)
    other = rollout.evaluate(env, policy, seeds(8)[4:], worlds=worlds)
    again = rollout.evaluate(env, policy, seeds(4), worlds=worlds)
    assert first == again
    assert first.episodes != other.episodes
    assert worlds.sim_steps == 2 * first.sim_steps + other.sim_steps


def test_an_env_without_a_time_limit_is_capped_and_says_so():
    env = Script([[[5], [FOREVER]]], "alone")
    rows = rollout.evaluate(env, Counter(), seeds(1), modes=("det",), cap=30).episodes["det"]
    assert (rows[0]["end"], rows[0]["length"], rows[0]["return"]) == ("died", 5, 15)
    assert (rows[1]["end"], rows[1]["length"], rows[1]["success"]) == ("cap", 30, False)
    assert math.isnan(rows[1]["return"])
    assert np.isnan(rollout.PlayedEpisodes({"det": rows}, 0).world_means("det")).all()  # not the mean of the others


def test_slots_that_are_not_used_have_no_episode():
    """They must not count as an episode of return 0."""
    env = Script([[[2], [3]]], unused=[(0, 1), (2, 1)])  # worlds 0 and 1 are det, 2 and 3 sampled
    rows = rollout.evaluate(env, Counter(), seeds(2)).episodes["det"]
    assert [(row["agent"], row["end"], row["length"]) for row in rows] == [
        (0, "died", 2),
        (1, "unused", 0),
        (0, "died", 2),
        (1, "died", 3),
    ]
    assert math.isnan(rows[1]["return"])
    assert rows[1]["success"] is None
    found = rollout.PlayedEpisodes({"det": rows}, 0)
    assert found.world_means("det").tolist() == [3, 4.5]  # 1 + 2; (1 + 2) and (1 + 2 + 3)
    assert [row["agent"] for row in found.played("det")] == [0, 0, 1]


def test_frames_see_every_step_and_who_still_waits():
    seen = []
    env = Script([[[1]], [[3]]])
    rollout.evaluate(
        env, Counter(), seeds(2), modes=("det",), frames=lambda worlds, waiting: seen.append(waiting[:, 0].tolist())
    )
    assert seen == [[True, True], [False, True], [False, True]]


# ---- The random policy


def drawn(action: Action, n: int = 20_000) -> np.ndarray:
    obs, memory = np.zeros((n, 1), np.float32), np.zeros((n, 0), np.float32)
    return RandomPolicy(action).act(obs, memory, mix(np.arange(n))).action


def test_random_choices_are_uniform():
    found = drawn(Action("multi_discrete", 2, n=(2, 5)))
    assert found.dtype == np.int64
    for k, n in enumerate((2, 5)):
        share = np.bincount(found[:, k], minlength=n) / len(found)
        assert len(share) == n
        assert (np.abs(share - 1 / n) < 4 * math.sqrt((1 - 1 / n) / n / len(found))).all()


def test_random_actions_fill_the_box_and_stay_inside():
    """Boxes may be wide, far from 0, or open on a side, where 10 (or 10 past the other end) stands for the end."""
    inf = math.inf
    low, high = (-1.0, 50.0, -200.0, -inf, 0.0, 30.0, -inf), (3.0, 60.0, 200.0, inf, inf, inf, -30.0)
    found = drawn(Action("continuous", 7, low=low, high=high))
    assert found.dtype == np.float32
    expected = [(-1, 3), (50, 60), (-200, 200), (-10, 10), (0, 10), (30, 40), (-40, -30)]
    for k, (a, b) in enumerate(expected):
        assert a <= found[:, k].min() < a + 0.01 * (b - a)
        assert b - 0.01 * (b - a) < found[:, k].max() <= b
        assert abs(found[:, k].mean() - (a + b) / 2) < 4 * (b - a) / math.sqrt(12 * len(found))


# ---- From saved worlds again


def saved(env, n, steps=0, seed=5):
    """Worlds in the middle of something, and what they are."""
    worlds = Worlds(env, n)
    worlds.reset(np.arange(n, dtype=np.uint64) + np.uint64(seed))
    policy, stream = RandomPolicy(env.spec.action), mix(np.arange(n * env.spec.agents))
    for _ in range(steps):
        acted = policy.act(worlds.obs.reshape(n * env.spec.agents, -1), np.zeros((n, 0)), stream)
        worlds.step(acted.action.reshape(worlds.action_shape))
    return worlds


def again_from(worlds, k, policy=None, **given):
    policy = policy or RandomPolicy(worlds.spec.action)
    return rollout.rerun(worlds.env, policy, worlds.snapshot(), k, np.random.default_rng(0), **given)


def test_rerun_earns_the_known_value_of_the_ladder():
    worlds = saved(ladder.Discount(), 4)
    worlds.state.seen[2:] = 1.0  # half of them one step before the end
    again = again_from(worlds, 3, gamma=0.9)
    assert again.return_BK == pytest.approx(np.repeat([[0.9], [0.9], [1.0], [1.0]], 3, 1))
    assert not again.capped_BK.any()
    assert again.sim_steps == 4 * 3 * 2


def test_rerun_samples_actions_apart_for_each_continuation():
    worlds = saved(ladder.Policy(), 50)
    again = again_from(worlds, 200)
    assert set(np.unique(again.return_BK)) == {-1.0, 1.0}
    assert abs(again.return_BK.mean()) < 4 / 100, "10,000 fair coins"
    assert again.return_BK.mean(0).std() > 0 < again.return_BK.mean(1).std()


def test_rerun_changes_nothing_of_the_worlds_it_was_taken_from():
    worlds = saved(CartPole(), 6, steps=7)
    before, obs = worlds.snapshot(), worlds.obs.copy()
    snap = worlds.snapshot()
    a, b = (rollout.rerun(worlds.env, RandomPolicy(worlds.spec.action), snap, 4, np.random.default_rng(3))
            for _ in range(2))  # fmt: skip
    assert np.array_equal(a.return_BK, b.return_BK)
    assert (a.return_BK > 0).all()
    for key, value in worlds.snapshot().items():
        assert np.array_equal(value, before[key]), key
        assert np.array_equal(value, snap[key]), "nor of the snapshot"
    assert np.array_equal(worlds.obs, obs)
    assert worlds.sim_steps == 6 * 7


def test_rerun_says_what_the_cap_cut_off_and_counts_the_discount():
    worlds = saved(Script([[[FOREVER]]]), 1, steps=2)
    again = again_from(worlds, 2, gamma=0.5, cap=3)
    assert again.return_BK.tolist() == [[3 + 0.5 * 4 + 0.25 * 5] * 2]
    assert again.capped_BK.all()


def test_rerun_of_several_agents_gives_a_row_each_and_none_for_the_dead():
    worlds = saved(Script([[[2], [4]]]), 2, steps=3)  # agent 0 is dead by now
    again = again_from(worlds, 2)
    assert np.isnan(again.return_BK[[0, 2]]).all()
    assert again.return_BK[[1, 3]].tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert again.return_BK.shape == again.capped_BK.shape == (4, 2)


def test_rerun_gives_a_recurrent_policy_its_memory_back():
    class Recalls(RandomPolicy):
        memory_dim = 1

        def act(self, obs_BD, memory_BM, rng_B, n_mode=0):
            return Acted(memory_BM.astype(np.int64), np.zeros(len(obs_BD)), memory_BM)

    worlds = saved(ladder.Policy(), 3)
    memory = np.array([[0.0], [1.0], [0.0]], np.float32)
    again = again_from(worlds, 2, Recalls(worlds.spec.action), memory_BM=memory)
    assert again.return_BK.tolist() == [[-1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]]
