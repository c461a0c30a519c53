"""Where do the binary fixtures come from? The tools' own libraries write them; this script is run by hand, seldom.

    python -m venv /tmp/v && /tmp/v/bin/pip install tensorboard==2.21.0 tensorboardX==2.6.5 wandb==0.31.0 \\
        mlflow-skinny==3.17.2 sqlalchemy alembic pandas trackio==0.43.0 swanlab==0.10.3
    /tmp/v/bin/python tests/formats/read/make_binary_fixtures.py tensorboard wandb mlflow trackio swanlab

Clock and host name are replaced, so that a second run writes nearly the same bytes. VERSIONS.json says what wrote them.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

FIXTURES = Path(os.environ.get("RELAB_FIXTURES") or Path(__file__).parent / "fixtures")  # a test writes elsewhere
BEGIN = 1_700_000_000.0
_clock = [BEGIN]


def clock() -> float:
    _clock[0] += 0.01
    return _clock[0]


def fake_world() -> None:
    """One host name, one process id, and a clock that starts at BEGIN."""
    socket.gethostname = lambda: "host"
    os.getpid = lambda: 4242
    time.time = clock


def fresh(name: str) -> Path:
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def versions(*packages: str) -> None:
    path = FIXTURES / "VERSIONS.json"
    by_package = json.loads(path.read_text()) if path.exists() else {}
    by_package |= {package: importlib.metadata.version(package) for package in packages}
    path.write_text(json.dumps(dict(sorted(by_package.items())), indent=1) + "\n")


# ---- TensorBoard


def tensorboard() -> None:
    fake_world()
    folder = fresh("tensorboard")
    _sb3(folder / "sb3")
    _continued(folder / "continued")
    _rewound(folder / "rewound")
    _two_axes(folder / "two_axes")
    _hparams(folder / "with_hparams")
    _scalars(folder / "with_scalars")
    _tensors(folder / "tensors")
    _parts(folder / "parts")
    _cleanrl(folder / "cleanrl")
    versions("tensorboard", "tensorboardX", "protobuf")


def _writer(folder: Path):
    from tensorboardX import SummaryWriter

    return SummaryWriter(str(folder), flush_secs=1)


def _ppo(writer, iterations: range, size: int = 2048) -> None:
    """What SB3's logger writes after each iteration."""
    for i in iterations:
        step = (i + 1) * size
        writer.add_scalar("rollout/ep_rew_mean", 20.0 + 5 * i, step)
        writer.add_scalar("rollout/ep_len_mean", 20.0 + 5 * i, step)
        writer.add_scalar("train/entropy_loss", -0.69 + 0.01 * i, step)
        writer.add_scalar("train/value_loss", 8.0 / (i + 1), step)
        writer.add_scalar("train/approx_kl", math.nan if i == 3 else 0.01, step)
        writer.add_scalar("custom/<b>tag", i, step)


def _sb3(folder: Path) -> None:
    """Two calls of learn(), each from step 0: two runs."""
    for name in ("PPO_1", "PPO_2"):
        writer = _writer(folder / name)
        _ppo(writer, range(12))
        writer.close()


def _continued(folder: Path) -> None:
    """PPO_2 goes on right behind PPO_1: one run."""
    for name, part in (("PPO_1", range(6)), ("PPO_2", range(6, 10))):
        writer = _writer(folder / name)
        _ppo(writer, part)
        writer.close()


def _rewound(folder: Path) -> None:
    """A crash after iteration 8, a resume from the checkpoint of iteration 5, by another process."""
    writer = _writer(folder)
    _ppo(writer, range(8))
    writer.close()
    os.getpid = lambda: 4343
    writer = _writer(folder)
    _ppo(writer, range(5, 12))
    writer.close()
    os.getpid = lambda: 4242


def _two_axes(folder: Path) -> None:
    """Training counts environment steps, the evaluation writer counts iterations; both write into one folder."""
    train, judge = _writer(folder), None
    for i in range(24):
        _ppo(train, range(i, i + 1), 16384)
        if i % 8 == 7:
            judge = judge or _writer(folder)
            judge.add_scalar("multi_eval/survival", 0.5 + 0.01 * i, i + 1)
    train.close()
    judge.close()


def _hparams(folder: Path) -> None:
    """torch's add_hparams makes a sub-folder named by the time."""
    writer = _writer(folder)
    _ppo(writer, range(5))
    writer.add_hparams({"learning_rate": 3e-4, "gamma": 0.98, "env": "CartPole-v1", "seed": 5, "norm_adv": True},
                       {"hparam/final": 40.0})  # fmt: skip
    writer.close()


def _scalars(folder: Path) -> None:
    """add_scalars makes a sub-folder for each of the curves that are drawn together."""
    writer = _writer(folder)
    _ppo(writer, range(3))
    for step in range(3):
        writer.add_scalars("losses/both", {"a": step, "b": 10 * step}, 2048 * step)
    writer.close()


def _tensors(folder: Path) -> None:
    """TensorFlow 2 stores a scalar as a tensor with metadata; beside it a text, a histogram and a picture."""
    import numpy as np
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step in range(6):
        summary: summary_pb2.Summary = scalar_pb("episode_return", 1.5 * step)
        writer.add_event(event_pb2.Event(wall_time=clock(), step=step * 100, summary=summary))
    writer.close()
    writer = _writer(folder)
    writer.add_text("note", "a text", 0)
    writer.add_histogram("weights", np.arange(10.0), 0)
    writer.add_image("picture", np.zeros((3, 4, 4), np.uint8), 0)
    writer.close()


def _parts(folder: Path) -> None:
    """train/ and eval/ of one program."""
    for part, name in (("train", "loss/value"), ("eval", "return")):
        writer = _writer(folder / part)
        for step in range(0, 500, 100):
            writer.add_scalar(name, step / 10, step)
        writer.close()


def _cleanrl(folder: Path) -> None:
    for seed in (1, 2):
        writer = _writer(folder / f"CartPole-v1__ppo__{seed}__1700000000")
        settings = {"exp_name": "ppo", "seed": seed, "torch_deterministic": True, "env_id": "CartPole-v1",
                    "total_timesteps": 500000, "learning_rate": 0.00025, "num_envs": 4, "num_steps": 128, "gamma": 0.99,
                    "gae_lambda": 0.95, "num_minibatches": 4, "update_epochs": 4, "norm_adv": True, "clip_coef": 0.2,
                    "ent_coef": 0.01, "vf_coef": 0.5, "max_grad_norm": 0.5, "target_kl": None}  # fmt: skip
        rows = "\n".join(f"|{key}|{value}|" for key, value in settings.items())
        writer.add_text("hyperparameters", "|param|value|\n|-|-|\n" + rows)
        for i in range(1, 9):
            step = 512 * i
            for k in range(2):  # two environments end at the same step
                writer.add_scalar("charts/episodic_return", 20.0 * i + k, step)
                writer.add_scalar("charts/episodic_length", 20.0 * i + k, step)
            for name, value in {"value_loss": 10.0, "policy_loss": -0.01, "entropy": 0.69 - 0.01 * i,
                                "old_approx_kl": 0.001, "approx_kl": 0.002, "clipfrac": 0.1,
                                "explained_variance": 0.1 * i}.items():  # fmt: skip
                writer.add_scalar(f"losses/{name}", value, step)
            writer.add_scalar("charts/learning_rate", 0.00025, step)
            writer.add_scalar("charts/SPS", 900 + i, step)
        writer.close()


# ---- Weights & Biases


def wandb() -> None:
    """Two offline runs; one has nested keys, numbers that are not finite, and more rows than fit into one block."""
    folder = fresh("wandb")
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(folder),
                   "WANDB_DISABLE_GIT": "true", "WANDB_DISABLE_CODE": "true", "WANDB_X_DISABLE_STATS": "true",
                   "WANDB_X_DISABLE_META": "true", "WANDB_HOST": "host"}  # fmt: skip
    for seed in (0, 1):
        _wandb_run(seed)
    for path in sorted(folder.rglob("*")):  # the runs' binary files are all that is read
        if path.is_symlink() or (path.is_file() and path.suffix != ".wandb"):
            path.unlink()
    for path in sorted((p for p in folder.rglob("*") if p.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
    versions("wandb")


def _wandb_run(seed: int) -> None:
    import wandb

    config = {"learning_rate": 3e-4, "env_id": "CartPole-v1", "seed": seed, "net": {"hidden": [64, 64]}, "clip": 0.2}
    run = wandb.init(project="relab", id=f"fixture{seed}", name=f"ppo-{seed}", group="ppo", config=config)
    for i in range(300 if seed == 0 else 5):
        row = {"global_step": 128 * i, "episodic_return": 10.0 + i, "losses": {"entropy": 0.69, "approx_kl": 0.01}}
        if i == 3:
            row["losses"]["approx_kl"] = math.nan
        if i == 4:
            row["episodic_return"] = math.inf
        run.log(row)
    run.summary["best/return"] = 309.0
    run.config.update({"added_later": 7})
    run.finish()


# ---- MLflow


def mlflow() -> None:
    """The same runs in a file store and in an SQLite store."""
    folder = fresh("mlflow")
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    _mlflow_runs(f"file://{folder}/mlruns")
    _mlflow_runs(f"sqlite:///{folder}/mlflow.db")
    shutil.rmtree(folder / "artifacts", ignore_errors=True)
    shutil.rmtree(folder / "mlruns" / "0")  # the default experiment, empty
    _shrink(folder / "mlflow.db")
    versions("mlflow-skinny", "sqlalchemy")


KEPT = {"experiments", "runs", "params", "tags", "metrics", "latest_metrics", "experiment_tags", "alembic_version"}


def _shrink(path: Path, kept: set[str] = KEPT) -> None:
    """Without the fifty empty tables of other features."""
    import sqlite3

    with sqlite3.connect(path) as base:
        if "experiments" in kept:
            base.execute("DELETE FROM experiments WHERE experiment_id = 0")
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if name not in kept and not name.startswith("sqlite_"):
                base.execute(f'DROP TABLE "{name}"')
    base.close()
    with sqlite3.connect(path) as base:
        base.execute("VACUUM")
    base.close()


def _mlflow_runs(uri: str) -> None:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(uri)
    experiment = client.create_experiment("cartpole", artifact_location="file:///tmp/artifacts")
    for seed in (0, 1):
        run = client.create_run(experiment, run_name=f"ppo-seed{seed}", start_time=int(BEGIN * 1000)).info.run_id
        params = {"lr": "0.0003", "seed": str(seed), "env_id": "CartPole-v1", "clip_range": "0.2", "use_sde": "False"}
        rows = [Metric("rollout/ep_rew_mean", 20.0 + i, int(BEGIN * 1000) + i, 100 * i) for i in range(10)]
        rows += [
            Metric("train/loss", [1.5, math.nan, math.inf, -math.inf][i], int(BEGIN * 1000) + i, i) for i in range(4)
        ]
        client.log_batch(run, rows, [Param(k, v) for k, v in params.items()])
        client.set_terminated(run, "FINISHED" if seed == 0 else "FAILED", end_time=int(BEGIN * 1000) + 60_000)


# ---- trackio, SwanLab


CONFIG = {"learning_rate": 3e-4, "env_id": "CartPole-v1", "clip_range": 0.2, "net": {"hidden": [64, 64]}}


def _rows(count: int) -> Iterator[dict]:
    """Nested keys, a NaN, an infinity and a zero."""
    for i in range(count):
        kl = math.nan if i == 3 else 0.01
        value = math.inf if i == 4 else float(i)
        yield {"global_step": 128 * i, "episodic_return": value, "losses": {"entropy": 0.69, "approx_kl": kl}}


def trackio() -> None:
    """Two runs of one project; a third has the name of the second."""
    folder = fresh("trackio")
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio as library

    for name, seed in (("ppo-0", 0), ("ppo-1", 1), ("ppo-1", 2)):
        library.init(project="relab", name=name, group="ppo", config={**CONFIG, "seed": seed}, embed=False)
        for row in _rows(20 if seed == 0 else 6):
            library.log(row)
        library.finish()
    for path in folder.iterdir():
        if path.name != "relab.db":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    _shrink(folder / "relab.db", {"metrics", "configs", "project_metadata"})
    versions("trackio")


def swanlab() -> None:
    """Two runs, one of which ends with an error; the logs of the machine and of the console are left out."""
    import swanlab as library

    folder = fresh("swanlab")
    place = Path("/tmp/relab-swanlog")  # the log names it
    shutil.rmtree(place, ignore_errors=True)
    for seed in (0, 1):
        library.init(project="relab", experiment_name=f"ppo-{seed}", config={**CONFIG, "seed": seed}, mode="offline",
                     logdir=str(place))  # fmt: skip
        for row in _rows(6 if seed else 300):  # the longer one takes more than one block
            library.log(row)
        library.finish(**({"state": "crashed", "error": "out of luck"} if seed else {}))
    for path in [*place.glob("run-*/*.swanlab"), *place.glob("run-*/files/config.yaml")]:
        kept = folder / path.relative_to(place)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, kept)
    versions("swanlab")


MAKERS = {"tensorboard": tensorboard, "wandb": wandb, "mlflow": mlflow, "trackio": trackio, "swanlab": swanlab}

if __name__ == "__main__":
    for word in sys.argv[1:] or MAKERS:
        MAKERS[word]()
