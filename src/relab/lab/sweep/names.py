"""What is a trial called? By its swept values, so that a folder's name can be read: b0p005_aw0p02_tmos0p2778_4bd77e92.

Initials of the setting's words (short ones whole), four digits of the value, `.` as p and `-` as m; then eight digits
of a hash of the exact values, the same in every call. A run has its seed before the hash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from relab.base.numbers import is_number
from relab.config.base import require
from relab.config.views import config_hash

WHOLE = 3  # letters up to which a word is not abbreviated
LONGEST = 120  # of a name
TEXT = 12  # letters of a value
SEED = "sS"  # what stands for the seed: s64 would be read as one


def shorts(keys: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Setting -> what it is called in names; those that would share an abbreviation keep their whole word.

    >>> shorts(["beta", "algo.alpha_w", "theta_mu_offset_scale", "lr"], {})
    {'beta': 'b', 'algo.alpha_w': 'aw', 'theta_mu_offset_scale': 'tmos', 'lr': 'lr'}
    """
    last = {key: key.rpartition(".")[2] for key in keys}
    short = {key: chosen.get(key) or initials(word) for key, word in last.items()}
    for fuller in (last, {key: key for key in keys}):
        twice = [key for key in keys if list(short.values()).count(short[key]) > 1 and key not in chosen]
        short |= {key: re.sub(r"\W+", "", fuller[key]) for key in twice}
    require(len(set(short.values())) == len(short), f"axes need different short names, but got {short}; see `names`")
    return short


def initials(word: str) -> str:
    parts = [part for part in re.split(r"[\W_]+", word) if part]
    if len(parts) == 1:
        return parts[0] if len(parts[0]) <= WHOLE or parts[0][0] in SEED else parts[0][0]
    return "".join(part[0] for part in parts) or "x"


def value_text(value: Any) -> str:
    """0.2778 -> 0p2778, -1e-05 -> m1em05; text by its first letters."""
    if is_number(value):
        text = str(value) if isinstance(value, int) else f"{value:.4g}"
        return text.replace(".", "p").replace("-", "m").replace("+", "")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9]+", "", text)[:TEXT] or "x"


def label(point: Mapping[str, Any], short: Mapping[str, str]) -> str:
    words = "_".join(f"{short[key]}{value_text(value)}" for key, value in point.items())
    return words[:LONGEST].rstrip("_")


def trial(point: Mapping[str, Any], short: Mapping[str, str]) -> str:
    return f"{label(point, short)}_{digest(point)}"


def run(point: Mapping[str, Any], short: Mapping[str, str], seed: int) -> str:
    return f"{label(point, short)}_s{seed}_{digest(point)}"


def digest(point: Mapping[str, Any]) -> str:
    return config_hash({"point": dict(point)}, without=())[:8]
