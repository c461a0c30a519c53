"""Does every tag that the libraries log have a meaning? Lists from their own sources, and what stays without one.

Stable-Baselines3 2.9.2: the calls of logger.record in its package. CleanRL: the calls of writer.add_scalar in
ppo*.py, dqn*.py, c51*.py, ddpg*.py, td3*.py and sac*.py at 004f8a0. rsl_rl: add_scalar in rsl_rl/utils/logger.py at
04bb6c6 and rsl_rl/runners/on_policy_runner.py at 07274d2, `loss_dict` of rsl_rl/algorithms/ppo.py. skrl: tracking_data
in skrl/agents/torch/base.py at 001413d, track_data in ppo.py, sac.py, td3.py and dqn.py beside it at 961092f. Tianshou:
utils/logger/logger_base.py at 03bdfff, the fields of A2CTrainingStats (PPO's too, algorithm/modelfree/ppo.py at
03132cc), SACTrainingStats and CollectStats. RLlib: utils/metrics/__init__.py at 03453d9, what is named and logged in
algorithms/ppo/ppo.py at 00655e6 and algorithms/ppo/torch/ppo_torch_learner.py at 04bef2a.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from relab import cli
from relab.formats.read import libraries, rllib, table, tensorboard
from relab.record import glossary
from where import ROOT

ROLLOUT = "rollout/ep_len_mean rollout/ep_rew_mean rollout/success_rate"
TIME = "time/episodes time/fps time/iterations time/time_elapsed time/total_timesteps"
EVAL = "eval/mean_ep_length eval/mean_reward eval/success_rate"
COMMON = f"{ROLLOUT} {TIME} {EVAL} train/learning_rate train/n_updates"
SB3 = {
    "ppo": f"{COMMON} train/approx_kl train/clip_fraction train/clip_range train/clip_range_vf train/entropy_loss"
    " train/explained_variance train/loss train/policy_gradient_loss train/std train/value_loss",
    "a2c": f"{COMMON} train/entropy_loss train/explained_variance train/policy_loss train/std train/value_loss",
    "dqn": f"{COMMON} rollout/exploration_rate train/loss",
    "sac": f"{COMMON} train/actor_loss train/critic_loss train/ent_coef train/ent_coef_loss",
    "td3": f"{COMMON} train/actor_loss train/critic_loss",
}
# The clip range is a setting; PPO's total loss is a weighted sum; std is taken by rules, which know the action range;
# n_updates counts passes over the batch in PPO.
UNNAMED = {"ppo": {"train/clip_range", "train/clip_range_vf", "train/loss", "train/std", "train/n_updates"},
           "a2c": {"train/std"}}  # fmt: skip
CHARTS = "charts/episodic_return charts/episodic_length charts/SPS"
CRITICS = "losses/qf1_values losses/qf2_values losses/qf1_loss losses/qf2_loss losses/qf_loss"
CLEANRL = {
    "ppo": f"{CHARTS} charts/learning_rate losses/value_loss losses/policy_loss losses/entropy losses/old_approx_kl"
    " losses/approx_kl losses/clipfrac losses/explained_variance",
    "dqn": f"{CHARTS} charts/epsilon losses/td_loss losses/q_values",
    "c51": f"{CHARTS} charts/epsilon losses/loss losses/q_values",
    "ddpg": f"{CHARTS} losses/qf1_loss losses/qf1_values losses/actor_loss",
    "td3": f"{CHARTS} {CRITICS} losses/actor_loss",
    "sac": f"{CHARTS} {CRITICS} losses/actor_loss losses/alpha losses/alpha_loss",
}
TWO = {"losses/qf2_values", "losses/qf1_loss", "losses/qf2_loss"}  # the parts of what is named as a whole
REST = {"td3": TWO, "sac": TWO, "c51": {"losses/loss"}}  # a cross-entropy of distributions, no squared error


# ---- Libraries that a name of theirs tells

RSL_RL = (
    "Loss/value Loss/surrogate Loss/entropy Loss/rnd Loss/symmetry Loss/learning_rate Policy/mean_std Perf/total_fps"
    " Perf/collection_time Perf/learning_time Train/mean_reward Train/mean_episode_length Train/mean_reward/time"
    " Train/mean_episode_length/time"
).split()
OLD_RSL_RL = [{"Loss/value": "Loss/value_function", "Policy/mean_std": "Policy/mean_noise_std",
               "Perf/collection_time": "Perf/collection time"}.get(tag, tag) for tag in RSL_RL]  # fmt: skip
RND = ["Rnd/mean_extrinsic_reward", "Rnd/mean_intrinsic_reward", "Rnd/weight"]
# Losses of parts that rules know nothing of; the standard deviation is taken by rules; the rest repeats by the clock.
NO_RSL_RL = {"Loss/rnd", "Loss/symmetry", "Train/mean_reward/time", "Train/mean_episode_length/time"}
STDS = {"Policy/mean_std", "Policy/mean_noise_std", "Policy / Standard deviation"}

ENDS = [f"{what} ({end})" for what in ("Reward / Instantaneous reward", "Reward / Total reward",
                                       "Episode / Total timesteps") for end in ("max", "min", "mean")]  # fmt: skip
CRITIC = [f"{what} ({end})" for what in ("Q-network / Q1", "Q-network / Q2", "Target / Target")
          for end in ("max", "min", "mean")]  # fmt: skip
RATES = ["Learning / Policy learning rate", "Learning / Critic learning rate"]
TIME_MS = "Stats / Algorithm update time (ms)"
SKRL = {
    "ppo": [*ENDS, TIME_MS, "Loss / Policy loss", "Loss / Value loss", "Loss / Entropy loss",
            "Policy / Standard deviation", "Learning / Learning rate"],
    "sac": [*ENDS, *CRITIC, *RATES, TIME_MS, "Loss / Policy loss", "Loss / Critic loss", "Loss / Entropy loss",
            "Coefficient / Entropy coefficient"],
    "td3": [*ENDS, *CRITIC, *RATES, TIME_MS, "Loss / Policy loss", "Loss / Critic loss"],
    "dqn": [*ENDS, *CRITIC[6:], TIME_MS, "Loss / Q-network loss", "Learning / Learning rate",
            "Exploration / Exploration epsilon"],
}  # fmt: skip
ANYWHERE = {"Episode / Total timesteps (max)", "Episode / Total timesteps (min)", TIME_MS}
PARTS = {tag for tag in CRITIC if "network" in tag and tag != "Q-network / Q1 (mean)"} | {RATES[1]}
# PPO's entropy loss is minus the entropy times a scale that is not logged.
NO_SKRL = {"ppo": {"Loss / Entropy loss"}, "sac": PARTS, "td3": PARTS}

COLLECTED = [f"{scope}/{name}" for scope in ("training", "test") for name in (
    "env_step", "n_collected_episodes", "n_collected_steps", "collect_time", "collect_speed",
    *(f"{what}_stat/{part}" for what in ("returns", "lens") for part in ("mean", "std", "max", "min")))]  # fmt: skip
UPDATES = ["update/update_step", "update/train_time", "update/smoothed_loss"]
SUMMED = [f"update/{loss}/{part}" for loss in ("loss", "actor_loss", "vf_loss", "ent_loss")
          for part in ("mean", "std", "max", "min")]  # fmt: skip
TIANSHOU = {
    "ppo": [*COLLECTED, *UPDATES, *SUMMED, "update/gradient_steps"],
    "sac": [*COLLECTED, *UPDATES, *(f"update/{name}" for name in
            ("actor_loss", "critic1_loss", "critic2_loss", "alpha", "alpha_loss"))],
}  # fmt: skip
KNOWN_TIANSHOU = {
    *(f"training/returns_stat/{part}" for part in ("mean", "std", "max", "min")), "training/lens_stat/mean",
    "training/n_collected_episodes", "test/returns_stat/mean", "test/returns_stat/std", "test/lens_stat/mean",
    "test/n_collected_episodes", "update/actor_loss/mean", "update/vf_loss/mean", "update/ent_loss/mean",
    "update/actor_loss", "update/critic1_loss", "update/alpha", "update/alpha_loss",
}  # fmt: skip

LEARNER = (
    "policy_loss vf_loss vf_loss_unclipped vf_explained_var entropy mean_kl_loss curr_kl_coeff curr_entropy_coeff"
    " total_loss default_optimizer_learning_rate gradients_default_optimizer_global_norm"
)
RLLIB = [*(f"learners/default_policy/{name}" for name in LEARNER.split()),
         *(f"env_runners/episode_{name}" for name in ("return_mean", "return_min", "return_max", "len_mean")),
         "env_runners/num_episodes", "env_runners/num_episodes_lifetime", "training_iteration", "time_total_s",
         "num_env_steps_sampled_lifetime", "evaluation/env_runners/episode_return_mean"]  # fmt: skip
# Cut off row by row; a penalty's coefficient; a weighted sum; the column of steps.
NO_RLLIB = {*(f"learners/default_policy/{name}" for name in ("vf_loss", "curr_kl_coeff", "total_loss")),
            "num_env_steps_sampled_lifetime"}  # fmt: skip


def unnamed(tags: list[str]) -> set[str]:
    names = tensorboard.names_of(tags, libraries.dialect_of(tags))
    meanings = {tag: table.translation(tag, np.ones(3), names).get(tag, ("", 1.0))[0] for tag in tags}
    return {tag for tag, ours in meanings.items() if ours not in glossary.METRICS}


@pytest.mark.parametrize("algo", SB3)
def test_tags_of_stable_baselines3(algo):
    assert unnamed(SB3[algo].split()) == UNNAMED.get(algo, set())


@pytest.mark.parametrize("tags", [RSL_RL, OLD_RSL_RL])
def test_tags_of_rsl_rl(tags):
    assert libraries.dialect_of(tags).library.name == "rsl_rl"
    assert unnamed(tags) - STDS == NO_RSL_RL
    assert unnamed([*tags, *RND]) - STDS == NO_RSL_RL | {"Train/mean_reward", *RND[1:]}


@pytest.mark.parametrize("algo", SKRL)
def test_tags_of_skrl(algo):
    assert libraries.dialect_of(SKRL[algo]).library.name == "skrl"
    assert unnamed(SKRL[algo]) - STDS - ANYWHERE == NO_SKRL.get(algo, set())


@pytest.mark.parametrize("algo", TIANSHOU)
def test_tags_of_tianshou(algo):
    tags = TIANSHOU[algo]
    assert libraries.dialect_of(tags).library.name == "tianshou"
    assert set(tags) - unnamed(tags) == KNOWN_TIANSHOU & set(tags)


def test_tags_of_rllib():
    names = rllib.names_for(RLLIB, {})
    assert {tag for tag in RLLIB if names.get(tag, ("", 1.0))[0] not in glossary.METRICS} == NO_RLLIB


@pytest.mark.parametrize("algo", CLEANRL)
def test_tags_of_cleanrl(algo):
    assert unnamed(CLEANRL[algo].split()) == REST.get(algo, set())


def test_the_list_is_that_of_the_library():
    """Where Stable-Baselines3 is installed, its own calls are counted."""
    roots = list((ROOT / ".venv-sb3").glob("lib/python*/site-packages/stable_baselines3"))
    if not roots:
        pytest.skip("Stable-Baselines3 is not there: make bench-peers")
    text = "".join(path.read_text("utf-8") for path in roots[0].rglob("*.py"))
    logged = set(re.findall(r'logger\.record\(\s*"([a-z]+/[a-z_]+)"', text))
    assert logged == {tag for tags in SB3.values() for tag in tags.split()}


def test_what_is_not_known_is_shown_with_the_nearest(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("step,reward,clip_fractoin,zzqqx\n1,2,3,4\n2,3,4,5\n")
    assert cli.main(["examine", str(tmp_path), "--show-mapping"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"clip_fractoin +-> foreign/clip_fractoin  \(not known; the nearest is policy/clip_share\)", shown)
    assert re.search(r"zzqqx +-> foreign/zzqqx  \(not known\)", shown)
