"""How do several processes train one PPO run? Each steps its share of the worlds, and gradients are summed over all.

Rank 0 is the run itself: it evaluates, writes the record and the checkpoints. The others hold the same weights and the
same counters, and do the same update on the same batch: all that ranks send each other is what their worlds did, and
the gradient of their share of each minibatch. Every world and every row of actions has a random stream of its own, so
that the batch does not depend on the split; the gradient does, in the order of its summation (docs/algorithms/ppo.md).

The others never outlive rank 0 (base/leash.py), and a rank that died is told in one line. They are begun with the first
iteration, from the state as it is then, so that a checkpoint is the same file for any number of ranks.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from relab.base import leash, processes
from relab.base.documents import Tree
from relab.config import registry
from relab.config.base import require
from relab.config.ppo import PPO
from relab.train import device, rollout
from relab.train.contract import Setup
from relab.train.envs.base import Episodes, Worlds
from relab.train.envs.check_static import EnvError
from relab.train.kernels import jit
from relab.train.rollout import Cursor, Trajectory

LOOK_S, PATIENCE_S = 0.2, 5.0
MOMENT = datetime.timedelta(seconds=LOOK_S)
TIMEOUT = datetime.timedelta(hours=1)  # for the slowest of an exchange: compiling, the first time on a machine
COLUMNS = ("obs_TBD", "action_TBK", "logp_TB", "value_TB", "reward_TB", "terminated_TB", "truncated_TB", "alive_TB",
           "fresh_TB", "memory_TBM")  # fmt: skip


class Order(NamedTuple):
    """What a rank is made of."""

    setup: Setup  # its `env` is None: an environment is made of `env`
    env: tuple[type, Any]  # class, parameters
    size: int
    place: str  # folder in which the ranks meet


class Piece(NamedTuple):
    """What the worlds of one rank did in an iteration."""

    columns: list[np.ndarray]
    final: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]
    episodes: list[Episodes]
    worlds: dict[str, np.ndarray]
    cursor: Cursor
    weights: bytes  # what acted, in short: ranks that differ have drifted apart
    error: str = ""


@dataclass
class Share:
    """The worlds of one rank."""

    worlds: Worlds
    traj: Trajectory
    cursor: Cursor

    @classmethod
    def of(cls, s: Any, rank: int, size: int) -> Share:
        """Its part of a whole state, rows in order."""
        n, agents = s.worlds.n // size, s.worlds.spec.agents
        mine = np.arange(rank * n, (rank + 1) * n)
        rows = np.arange(rank * n * agents, (rank + 1) * n * agents)
        worlds = Worlds(s.worlds.env, n)
        worlds.reset(mine.astype(np.uint64))  # for what a snapshot does not hold; the next line replaces the rest
        worlds.restore(s.worlds.snapshot(), from_rows=mine)
        traj = Trajectory.allocate(s.cfg.steps, s.worlds.spec, n, s.agent.head.action_buffer(1), s.agent.memory_dim)
        return cls(worlds, traj, Cursor(*(x[rows].copy() for x in vars(s.cursor).values())))


class Team:
    """One rank's end of the line to the others."""

    def __init__(self, s: Any, rank: int, size: int, workers: list[Any] | None = None, place: str = "") -> None:
        self.rank, self.size, self.workers, self.place = rank, size, workers or [], place
        self.share = Share.of(s, rank, size)
        nccl = s.cfg.backend == "nccl"
        self.group = dist.new_group(backend="nccl") if nccl else dist.group.WORLD  # of gradients; the rest goes by gloo

    # ---- Acting

    def collect(self, s: Any) -> None:
        """All worlds of the run for one batch, each by its rank; the state is then whole on every rank."""
        mine, error = self.share, ""
        try:
            rollout.collect(mine.worlds, s.agent, mine.traj, mine.cursor, s.counts.env_steps // s.worlds.n)
        except EnvError as problem:
            error = str(problem)
        columns = [getattr(mine.traj, name) for name in COLUMNS]
        weights = digest(s.agent.params.flat)
        piece = Piece(columns, mine.traj.final, mine.traj.episodes, mine.worlds.snapshot(), mine.cursor, weights, error)
        self.join(s, self.exchange(piece))

    def exchange(self, piece: Piece) -> list[Piece]:
        pieces = self.pieces(piece)
        errors = [f"{each.error} (rank {rank})" for rank, each in enumerate(pieces) if each.error]
        if errors:
            raise EnvError(errors[0])
        if len({each.weights for each in pieces}) > 1:
            raise EnvError("the ranks of this run have come to different weights, which must not be; `relab resume`"
                           " goes on from the last checkpoint")  # fmt: skip
        return pieces

    def pieces(self, mine: Piece) -> list[Piece]:
        """Those of all ranks, in order."""
        data = torch.frombuffer(bytearray(pickle.dumps(mine)), dtype=torch.uint8)
        with self.talking():
            sizes = [int(size) for size in gathered(torch.tensor([len(data)]), self.size)]
            padded = torch.zeros(max(sizes), dtype=torch.uint8)
            padded[: len(data)] = data
            every = gathered(padded, self.size)
        return [pickle.loads(one[:size].numpy().tobytes()) for one, size in zip(every, sizes)]

    def join(self, s: Any, pieces: list[Piece]) -> None:
        """The pieces side by side, as one rank would have made them."""
        n, agents = self.share.worlds.n, s.worlds.spec.agents
        for k, name in enumerate(COLUMNS):
            np.concatenate([piece.columns[k] for piece in pieces], axis=1, out=getattr(s.traj, name))
        s.traj.final[:] = [(t, rows + rank * n * agents, obs, memory) for rank, piece in enumerate(pieces)
                           for t, rows, obs, memory in piece.final]  # fmt: skip
        s.traj.episodes[:] = in_order([placed(each, rank * n) for rank, piece in enumerate(pieces)
                                       for each in piece.episodes], s.traj.ended_TB, agents)  # fmt: skip
        snaps = [piece.worlds for piece in pieces]
        s.worlds.restore({key: np.concatenate([snap[key] for snap in snaps]) for key in snaps[0]})
        s.cursor = Cursor(*(np.concatenate(parts) for parts in zip(*(vars(p.cursor).values() for p in pieces))))

    # ---- Learning

    def mine(self, rows: np.ndarray) -> np.ndarray:
        """This rank's part of a minibatch."""
        return np.array_split(rows, self.size)[self.rank]

    def total(self, grad: Tensor, sums: np.ndarray, top: float) -> tuple[np.ndarray, float]:
        """The gradient over all ranks, in place, with its statistics: the one place where gradients meet.

        Each rank has divided by the rows of the whole minibatch, so that the sum is the mean over all of them.
        """
        with self.talking():
            if self.group is not dist.group.WORLD:  # nccl, which only puts it into the line of the GPU
                dist.all_reduce(grad, group=self.group)
            elif grad.device.type == "cpu":
                attend(dist.all_reduce(grad, async_op=True))
            else:
                there = grad.cpu()
                attend(dist.all_reduce(there, async_op=True))
                grad.copy_(there)
            table = torch.stack(gathered(torch.from_numpy(np.append(sums, top)), self.size)).numpy()
        return table[:, :-1].sum(0), float(table[:, -1].max())

    # ---- Commands of rank 0

    def go_on(self) -> None:
        """The others begin an iteration, as this one does."""
        with self.talking():
            attend(dist.broadcast(torch.zeros(1), src=0, async_op=True))

    @contextlib.contextmanager
    def talking(self) -> Iterator[None]:
        """Inside, ranks talk; one that is gone becomes an error that says so."""
        try:
            yield
        except RuntimeError as error:
            raise self.lost(error) from error

    def lost(self, error: RuntimeError) -> EnvError:
        for worker in self.workers:
            worker.join(LOOK_S)
        gone = next((k for k, worker in enumerate(self.workers, 1) if not worker.is_alive()), None)
        if gone is None:
            return EnvError(f"the ranks of this run cannot talk to each other: {str(error).splitlines()[0]:.200}")
        return EnvError(gone_text(gone, self.size, self.workers[gone - 1]))

    def close(self) -> None:
        """End the other ranks, whatever they do."""
        end(self.workers, self.place)
        dist.destroy_process_group()


def gathered(mine: Tensor, size: int) -> list[Tensor]:
    """A tensor of each rank."""
    every = [torch.empty_like(mine) for _ in range(size)]
    attend(dist.all_gather(every, mine, async_op=True))
    return every


def attend(work: Any) -> None:
    """Wait for the others a moment at a time: between two moments Python hears Ctrl-C, inside torch it does not."""
    while not work.is_completed():
        with contextlib.suppress(RuntimeError):  # the moment is over, or the exchange failed: then it is complete
            work.wait(MOMENT)
    work.wait()


def end(workers: list[Any], place: str) -> None:
    """Nothing of theirs is kept, so they are not asked: one that hangs would never answer."""
    for worker in workers:
        worker.kill()
        worker.join(PATIENCE_S)
    shutil.rmtree(place, ignore_errors=True)


def digest(flat: Tensor) -> bytes:
    """Weights in short."""
    return hashlib.blake2b(flat.detach().cpu().numpy().tobytes(), digest_size=8).digest()


def placed(each: Episodes, first_world: int) -> Episodes:
    return each._replace(world=each.world + first_world)


def in_order(ended: list[Episodes], ended_TB: np.ndarray, agents: int) -> list[Episodes]:
    """All episodes as one rank would have listed them: by the step at which they ended, then by row."""
    if not ended:
        return []
    columns: list[Any] = [None if parts[0] is None else np.concatenate(parts, axis=-1) for parts in zip(*ended)]
    whole = Episodes(*columns)
    row = whole.world * agents + whole.agent
    steps = {int(b): iter(np.flatnonzero(ended_TB[:, b])) for b in np.unique(row)}
    step = np.array([next(steps[int(b)], len(ended_TB)) for b in row])
    order = np.lexsort((row, step))
    sorted_: list[Any] = [None if column is None else column[..., order] for column in whole]
    return [Episodes(*sorted_)]


# ---- Beginning


def check(setup: Setup) -> None:
    """Settings that cannot go together with several ranks."""
    cfg: PPO = setup.cfg
    if cfg.ranks == 1:
        return
    require(hasattr(setup.env, "params"), f"each rank makes {setup.env.spec.env} of its `params`, but it has none; keep"
            " them, or use ranks=1")  # fmt: skip
    cuda = setup.device.startswith("cuda")
    require(cfg.backend != "nccl" or cuda, f"`backend=nccl` is for `device=cuda`, but the device is {setup.device};"
            " use gloo")  # fmt: skip
    require(dist.is_available(), "`ranks` needs a torch with torch.distributed, which this one lacks; use ranks=1")


def begin(s: Any, setup: Setup) -> Team:
    """Start the other ranks from the state as it is; this process is rank 0."""
    size, place = setup.cfg.ranks, tempfile.mkdtemp(prefix="relab-ranks-")
    bare = replace(setup, env=None, data=type(setup.data)())  # type: ignore[arg-type]
    order = Order(bare, (type(setup.env), setup.env.params), size, place)  # type: ignore[attr-defined]
    spawn = multiprocessing.get_context("spawn")
    workers: list[Any] = []
    lines = []
    try:
        for rank in range(1, size):
            ours, theirs = spawn.Pipe()
            work = leash.Leash(), serve, order, rank, theirs
            workers.append(spawn.Process(target=leash.call, args=work, name=f"rank-{rank}", daemon=True))
            with processes.safe_path(), deaf():
                workers[-1].start()
            theirs.close()
            lines.append(ours)
        for rank, (worker, line) in enumerate(zip(workers, lines), 1):
            hand_over(rank, size, worker, line, s.to_tree())
        meet(order, 0)
    except BaseException:
        end([worker for worker in workers if worker.pid], place)
        raise
    return Team(s, 0, size, workers, place)


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Who is started here never hears Ctrl-C and SIGTERM, which reach a whole group of processes: rank 0 decides.

    A child inherits what is blocked; this process hears of it when it is over.
    """
    resource_tracker.ensure_running()  # what starts it lifts every block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hand_over(rank: int, size: int, worker: Any, line: Any, tree: Tree) -> None:
    """Wait until a rank has come up, and give it the state; one that died meanwhile is told."""
    try:
        while not line.poll(LOOK_S):
            if not worker.is_alive():
                raise EOFError
        line.recv()
        # as plain bytes: `send` would move each tensor into shared memory, away from what numpy sees of it here
        line.send_bytes(pickle.dumps(tree))
    except (EOFError, OSError) as error:
        worker.join(PATIENCE_S)
        raise EnvError(gone_text(rank, size, worker)) from error


def gone_text(rank: int, size: int, worker: Any) -> str:
    code = worker.exitcode
    how = "died" if code is None else f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
    return (f"rank {rank} of {size} (process {worker.pid}) {how}; the run is kept up to its last checkpoint:"
            " `relab resume` goes on from there")  # fmt: skip


def meet(order: Order, rank: int) -> None:
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine
    where = f"file://{order.place}/meet"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=order.size, timeout=TIMEOUT)


# ---- In the other processes


def serve(order: Order, rank: int, line: Any) -> None:
    """Iterate as often as rank 0 does, until it ends this process."""
    ppo = registry.algo_module(order.setup.cfg.name)
    kind, params = order.env
    setup = replace(order.setup, env=kind(params), device=device.of_rank(order.setup.device, rank))
    jit.set_threads(setup.threads)
    line.send("here")
    tree = pickle.loads(line.recv_bytes())
    s = ppo.build(setup)
    s.load(tree)
    meet(order, rank)
    s.team = Team(s, rank, order.size)
    while True:
        dist.broadcast(torch.zeros(1), src=0)
        ppo.collect(s)
        ppo.update(s)
