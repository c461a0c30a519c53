# ruff: noqa: C408 - settings read like the keyword arguments they become
"""Which faults came after the rules had met all others? The second held-out part.

Kinds of mistakes that people write about (losses and masks in the wrong place, wrappers, casts, delays, normalised
evaluations, settings of another algorithm). What counts stands here since before any of these runs was made; a change
of this file after that is a new suite.
"""

from __future__ import annotations

from benchmarks.peers import broken
from benchmarks.peers.fault_kind import Kind
from benchmarks.peers.fault_kinds import (
    CLIP_HIGH,
    EV_LOW,
    H_HIGH,
    H_LOW,
    KL_HIGH,
    KL_LOW,
    Q_HIGH,
    Q_LOW,
    TD_HIGH,
    VALUE_HIGH,
)  # fmt: skip

ACTOR_HIGH, ACTOR_LOW = ("policy/actor_loss", "high"), ("policy/actor_loss", "low")

KINDS: list[Kind] = [
    # PPO in a script
    Kind("ppo-other-actions-probability", "implementation", "cleanrl", "ppo", "CartPole-v1",
         "the new log-probability is that of a newly drawn action", "KL and clip share large, return near random",
         ("step-too-large", "has-not-learned"), (KL_HIGH, CLIP_HIGH), held_out=True,
         edits=(("logp_all.gather(1, b_act[rows][:, None])[:, 0]",
                 "logp_all.gather(1, torch.multinomial(logp_all.detach().exp(), 1))[:, 0]"),)),
    Kind("ppo-last-reward-lost", "environment", "cleanrl", "ppo", "Lift-v0",
         "the reward of the step that ends an episode is not given", "return stays far from what arriving pays",
         ("has-not-learned", "reward-absent"), held_out=True, env=broken.LastRewardLost),
    Kind("ppo-observation-frozen", "environment", "cleanrl", "ppo", "CartPole-v1",
         "what was seen first is seen for the whole episode", "return near random, explained variance low",
         ("has-not-learned", "critic-learns-nothing"), (EV_LOW,), held_out=True, told=True,
         env=broken.ObservationFrozen),
    Kind("ppo-policy-loss-left-out", "implementation", "cleanrl", "ppo", "Traffic-v0",
         "the policy's loss is left out of the loss", "KL near 0, entropy at its maximum, return as at the start",
         ("update-has-no-effect", "has-not-learned", "entropy-too-high"), (KL_LOW,), held_out=True,
         edits=(("loss = policy_loss - args.ent_coef", "loss = 0 * policy_loss - args.ent_coef"),)),
    Kind("ppo-gradient-clip-tiny", "setting", "cleanrl", "ppo", "Steering-v0",
         "max_grad_norm 1e-8", "KL near 0, return as at the start",
         ("step-too-small", "update-has-no-effect"), (KL_LOW,), held_out=True, told=True,
         settings=dict(max_grad_norm=1e-8)),
    Kind("ppo-gradients-pile-up", "implementation", "cleanrl", "ppo", "CartPole-v1",
         "gradients are never set to zero", "updates go on in old directions: KL or clip share large, return low",
         ("step-too-large", "has-not-learned", "entropy-too-low", "collapsed-later", "critic-learns-nothing"),
         (KL_HIGH, CLIP_HIGH, H_LOW, EV_LOW, VALUE_HIGH), held_out=True, told=True,
         edits=(("optimizer.zero_grad()", "pass"),)),
    Kind("ppo-clip-share-percent", "bookkeeping", "cleanrl", "ppo", "Dodge-v0",
         "the share of clipped rows is logged in percent", "clipfrac above 1",
         ("impossible-value",), (CLIP_HIGH,), held_out=True,
         edits=(('"losses/clipfrac", np.mean(clipped)', '"losses/clipfrac", 100 * np.mean(clipped)'),)),
    # PPO, continuous, in a script
    Kind("ppo-actions-shrunk", "implementation", "cleanrl", "ppo", "Docking-v0",
         "actions are divided by a hundred before they are carried out", "return as at the start",
         ("has-not-learned", "entropy-too-high"), (H_HIGH,), held_out=True,
         edits=(("worlds.step(worlds.high * action.numpy())", "worlds.step(0.01 * worlds.high * action.numpy())"),)),
    Kind("ppo-spread-huge", "implementation", "cleanrl", "ppo", "Hover-v0",
         "the Gaussian begins with a standard deviation of 20 on a range of +-1", "entropy of 4.4 nats, return low",
         ("entropy-too-high", "has-not-learned"), (H_HIGH,), held_out=True, told=True,
         edits=(("nn.Parameter(torch.zeros(worlds.dims))", "nn.Parameter(torch.zeros(worlds.dims) + 3.0)"),)),
    # DQN in a script
    Kind("dqn-loss-sign", "implementation", "cleanrl", "dqn", "KeyDoor-v0",
         "the loss is maximised", "a squared error below 0 that grows without end, Q with it",
         ("diverged", "critic-too-large", "impossible-value"), (TD_HIGH, ("value/critic_loss", "low"), Q_HIGH, Q_LOW),
         held_out=True,
         edits=(("loss = functional.mse_loss(value, goal)", "loss = -functional.mse_loss(value, goal)"),)),
    Kind("dqn-trained-rarely", "setting", "cleanrl", "dqn", "CartPole-v1",
         "one update in 2,000 steps", "ten losses in the log, return near random",
         ("replay", "has-not-learned"), held_out=True, told=True, settings=dict(train_frequency=2000)),
    Kind("dqn-oldest-rows-only", "implementation", "cleanrl", "dqn", "Steering-v0",
         "batches are drawn from the first 64 rows of the buffer", "return near random; the loss is small",
         ("has-not-learned", "critic-too-large", "replay"), (Q_HIGH, Q_LOW, TD_HIGH), held_out=True, told=True,
         edits=(("rng.integers(self.full, size=n)", "rng.integers(min(self.full, 64), size=n)"),)),
    # SAC and TD3 in a script
    Kind("sac-actor-sign", "implementation", "cleanrl", "sac", "BallBeam-v0",
         "the actor seeks what the critic likes least", "return below random",
         ("worse-than-random", "has-not-learned"), (Q_LOW, ACTOR_LOW, ACTOR_HIGH), held_out=True,
         edits=(("actor_loss = (alpha * logp - torch.min(", "actor_loss = (alpha * logp + torch.min("),)),
    Kind("td3-actor-saturated", "implementation", "cleanrl", "td3", "Docking-v0",
         "the last layer of the actor begins a thousand times too large", "return stays low: actions at their bounds",
         ("has-not-learned", "worse-than-random"), held_out=True, told=True,
         edits=(("    buffer = Buffer(args.buffer_size, worlds.inputs, dims)",
                 "    actor[-2].weight.data *= 1000\n    actor_target.load_state_dict(actor.state_dict())\n"
                 "    buffer = Buffer(args.buffer_size, worlds.inputs, dims)"),)),
    # Stable-Baselines3
    Kind("sb3-ppo-reward-offset", "environment", "sb3", "ppo", "Mixing-v0",
         "the learner gets a thousand more at each step", "value loss of 1e6 and more, explained variance near 0",
         ("reward-scale", "critic-learns-nothing"), (VALUE_HIGH, EV_LOW), held_out=True, env=broken.RewardOffset),
    Kind("sb3-ppo-evaluation-normalised", "evaluation", "sb3", "ppo", "Steering-v0",
         "evaluations are accounted in normalised rewards", "eval/mean_reward is a hundredth of ep_rew_mean",
         ("evaluation-apart",), held_out=True, told=True, judge=broken.ReturnsOver100),
    Kind("sb3-a2c-actions-delayed", "environment", "sb3", "a2c", "CartPole-v1",
         "actions are carried out ten steps late", "return near random",
         ("has-not-learned", "critic-learns-nothing"), (EV_LOW,), held_out=True, env=broken.ActionDelayed),
    Kind("sb3-dqn-ends-as-cuts", "environment", "sb3", "dqn", "CartPole-v1",
         "ends are reported as cuts", "return near random",
         ("has-not-learned", "critic-too-large", "worse-than-random"), (TD_HIGH,), held_out=True, told=True,
         env=broken.EndsAsCuts),
    Kind("sb3-sac-action-truncated", "environment", "sb3", "sac", "TankLevel-v0",
         "actions are cast to whole numbers, which leaves nothing of them", "return as at the start",
         ("has-not-learned",), held_out=True, env=broken.ActionTruncated),
    Kind("sb3-td3-starts-late", "setting", "sb3", "td3", "SineTracking-v0",
         "learning starts after 95 % of the run", "few losses in the log, return at random",
         ("never-started", "has-not-learned", "replay"), held_out=True, told=True,
         settings=dict(learning_starts=19_000)),
]  # fmt: skip

SEEDS = (40, 41, 42)
KNOWN_SEED = 43  # of every second kind that was known before
