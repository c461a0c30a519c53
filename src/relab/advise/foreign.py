"""How does another tool say it? A change in the words of the command that made the run; relab never starts it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from relab.advise.proposal import typed
from relab.config.layers import SYNONYMS
from relab.health.foreign import setting_name
from relab.health.rule import Finding, all_rules
from relab.health.view import View


def words(view: View, diff: Mapping[str, Mapping[str, Any]]) -> str:
    """`--learning-rate 0.003`: the flag as the run's own command spells it, else the setting's name there."""
    spelled = flags(str(view.meta.get("command") or ""))
    return " ".join(_word(view, key, change["to"], spelled) for key, change in diff.items())


def _word(view: View, key: str, value: Any, spelled: Mapping[str, str]) -> str:
    own = setting_name(view, key).rpartition(".")[2]
    for name in (own, *names_of(key)):
        if name in spelled:
            return f"{spelled[name]}{shlex.quote(typed(value))}"
    return f"{own}={shlex.quote(typed(value))}"


def names_of(key: str) -> list[str]:
    """What the setting is called elsewhere: algo.lr -> lr, learning_rate."""
    return [key.rpartition(".")[2], *(other for other, ours in SYNONYMS.items() if ours == key)]


def flags(command: str) -> dict[str, str]:
    """Plain name -> how it is typed, up to the value: {"learning_rate": "--learning-rate "}.

    >>> flags("python ppo.py --learning-rate 3e-4 --clip_coef=0.2 seed=1")
    {'learning_rate': '--learning-rate ', 'clip_coef': '--clip_coef=', 'seed': 'seed='}
    """
    try:
        tokens = shlex.split(command)
    except ValueError:  # an open quote
        tokens = command.split()
    spelled = {}
    for token in tokens:
        match = re.fullmatch(r"(-{0,2})([A-Za-z][\w.-]*)(=?)(.*)", token)
        if match and (match[1] or match[3]) and (match[3] or not match[4]):
            name = match[2].replace("-", "_").rpartition(".")[2]
            spelled[name] = f"{match[1]}{match[2]}{match[3] or ' '}"
    return spelled


def start_again(view: View, findings: Sequence[Finding]) -> str | None:
    """The checkpoint a run had loaded, where it began well and lost that: the change is to be tried from there."""
    fired = [all_rules().get(f.slug) for f in findings if f.run == view.name and f.status == "fired"]
    lost = any(rule is not None and rule.from_start for rule in fired)
    loaded = view.meta.get("resumed")
    files = [str(value) for value in loaded.values() if isinstance(value, str)] if isinstance(loaded, dict) else []
    return PurePosixPath(files[0]).name if lost and files else None
