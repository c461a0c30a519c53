"""Do the names of things say what they are? Factors, aliases, quoted speeds, axes, labels."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np

from relab.base.numbers import is_number
from relab.base.text import plural
from relab.health.curve import Curve
from relab.health.foreign import both_names, named, plain_key, theirs, word
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View
from relab.record.clock import last_start, running

# numbers derived from another one of the same name: their ratio is not a convention's
DERIVED = re.compile(
    r"(^|_)(min|max|std|var|sd|se|p\d+|q\d+|abs|rel|diff|ratio|share|rate|frac|fraction|count|n|num)(_|$)|2$"
)
GRADIENT = re.compile(r"(?i)(^|[/_])grad(s|ient|ients)?([/_]|$)")
EPISODE_RETURN = r"(mean_|ep_|avg_|average_|episodic_|episode_)*(return|reward|rew)s?(_mean|_avg)?"
COUNTED = re.compile(r"(num|n)_(agents|drones|envs|worlds|workers)$|\.envs$")
LABEL = re.compile(r"(?i)(?:^|[_\-/,])([a-z][a-z_]*?)[=_]?(\d+(?:[.p]\d+)?(?:e-?\d+)?)(?=$|[_\-/,])")
SHORT = {"s": "seed", "learning_rate": "lr", "ent": "ent_coef", "entropy": "ent_coef", "bs": "batch_size",
         "lambda": "lam", "gae_lambda": "lam", "update_epochs": "epochs", "n_epochs": "epochs", "mc": "mc_samples",
         "tau": "expectile", "b": "beta"}  # fmt: skip


@rule("constant-ratio", about="evidence", algos=())
def constant_ratio(view: View, *, rows: int = 5, off_by: float = 0.03, spread: float = 0.15) -> Finding | None:
    """
    What: two metrics whose names say the same (`td_loss`, `td_loss_from_Q`) differ by a constant simple factor: 2, 1/2,
        or the number of agents or worlds.
    Why: they follow different conventions (a half, a sum instead of a mean); their difference is no error signal.
    Known problems: a factor that is a coincidence changes over the run; hence its spread over the rows.
    Refuted by: the two being meant to differ by that factor.
    Try: give both the same convention before one is held against the other.
    """
    enough = [n for n, c in view.history.columns.items() if len(c.values) >= rows]
    own = {ours: name for name, ours in view.history.mapping.items()}
    enough = [n for n in enough if not GRADIENT.search(own.get(n, n))]  # Grads/critic belongs to Loss/critic_loss
    words = {n: frozenset(w.split("_")) for n in enough if not DERIVED.search(w := word(own.get(n, n)))}
    short = [n for n in words if len(words[n]) >= 2]  # `td_loss_from_q` says more about the same as `td_loss`
    for a, b in itertools.product(words, short):
        if words[b] < words[a]:
            finding = _ratio(view, a, b, rows, off_by, spread)
            if finding:
                return finding
    return None


def _ratio(
    view: View, a: str, b: str, rows: int, off_by: float, most: float, different: int = 3, errors: float = 2.0
) -> Finding | None:
    one, other = view.history.columns[a], view.history.columns[b]
    steps, at_a, at_b = np.intersect1d(one.steps, other.steps, return_indices=True)
    x, y = one.values[at_a], other.values[at_b]
    good = np.isfinite(x) & np.isfinite(y) & (y != 0)
    if good.sum() < rows or len(np.unique(y[good])) < different:
        return None
    ratio = x[good] / y[good]
    mean, spread = float(ratio.mean()), float(ratio.std() / max(abs(ratio.mean()), 1e-300))
    within = off_by + errors * spread / math.sqrt(len(ratio))
    near = next((factor for factor in _simple(view) if abs(mean / factor[0] - 1) < within), None)
    if near is None or spread > most:
        return None
    a, b = theirs(view, a), theirs(view, b)
    shown = Curve(f"{a} / {b}", steps[good], ratio).evidence(f"mean {mean:.3g}, spread {spread:.1%}")
    return Finding(f"{a} is {near[1]} times {b} all along: a convention, no error signal", mean, None, [shown],
                   confidence="medium")  # fmt: skip


def _simple(view: View) -> list[tuple[float, str]]:
    """Factors that conventions make: a half, and the counts of the config."""
    factors = [(2.0, "2"), (0.5, "1/2")]
    for key, value in view.config.items():
        if COUNTED.search(key) and isinstance(value, int) and value > 2:
            factors += [(float(value), f"{value} ({plain_key(key)})"), (1 / value, f"1/{value} ({plain_key(key)})")]
    return factors


@rule("name-is-not-definition", about="evidence", algos=())
def name_is_not_definition(
    view: View, *, times: float = 5.0, deviations: float = 3.0, per_step: float = 0.3
) -> Finding | None:
    """
    What: two metrics that both call themselves the episode's return or reward differ in sign, or by more than five
        times, over the last quarter of the run.
    Why: one of them is something else; what is reported is then not what was optimised.
    Known problems: a reward that was normalised may have the same name; one per step is recognised by the length.
    Refuted by: the definitions of both, once they are known to differ on purpose.
    Try: name each after what it sums; report the one that is optimised.
    """
    optimised = next((c for n in ("return/mean", "return/mean_100") if (c := _alone(view, n))), None)
    others = [c for c in named(view, EPISODE_RETURN) if not c.name.startswith(("eval/", "data/", "return/", "multi/"))]
    if optimised is None or not others:
        raise Missing("two metrics that call themselves the return")
    for other in others:
        if _disagree(other, optimised, times, deviations) and not _per_step(view, other, optimised, per_step):
            twin = _twin(view, other)
            message = f"{both_names(view, other.name)} is {other.last:.4g}{f', as {twin}' if twin else ''}"
            message += f"; {both_names(view, optimised.name)} is {optimised.last:.4g}"
            return Finding(message, other.last, None, [other.evidence(), optimised.evidence()],
                           confidence="high" if twin else "medium")  # fmt: skip
    return None


def _alone(view: View, name: str) -> Curve | None:
    try:
        return view.curve(name) if view.has(name) else None
    except Missing:
        return None


def _twin(view: View, curve: Curve, alike: float = 1e-3) -> str:
    """Another metric that ends at the same value under another name: what the first one really is."""
    for name, (_, values) in view.history.columns.items():
        differs = word(name) != word(curve.name) and name != curve.name
        if differs and len(values) and abs(values[-1] - curve.last) <= alike * abs(curve.last):
            return theirs(view, name)
    return ""


def _per_step(view: View, reward: Curve, whole: Curve, within: float) -> bool:
    """Whether it is the reward of one step: the return over the length of the episodes."""
    length = _alone(view, "return/length")
    return length is not None and abs(reward.last * length.last / whole.last - 1) < within if whole.last else False


def _disagree(a: Curve, b: Curve, times: float, deviations: float) -> bool:
    x, y = a.last, b.last
    spread = max(float(c.tail(0.25).values.std()) for c in (a, b))
    if abs(x - y) <= deviations * spread or max(abs(x), abs(y)) < 1e-9:
        return False
    return x * y < 0 or max(abs(x), abs(y)) > times * min(abs(x), abs(y))


@rule("throughput-misquoted", about="operation", algos=())
def throughput_misquoted(view: View, *, times: float = 1.5) -> Finding | None:
    """
    What: the speed that a summary (or the log's mean) gives is more than 1.5 times the steps over the time they took
        from start to end.
    Why: it is the reading of one phase, e.g. of the last evaluation; costs computed from it are too low.
    Known problems: a log that starts late has lost a part of the time.
    Refuted by: time spent on something that does not belong to the run.
    Try: quote steps over wall-clock seconds.
    """
    quoted, name = _quoted(view)
    real = _end_to_end(view, since_resume=name == "time/sps_mean")
    if quoted <= times * real:
        return None
    return Finding(f"{name} says {quoted:,.0f} steps/s, from start to end there were {real:,.0f}", quoted / real, None,
                   [Evidence(f"{name} over steps per second", [view.last_step], [quoted / real], f"> {times:g}")],
                   confidence="high")  # fmt: skip


def _quoted(view: View) -> tuple[float, str]:
    """What a reader takes for the speed: the summary's, else the mean where one is logged, else the usual row's."""
    summary = [c for c in named(view, "sps|fps|steps_per_second") if len(c) == 1]
    if summary:
        return summary[0].last, theirs(view, summary[0].name)
    if view.has("time/sps_mean"):
        return view.curve("time/sps_mean").last, "time/sps_mean"
    if view.history.source == "relab" or not view.has("time/sps"):
        raise Missing("time/sps_mean, or a summary's speed")
    return view.curve("time/sps", rows=10).median(), "time/sps"


def _end_to_end(view: View, since_resume: bool, from_start: float = 0.2, least_s: float = 10) -> float:
    """Steps over seconds; `since_resume`: of what came after the clock last began anew, as the mean counts them."""
    if not view.has("time/elapsed_s"):
        seconds = view.meta.get("seconds")
        if not isinstance(seconds, (int, float)) or seconds <= 0:
            raise Missing("time/elapsed_s")
        return view.last_step / float(seconds)
    if view.history.axes.get("time/elapsed_s") in ("iteration", "updates", "episodes"):
        raise Missing("time/elapsed_s by steps of the environment")
    spent = view.curve("time/elapsed_s", rows=3)
    first = last_start(spent.values) if since_resume else 0
    clock, steps = running(spent.values)[first:], spent.steps[first:]
    early = first > 0 or clock[0] < from_start * clock[-1]
    whole = steps[-1] - (steps[0] if early else 0)
    time = clock[-1] - (clock[0] if early else 0)
    if time < least_s:  # clocks of whole seconds say nothing
        raise Missing(f"{least_s:g} seconds of time/elapsed_s")
    return float(whole / time)


@rule("mixed-step-axes", about="evidence", algos=())
def mixed_step_axes(
    view: View, *, rows: int = 3, ends_apart: float = 1.1, of_others: float = 0.01, fewer_than: int = 1000
) -> Finding | None:
    """
    What: metrics of one run count different things as their step: environment steps here, iterations there.
    Why: drawn over one axis they do not line up; the last row of one is not the time of the last row of the other.
    Known problems: where a log does not say what it counts, steps that end below 1 % of the others' are taken for it.
    Refuted by: a metric that was logged at the start alone.
    Try: convert the axes, or look at each alone.
    """
    columns = {n: c for n, c in view.history.columns.items() if len(c.steps) >= rows and not n.startswith("time/")}
    if not columns:
        raise Missing(f"metrics with {rows} rows")
    axes: dict[str, list[str]] = {}
    for name in columns:
        axes.setdefault(view.history.axes.get(name, "?"), []).append(name)
    ends = [max(int(columns[name].steps[-1]) for name in names) for names in axes.values()]
    # one agent's steps are the environment's: the same numbers
    if len(axes) > 1 and max(ends) > ends_apart * min(ends):
        counted = {axis: plural(len(names), "metric") for axis, names in axes.items()}
        kinds = ", ".join(f"{axis} ({counted[axis]}, e.g. {names[0]})" for axis, names in axes.items())
        return Finding(f"steps count {kinds}", float(len(axes)), confidence="high")
    short = [n for n, c in columns.items() if c.steps[-1] < of_others * view.last_step
             and c.steps[-1] - c.steps[0] < fewer_than and np.diff(c.steps).min() > 0]  # fmt: skip
    if not short:
        return None
    some = columns[short[0]]
    return Finding(f"the steps of {short[0]} run from {some.steps[0]:,} to {some.steps[-1]:,}, those of others to"
                   f" {view.last_step:,}", float(len(short)), confidence="low")  # fmt: skip


@rule("label-mismatch", about="evidence", algos=(), footer=True)
def label_mismatch(view: View) -> Finding | None:
    """
    What: the run's name holds a setting and a number (`lr0.001`, `seed3`) and the config says another number.
    Why: whoever sorts runs by their names compares the wrong ones.
    Known problems: only whole names of settings, and usual short ones, are understood.
    Refuted by: the number in the name being something else.
    Try: rename the run after its config.
    """
    if not view.config:
        raise Missing("the config")
    settings: dict[str, list[str]] = {}
    for key in view.config:
        settings.setdefault(key.rpartition(".")[2].lower(), []).append(key)
    for label, text in LABEL.findall(view.name):
        words = (label.lower(), label.lower().rpartition("_")[2])  # run_seed1 is about the seed
        known = (key for word in words for key in (word, SHORT.get(word)) if key in settings)
        keys = next((settings[key] for key in known), [])
        value = view.config[keys[0]] if len(keys) == 1 else None  # a name that two sections have says neither
        if is_number(value) and not _same(text, value):
            message = f"the name {view.name} says {label} {text}, the config {plain_key(keys[0])} {value:g}"
            return Finding(message, float(value), confidence="high")
    return None


def _same(text: str, value: float) -> bool:
    """Equal up to the digits that the name has; of a fraction, the point may be left out (gamma099, beta05, b20)."""
    if isinstance(value, float) and text.isdigit() and _digits(text) == _digits(f"{value:f}"):
        return True
    number = float(text.lower().replace("p", "."))
    places = len(re.split(r"[.pe]", text.lower())[1]) if re.search(r"[.p]", text.lower()) else 0
    return abs(number - value) <= 10.0**-places / 2 if places else number == value


def _digits(text: str) -> str:
    """0.99 and 099 -> 99."""
    return text.replace(".", "").strip("0")
