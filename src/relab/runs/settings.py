"""What is set in one run, and what differs between two? The settings of any tool's run as plain values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from relab.base import masks
from relab.base.documents import Document, Settings
from relab.base.numbers import is_number
from relab.base.places import printable
from relab.base.text import plural
from relab.config import layers
from relab.record.state import seed_of

FEW = 8  # settings: a record that holds no more of them does not say how the run was made


class RunSettings(NamedTuple):
    """A config as plain values, and the keys that the log alone tells."""

    config: Settings
    logged: Collection[str] = ()


@dataclass(frozen=True)
class Difference:
    """Only what differs between two configs, biggest change first; secrets are masked in all that is shown."""

    both: Sequence[RunSettings]

    @property
    def changes(self) -> list[layers.Change]:
        return layers.diff(*(each.config for each in self.both))

    @property
    def alike(self) -> str:
        """What "no difference" rests on: logs of other tools may hold hardly any of a run's settings."""
        keys = [layers.flatten(each.config) for each in self.both]
        common = sorted(keys[0].keys() & keys[1].keys())
        if len(common) > FEW:
            return f"no difference ({len(common)} settings compared)"
        names = f": {', '.join(masks.mask(key) for key in common)}" if common else ""
        return (f"no difference in what is recorded ({plural(len(common), 'setting')} compared{names}); these records"
                " hold no other settings")  # fmt: skip

    def rows(self) -> list[Document]:
        return [{"key": masks.mask(c.key), "a": masks.beside(c.key, shown(c.a)), "b": masks.beside(c.key, shown(c.b)),
                 "size": c.size} for c in self.changes]  # fmt: skip

    def lines(self) -> list[str]:
        """A line for each key: its values, how many times as large, whether only the log tells it."""
        changes = self.changes
        width = max((len(masks.mask(c.key)) for c in changes), default=0)
        lines = []
        for c in changes:
            values = f"{masks.beside(c.key, c.a)!s} -> {masks.beside(c.key, c.b)!s}"
            times = "" if c.key == "seed" else ratio(c.a, c.b)
            lines.append(printable(f"{masks.mask(c.key):{width}}  {values}{times}{self._origin(c.key)}"))
        return lines

    def _origin(self, key: str) -> str:
        return "  (read from the log)" if any(key in each.logged for each in self.both) else ""


def settings_of(path: Path) -> RunSettings:
    """The settings of the one run at a path, or of a YAML file; nothing that they name is imported."""
    if path.is_file() and path.suffix in (".yaml", ".yml"):
        return RunSettings(layers.read_yaml(path))
    from relab.formats.read import find, logged_settings

    sources = list(find.find(path))
    layers.require(len(sources) == 1, f"{path} must be one run, but holds {len(sources)}")
    run = find.read(sources[0])
    seed = seed_of(run, path.resolve().name)  # of the name, where no setting says it
    config = run.config if seed is None else {**run.config, "seed": seed}
    layers.require(bool(config), f"{path} has no settings in its record ({run.source})")
    return RunSettings(config, logged_settings.of(run))


def shown(value: Any) -> Any:
    return None if value is layers.MISSING else value


def ratio(a: Any, b: Any) -> str:
    """How many times as large, of two numbers above 0; -1 and the like are words.

    >>> ratio(0.1, 0.2), ratio(500, -1), ratio(True, 1)
    ('  (x2)', '', '')
    """
    numbers = all(is_number(x) and x > 0 for x in (a, b))
    return f"  (x{b / a:.4g})" if numbers else ""
