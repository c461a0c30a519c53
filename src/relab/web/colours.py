"""Which colour has a group? The same on every page and on every day, whatever other groups come, go or are hidden.

The first time, places are those of the report; later groups get one that is free. One config has one colour in all
environments. What was given is remembered in the user's cache folder; it can be deleted, and is then given anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.runs.naming import task_names
from relab.runs.seeds import SeedGroup
from relab.web.remembered import file_of, folder_of

SCHEMA = 1
STYLES = 18  # six colours, each as a whole, a dashed and a dotted line
MOST = 2000  # groups whose colour is remembered; of more nobody tells them apart by colour


class Colours:
    """The places that the groups of one folder have."""

    def __init__(self, root: Path):
        self.root = root
        self.places = _read(root)

    def fixed(self, groups: Sequence[SeedGroup]) -> list[SeedGroup]:
        """Each group with its place; new ones are remembered."""
        few, names = groups[:MOST], _names(groups[:MOST])
        known = {name: self.places[g.key] for g, name in zip(few, names) if g.key in self.places}
        used, mine = Counter(self.places.values()), _by_env(few, self.places)
        before, fresh = len(self.places), not self.places  # the first time the report's own
        for group, name in zip(few, names):
            if group.key in self.places:
                continue
            free = group.place % STYLES if fresh else self._free(mine[group.env], used)
            place = known.setdefault(name, free)
            self.places[group.key] = place
            used[place] += 1
            mine[group.env][place] += 1
        if len(self.places) > before:
            _write(self.root, self.places)
        return [replace(g, place=self.places.get(g.key, int(g.key[:6], 16) % STYLES)) for g in groups]

    @staticmethod
    def _free(mine: Counter[int], used: Counter[int]) -> int:
        """One that nobody in the environment has: a whole line before a dashed one, and one that few others have."""
        return min(range(STYLES), key=lambda place: (mine[place], place // 6, used[place], place))


def _names(groups: Sequence[SeedGroup]) -> list[str]:
    """The label of each without its environment: what is one config in several of them."""
    labels: dict[str, list[str]] = {}
    for group in groups:
        labels.setdefault(group.env, []).append(group.label)
    names = {env: task_names(some, env) for env, some in labels.items()}
    return [names[group.env][group.label] for group in groups]


def _by_env(groups: Sequence[SeedGroup], places: dict[str, int]) -> dict[str, Counter[int]]:
    """How often each place is taken in each environment: those who stand in one figure are told apart first."""
    taken: dict[str, Counter[int]] = {group.env: Counter() for group in groups}
    for group in groups:
        if group.key in places:
            taken[group.env][places[group.key]] += 1
    return taken


def _read(root: Path) -> dict[str, int]:
    try:
        body = read_json(folder_of("colours"), file_of(root))
    except (RecordError, OSError):
        return {}
    rows = body.get("places")
    if body.get("schema") != SCHEMA or not isinstance(rows, dict):
        return {}
    return {str(key): value for key, value in rows.items() if isinstance(value, int) and 0 <= value < STYLES}


def _write(root: Path, places: dict[str, int]) -> None:
    """A cache that cannot be written is no error: colours are then those of this start."""
    try:
        folder_of("colours").mkdir(parents=True, exist_ok=True)
        write_atomic(folder_of("colours") / file_of(root), encode({"schema": SCHEMA, "places": places}))
    except OSError:
        pass
