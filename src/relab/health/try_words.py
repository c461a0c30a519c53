"""Which words of a rule's advice does this run's algorithm have? Others are said in its own words, or left out."""

from __future__ import annotations

import re
from functools import lru_cache

from relab.config import layers, registry
from relab.formats.read import sb3
from relab.health.foreign import setting_name
from relab.health.usual import CLEANRL, SB3, library
from relab.health.view import View

WORD = re.compile(r"`([a-z_][a-z_0-9]*)(?:=[^`]*)?`")  # a setting, or one with its value
# Settings that do the same in different algorithms; of an algorithm that has several, the first is named.
ALIKE = (
    ("ent_coef", "entropy", "target_entropy", "epsilon_until", "exploration_fraction", "exploration_noise", "sigma_mu"),
    ("exploration_fraction", "epsilon_until"),
    ("exploration_final_eps", "epsilon_final", "end_e"),
    ("lr", "alpha_pi", "policy_lr"),
    ("epochs", "update_epochs"),
    ("max_grad_norm", "grad_clip"),
    ("value_coef", "vf_coef"),
    ("gradient_steps", "updates_per_step", "train_freq", "train_frequency"),
    ("train_freq", "train_frequency"),
    ("tau", "slow_rate"),
)  # fmt: skip
BESIDES = {"ppo": frozenset({"target_kl"})}  # settings of the libraries that are off by default
THEIRS = {ours: theirs for theirs, ours in sb3.KEYS.items()}


def known(view: View) -> frozenset[str] | None:
    """The settings that the run's program has; None where nobody knows which these are."""
    own = frozenset(key.rpartition(".")[2] for key in view.config)
    if view.history.trained_by_relab:
        name = view.config.get("algo.name")
        return own | settings_of(name) if isinstance(name, str) and name in registry.ALGOS else None
    table = (CLEANRL if library(view) == "cleanrl" else SB3).get(str(view.algo))
    return own | frozenset(table) | BESIDES.get(str(view.algo), frozenset()) if table is not None else None


@lru_cache
def settings_of(algo: str) -> frozenset[str]:
    return frozenset(key.rpartition(".")[2] for key in layers.schema(algo, None))


def fitted(text: str, view: View) -> str:
    """An advice in the words of the run's own program; what it cannot set is left out."""
    settings = known(view)
    if settings is None:
        return text
    for token, word in dict.fromkeys((match[0], match[1]) for match in WORD.finditer(text)):
        mine = own_word(word, settings)
        shown = name_of(view, mine) if mine else ""
        again = f"`{shown}`" in text and shown != word
        text = _without(text, token) if not mine or again else text.replace(token, token.replace(word, shown, 1))
    return text


def has(view: View, key: str) -> bool:
    """Whether the run's program has a setting; True where nobody knows what it has."""
    settings = known(view)
    return settings is None or key in view.config or key.rpartition(".")[2] in settings


def own_word(word: str, settings: frozenset[str]) -> str:
    """The word itself, else the one that does the same; empty where there is none."""
    if word in settings or word not in _advised():
        return word
    alike = (other for row in ALIKE if word in row for other in row if other in settings)
    return next(alike, "")


@lru_cache
def _advised() -> frozenset[str]:
    """Words that are settings of some algorithm: of others (`relab`, a file) nothing is known."""
    tables = [frozenset(table) for library_ in (SB3, CLEANRL) for table in library_.values()]
    return frozenset().union(*tables, *map(settings_of, registry.ALGOS), *ALIKE, {"replay_ratio"})


def name_of(view: View, word: str) -> str:
    """As the program calls it: learning_rate for lr in a log of Stable-Baselines3."""
    key = next((key for key in view.config if key.rpartition(".")[2] == word), None)
    if key is not None:
        return setting_name(view, key)
    return word if view.history.trained_by_relab or library(view) == "cleanrl" else _theirs(word)


def _theirs(word: str) -> str:
    return THEIRS.get(f"algo.{word}", THEIRS.get(word, word))


def _without(text: str, token: str) -> str:
    """Without one of several settings; where it is the only one of its clause, without the clause."""
    for pattern in (r" \({}\)", r"{}, (?=`)", r", {}(?=[,)])", r" or {}", r"{} or "):
        shorter = re.sub(pattern.format(re.escape(token)), "", text)
        if token not in shorter:
            return shorter
        text = shorter
    clauses = re.split(r"(; |, or |, )", text.removesuffix("."))
    kept = [clause for clause in clauses[::2] if token not in clause]
    return "; ".join(kept) + "." if kept else "look at the other findings first."
