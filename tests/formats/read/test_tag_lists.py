"""Does every tag that the libraries log have a meaning? Lists from their own sources, and what stays without one.

Stable-Baselines3 2.9.2: the calls of logger.record in its package. CleanRL: the calls of writer.add_scalar in
ppo*.py, dqn*.py, c51*.py, ddpg*.py, td3*.py and sac*.py at 004f8a0.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from relab import cli
from relab.formats.read import table, tensorboard
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


def unnamed(tags: list[str]) -> set[str]:
    names = tensorboard.names_of(tags)
    meanings = {tag: table.translation(tag, np.ones(3), names).get(tag, ("", 1.0))[0] for tag in tags}
    return {tag for tag, ours in meanings.items() if ours not in glossary.METRICS}


@pytest.mark.parametrize("algo", SB3)
def test_tags_of_stable_baselines3(algo):
    assert unnamed(SB3[algo].split()) == UNNAMED.get(algo, set())


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
