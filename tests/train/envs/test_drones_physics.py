"""Does a drone fly as mechanics says: fall, hover, spin up, tumble, at the order of its method?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.train.envs import drones_physics as physics
from relab.train.envs.drones_physics import (  # fmt: skip
    ARM,
    BODY,
    BUILD,
    DAMPING,
    DRAG,
    DT,
    GRAVITY,
    IX,
    IY,
    IZ,
    LAG,
    LIMIT,
    MASS,
    QW,
    ROTOR,
    SPINNER,
    THRUST,
    VX,
    VZ,
    WX,
    YAW,
    Z,
    assemble,
    fly,
    runge_kutta,
)
from relab.train.kernels.jit import njit

STREAM = np.zeros(1, np.uint64)
HOVERING = math.sqrt(9.81 / 4 / 3e-5)  # rad/s of each rotor, for a drone of 1 kg


@njit
def tick(body, build, action):  # `fly` is made to be put into a loop
    fly(body, build, action, 0, 0)


def draw(rng: np.ndarray, size: float, spread: float) -> np.ndarray:
    build = np.zeros((1, 1, BUILD))
    assemble(rng, 0, 0, size, spread, build)
    return build[0, 0]


def plain(size: float = 0.2, **changes: float) -> np.ndarray:
    """A drone without luck; keys by name, such as DRAG=0."""
    build = draw(STREAM.copy(), size, 0.0)
    for name, value in changes.items():
        build[getattr(physics, name)] = value
    return build


def at_rest(**changes: float) -> np.ndarray:
    body = np.zeros(BODY)
    body[QW] = 1.0
    for name, value in changes.items():
        body[getattr(physics, name)] = value
    return body


def flown(body: np.ndarray, build: np.ndarray, ticks: int, action=-1.0) -> np.ndarray:
    bodies, actions = body[None, None].copy(), np.broadcast_to(np.asarray(action, np.float64), (1, 1, 4)).copy()
    for _ in range(ticks):
        tick(bodies, build[None, None], actions)
    return bodies[0, 0]


def integrated(
    body: np.ndarray, build: np.ndarray, seconds: float, dt: float, speeds=(0.0, 0.0, 0.0, 0.0)
) -> np.ndarray:
    s = tuple(float(x) for x in body)
    for _ in range(round(seconds / dt)):
        s = runge_kutta(s, speeds, tuple(float(x) for x in build), dt)
    return np.array(s)


def test_it_falls_as_galileo_said():
    body = flown(at_rest(Z=5.0), plain(DRAG=0.0), 20)
    assert body[Z] == pytest.approx(5.0 - 9.81 / 2, abs=1e-12)  # one second
    assert body[VZ] == pytest.approx(-9.81, abs=1e-12)


def test_drag_makes_a_fall_slower():
    body = flown(at_rest(), plain(), 40)  # v = -(m g / b)(1 - exp(-b t / m))
    assert body[VZ] == pytest.approx(-98.1 * (1 - math.exp(-0.2)), rel=1e-9)


def test_it_hovers_where_thrust_is_weight():
    body = at_rest(Z=1.0)
    body[ROTOR:] = HOVERING
    action = 2 * HOVERING / 750 - 1
    assert action == pytest.approx(-0.238, abs=5e-4)
    after = flown(body, plain(), 200, action)
    np.testing.assert_allclose(after, body, atol=1e-9)


def test_rotors_lag_behind_what_is_asked_of_them():
    """dr/dt = (u - r) / 0.1: a tick leaves 1 - x + x²/2 - x³/6 + x⁴/24 of the gap, x = 0.5."""
    body = flown(at_rest(), plain(), 1, 1.0)
    assert body[ROTOR] == pytest.approx(750 * (1 - 0.6067708333333333), rel=1e-12)
    assert flown(at_rest(), plain(), 100, 1.0)[ROTOR] == pytest.approx(750.0)
    assert flown(at_rest(), plain(), 100, 7.0)[ROTOR] == pytest.approx(750.0)  # clipped
    assert flown(at_rest(), plain(), 100, 0.0)[ROTOR] == pytest.approx(375.0)


@pytest.mark.parametrize(("speeds", "axis", "sign"), [((1, 2, 1, 1), 0, 1), ((1, 1, 1, 2), 0, -1), ((1, 1, 2, 1), 1, 1),
                                                       ((2, 1, 1, 1), 1, -1), ((2, 1, 2, 1), 2, 1)])  # fmt: skip
def test_which_rotor_turns_it_which_way(speeds, axis, sign):
    """Torques arm (T1 - T3), arm (T2 - T0), and about the vertical the drag of the rotors against each other."""
    build, body = plain(DAMPING=0.0, YAW=1e-2), at_rest()
    body[ROTOR:] = 100.0 * np.array(speeds)
    rate = np.array(physics.slopes(tuple(body), tuple(body[ROTOR:]), physics.prepared(tuple(build))))[WX : WX + 3]
    thrust = 3e-5 * 1e4 * np.array(speeds) ** 2.0
    torque = [0.1 * (thrust[1] - thrust[3]), 0.1 * (thrust[2] - thrust[0]), 1e-2 * (thrust @ [1, -1, 1, -1])]
    np.testing.assert_allclose(rate, np.array(torque) / [0.01, 0.01, 0.02], rtol=1e-12)
    assert math.copysign(1, rate[axis]) == sign


def test_rotors_that_speed_up_turn_the_body():
    body, build = at_rest(), plain(DAMPING=0.0)
    rate = physics.slopes(tuple(body), (100.0, 0.0, 0.0, 0.0), physics.prepared(tuple(build)))
    assert rate[WX + 2] == pytest.approx(1e-5 * (100 / 0.1) / 0.02)  # rotor inertia x its acceleration / inertia


TUMBLING = at_rest(VX=3.0)
TUMBLING[WX : WX + 3], TUMBLING[ROTOR:] = (4.0, -3.0, 2.0), (300.0, 200.0, 350.0, 250.0)


def test_halving_the_step_divides_the_error_by_sixteen():
    build, speeds = plain(), (400.0, 250.0, 300.0, 350.0)
    exact = integrated(TUMBLING, build, 0.4, 0.4 / 512, speeds)
    errors = [np.abs(integrated(TUMBLING, build, 0.4, 0.4 / n, speeds) - exact)[:13].max() for n in (8, 16, 32)]
    assert 12 < errors[0] / errors[1] < 22
    assert 13 < errors[1] / errors[2] < 19


def test_a_tumble_in_empty_space_keeps_energy_and_momentum():
    build = plain(DRAG=0.0, DAMPING=0.0, GRAVITY=0.0, IX=0.01, IY=0.015, IZ=0.02)
    body = TUMBLING.copy()
    body[ROTOR:] = 0.0
    after = integrated(body, build, 2.0, 0.01)
    inertia = build[[IX, IY, IZ]]
    for at in (body, after):  # the axis of rotation moves, what is conserved does not
        assert (inertia * at[WX : WX + 3] ** 2).sum() / 2 == pytest.approx(0.01 * 8 + 0.015 * 4.5 + 0.02 * 2, rel=1e-7)
        assert np.linalg.norm(inertia * at[WX : WX + 3]) == pytest.approx(math.sqrt(0.005225), rel=1e-7)
        assert at[VX] == pytest.approx(3.0, abs=1e-12)
    assert abs(after[WX] - body[WX]) > 0.1
    assert np.linalg.norm(inertia * after[WX : WX + 3]) == pytest.approx(
        np.linalg.norm(inertia * body[WX : WX + 3]), rel=1e-7
    )


def test_energy_is_lost_to_drag_alone():
    body = at_rest(Z=0.0, VX=10.0, VZ=5.0)

    def energy(b, build):
        return 0.5 * build[MASS] * (b[3:6] ** 2).sum() + build[MASS] * build[GRAVITY] * b[Z]

    smooth, rough = plain(DRAG=0.0), plain()
    assert energy(integrated(body, smooth, 1.0, DT), smooth) == pytest.approx(energy(body, smooth), rel=1e-12)
    assert energy(integrated(body, rough, 1.0, DT), rough) < energy(body, rough) - 1.0


def test_an_attitude_stays_one():
    draw, body = np.random.default_rng(0), at_rest()
    for _ in range(50):
        body = flown(body, plain(), 5, draw.uniform(-1, 1, 4))
        assert (body[QW : QW + 4] ** 2).sum() == pytest.approx(1.0, abs=1e-14)
    assert np.abs(body[VX : VZ + 1]).max() <= 50.0
    assert np.abs(body[WX : WX + 3]).max() <= 50.0


def test_speed_and_rotation_are_limited():
    body = flown(at_rest(VX=60.0, WX=70.0), plain(DAMPING=0.0), 1)
    assert body[VX] == 50.0
    assert body[WX] == 50.0


def test_a_drone_of_twice_the_size():
    build = plain(0.4)
    expected = {MASS: 8.0, IX: 0.32, IY: 0.32, IZ: 0.64, ARM: 0.2, THRUST: 3e-5 * 16, DAMPING: 6.4, YAW: 4e-6,
                DRAG: 0.4, GRAVITY: 9.81, LIMIT: 375.0, LAG: 0.1, SPINNER: 3.2e-4}  # fmt: skip
    assert {k: build[k] for k in expected} == pytest.approx(expected)


def test_luck_is_within_its_spread():
    rng = np.array([5], np.uint64)
    builds = np.array([draw(rng, 0.2, 0.1) for _ in range(300)])
    relative = builds / plain()
    assert 0.9 <= relative[:, [MASS, LIMIT, LAG, YAW, DRAG]].min() < 0.91
    assert 1.09 < relative[:, [MASS, LIMIT, LAG, YAW, DRAG]].max() <= 1.1
    assert 0.99 <= relative[:, GRAVITY].min() < relative[:, GRAVITY].max() <= 1.01
    inertia = builds[:, IX] / builds[:, MASS]  # inertia goes with the mass that was drawn, and has luck of its own
    assert 0.009 <= inertia.min() < inertia.max() <= 0.011
