"""How are steps gathered beside the learner? A process of its own acts, and waits where the learner falls behind.

It acts with the weights that it was sent last and puts every step of its worlds into a queue, from which the learner's
Gathering takes them in place of acting. It waits while the queue is four fifths full. What is learned then depends on
which process was faster: such a run is not repeatable, and its record says so. The process never outlives the learner
(base/leash.py), and a learner whose collector was killed says so, wherever in its work that was.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import queue
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relab.base import leash, processes
from relab.config.base import require
from relab.train.algos.dreamer.acting import Acting, Even, acting
from relab.train.contract import Setup
from relab.train.envs.base import Episodes
from relab.train.envs.check_static import EnvError
from relab.train.kernels import jit

FULL = 0.8  # share of the queue from which on the collector waits
LOOK_S, NAP_S = 0.5, 0.002  # between two looks at the other process, and at a full queue
PATIENCE_S = 5.0  # for a collector that is asked to end


class Crate(NamedTuple):
    """One step of all worlds, as it goes through the queue."""

    slot: np.ndarray  # a row of the replay, of its dtype
    finals: np.ndarray  # uint8[k, D]: images that episodes ended with, by row; empty for vectors
    memory: np.ndarray  # of the policy after acting
    ended: list[Episodes]
    updates: int  # of the weights that acted


class Order(NamedTuple):
    """What a collector is made of."""

    setup: Setup  # its `env` is None: an environment is made of `env`
    env: tuple[type, Any]  # class, parameters
    stream: str  # of the worlds' and actions' random numbers
    even_steps: int  # agent steps with evenly drawn actions before the policy acts


@dataclass
class Line:
    """What the two processes share."""

    crates: Any  # queue
    weights: Any  # float32[n], shared memory
    updates: Any  # behind those weights; its lock guards both
    stop: Any  # event


@dataclass
class Collector:
    """The learner's end of the line."""

    line: Line
    process: Any
    room: int  # steps of every world that the queue takes
    waited: int = 0  # takes that found it empty, of `taken`, since the last metrics
    taken: int = 0
    fill: float = 0.0  # sums over those
    age: float = 0.0

    @classmethod
    def start(cls, order: Order, weights: np.ndarray, room: int) -> Collector:
        leash.keep_tracker_silent()
        spawn = multiprocessing.get_context("spawn")
        line = Line(spawn.Queue(room), spawn.RawArray("f", weights.size), spawn.Value("q", 0), spawn.Event())
        work = leash.Leash(), collect, order, line, room
        process = spawn.Process(target=leash.call, args=work, name="collector", daemon=True)
        made = cls(line, process, room)
        made.send(weights, 0)
        with processes.safe_path():
            process.start()
        line.crates._writer.close()  # ours: a collector that dies in the middle of a crate leaves an end, not silence
        return made

    def send(self, weights: np.ndarray, updates: int) -> None:
        lock = self.line.updates.get_lock()
        while not lock.acquire(timeout=LOOK_S):  # a collector that was killed with it never gives it back
            if not self.process.is_alive():
                raise self.lost()
        try:
            np.frombuffer(self.line.weights, np.float32)[:] = weights
            self.line.updates.value = updates
        finally:
            lock.release()

    def take(self, updates: int) -> Crate:
        """The oldest step that waits; where there is none the learner starves until there is one."""
        self.taken += 1
        self.fill += min(1.0, self.line.crates.qsize() / self.room)
        try:
            crate = self.next_crate(self.line.crates.get_nowait)
        except queue.Empty:
            self.waited += 1
            crate = self.wait()
        if isinstance(crate, str):
            raise EnvError(f"the collector ended: {crate}")
        self.age += updates - crate.updates
        return crate

    def next_crate(self, get: Callable[[], Any]) -> Any:
        """A whole crate; EnvError where the other end is gone, be it in the middle of one."""
        try:
            return get()
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            self.process.join(PATIENCE_S)
            raise self.lost() from error

    def wait(self) -> Any:
        while True:
            with contextlib.suppress(queue.Empty):
                return self.next_crate(lambda: self.line.crates.get(timeout=LOOK_S))
            if not self.process.is_alive():
                raise self.lost() from None

    def lost(self) -> EnvError:
        """A collector that could not say why it ends was killed, as the system does where memory runs out."""
        code = self.process.exitcode or 0
        how = f"was killed by signal {-code}, as happens where memory runs out" if code < 0 else f"exited with {code}"
        return EnvError(f"the collector, a process of its own, {how}; the run is kept up to its last checkpoint:"
                        " `relab resume` goes on from there")  # fmt: skip

    def metrics(self) -> dict[str, float]:
        """Of the takes since the last call."""
        n = max(self.taken, 1)
        row = {"data/queue_fill": self.fill / n, "data/starved": self.waited / n, "data/weights_age": self.age / n,
               "data/queue_waste": float(self.line.crates.qsize())}  # fmt: skip
        self.waited, self.taken, self.fill, self.age = 0, 0, 0.0, 0.0
        return row

    def close(self) -> None:
        """End the process, whatever it does."""
        self.line.stop.set()
        self.process.join(PATIENCE_S)
        for end in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                end()
                self.process.join(PATIENCE_S)
        self.line.crates.close()
        self.line.crates.cancel_join_thread()


def order_of(setup: Setup, stream: str, even_steps: int) -> Order:
    env = setup.env
    require(hasattr(env, "params"), f"`collector=own` makes a second {env.spec.env} of its `params`, but it has none;"
            " keep them, or use collector=step")  # fmt: skip
    bare = Setup(None, setup.cfg, setup.seed, setup.total, setup.device, setup.threads)  # type: ignore[arg-type]
    return Order(bare, (type(env), env.params), stream, even_steps)  # type: ignore[attr-defined]


# ---- In the other process


def collect(order: Order, line: Line, room: int) -> None:
    """Act until told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    try:
        act_for_ever(order, line, room)
    except Exception as error:
        import traceback

        traceback.print_exc(file=sys.stderr)
        line.crates.put(f"{type(error).__name__}: {error}")
        line.stop.wait(PATIENCE_S)  # until it is read


def act_for_ever(order: Order, line: Line, room: int) -> None:
    jit.set_threads(order.setup.threads)
    kind, params = order.env
    s = acting(order.setup, kind(params), order.stream)
    updates = receive(s, line, -1)
    while not line.stop.is_set():
        if line.crates.qsize() >= FULL * room:
            time.sleep(NAP_S)
            continue
        updates = receive(s, line, updates)
        line.crates.put(step(s, order, updates))


def receive(s: Acting, line: Line, updates: int) -> int:
    """Take new weights over, if there are any."""
    with line.updates.get_lock():
        if line.updates.value != updates:
            s.agent.acting.flat.numpy()[:] = np.frombuffer(line.weights, np.float32)
        return int(line.updates.value)


def step(s: Acting, order: Order, updates: int) -> Crate:
    g = s.gathering
    early = s.counts.agent_steps < order.even_steps
    finals = getattr(g, "finals", None)
    before = finals.count if finals is not None else 0
    g.step(Even(s.agent) if early else s.agent, s.counts)
    ended, g.ended, g.rewards = g.ended, [], []
    slot = g.replay.ring[(g.replay.count - 1) % g.replay.slots].copy()
    images = np.zeros((0, 0), np.uint8)
    if finals is not None:
        images = finals.ring["obs"][np.arange(before, finals.count) % finals.slots, 0]
    return Crate(slot, images, g.memory_BM, ended, updates)
