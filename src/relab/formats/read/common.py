"""Which of relab's metrics does a foreign name mean? One table for all formats that have no fixed names of their own.

A name is looked up in lower case, first as a whole, then without the groups before its last slash. A name that could
mean two things is not listed: it stays as foreign/NAME, where nothing is concluded from it. Formats with names of
their own (SB3, RLlib, CleanRL) bring their own tables and never look here first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

import numpy as np

from relab.base.contexts import holding
from relab.base.text import plural
from relab.formats.read.source import Names, name_table
from relab.formats.read.step_axis import strays
from relab.record import glossary

# relab's name | the names others use for it (factor 1 in all of these)
METRICS = """
return/mean          | return, returns, reward, rewards, episodic_return, episodic_reward, episode_return, episode_reward, ep_return, ep_reward, ep_ret, epret, averageepret
return/mean          | mean_return, mean_reward, return_mean, reward_mean, avg_return, avg_reward, average_return, average_reward, episode_return_mean, episode_reward_mean
return/mean          | mean_episode_return, mean_episode_reward, train_return, train_reward, total_reward, cumulative_reward, undiscounted_return
return/mean_100      | ep_rew_mean, eprewmean, return_mean_100, mean_100, mean_reward_100, avg_reward_100
return/std           | return_std, reward_std, std_return, std_reward, stdepret, episode_return_std, episode_reward_std
return/min           | return_min, min_return, minepret, episode_return_min, episode_reward_min
return/max           | return_max, max_return, maxepret, episode_return_max, episode_reward_max
return/length        | ep_len, eplen, ep_length, ep_len_mean, eplenmean, episodic_length, episode_length, episode_len, episode_len_mean, mean_episode_length
return/success       | success_rate, success, is_success, success_mean
eval/return_det      | eval_return, eval_reward, eval_mean_reward, eval_episode_reward, eval_episode_return, test_return, test_reward, averagetestepret
eval/length_det      | eval_length, eval_ep_len, eval_mean_ep_length, eval_episode_length, test_length, testeplen
eval/std_det         | eval_std, eval_return_std, eval_reward_std, stdtestepret
eval/success_det     | eval_success, eval_success_rate, test_success_rate
policy/loss          | policy_loss, pg_loss, pi_loss, losspi, policy_gradient_loss, loss_policy, surrogate_loss
policy/entropy       | entropy, policy_entropy, entropy_mean, mean_entropy, actor_entropy
policy/kl            | kl, approx_kl, approxkl, kl_mean, mean_kl, kl_divergence, kl_div, mean_kl_divergence, approx_kl_div
policy/kl_k1         | old_approx_kl
policy/clip_share    | clipfrac, clip_frac, clip_fraction, clipped_fraction, frac_clipped, clip_share
policy/actor_loss    | actor_loss, loss_actor
policy/exploration   | exploration_rate, epsilon, eps_greedy, exploration_epsilon, explore_rate, eps
value/loss           | value_loss, vf_loss, v_loss, lossv, loss_value, value_function_loss, baseline_loss
value/explained_variance | explained_variance, explained_var, vf_explained_var, ev
value/mean           | value_mean, mean_value, values, vvals
value/critic_loss    | critic_loss, qf_loss, q_loss, lossq, loss_critic, loss_q, td_loss
value/q_mean         | q_mean, mean_q, q_values, q_value, qf_values, qf_mean, average_q, avg_q, mean_q_value, q_value_mean
value/td_error       | abs_td_error, mean_abs_td_error, td_error_abs
policy/weight_mean   | weight_mean, exp_adv, exp_adv_mean, adv_weight, adv_weight_mean, adv_weights_mean, advantage_weights_mean, awr_weight
policy/weight_std    | adv_weight_std, advantage_weights_std
policy/weight_max    | weight_max, adv_weight_max, advantage_weights_max
policy/weight_capped | weight_capped, weight_clip_share, weight_clip_frac
policy/weight_ess    | weight_ess
data/advantage_mean  | advantage_score_mean
data/advantage_std   | advantage_score_std
model/loss           | model_loss, model_loss_mean, world_model_loss, wm_loss, world_model_l_total
model/obs_loss       | observation_loss, obs_loss, recon_loss, reconstruction_loss, image_loss, image_loss_mean, world_model_l_decoder
model/reward_loss    | reward_loss, reward_loss_mean, world_model_l_reward
model/continue_loss  | continue_loss, cont_loss, cont_loss_mean, world_model_l_continue
model/kl_loss        | state_loss
model/dyn_loss       | dyn_loss, dyn_loss_mean, dynamics_loss, world_model_l_dynamics
model/rep_loss       | rep_loss, rep_loss_mean, representation_loss, world_model_l_representation
model/prior_entropy  | prior_entropy, prior_ent, prior_ent_mean
model/post_entropy   | post_entropy, posterior_entropy, post_ent, post_ent_mean
model/imag_reward    | imag_reward_mean, imag_reward, dream_reward, imagined_reward
model/imag_return    | imag_return_mean, imag_return, imagined_return, dream_return
model/imag_continue  | imag_continue_mean, imag_continue, dream_continue
return/mean          | rew_avg
return/length        | ep_len_avg
optim/lr             | lr, learning_rate
optim/grad_norm      | grad_norm, gradient_norm, grad_norm_mean
optim/temperature    | alpha, alpha_value, temperature, ent_temperature, entropy_temperature
optim/temperature_loss | alpha_loss, temperature_loss, ent_coef_loss
time/sps             | sps, fps, steps_per_second, env_steps_per_second
time/elapsed_s       | time_elapsed, elapsed_time, elapsed, elapsed_s, time_total_s
data/env_steps       | global_step, total_timesteps, num_timesteps, env_steps, total_env_steps, num_env_steps, totalenvinteracts
data/agent_steps     | agent_steps, total_agent_steps
data/updates         | n_updates, updates, num_updates, gradient_steps, learner_steps
data/iteration       | iteration, iterations, training_iteration
data/episodes        | episodes, num_episodes, total_episodes, episodes_total, actor_episodes
data/replay_size     | replay_size, buffer_size, replay_buffer_size
"""  # noqa: E501 - a table reads by its columns

# What a name means depends on the group before it: `loss/value` is a loss, `value` alone is not.
GROUPED = {
    **{f"{group}/value": "value/loss" for group in ("loss", "losses")},
    **{f"{group}/policy": "policy/loss" for group in ("loss", "losses")},
    **{f"{group}/actor": "policy/actor_loss" for group in ("loss", "losses")},
    **{f"{group}/critic": "value/critic_loss" for group in ("loss", "losses")},
    **{f"train_{part}/loss": name for part, name in (("actor", "policy/actor_loss"), ("critic", "value/critic_loss"))},
}
GROUPED |= {"state/kl": "model/kl", "actor/log_prob": "policy/data_logprob", "q_pred/mean": "value/q_mean",
            "v_pred/mean": "value/mean"}  # fmt: skip
GROUPED |= {f"adv/{part}": f"data/advantage_{part}" for part in ("mean", "std")}
GROUPED |= {f"adv_weight/{part}": f"policy/weight_{part}" for part in ("mean", "std", "max")}
GROUPED |= {f"loss/{short}": f"model/{name}_loss" for short, name in
            (("dyn", "dyn"), ("rep", "rep"), ("rew", "reward"), ("con", "continue"))}  # fmt: skip
JUDGING = ("eval", "evaluation", "test", "evaluate", "evaluator")  # groups whose returns are evaluations
CLOCKS = ("timer", "timers", "timing", "profile", "profiling")  # groups of seconds, whatever the name below says
JUDGED = {"return/mean": "eval/return_det", "return/mean_100": "eval/return_det", "return/length": "eval/length_det"}
JUDGED |= {"return/std": "eval/std_det", "return/success": "eval/success_det", "data/episodes": "eval/episodes"}

# What steps count, in the order in which a column is preferred as the step of a row.
STEPS = """
env_steps   | global_step, total_timesteps, num_timesteps, timesteps_total, timesteps, timestep, env_steps, env_step, total_env_steps, total_steps
env_steps   | num_env_steps, totalenvinteracts, num_env_steps_sampled_lifetime, environment_steps, frames, frame, num_frames, total_frames, actor_steps
agent_steps | agent_steps, agent_step, total_agent_steps
env_steps   | step, steps, _step
updates     | update, updates, gradient_step, gradient_steps, n_updates, num_updates, opt_step, optimizer_step, train_step, learner_steps
iteration   | iteration, iterations, iter, training_iteration, itr, epoch, epochs
episodes    | episode, episodes, num_episodes, episode_number, episode_idx, ep
"""  # noqa: E501

KNOWN, STEP_AXES = ({theirs: ours for theirs, (ours, _) in name_table(text).items()} for text in (METRICS, STEPS))
STEP = "step"  # what --mapping calls a column of steps whose kind is not told: those of the environment
_also: ContextVar[Names] = ContextVar("also", default=MappingProxyType({}))
_met: ContextVar[set[str] | None] = ContextVar("met", default=None)


@contextmanager
def also(mapping: Names) -> Iterator[set[str]]:
    """Inside, the names that a user has explained are known: their name -> (relab's, or what steps count; factor).

    Yields the set of those that a log turned out to have.
    """
    met: set[str] = set()
    with holding(_also, mapping), holding(_met, met):
        yield met


def _explained(name: str) -> str | None:
    """What the user says that a column is; None where nothing was said."""
    if name not in _also.get():
        return None
    if (met := _met.get()) is not None:
        met.add(name)
    return _also.get()[name][0]


def is_steps(target: str) -> bool:
    """Whether a mapping's target says that a column counts steps."""
    return target == STEP or target in glossary.AXES


def plain(name: str) -> str:
    """How a name is looked up: lower case, blanks, dashes and points as underscores."""
    return re.sub(r"[\s\-.]+", "_", name.strip().lower())


def meaning(name: str) -> str | None:
    """relab's name for a foreign one, None where it is unknown or ambiguous.

    >>> meaning("rollout/ep_rew_mean"), meaning("Eval/Return"), meaning("losses/value"), meaning("entropy_loss")
    ('return/mean_100', 'eval/return_det', 'value/loss', None)
    """
    if (target := _explained(name)) is not None:
        return None if is_steps(target) else target
    if name in glossary.METRICS:  # relab's own, as `relab convert` and programs that follow it write them
        return name
    *groups, last = plain(name).split("/")
    if any(group in CLOCKS for group in groups):
        return None
    judged = any(group in JUDGING for group in groups)
    ours = GROUPED.get("/".join([*groups[-1:], last])) or KNOWN.get(last)
    if not judged:
        return ours
    return ours if ours and ours.startswith("eval/") else JUDGED.get(ours or "")


def names_for(names: Iterable[str]) -> Names:
    """The translation of those names that have one, ready for source.put."""
    return {name: (ours, 1.0) for name in names if (ours := meaning(name))}


def step_axis(name: str) -> str | None:
    """What a column of this name counts, None where it is no step column."""
    if (target := _explained(name)) is not None:
        return ("env_steps" if target == STEP else target) if is_steps(target) else None
    return STEP_AXES.get(plain(name).rpartition("/")[2])


def step_factor(name: str) -> float:
    """How many steps one of a column is: thousands, say, where the user says so."""
    target, factor = _also.get().get(name, ("", 1.0))
    return factor if is_steps(target) else 1.0


def preference(name: str) -> tuple[bool, int, int]:
    """Sorts step columns: what the user says first, relab's own metrics last, the more exact count, fewer groups."""
    if name in _also.get():
        return False, -1, 0
    return name in glossary.METRICS, list(STEP_AXES).index(plain(name).rpartition("/")[2]), name.count("/")


# ---- Steps that go back


def newest(steps: np.ndarray) -> np.ndarray:
    """Which rows stay when a run was restarted from an older step: the later segment wins from where it starts.

    Equal steps in a row are no restart (several episodes end at one step) and all stay.

    >>> newest(np.array([10, 20, 30, 20, 30, 40])).tolist()
    [True, False, False, True, True, True]
    """
    keep = np.ones(len(steps), bool)
    back = np.flatnonzero(steps[1:] < steps[:-1]) + 1
    if not len(back):
        return keep
    starts = np.full(len(steps) + 1, np.iinfo(np.int64).max)
    starts[back] = steps[back]
    later = np.minimum.accumulate(starts[::-1])[::-1]  # the lowest restart at or after a row
    return steps < later[1:]


def in_order(steps: np.ndarray) -> tuple[np.ndarray, str]:
    """(the rows to use, in the order to use them; what was wrong with the steps, empty when nothing)."""
    backward = int((steps[1:] < steps[:-1]).sum())
    stray = strays(steps) if backward else np.zeros(0, bool)
    if stray.any():
        rest = np.flatnonzero(~stray)
        order, said = in_order(steps[rest])
        lost = f"{plural(int(stray.sum()), 'row')} far out of order left out, first step {int(steps[stray][0])}"
        return rest[order], "; ".join(filter(None, [lost, said]))
    if not backward:
        return np.arange(len(steps)), ""
    if backward > max(3, len(steps) // 10):  # not restarts: several writers, or a file sorted by something else
        return np.argsort(steps, kind="stable"), f"the steps go back {backward} times; the rows were sorted by step"
    keep = newest(steps)
    gone = int((~keep).sum())
    times = "once" if backward == 1 else f"{backward} times"
    return np.flatnonzero(keep), f"the steps go back {times}, as after a restart; {gone} older rows were superseded"
