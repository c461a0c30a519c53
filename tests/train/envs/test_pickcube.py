"""Is a cube that is grasped, carried and held at rest a success, and nothing less? Does a row hold a whole world?"""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from relab.config.base import ConfigError
from relab.config.envs import PickCube as PandaParams
from relab.config.envs import PickCubeGantry as GantryParams
from relab.record.evaluations import evaluation
from relab.train.envs import draw, pickcube_gl, pickcube_models, pickcube_task
from relab.train.envs.base import Worlds
from relab.train.envs.pickcube import PickCube, PickCubeGantry
from relab.train.envs.pickcube_task import Flags, Scene
from where import ROOT

mujoco = pytest.importorskip("mujoco")

ROBOTS = pytest.mark.parametrize("env", [PickCube, PickCubeGantry], ids=lambda env: env.name)
EPISODES = 40


def plan(worlds: Worlds) -> tuple[np.ndarray, np.ndarray]:
    """Over the cube, down, close, to the goal: the tool's way [N,3] from here, and the action of the fingers [N]."""
    s = worlds.env.scene(worlds.state)
    grasped, off = pickcube_task.grasped(s), s.cube[:, :3] - s.tool[:, :3]
    away = np.linalg.norm(off[:, :2], axis=1)
    above = np.column_stack([off[:, :2], np.maximum(off[:, 2], 0.07 - s.tool[:, 2])])
    way = np.where(grasped[:, None], s.goal - s.cube[:, :3], np.where((away > 0.01)[:, None], above, off))
    close = grasped | ((away < 0.012) & (np.abs(off[:, 2]) < 0.01))
    return way, np.where(close, -1.0, 1.0)


def gantry_script(worlds: Worlds) -> np.ndarray:
    way, fingers = plan(worlds)
    return np.column_stack([np.clip(way / 0.06, -1, 1), fingers])[:, None]


def panda_script(worlds: Worlds) -> np.ndarray:
    """The same way with seven joints: least squares over the tool's six velocities, the hand looking down."""
    way, fingers = plan(worlds)
    tool = worlds.state.sim.tool.copy()
    moves, turns = worlds.state.sim.batch.jac(worlds.env.model.body("hand").id, tool[:, :3])
    jac = np.concatenate([moves, turns], axis=1)[:, :, :7]
    down = np.array([1.0, 0.0, 0.0])  # the quaternion (0, 1, 0, 0): half a turn around x
    tilt = 2 * np.sign(tool[:, 4:5]) * (tool[:, 3:4] * down - np.cross(down, tool[:, 4:]))
    near = np.minimum(1, 0.06 / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-9))
    back = jac.transpose(0, 2, 1)
    square = jac @ back + 1e-4 * np.eye(6)
    joints = (back @ np.linalg.solve(square, np.concatenate([way * near, tilt], axis=1)[..., None]))[..., 0] / 0.1
    return np.column_stack([joints / np.maximum(1, np.abs(joints).max(1, keepdims=True)), fingers])[:, None]


SCRIPTS = {PickCubeGantry: gantry_script, PickCube: panda_script}


def begun(env, n: int, seed: int = 0) -> Worlds:
    worlds = Worlds(env, n)
    worlds.reset(np.arange(n) + 100 * seed)
    return worlds


def random_actions(worlds: Worlds, steps: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (steps, *worlds.action_shape))


# ---- The task


@pytest.mark.parametrize(("env", "reward"), [(PickCubeGantry, "sparse"), (PickCubeGantry, "dense"),
                                              (PickCube, "sparse")])  # fmt: skip
def test_a_scripted_gripper_succeeds(env, reward):
    worlds, script = begun(env(env.Params(reward=reward)), EPISODES), SCRIPTS[env]
    first: dict[int, tuple] = {}
    for _ in range(50):
        step = worlds.step(script(worlds))
        assert (step.terminated == (step.end == 2)).all()  # a success ends its episode, at once
        assert (step.reward[step.terminated] == 1).all()
        e = step.episodes
        for k in range(0 if e is None else len(e.world)):
            first.setdefault(int(e.world[k]), (e.success[k], e.length[k], e.ret[k], e.info[:, k]))
    successes = [x for x in first.values() if x[0]]
    assert len(first) == EPISODES
    assert len(successes) >= 0.95 * EPISODES
    assert all((info[1:3] == 1).all() for *_, info in successes)  # placed once, static at the end
    assert np.mean([info[0] for *_, info in successes]) > 0.95  # a goal beside the cube needs no grasp
    assert max(length for _, length, *_ in successes) < 50
    if reward == "sparse":
        assert {ret for _, _, ret, _ in successes} == {1.0}


def test_a_success_can_be_a_cut():
    worlds = begun(PickCubeGantry(GantryParams(success="cuts")), 4)
    ended = np.zeros(4, bool)
    for _ in range(30):
        step = worlds.step(gantry_script(worlds))
        assert not step.terminated.any()
        assert (step.truncated == (step.end == 2)).all()
        assert step.episodes is None or step.episodes.success.all()
        ended |= step.truncated[:, 0]
    assert ended.all()


def test_pressing_from_above_is_no_grasp():
    worlds = begun(PickCubeGantry(), 8)
    touched = np.zeros(8, bool)
    for _ in range(15):
        off = (worlds.obs[:, 0, 21:24] - worlds.obs[:, 0, 11:14]).astype(float)
        over = np.linalg.norm(off[:, :2], axis=1) < 0.01
        down = np.where(over, -1.0, 0.0)  # with its fingers closed
        worlds.step(np.column_stack([np.clip(off[:, :2] / 0.06, -1, 1), down, -np.ones(8)])[:, None])
        assert (worlds.obs[:, 0, 10] == 0).all()
        touched |= (worlds.state.sim.gap <= 0).all(1)
    assert touched.all()


def scene(n: int = 1, **parts) -> Scene:
    """Tool and cube at the origin, everything at rest, a cube in the grip, its goal 1 m above."""
    zeros = {name: np.zeros((n, width)) for name, width in zip(Scene._fields, (3, 3, 2, 2, 7, 7, 3, 2))}
    plain = zeros | {"fingers": np.full((n, 2), 0.02), "goal": np.tile([0.0, 0.0, 1.0], (n, 1))}
    return Scene(**plain | {name: np.atleast_2d(np.array(value, float)) for name, value in parts.items()})


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, True),
        ({"gap": (0.0, 1e-4)}, False),  # one pad alone
        ({"fingers": (0.012, 0.012)}, False),  # closed on nothing
        ({"fingers": (0.036, 0.036)}, False),  # open
        ({"cube": (0.025, 0, 0, 1, 0, 0, 0)}, False),  # at the tips
        ({"cube": (0.024, 0, 0, 1, 0, 0, 0)}, True),
    ],
    ids=str,
)
def test_a_grasp_is_both_pads_on_a_cube_between_them(parts, expected):
    assert pickcube_task.grasped(scene(**parts)).tolist() == [expected]


def test_placed_and_static_have_their_bounds():
    at, limit = (0, 0, 0.025), 0.2
    assert pickcube_task.flags(scene(goal=at), limit).success.all()
    assert not pickcube_task.flags(scene(goal=(0, 0, 0.0251)), limit).placed.any()
    assert pickcube_task.flags(scene(arm_speed=(0.2, -0.2, 0)), limit).static.all()  # the fastest joint counts
    assert not pickcube_task.flags(scene(arm_speed=(0, -0.21, 0)), limit).static.any()


def test_the_dense_reward_by_hand():
    """0.1 m from the cube, which is 0.2 m from its goal; the arm at 0.5."""
    s = scene(tool=(0.1, 0, 0, 1, 0, 0, 0), goal=(0, 0.2, 0), arm_speed=(0.3, 0.4, 0))

    def reward(grasped: bool, placed: bool, static: bool) -> float:
        return float(pickcube_task.dense_reward(s, Flags(*(np.array([x]) for x in (grasped, placed, static))))[0])

    assert reward(False, False, False) == pytest.approx(0.1075765686)  # (1 - tanh 0.5) / 5
    assert reward(True, False, False) == pytest.approx(0.1075765686 + 0.2 + 0.0476811688)  # + 1 / 5 + (1 - tanh 1) / 5
    assert reward(False, True, False) == pytest.approx(0.1075765686 + (1 - math.tanh(2.5)) / 5)
    assert reward(False, True, True) == 1.0


@ROBOTS
def test_starts_are_within_their_ranges(env):
    worlds = begun(env(), 400)
    s = worlds.env.scene(worlds.state)
    for x in (s.cube[:, :2], s.goal[:, :2]):
        assert np.abs(x).max() <= 0.1
        assert x.std(0) == pytest.approx(0.1 / 3**0.5, rel=0.12)
    assert (s.cube[:, 2] == 0.02).all()
    assert 0.02 <= s.goal[:, 2].min() < 0.03
    assert 0.31 < s.goal[:, 2].max() <= 0.32
    yaw = 2 * np.arctan2(s.cube[:, 6], s.cube[:, 3])
    assert yaw.std() == pytest.approx(math.pi / 3**0.5, rel=0.12)
    assert (s.arm - worlds.env.robot.home).std(0) == pytest.approx(0.02, rel=0.15)
    assert (s.fingers == 0.04).all()
    assert not s.arm_speed.any()


def test_observations_stand_in_their_order():
    worlds = begun(PickCubeGantry(), 3)
    worlds.step(random_actions(worlds, 1)[0])
    s, o = worlds.env.scene(worlds.state), worlds.obs[:, 0]
    parts = [s.arm, s.fingers, s.arm_speed / 5, s.finger_speed / 5, np.zeros((3, 1)), s.tool, s.goal, s.cube]
    offsets = [5 * (s.cube[:, :3] - s.tool[:, :3]), 5 * (s.goal - s.cube[:, :3])]
    assert np.array_equal(o, np.concatenate([*parts, *offsets], axis=1).astype(np.float32))
    assert np.allclose(s.tool[:, :3], s.arm)  # the gantry's slides are where its tool is
    assert [PickCube().spec.obs_dim, PickCube().spec.action.dim, o.shape[1], worlds.action_shape[-1]] == [42, 8, 34, 4]


# ---- The Panda


def test_the_panda_is_as_long_as_its_maker_says():
    """The tool's place from Franka's table of DH parameters, multiplied out here."""
    worlds = begun(PickCube(), 6)
    worlds.step(random_actions(worlds, 1)[0])
    s = worlds.env.scene(worlds.state)
    table = [(0, 0.333, 0), (0, 0, -1), (0, 0.316, 1), (0.0825, 0, 1), (-0.0825, 0.384, -1), (0, 0, 1), (0.088, 0, 1)]
    for i in range(6):
        place = np.eye(4)
        place[0, 3] = -0.615
        for (a, d, quarter), theta in zip([*table, (0, 0.107 + 0.1034, 0)], [*s.arm[i], 0.0]):
            c, ca, sa = (math.cos(theta), math.cos(quarter * math.pi / 2), math.sin(quarter * math.pi / 2))
            si = math.sin(theta)
            row = [[c, -si, 0, a], [si * ca, c * ca, -sa, -sa * d], [si * sa, c * sa, ca, ca * d], [0, 0, 0, 1]]
            place = place @ np.array(row)
        assert np.abs(place[:3, 3] - s.tool[i, :3]).max() < 1e-8


def held() -> Worlds:
    """Four Pandas with the cube in their grip, in the air, on their way."""
    worlds = begun(PickCube(), 4)
    sim = worlds.state.sim
    sim.qpos[:, 7:9], sim.qpos[:, 9:12], sim.qpos[:, 12:] = 0.021, sim.tool[:, :3], (1, 0, 0, 0)
    sim.derive(np.arange(4))
    actions = 0.3 * random_actions(worlds, 6)
    actions[..., -1] = -1
    for action in actions:
        worlds.step(action)
    return worlds


def test_a_panda_carries_the_cube():
    worlds = held()
    assert (worlds.obs[:, 0, 18] == 1).all()
    assert (worlds.env.scene(worlds.state).cube[:, 2] > 0.05).all()


@ROBOTS
def test_a_robot_left_alone_comes_to_rest(env):
    """A damper that a motor's limit cuts off would let the wrist swing for ever."""
    worlds = begun(env(), 16)
    for action in random_actions(worlds, 10):
        worlds.step(action)
    assert np.abs(worlds.env.scene(worlds.state).arm_speed).max() < 2
    for _ in range(2):
        worlds.step(np.zeros(worlds.action_shape))
    assert pickcube_task.flags(worlds.env.scene(worlds.state), worlds.env.robot.still).static.all()


# ---- A row is a world


def gripping() -> Worlds:
    worlds = begun(PickCubeGantry(), 4)
    while not (worlds.obs[:, 0, 10] > 0).sum() >= 2:
        worlds.step(gantry_script(worlds))
    return worlds


@pytest.mark.parametrize(("make", "env", "params"), [(gripping, PickCubeGantry, GantryParams),
                                                     (held, PickCube, PandaParams)])  # fmt: skip
def test_a_world_goes_on_in_another_slot_batch_and_thread_to_the_bit(make, env, params):
    worlds, slots = make(), np.array([5, 2, 6, 0])
    snap = worlds.snapshot()
    assert set(snap) >= {"state.row", "state.goal", "state.rng"}
    moved = begun(env(params(threads=2)), 7, seed=1)
    moved.step(random_actions(moved, 1)[0])
    moved.restore(snap, rows=slots)
    assert moved.obs[slots].tobytes() == worlds.obs.tobytes()  # what is seen follows from the row
    for action in random_actions(moved, 25):
        action[..., -1] = -1
        theirs, ours = worlds.step(action[slots]), moved.step(action)
        assert ours.obs[slots].tobytes() == theirs.obs.tobytes()
        assert ours.reward[slots].tobytes() == theirs.reward.tobytes()
        assert moved.state.row[slots].tobytes() == worlds.state.row.tobytes()


@ROBOTS
def test_one_and_two_threads_give_the_same_bytes(env):
    one, two = begun(env(), 6), begun(env(env.Params(threads=2)), 6)
    for action in random_actions(one, 15):
        assert one.step(action).obs.tobytes() == two.step(action).obs.tobytes()
    assert one.state.row.tobytes() == two.state.row.tobytes()


# ---- What goes wrong


def test_a_simulation_that_fails_is_cut_and_is_no_success(monkeypatch):
    worlds = begun(PickCubeGantry(), 3)
    sim, real = worlds.state.sim, worlds.state.sim.batch.step
    before = sim.row.copy()

    def step(**how):
        real(ids=[0, 2], **how)
        raise mujoco.batch.SimulationError(np.array([1]), "the stack is full")

    monkeypatch.setattr(sim.batch, "step", step)
    result = worlds.step(random_actions(worlds, 1)[0])
    assert result.truncated[:, 0].tolist() == [False, True, False]
    assert (worlds.spec.ends[result.end[1, 0]], result.reward[1, 0]) == ("simulation_error", 0.0)
    assert result.episodes.success.tolist() == [False]
    assert (sim.row[0] != before[0]).any()


def test_actions_and_positions_that_are_no_numbers_cut_the_episode():
    worlds = begun(PickCubeGantry(), 3)
    worlds.state.sim.qvel[2, 0] = 1e9
    action = random_actions(worlds, 1)[0]
    action[0, 0, 1] = np.nan
    step = worlds.step(action)
    assert step.end[:, 0].tolist() == [3, 0, 3]
    assert np.isfinite(step.obs).all()


@ROBOTS
def test_without_mujoco_the_extra_is_named(env, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ConfigError, match=rf"`env={env.name}` needs MuJoCo.*pip install 'relab\[mujoco\]'"):
        env()


# ---- Pictures


@ROBOTS
def test_the_drawing_shows_cube_goal_and_grip(env, monkeypatch):
    monkeypatch.setattr(pickcube_gl, "backend", lambda: None)
    worlds = begun(env(), 1)
    worlds.state.goal[0] = (0.0, 0.0, 0.3)
    image = worlds.render()
    green = np.argwhere((image == draw.GREEN).all(2))
    assert image.shape == (320, 640, 3)
    assert {bool(column > 320) for _, column in green} == {False, True}  # from the side and from above
    worlds.state.goal[0] = (0.0, 0.0, 0.05)
    lower = np.argwhere((worlds.render() == draw.GREEN).all(2))
    assert lower[lower[:, 1] < 320, 0].mean() > green[green[:, 1] < 320, 0].mean() + 50
    assert (image == draw.RED).all(2).any()
    assert len(pickcube_models.LINKS) == 7


@pytest.mark.slow
def test_a_picture_of_mujoco_shows_cube_and_goal_where_there_is_opengl():
    """In a process of its own: OpenGL's libraries must not stay in this one."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np\n"
        "from relab.train.envs import pickcube_gl\n"
        "from relab.train.envs.base import Worlds\n"
        "from relab.train.envs.pickcube import PickCubeGantry\n"
        "if pickcube_gl.backend() is None: sys.exit(7)\n"
        "worlds = Worlds(PickCubeGantry(), 2)\n"
        "worlds.reset(np.arange(2, dtype=np.uint64))\n"
        "image = worlds.render(1).astype(int)\n"
        "assert image.shape == (480, 640, 3)\n"
        "red = (image[..., 0] > 2 * image[..., 1]) & (image[..., 0] > 80)\n"
        "green = (image[..., 1] > 1.3 * image[..., 0]) & (image[..., 1] > 60)\n"
        "assert red.sum() > 50 and green.sum() > 50, (red.sum(), green.sum())\n"
        "before = worlds.state.row.copy()\n"
        "worlds.render(0)\n"
        "assert np.array_equal(before, worlds.state.row), 'pictures leave worlds alone'\n"
    )
    env = {key: value for key, value in os.environ.items() if key != "MUJOCO_GL"}
    words = [sys.executable, "-c", code, str(ROOT / "src")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=env)
    if done.returncode == 7:
        pytest.skip("no EGL and no OSMesa here")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_no_backend_works_that_is_switched_off(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "off")
    pickcube_gl.backend.cache_clear()
    assert pickcube_gl.backend() is None
    pickcube_gl.backend.cache_clear()


def test_best_is_chosen_by_success_not_by_the_dense_return():
    from relab.config.run import Eval, RunConfig
    from relab.train.evaluation import Evaluator, Played, Progress, note_best

    cfg = RunConfig(env=GantryParams(reward="dense"), eval=Eval(stop_at=0.9))
    judge, p = Evaluator(cfg, PickCubeGantry(cfg.env)), Progress()
    for step, (ret, wins) in enumerate([(19.0, 1), (6.0, 10)]):
        episodes = [{"seed": k, "return": ret, "length": 9, "success": k < wins, "end": "success"} for k in range(10)]
        row = judge.row(step, "det", episodes)
        note_best(p, judge.candidate(Played([row], {"det": evaluation(row, judge.outcome)}), step))
        assert judge.reached_goal(step, p) == (wins == 10)
    assert (p.best["step"], p.best["metric"], p.best["value"]) == (1, "eval/success_det", 1.0)
