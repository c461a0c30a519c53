"""What is learned from? A batch of the policy's own steps, collected in each iteration or once, as files of the record.

A fixed batch lies in data/fixed (docs/record.md says how it is read): what was seen, done and earned, and where it is
to be run again, the worlds themselves. Another run takes it over by `fixed_from`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.streams import world_seeds
from relab.config.base import ConfigError, require
from relab.record.run_folder import read_meta
from relab.train import checkpoint, replay, rollout
from relab.train.envs.base import Env, Worlds
from relab.train.rollout import Policy, Trajectory

NAME = "fixed"  # of the files of a fixed batch
WORLD = "world."  # prefix of the fields that hold snapshots
COLUMNS = ("obs", "action", "logp", "reward", "terminated", "truncated", "next_obs")


@dataclass
class Gathered:
    """T steps of B worlds. `next_obs`: what came after the step, before any reset."""

    obs: np.ndarray  # [T, B, D]
    action: np.ndarray  # [T, B, K], raw
    logp: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    next_obs: np.ndarray
    worlds: dict[str, np.ndarray] = field(default_factory=dict)  # snapshots before each step, [T, B, ...]

    @property
    def ended(self) -> np.ndarray:
        return self.terminated | self.truncated

    @property
    def shape(self) -> tuple[int, int]:
        T, B = self.reward.shape
        return T, B

    def rows(self) -> dict[str, np.ndarray]:
        """All of it by field, as the files hold it."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return columns | {WORLD + name: array for name, array in self.worlds.items()}


def gather(worlds: Worlds, policy: Policy, traj: Trajectory, cursor: rollout.Cursor, keep_worlds: bool) -> Gathered:
    """Act for one batch; with the worlds as they were before each step, where they are to be run again."""
    snaps: list[dict[str, np.ndarray]] = []

    def keep(now: Worlds) -> None:
        snaps.append(now.snapshot())

    rollout.collect(worlds, policy, traj, cursor, frames=keep if keep_worlds else None)
    next_TBD = np.concatenate((traj.obs_TBD[1:], worlds.obs.reshape(1, len(cursor.rng_B), -1)))
    for t, rows, obs, _ in traj.final:
        next_TBD[t, rows] = obs
    stacked = {name: stack([snap[name] for snap in snaps]) for name in snaps[0]} if snaps else {}
    return Gathered(traj.obs_TBD, traj.action_TBK, traj.logp_TB, traj.reward_TB, traj.terminated_TB, traj.truncated_TB,
                    next_TBD, stacked)  # fmt: skip


def stack(parts: list[np.ndarray]) -> np.ndarray:
    """[T, ...]; a bridged environment's snapshot is its actions so far, and grows: there is room for the longest."""
    if len({part.shape for part in parts}) == 1:
        return np.stack(parts)
    whole = np.zeros((len(parts), *map(max, zip(*(part.shape for part in parts)))), parts[0].dtype)
    for row, part in zip(whole, parts):
        row[tuple(slice(0, n) for n in part.shape)] = part
    return whole


def episodes_of(env: Env, policy: Any, episodes: int, seed: int, stream: str) -> tuple[Gathered, int]:
    """About so many episodes of another policy, each world a few of them -> rows, and the steps of worlds."""
    length = env.spec.horizon or 200
    B = min(episodes, 64)
    T = length * -(-episodes // B)
    worlds = Worlds(env, B)
    worlds.reset(world_seeds(seed, f"{stream}/env", B))
    traj = Trajectory.allocate(T, env.spec, B, policy.head.action_buffer(1), 0)
    cursor = rollout.start(worlds, policy, world_seeds(seed, f"{stream}/action", B))
    return gather(worlds, policy, traj, cursor, keep_worlds=False), worlds.sim_steps


# ---- As files


def fields_of(worlds: Worlds, action_row: np.ndarray, keep_worlds: bool) -> dict[str, tuple[tuple[int, ...], Any]]:
    """What a row of the files holds: shapes and dtypes by field."""
    D, flag, number = worlds.env.spec.obs_dim, ((), np.bool_), ((), np.float32)
    fields: dict[str, tuple[tuple[int, ...], Any]] = {
        "obs": ((D,), np.float32), "action": (action_row.shape[1:], action_row.dtype), "logp": number,
        "reward": number, "terminated": flag, "truncated": flag, "next_obs": ((D,), np.float32),
    }  # fmt: skip
    snap = worlds.snapshot() if keep_worlds else {}
    return fields | {WORLD + name: (array.shape[1:], array.dtype) for name, array in snap.items()}


def store(kept: replay.Replay, batch: Gathered) -> None:
    rows = batch.rows()
    for t in range(batch.shape[0]):
        kept.add(**{name: array[t] for name, array in rows.items()})


def from_rows(rows: Mapping[str, np.ndarray]) -> Gathered:
    worlds = {name.removeprefix(WORLD): array for name, array in rows.items() if name.startswith(WORLD)}
    return Gathered(**{name: np.array(rows[name]) for name in COLUMNS}, worlds=worlds)


def of_run(folder: Path, like: replay.Replay) -> Gathered:
    """The fixed batch of another run; ConfigError where it is not one of the same kind."""
    where = folder / "data" / NAME
    require(where.is_dir(), f"`fixed_from` must name a run with a fixed batch (data=fixed), but {folder} has none")
    rows = sound_rows(folder, where)
    wanted, there = set(like.dtype.names or ()), set(rows)
    require(wanted <= there, f"the batch of {folder} must have the fields of this run, but lacks"
            f" {', '.join(sorted(wanted - there))}; only advantage=rerollout keeps the worlds themselves")  # fmt: skip
    for name in sorted(wanted):
        shape, ours = rows[name].shape, (like.slots, *like.dtype[name].shape)
        require(shape == ours, f"the batch of {folder} must be as large as this run's, but its {name} is {shape}, not"
                f" {ours}; use its environment, `envs` and `steps`")  # fmt: skip
    check_numbers(folder, rows)
    return from_rows(rows)


def sound_rows(folder: Path, where: Path) -> dict[str, np.ndarray]:
    """What another run has written, as it has written it: by the checksums of its last checkpoint."""
    try:
        rows, status = replay.read(where), read_meta(folder).get("status")
        root = folder / "checkpoints"
        sums = checkpoint.read_progress(root, checkpoint.steps(root)[-1]).get("data_sums") or {}
        changed = replay.changed(where, sums.get(NAME) or {})
    except (ValueError, TypeError, LookupError, AttributeError, MemoryError, OverflowError, OSError) as error:
        raise ConfigError(f"the batch of `fixed_from`, {where}, cannot be read: {type(error).__name__}"
                          f" {error!s:.200}; take another run's") from None  # fmt: skip
    require(all(len(x) for x in rows.values()) and bool(rows), f"`fixed_from` must name a run with a fixed batch, but"
            f" {folder} ({status}) ended before it had one; run it anew with settings that work")  # fmt: skip
    require(not changed, f"the batch of `fixed_from` must be as its run wrote it, but {', '.join(changed)} of {where}"
            " was changed since (its checksum is another); put the file back, or take another run's")  # fmt: skip
    return rows


def check_numbers(folder: Path, rows: Mapping[str, np.ndarray]) -> None:
    """ConfigError where a batch holds what no world gives."""
    bad = [name for name in COLUMNS if rows[name].dtype.kind == "f" and not np.isfinite(rows[name]).all()]
    require(not bad, f"the batch of {folder} must hold finite numbers, but its {' and '.join(bad)} do not; take another"
            " run's")  # fmt: skip
