"""What do words of the field mean that are no metric, rule or setting of relab? A sentence or two, with its source."""

from __future__ import annotations

# word | explanation; several words may share one
TEXTS = """
gae | generalised advantage estimation (Schulman et al. 2016): advantages as a sum of temporal differences, each gamma * lambda times smaller than the one before; lambda 0 trusts the critic (little noise, more bias), 1 trusts the returns. The setting is `algo.lam`.
td3 | twin delayed DDPG (Fujimoto et al. 2018): deterministic actor, the lesser of two critics as target, noise on the target's actions, actor updated more rarely than the critics. relab reads its logs.
ddpg | deep deterministic policy gradient (Lillicrap et al. 2016): deterministic actor and one critic from replay, target networks that follow slowly. relab reads its logs.
a2c a3c | advantage actor-critic (Mnih et al. 2016): one gradient step a batch on log-probability times advantage, a value loss, an entropy bonus; a3c does it in asynchronous workers. relab reads its logs.
trpo | trust region policy optimisation (Schulman et al. 2015): the largest improvement whose mean KL from the old policy stays under a bound; PPO's clipping stands in for that bound.
iql | implicit Q-learning (Kostrikov et al. 2022), offline: the value is an expectile of Q over actions of the data, so no other action is ever asked about; the policy imitates with weights exp(beta * advantage).
cql | conservative Q-learning (Kumar et al. 2020), offline: Q is pushed down on actions of the policy and up on those of the data, so that what the data does not hold looks worse, not better.
awr awac | advantage-weighted regression (Peng et al. 2019): imitate your own actions with weights exp(advantage / beta), usually capped; awac (Nair et al. 2020) takes the advantage from a critic learned off-policy.
bc | behaviour cloning: supervised learning of the data's actions; the least that an offline method should beat.
dreamer dreamerv3 | learning in imagination (Hafner et al. 2023): a world model with discrete latents is learned from replay, and actor and critic learn on trajectories that it dreams.
rainbow | six additions to DQN together (Hessel et al. 2018): double, dueling, n-step, prioritised replay, distributional values, noisy layers.
c51 qrdqn iqn | distributional DQN: the whole distribution of the return is learned, as 51 bins (Bellemare et al. 2017) or as quantiles (Dabney et al. 2018).
reinforce vpg | the plain policy gradient (Williams 1992): log-probability times return, without a bound on the size of the update.
impala vtrace v-trace | many actors, one learner (Espeholt et al. 2018): V-trace corrects for a policy that is older than the learner's with clipped importance ratios.
her | hindsight experience replay (Andrychowicz et al. 2017): failed episodes are stored again with the goal that they did reach.
muzero | planning with a learned model (Schrittwieser et al. 2020): tree search over latent states, trained on what the search finds.
on-policy | learning only from data of the present policy (PPO, A2C): each batch is used for a few passes and thrown away.
off-policy | learning from data of older policies or of others, out of a replay (DQN, SAC, TD3) or a fixed set (IQL, CQL).
replay | the store of transitions that off-policy methods draw their batches from; its size is `algo.replay`.
target-network target-networks | a slower copy of a network by which the targets of its own learning are computed, so that it does not chase itself; DQN copies it every `algo.target_every` updates, SAC lets it follow by a share `algo.tau` of each update.
replay-ratio | how often a transition is learned from on average: updates per step times transitions of a minibatch (`algo.updates_per_step` * `algo.minibatch`).
td td-error | temporal difference: reward + gamma * value of the next state - value of this state; what a critic is wrong by after one step, and what it learns from.
actor | the network that chooses actions: the policy. Next to it stands a critic, which says what a state or an action is worth.
critic | the network that estimates the return to come, of a state (V, as in PPO) or of an action in a state (Q, as in SAC); the actor learns from it.
advantage | how much better an action did than the policy does on average from that state: A = Q - V. PPO normalises it over a batch (`algo.norm_adv`).
bootstrap bootstrapping | to put an estimate of the value where the rewards of the future would stand; right at a time limit, wrong at a true end. In statistics: resampling seeds to get an interval.
truncation truncated | an episode that was cut, by a time limit say: the state was not the end, so its value still counts. A true end is a termination.
termination terminated | an episode that truly ended: nothing can be earned behind it, so its value is 0. One that was only cut is a truncation.
iqm | interquartile mean (Agarwal et al. 2021): the mean of the middle half of the runs; for many tasks with few seeds each.
"""  # noqa: E501 - a line a word


def texts() -> dict[str, str]:
    """Word -> what it means.

    >>> texts()["a3c"][:24], "gae" in texts()
    ('advantage actor-critic (', True)
    """
    rows = [line.split("|", 1) for line in TEXTS.strip().splitlines()]
    return {word: text.strip() for words, text in rows for word in words.split()}
