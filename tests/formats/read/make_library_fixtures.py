"""Where do the logs of training libraries come from? The libraries write them, in tiny runs; by hand, seldom.

    python -m venv /tmp/l && /tmp/l/bin/pip install rsl-rl-lib skrl tianshou torchrl tensorboardX tensorboard
    /tmp/l/bin/python tests/formats/read/make_library_fixtures.py rsl_rl skrl tianshou torchrl sample_factory

rsl_rl, skrl and Tianshou train with their own loops; TorchRL's logger is given numbers. Sample Factory,
which needs processes, is written with the tags and settings that its code logs.
"""

from __future__ import annotations

import json
import sys

from make_binary_fixtures import FIXTURES, fake_world, fresh, versions

BOARDS = FIXTURES / "boards"


# ---- rsl_rl


def rsl_rl() -> None:
    import torch
    from rsl_rl.runners import OnPolicyRunner

    fake_world()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = fresh("boards/rsl_rl/2026-01-01_00-00-00")
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
    noise = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
    algorithm = {"class_name": "PPO", "num_learning_epochs": 4, "num_mini_batches": 2, "learning_rate": 1e-3,
                 "schedule": "fixed", "gamma": 0.95, "lam": 0.9, "entropy_coef": 0.005, "value_loss_coef": 1.0,
                 "clip_param": 0.2, "max_grad_norm": 1.0, "use_clipped_value_loss": True}  # fmt: skip
    config = {"num_steps_per_env": 16, "save_interval": 1000, "algorithm": algorithm, "obs_groups": {},
              "actor": {**model, "distribution_cfg": noise}, "critic": dict(model)}  # fmt: skip
    OnPolicyRunner(_points(), config, log_dir=str(folder)).learn(30)
    for path in [*folder.glob("*.pt"), *folder.glob("git/*")]:
        path.unlink()
    (folder / "git").rmdir()
    (folder / "params").mkdir()  # as IsaacLab keeps the settings
    kept = {key: value for key, value in algorithm.items() if value is not None}
    lines = [f"seed: 42\nmax_iterations: 30\nnum_steps_per_env: 16\nalgorithm: {json.dumps(kept)}\nrun_name: ''\n"]
    (folder / "params" / "agent.yaml").write_text("".join(lines))
    versions("rsl-rl-lib")


def _points():
    """Sixteen points on a plane that are to reach its middle."""
    import torch
    from rsl_rl.env import VecEnv
    from tensordict import TensorDict

    class Points(VecEnv):
        num_envs, num_actions, max_episode_length, device, cfg = 16, 2, 10, "cpu", {}

        def __init__(self) -> None:
            self.episode_length_buf = torch.zeros(16, dtype=torch.long)
            self.at = torch.rand(16, 2) * 2 - 1

        def get_observations(self):
            return TensorDict({"policy": self.at.clone()}, batch_size=[16])

        def step(self, actions):
            self.at = (self.at + 0.2 * actions.clamp(-1, 1)).clamp(-2, 2)
            rewards, self.episode_length_buf = -self.at.norm(dim=1), self.episode_length_buf + 1
            done = self.episode_length_buf >= self.max_episode_length
            self.at = torch.where(done[:, None], torch.rand(16, 2) * 2 - 1, self.at)
            self.episode_length_buf = self.episode_length_buf * ~done
            extras = {"time_outs": done, "log": {"Episode_Reward/distance": rewards.mean()}}
            return self.get_observations(), rewards, done, extras

    return Points()


# ---- skrl


def skrl() -> None:
    import gymnasium
    import torch
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils import set_seed

    fake_world()
    torch.set_num_threads(1)
    set_seed(0)
    folder = fresh("boards/skrl")
    env = wrap_env(gymnasium.make_vec("Pendulum-v1", num_envs=4, max_episode_steps=20))
    models = {name: _skrl_model(env, name) for name in ("policy", "value")}
    config = PPO_CFG(rollouts=32, learning_epochs=2, mini_batches=2, learning_rate=1e-3, entropy_loss_scale=0.01)
    config.experiment.directory, config.experiment.experiment_name = str(folder), "26-01-01_00-00-00-000000_PPO"
    config.experiment.write_interval, config.experiment.checkpoint_interval = 32, 0
    agent = PPO(models=models, memory=RandomMemory(memory_size=32, num_envs=4, device="cpu"), cfg=config, device="cpu",
                observation_space=env.observation_space, action_space=env.action_space)  # fmt: skip
    SequentialTrainer(cfg={"timesteps": 800, "headless": True, "disable_progressbar": True}, env=env,
                      agents=agent).train()  # fmt: skip
    versions("skrl")


def _skrl_model(env, name: str):
    import torch
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model

    kind = GaussianMixin if name == "policy" else DeterministicMixin

    class Net(kind, Model):
        def __init__(self) -> None:
            Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
            kind.__init__(self)
            self.net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
            self.log_std = torch.nn.Parameter(torch.zeros(1))

        def compute(self, inputs, role=""):
            out = self.net(inputs["observations"])
            return (out, {"log_std": self.log_std}) if name == "policy" else (out, {})

    return Net()


# ---- Tianshou


def tianshou() -> None:
    """Tianshou's logger, given the statistics that its trainers give it, of numbers made up here."""
    from dataclasses import asdict

    import numpy as np
    from tianshou.algorithm.modelfree.a2c import A2CTrainingStats
    from tianshou.data import CollectStats, SequenceSummaryStats
    from tianshou.utils import TensorboardLogger
    from torch.utils.tensorboard import SummaryWriter

    fake_world()
    folder = fresh("boards/tianshou")
    logger = TensorboardLogger(SummaryWriter(str(folder)), training_interval=1, update_interval=1)
    for i in range(1, 13):
        returns = 20.0 * i + np.arange(4.0)
        stats = CollectStats.with_autogenerated_stats(returns=returns, lens=returns.astype(int),
                                                      n_collected_episodes=4, n_collected_steps=500)  # fmt: skip
        logger.log_training_data(asdict(stats), 500 * i)
        parts = [SequenceSummaryStats.from_sequence(np.full(4, x)) for x in (0.5, -0.01, 4.0 / i, 0.69 - 0.02 * i)]
        loss, actor, value, entropy = parts
        update = A2CTrainingStats(loss=loss, actor_loss=actor, vf_loss=value, ent_loss=entropy, gradient_steps=40)
        logger.log_update_data(asdict(update), i)
        if i % 3 == 0:
            logger.log_test_data(asdict(stats), 500 * i)
    logger.finalize()
    versions("tianshou")


# ---- TorchRL


def torchrl() -> None:
    from torchrl.record.loggers.csv import CSVLogger

    folder = fresh("torchrl")
    for seed in (0, 1):
        logger = CSVLogger(exp_name=f"ppo_{seed}", log_dir=str(folder))
        logger.log_hparams({"seed": seed, "env": {"env_name": "Pendulum-v1"}, "optim": {"lr": 0.0003, "anneal": True},
                            "loss": {"gamma": 0.99, "clip_epsilon": 0.2}})  # fmt: skip
        for i in range(1, 13):
            numbers = {"train/reward": 10.0 * i + seed, "train/episode_length": 200.0, "train/loss_objective": -0.01,
                       "train/loss_critic": 3.0 / i, "train/loss_entropy": -0.001, "train/entropy": 1.4 - 0.02 * i,
                       "train/kl_approx": 0.004 * (-1) ** i, "train/clip_fraction": 0.1, "train/lr": 3e-4,
                       "time/speed": 900.0}  # fmt: skip
            numbers |= {"eval/reward": 11.0 * i} if i % 4 == 0 else {}
            for name, value in numbers.items():
                logger.log_scalar(name, value, step=2048 * i)
        for empty in ("videos",):
            (folder / f"ppo_{seed}" / empty).rmdir()
    versions("torchrl")


# ---- Sample Factory, Spinning Up, Acme


def sample_factory() -> None:
    from tensorboardX import SummaryWriter

    fake_world()
    folder = fresh("sample_factory") / "doom_basic"
    writer = SummaryWriter(str(folder / ".summary" / "0"))
    for i in range(1, 13):
        returns = {"reward/reward": 5.0 * i, "reward/reward_min": 4.0 * i, "reward/reward_max": 6.0 * i,
                   "len/len": 300.0 - i, "policy_stats/avg_true_objective": 5.0 * i}  # fmt: skip
        train = {"lr": 1e-4, "entropy": 1.5 - 0.05 * i, "policy_loss": -0.01, "value_loss": 2.0 / i, "loss": 1.0,
                 "kl_divergence": 0.004, "kl_divergence_max": 0.02, "fraction_clipped": 0.08, "ratio_max": 1.4,
                 "ratio_mean": 0.03, "grad_norm": 0.5, "value": 0.1, "adv_mean": 0.01, "adv_std": 0.4,
                 "version_diff_avg": 1.0}  # fmt: skip
        rest = {"perf/_fps": 9000.0, "perf/_sample_throughput": 9100.0, "stats/master_process_memory_mb": 300.0}
        for tag, value in {**returns, **rest, **{f"train/{k}": v for k, v in train.items()}}.items():
            writer.add_scalar(tag, value, 20_000 * i)
    writer.close()
    config = {"algo": "APPO", "env": "doom_basic", "experiment": "doom_basic", "train_dir": "/tmp/sf", "seed": 3,
              "learning_rate": 1e-4, "gamma": 0.99, "gae_lambda": 0.95, "ppo_clip_ratio": 0.1, "rollout": 32,
              "value_loss_coeff": 0.25, "exploration_loss_coeff": 0.001, "num_epochs": 1, "num_batches_per_epoch": 2,
              "stats_avg": 100, "train_for_env_steps": 240_000, "cli_args": {"seed": 3}, "git_hash": "unknown",
              "command_line": "--env=doom_basic --seed=3"}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=4))
    versions("tensorboardX")


if __name__ == "__main__":
    makers = {"rsl_rl": rsl_rl, "skrl": skrl, "tianshou": tianshou, "torchrl": torchrl,
              "sample_factory": sample_factory}  # fmt: skip
    for name in sys.argv[1:]:
        makers[name]()
