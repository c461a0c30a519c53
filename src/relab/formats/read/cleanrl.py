"""What does a CleanRL run say about itself? The table of its arguments, its name, and the names of its metrics.

CleanRL writes TensorBoard files; tensorboard.py reads them and asks here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from relab.base.documents import Settings
from relab.base.numbers import integer
from relab.formats.read.source import Names, name_table

# charts/episodic_return is one finished episode a point; losses are of the last minibatch of an update; qf_loss is the
# mean of both critics'.
NAMES: Names = name_table("""
return/mean              | charts/episodic_return
return/length            | charts/episodic_length
optim/lr                 | charts/learning_rate
time/sps_mean            | charts/SPS
value/loss               | losses/value_loss
policy/loss              | losses/policy_loss
policy/entropy           | losses/entropy
policy/kl                | losses/approx_kl
policy/kl_k1             | losses/old_approx_kl
policy/clip_share        | losses/clipfrac
value/explained_variance | losses/explained_variance
value/critic_loss        | losses/td_loss, losses/qf_loss
value/q_mean             | losses/q_values, losses/qf1_values
policy/actor_loss        | losses/actor_loss
optim/temperature        | losses/alpha
optim/temperature_loss   | losses/alpha_loss
""")

TABLE_TAG = "hyperparameters"
RUN_NAME = re.compile(r"^(?P<env>.+)__(?P<exp>.+)__(?:seed)?(?P<seed>\d+)__(?P<unix>\d{9,11})$")
SHORT_NAME = re.compile(r"^(?P<exp>.+)__seed_?(?P<seed>\d+)__(?P<unix>\d{9,11})$")
WORDS: dict[str, Any] = {"True": True, "False": False, "None": None}


def names_for(tags: Collection[str]) -> Names:
    """The translation of a run's names: DDPG has one critic, and no mean of two."""
    return NAMES if "losses/qf_loss" in tags else {**NAMES, "losses/qf1_loss": ("value/critic_loss", 1)}


def table(text: str) -> Settings:
    """The arguments from the Markdown table that CleanRL logs as text.

    >>> table("|param|value|\\n|-|-|\\n|learning_rate|0.00025|\\n|anneal_lr|True|")
    {'learning_rate': 0.00025, 'anneal_lr': True}
    """
    rows = [line.strip()[1:-1].split("|", 1) for line in text.splitlines() if line.strip().startswith("|")]
    pairs = [(cells[0].strip(), cells[1].strip()) for cells in rows if len(cells) == 2]
    return {key: typed(value) for key, value in pairs[2:] if key}


def typed(value: str) -> Any:
    """A number, True, False, None, else the text itself.

    >>> typed("64"), typed("2.5e-4"), typed("None"), typed("CartPole-v1")
    (64, 0.00025, None, 'CartPole-v1')
    """
    if value in WORDS:
        return WORDS[value]
    for kind in (integer, float):
        try:
            return kind(value) if "_" not in value else value  # int("1_0") is 10
        except ValueError:
            continue
    return value


def name_parts(name: str) -> Settings:
    """What a run's name tells: the environment, the algorithm (the script's name) and the seed.

    >>> name_parts("CartPole-v1__ppo__3__1690000000")
    {'env_id': 'CartPole-v1', 'algo': 'ppo', 'seed': 3}
    >>> name_parts("awr_gae__seed7__1690000000"), name_parts("PPO_1")
    ({'algo': 'awr_gae', 'seed': 7}, {})
    """
    match = SHORT_NAME.match(name) or RUN_NAME.match(name)
    if match is None:
        return {}
    parts = match.groupdict()
    settings: Settings = {"env_id": parts["env"]} if "env" in parts else {}
    return settings | {"algo": parts["exp"], "seed": int(parts["seed"])}
