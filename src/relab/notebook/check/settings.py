"""Is a number of a write-up a setting of the run, or clearly another than it?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relab.base.numbers import is_number
from relab.notebook.check.claim import Claim
from relab.notebook.check.record import RunRecord
from relab.notebook.check.verdict import Checked
from relab.notebook.check.wording import Number


def is_quoted(setting: Any, one: Number) -> bool:
    """Whether a setting shows as the number: settings are not cut off, and a first digit is not rounded away."""
    return is_number(setting) and abs(float(setting) - one.value) <= min(one.unit / 2, 0.2 * abs(one.value)) * (
        1 + 1e-9
    )


def is_other(setting: Any, one: Number) -> bool:
    """Whether a setting is clearly not the number."""
    gap = abs(float(setting) - one.value)
    return gap > one.unit / 2 and gap > (0.3 if one.hedged else 0.1) * max(abs(float(setting)), abs(one.value))


def shown(record: RunRecord, keys: Iterable[str]) -> str:
    return "; ".join(f"the setting {key.removeprefix('foreign.')} is {record.settings[key]}" for key in list(keys)[:3])


def differs(claim: Claim, record: RunRecord) -> Checked:
    values = [record.settings[key] for key in claim.names.keys]
    settings = shown(record, claim.names.keys)
    if not all(is_number(v) and is_other(v, n) for n in claim.numbers for v in values):
        return Checked(claim, says=settings)
    return Checked(claim, "contradicted", settings, "setting-differs")
