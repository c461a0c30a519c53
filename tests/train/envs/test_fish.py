"""Does the pond do what its rules say: steer, bounce, catch, feel, pay, start, cut, and lead?"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from fish_oracle import Body, sight, step

from relab.config import layers
from relab.config.base import ConfigError
from relab.config.envs import Fish as Params
from relab.train.envs import fish as module
from relab.train.envs.base import Worlds
from relab.train.envs.check import check_env
from relab.train.envs.check_moving import threads
from relab.train.envs.fish import CAUGHT, CUT, Fish
from relab.train.envs.fish_moves import ACCELERATE, KEEP, SLOW_DOWN, TURN_LEFT, TURN_RIGHT
from relab.train.envs.fish_near import feel
from relab.train.kernels import jit

CHANNEL = {channel.name: k for k, channel in enumerate(module.CHANNELS)}
FAR = 9.0


def ponds(n: int = 1, seed: int = 0, **params) -> Worlds:
    worlds = Worlds(Fish(Params(**params)), n)
    worlds.reset(np.arange(n) + seed)
    return worlds


def put(worlds: Worlds, fish: list[tuple[float, float, float, float]], predator=(0.0, -FAR, 0.0, 0.0)) -> Worlds:
    """The first school's fish (x, y, vx, vy) and predator where the test wants them."""
    for k, name in enumerate(("x", "y", "vx", "vy")):
        getattr(worlds.state, name)[0] = [each[k] for each in fish]
    worlds.state.predator[0] = predator
    s = worlds.state
    feel(s.x[0], s.y[0], s.vx[0], s.vy[0], s.here[0], s.near[0])
    worlds.env.observe(s, worlds.obs)
    return worlds


def keep(worlds: Worlds):
    return worlds.step(np.full(worlds.action_shape, KEEP))


def velocity_after(action: int, vx: float, vy: float) -> list[float]:
    worlds = put(ponds(agents=1), [(0.0, 0.0, vx, vy)])
    worlds.step(np.array([[action]]))
    return [float(worlds.state.vx[0, 0]), float(worlds.state.vy[0, 0])]


# ---- one fish, by hand


def test_the_five_actions():
    assert velocity_after(ACCELERATE, 0.6, 0.8) == pytest.approx([0.66, 0.88])
    assert velocity_after(ACCELERATE, 0.0, 0.005) == pytest.approx([0.1, 0.005])  # nearly still: heading (1, 0)
    assert velocity_after(ACCELERATE, 0.0, 1.95) == pytest.approx([0.0, 2.0])
    assert velocity_after(TURN_LEFT, 1.0, 0.0) == pytest.approx([math.sqrt(3) / 2, 0.5])
    assert velocity_after(TURN_RIGHT, 1.0, 0.0) == pytest.approx([math.sqrt(3) / 2, -0.5])
    assert velocity_after(SLOW_DOWN, 1.0, -1.0) == pytest.approx([0.9, -0.9])
    assert velocity_after(KEEP, 1.0, -1.0) == [1.0, -1.0]


def test_the_wall_puts_a_fish_back_and_halves_its_outward_speed():
    worlds = put(ponds(agents=1), [(9.95, 0.0, 1.0, 0.5)])
    keep(worlds)
    x, y = worlds.state.x[0, 0], worlds.state.y[0, 0]
    assert math.hypot(x, y) == pytest.approx(10.0)
    n, v = np.array([x, y]) / 10, np.array([worlds.state.vx[0, 0], worlds.state.vy[0, 0]])
    before, along = np.array([1.0, 0.5]), np.array([-n[1], n[0]])
    assert v @ n == pytest.approx(-0.5 * (before @ n))
    assert v @ along == pytest.approx(before @ along)


def test_the_predator_falls_towards_positive_y_and_ends_up_swinging_along_the_wall_there():
    worlds = put(ponds(agents=1, horizon=0), [(-9.0, -3.0, 0.0, 0.0)], predator=(0.0, 0.0, 1.5, 0.0))
    keep(worlds)
    assert worlds.state.predator[0].tolist() == pytest.approx([0.15, 0.005, 1.5, 0.05])
    energies, spots = [], []
    for _ in range(3000):
        keep(worlds)
        x, y, vx, vy = worlds.state.predator[0].tolist()
        energies.append(0.5 * (vx * vx + vy * vy) - 0.5 * y)
        spots.append((math.hypot(x, y), y))
    assert energies[-1] < energies[0] - 1.0  # bounces cost energy
    assert np.min(spots[-500:], axis=0) == pytest.approx([10, 8], abs=2)  # the wall is smooth: the swing goes on
    assert np.min(spots[-500:], axis=0)[0] > 9.9


def test_what_a_step_pays():
    worlds = put(ponds(agents=3), [(0, 0, 0, 0), (0, 9.5, 0, 0), (0, -FAR + 2.0, 0, 0)])
    rewards = keep(worlds).reward[0]
    assert rewards[0] == pytest.approx(0.1 * (2 + 5))  # out of sight
    assert rewards[1] == pytest.approx(0.1 * (2 + 5 - 2 * 0.5))  # half a metre from the wall
    assert rewards[2] == pytest.approx(0.1 * (2 + 10 * 1.995 / (10 / 3)))  # seen at 1.995: it has fallen by 0.005


def test_a_caught_fish_pays_fifty_once_and_stays_dead():
    worlds = put(ponds(agents=2), [(0, -FAR + 0.6, 0, 0), (0, 0, 0, 0)])
    first = keep(worlds)
    assert first.reward[0, 0] == -50.0
    assert first.terminated.tolist() == [[True, False]]
    assert first.end[0, 0] == CAUGHT
    episode = first.episodes.info[:, 0]
    assert (episode[CHANNEL["survived"]], episode[CHANNEL["death_step"]], episode[CHANNEL["step_one"]]) == (0, 1, 1)
    assert episode[CHANNEL["reward_death"]] == -50.0
    x = worlds.state.x[0, 0]
    for _ in range(20):
        then = keep(worlds)
        assert (then.reward[0, 0], bool(then.terminated[0, 0]), bool(then.alive[0, 0])) == (0, False, False)
        assert not then.obs[0, 0].any()
    assert worlds.state.x[0, 0] == x


def test_the_dead_are_not_felt():
    worlds = put(ponds(agents=3), [(0, -FAR + 0.6, 0, 0), (1.0, -FAR + 0.9, 0, 0), (1.5, -FAR + 0.9, 0, 0)])
    assert worlds.obs[0, 1, 11] == pytest.approx(2 / 6)
    assert keep(worlds).obs[0, 1, 11] == pytest.approx(1 / 6)


def test_a_pair_feels_each_other():
    worlds = put(ponds(agents=2), [(0, 0, 1.0, 0), (1.2, 0, 0.4, 0)])
    assert worlds.obs[0, 0, 11:].tolist() == pytest.approx([1 / 6, 0.6, 0, 0.6, 0.2, 0, -0.3])
    assert worlds.obs[0, 1, 11:].tolist() == pytest.approx([1 / 6, -0.6, 0, 0.6, 0.5, 0, -0.3])


# ---- a school, against plain Python


@pytest.mark.parametrize("agents", [1, 25, 90])
def test_a_school_moves_and_earns_as_in_plain_python(agents):
    paid = {"density_coef": 1.5, "density_target": 0.3, "divergence_coef": 0.7}
    worlds = ponds(agents=agents, pre_roll=16, jitter=1.6, seed=7, **paid)
    s = worlds.state
    bodies = [Body(*(float(a[0, k]) for a in (s.x, s.y, s.vx, s.vy))) for k in range(agents)]
    predator, draw = Body(*(float(v) for v in s.predator[0])), np.random.default_rng(agents)
    for _ in range(120 if agents < 90 else 40):
        action = draw.integers(0, 5, agents)
        rewards = step(bodies, predator, action.tolist(), 1.5, 0.3, 0.7)
        found = worlds.step(action[None])
        if found.alive.all() and found.terminated.all():  # all dead: a new school
            break
        assert found.reward[0].tolist() == pytest.approx(rewards, abs=1e-9)
        assert found.alive[0].tolist() == [body.alive for body in bodies]
        for k, body in enumerate(bodies):
            if body.alive:
                assert found.obs[0, k].tolist() == pytest.approx(sight(body, bodies, predator), abs=1e-5)


def test_a_full_pond_feels_the_same_pair_by_pair():
    worlds = ponds(agents=256, seed=3)
    s = worlds.state
    bodies = [Body(*(float(a[0, k]) for a in (s.x, s.y, s.vx, s.vy))) for k in range(256)]
    predator = Body(*(float(v) for v in s.predator[0]))
    for k, body in enumerate(bodies):
        assert worlds.obs[0, k].tolist() == pytest.approx(sight(body, bodies, predator), abs=1e-5)


# ---- starts


def test_fish_start_at_a_uniform_radius_and_angle():
    s = ponds(400, agents=25).state
    radius, speed = np.hypot(s.x, s.y).ravel() / 8, np.hypot(s.vx, s.vy).ravel()
    for sample in (radius, speed, (np.arctan2(s.y, s.x).ravel() + np.pi) / (2 * np.pi)):
        gap = np.abs(np.sort(sample) - (np.arange(10_000) + 0.5) / 10_000).max()
        assert gap < 1.95 / 100  # Kolmogorov and Smirnov at 0.1 %


def test_the_boost_sends_them_outwards():
    s = ponds(50, escape_boost=0.75).state
    speed = np.hypot(s.vx, s.vy)
    cos = (s.vx * s.x + s.vy * s.y) / speed / np.hypot(s.x, s.y)
    assert speed == pytest.approx(1.5)
    assert cos.min() > math.cos(math.radians(15.001))
    assert cos.min() < math.cos(math.radians(14))


def test_spared_schools_lose_nobody_in_the_first_step_whatever_they_do():
    for action in range(5):
        worlds = ponds(300, spare=True, jitter=1.6)
        assert not worlds.step(np.full(worlds.action_shape, action)).terminated.any()
    assert keep(ponds(300, jitter=1.6)).terminated.any()


def test_where_and_how_the_predator_starts():
    s = ponds(2).state
    assert s.predator.tolist() == [[0, 0, 1.5, 0]] * 2
    assert s.start.tolist() == [[0, 1.5]] * 2
    s = ponds(500, jitter=1.6, headings=(90, 120, 1, 200, 210, 3), speeds=(0.4, 0.8, 1)).state
    heading, speed = s.start[:, 0] % 360, s.start[:, 1]
    assert np.hypot(s.predator[:, 0], s.predator[:, 1]).max() == pytest.approx(1.6, abs=0.03)
    assert ((heading > 90) & (heading < 120) | (heading > 200) & (heading < 210)).all()
    assert (heading > 150).mean() == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / 500))
    assert (speed.min() >= 0.4, speed.max() < 0.8) == (True, True)


def test_given_starts_are_drawn_evenly():
    s = ponds(600, starts=(1.0, 0.0, 0.0, -2.0, -0.5, 0.5)).state
    found, counts = np.unique(s.predator[:, 2:], axis=0, return_counts=True)
    assert found.tolist() == [[-0.5, 0.5], [0.0, -2.0], [1.0, 0.0]]
    assert counts.min() > 150  # 200 expected, standard deviation 11.5


def test_a_law_that_draws_more_shifts_nothing_else():
    plain, other = ponds(5).state, ponds(5, jitter=1.6, pre_roll=16, headings=(0, 90, 1), starts=(1, 1)).state
    more = ponds(5, agents=40).state
    assert np.array_equal(plain.x, other.x)
    assert np.array_equal(plain.vy, other.vy)
    assert np.array_equal(plain.x, more.x[:, :25])


# ---- stages


def test_a_stage_changes_later_starts_only():
    worlds, untouched = ponds(4, agents=25), ponds(4, agents=25)
    worlds.env.set_stage({"fish": 15, "starts": np.array([[0.0, -1.0]]), "time_limit": 224, "density_coef": 0.5})
    for _ in range(5):
        assert np.array_equal(keep(worlds).reward, keep(untouched).reward)
    worlds._reset_N[:] = np.arange(4) == 2
    worlds._begin_worlds()
    assert worlds.alive[2].sum() == 15
    assert worlds.state.used.sum(1).tolist() == [25, 25, 15, 25]
    assert worlds.state.predator[2].tolist() == [0, 0, 0, -1]
    assert worlds.state.rules[:, 0].tolist() == [0, 0, 224, 0]
    worlds.env.observe(worlds.state, worlds.obs)
    assert not worlds.obs[2, 15:].any()
    step = keep(worlds)
    assert not step.reward[2, 15:].any()


def test_stages_add_up_and_refuse_what_they_do_not_know():
    env = Fish()
    env.set_stage({"fish": 15})
    env.set_stage({"time_limit": 224})
    assert (env.law.fish, env.law.rules[0]) == (15, 224)
    env.set_stage({"time_limit": None})
    assert env.law.rules[0] == 0
    with pytest.raises(ConfigError, match="horizon"):
        env.set_stage({"horizon": 100})
    with pytest.raises(ConfigError, match="fish"):
        env.set_stage({"fish": 26})
    assert env.law.fish == 15
    assert env.stage_keys == module.STAGE_KEYS
    assert set(module.STAGE_KEYS) < {f.name for f in dataclasses.fields(Params)}


def test_a_forced_cut_is_not_survival_to_the_horizon():
    ends = {}
    for name, params in (
        ("cut", {"time_limit": 30}),
        ("whole", {"horizon": 30}),
        ("both", {"time_limit": 30, "horizon": 30}),
    ):
        worlds = put(ponds(agents=1, **params), [(0, 0, 0, 0)])
        for _ in range(29):
            assert keep(worlds).episodes is None
        episode = keep(worlds).episodes
        ends[name] = int(episode.end[0]), bool(episode.success[0]), episode.info[CHANNEL["survived"], 0]
        assert episode.info[CHANNEL["death_step"], 0] == 30
    assert ends == {"cut": (CUT, False, 1.0), "whole": (1, True, 1.0), "both": (1, True, 1.0)}


# ---- one action for all


def test_shared_control_moves_all_and_pays_the_mean_in_which_the_dead_count_nothing():
    spots = [(0, -FAR + 0.6, 0, 0), (0, 0, 0, 0), (5, 0, 0, 0), (-5, 0, 0, 0)]
    worlds = put(ponds(agents=4, control="shared"), spots)
    assert (worlds.spec.agents, worlds.obs.shape) == (1, (1, 1, 18))
    step = worlds.step(np.array([[ACCELERATE]]))
    assert worlds.state.vx[0].tolist() == pytest.approx([0.1] * 4)
    assert step.reward[0, 0] == pytest.approx((-50 + 3 * 0.7) / 4)
    assert worlds.step(np.array([[KEEP]])).reward[0, 0] == pytest.approx(3 * 0.7 / 4)


def test_the_leader_is_the_next_living_fish_in_turn():
    spots = [(0, 0, 0, 0), (0, -FAR + 0.6, 0, 0), (5, 0, 0, 0)]
    worlds = put(ponds(agents=3, control="shared"), spots)
    seen = [float(worlds.obs[0, 0, 0])]
    for _ in range(3):
        seen.append(float(keep(worlds).obs[0, 0, 0]))
    assert seen == pytest.approx([0.0, 0.5, 0.0, 0.5])  # number 1 has died


def test_a_shared_school_ends_when_all_are_dead():
    worlds = put(ponds(agents=2, control="shared"), [(0, -FAR + 0.6, 0, 0), (0, -FAR - 0.3, 0, 0)])
    step = keep(worlds)
    assert (bool(step.terminated[0, 0]), int(step.end[0, 0])) == (True, CAUGHT)
    assert step.episodes.info[CHANNEL["step_one"], 0] == 1.0


def test_shared_and_own_control_are_the_same_when_all_do_the_same():
    own, shared = ponds(3, agents=10, seed=5), ponds(3, agents=10, seed=5, control="shared")
    for t in range(60):
        a, b = own.step(np.full((3, 10), t % 5)), shared.step(np.full((3, 1), t % 5))
        assert b.reward[:, 0] == pytest.approx(a.reward.mean(1))


def test_a_shared_school_is_one_row_of_the_batch():
    words = {"env": "fish", "env.agents": 20, "envs": 8, "steps": 16, "minibatches": 4}
    rows = {}
    for control in ("own", "shared"):
        run = layers.resolve([layers.Layer("words", {**words, "env.control": control})]).config
        rows[control] = run.agents, run.batch
    assert rows == {"own": (20, 2560), "shared": (1, 128)}


# ---- the contract


VARIANTS = [
    {"control": "shared"},
    {"agents": 3, "fish": 2, "time_limit": 50, "pre_roll": 16, "jitter": 1.6, "spare": True, "speeds": (0, 1, 1)},
    {"agents": 3, "control": "shared", "fish": 2, "time_limit": 50, "starts": (1, 2, 3, 4)},
    {"agents": 1, "density_coef": 1.0, "divergence_coef": 0.5},
]


# `make test` has every third; all of them in `make test-all`
SOME = [pytest.param(v, marks=[pytest.mark.slow] * (i % 3 != 0), id=str(v)) for i, v in enumerate(VARIANTS)]


@pytest.mark.parametrize("params", SOME)
def test_every_variant_keeps_the_contract(params):
    check_env(Fish(Params(**params)), steps=150)


def test_threads_are_used_for_large_ponds_and_change_nothing():
    assert not jit.wide(128 * 25 * module.Fish.work)
    results = []
    for count in (1, jit.max_threads()):
        with threads(count):
            worlds = ponds(64, agents=48)
            draw = np.random.default_rng(0)
            results.append([worlds.step(draw.integers(0, 5, (64, 48))).reward.copy() for _ in range(30)])
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"agents": 300}, "256"),
        ({"fish": 30}, "25"),
        ({"starts": (1.0,)}, "groups of 2"),
        ({"headings": (0.0, 90.0, -1.0)}, "weights"),
        ({"escape_boost": 1.5}, "escape_boost"),
    ],
)
def test_impossible_parameters_are_refused(params, said):
    with pytest.raises(ConfigError, match=said):
        Params(**params).check()


def test_the_picture_shows_the_predator_and_the_dead():
    worlds = put(ponds(agents=2), [(0, -FAR + 0.6, 0, 0), (5, 5, 1, 0)])
    before = worlds.render()
    keep(worlds)
    after = worlds.render()
    assert (before.shape, before.dtype) == ((400, 400, 3), np.uint8)
    assert after[200 + int(9 * 400 / 21), 200].tolist() == [200, 70, 60]
    assert (after == (176, 180, 190)).all(2).any()
    assert not (before == (176, 180, 190)).all(2).any()


# ---- the first death of a school


@pytest.mark.parametrize("control", ["own", "shared"])
def test_a_schools_first_death_is_told_once(control: str) -> None:
    worlds = ponds(agents=3, control=control, horizon=6)
    put(worlds, [(5.0, 5.0, 0.0, 0.0), (0.0, -9.0, 0.0, 0.0), (0.1, -9.0, 0.0, 0.0)], predator=(0.0, -9.0, 0.0, 0.0))
    told: list[float] = []
    for _ in range(6):
        ended = keep(worlds).episodes
        told += [] if ended is None else ended.info[CHANNEL["first_death"]].tolist()
    assert [x for x in told if x > 0] == [1.0], "two died at once in the first step: one of them says so"


def test_a_quantile_of_a_channel_is_logged_over_those_that_have_it() -> None:
    from relab.train.algos.episode_metrics import channel_value

    channel = module.CHANNELS[CHANNEL["first_death"]]
    assert channel.metric == "first_death_p10"
    assert channel_value(channel, np.array([0.0, 10.0, 0.0, 20.0])) == pytest.approx(11.0)
    assert channel_value(channel, np.zeros(3)) is None
