"""What changed from one config to another, may the difference be assigned to it, and is it still the same family?

One factor at a time: a difference that has two causes cannot be assigned to either, so more than one changed factor is
confounded. How long a run trains, how it is measured and where it is kept are no factors; settings that only mean
something together (a recurrent layer and its size) are one. A change of architecture or environment opens a new family:
numbers of two families are not held against each other as if one setting had been tuned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from relab.base.documents import Settings
from relab.config.views import MISSING, Change, config_hash, diff, flatten

NO_FACTOR = re.compile(
    r"(?:foreign\.)?(?:seed|total_steps|total_timesteps|budget|device|threads|(?:eval|save)\..*|algo\.chunk|run|run_name|name"
    r"|exp_name|log_?dir|output_?dir|track|capture_video|wandb\S*)"
)
# The first key, where it changes, explains the others: they are counted with it.
TOGETHER = (
    ("env.name", r"env\..*"),
    ("algo.name", r"algo\..*"),
    ("algo.rnn", r"algo\.(?:rnn_size|bptt)"),
    ("algo.lr_schedule", r"algo\.(?:lr_final|target_kl)"),
    ("start_from", r"start_parts"),
)
ENV = re.compile(r"env\..*|(?:foreign\.)?(?:env|env_id|env_name|environment|task)(?:\..*)?")
AS_BEFORE = ("algo.encoder", "auto")  # what runs had before there was a choice: their family stays the same
ARCHITECTURE = re.compile(
    r"(?:.*\.)?(?:algo\.name|hidden(?:_size|_sizes|_dim|_layers)?|d_hidden|layers|n_layers|num_layers|depth|width|net_arch"
    r"|network|architecture|arch|encoder|decoder|activation(?:_fn)?|rnn(?:_size|_type)?|lstm_size|embed(?:ding)?_dim|d_model)"
)


FromTo = TypedDict("FromTo", {"from": Any, "to": Any})  # one key of a proposal's diff, as its JSON has it


@dataclass(frozen=True)
class Factor:
    """One thing that changed; `with_it` are the settings that only changed because of it."""

    key: str
    a: Any
    b: Any
    with_it: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """env, architecture or training."""
        return "env" if ENV.fullmatch(self.key) else "architecture" if ARCHITECTURE.fullmatch(self.key) else "training"


def factors(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Factor]:
    """What changed, biggest first; the seed, the budget and what is measured are left out."""
    changes = [c for c in diff(before, after) if not NO_FACTOR.fullmatch(c.key)]
    grouped: list[Factor] = []
    taken: set[str] = set()
    for first, others in TOGETHER:
        lead = next((c for c in changes if c.key == first and c.key not in taken), None)
        if lead is not None:
            mine = [c.key for c in changes if c is not lead and c.key not in taken and re.fullmatch(others, c.key)]
            taken |= {lead.key, *mine}
            grouped.append(Factor(lead.key, lead.a, lead.b, tuple(mine)))
    return grouped + [Factor(c.key, c.a, c.b) for c in changes if c.key not in taken]


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, FromTo]:
    """The factors as the diff of a proposal: key -> {from, to}; a key that one side lacks is null there."""
    return {f.key: {"from": _plain(f.a), "to": _plain(f.b)} for f in factors(before, after)}


def _plain(value: Any) -> Any:
    return None if value is MISSING else value


def quiet(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What changed and is no factor, without the seed: a longer run, another evaluation."""
    return [c for c in diff(before, after) if NO_FACTOR.fullmatch(c.key) and c.key != "seed"]


# ---- Families


@dataclass(frozen=True)
class Family:
    """Runs whose numbers belong together: one environment, one architecture."""

    name: str  # cartpole-v1.ppo.3fa2: the same config gives the same name, whenever and wherever it is asked
    keys: Settings


def family(config: Mapping[str, Any]) -> Family | None:
    """The family of a config; None where it names no environment."""
    flat = {key: value for key, value in flatten(config).items() if ENV.fullmatch(key) or ARCHITECTURE.fullmatch(key)}
    flat = {key: value for key, value in flat.items() if (key, value) != AS_BEFORE}
    env = next((flat[key] for key in flat if ENV.fullmatch(key) and isinstance(flat[key], str)), None)
    if env is None:
        return None
    algo = flat.get("algo.name") if isinstance(flat.get("algo.name"), str) else None
    words = [re.sub(r"[^\w+-]+", "-", str(word)).strip("-")[:30] for word in (env, algo) if word]
    return Family(".".join([*words, config_hash(flat, ())[:4]]), flat)


def opened(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Factor]:
    """The changes that open a new family; empty where it stays the same one."""
    return [factor for factor in factors(before, after) if factor.kind != "training"]
