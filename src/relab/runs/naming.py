"""What is a group of runs called? One name in every command: what its runs are called, else what sets it apart.

A name that its runs share without their seeds (bonus-s0, bonus-s1) says what somebody meant by it. Else the settings
that differ name it: lr=0.001. Values are compared as values: 1 and 1.0, or 0.0003 and "3e-4", are no difference.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relab.base.text import in_a_line
from relab.config.views import MISSING, canonical, flatten
from relab.logger import KEYS
from relab.record.history import History
from relab.record.state import SEED_IN_NAME, experiment_name, seedless

HOUSEKEEPING = ("total_steps", "eval.", "save.", "device", "threads", "env.")
# What tools write down that is no choice of the experiment: where, when, under which id.
INCIDENTAL = re.compile(
    r"(?i)(^|[._])(run_?name|exp_?name|run_?id|id|start_?time|timestamp|date|log_?dir|log_?path|save_?path|output_?dir|"
    r"tensorboard_log|wandb.*|track|cuda|_?git.*|hostname)$"
)
MADE = re.compile(r"_[0-9a-f]{8}$")  # a name that a sweep made from the settings: with its hash, for no reader
COUNTER = re.compile(r"[-_.]+\d{1,3}$")  # at the end of a name: the how-manieth
NO_NAME = re.compile(r"(?i)(^|/)(run|trial|try|rep|job|exp|experiment)s?$")  # run_1, run_2: what is counted, no name
USUAL = tuple(dict.fromkeys(KEYS.values()))
COMPARED = 40  # configs that are held against each other, pair by pair
LONGEST_VALUE, BEFORE = 40, 12  # characters of a setting in a name, and how many of them before it is unlike others
MOST = 3  # settings in a name; where more are needed to tell groups apart, their runs' names are shorter


@dataclass(frozen=True)
class Nameable:
    """What a group can be called by."""

    config: Mapping[str, Any]  # dotted key -> value
    names: tuple[str, ...]  # of its runs, as the tool shows them
    env: str = ""


def nameable(runs: Sequence[tuple[History, str]]) -> Nameable:
    """From a group's runs, each with its name."""
    first = runs[0][0]
    spec = first.meta.get("spec")
    title = experiment_name(first)
    flat = flatten(first.config) | ({"exp_name": title} if title else {})
    env = (spec.get("env") if isinstance(spec, dict) else None) or flat.get("env.name") or ""
    return Nameable(flat, tuple(display_name(history, name) for history, name in runs), str(env))


def display_name(history: History, name: str) -> str:
    """What the run's own tool shows: W&B's display name; else the name it was found by."""
    own = history.meta.get("name") if history.source != "relab" else None
    return in_a_line(own) if isinstance(own, str) and own.strip() else name


def labels(groups: Sequence[Nameable]) -> list[str]:
    """A name for each, all different."""
    if len(groups) == 1:
        (only,) = groups
        return [only.names[0] if len(only.names) == 1 else algo_on_env(only)]
    return _different(_labels(groups), groups)


def _labels(groups: Sequence[Nameable]) -> list[str]:
    for whole in (False, True):
        stems = [_stem(group, whole) for group in groups]
        if all(stems) and len(set(stems)) == len(stems):
            return stems
    if sum(map(bool, stems)) > len(stems) / 2:  # among names, two names are a name
        stems = [stem or _both(group) for stem, group in zip(stems, groups)]
    by_settings, clashing, times = _by_settings(groups), _with_stem(groups, stems), Counter(stems)
    return [stem if stem and times[stem] == 1 else clashing.get(i, by_settings[i]) for i, stem in enumerate(stems)]


def _both(group: Nameable) -> str:
    stems = dict.fromkeys(seedless(name.rpartition("/")[2]) for name in group.names)
    return " + ".join(stems) if len(stems) == 2 and not any(map(MADE.search, stems)) else ""


def _with_stem(groups: Sequence[Nameable], stems: Sequence[str]) -> dict[int, str]:
    """Of groups whose runs are called alike: that name, and the settings that differ among them alone."""
    texts: dict[int, str] = {}
    for stem in [stem for stem, times in Counter(stems).items() if stem and 1 < times < len(stems)]:
        alike = [i for i, each in enumerate(stems) if each == stem]
        configs = [groups[i].config for i in alike]
        keys = _telling(configs, differing(configs))
        texts |= {i: f"{stem}, {_said(groups[i].config, keys, configs)}" for i in alike if 0 < len(keys) <= MOST}
    return texts


def _stem(group: Nameable, whole: bool) -> str:
    """What the runs are called without their seed, or without what counts them; empty where that is no one name."""
    stems = {seedless(name if whole else name.rpartition("/")[2]).strip("/") for name in group.names}
    if len(stems) > 1 and not any(MADE.search(each) or SEED_IN_NAME.fullmatch(each) for each in stems):  # ok_1, ok_2
        stems = {NO_NAME.sub("", COUNTER.sub("", each)) for each in stems}
    stem = stems.pop() if len(stems) == 1 else ""
    return "" if MADE.search(stem) else stem


def _by_settings(groups: Sequence[Nameable]) -> list[str]:
    """Groups of one algorithm on one environment by what differs among them; others by that alone."""
    folders = dict(zip(map(id, groups), _own_folders(groups)))
    tasks: dict[tuple[str, str], list[Nameable]] = {}
    for group in groups:
        tasks.setdefault((str(group.config.get("algo.name")), group.env), []).append(group)
    texts: dict[int, str] = {}
    for members in tasks.values():
        configs = [group.config for group in members]
        keys = _telling(configs, differing(configs))
        for group in members:
            said = _said(group.config, keys, configs) if len(keys) <= MOST else ""
            folder = "" if group.env or said else folders[id(group)]
            task = folder or (algo_on_env(group) if len(tasks) > 1 or not said else "")
            if said and not (group.env or group.config.get("algo.name")):
                task = _common_folder(members)  # a run's whole name beside what sets it apart says it twice
            texts[id(group)] = ", ".join(part for part in (task, said) if part)
    return [texts[id(group)] for group in groups]


def _common_folder(groups: Sequence[Nameable]) -> str:
    """The folder that all runs of some groups lie in; empty where that is the one that was read."""
    folders = {name.rpartition("/")[0] for group in groups for name in group.names}
    return os.path.commonpath(folders) if all(folders) else ""


def _own_folders(groups: Sequence[Nameable]) -> list[str]:
    """For each group the folder that holds its runs and no others, which somebody has named; empty where there is none."""
    homes = [{name.rpartition("/")[0] for name in group.names} for group in groups]
    held = Counter(itertools.chain.from_iterable(map(_above, homes)))  # folder -> groups with runs anywhere below it
    return [next(iter(home)) if len(home) == 1 and held[next(iter(home))] == 1 else "" for home in homes]


def _above(folders: Iterable[str]) -> set[str]:
    return {folder[:end] for folder in folders for end in range(1, len(folder) + 1) if folder[end : end + 1] in ("", "/")}


def _telling(configs: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
    """As few settings as tell the groups apart, the first ones first; a key that tells nothing new is left out."""
    chosen: list[str] = []
    apart = 1
    for key in keys:
        now = len({tuple(canonical(c.get(k, MISSING)) for k in (*chosen, key)) for c in configs})
        if now > apart and apart < len(configs):
            chosen, apart = [*chosen, key], now
    return chosen


def _said(config: Mapping[str, Any], keys: Sequence[str], configs: Sequence[Mapping[str, Any]]) -> str:
    """The settings of one config by which it is told from the others."""
    words = []
    for key in [key for key in keys if key in config]:  # what a log does not say names nothing
        name, text = _key_among(key, keys), shown(config[key])
        if len(text) > LONGEST_VALUE:
            text = telling_part(text, [shown(each[key]) for each in configs if key in each])
        words.append(in_a_line(text if name == "name" else f"{name}={text}"))
    return ", ".join(dict.fromkeys(words))


def _key_among(key: str, keys: Sequence[str]) -> str:
    """As much of the end of a key as tells it from the others.

    >>> _key_among("foreign.actor.lr", ["foreign.actor.lr", "foreign.critic.lr"]), _key_among("algo.lr", ["algo.lr"])
    ('actor.lr', 'lr')
    """
    parts = key.split(".")
    ends = (".".join(parts[-n:]) for n in range(1, len(parts)))
    return next((end for end in ends if sum(f".{each}".endswith(f".{end}") for each in keys) == 1), key)


def telling_part(text: str, others: Sequence[str]) -> str:
    """Of a long value the place from which it is unlike the others.

    >>> telling_part(f"{'x + ' * 99}y + z{'.' * 99}", [f"{'x + ' * 99}z"])
    '…x + x + x + y + z.....................…'
    """
    same = len(os.path.commonprefix([text, *(other for other in others if other != text)]))
    begin = max(same - BEFORE, 0) if same < len(text) or any(other != text for other in others) else 0
    part = text[begin : begin + LONGEST_VALUE - 2]
    return f"{'…' if begin else ''}{part}{'…' if begin + len(part) < len(text) else ''}"


def _different(texts: list[str], groups: Sequence[Nameable]) -> list[str]:
    """Where nothing that is known sets two apart, the first run's name does."""
    times = Counter(texts)
    named = [f"{text} ({group.names[0]})" if times[text] > 1 and text != group.names[0] else text
             for text, group in zip(texts, groups)]  # fmt: skip
    again = Counter(named)
    return [f"{name} ({i + 1})" if again[name] > 1 else name for i, name in enumerate(named)]


def algo_on_env(group: Nameable) -> str:
    """ppo on CartPole-v1; the runs' name where neither is known."""
    names = [str(name) for name in (group.config.get("algo.name"), group.env) if name]
    return " on ".join(names) or _stem(group, True) or seedless(group.names[0])


# ---- Settings


def colour_places(labels: Sequence[str], envs: Sequence[str], most: int = 6) -> list[int]:
    """The place of each group's colour, the same on every page: one config has one colour in all environments.

    Where the configs outnumber the colours, those of one environment are told apart, who stand in one figure.

    >>> colour_places(["ppo on a, lr=1", "ppo on a, lr=2", "ppo on b, lr=2"], ["a", "a", "b"])
    [0, 1, 1]
    """
    order: dict[str, int] = {}
    places, within = [0] * len(labels), [0] * len(labels)
    for env in dict.fromkeys(envs):
        mine = [i for i, each in enumerate(envs) if each == env]
        names = task_names([labels[i] for i in mine], env)
        for place, i in enumerate(mine):
            places[i] = order.setdefault(names[labels[i]], len(order))
            within[i] = place
    return places if len(order) <= most else within


def key_name(key: str) -> str:
    """A setting in a head of a table: its last part, or the part before where that says nothing.

    >>> key_name("algo.lr"), key_name("algo.name"), key_name("seed")
    ('lr', 'algo', 'seed')
    """
    rest, _, last = key.rpartition(".")
    return key_name(rest) if last == "name" and rest else last


def task_names(labels: Iterable[str], env: str) -> dict[str, str]:
    """Labels of configs without the task, for a place whose heading names it; as they are where that is all they say.

    >>> task_names(["ppo on CartPole-v1, lr=0.1", "ppo on CartPole-v1, lr=0.3", "base_4"], "CartPole-v1")
    {'ppo on CartPole-v1, lr=0.1': 'lr=0.1', 'ppo on CartPole-v1, lr=0.3': 'lr=0.3', 'base_4': 'base_4'}
    """
    names = {label: re.sub(rf"^[\w.-]+ on {re.escape(env)}, (?=.)", "", label, flags=re.I) for label in labels}
    return names if len(set(names.values())) == len(names) else {label: label for label in names}


def differing(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys that are not the same in all, incidents and housekeeping last.

    First those that tell near configs apart: where two differ in one setting alone, that one is what was tried, however
    many settings set a third apart from both.
    """
    keys = dict.fromkeys(k for config in configs for k in config if k != "seed")
    values = {k: [canonical(config.get(k, MISSING)) for config in configs] for k in keys}
    unlike = [k for k in keys if len(set(values[k])) > 1]
    quiet = {k: (bool(INCIDENTAL.search(k)), k.startswith(HOUSEKEEPING)) for k in unlike}
    near = _nearest([[values[k][i] for k in unlike if not any(quiet[k])] for i in range(len(configs))])
    alone = {k: not any(len({values[k][i] for i in pair}) > 1 for pair in near) for k in unlike}
    return sorted(unlike, key=lambda k: (*quiet[k], alone[k], not k.endswith("name"),
                                         any(k not in config for config in configs), *_usual_place(k)))  # fmt: skip


def _usual_place(key: str) -> tuple[int, str]:
    """lr before gamma, and what relab does not know by its letters: stores keep settings in orders of their own."""
    return (USUAL.index(key), "") if key in USUAL else (len(USUAL), key)


def _nearest(rows: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """The pairs of configs that differ in the fewest settings, but in some."""
    pairs = list(itertools.combinations(range(min(len(rows), COMPARED)), 2))
    apart = {pair: sum(a != b for a, b in zip(rows[pair[0]], rows[pair[1]])) for pair in pairs}
    least = min((n for n in apart.values() if n), default=0)
    return [pair for pair, n in apart.items() if n == least > 0]


def by_value(texts: Sequence[str], names: Sequence[str]) -> str:
    """What several configs have of one key: the value of most of them first, then who has another.

    >>> by_value(["0.1", "0.1", "0.3", "0.1"], "abcd"), by_value(["1", "2", "2", "3"], "abcd")
    ('0.1, but 0.3 in c', '1 in a; 2 in b, c; 3 in d')
    >>> by_value(["1", "1", "2", "2"], ["a, x=1", "a, x=2", "b", "c"])
    '1 in a, x=1 / a, x=2; 2 in b, c'
    """
    holders: dict[str, list[str]] = {}
    for text, name in zip(texts, names):
        holders.setdefault(text, []).append(name)
    most = max(holders, key=lambda text: len(holders[text]))
    usual = most if 2 * len(holders[most]) > len(texts) else None
    said = [f"{text} in {_some(those)}" for text, those in holders.items() if text != usual]
    return "; ".join(said) if usual is None else f"{usual}, but {', '.join(said)}" if said else usual


def _some(names: Sequence[str], most: int = 4) -> str:
    """In a row; with strokes between them where names have commas of their own."""
    shown, left = (names, 0) if len(names) <= most else (names[: most - 1], len(names) - most + 1)
    between = " / " if any("," in name for name in names) else ", "
    return between.join(shown) + (f" and {left} more" if left else "")


def shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # 1.0 and 1 are one value, and have one name
    return "(none)" if value is MISSING else "null" if value is None else str(value)
