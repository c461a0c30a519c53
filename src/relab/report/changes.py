"""What was set differently, and is that the likely cause? Keys against the parent, the reference or relab's preset.

A cause is named only where two things meet: a finding whose advice names a key, and that key standing on the side of
its base that the advice leads back from. Without such a match the finding is named, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from relab.base.documents import Settings
from relab.base.enclosed import neighbour
from relab.base.numbers import is_number
from relab.config import layers, lineage, registry
from relab.config.views import MISSING, Change, diff, flatten
from relab.health.rule import Finding
from relab.record.history import History
from relab.report.parts import ConfigChanges
from relab.runs import grouping
from relab.runs.grouping import Group, shown

QUIET_KEYS = ("seed", "algo.name", "env.name")  # in the title or the outcome already
NO_CAUSE = re.compile(r"seed|total_steps|threads|device|(?:eval|save)\..*|(?:.*\.)?name")  # change no update
LISTS_CHANGES = "unmentioned-config-change"  # its advice is the diff itself: asked last, or it would explain all
DOWN = re.compile(r"\b(?:lower|cut|fewer|smaller|reduce|decrease|shorter|drop)\b", re.IGNORECASE)
UP = re.compile(r"\b(?:raise|larger|more|increase|longer|higher|widen)\b", re.IGNORECASE)
SET = re.compile(r"\b(?:set|use|turn on|switch on)\b", re.IGNORECASE)


class Base(NamedTuple):
    """What a run is held against: reference, parent or preset, and its settings."""

    kind: str
    settings: Settings


def base_of(run: History, reference: History | None = None) -> Base | None:
    """The reference the user named; else the parent where it lies beside the run; else relab's preset."""
    if reference is not None and reference.config:
        return Base("reference", reference.config)
    parent = parent_of(run)
    if parent is not None:
        try:
            return Base("parent", layers.read_yaml(parent / "config.yaml"))
        except (OSError, layers.YamlError):
            pass  # told in not_known
    return _preset(run)


def parent_of(run: History) -> Path | None:
    """The parent's folder, where it lies beside the run."""
    return neighbour(run.folder.resolve().parent, run.meta.get("parent"))


def _preset(run: History) -> Base | None:
    flat = flatten(run.config)
    chosen = {key: v for key in ("algo.name", "env.name") if isinstance(v := flat.get(key), str)}
    if not run.trained_by_relab or not registry.is_ours(chosen.get("env.name"), chosen.get("algo.name")):
        return None
    try:
        return Base("preset", layers.to_dict(layers.resolve([layers.Layer("defaults", chosen)]).config))
    except (layers.ConfigError, ImportError):
        return None


# ---- The table


def config_changes(groups: list[Group], reference: History | None = None) -> ConfigChanges:
    """Keys that differ between the groups; for one group, from its base."""
    if len(groups) > 1:
        keys = grouping.differing(groups)
        rows = [[key, *(shown(flatten(g.config).get(key, MISSING)) for g in groups)] for key in keys]
        return ConfigChanges("Config keys that differ", ["key", *(g.label for g in groups)], rows)
    run = groups[0].runs[0].history
    base = base_of(run, reference)
    if base is None:
        return _set_keys(run)
    newer = [c.key for c in diff(base.settings, run.config) if base.kind == "preset" and c.b is MISSING]  # than the run
    rows = [[c.key, shown(c.a), shown(c.b)] for c in diff(base.settings, run.config)
            if c.key not in (*QUIET_KEYS, *newer)]  # fmt: skip
    said = marks(base.settings, run.config) if base.kind == "parent" else []
    return ConfigChanges(f"Config against its {base.kind}", ["key", base.kind, "this run"], rows, said or None)


def marks(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What limits a comparison with the parent: two changes at a time, another family."""
    factors, opened = lineage.factors(before, after), lineage.opened(before, after)
    named = ", ".join(factor.key for factor in factors[:4]) + (" ..." if len(factors) > 4 else "")
    confounded = [f"confounded: {len(factors)} factors changed ({named}), the difference cannot be assigned to one"]
    why = ", ".join(f"{factor.key} changed {shown(factor.a)} → {shown(factor.b)}" for factor in opened[:3])
    family = lineage.family(after)
    new = [f"new family: {family.name}, because {why}"] if family and opened else []
    return (confounded if len(factors) > 1 else []) + new


def _set_keys(run: History) -> ConfigChanges:
    """What somebody chose, where there is nothing to hold it against."""
    flat = flatten(run.config)
    if not run.provenance or run.source != "relab":  # another tool's record does not say which are its defaults
        ordered = sorted(flat.items(), key=lambda item: item[0].startswith("foreign."))  # what relab knows comes first
        rows = [
            [key, shown(value), str(run.provenance.get(key, ""))] for key, value in ordered if key not in QUIET_KEYS
        ]
        few = any(row[2] for row in rows)
        return ConfigChanges("Config", ["key", "value", "from"][: 2 + few], [row[: 2 + few] for row in rows])
    unchosen = ("defaults", "preset")
    chosen = {
        k: v for k, v in run.provenance.items() if str(v).partition(" ")[0] not in unchosen and k not in QUIET_KEYS
    }
    rows = [[key, shown(flat.get(key, MISSING)), str(source)] for key, source in chosen.items()]
    return ConfigChanges("Config keys that were set", ["key", "value", "from"], rows)


# ---- The likely cause


def likely(findings: Sequence[Finding], changes: Sequence[Change]) -> tuple[str, Finding] | None:
    """(ent_coef x12, the finding that says so) of the first finding whose advice names a changed key."""
    able = [c for c in changes if not NO_CAUSE.fullmatch(c.key)]
    for finding in sorted(findings, key=lambda f: f.slug == LISTS_CHANGES):
        for one in finding.suggest:
            change = next((c for c in able if _leads_back(one, c)), None)
            if change is not None:
                return change_text(change), finding
    return None


def change_text(change: Change) -> str:
    """lr x12 for numbers of one sign; KEY a → b for the rest."""
    key = change.key.rpartition(".")[2]
    if is_number(change.a) and is_number(change.b) and change.a * change.b > 0:
        times = change.b / change.a
        if 0.001 <= times <= 1000:  # x3.33e+08 would say less than the two values
            return f"{key} x{float(f'{times:.3g}'):g}"
    return f"{key} {shown(change.a)} → {shown(change.b)}"


def _leads_back(one: Any, change: Change) -> bool:
    """Whether following the advice would move this key towards its base."""
    if isinstance(one, dict):
        return one.get("key") == change.key and _towards(one.get("from"), one.get("to"), change)
    return any(_clause_fits(clause, change) for clause in re.split(r"[;,.](?=\s|$)", str(one)))


def _towards(start: Any, end: Any, change: Change) -> bool:
    if all(is_number(v) for v in (start, end, change.a, change.b)):
        return (end - start) * (change.a - change.b) > 0
    return end == change.a or shown(end) == shown(change.a)


def _clause_fits(clause: str, change: Change) -> bool:
    """`lower lr or epochs`: the verb holds for every key of its clause; a clause without one tells no direction."""
    if f"`{change.key}`" not in clause and f"`{change.key.rpartition('.')[2]}`" not in clause:
        return False
    if DOWN.search(clause) or UP.search(clause):
        return is_number(change.a) and is_number(change.b) and (change.b > change.a) == bool(DOWN.search(clause))
    return bool(SET.search(clause)) and change.b in (None, 0, False) and change.a not in (None, 0, False)
