"""Where do the fixtures of file-based formats come from? The tools' own libraries write them; run by hand, seldom.

    make bench-peers && .venv-sb3/bin/python tests/formats/read/make_fixtures.py sb3
    python -m venv /tmp/o && /tmp/o/bin/pip install optuna pyyaml hydra-core && /tmp/o/bin/python tests/formats/read/make_fixtures.py optuna zoo hydra
    python -m venv /tmp/z && /tmp/z/bin/pip install rl_zoo3 && /tmp/z/bin/python tests/formats/read/make_fixtures.py zoo_run
    python -m venv /tmp/r && /tmp/r/bin/pip install 'ray[rllib]' torch pillow && /tmp/r/bin/python tests/formats/read/make_fixtures.py rllib
    python -m venv /tmp/d && /tmp/d/bin/pip install d3rlpy && /tmp/d/bin/python tests/formats/read/make_fixtures.py d3rlpy

`sb3` before `zoo` and `zoo_run`, which add cases to it. Weights are cut out of the model zips, and host names out of the rest. VERSIONS.json says
what wrote them.
"""  # noqa: E501 - commands stand on one line

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from make_binary_fixtures import FIXTURES, fresh, versions

# ---- Stable-Baselines3


def sb3() -> None:
    import torch
    from stable_baselines3 import DQN, PPO, SAC

    torch.set_num_threads(1)
    folder = fresh("sb3")
    for seed in (0, 1):
        _train(folder / f"ppo_cartpole_seed{seed}", PPO, "CartPole-v1", 4, 4096, seed, n_steps=128, batch_size=128)
    _train(folder / "sac_pendulum_seed0", SAC, "Pendulum-v1", 1, 900, 0, learning_starts=200, batch_size=32)
    _train(folder / "dqn_cartpole_seed0", DQN, "CartPole-v1", 1, 2000, 0, learning_starts=200)
    _split(folder / "dqn_cartpole_seed0", folder / "monitor_only" / "monitor")
    versions("stable_baselines3", "gymnasium")


def _train(folder: Path, algorithm, env: str, envs: int, steps: int, seed: int, **settings) -> None:
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure

    worlds = make_vec_env(env, envs, seed=seed, monitor_dir=str(folder))
    agent = algorithm("MlpPolicy", worlds, seed=seed, device="cpu", **settings)
    agent.set_logger(configure(str(folder), ["csv", "json"]))
    judged = make_vec_env(env, 1, seed=seed + 100)
    judge = EvalCallback(judged, eval_freq=steps // 4 // envs, n_eval_episodes=5, log_path=str(folder), verbose=0)
    agent.learn(steps, callback=judge)
    agent.save(folder / "final_model")
    _without_weights(folder / "final_model.zip")
    if seed or algorithm.__name__ != "SAC":  # one case is read from progress.json
        (folder / "progress.json").unlink()
    else:
        (folder / "progress.csv").unlink()


def _without_weights(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in ("data", "_stable_baselines3_version")}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in kept.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def _split(run: Path, folder: Path) -> None:
    """A run of which only the monitor file is left, in a folder of its own."""
    folder.mkdir(parents=True)
    shutil.copy(run / "0.monitor.csv", folder)


def zoo() -> None:
    """RL-Zoo keeps its settings as ordered dicts, dumped by PyYAML with Python's tags; a copy of a run gets them."""
    from collections import OrderedDict

    import yaml

    folder = FIXTURES / "sb3" / "zoo_ppo" / "CartPole-v1_1"
    shutil.rmtree(folder.parent, ignore_errors=True)
    shutil.copytree(FIXTURES / "sb3" / "ppo_cartpole_seed0", folder)
    (folder / "final_model.zip").unlink()
    settings = [("batch_size", 256), ("clip_range", "lin_0.2"), ("gae_lambda", 0.8), ("n_envs", 8), ("n_steps", 32),
                ("n_timesteps", 100000.0), ("learning_rate", "lin_0.001"), ("normalize", False),
                ("policy", "MlpPolicy"), ("policy_kwargs", "dict(net_arch=[64])")]  # fmt: skip
    args = [("algo", "ppo"), ("env", "CartPole-v1"), ("seed", 12), ("log_folder", "logs"), ("hyperparams", None)]
    inner = folder / "CartPole-v1"
    inner.mkdir()
    (inner / "config.yml").write_text(yaml.dump(OrderedDict(settings)))
    (inner / "args.yml").write_text(yaml.dump(OrderedDict(args)))
    (inner / "command.txt").write_text("python train.py --algo ppo --env CartPole-v1 --seed 12")
    versions("pyyaml")


def zoo_run() -> None:
    """Two seeds trained by RL-Zoo itself, one with all that it can be asked to keep; weights are cut out."""
    target = FIXTURES / "sb3" / "zoo_run"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        words = ["--algo", "ppo", "--env", "CartPole-v1", "--eval-episodes", "5", "--eval-freq", "1000", "--device",
                 "cpu", "--log-folder", "logs", "--hyperparams", "n_timesteps:4096"]  # fmt: skip
        for more in (["--seed", "12", "--save-freq", "2048"], ["--seed", "13", "-n", "2048"]):
            subprocess.run([sys.executable, "-m", "rl_zoo3.train", *words, *more], cwd=place, check=True)
        for path in Path(place).rglob("*.zip"):
            _without_weights(path)
        for path in Path(place).rglob("command.txt"):
            path.write_text(path.read_text().replace(sys.executable, "python"))
        shutil.copytree(Path(place) / "logs", target)
    versions("rl_zoo3")


# ---- RLlib


def rllib() -> None:
    os.environ |= {"RAY_AIR_NEW_OUTPUT": "0", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", object_store_memory=200_000_000)
    folder = fresh("rllib")
    for stack in ("new", "old"):
        _tune(folder / f"{stack}_stack", stack)
    versions("ray")


def _tune(folder: Path, stack: str) -> None:
    from ray import tune
    from ray.rllib.algorithms.ppo import PPOConfig

    new = stack == "new"
    config = PPOConfig().api_stack(enable_rl_module_and_learner=new, enable_env_runner_and_connector_v2=new)
    config = config.environment("CartPole-v1").env_runners(num_env_runners=0).learners(num_learners=0)
    batch = {"train_batch_size_per_learner" if new else "train_batch_size": 400}
    config = config.debugging(seed=3).training(minibatch_size=100, num_epochs=2, lr=1e-3, **batch)
    config = config.evaluation(evaluation_interval=2, evaluation_duration=4)
    with tempfile.TemporaryDirectory() as place:
        stop = tune.RunConfig(name="ppo", storage_path=place, stop={"training_iteration": 6}, verbose=0)
        tune.Tuner("PPO", param_space=config, run_config=stop).fit()
        (trial,) = Path(place).glob("ppo/PPO_*")
        _keep(trial, folder / "PPO_CartPole-v1_00000", with_params=new)


def _keep(trial: Path, folder: Path, with_params: bool) -> None:
    """result.json without what is the machine's; the config in its lines only where params.json is left out."""
    folder.mkdir(parents=True)
    rows = [json.loads(line) for line in (trial / "result.json").read_text().splitlines()]
    for i, row in enumerate(rows):
        row |= {"hostname": "host", "node_ip": "127.0.0.1", "pid": 4242}
        if with_params or i:
            row.pop("config", None)
    (folder / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if with_params:
        shutil.copy(trial / "params.json", folder)


# ---- d3rlpy


def d3rlpy() -> None:
    """Two offline runs and an online one, of networks of eight units; the models are not kept."""
    import d3rlpy as library
    import torch

    torch.set_num_threads(1)
    folder = fresh("d3rlpy")
    tiny = library.models.VectorEncoderFactory(hidden_units=[8])
    cql = library.algos.DiscreteCQLConfig(batch_size=32, encoder_factory=tiny)
    iql = library.algos.IQLConfig(batch_size=32, n_critics=1, actor_encoder_factory=tiny, critic_encoder_factory=tiny,
                                  value_encoder_factory=tiny)  # fmt: skip
    _offline(folder, "cql_20260101000000", cql, "CartPole-v1")
    _offline(folder, "iql_20260101000100", iql, "Pendulum-v1")
    _online(folder, "dqn_20260101000200", library.algos.DQNConfig(batch_size=8, encoder_factory=tiny), "CartPole-v1")
    versions("d3rlpy")


def _adapter(folder: Path):
    import d3rlpy as library

    return library.logging.FileAdapterFactory(root_dir=str(folder))


def _offline(folder: Path, name: str, config, env: str) -> None:
    import d3rlpy as library
    import gymnasium

    library.seed(0)
    world = gymnasium.make(env, max_episode_steps=40)
    buffer = library.dataset.create_fifo_replay_buffer(limit=2000, env=world)
    random = library.algos.DiscreteRandomPolicyConfig() if "CartPole" in env else library.algos.RandomPolicyConfig()
    random.create().collect(world, buffer=buffer, n_steps=1000, show_progress=False)
    judge = library.metrics.EnvironmentEvaluator(world, n_trials=2)
    judges = {"environment": judge, "td_error": library.metrics.TDErrorEvaluator()}
    config.create(device=False).fit(
        buffer, n_steps=500, n_steps_per_epoch=50, experiment_name=name, with_timestamp=False, show_progress=False,
        save_interval=1000, evaluators=judges, logger_adapter=_adapter(folder))  # fmt: skip


def _online(folder: Path, name: str, config, env: str) -> None:
    import d3rlpy as library
    import gymnasium

    library.seed(0)
    worlds = [gymnasium.make(env, max_episode_steps=40) for _ in range(2)]
    config.create(device=False).fit_online(
        worlds[0], eval_env=worlds[1], n_steps=400, n_steps_per_epoch=100, eval_n_trials=2, save_interval=1000,
        experiment_name=name, with_timestamp=False, show_progress=False, logger_adapter=_adapter(folder))  # fmt: skip


# ---- Optuna


def optuna() -> None:
    import optuna as library

    library.logging.set_verbosity(library.logging.ERROR)
    folder = fresh("optuna")
    journal = library.storages.journal.JournalFileBackend(str(folder / "journal.log"))
    for storage in (
        library.storages.RDBStorage(f"sqlite:///{folder}/study.db"),
        library.storages.JournalStorage(journal),
    ):
        sampler = library.samplers.RandomSampler(seed=0)
        study = library.create_study(storage=storage, study_name="ppo", direction="maximize", sampler=sampler)
        study.optimize(_objective, n_trials=5, catch=(ArithmeticError,))
        study.enqueue_trial({"lr": 1e-3})
    versions("optuna")


def _objective(trial) -> float:
    import optuna as library

    lr = trial.suggest_float("lr", 1e-5, 1e-2, log=True)
    trial.suggest_int("n_steps", 32, 256)
    trial.suggest_categorical("activation", ["tanh", "relu"])
    for step in range(4):
        trial.report(math.inf if trial.number == 4 and step == 3 else (step + 1) * lr, step * 1000)
        if trial.number == 2 and step == 1:
            raise library.TrialPruned
    if trial.number == 3:
        raise ArithmeticError
    return 4 * lr


# ---- Plain files


JOB = """import hydra, pathlib, sys
sys.path.insert(0, {here!r})
from make_folder_fixtures import _rows, _write

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    place = hydra.core.hydra_config.HydraConfig.get().runtime.output_dir
    _write(pathlib.Path(place) / "train.csv", _rows(cfg.seed))

main()
"""


def hydra() -> None:
    """A sweep of two learning rates and two seeds, run by Hydra itself in its own folders."""
    target = FIXTURES / "csv" / "hydra"
    shutil.rmtree(target, ignore_errors=True)
    place = Path("/tmp/relab-hydra")  # Hydra writes down where it ran
    shutil.rmtree(place, ignore_errors=True)
    (place / "conf" / "agent").mkdir(parents=True)
    (place / "conf" / "config.yaml").write_text("defaults: [agent: ppo, _self_]\nseed: 0\nenv: {name: Ant-v5}\n")
    (place / "conf" / "agent" / "ppo.yaml").write_text("name: PPO\nlr: 3e-4\nlayers: [64, 64]\n")
    (place / "train.py").write_text(JOB.format(here=str(Path(__file__).parent)))
    words = ["-m", "seed=0,1", "agent.lr=1e-3,3e-4", "hydra.sweep.dir=multirun"]
    subprocess.run([sys.executable, "train.py", *words], cwd=place, check=True)
    shutil.copytree(place / "multirun", target)
    versions("hydra-core")


if __name__ == "__main__":
    makers = {"sb3": sb3, "zoo": zoo, "zoo_run": zoo_run, "rllib": rllib, "d3rlpy": d3rlpy, "optuna": optuna,
              "hydra": hydra}  # fmt: skip
    for name in sys.argv[1:]:
        makers[name]()
