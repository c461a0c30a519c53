"""Do kernels come from the disk cache in a second process, without scipy, and in parallel with the same bytes?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.registry import cpu_target

import kernels
from relab.train.envs import cartpole, drones, drones_physics, drones_tasks, drones_view, pendulum
from relab.train.envs.base import Worlds
from relab.train.envs.check_moving import threads
from relab.train.kernels import jit

RUN_KERNELS = """
import json, sys
import numpy as np
from numba.core.registry import CPUDispatcher
from relab.train.kernels import rng
from relab.train.envs import account, cartpole, fish, herd, ladder, pendulum
from relab.train.envs.base import Worlds

for env in (cartpole.CartPole(), pendulum.Pendulum(), herd.Herd(), ladder.Both(), fish.Fish()):
    worlds = Worlds(env, 3)
    worlds.reset(np.arange(3))
    worlds.step(np.zeros(worlds.action_shape, np.float32 if env.spec.action.low else np.int64))
rng.fill_normal(rng.mix(np.arange(2)), np.empty((2, 2)))
stats = {}
for module in (account, cartpole, fish, herd, ladder, pendulum, rng):
    for name, kernel in vars(module).items():
        if isinstance(kernel, CPUDispatcher) and kernel.signatures:
            counts = kernel.stats.cache_hits, kernel.stats.cache_misses
            stats[f"{module.__name__}.{name}"] = [sum(count.values()) for count in counts]
print(json.dumps({"stats": stats, "scipy": "scipy.linalg" in sys.modules}))
"""


def run_kernels() -> dict:
    done = subprocess.run([sys.executable, "-c", RUN_KERNELS], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def second_process() -> dict:
    run_kernels()  # compiles what no process has compiled yet
    return run_kernels()


def test_kernels_come_from_the_cache(second_process):
    stats = second_process["stats"]
    for kernel in ("account.account", "cartpole.step_rows", "herd.step_rows", "ladder.step_rows", "fish.step_rows"):
        assert f"relab.train.envs.{kernel}" in stats
    assert {name: pair for name, pair in stats.items() if pair[0] == 0 or pair[1] > 0} == {}


def test_loading_kernels_does_not_import_scipy(second_process):
    assert not second_process["scipy"]


def test_parallel_kernels_are_for_large_batches_and_several_threads():
    assert not jit.wide(10**9)  # one thread unless told otherwise
    with threads(jit.max_threads()):
        assert jit.wide(1) == (jit.max_threads() > 1)
    assert not jit.wide(10**9)


def args(env: Any, n: int) -> tuple:
    """A state, who is alive, actions and the outcome to write on."""
    draw, worlds = np.random.default_rng(0), Worlds(env, n)
    worlds.state.body[:] = draw.uniform(-0.3, 0.3, worlds.state.body.shape)
    action = draw.integers(0, 2, (n, 1, 1)) if env.spec.action.n else draw.uniform(-3, 3, (n, 1, 1))
    return worlds.state, worlds.alive, action, worlds.parts()[1]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("module", "env"), [(cartpole, cartpole.CartPole()), (pendulum, pendulum.Pendulum())], ids=["cartpole", "pendulum"]
)
def test_parallel_twins_give_the_same_bytes(module, env, count):
    serial, wide = args(env, 1001), args(env, 1001)
    module.step_rows(*serial)
    with threads(min(count, jit.max_threads())):
        module.step_rows_wide(*wide)
    for one, other in zip((*serial[0], *serial[3]), (*wide[0], *wide[3])):
        assert one.tobytes() == other.tobytes()
    assert serial[0].body.tobytes() != args(env, 1001)[0].body.tobytes()  # it did move


@pytest.mark.parametrize(("edited", "stale"), [("deep", ["step"]), ("step", ["step"]), ("other", [])])
def test_a_kernel_is_stale_when_what_it_calls_into_was_edited(edited: str, stale: list[str], tmp_path: Path):
    package = tmp_path / "relab"
    (package / "envs" / "__pycache__").mkdir(parents=True)
    files = {"envs/step.py": "from relab import mid\n", "mid.py": "def f():\n    from relab.deep import g\n",
             "deep.py": "", "other.py": "import relab.envs.step\n", "__init__.py": "", "envs/__init__.py": "",
             "envs/__pycache__/step.rows-3.py311.nbi": ""}  # fmt: skip
    for name, text in files.items():
        (package / name).write_text(text, encoding="utf-8")
        late = Path(name).stem == edited
        os.utime(package / name, (2000.0, 2000.0) if late else (1000.0, 1000.0))
    assert [path.name.partition(".")[0] for path in kernels.stale(package)] == stale


def test_ctrl_c_while_a_kernel_is_compiled_stops_and_prints_nothing(monkeypatch, capfd):
    """LLVM calls Python back: a KeyboardInterrupt in there was printed as a traceback, and the program went on."""
    engine = cpu_target.target_context.codegen()._engine._ee
    notify = engine._object_cache_notify

    def pressed(*args: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        notify(*args)

    monkeypatch.setattr(engine, "_object_cache_notify", pressed)
    with pytest.raises(KeyboardInterrupt):
        jit.njit(lambda x: x + 1)(1)
    assert capfd.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_drones_step_calls_counts_no_references():
    """Each count is an atomic operation; with them a step took twice as long."""
    called = (drones.step_world, drones.meet, drones.touches, drones.work_on, drones.total_of, drones.leaves,
              drones.tell, drones_physics.fly, drones_physics.runge_kutta, drones_tasks.carry_on, drones_tasks.lay_down,
              drones_tasks.cross, drones_tasks.lines_up, drones_view.see, drones_view.see_task)  # fmt: skip
    counting = [kernel.py_func.__name__ for kernel in called if kernel.targetoptions.get("_nrt") is not False]
    assert not counting
