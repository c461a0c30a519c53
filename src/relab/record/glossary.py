"""What does a metric mean, in which unit, and which values are legal? What kinds of event are there?

A metric that is not listed here (or in a family) cannot be written to a record: what has no meaning is not logged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from relab.base.near import hint

INF = math.inf


@dataclass(frozen=True)
class Metric:
    """One number a run logs."""

    name: str  # group/name
    unit: str
    low: float  # legal range, both ends included; values outside are a bug, not a bad run
    high: float
    direction: int  # +1: more is better, -1: less is better, 0: neither
    meaning: str


AXES = {
    "agent_steps": "steps of all agents that were alive, the axis of relab's own runs",
    "env_steps": "steps of worlds in training; of another tool's log, as that tool counts them",
    "sim_steps": "steps of all worlds, those of evaluations and re-rollouts included",
    "updates": "optimiser steps",
    "iteration": "collect-and-update rounds",
    "episodes": "finished episodes",
}

# name | unit | low | high | direction | meaning
TABLE = """
return/mean        | return   | -inf | inf | +1 | mean return of the episodes that ended in this iteration, sampled actions
return/std         | return   | 0    | inf | 0  | standard deviation of those returns
return/min         | return   | -inf | inf | +1 | lowest of those returns
return/max         | return   | -inf | inf | +1 | highest of those returns
return/mean_100    | return   | -inf | inf | +1 | mean return of the last 100 finished episodes
return/length      | steps    | 0    | inf | 0  | mean length of the episodes that ended in this iteration
return/episodes    | episodes | 0    | inf | 0  | episodes that ended in this iteration
return/success     | share    | 0    | 1   | +1 | share of them that succeeded; missing where the env declares no success
return/timeout     | share    | 0    | 1   | 0  | share of them that were cut by the time limit, or by the environment itself
eval/return_det    | return   | -inf | inf | +1 | mean return of the first n evaluation episodes, deterministic actions
eval/return_sampled| return   | -inf | inf | +1 | mean return of the first n evaluation episodes, sampled actions
eval/std_det       | return   | 0    | inf | 0  | standard deviation over those episodes, deterministic actions
eval/std_sampled   | return   | 0    | inf | 0  | standard deviation over those episodes, sampled actions
eval/length_det    | steps    | 0    | inf | 0  | mean length of those episodes, deterministic actions
eval/length_sampled| steps    | 0    | inf | 0  | mean length of those episodes, sampled actions
eval/success_det   | share    | 0    | 1   | +1 | share of those episodes that succeeded, deterministic actions
eval/success_sampled| share   | 0    | 1   | +1 | share of those episodes that succeeded, sampled actions
eval/episodes      | episodes | 0    | inf | 0  | episodes counted per mode
data/env_steps     | steps    | 0    | inf | 0  | steps of the training worlds so far
data/agent_steps   | steps    | 0    | inf | 0  | steps of living agents collected for training so far
data/sim_steps     | steps    | 0    | inf | 0  | steps of all worlds so far: data/env_steps + data/rerun_steps + data/eval_steps; an evaluation that follows a row is in the next one, and the last in `sim_steps` of meta.json
data/eval_steps    | steps    | 0    | inf | 0  | world steps spent on evaluations so far
data/updates       | steps    | 0    | inf | 0  | optimiser steps so far
data/iteration     | count    | 0    | inf | 0  | collect-and-update rounds so far
data/episodes      | episodes | 0    | inf | 0  | finished training episodes so far
data/replay_size   | rows     | 0    | inf | 0  | transitions in the replay buffer
data/alive         | share    | 0    | 1   | 0  | share of this iteration's agent rows that were alive
data/batch         | rows     | 0    | inf | 0  | agent rows of this iteration that entered the loss
data/advantage_mean  | return | -inf | inf | 0  | mean advantage of the batch before normalisation; should be near 0 against its standard deviation
data/advantage_std   | return | 0    | inf | 0  | standard deviation of the advantages before normalisation
data/advantage_min   | return | -inf | inf | 0  | lowest advantage of the batch before normalisation
data/advantage_max   | return | -inf | inf | 0  | highest advantage of the batch before normalisation
data/advantage_td    | share  | -1   | 1   | 0  | correlation, over the batch, of the advantages in the loss with their own step's TD error r + gamma V(s') - V(s); clearly above 0 where signs and time indices are right; missing where one of them is constant
data/advantage_td_next | share | -1  | 1   | 0  | the same with the next step's TD error; healthy advantages contain more of their own
data/advantage_noise | return | 0    | inf | -1 | re-rollouts: standard error of one state's advantage, root of the mean square over states; missing with one sample
data/advantage_snr   | ratio  | 0    | inf | +1 | re-rollouts: variance of the advantages that is not noise, over the variance of their noise; 0 where less than the noise's is left (it is never below), missing with one sample
data/advantage_rank  | share  | -1   | 1   | +1 | re-rollouts: Spearman's rank correlation of the advantages from one half of the samples with those from the other; missing with one sample
data/rerun_steps     | steps  | 0    | inf | 0  | steps of worlds besides training and evaluation so far: copies in re-rollouts, other policies' data, a batch that was taken over, the look at the start
data/env_steps_taken_over | steps | 0 | inf | 0 | fine-tuning with `fixed_from`: steps of the batch that another run collected; part of data/rerun_steps, in the row in which it is taken over
data/rerun_bias      | return | 0    | inf | 0  | re-rollouts: most that cutting them can have cost a return, gamma^cut times the largest value there can be
data/rerun_cut       | share  | 0    | 1   | 0  | re-rollouts: share that was not over when it was cut
data/transitions     | rows   | 0    | inf | 0  | rows that advantages were estimated from, those of other policies' data included
data/held_out_rows   | rows   | 0    | inf | 0  | critic alone: rows of the worlds that were held out, by which value/val_loss and value/explained_variance are told
data/held_out_episodes | episodes | 0 | inf | 0 | critic alone: whole episodes of those worlds; rows of one episode are not independent
data/fit_reward_nonzero | share | 0  | 1   | 0  | share of the rows that Q and V were fitted to whose reward is not 0
data/updates_per_row | ratio  | 0    | inf | 0  | how often a row of the batch has been in a gradient, per iteration: the update-to-data ratio
data/advantage_positive | share | 0  | 1   | 0  | share of the batch's advantages that are above 0, before normalisation
data/behaviour_gap   | nats   | -inf | inf | 0  | fine-tuning: mean of ln b(a given s) - ln pi(a given s) over a new batch, b the policy that acted and pi the one that learns: 0 up to rounding where both are one; an estimate of KL(b, pi)
data/reward_nonzero  | share  | 0    | 1   | 0  | share of the rows learned from whose reward is not 0
data/dataset_return_mean | return | -inf | inf | 0 | offline methods: mean return of the dataset's episodes
data/dataset_return_max | return | -inf | inf | 0 | offline methods: highest return of any of the dataset's episodes
data/replay_ratio    | ratio  | 0    | inf | 0  | rows learned from for each row that reached the replay in the same iteration; 0 before learning starts
data/action_own      | share  | -inf | 1   | 0  | world models: share of what is new in a row, given the one before, that is linear in the action the row is told of; every 50th update
data/action_before   | share  | -inf | 1   | 0  | world models: the same of the action that the row before is told of
data/action_after    | share  | -inf | 1   | 0  | world models: the same of the action that the next row is told of; larger than the row's own where rows are told of their action a step late
data/padding         | share  | 0    | 1   | 0  | share of the batch's rows that are padding
data/queue_fill      | share  | 0    | 1   | 0  | a collector of its own process: how full its queue was when the learner took a step, mean over the iteration; it waits from 0.8 on
data/queue_waste     | steps  | 0    | inf | 0  | a collector of its own process: steps of every world that wait in its queue, and are lost where the run ends now
data/starved         | share  | 0    | 1   | 0  | a collector of its own process: share of the steps that the learner had to wait for
data/weights_age     | updates | 0   | inf | 0  | a collector of its own process: updates between the weights that acted and those that learn from the step, mean
data/obs_max         | -      | 0    | inf | 0  | largest size of any number the networks saw in this iteration's observations, after scaling
data/obs_seen        | rows   | 0    | inf | 0  | rows behind the observation scale of `norm_obs`, before this iteration's
data/reward_seen     | rows   | 0    | inf | 0  | rows behind the reward scale of `norm_return`
data/reward_mean     | reward | -inf | inf | +1 | mean reward per agent step, as the environment gave it
data/reward_std      | reward | 0    | inf | 0  | standard deviation of the reward per agent step
data/reward_min      | reward | -inf | inf | 0  | lowest reward of the batch
data/reward_max      | reward | -inf | inf | 0  | highest reward of the batch
data/reward_scale    | reward | 0    | inf | 0  | what rewards are divided by under `norm_return`
policy/loss          | -      | -inf | inf | 0  | clipped surrogate, sign turned: -E[min(r A, clip(r) A)], mean of the last epoch
policy/entropy       | nats   | -inf | inf | 0  | entropy of the action distribution; a Gaussian's (before clipping or squashing) may be negative and has no maximum; SAC's is estimated after squashing, in units of half the action range: ln 2 per component at most
policy/entropy_share | share  | 0    | 1   | 0  | discrete policies: entropy over its maximum, ln of the number of choices
policy/entropy_push  | ratio  | 0    | inf | 0  | pull of the entropy bonus against the surrogate: |ent_coef dH| / |dL_pg|, on log_std (Gaussian) or on the logits
policy/kl            | nats   | 0    | inf | 0  | KL(old, new) by the k3 estimator E[(r-1) - ln r], mean of the last epoch
policy/kl_k1         | nats   | -inf | inf | 0  | the same by the k1 estimator E[-ln r]; unbiased, noisy, may be negative
policy/kl_start      | nats   | 0    | inf | 0  | k3 estimate on the iteration's first minibatch, before any step: 0 up to rounding when the policy that is updated is the one that acted
policy/kl_max        | nats   | 0    | inf | 0  | largest k3 estimate of any minibatch of the iteration
policy/clip_share    | share  | 0    | 1   | 0  | share of rows whose ratio left 1 +- clip, mean of the last epoch
policy/ratio_max     | ratio  | 0    | inf | 0  | largest ratio new over old probability of any row of the iteration
policy/std_mean      | half ranges | 0 | inf | 0 | Gaussian policies: mean standard deviation, in units of half the action range
policy/std_max       | half ranges | 0 | inf | 0 | Gaussian policies: largest standard deviation, in units of half the action range
policy/saturated_share | share | 0   | 1   | 0  | Gaussian policies: share of drawn action components outside of the action range
policy/actor_loss    | -      | -inf | inf | 0  | off-policy actors (SAC, TD3): mean loss of the actor, about -E[Q] plus the weighted log-probability; its level says little
policy/exploration   | share  | 0    | 1   | 0  | epsilon-greedy policies: share of actions drawn at random
policy/weight_mean   | ratio  | 0    | inf | 0  | advantage-weighted policies (AWR, IQL): mean weight min(exp(A / beta), cap) of a row in the policy's loss, before any renormalisation
policy/weight_std    | ratio  | 0    | inf | 0  | standard deviation of those weights
policy/weight_max    | ratio  | 0    | inf | 0  | largest of those weights
policy/weight_capped | share  | 0    | 1   | 0  | share of rows whose weight is at its cap
policy/weight_ess    | share  | 0    | 1   | 0  | effective share of the rows, (sum w)² / (n sum w²): 1 when all weights are alike, 1 / n when one row decides
policy/data_logprob  | nats   | -inf | inf | 0  | offline methods: mean log-probability that the policy gives the dataset's actions
value/loss           | return² | 0   | inf | -1 | E[(V - target)²] / 2, the larger of clipped and plain where `clip_value` is set, mean of the last epoch
value/clip_share     | share  | 0    | 1   | 0  | share of rows whose value moved by more than `clip_value`
value/bias_slope     | return | -inf | inf | 0  | gradient of the value loss on the critic's output bias, on the iteration's first minibatch, before any step: -data/advantage_mean up to sampling where the targets are fixed numbers
value/explained_variance | share | -inf | 1 | +1 | 1 - Var(target - V) / Var(target), V from before the update; under 0 is worse than a constant, NaN when targets are all alike
value/mean           | return | -inf | inf | 0  | mean value of the batch, from before the update
value/after_end      | return | -inf | inf | 0  | mean successor value in the targets where an episode terminated; must be 0; missing where none did
value/after_cut      | return | -inf | inf | 0  | mean successor value in the targets where an episode was cut by time; missing where none was
value/target_mean    | return | -inf | inf | 0  | mean value target of the batch
value/target_std     | return | 0    | inf | 0  | standard deviation of the value targets
value/target_min     | return | -inf | inf | 0  | lowest value target
value/target_max     | return | -inf | inf | 0  | highest value target
value/critic_loss    | return² | 0   | inf | -1 | Q-learning critics: mean loss of the temporal difference, as the tool weights it (squared or Huber, one critic or their sum)
value/q_std          | return | 0    | inf | 0  | standard deviation of Q over the rows that are learned from
value/v_mean         | return | -inf | inf | 0  | mean V that the advantages of a fine-tuning run are taken against
value/v_std          | return | 0    | inf | 0  | standard deviation of that V
value/val_loss       | return² | 0   | inf | -1 | critics that are fitted to data: mean squared error over held-out episodes, by which fitting stops
value/expectile      | share  | 0    | 1   | 0  | IQL: the expectile of the slow Q that V is on the rows it was fitted to, E[(V - Q)+] / E|Q - V|: about the one that was set
value/fit_epochs     | epochs | 0    | inf | 0  | critics that are fitted to data: epochs until held-out episodes stopped getting better
value/q_mean         | return | -inf | inf | 0  | mean Q of the actions in the batch
value/td_error       | return | 0    | inf | -1 | mean absolute temporal difference of the batch
model/loss           | nats   | -inf | inf | -1 | world models: total loss of the model
model/obs_loss       | nats   | -inf | inf | -1 | world models: loss of the reconstructed observation
model/reward_loss    | nats   | -inf | inf | -1 | world models: loss of the predicted reward; a two-hot one cannot fall below the entropy of its targets
model/continue_loss  | nats   | 0    | inf | -1 | world models: loss of the predicted continuation
model/kl             | nats   | 0    | inf | 0  | world models: KL(posterior, prior) of the latent state, before free bits and weights
model/kl_loss        | nats   | 0    | inf | 0  | world models: what that KL adds to the loss, after free bits and weights
model/dyn_loss       | nats   | 0    | inf | 0  | world models: the prior's part of it, as the tool clamps and weights it
model/rep_loss       | nats   | 0    | inf | 0  | world models: the posterior's part of it, as the tool clamps and weights it
model/prior_entropy  | nats   | -inf | inf | 0  | world models: entropy of the predicted latent state
model/post_entropy   | nats   | -inf | inf | 0  | world models: entropy of the inferred latent state
model/imag_reward    | reward | -inf | inf | 0  | world models: mean reward per imagined step
model/imag_reward_std | reward | 0   | inf | 0  | world models: standard deviation of the reward of imagined steps
model/imag_return    | return | -inf | inf | 0  | world models: mean return (value target) of imagined states
value/std            | return | 0    | inf | 0  | world models: standard deviation of what the critic says along dreams
value/critic_excess  | nats   | -inf | inf | -1 | world models: loss of the critic on dreams above the entropy of its two-hot targets, below which it cannot fall
value/replay_loss    | nats   | 0    | inf | -1 | world models: loss of the critic on real rewards, before its weight
value/return_scale   | return | 0    | inf | 0  | world models: what advantages are divided by, the 5th to 95th percentile of returns or more
value/clamped        | share  | 0    | 1   | -1 | two-hot heads: share of the targets that lie beyond the support and are learned as its end
value/support_top    | return | -inf | inf | 0  | two-hot heads: the last bin, the largest number that the critic can say
model/reward_excess  | nats   | -inf | inf | -1 | world models: loss of the predicted reward above the entropy of its two-hot targets, below which it cannot fall
model/agreement      | share  | 0    | 1   | 0  | world models: share of latent variables whose likeliest class is the same in posterior and prior
model/imag_survival  | share  | 0    | 1   | 0  | world models: mean predicted probability that a dream goes on to its last step
model/surprise_total | ln     | -inf | inf | 0  | world models: ln of the model's loss over its running mean
model/surprise_max   | ln     | -inf | inf | 0  | world models: the largest surprise among the parts of the loss
model/surprise_obs   | ln     | -inf | inf | 0  | world models: surprise of the reconstruction
model/surprise_reward | ln    | -inf | inf | 0  | world models: surprise of the predicted reward
model/surprise_continue | ln  | -inf | inf | 0  | world models: surprise of the predicted continuation
model/surprise_dyn   | ln     | -inf | inf | 0  | world models: surprise of the prior's part of the KL
model/surprise_rep   | ln     | -inf | inf | 0  | world models: surprise of the posterior's part of the KL
model/surprise_ready | -      | 0    | 1   | 0  | world models: 1 once the running means behind surprises mean something
model/focus          | -      | 0    | 1   | 0  | world models: share of the updates in which actor and critic were to wait for the world model
model/updates_each   | -      | 1    | inf | 0  | world models: updates of the world model for each one of actor and critic
model/prior_least    | share  | 0    | 1   | 0  | world models: smallest probability of any class of a predicted latent, mean over updates; `unimix` over the number of classes at least, where some of each is spread evenly
model/post_least     | share  | 0    | 1   | 0  | world models: the same of the inferred latents
model/prior_mix      | share  | -inf | 1   | 0  | world models: share of the predicted latents' probabilities that is spread evenly, beside their softmax; `unimix`, every 50th update
model/post_mix       | share  | -inf | 1   | 0  | world models: the same of the inferred latents
model/start_memory   | ratio  | 0    | inf | -1 | world models: spread of the memory over rows in which an episode begins, over its usual spread; must be 0; missing where fewer than two begin in a batch
model/start_action   | share  | -inf | 1   | 0  | world models: share of that spread that follows the action the row was told of; means nothing where there is none
model/post_memory    | share  | 0    | 1   | 0  | world models: share of what varies in front of the inferred latents that comes from the memory, the rest from the observation, every 50th update
value/return_residual | share | 0    | inf | -1 | world models: mean distance of dreamed returns from their own recursion, over their mean size, every 50th update; must be 0
value/pull           | ln     | -inf | inf | 0  | world models: gradient on the critic's output bias along the symlog of its bins: how far the loss pulls its mean, every 50th update
value/pull_due       | ln     | -inf | inf | 0  | world models: the same from the critic's errors, as it is where targets are fixed numbers
model/imag_continue  | share  | 0    | 1   | 0  | world models: mean predicted probability that an imagined step goes on
optim/dormant_share  | share  | 0    | 1   | 0  | share of units whose mean activation is under a fortieth of their layer's
optim/effective_rank | count  | 0    | inf | 0  | singular values of the features that hold 99 % of their sum
value/td_loss        | return² | 0   | inf | -1 | mean squared temporal difference of the batch, without the factor 1/2
value/w_norm         | -      | 0    | inf | 0  | linear critics: norm of the weights
value/w_step         | -      | 0    | inf | 0  | linear critics: norm of the iteration's change of the weights
value/teacher_error  | -      | 0    | inf | -1 | linear critics: |w - w_R|² / N, the distance to a teacher's weights; only at gamma = 0 is there a reason for it to reach 0
policy/rho_mean      | ratio  | 0    | inf | 0  | mean importance ratio pi / mu of the batch; 1 but for sampling error
policy/rho2_mean     | ratio² | 0    | inf | 0  | mean squared importance ratio
policy/rho_min       | ratio  | 0    | inf | 0  | smallest importance ratio of the batch
policy/rho_max       | ratio  | 0    | inf | 0  | largest importance ratio of the batch, after clipping
policy/rho_clipped_share | share | 0 | 1   | 0  | share of the ratios that the clip did cut
policy/ess_share     | share  | 0    | 1   | 0  | effective sample size of the batch over its size: (sum rho)² / (n sum rho²)
policy/tracking_gap  | -      | 0    | inf | 0  | |theta_pi - theta_mu|² / P: how far the behaviour policy lags behind the target policy, in parameters
policy/theta_step    | -      | 0    | inf | 0  | norm of the iteration's change of the target policy's parameters
optim/step_scale     | -      | 0    | inf | 0  | what a sum over the batch is multiplied by in the critic's step
optim/lr             | -      | 0    | inf | 0  | learning rate of this iteration
optim/ent_coef       | -      | -inf | inf | 0  | weight of the entropy bonus in this iteration
optim/temperature    | -      | 0    | inf | 0  | SAC: weight alpha of the entropy in the soft return, learned or fixed
optim/temperature_loss | -    | -inf | inf | 0  | SAC: loss by which the temperature is learned
optim/epochs         | epochs | 0    | inf | 0  | passes over the batch begun in this iteration; fewer than `epochs` when KL stopped it
optim/kl_stop        | flag   | 0    | 1   | 0  | 1 when `target_kl` ended the iteration's updates early
optim/grad_norm      | -      | 0    | inf | 0  | norm of the gradient before clipping, mean over the iteration's steps
optim/grad_norm_max  | -      | 0    | inf | 0  | largest norm of the gradient before clipping
optim/grad_clipped_share | share | 0 | 1   | 0  | share of the steps whose gradient was cut to `max_grad_norm`
optim/adam_steps     | steps  | 0    | inf | 0  | optimiser steps as the optimiser's own memory counts them; less than data/updates when that was lost
optim/actor_updates  | steps  | 0    | inf | 0  | world models: updates in which the actor learned, as its optimiser counts them
optim/step_rms       | -      | 0    | inf | 0  | root mean square change of a parameter over the iteration
optim/step_max       | -      | 0    | inf | 0  | largest change of any parameter over the iteration
optim/param_norm     | -      | 0    | inf | 0  | norm of all parameters after the iteration
time/sps           | steps/s  | 0    | inf | 0  | agent steps per second of this iteration, all included
time/advantage_s   | s        | 0    | inf | 0  | seconds of this iteration that estimating advantages took: re-rollouts, fitting of critics
time/updates_per_s | updates/s | 0   | inf | 0  | updates per second of this iteration, all included
time/sps_mean      | steps/s  | 0    | inf | 0  | agent steps per second since the run (or its last resume) began
time/learned_per_s | rows/s   | 0    | inf | 0  | rows learned from per second of this row: updates times rows of a minibatch, a row that is drawn twice counted twice
time/elapsed_s     | s        | 0    | inf | 0  | seconds since the run (or its last resume) began
time/collect_s     | s        | 0    | inf | 0  | seconds of this row spent on collecting data
time/update_s      | s        | 0    | inf | 0  | seconds of this row spent on updates
time/eval_s        | s        | 0    | inf | 0  | seconds of this row spent on evaluations
time/save_s        | s        | 0    | inf | 0  | seconds of this row spent on checkpoints
time/log_s         | s        | 0    | inf | 0  | seconds of this row spent on writing the record
time/profile_s     | s        | 0    | inf | 0  | seconds of this row that the profiler took to start and to write its trace (`--profile`)
time/probes_s      | s        | 0    | inf | 0  | seconds of this row spent on probes
time/cpu_share     | share    | 0    | inf | 0  | processor seconds per second and thread
time/schedule_s    | s        | 0    | inf | 0  | seconds of this row spent on the schedule: stages, multi-evaluations, gates
time/rss_mb        | MB       | 0    | inf | 0  | memory of the process
time/memory_share  | share    | 0    | 1   | 0  | memory of the process over that of the machine
time/gpu_mb        | MB       | 0    | inf | 0  | the most memory that torch has held on a GPU; runs on one alone
time/cores         | cores    | 0    | inf | 0  | processor seconds of the process per second, since the last row
time/sps_train     | steps/s  | 0    | inf | 0  | agent steps per second of acting and learning alone: without evaluations, checkpoints, the record and probes
time/env_s         | s        | 0    | inf | 0  | seconds of time/collect_s that the environment took
time/act_s         | s        | 0    | inf | 0  | seconds of time/collect_s that the policy took to act
time/copy_s        | s        | 0    | inf | 0  | seconds of time/collect_s that went into copying and booking
time/load          | threads  | 0    | inf | 0  | load of the machine, mean of the last minute: threads that run or want to, this run's included; more than it has cores is a busy machine
multi/avg_final    | share    | 0    | 1   | +1 | multi-evaluation of a schedule: share of agents that lived to the end, mean over episodes
multi/min_final    | share    | 0    | 1   | +1 | the lowest of its episodes' shares
multi/step_one_count | agents | 0    | inf | -1 | agents that died in their first step
multi/step_one_share | share  | 0    | 1   | -1 | the same over all agents
multi/step_one_top_share | share | 0   | 1   | 0  | of the deaths in step one, the share of the bin of like starts (30 degrees of heading, 0.4 of speed) that has the most; large by chance where deaths are few
multi/step_one_sector_share | share | 0 | 1  | 0  | of the deaths in step one, the share whose danger headed into `multi_eval.sector` (NE: 22.5 to 67.5 degrees) at `multi_eval.fast` or faster
multi/episodes     | episodes | 0    | inf | 0  | worlds it played, each once
multi/agents       | agents   | 0    | inf | 0  | agents in them together
multi/return       | return   | -inf | inf | +1 | mean return, over episodes, of their agents' means
"""  # noqa: E501 - a table reads by its columns

# What a run has earned, the best evidence first: the first of them that there is counts.
RETURNS = ("eval/return_det", "eval/return_sampled", "return/mean", "return/mean_100")

# Names with a free part, declared by somebody else than relab: prefix -> meaning.
FAMILIES = {
    "env/": "an info channel of the environment, reduced per episode as the environment declares, averaged over the"
    " episodes that ended in this iteration's data",
    "multi/early_death_": "multi-evaluation: share of agents that died before the step in the name",
    "multi/death_p": "multi-evaluation: this percentile of the steps at which agents died; who lived to the end counts"
    " with the horizon",
    "multi/first_death_p": "multi-evaluation: this percentile, over episodes, of the step of the first death",
    "multi/full_": "full evaluation of a schedule, once at the end of a run (`multi_eval.probe_episodes` is set): the"
    " same numbers as multi/*, over all `multi_eval.episodes`",
    "schedule/": "where a schedule stands: NAME_stage (from 1), NAME_left (share of a queue's starts that is left, also"
    " by type), NAME_starts (used so far), NAME_streak (checks in a row that an alert's condition holds)",
    "stage/": "what a schedule set in the environment for this iteration, by the environment's key",
}

EVENTS = {
    "start": "training began",
    "resume": "training went on from a checkpoint",
    "finish": "training came to its end",
    "stop": "training ended early, as the evaluation, the user or a finding asked; `reason` says why",
    "interrupt": "a signal ended the run; it can be resumed",
    "error": "an exception ended the run; `message` holds it, `repeats` that a resumed run would come to it again",
    "checkpoint": "a checkpoint was written",
    "profile": "iterations were traced with torch's profiler; `folder` holds the trace and a table of operations",
    "best": "a checkpoint became the best so far, with its evidence",
    "evaluation": "a checkpoint was evaluated on fresh seeds, outside of training",
    "warning": "something the user should know; `message` says what",
    "tail_dropped": "a truncated last line was dropped from `file` when the record was opened",
    "tail_completed": "the last line of `file` had lost only its line break, which was put back",
    "stage": "a curriculum moved to another stage",
    "gate": "a gate decided: `decision`, its state after it, and of each condition value, threshold and distance",
    "alert": "an alert of a schedule fired; `message` says on which values",
}


def _parse(table: str) -> dict[str, Metric]:
    metrics = {}
    for line in table.strip().splitlines():
        name, unit, low, high, direction, meaning = (cell.strip() for cell in line.split("|", 5))
        metrics[name] = Metric(name, unit, float(low), float(high), int(direction), meaning)
    return metrics


METRICS: dict[str, Metric] = _parse(TABLE)


def declare(*metrics: Metric) -> None:
    """Add metrics of a plug-in; one that exists with another meaning is an error."""
    for metric_ in metrics:
        if METRICS.get(metric_.name, metric_) != metric_:
            raise ValueError(f"the metric {metric_.name} is already declared as {METRICS[metric_.name]}")
        METRICS[metric_.name] = metric_


def family(name: str) -> str | None:
    """The family's prefix, where the name belongs to one."""
    return next((prefix for prefix in FAMILIES if name.startswith(prefix) and len(name) > len(prefix)), None)


def known(name: str) -> bool:
    return name in METRICS or family(name) is not None


def metric(name: str) -> Metric:
    """The glossary's entry; KeyError with the nearest known name where there is none."""
    if name in METRICS:
        return METRICS[name]
    prefix = family(name)
    if prefix is None:
        raise KeyError(unknown(name))
    return Metric(name, "", -INF, INF, 0, FAMILIES[prefix])


def unknown(name: str) -> str:
    return (f"the metric `{name}` is not in the glossary{hint(name, METRICS)}; add it to glossary.TABLE"
            " or, in a plug-in, call glossary.declare")  # fmt: skip
