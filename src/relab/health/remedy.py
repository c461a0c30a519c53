"""Which setting would mend what a rule found? What its declaration says, turned into a change of this run.

This is the one place where a remedy is chosen: `relab examine` prints it, `relab next` proposes it. A key is set back
first: to the value of the reference (the parent, or a run on the same task that does better), else to its library's
default, else to what relab ships for this algorithm and environment, if the run's own value lies on the wrong side of
it by more than a factor of 1.5. What a finding gives as its evidence may be a setting, which is then set back itself.
Only where nothing stands out does the finding's own suggestion count, or the rule's fallback. A run's values are taken
only where nothing was found in that run itself; and a setting that such a run has as well, and does better with, is not
what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relab.base.numbers import is_finite
from relab.config import layers, registry
from relab.config.presets import of_task, preset_of
from relab.config.views import change_size, diff
from relab.health.chain import symptoms_of
from relab.health.estimates import clear
from relab.health.foreign import setting_name
from relab.health.mend import ANY, Change
from relab.health.outcome import failed
from relab.health.rule import Finding, Rule, all_rules
from relab.health.try_words import fitted, has
from relab.health.usual import usual_values
from relab.health.view import View, ends

FACTOR = math.log2(1.5)  # smaller deviations explain nothing
SMALL = 0.02  # beside 0
Known = tuple[str, dict[str, Any]]  # whose values, and those values
ANY_ALGO = {"algo.gamma"}  # means the same to every algorithm; a step size or a clipped gradient does not


@dataclass(frozen=True)
class Remedy:
    """Changes of settings, and whose values they are."""

    changes: dict[str, tuple[Any, Any]]  # key -> (from, to)
    why: str
    known: bool = True  # False: a step in the right direction, to a value that nothing here has tried

    def to_json(self, view: View) -> list[dict[str, Any]]:
        """`name` is what the program that made the run calls the setting, where that is another word."""
        return [{"key": key, "from": _fits(now), "to": _fits(then), "why": self.why} | _named(view, key)
                for key, (now, then) in self.changes.items()]  # fmt: skip


def _named(view: View, key: str) -> dict[str, str]:
    name = setting_name(view, key)
    return {} if name == key else {"name": name}


def _fits(value: Any) -> Any:
    """Settings may hold integers of any size; JSON readers stop at 64 bits."""
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def prescribe(findings: Sequence[Finding], view: View, better: View | None, well: Sequence[View] = ()) -> None:
    """Each finding of a run with its remedy: a known value is all that is advised, a blind step stands before words.

    `better` is the best run on the same task with other settings, where it ends clearly higher; `well` are all that do.
    """
    for finding in findings:
        remedy = finding.remedy = choose(finding, view, better, findings, well)
        finding.suggest = [fitted(item, view) if isinstance(item, str) else item for item in finding.suggest
                           if isinstance(item, str) or has(view, str(item.get("key")))]  # fmt: skip
        if remedy is not None:
            words = [] if remedy.known else [item for item in finding.suggest if isinstance(item, str)]
            finding.suggest = [*remedy.to_json(view), *words]


def choose(
    finding: Finding, view: View, better: View | None, findings: Sequence[Finding], well: Sequence[View] = ()
) -> Remedy | None:
    """The change of settings that a finding calls for; None where it calls for none that can be named.

    `findings` say what explains what.
    """
    rule = all_rules().get(finding.slug)
    if finding.beyond_settings:
        return None
    if rule is None:
        return _own(finding, view)
    if rule.sets_back:
        return _set_back(finding, view, findings)
    models, others = models_of(view, better), defaults_of(view)
    shared = {key for other in well for key in view.config if _same(view.config[key], other.config.get(key))}
    cleared = {key for _, values in models for key in view.config if _same(view.config[key], values.get(key))} | shared
    ways = {key: way for key, way in blamed(finding, rule, view).items() if key not in shared}
    remedy = _towards(view, ways, models)
    if remedy is not None or finding.in_code:
        return remedy
    free = {key: way for key, way in ways.items() if key not in cleared}
    return _towards(view, free, others) or _own(finding, view, cleared) or _fallback(view, rule, cleared)


def blamed(finding: Finding, rule: Rule, view: View) -> dict[str, int]:
    """The settings of the run that can cause a finding, each with the direction in which it is mended: those that it
    gives as evidence, else those of its rule, wherever they stand in the run's config."""
    own = {e.metric.removeprefix("foreign.").rpartition(".")[2] for e in finding.evidence if "/" not in e.metric}
    words = {word: rule.mends.get(word, ANY) for word in own}
    named = {key: words[word] for key in view.config if (word := key.rpartition(".")[2]) in words}
    ways = {key.rpartition(".")[2]: way for key, way in rule.mends.items()}
    return named | {key: ways[word] for key in view.config if (word := key.rpartition(".")[2]) in ways}


# ---- Back to a known value


def _set_back(finding: Finding, view: View, findings: Sequence[Finding]) -> Remedy | None:
    """Unmentioned changes undone, if the run does worse than its parent; where symptoms name a key, only that one."""
    parent = view.reference
    if parent is None or not worse(view, parent):
        return None
    changed = {c.key: (c.b, c.a) for c in diff(parent.history.config, view.history.config)
               if c.key in {str(e.metric) for e in finding.evidence} and layers.MISSING not in (c.a, c.b)}  # fmt: skip
    rules = [all_rules().get(f.slug) for f in symptoms_of(finding, findings)]
    named = {key for rule in rules if rule is not None for key in rule.mends}
    some = {key: pair for key, pair in changed.items() if key in named} or changed
    whose = "its parent " if view.is_parent else ""
    return Remedy(some, f"the value of {whose}{parent.name}") if some else None


def worse(a: View, b: View) -> bool:
    """Whether run a ends below run b by more than two standard errors."""
    own, other = ends(a, b)
    return own is not None and other is not None and clear(other.mean - own.mean, own, other) > 2


def _same(now: Any, then: Any) -> bool:
    return is_finite(now) and is_finite(then) and now == then


def _towards(view: View, ways: dict[str, int], sources: Sequence[Known]) -> Remedy | None:
    """The setting that deviates most from a known value, in the direction that explains the finding."""
    for who, values in sources:
        deviations: list[tuple[float, str, Any, Any]] = []
        for key, direction in ways.items():
            now, then = view.config.get(key), values.get(key)
            if is_finite(now) and is_finite(then) and _wrong_side(now, then, direction):
                deviations.append((change_size(key, now, then), key, now, then))
            elif is_finite(now) and then == "auto":
                deviations.append((FACTOR, key, now, then))
            elif direction == ANY and isinstance(now, str) and isinstance(then, str) and now != then:
                deviations.append((0.0, key, now, then))  # a choice: counts where no number stands out
        if deviations:
            _, key, now, then = max(deviations, key=lambda each: each[0])
            return Remedy({key: (now, then)}, who)
    return None


def _wrong_side(now: float, then: float, direction: int) -> bool:
    right = direction == ANY or (then - now) * direction > 0
    nothing = then == 0 and abs(now) <= SMALL  # a bonus of 0.01 is hardly one
    return right and now != then and not nothing and change_size("", now, then) > FACTOR


def vouches(view: View) -> bool:
    """Whether a run's values are worth copying: not where it failed, for what it earned it earned before its settings
    took effect, not where it never learned, and not where something is wrong with it itself."""
    return view.state != "failed" and not failed(view) and not view.suspect


def known_values(view: View, better: View | None) -> list[Known]:
    """Where a good value can be had from: the parent or another reference, a better run, what somebody ships."""
    return models_of(view, better) + defaults_of(view)


def models_of(view: View, better: View | None) -> list[Known]:
    """The settings of runs that do better: the parent or another reference, and the best run on the same task."""
    models = []
    reference = view.reference
    if reference is None or not vouches(reference) or not as_long(view, reference):
        reference = None
    if reference is not None and (worse(view, reference) or (view.is_parent and not worse(reference, view))):
        models.append(
            (f"the value of {'its parent ' if view.is_parent else ''}{reference.name}", _values_for(view, reference))
        )
    if better is not None and better is not view.reference:
        models.append((f"the value of {better.name}, which does better", _values_for(view, better)))
    return models


def as_long(view: View, other: View) -> bool:
    """Whether another run came to its end, or as far as this one: what it would have lost later is not known."""
    return not other.unfinished or other.last_step >= view.last_step


def defaults_of(view: View) -> list[Known]:
    """What the run's library starts from; to a program that has defaults of its own, relab's are a stranger's."""
    return usual_values(view) or shipped(view.config)


def _values_for(view: View, other: View) -> dict[str, Any]:
    """What another run's settings tell about this one: of another algorithm's own only those that mean the same."""
    if view.algo is None or other.algo is None or view.algo == other.algo:
        return other.config
    return {key: value for key, value in other.config.items() if not key.startswith("algo.") or key in ANY_ALGO}


def shipped(config: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The preset for a run's algorithm and environment, else the algorithm's defaults; none of its code is imported."""
    algo, env = config.get("algo.name"), config.get("env.name")
    if not isinstance(algo, str) or algo not in registry.ALGOS:
        return []
    preset = preset_of(algo, env) if isinstance(env, str) else {}
    defaults = {key: leaf.default for key, leaf in layers.schema(algo, None).items()}
    who = "relab's default" if not preset else f"relab's preset for {env}"
    task = of_task(algo, env, config.get("env.task")) if isinstance(env, str) else {}
    return [(who, defaults | layers.flatten(preset) | task)]


# ---- Where nothing stands out


def _own(finding: Finding, view: View, cleared: Collection[str] = ()) -> Remedy | None:
    """What the rule itself suggests as {key, from, to}."""
    changes = {
        e["key"]: (e["from"], e["to"])
        for e in finding.suggest
        if isinstance(e, dict) and {"key", "from", "to"} <= set(e)
    }
    good = {key: pair for key, pair in changes.items()
            if key in view.config and key not in cleared and None not in pair}  # fmt: skip
    return (
        Remedy({k: (now, rounded(then)) for k, (now, then) in good.items()}, "a cautious step", known=False)
        if good
        else None
    )


def _fallback(view: View, rule: Rule, cleared: Collection[str]) -> Remedy | None:
    for change in (each for each in rule.fallback if each.key not in cleared):
        now = view.config.get(change.key)
        then = _changed(now, change)
        if now is not None and then is not None and then != now:
            return Remedy({change.key: (now, then)}, change.why, known=False)
    return None


def _changed(now: Any, change: Change) -> Any:
    if change.how == "scale":
        return _scaled(now, change.to)
    if change.how == "raise":
        return change.to if is_finite(now) and now < change.to else None
    return change.to


def _scaled(now: Any, factor: float) -> Any:
    if not is_finite(now) or now == 0:
        return None
    return max(1, int(now * factor)) if isinstance(now, int) else rounded(now * factor)


def rounded(x: Any) -> Any:
    """0.3 / 3 is written 0.1."""
    return float(f"{x:.3g}") if isinstance(x, float) else x
