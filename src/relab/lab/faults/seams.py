"""Where can a fault be planted? Named places that training looks up when it calls them, and what replaces them there.

An algorithm knows nothing of faults: a seam is an ordinary function or method, and `planted` puts another one in its
place for as long as a run takes. A replacement is made from the original: original -> function with the same signature.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Replace = Callable[[Any], Any]

DREAMER = "relab.train.algos.dreamer"
# name -> module:attribute, and what the place promises
SEAMS = {
    "collect": "relab.train.algos.ppo:collect",  # (state): one batch of experience, acted by the current policy
    "environment": "relab.train.session:make_env",  # (config): the environment of training and evaluation
    "appraise": "relab.train.algos.ppo:appraise",  # (state): the batch with its advantages and value targets
    "successor values": "relab.train.algos.ppo:successor_values",  # (state): V(s'), 0 where the episode terminated
    "gae": "relab.train.nets.returns:gae",  # rewards, values, ends -> advantages
    "standardised": "relab.train.algos.ppo:standardised",  # the advantages that the loss uses
    "learner": "relab.train.algos.ppo:make_learner",  # what computes the gradient
    "minibatch": "relab.train.algos.ppo:take_step",  # one step of the optimiser
    "episode metrics": "relab.train.algos.ppo:episode_metrics",  # what the finished episodes earned
    "restore": "relab.train.algos.ppo:State.load",  # a checkpoint's state into the run's
    "replayed step": "relab.train.algos.gathering:Gathering.step",  # (gathering, policy, counts): a step is kept
    "updates due": "relab.train.algos.gathering:due",  # (counts, start of learning, updates per step): now
    "replayed returns": "relab.train.algos.sac:targets",  # (replay, rows, cfg): n-step return, discount, last row
    "temperature": "relab.train.algos.sac:adjust_temperature",  # (state, entropy): a step towards the target entropy
    "slow copies": "relab.train.algos.sac:follow_critics",  # (state): the target networks follow the critics
    "replayed returns of dqn": "relab.train.algos.dqn:targets",  # as those of sac
    "slow copy of dqn": "relab.train.algos.dqn:copy_target",  # (state): the target network follows
    "exploration": "relab.train.algos.dqn:exploration",  # (cfg, share of the run): share of random actions
    "first parameters": "relab.train.algos.tracking_ac:first_parameters",  # of a critic and two policies
    "latent kl": f"{DREAMER}.equations:kl",  # (p, q): nats, summed over the latents
    "latent probabilities": f"{DREAMER}.world_model:WorldModel.probs",  # (model, logits): some of each spread evenly
    "recurrent kernels": f"{DREAMER}.fast_scan:core_of",  # sizes and places for the kernels
    "scan": f"{DREAMER}.world_model:WorldModel.scan",  # memory, latents and posterior of rows in order
    "observed rows": f"{DREAMER}.world_model:WorldModel.observe",  # (model, batch, uniform): what it made of them
    "first weights of dreamer": f"{DREAMER}.layers:init",  # (weights, rng, scales of outputs)
    "step of dreamer": f"{DREAMER}.optimiser:LaProp.step",  # (optimiser, turn): the gradient's norm
    "sequences": f"{DREAMER}.sequences:filled",  # (replay, starts, length): rows that are learned from
    "dreamed returns": f"{DREAMER}.equations:lambda_returns",  # rewards, continuation, values -> returns
    "support": f"{DREAMER}.agent:support_of",  # (cfg, spec): numbers that two-hot heads can say
    "dream": f"{DREAMER}.behaviour:Behaviour.dream",  # from every row of a batch, with its returns
    "critic's loss": f"{DREAMER}.behaviour:Behaviour.critic_loss",  # (behaviour, logits, feature, target)
    "measured dreams": f"{DREAMER}.metrics:of_dreams",  # (state, dream, scale): metrics
    "seldom measured": f"{DREAMER}.metrics:seldom",  # (state, batch, course, dream): metrics
    "actor's loss": f"{DREAMER}.behaviour:Behaviour.actor_loss",  # (behaviour, dream, scale, entropy)
    "returns of real rewards": f"{DREAMER}.behaviour:Behaviour.replay_returns",  # (behaviour, batch, dream)
    "focus": f"{DREAMER}.surprise:Focus.note",  # (focus, surprise): whether the next updates are the model's
    "learning in focus": f"{DREAMER}.surprise:Focus.lets_learn",  # (focus): whether actor and critic learn now
    "restore of dreamer": f"{DREAMER}.state:State.load",  # a checkpoint's state into the run's
    "gathered batch": "relab.train.algos.finetune.gathering:gather",  # (worlds, policy, ...): steps of that policy
    "re-rollouts": "relab.train.algos.finetune.rerollout:reruns",  # what copies earned, and the steps that they took
    "expectile loss": "relab.train.algos.finetune.equations:expectile_loss",  # (difference, tau)
    "played episodes": "relab.train.rollout:evaluate",  # (env, policy, seeds, ...): the first episode of each world
    "weights": "relab.train.nets.networks:init",  # the weights a run begins with
    "streams": "relab.base.streams:seed_for",  # (seed, name): the seed of a random stream
    "evaluation seeds": "relab.train.evaluation:world_seeds",  # the seeds that evaluation episodes begin from
    "best": "relab.train.loop:Trainer.candidate",  # (trainer, evaluation): what the best checkpoint is chosen by
}


@contextmanager
def planted(replacements: Mapping[str, Replace]) -> Iterator[None]:
    """Replace the named seams, and put the originals back whatever happens."""
    undo = []
    try:
        for name, replace in replacements.items():
            owner, attribute = place(name)
            original = getattr(owner, attribute)
            undo.append((owner, attribute, original))
            setattr(owner, attribute, replace(original))
        yield
    finally:
        for owner, attribute, original in reversed(undo):
            setattr(owner, attribute, original)


def place(name: str) -> tuple[Any, str]:
    """The object that holds a seam, and the attribute's name there."""
    if name not in SEAMS:
        raise KeyError(f"there is no seam {name!r}; there are: {', '.join(SEAMS)}")
    module, _, path = SEAMS[name].partition(":")
    *owners, attribute = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    return owner, attribute
