"""Which rules does a folder's relab.toml leave out, and why? Never without a reason.

[ignore]
throughput-drop = "the machine was shared"
[env.pendulum-v1.ignore]
plateau = "the budget is short on purpose"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.base.near import hint
from relab.config.base import ConfigError
from relab.formats.read.hints import FILE, read_toml


@dataclass
class Mutes:
    """Slug -> reason, for all runs and per environment."""

    everywhere: dict[str, str] = field(default_factory=dict)
    by_env: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, env: Any) -> dict[str, str]:
        return self.everywhere | self.by_env.get(str(env), {})

    @property
    def reasons(self) -> dict[str, str]:
        """All of them, those of one environment named so."""
        ours = {f"{slug} on {env}": why for env, table in self.by_env.items() for slug, why in table.items()}
        return self.everywhere | ours


def read_mutes(root: Path, known: Mapping[str, Any], ignored: Mapping[str, str]) -> Mutes:
    """What relab.toml in the examined folder and the command line leave out."""
    path, settings = root / FILE, read_toml(root)
    tables = {"": settings.get("ignore", {})}
    envs = settings.get("env", {})
    for env, section in (envs if isinstance(envs, dict) else {}).items():
        tables[env] = section.get("ignore", {}) if isinstance(section, dict) else section
    for table in tables.values():
        check(table, known, path)
    return Mutes(tables.pop("") | dict(ignored), tables)


def check(table: Any, known: Mapping[str, Any], path: Path) -> None:
    if not isinstance(table, dict):
        raise ConfigError(f'`ignore` of {path} must be a table of slug = "reason", but is {table!r}')
    for slug, why in table.items():
        if slug not in known:
            raise ConfigError(f"{path} ignores {slug!r}, but there is no such rule{hint(slug, known)}")
        if not isinstance(why, str) or not why.strip():
            raise ConfigError(f"{path} ignores {slug!r}, but gives no reason for it")
