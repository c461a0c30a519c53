"""What exactly is this run's config, and where did each value come from?

Layers stack left to right, later ones win: defaults < preset < study < parent < files < command line. Every value
remembers its layer. A key is a dotted path (`algo.lr`) or any tail of one that is unambiguous (`lr`).

>>> resolved = resolve([Layer("command line", parse_overrides(["env=cartpole", "lr=1e-3"]))])
>>> resolved.config.algo.lr, resolved.config.env.name, resolved.provenance["algo.lr"], resolved.provenance["algo.clip"]
(0.001, 'cartpole-v1', 'command line', 'defaults')
"""

from __future__ import annotations

import dataclasses
import functools
import os
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from relab.base.documents import Settings
from relab.base.enclosed import inside
from relab.base.near import nearest
from relab.config import registry, swarm_sizes
from relab.config.base import ConfigError, field_docs, field_types, require, require_range
from relab.config.coerce import coerce, is_null, place_of
from relab.config.presets import HOME, of_task, preset_of
from relab.config.run import RunConfig
from relab.config.views import MISSING, Change, config_hash, derived, diff, flatten, to_dict
from relab.config.yaml_io import YamlError, format_yaml, parse_yaml, read_yaml, write_yaml

__all__ = [
    "MISSING", "Change", "ConfigError", "Layer", "Resolved", "YamlError", "check", "config_hash", "derived", "diff",
    "field_docs", "file_layer", "flatten", "format_yaml", "from_dict", "from_record", "parse_overrides", "parse_yaml",
    "read_yaml", "record_layer", "replace", "require", "require_range", "resolve", "schema", "to_dict", "write_yaml",
]  # fmt: skip

SHIPPED = ("defaults", "preset", "study", "parent")  # layers the user did not type: their stale keys are dropped
CHOICES = {"algo": (registry.resolve_algo_name, registry.algo_config_class),
           "env": (registry.resolve_env_name, registry.env_params_class)}  # fmt: skip
# What other tools call our keys; used for hints in errors only.
SYNONYMS = {
    "learning_rate": "algo.lr", "n_steps": "algo.steps", "num_steps": "algo.steps", "n_envs": "algo.envs",
    "num_envs": "algo.envs", "n_epochs": "algo.epochs", "update_epochs": "algo.epochs", "gae_lambda": "algo.lam",
    "clip_range": "algo.clip", "clip_coef": "algo.clip", "vf_coef": "algo.value_coef", "entropy_coef": "algo.ent_coef",
    "total_timesteps": "total_steps", "num_minibatches": "algo.minibatches", "env_id": "env.name",
    "discount": "algo.gamma", "batch_size": "algo.minibatches", "net_arch": "algo.hidden",
    "buffer_size": "algo.replay", "replay_size": "algo.replay", "exploration_initial_eps": "algo.epsilon",
    "exploration_final_eps": "algo.epsilon_final", "exploration_fraction": "algo.epsilon_until",
    "start_e": "algo.epsilon", "end_e": "algo.epsilon_final", "target_update_interval": "algo.target_every",
    "target_network_frequency": "algo.target_every", "clip_range_vf": "algo.clip_value",
    "normalize_advantage": "algo.norm_adv", "sequence_length": "algo.length", "seq_len": "algo.length",
    "seq_length": "algo.length", "batch_length": "algo.length", "imag_horizon": "algo.imagine",
}  # fmt: skip


def fitting_keys(word: str, keys: Iterable[str]) -> list[str]:
    """Keys that a word means: the key itself, those that end in it, else those of its other names, whoever's.

    >>> fitting_keys("lr", ["algo.lr", "seed"]), fitting_keys("learning_rate", ["algo.lr"])
    (['algo.lr'], ['algo.lr'])
    """
    some, tail = list(dict.fromkeys(keys)), word.rpartition(".")[2]
    ours = SYNONYMS.get(tail, word).rpartition(".")[2]
    theirs = [other for other, key in SYNONYMS.items() if key.rpartition(".")[2] == ours]
    for name in (word, ours, *theirs):
        if fits := [key for key in some if key == name] or [key for key in some if key.endswith(f".{name}")]:
            return fits
    return []


class Layer(NamedTuple):
    """Settings from one source; `values` may be nested, dotted, or use tails of keys."""

    name: str
    values: Mapping[str, Any]
    trusted: bool = True  # False: a record's word, which imports no code and opens no file


@dataclass(frozen=True)
class Resolved:
    """A config, the layer each of its keys came from, and what a switch of algorithm or environment left behind."""

    config: RunConfig
    provenance: dict[str, str]
    dropped: dict[str, str] = field(default_factory=dict)  # key -> "layer: value" of settings that no longer apply


class Leaf(NamedTuple):
    """One settable key."""

    type: Any
    default: Any  # dataclasses.MISSING: must be given


# ---- Sources of layers


def parse_overrides(words: Sequence[str]) -> dict[str, str]:
    """["lr=1e-3", "env=cartpole"] -> {"lr": "1e-3", "env": "cartpole"}; types come later, from the fields."""
    values: dict[str, str] = {}
    for word in words:
        key, equals, text = word.partition("=")
        key = key.strip()
        require(bool(equals and key), f"settings are given as key=value, but got {word!r}")
        require(key not in values, f"`{key}` is given twice: {values.get(key)!r} and {text!r}; leave one of them out")
        values[key] = text.strip()
    return values


def file_layer(path: str | os.PathLike[str], name: str | None = None, trust: bool = False) -> Layer:
    """A YAML file as a layer; its scalars stay as typed, so that `15:9` is text and `1_000` a number where due.

    A file that lies in a run folder (there is a meta.json beside it) is that record's word, not its reader's.
    """
    return Layer(
        name or f"file {os.fspath(path)}", read_yaml(named_file(path), text=True), trust or not in_record(path)
    )


def in_record(path: str | os.PathLike[str]) -> bool:
    return os.path.lexists(os.path.join(os.path.dirname(path), "meta.json"))


def named_file(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path; an error where it is a link that leads out of a run folder."""
    return inside(os.path.dirname(path), os.path.basename(path)) if in_record(path) else path


def record_layer(folder: str | os.PathLike[str], name: str = "parent", trust: bool = False) -> Layer:
    """The config of a run folder; `trust` lets it name code, as its reader has said."""
    return Layer(name, read_yaml(inside(folder, "config.yaml")), trust)


# ---- Keys


@functools.lru_cache(maxsize=64)
def schema(algo: str | None, env: str | None) -> dict[str, Leaf]:
    """Every settable key of a run with this algorithm and environment, in order; None leaves that section out."""
    names = {"algo": algo, "env": env}
    return dict(_leaves(RunConfig, "", names))


def _leaves(cls: type, prefix: str, names: Mapping[str, str | None]) -> Iterator[tuple[str, Leaf]]:
    types = field_types(cls)
    for item in dataclasses.fields(cls):
        key, choice = prefix + item.name, item.metadata.get("choice")
        sub = _choice_class(choice, names[choice]) if choice else section_class(types[item.name])
        if choice and names[choice] is None:
            yield f"{key}.name", Leaf(str, dataclasses.MISSING)
        elif sub is not None:
            yield from _leaves(sub, f"{key}.", names)
        else:
            yield key, Leaf(types[item.name], _default(item))


def section_class(type_: Any) -> Any:
    """The dataclass of a section, also of one that may be null (`Probes | None`); None where a key holds a value."""
    inside = [part for part in typing.get_args(type_) if part is not type(None)] if is_optional(type_) else [type_]
    return inside[0] if len(inside) == 1 and dataclasses.is_dataclass(inside[0]) else None


def is_optional(type_: Any) -> bool:
    return type(None) in typing.get_args(type_)


@functools.cache
def optional_sections() -> tuple[str, ...]:
    """Sections of a run that are null until one of their keys is set."""
    types = field_types(RunConfig)
    return tuple(name for name, type_ in types.items() if is_optional(type_) and section_class(type_))


def _choice_class(choice: str, name: str | None) -> Any:
    return None if name is None else CHOICES[choice][1](name)


def _default(item: Any) -> Any:
    return item.default_factory() if item.default_factory is not dataclasses.MISSING else item.default


def find_key(word: str, leaves: Mapping[str, Leaf]) -> str:
    """The full key that `word` means: itself, a section's name, part of a mapping, or the only key it is a tail of; of
    several, the one outside of sections that are off until one of their keys is set (probes, record)."""
    if word in leaves:
        return word
    if f"{word}.name" in leaves and word in CHOICES:
        return f"{word}.name"
    matches = [key for key in leaves if key.endswith("." + word)]
    own = [key for key in matches if key.partition(".")[0] not in optional_sections()]
    if len(matches) == 1 or len(own) == 1:  # `cut` is the algorithm's, not that of probes, which are off until set
        return (own or matches)[0]
    require(not matches, f"`{word}` is ambiguous: it could be {' or '.join(matches)}; write the longer key")
    inside = [key for key, leaf in leaves.items() if word.startswith(key + ".") and _is_mapping(leaf.type)]
    if inside:
        return word
    section = [key for key in leaves if key.startswith(word + ".")]
    require(not section, f"`{word}` is a section and takes no value itself; set one of {', '.join(section)}")
    near = nearest_key(word, leaves)
    raise ConfigError(f"unknown key `{word}`{whose(word) or (f'; the nearest known one is `{near}`' if near else '')}")


def whose(word: str) -> str:
    """Where a key that is unknown here is known, or what it follows from; empty where nothing is called so."""
    section, _, tail = word.rpartition(".")
    owners = registry.algos_with(tail) if section in ("", "algo") else []
    worlds = registry.envs_with(tail) if section in ("", "env") else []
    if known := [*owners, *worlds]:
        return f"; it is a setting of {' and '.join([', '.join(known[:-1]), known[-1]] if known[1:] else known)}"
    follows = registry.followed_by(tail) if section in ("", "algo") else ""
    return f"; it is not set but follows, from {follows}" if follows else ""


def nearest_key(word: str, leaves: Mapping[str, Leaf]) -> str:
    """The known key that looks most like `word`, by its full name, its last part, or what other tools call it.

    Empty where none is near.
    """
    tail = word.rpartition(".")[2]
    alike = {other: key for other, key in SYNONYMS.items() if key in leaves}
    alike |= {key.rpartition(".")[2]: key for key in reversed(list(leaves))}
    if tail in alike:
        return alike[tail]
    guess = "".join(nearest(word, [*leaves, *alike]))
    return alike.get(guess, guess)


def _is_mapping(type_: Any) -> bool:
    """A mapping, or a mapping or null."""
    return any(t is dict or typing.get_origin(t) is dict for t in (type_, *typing.get_args(type_)))


# ---- Resolving


def resolve(layers: Sequence[Layer], presets: bool = True) -> Resolved:
    """Stack the layers over the defaults (and the preset shipped for this algorithm on this environment), and check."""
    layers = [_in_our_words(layer) for layer in layers]
    names = [_chosen(layer) for layer in layers]
    _check_code(layers, names)
    final = {group: next((n[group] for n in reversed(names) if n.get(group)), None) for group in CHOICES}
    final["algo"] = final["algo"] or "ppo"
    final["env"] = final["env"] or HOME.get(final["algo"] or "")
    require(final["env"] is not None, f"`env` must be chosen, e.g. env={_example_env()}, but no layer sets it")
    stack = _Stack(final)
    if presets:
        stack.add(Layer("preset", preset_of(final["algo"] or "", final["env"] or "")), {})
    for layer, chosen in zip(layers, names):
        stack.add(layer, chosen)
    if presets:
        stack.add_below("preset", of_task(final["algo"], final["env"], stack.settings.get("env.task", ("",))[0]))
    return stack.finish()


def _in_our_words(layer: Layer) -> Layer:
    """A layer that sizes a swarm's batch in PufferLib's words has them translated."""
    if not swarm_sizes.spoken(layer.values):
        return layer
    with _Placed(layer, swarm_sizes.TURN):
        return layer._replace(values=swarm_sizes.translated(layer.values))


def _example_env() -> str:
    return registry.env_names()[0].rpartition("-v")[0]


def _chosen(layer: Layer) -> dict[str, str]:
    """The algorithm and environment this layer itself names, in full."""
    chosen = {}
    for group, (resolve_name, _) in CHOICES.items():
        section = layer.values.get(group)
        inner = section.get("name") if isinstance(section, Mapping) else section
        for name in (n for n in (inner, layer.values.get(f"{group}.name")) if isinstance(n, str) and not is_null(n)):
            with _Placed(layer, name):
                chosen[group] = resolve_name(str(name))
    return chosen


def _check_code(layers: Sequence[Layer], names: Sequence[Mapping[str, str]]) -> None:
    """What a record names is imported only if its reader has it registered, or names it himself."""
    typed = {pair for layer, chosen in zip(layers, names) if layer.trusted for pair in chosen.items()}
    for layer, chosen in zip(layers, names):
        for group, name in chosen.items():
            module = registry.named_code(group, name)
            if module and not layer.trusted and (group, name) not in typed:
                raise registry.UntrustedError(
                    f"the record ({layer.name}) names code: {group}={name} imports the module {module!r}, which may do"
                    " anything on this machine; it runs only if you trust it (from Python: trust=True)"
                )


class _Placed:
    """Adds the layer (or file and line) to an error raised inside."""

    def __init__(self, layer: Layer, value: Any):
        self.where = place_of(value) or layer.name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ConfigError) and self.where not in str(error):
            raise ConfigError(f"{error} ({self.where})") from error.__cause__


class _Stack:
    """Settings so far: key -> (value, layer), and which names they are bound to."""

    def __init__(self, final: Mapping[str, str | None]):
        self.final = dict(final)
        self.bound: dict[str, str] = {}  # names chosen by a layer so far; defaults bind nothing
        self.settings: dict[str, tuple[Any, str]] = {}
        self.dropped: dict[str, str] = {}

    def add(self, layer: Layer, chosen: Mapping[str, str]) -> None:
        for group, name in chosen.items():
            if self.bound.get(group, name) != name:
                self._drop_stale(group, self.bound[group], name, layer.name)
            self.bound[group] = name
        for name in optional_sections():
            if name in layer.values and is_null(layer.values[name]):
                self.settings = {k: v for k, v in self.settings.items() if not k.startswith(f"{name}.")}
        names = self.final | self.bound
        leaves = schema(names["algo"], names["env"])
        words: dict[str, str] = {}
        for word, value in _pairs(layer.values, "", leaves):
            with _Placed(layer, value):
                self._set(word, value, layer, leaves, words)

    def add_below(self, name: str, values: Mapping[str, Any]) -> None:
        """Settings of whole keys that nothing has set so far."""
        self.settings = {key: (value, name) for key, value in values.items()} | self.settings

    def _set(self, word: str, value: Any, layer: Layer, leaves: Mapping[str, Leaf], words: dict[str, str]) -> None:
        key = find_key(word, leaves)
        require(key not in words, f"`{key}` is given twice in one layer, as `{words.get(key)}` and as `{word}`")
        words[key] = word
        group = key.removesuffix(".name")
        if group in CHOICES:
            require(isinstance(value, str) and not is_null(value), f"`{key}` must be a name, but got {value!r}")
            self.settings[key] = (self.bound[group], layer.name)
        elif key in leaves:
            value = _from_file(value, leaves[key].type) if layer.trusted else value
            self.settings[key] = (coerce(value, leaves[key].type, key), layer.name)
        else:
            self._set_inside(key, value, layer, leaves)

    def _set_inside(self, key: str, value: Any, layer: Layer, leaves: Mapping[str, Leaf]) -> None:
        """One entry of a mapping, `env.kwargs.gravity=9`, `schedule.gates.penalty.required=3`: the others stay."""
        owner = max((k for k in leaves if key.startswith(k + ".")), key=len)
        old = self.settings[owner][0] if owner in self.settings else leaves[owner].default
        *path, last = key[len(owner) + 1 :].split(".")
        entry = coerce({last: value}, leaves[owner].type, owner)
        self.settings[owner] = (_inside(old or {}, path, entry, owner), layer.name)

    def _drop_stale(self, group: str, old: str, new: str, layer: str) -> None:
        """A new class starts from its own defaults; what the user set for the old one must not vanish unsaid."""
        leaves = schema(*((old if g == group else None) for g in ("algo", "env")))
        for key in [k for k in self.settings if k.startswith(f"{group}.") and k != f"{group}.name"]:
            value, source = self.settings.pop(key)
            is_default = key in leaves and value == leaves[key].default
            require(
                source in SHIPPED or is_default,
                f"`{key}` = {value!r} was set for {group}={old} ({source}), but {layer} switches to {group}={new};"
                f" remove it there, or set it again in {layer}",
            )
            self.dropped[key] = f"{source}: {value!r}"

    def finish(self) -> Resolved:
        leaves = schema(self.final["algo"], self.final["env"])
        config = _build(RunConfig, "", {k: v for k, (v, _) in self.settings.items()}, self.final)
        check(config)
        off = [name for name in optional_sections() if getattr(config, name) is None]
        there = dict.fromkeys(next((name for name in off if key.startswith(f"{name}.")), key) for key in leaves)
        provenance = {key: self.settings[key][1] if key in self.settings else "defaults" for key in there}
        return Resolved(config, provenance, self.dropped)


def _from_file(value: Any, type_: Any) -> Any:
    """`schedule=plan.yaml`: a mapping may stand in a file."""
    named = isinstance(value, str) and value.strip().endswith((".yaml", ".yml"))
    return read_yaml(value.strip(), text=True) if named and _is_mapping(type_) else value


def _inside(old: Any, path: Sequence[str], entry: Mapping[str, Any], key: str) -> Settings:
    """`old` with an entry put in at a path of names; what stands beside it stays."""
    require(isinstance(old, Mapping), f"`{key}` is no mapping, but {old!r:.60}; nothing can be set inside of it")
    if not path:
        return {**old, **entry}
    return {**old, path[0]: _inside(old.get(path[0]) or {}, path[1:], entry, f"{key}.{path[0]}")}


def _pairs(values: Mapping[str, Any], prefix: str, leaves: Mapping[str, Leaf]) -> Iterator[tuple[str, Any]]:
    """(key as given, value) of nested settings; a mapping that is itself a value stays whole; empty sections vanish."""
    for word, value in values.items():
        path = f"{prefix}{word}"
        is_section = any(key.startswith(path + ".") for key in leaves)
        if isinstance(value, Mapping) and (value or is_section) and not _takes_mapping(path, leaves):
            yield from _pairs(value, f"{path}.", leaves)
        elif not (is_section and is_null(value)):
            yield path, value


def _takes_mapping(word: str, leaves: Mapping[str, Leaf]) -> bool:
    tails = (key for key, leaf in leaves.items() if key.endswith("." + word) and _is_mapping(leaf.type))
    return word in leaves or any(tails)


def _build(cls: type, prefix: str, values: Mapping[str, Any], names: Mapping[str, str | None]) -> Any:
    types, arguments = field_types(cls), {}
    for item in dataclasses.fields(cls):
        key, choice = prefix + item.name, item.metadata.get("choice")
        sub = _choice_class(choice, names[choice]) if choice else section_class(types[item.name])
        if choice:
            arguments[item.name] = _build(sub, f"{key}.", {f"{key}.name": names[choice], **values}, names)
        elif sub is not None and is_optional(types[item.name]) and not any(k.startswith(f"{key}.") for k in values):
            arguments[item.name] = None
        elif sub is not None:
            arguments[item.name] = _build(sub, f"{key}.", values, names)
        elif key in values:
            arguments[item.name] = values[key]
        else:
            require(_default(item) is not dataclasses.MISSING, f"`{key}` must be given; it has no default")
    return cls(**arguments)


def check(config: Any) -> None:
    """Run the `check()` of a config and of everything below it, innermost first."""
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if dataclasses.is_dataclass(value):
            check(value)
    own = getattr(type(config), "check", None)  # optional by contract: not every config has constraints
    if own is not None:
        own(config)


def from_dict(values: Mapping[str, Any]) -> RunConfig:
    """The config back from `to_dict`. Imports what it names: a run folder's config is asked for by `from_record`."""
    return resolve([Layer("given", values)], presets=False).config


def from_record(folder: str | os.PathLike[str], trust: bool = False) -> RunConfig:
    """The config of a run folder, which somebody may have sent; UntrustedError where it names code."""
    return resolve([record_layer(folder, os.fspath(folder), trust)], presets=False).config


def replace(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """A copy with some keys changed, checked again; a switched environment or algorithm starts from its defaults."""
    return resolve([Layer("parent", to_dict(config)), Layer("changes", changes)], presets=False).config
