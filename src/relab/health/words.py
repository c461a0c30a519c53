"""What does a word mean? A rule, a metric, an environment, an algorithm, a config key or a word of the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from relab.base.errors import NotFoundError
from relab.base.near import hint
from relab.config import registry
from relab.config.base import field_docs, field_types
from relab.config.layers import SYNONYMS
from relab.config.run import Eval, RunConfig, Save
from relab.record import glossary, levels

HEALTHY = "\nHealthy runs"  # of all kinds; beside a run, those of its own kind are shown alone
ORDER = "return eval policy value optim data model".split()  # groups of metrics that end alike: the usual first


def meanings(wanted: str, run: str | None = None, path: Path | None = None) -> list[str]:
    """What relab says about a word, each meaning once; with a run (at `path`, else found by its name) what it has."""
    known, word = all_words(), wanted.lower()
    texts = [text() for name, text in known if name == word]
    alike = same_end(word, [name for name, _ in known])
    texts += [text() for each in alike if each != word for name, text in known if name == each]
    if not texts:
        usual = sorted({name for name, _ in known}, key=lambda name: (_place(name) if "/" in name else -1, name))
        close = hint(word, usual, "; the nearest word is {!r}")
        raise NotFoundError(f"relab knows no {wanted!r}{close}")
    if run is not None:
        metrics = same_end(word, [name for name, _ in known])
        texts = [text() for name, text in known if metrics and name == metrics[0]] or texts
        texts = [texts[0].partition(HEALTHY)[0], among_healthy(wanted, [word, *metrics], run, path)]
    return list(dict.fromkeys(texts))


def among_healthy(wanted: str, names: Sequence[str], run: str, path: Path | None = None) -> str:
    """Where a run lies among healthy ones in a metric; what it has of one that no healthy range is known of."""
    from relab.health.examine import load_view
    from relab.health.features import METRICS
    from relab.health.placed import own_lines, run_lines
    from relab.record.names import place

    view = load_view(path or place(run), run)
    metric = next((name for name in names if name in METRICS and view.has(name)), None)
    if metric is not None:
        return "\n".join(run_lines(view, metric))
    logged = next((name for name in (wanted, *names) if view.has(name)), None)
    if logged is None:
        close = hint(wanted, sorted(view.history.columns), "; the nearest that it has is {}")
        raise NotFoundError(f"{run} does not log {wanted!r}{close}")
    return "\n".join(own_lines(view, logged))


TURNED = {"entropy_loss": "policy/entropy"}  # Stable-Baselines3 logs minus the entropy


def same_end(word: str, known: Sequence[str]) -> list[str]:
    """Metrics that end in the word, or as another tool's name for them does: `kl` and `approx_kl` are policy/kl.

    >>> same_end("kl", ["policy/kl", "model/kl", "lr"]), same_end("approx_kl", ["policy/kl", "lr"])
    (['policy/kl', 'model/kl'], ['policy/kl'])
    """
    from relab.formats.read import common

    meant = common.meaning(word) or TURNED.get(word.rpartition("/")[2])
    ends = [name for name in dict.fromkeys(known) if name.rpartition("/")[2] == word]
    first = [meant] if meant is not None and meant in known else []
    return list(dict.fromkeys([*first, *sorted(ends, key=_place)]))


def _place(name: str) -> int:
    group = name.split("/")[0]
    return ORDER.index(group) if group in ORDER else len(ORDER)


Words = list[tuple[str, Callable[[], str]]]


def all_words() -> Words:
    """(word, what explains it), lower case; one word may have several meanings."""
    words = rule_words() + glossary_words() + env_words() + level_words() + key_words() + field_words()
    words += verdict_words()
    return words + library_words({word for word, _ in words})


def library_words(known: set[str]) -> Words:
    """Settings of the libraries that relab has no word for, with what they start from."""
    from relab.health.usual import CLEANRL, SB3

    starts: dict[str, list[str]] = {}
    for library, table in (("Stable-Baselines3", SB3), ("CleanRL", CLEANRL)):
        for algo, values in table.items():
            for name in (name for name in values if name not in known):
                starts.setdefault(name, []).append(f"{values[name]} in {library}'s {algo.upper()}")
    return [(name, partial(str, f"{name} (setting of other libraries): its default is {', '.join(values)}"))
            for name, values in starts.items()]  # fmt: skip


def field_words() -> Words:
    """Words that anybody uses, and that name nothing of relab's."""
    from relab.record.field_words import texts

    return [(word, partial(str, f"{word}: {text}")) for word, text in texts().items()]


def verdict_words() -> Words:
    """What became of a run, as tables and sentences say it."""
    from relab.runs.sentences import COUNTED
    from relab.runs.verdict_words import MEANS

    return [(word, partial(str, f"{said} (verdict about a run): {MEANS[kind]}"))
            for kind, said in COUNTED.items() if kind in MEANS for word in dict.fromkeys((kind, said))]  # fmt: skip


def rule_words() -> Words:
    from relab.health.rule import all_rules

    rules = all_rules().values()
    return [(rule.slug.lower(), partial(about_rule, rule)) for rule in rules]


def about_rule(rule: Any) -> str:
    from relab.health.chain import PLACES
    from relab.health.mend import in_words

    parts = [f"{name}: {text}" for name, text in rule.parts.items()]
    needs = f"Needs: {', '.join(rule.needs)}" if rule.needs else ""
    mended = in_words(rule.mends, rule.fallback)
    more = [f"Thresholds: {rule.limits}"] * bool(rule.limits)
    more += [f"Settings that may mend it: {mended}"] * bool(mended) + [needs] * bool(needs)
    place = f"Place: {rule.about} ({PLACES[rule.about]})"
    return "\n".join([f"{rule.slug} (rule, {rule.severity})", *parts, place, *more])


def glossary_words() -> Words:
    metrics: Words = [(name, partial(about_metric, metric)) for name, metric in glossary.METRICS.items()]
    others = [(word, f"{word} ({what}): {meaning}") for what, table in
              (("event", glossary.EVENTS), ("axis", glossary.AXES)) for word, meaning in table.items()]  # fmt: skip
    return metrics + [(word, partial(str, text)) for word, text in others]


def about_metric(metric: glossary.Metric) -> str:
    from relab.health.placed import healthy_lines

    better = {1: "more is better", -1: "less is better", 0: "neither more nor less is better"}[metric.direction]
    unit = "a number without a unit" if metric.unit == "-" else f"in {metric.unit}"
    return "\n".join([f"{metric.name} (metric, {unit}): {metric.meaning}",
                      f"Legal: {metric.low:g} to {metric.high:g}; {better}", *healthy_lines(metric.name)])  # fmt: skip


def env_words() -> Words:
    words: Words = []
    for name in registry.env_names():
        text = partial(about_class, name, "environment", registry.env_params_class(name))
        words += [(name, text), (name.rpartition("-v")[0], text)]
    for name in registry.algo_names():
        words.append((name, partial(about_class, name, "algorithm", registry.algo_config_class(name))))
    return words


def level_words() -> Words:
    """Environments of the field, under their Gymnasium id."""
    names = dict.fromkeys([*levels.measured(), *(x.env for x in levels.published())])
    return [(name.lower(), partial(about_levels, name)) for name in names]


def about_levels(name: str) -> str:
    sources = [
        f"({key}) {text}" for key, text in levels.SOURCES.items() if any(x.source == key for x in levels.of(name))
    ]
    return "\n".join([f"{name} (environment of Gymnasium), returns to hold a run against:",
                      *(f"  {line}" for line in levels.describe(name)), *sources])  # fmt: skip


def about_class(name: str, what: str, cls: type) -> str:
    return f"{name} ({what}): {(cls.__doc__ or '').strip()}\nSettings: {', '.join(field_types(cls))}"


def key_words() -> Words:
    """Config keys, in full, by their last part, and as other tools call them."""
    sections = [("", RunConfig), ("eval.", Eval), ("save.", Save)]
    usual_first = sorted(registry.algo_names(), key=lambda name: name not in ("ppo", "dqn", "sac"))
    sections += [("algo.", registry.algo_config_class(name)) for name in usual_first]
    sections += [("env.", registry.env_params_class(name)) for name in registry.env_names()]
    words: Words = []
    for prefix, cls in sections:
        for item in dataclasses.fields(cls):
            text = partial(about_key, prefix + item.name, cls, item)
            words += [(prefix + item.name, text), (item.name, text)]
    words += [(other, text) for other, ours in SYNONYMS.items() for name, text in list(words) if name == ours]
    return [(word, text) for word, text in words if not word.endswith("name")]


def about_key(key: str, cls: Any, item: Any) -> str:
    default = "" if item.default is dataclasses.MISSING else f" (default {item.default})"
    return f"{key} (setting of {cls.__name__}{default}): {field_docs(cls)[item.name]}"
