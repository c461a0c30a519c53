"""Do the drones' tasks do what their rules say: phases, tolerances, rings, rewards, ends, sight, counts, starts?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.config import layers
from relab.config.base import ConfigError
from relab.config.envs import Drones as Params
from relab.train import captions, rollout
from relab.train.envs import drones as module
from relab.train.envs import drones_reward as reward
from relab.train.envs.base import Worlds
from relab.train.envs.check import check_env
from relab.train.envs.check_moving import threads
from relab.train.envs.drones import COLLISION, FINISHED, GROUNDED, OUT, Drones
from relab.train.envs.drones_physics import ARM, BODY, GRAVITY, LIMIT, MASS, QW, ROTOR, THRUST, VX, VY, VZ, WX, X, Y, Z
from relab.train.envs.drones_tasks import (  # fmt: skip
    APPROACH,
    BOX,
    CARRY,
    DESCEND,
    DROP,
    HOVER,
    LAY,
    LED,
    PERFECT,
    PERFECT_GRIP,
    PERFORMANCE,
    RACE,
    SINK,
)

CHANNEL = {channel.name: k for k, channel in enumerate(module.CHANNELS)}
UP = np.array([0.0, 0.0, 1.0])
STRICT_TICK = 500  # the tolerance is 1 by then


def swarm(n: int = 1, seed: int = 0, agents: int = 1, **params) -> Worlds:
    worlds = Worlds(Drones(Params(agents=agents, **params)), n)
    worlds.reset(np.arange(n) + seed)
    return worlds


def place(worlds: Worlds, a: int = 0, tick: int = STRICT_TICK, **numbers: float) -> None:
    """Drone a of world 0 level, rotors at hover, with these numbers of its body (X=1.0, VZ=-0.02)."""
    body, build = worlds.state.body[0, a], worlds.state.build[0, a]
    body[:] = 0.0
    body[QW] = 1.0
    body[ROTOR:] = math.sqrt(build[MASS] * build[GRAVITY] / 4 / build[THRUST])
    for name, value in numbers.items():
        body[{"X": X, "Y": Y, "Z": Z, "VX": VX, "VY": VY, "VZ": VZ, "WX": WX}[name]] = value
    worlds.state.tick[0] = tick


def hold(worlds: Worlds):
    """Everybody keeps its rotors as they are."""
    s = worlds.state
    return worlds.step(2 * s.body[..., ROTOR:] / s.build[..., LIMIT, None] - 1)


def said(worlds: Worlds, name: str, a: int = 0) -> float:
    return float(worlds._out.info[CHANNEL[name], 0, a])


def revalue(worlds: Worlds, a: int = 0) -> None:
    """The total counts from here."""
    s = worlds.state
    module.meet(s.body, s.near, 0)
    module.value(s.body, s.goal, s.phase, s.near, s.last, s.task[0], s.tick[0], 0, a)


# ---- the contract


@pytest.mark.parametrize(
    "params", [{}, {"task": "hover_race", "agents": 3, "collision": "ends"}, {"agents": 1, "task": "race"}]
)
def test_it_keeps_the_contract(params):
    check_env(Drones(Params(**params)), worlds=3, steps=120)


def flown(horizon: int) -> list[np.ndarray]:
    """All that 40 worlds of 8 say in 80 steps, with crashes, time limits and new worlds among them."""
    worlds, said, ended = Worlds(Drones(Params(horizon=horizon)), 40), [], 0
    worlds.reset(np.arange(40))
    for action in np.random.default_rng(0).uniform(-0.5, 0.1, (80, 40, 8, 4)).astype(np.float32):
        step = worlds.step(action)
        over_NA = step.terminated | step.truncated
        said += [step.obs.copy(), step.final_obs[over_NA], step.reward.copy(), step.alive.copy(), step.end.copy()]
        if step.episodes is not None:
            ended += len(step.episodes.ret)
            said += [np.asarray(column) for column in step.episodes]
    assert ended > 320
    return [*said, *worlds.snapshot().values()]


def test_two_threads_give_the_same_bytes():
    with threads(2):
        wide = flown(horizon=30)
    for one, other in zip(wide, flown(horizon=30), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("key", "value"), [
    ("agents", "0"), ("size", "[0.4,0.1]"), ("task", "fight"), ("spread", "0.9"), ("rings", "0"),
])  # fmt: skip
def test_settings_that_cannot_be(key, value):
    with pytest.raises(ConfigError, match=key):
        layers.resolve([layers.Layer("words", {"algo": "ppo", "env": "drones", f"env.{key}": value})])


# ---- schedules


def test_tolerance_and_reach_shrink_within_an_episode():
    assert [reward.tolerance(t) for t in (0, 1, 100, 147, 148, 1000)] == pytest.approx([15, 14.905, 5.5, 1.035, 1, 1])
    assert [reward.reach(t) for t in (0, 100, 150, 151, 1000)] == pytest.approx([77, 27, 2, 1.6, 1.6])


# ---- the phases of pick-and-place


def test_a_drone_that_hovers_over_its_box_descends():
    worlds = swarm()
    box = worlds.state.goal[0, 0, BOX : BOX + 3].copy()
    assert box[2] == -9.5
    np.testing.assert_allclose(worlds.state.goal[0, 0, LED : LED + 3], box + UP)
    place(worlds, X=box[0] + 0.3, Y=box[1], Z=box[2] + 1.2, VX=0.45)
    hold(worlds)
    assert worlds.state.phase[0, 0] == APPROACH  # near enough, too fast
    place(worlds, X=box[0] + 0.41, Y=box[1], Z=box[2] + 1.0)
    hold(worlds)
    assert worlds.state.phase[0, 0] == APPROACH  # still, too far
    place(worlds, X=box[0] + 0.3, Y=box[1], Z=box[2] + 1.2)
    hold(worlds)
    assert worlds.state.phase[0, 0] == DESCEND
    for _ in range(10):
        place(worlds, X=box[0], Y=box[1], Z=box[2] + 1.0)
        hold(worlds)
    assert worlds.state.goal[0, 0, LED + 2] == pytest.approx(-8.5 - 10 * 0.05 * 0.1)  # 0.1 m/s


def test_the_sinking_target_stops_at_the_box():
    worlds = swarm()
    worlds.state.phase[0, 0], worlds.state.goal[0, 0, SINK], worlds.state.goal[0, 0, LED + 2] = DESCEND, -0.1, -9.497
    place(worlds, X=0.0, Z=0.0)
    hold(worlds)
    assert worlds.state.goal[0, 0, LED + 2] == -9.5
    assert worlds.state.goal[0, 0, SINK] == 0.0


GRIP = {"above": 0.05, "aside": 0.0, "VX": 0.0, "VZ": -0.02}


def descending(tick: int = STRICT_TICK, above=0.05, aside=0.0, **velocity: float) -> Worlds:
    worlds = swarm()
    worlds.state.phase[0, 0] = DESCEND
    box = worlds.state.goal[0, 0, BOX : BOX + 3]
    place(worlds, tick=tick, X=box[0] + aside, Y=box[1], Z=box[2] + above, **velocity)
    return worlds


@pytest.mark.parametrize(("change", "grips"), [
    ({}, True), ({"above": 0.2}, False), ({"above": -0.01}, False), ({"aside": 0.11}, False), ({"VX": 0.12}, False),
    ({"VZ": -0.06}, False), ({"VZ": 0.02}, False),
    ({"aside": 1.0, "above": 1.0, "VZ": -0.4, "VX": 0.7, "tick": 0}, True),  # fifteen times as loose at the start
    ({"aside": 1.6, "above": 1.0, "VZ": -0.4, "tick": 0}, False),
])  # fmt: skip
def test_when_a_drone_grips(change, grips):
    worlds = descending(**(GRIP | change))
    hold(worlds)
    assert bool(said(worlds, "grips")) is grips
    assert (worlds.state.phase[0, 0] == CARRY) == grips
    assert worlds.state.tally[0, 0, PERFECT_GRIP] == (grips and "tick" not in change)


def test_a_grip_pays_and_leads_to_the_drop():
    worlds = descending(**GRIP)
    revalue(worlds)
    before = worlds.state.last[0, 0, 2]
    step = hold(worlds)
    assert step.reward[0, 0] == pytest.approx(1.0 + worlds.state.last[0, 0, 2] - before)
    goal = worlds.state.goal[0, 0]
    np.testing.assert_allclose(goal[LED : LED + 3], goal[LAY : LAY + 3] + UP)
    hold(worlds)
    np.testing.assert_allclose(goal[BOX : BOX + 3], worlds.state.body[0, 0, :3] - [0, 0, 0.5])  # it hangs below
    assert said(worlds, "carrying") == 1.0


@pytest.mark.parametrize(("aside", "above", "tick", "arrives"), [
    (0.3, 1.0, STRICT_TICK, True), (0.45, 1.0, STRICT_TICK, False), (0.0, 0.6, STRICT_TICK, False),
    (0.0, 1.35, STRICT_TICK, False), (5.0, 1.0, 0, True),
])  # fmt: skip
def test_when_a_drone_is_over_its_drop(aside, above, tick, arrives):
    worlds = swarm()
    worlds.state.phase[0, 0] = CARRY
    drop = worlds.state.goal[0, 0, LAY : LAY + 3].copy()
    place(worlds, tick=tick, X=drop[0] + aside * (1 if drop[0] < 0 else -1), Y=drop[1], Z=drop[2] + above)
    revalue(worlds)
    before = worlds.state.last[0, 0, 2:].sum()
    step = hold(worlds)
    assert (worlds.state.phase[0, 0] == DROP) == arrives
    assert step.reward[0, 0] - worlds.state.last[0, 0, 2:].sum() + before == pytest.approx(0.25 if arrives else 0.0)


def dropping(aside=0.1, above=0.1, tick=STRICT_TICK, perfect_grip=1.0) -> Worlds:
    worlds = swarm()
    worlds.state.phase[0, 0], worlds.state.tally[0, 0, PERFECT_GRIP] = DROP, perfect_grip
    drop = worlds.state.goal[0, 0, LAY : LAY + 3].copy()
    place(worlds, tick=tick, X=drop[0] + aside * (1 if drop[0] < 0 else -1), Y=drop[1], Z=drop[2] + above)
    return worlds


def test_a_delivery_pays_and_brings_a_new_box():
    worlds = dropping()
    old = worlds.state.goal[0, 0].copy()
    hold(worlds)
    assert said(worlds, "deliveries") == said(worlds, "perfect_deliveries") == 1.0
    assert worlds.state.phase[0, 0] == APPROACH
    new = worlds.state.goal[0, 0]
    assert abs(new[BOX] - old[BOX]) > 1e-6
    np.testing.assert_allclose(new[LED : LED + 3], new[BOX : BOX + 3] + UP)


@pytest.mark.parametrize(("change", "delivered", "perfect"), [
    ({}, 1, 1), ({"aside": 0.25}, 0, 0), ({"above": 0.25}, 0, 0), ({"perfect_grip": 0.0}, 1, 0),
    ({"aside": 1.0, "above": 0.6, "tick": 50}, 1, 0),  # loose
])  # fmt: skip
def test_what_is_a_perfect_delivery(change, delivered, perfect):
    worlds = dropping(**change)
    hold(worlds)
    assert (said(worlds, "deliveries"), said(worlds, "perfect_deliveries")) == (delivered, perfect)
    assert worlds.state.tally[0, 0, PERFECT] == perfect


def test_the_originals_count_goes_on_after_the_first_perfect_delivery():
    """Steps with the flag set, once for every drone of the world: what the original log calls success_rate."""
    worlds = swarm(agents=4, horizon=20)
    worlds.state.phase[0, 0], worlds.state.tally[0, 0, PERFECT_GRIP] = DROP, 1.0
    drop = worlds.state.goal[0, 0, LAY : LAY + 3].copy()
    for a in range(1, 4):
        place(worlds, a, X=-20.0 + 10 * a, Y=25.0, Z=5.0)
    place(worlds, 0, X=drop[0], Y=drop[1], Z=drop[2] + 2.0)
    for t in range(20):
        if t == 15:
            place(worlds, 0, X=drop[0], Y=drop[1], Z=drop[2] + 0.1)
        if t == 16:
            place(worlds, 0, X=0.0, Y=0.0, Z=5.0)
        step = hold(worlds)
    first = step.episodes.info[:, 0]
    assert first[CHANNEL["compat_success_rate"]] == 4 * 5  # ticks 15 to 19, four drones
    assert first[CHANNEL["compat_perfect_deliv"]] == pytest.approx(5 / 20)
    assert first[CHANNEL["perfect_deliveries"]] == 1.0
    assert step.episodes.success.tolist() == [True, False, False, False]
    assert step.episodes.end.tolist() == [1, 1, 1, 1]  # the time limit: truncation
    assert step.truncated.all()


# ---- ends


@pytest.mark.parametrize(("where", "end"), [
    ({"X": 29.99, "VX": 2.0}, OUT), ({"Y": -29.99, "VY": -2.0}, OUT), ({"Z": 9.99, "VZ": 2.0}, OUT),
    ({"Z": -9.79, "VZ": -2.0}, GROUNDED), ({"Z": -9.7}, 0), ({"X": 29.9}, 0),
])  # fmt: skip
def test_how_a_flight_ends(where, end):
    worlds = swarm(agents=2)
    place(worlds, 1, X=0.0)
    place(worlds, **where)
    revalue(worlds)
    before = worlds.state.last[0, 0, 2:].sum()
    step = hold(worlds)
    assert step.end[0].tolist() == [end, 0]
    assert step.terminated[0].tolist() == [end > 0, False]
    if end:
        assert step.episodes.info[CHANNEL["oob"], 0] == 1.0
        assert -23.0 <= step.reward[0, 0] < -19.0
        assert worlds.alive.all()  # it restarts alone
        assert worlds.state.tick[0] == STRICT_TICK + 1
    else:
        assert step.reward[0, 0] == pytest.approx(worlds.state.last[0, 0, 2:].sum() - before)


def test_the_floor_is_nearer_with_a_box():
    for phase, end in ((APPROACH, 0), (CARRY, GROUNDED)):
        worlds = swarm()
        worlds.state.phase[0, 0] = phase
        place(worlds, X=0.0, Z=-9.75)
        assert hold(worlds).end[0, 0] == end


@pytest.mark.parametrize(
    ("collision", "apart", "ends"), [("costs", 0.05, False), ("ends", 0.05, True), ("ends", 0.9, False)]
)
def test_drones_that_touch(collision, apart, ends):
    worlds = swarm(agents=2, collision=collision, size=(0.2, 0.2))
    place(worlds, 0, X=0.0)
    place(worlds, 1, X=apart)
    step = hold(worlds)
    assert (step.end[0] == COLLISION).tolist() == [ends, ends]
    assert worlds._out.info[CHANNEL["collisions"], 0].tolist() == [1.0, 1.0]
    assert said(worlds, "oob") == 0.0


# ---- the race


def ring_at_origin(rings: int = 2, **params) -> Worlds:
    """The first ring looks along x; a drone of world 0 is about to fly."""
    worlds = swarm(task="race", rings=rings, size=(0.2, 0.2), spread=0.0, **params)
    worlds.state.rings[0, 0] = (0, 0, 0, 1, 0, 0)
    module.next_ring(worlds.state.goal, worlds.state.rings, 0, 0, 0)
    return worlds


@pytest.mark.parametrize(("y", "speed", "passed", "end"), [
    (0.0, 5.0, 1, 0), (1.4, 5.0, 1, 0), (1.6, 5.0, 0, COLLISION), (2.4, 5.0, 0, COLLISION), (2.6, 5.0, 0, 0),
    (0.0, -5.0, 0, COLLISION),  # the wrong way
])  # fmt: skip
def test_flying_through_a_ring(y, speed, passed, end):
    worlds = ring_at_origin()
    place(worlds, X=-math.copysign(0.1, speed), Y=y, VX=speed)
    revalue(worlds)
    step = hold(worlds)
    assert said(worlds, "performance") == passed / 2
    assert step.end[0, 0] == end
    if passed:
        np.testing.assert_array_equal(worlds.state.goal[0, 0, :6], worlds.state.rings[0, 1])  # the next one
        left = (math.hypot(y, 2.9) + 5.0) - math.hypot(y, worlds.state.body[0, 0, X] - 2.0)  # by the point before it
        assert step.reward[0, 0] == pytest.approx(9.0 + (0.5 + 1 / reward.FAR) * left, abs=0.02)


@pytest.mark.parametrize(("y", "speed"), [(1.6, 5.0), (0.0, -5.0)])
def test_a_ring_that_is_hit_may_cost_and_not_end_the_race(y, speed):
    """Both drones are in the same place; what is paid differs by nothing, since an end costs as much."""
    steps = {}
    for rule in ("ends", "costs"):
        worlds = ring_at_origin(ring_hit=rule)
        place(worlds, X=-math.copysign(0.1, speed), Y=y, VX=speed)
        revalue(worlds)
        steps[rule] = hold(worlds)
        assert said(worlds, "ring_hits") == 1.0
    assert steps["ends"].end[0, 0] == COLLISION
    assert steps["costs"].end[0, 0] == 0
    assert steps["costs"].reward[0, 0] == pytest.approx(steps["ends"].reward[0, 0])
    assert steps["costs"].reward[0, 0] < -20.0
    place(worlds, X=-0.1, Y=0.0, VX=5.0)  # the same ring counts when it is passed afterwards
    hold(worlds)
    assert said(worlds, "performance") == 0.5


def test_the_last_ring_ends_the_race():
    worlds = ring_at_origin(rings=1)
    place(worlds, X=-0.1, VX=5.0)
    step = hold(worlds)
    assert step.end[0, 0] == FINISHED
    assert step.episodes.success.tolist() == [True]
    assert step.episodes.info[CHANNEL["oob"], 0] == 0.0
    assert step.reward[0, 0] > 0.9


@pytest.mark.parametrize(("x", "y", "led"), [
    (-10.0, 5.9, (2.0, 0.0)),  # on the straight way to 2 m behind the ring it is 0.98 m off the centre
    (-10.0, 6.1, (-3.0, 0.0)), (-1.0, 1.4, (2.0, 0.0)), (-1.0, 1.6, (-3.0, 0.0)),
    (9.0, 11.9, (-0.5, 4.5)),  # from behind, the straight way to 3 m before the ring is 2.98 m off the centre
    (9.0, 12.1, (-3.0, 0.0)), (9.0, -1.0, (-0.5, -4.5)),
])  # fmt: skip
def test_where_a_race_leads_to(x, y, led):
    worlds = ring_at_origin()
    for phase in (APPROACH, DESCEND):  # wherever it was led until now
        worlds.state.phase[0, 0] = phase
        worlds.state.goal[0, 0, LED : LED + 2] = (-3.0 if phase == APPROACH else 2.0, 0.0)
        place(worlds, X=x, Y=y)
        hold(worlds)
        np.testing.assert_allclose(worlds.state.goal[0, 0, LED : LED + 2], led, atol=1e-9)


def test_the_next_ring_is_led_to_anew():
    worlds = ring_at_origin()
    place(worlds, X=-0.1, VX=5.0)
    hold(worlds)
    assert worlds.state.phase[0, 0] == APPROACH


def test_who_flies_past_a_ring_and_back_has_earned_nothing():
    """Before the ring, beside it, behind it, before it again: what it was paid is the change of the total."""
    worlds = ring_at_origin()
    place(worlds, X=-3.0)
    hold(worlds)
    revalue(worlds)
    first, paid = worlds.state.last[0, 0, 2:].sum(), 0.0
    for x, y in ((-1.0, 4.0), (1.0, 4.0), (1.0, 4.0), (-1.0, 4.0), (-3.0, 0.0), (-3.0, 0.0)):
        place(worlds, X=x, Y=y)
        paid += float(hold(worlds).reward[0, 0])
    assert paid == pytest.approx(worlds.state.last[0, 0, 2:].sum() - first)
    assert paid == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize(("x", "y", "way"), [
    (-10.0, 5.0, 13.0),  # through the ring: 12 m on, 5 m aside
    (-6.0, 3.9, math.hypot(8.0, 3.9)),
    (-3.0, 4.0, 4.0 + 5.0),  # to the point before it, and 5 m on
    (4.0, 4.5, 4.5 + math.hypot(4.5, 2.5) + 5.0),  # by the point beside it
])  # fmt: skip
def test_the_way_that_is_left_in_a_race(x, y, way):
    worlds = ring_at_origin()
    place(worlds, X=x, Y=y)
    hold(worlds)
    revalue(worlds)
    assert worlds.state.last[0, 0, 2:].tolist() == pytest.approx([1 - way / reward.FAR, -0.5 * way], abs=1e-6)


def test_rings_stand_apart_and_look_anywhere():
    rings = swarm(300, task="race", rings=6).state.rings
    steps = np.linalg.norm(np.diff(rings[:, :, :3], axis=1), axis=2)
    assert steps.min() >= 4.0
    assert np.abs(rings[..., :3]).max(axis=(0, 1)) == pytest.approx([26, 26, 6], abs=0.1)
    np.testing.assert_allclose(np.linalg.norm(rings[..., 3:], axis=2), 1.0)
    assert np.abs(rings[..., 3:].mean(axis=(0, 1))).max() < 0.05


# ---- rewards


def test_the_total_of_pick_and_place_by_hand():
    """d = 5 (3, 4, 0), D = 27; v = (1, 0, 0.1) against a target that sinks at 0.1; 2 rad/s; a neighbour close by."""
    total, position = reward.pick_total(3.0, 4.0, 0.0, 1.0, 0.0, -0.1, -0.1, 2.0, 27.0, 0.0)
    assert position == pytest.approx(math.exp(-5 / (0.63 * 27)), rel=1e-6)
    calm, approach = 2 * math.exp(-9.5) - 1, 5 / 27 * (3 / 5) / 50
    expected = 1.13 * position + 0.15 * (1 - 5 / 27) * calm - 2.0 * 2 / 50 + 2.2 * approach
    assert total == pytest.approx(expected, rel=1e-6)
    crowded, _ = reward.pick_total(3.0, 4.0, 0.0, 1.0, 0.0, -0.1, -0.1, 2.0, 27.0, 1.0)
    assert crowded == pytest.approx(expected - 1.0, rel=1e-6)


def test_the_hover_bonus_and_the_clip():
    near, _ = reward.pick_total(0.3, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0, 25.0, 1.6, 0.0)  # within 0.2 D, slower than 0.2
    far, _ = reward.pick_total(0.33, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0, 25.0, 1.6, 0.0)
    assert near - far == pytest.approx(0.75, abs=0.05)
    assert reward.pick_total(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.6, 0.0)[0] == 1.0
    assert reward.pick_total(50.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 50.0, 1.6, 1.0)[0] == -1.0


def test_the_way_to_the_target_is_all_that_counts_in_a_race():
    worlds = ring_at_origin()
    np.testing.assert_allclose(worlds.state.goal[0, 0, LED : LED + 3], (-3.0, 0.0, 0.0))  # before the ring
    place(worlds, X=-10.0, VX=20.0)
    revalue(worlds)
    step = hold(worlds)
    way = worlds.state.body[0, 0, X] + 10.0
    assert way == pytest.approx(1.0, abs=0.01)
    assert step.reward[0, 0] == pytest.approx((0.5 + 1 / math.sqrt(60**2 + 60**2 + 20**2)) * way, abs=1e-6)


def test_hover_is_paid_for_the_way_and_for_standing_still():
    far, worlds = math.sqrt(7600), swarm(task="hover", size=(0.2, 0.2), spread=0.0)
    worlds.state.goal[0, 0, LED : LED + 3] = (0.0, 0.0, 0.0)
    place(worlds, X=-2.0)
    revalue(worlds)
    assert worlds.state.last[0, 0].tolist() == pytest.approx([0.0, 1 - 2 / far, 1 - 2 / far + 1 / 8, 40 / 8 - 1.0])


@pytest.mark.parametrize("task", ["hover", "race", "pick_place"])
def test_without_a_guide_only_the_total_and_events_pay(task):
    worlds = swarm(task=task, guide=0.0)
    for _ in range(5):
        before = worlds.state.last[0, 0].copy()
        paid = hold(worlds).reward[0, 0]
        assert paid == pytest.approx(worlds.state.last[0, 0, 2] - before[2])
        assert worlds.state.last[0, 0, 3] != before[3]
    place(worlds, X=29.99, VX=2.0)
    before = worlds.state.last[0, 0, 2]
    step = hold(worlds)
    assert step.end[0, 0] == OUT
    assert -3.0 < step.reward[0, 0] < -0.5  # the end costs 1


def test_hovers_performance_is_a_moving_mean():
    assert reward.stillness(0.1, 0.2, 2.0) == pytest.approx(1 / (1 + 0.05 * (7 + 3 + 3)))
    worlds = swarm(task="hover", size=(0.2, 0.2), spread=0.0)
    worlds.state.goal[0, 0, LED : LED + 3] = (0.0, 0.0, 0.0)
    place(worlds, X=0.0)
    hold(worlds)
    assert worlds.state.tally[0, 0, PERFORMANCE] == pytest.approx(0.02, rel=1e-3)
    for _ in range(300):
        hold(worlds)
    assert worlds.state.tally[0, 0, PERFORMANCE] == pytest.approx(1 - 0.98**301, rel=1e-3)
    assert said(worlds, "succeeded") == 1.0


def test_score_is_the_sum_of_totals_and_perf_its_mean():
    worlds = swarm(horizon=5)
    place(worlds, X=0.0)
    totals = []
    for _ in range(5):
        step = hold(worlds)
        totals.append(said(worlds, "score"))
    assert step.episodes.info[CHANNEL["score"], 0] == pytest.approx(sum(totals))
    assert step.episodes.info[CHANNEL["perf"], 0] == pytest.approx(sum(totals) / 5)


# ---- sight


def turned(q: np.ndarray) -> np.ndarray:
    """The rotation of a quaternion by the textbook: v + 2 q_v x (q_v x v + w v), for each axis."""
    w, v = q[0], q[1:]
    return np.stack([e + 2 * np.cross(v, np.cross(v, e) + w * e) for e in np.eye(3)], axis=1)


@pytest.mark.parametrize("task", ["pick_place", "hover", "race"])
def test_what_a_drone_sees(task):
    worlds = swarm(2, agents=3, task=task)
    for action in np.random.default_rng(1).uniform(-0.6, 0.1, (25, 2, 3, 4)):
        worlds.step(action)
    s, half = worlds.state, np.array([30.0, 30.0, 10.0])
    for i, a in ((0, 0), (1, 2)):
        body, goal, frame = s.body[i, a], s.goal[i, a], turned(s.body[i, a, QW : QW + 4])
        offsets = s.body[i, :, :3] - body[:3]
        offsets[a] = 99.0
        nearest = offsets[np.argmin((offsets**2).sum(1))]
        to = goal[LED : LED + 3] - body[:3]
        box, drop = (frame.T @ (goal[k : k + 3] - body[:3]) for k in (BOX, LAY))
        ring, normal = box / (2.0 + np.linalg.norm(box)), frame.T @ goal[LAY : LAY + 3]
        extra = {"pick_place": [*(box / half), *(drop / half), 1], "race": [*ring, *normal, 0], "hover": [0] * 7}
        expected = [*(frame.T @ body[VX : VZ + 1] / 50), *np.clip(body[VX : VZ + 1], -1, 1), *(body[WX : WX + 3] / 50),
                    *frame[:, 2], *body[QW : QW + 4], *(body[ROTOR:] / s.build[i, a, LIMIT]), *(body[:3] / half),
                    *np.clip(to, -1, 1), *(to / half), *s.last[i, a, :3], *np.clip(nearest, -1, 1),
                    *extra[task]]  # fmt: skip
        np.testing.assert_allclose(worlds.obs[i, a], np.array(expected, np.float32), atol=1e-6)


# ---- starts


def test_where_and_what_drones_start_as():
    s = swarm(400, agents=8).state
    assert np.abs(s.body[..., :3]).max(axis=(0, 1)) == pytest.approx([29, 29, 9], abs=0.1)
    assert np.ptp(s.build[..., ARM]) == pytest.approx(0.15, abs=0.001)  # half of U(0.1, 0.4)
    assert not s.body[..., [VX, VY, VZ, WX, ROTOR]].any()
    assert np.abs(s.goal[..., [BOX, LAY]]).max() <= 29.0
    assert s.body.shape[-1] == BODY


def test_a_lost_drone_restarts_alone():
    worlds = swarm(agents=3)
    for a in range(3):
        place(worlds, a, X=-10.0 + 10 * a)
    before = worlds.state.body[0].copy()
    place(worlds, 1, X=29.999, VX=5.0)
    hold(worlds)
    np.testing.assert_allclose(worlds.state.body[0, [0, 2], :3], before[[0, 2], :3], atol=1e-3)
    assert not worlds.state.body[0, 1, VX]
    assert worlds.state.tick[0] == STRICT_TICK + 1  # the world's clock goes on


def test_half_of_the_worlds_race():
    tasks = swarm(400, task="hover_race").state.task
    assert set(tasks.tolist()) == {HOVER, RACE}
    assert 160 < (tasks == RACE).sum() < 240


def test_an_evaluation_knows_success():
    played = rollout.evaluate(
        Drones(Params(agents=2, horizon=8)), rollout.RandomPolicy(Drones().spec.action), np.arange(2)
    )
    assert {episode["success"] for episode in played.episodes["det"]} == {False}


# ---- pictures


@pytest.mark.parametrize("task", ["pick_place", "hover", "race"])
def test_a_picture_shows_everybody(task):
    worlds = swarm(agents=8, task=task, seed=3)
    for action in np.random.default_rng(0).uniform(-0.5, 0.1, (20, 1, 8, 4)):
        worlds.step(action)
    image = worlds.render(0)
    assert image.shape == (420, 640, 3)
    from relab.train.envs.drones_draw import project, room

    assert (image != room()).any(axis=2).mean() > 0.005
    for at in worlds.state.body[0, :, :3]:
        column, row, _ = project(at)[0]
        patch = image[int(row) - 6 : int(row) + 7, int(column) - 6 : int(column) + 7].astype(int)
        assert patch.min() < 140, "a drone has dark rotors"


def test_the_whole_box_is_in_the_picture():
    from relab.train.envs.drones_draw import HEIGHT, WIDTH, project

    corners = project(np.array([(x, y, z) for x in (-30, 30) for y in (-30, 30) for z in (-10, 10)]))
    assert (corners[:, :2] > 0).all()
    assert (corners[:, 0] < WIDTH).all()
    assert (corners[:, 1] < HEIGHT).all()


# ---- Films


class Reel(list):
    """Keeps what a film would."""

    fps = 3
    add = list.append


def test_a_film_says_which_episode_where_it_stands_and_how_it_ended():
    worlds = swarm(agents=2, task="pick_place")
    reel = Reel()
    filming = captions.Filming(reel, 0, "worst, seed 7")
    worlds.state.phase[0] = APPROACH, CARRY
    worlds.book.ret[0] = 1.0, 2.0
    filming(worlds, np.array([[True, False]]))
    filming(worlds, np.array([[False, False]]))
    assert len(reel) == 1, "until the first episodes have ended"
    picture = worlds.render(0)
    assert reel[0].tobytes() == captions.below(picture, "worst, seed 7  return +1.0 (mean of 1)",
                                               "0.0 s  1 approach, 1 carry").tobytes()  # fmt: skip
    assert (reel[0][: -captions.STRIP] == picture).all()
    rows = [{"end": "floor", "return": -3.0, "success": False}, {"end": "time_limit", "return": 5.0, "success": True}]
    filming.rest(rows)
    said = "worst, seed 7  return +1.0  success 1 of 2", "ended: 1 floor, 1 time limit"
    assert [shot.tobytes() for shot in reel[1:]] == [captions.below(picture, *said).tobytes()] * 3, "for a second"


@pytest.mark.parametrize(("task", "says"), [("race", "rings passed: 0 to 0 of"), ("hover", "metres to the target: ")])
def test_every_task_says_where_it_stands(task: str, says: str):
    worlds = swarm(agents=3, task=task)
    assert says in worlds.env.caption(worlds.state, 0)


def test_a_line_that_is_too_long_is_written_smaller_and_never_beyond_the_picture():
    strip = captions.below(np.zeros((4, 120, 3), np.uint8), "a" * 40, "x")
    assert strip.shape == (4 + captions.STRIP, 120, 3)
    assert captions.below(np.zeros((4, 120, 3), np.uint8), "a", "x").tobytes() != strip.tobytes()
