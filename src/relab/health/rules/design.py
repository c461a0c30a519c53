"""Can one conclude anything from it? Seeds, selection, settings that changed unsaid, provenance, speed."""

from __future__ import annotations

import math
import re

import numpy as np

from relab.base.numbers import to_int
from relab.base.text import plural
from relab.config.views import MISSING, Change, diff
from relab.formats.read.common import meaning
from relab.health.curve import Curve
from relab.health.estimates import shown
from relab.health.foreign import best_beside
from relab.health.mend import at_least
from relab.health.rule import SHORT, Evidence, Finding, Missing, rule
from relab.health.view import View, ViewGroup, episodes
from relab.record import glossary
from relab.record.state import seed_of
from relab.runs.course import with_noise

QUIET = ("seed", "device", "threads", "save.", "eval.", "probes")  # settings that change no learning
QUIET_WORD = re.compile(
    r"(^|[._])(wandb|track|device|log\w*|verbose|tensorboard\w*|project\w*|entity|tags?|compile\w*|\w*(path|dir)|save\w*|checkpoint\w*)$"
)
TRUSTED_N = 20  # episodes
SHOWN = 3  # changes that a message names
UNSAID = (None, "", "?", "unknown", "ended", "done", "end")  # an end that a log gives no reason for


@rule(
    "unmentioned-config-change",
    about="fault",
    algos=(),
    severity="warning",
    sets_back=True,
    compared=False,
)
def unmentioned_config_change(view: View) -> Finding | None:
    """
    What: settings differ from the parent's, and the run's intent does not mention them; of a run without an intent,
        its command line neither.
    Why: a change nobody speaks of is the first suspect when a child does worse than its parent.
    Known problems: an intent in other words than the keys' is not understood.
    Refuted by: the change being intended; say so with `--intent`.
    Try: set the key back, or mention it.
    """
    parent = view.reference
    if not view.meta.get("parent"):
        return None
    if parent is None or not view.is_parent:
        raise Missing(f"the parent's run folder, {str(view.meta['parent'])[:40]}")
    intent = str(view.meta.get("intent") or _typed(view)).lower()
    changes = [c for c in diff(parent.history.config, view.history.config)
               if not quiet(c) and not _mentions(intent, c.key) and not _goes_on(view, c.key)]  # fmt: skip
    if not changes:
        return None
    names = ", ".join(f"{c.key} {c.a} -> {c.b}" for c in changes[:SHOWN])
    more = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    suggest = [{"key": c.key, "from": _plain(c.b), "to": _plain(c.a)} for c in changes[:SHOWN]]
    return Finding(f"changed since {parent.name}, not mentioned: {names}{more}", float(len(changes)), 0,
                   [Evidence(c.key, [0], [], f"{c.a} -> {c.b}") for c in changes[:8]], suggest, "high")  # fmt: skip


def quiet(change: Change) -> bool:
    """Settings that change no learning, and flags that are off where the other one has none."""
    sides = (change.a, change.b)
    off = MISSING in sides and any(side is False or side is None for side in sides)
    return change.key.startswith(QUIET) or bool(QUIET_WORD.search(change.key)) or bool(off)


def _goes_on(view: View, key: str) -> bool:
    """A record says itself whose weights the run began with; with its parent's it goes on for as long as it likes."""
    start = view.meta.get("started_from")
    if not isinstance(start, dict):
        return False
    with_parents = start.get("run") == view.meta.get("parent")
    return key in ("start_from", "start_parts") or (with_parents and key == "total_steps")


def _typed(view: View) -> str:
    """The settings that a command line names, as words: without an intent it is all that was said about the run."""
    words = str(view.meta.get("command") or "").split()
    return " ".join(
        word.lstrip("-").partition("=")[0].replace("-", "_") for word in words if "=" in word or "--" in word
    )


def _plain(value: object) -> object:
    return None if value is MISSING else value


def _mentions(intent: str, key: str) -> bool:
    word = key.rpartition(".")[2].lower()
    words = set(re.findall(r"\w+", intent))
    return word in words or key.lower() in intent or word.replace("_", " ") in intent


@rule("single-seed", about="evidence", algos=(), scope="group", footer=True)
def single_seed(group: ViewGroup, *, least: int = 5) -> Finding | None:
    """
    What: a config was run with fewer than five seeds.
    Why: seeds differ by more than most changes do; under five there is no interval worth its name.
    Known problems: a debugging run needs no second seed; hence this is told in the footer only.
    Refuted by: more seeds elsewhere.
    Try: run the same config with seeds 0 to 4.
    """
    seeds = {str(seed_of(view.history, view.name)) for view in group.views}
    if len(seeds) >= least:
        return None
    return Finding(f"{plural(len(seeds), 'seed')} of {group.name}: no conclusion about the config",
                   float(len(seeds)), confidence="high")  # fmt: skip


@rule("not-reproducible", about="evidence", algos=(), footer=True)
def not_reproducible(view: View) -> Finding | None:
    """
    What: the record lacks the command, seed or packages of the run, wherever its format would keep them.
    Why: without them the run cannot be made again.
    Known problems: a commit is not asked for: a program outside of a repository has none.
    Refuted by: a script next to the folder that holds them.
    Try: start runs with `relab train`, which writes them down.
    """
    if not view.meta and view.history.source == "relab":
        raise Missing("meta.json")
    known = {"seed": seed_of(view.history, view.name), **{k: view.meta.get(k) for k in ("command", "packages")}}
    gone = [key for key, value in known.items() if value in (None, "", {})]
    return Finding(f"the record lacks {', '.join(gone)}", float(len(gone)), confidence="high") if gone else None


@rule("peak-selection", about="choice", algos=())
def peak_selection(view: View, *, beyond_luck: float = 2.0, of_gain: float = 0.2, tail: int = 10) -> Finding | None:
    """
    What: the best of k evaluations lies above the mean of the last ones by more than luck in k draws explains.
    Why: the highest of many noisy numbers is too high; quoted as the result it promises what the run did not keep.
    Known problems: a run that is still swinging shows this too, and rightly.
    Refuted by: the best checkpoint scoring the same on fresh episodes (`relab eval --checkpoint best`).
    Try: quote the mean of the last evaluations, or re-evaluate the best checkpoint on fresh seeds.
    """
    course = with_noise(view.evals(at_least=5))
    k = max(2, len(course) // tail)
    final = float(np.mean([e.mean for e in course[-k:]]))
    best = max([e for e in course if e.step > 0] or course, key=lambda e: e.mean)  # not the untrained start
    known = [math.sqrt(e.n) * e.se for e in course[-k:] if not math.isnan(e.se)]
    if not known:
        raise Missing("evaluations that tell their noise")
    spread = max(known)
    error = spread / math.sqrt(course[-1].n) * math.sqrt(1 + 1 / k)
    luck = math.sqrt(2 * math.log(len(course))) + beyond_luck
    floor = view.random()[0]
    if best.mean - final <= luck * error or best.mean - final <= of_gain * abs(best.mean - floor):
        return None
    level = f"the mean of the last {k} ({final:.4g}{', itself among them' if best in course[-k:] else ''})"
    return Finding(f"the best evaluation ({best.mean:.4g} at {best.step:,}) is far above {level}",
                   best.mean - final, None, [shown(course, view.judged_by)])  # fmt: skip


@rule(
    "untrusted-best",
    about="evidence",
    algos=(),
    fallback=(at_least("eval.episodes", TRUSTED_N, "the least that a best checkpoint should be chosen on"),),
    compared=False,
    names=("best-in-training",),
)
def untrusted_best(view: View, *, episodes: int = TRUSTED_N) -> Finding | None:
    """
    What: the best checkpoint was chosen on fewer than 20 episodes, on a training metric, or on an illegal value.
    Why: with few episodes the choice follows luck; a training metric is not the policy that is handed on.
    Known problems: deterministic tasks need only one episode; hence no finding where episodes do not differ.
    Refuted by: a fresh evaluation of that checkpoint with enough episodes.
    Try: evaluate it afresh (`relab eval RUN --checkpoint best --episodes 100`); next time on 20 episodes or more.
    """
    best = view.best or best_beside(view.history)
    if not best:
        raise Missing("checkpoints/best.json")
    n, metric, noise, value = best.get("n"), str(best.get("metric", "")), best.get("noise"), best.get("value")
    number = float(value) if isinstance(value, (int, float)) else math.nan
    illegal = _illegal(metric, number)
    few = isinstance(n, int) and n < episodes and not (isinstance(noise, (int, float)) and noise == 0)
    if not few and not illegal and metric.startswith("eval/"):
        return None
    why = illegal or (f"{n} episodes" if metric.startswith("eval/") else f"the training metric {metric or '?'}")
    step = best.get("step")
    where = f"the best checkpoint (step {step:,})" if isinstance(step, int) else "the best checkpoint"
    formula = "" if n is None else f"{n} episodes"
    return Finding(f"{where} was chosen on {why}", float(n or 0), None,
                   [Evidence(metric, [step if isinstance(step, int) else 0], [number], formula)],
                   confidence="high" if illegal else "medium", severity="warning" if illegal else None)  # fmt: skip


@rule(
    "goal-judged-by-another-number",
    about="fault",
    algos=(),
    severity="warning",
    names=("stop-on-training",),
    compared=False,
)
def goal_judged_by_another_number(view: View) -> Finding | None:
    """
    What: the run stopped for its goal (`eval.stop_at`) though no evaluation had reached it; or an evaluation reached it
        and the run went on to the next one.
    Why: something else is looked at, such as the return in training, which lags behind and mixes many policies: the run
        ends before it is as good as asked, or is trained on past it.
    Known problems: none where the record is whole; a goal that was changed on the way looks the same.
    Refuted by: evaluations that were taken out of the record.
    Try: stop on evaluations of fixed first episodes alone.
    """
    goal = view.config.get("eval.stop_at")
    if not isinstance(goal, (int, float)) or isinstance(goal, bool):
        raise Missing("a goal (eval.stop_at)")
    course = view.evals(at_least=1)
    stops = [e for e in view.history.events if e.get("kind") == "stop" and e.get("reason") == "eval.stop_at"]
    reached = next((e for e in course if e.mean >= goal), None)
    evidence, by = [shown(course, view.judged_by)], str(view.best.get("metric") or "another number")
    if stops and reached is None:
        most = max(e.mean for e in course)
        return Finding(f"it stopped by {by} for a goal of {goal:g}, and evaluations had {most:.4g} at most",
                       most, course[-1].step, evidence, confidence="high")  # fmt: skip
    if reached is None or reached.step == course[-1].step:
        return None
    return Finding(f"an evaluation reached the goal of {goal:g} ({reached.mean:.4g}), and the run went on: it looks at"
                   f" {by}", reached.mean, reached.step, evidence, confidence="high")  # fmt: skip


def _illegal(metric: str, value: float) -> str:
    """A value that its metric cannot have: a success rate of 1716."""
    name = metric if glossary.known(metric) else (meaning(metric) or "")
    if not glossary.known(name):
        return ""
    legal = glossary.metric(name)
    if legal.low <= value <= legal.high or math.isnan(value):
        return ""
    return f"{metric} = {value:.4g}, which can only be {legal.low:g} to {legal.high:g}"


@rule("truncation-as-termination", about="fault", algos=(), severity="warning", least=SHORT, names=("cut-as-end",))
def truncation_as_termination(view: View, *, least_ends: int = 5, share: float = 0.5) -> Finding | None:
    """
    What: episodes that last to the horizon are recorded as ended by the task, not by the time limit; or the targets
        expect nothing beyond a time limit (value/after_cut is 0) though the critic expects something elsewhere.
    Why: the value of the last state is then taken for 0; targets are biased wherever an episode could go on.
    Known problems: a task that itself ends at the horizon is declared as such (`timeout_is_terminal`) and left out.
    Refuted by: the environment really ending there.
    Try: return truncated, not terminated, at the time limit, and bootstrap there.
    """
    if view.spec.get("timeout_is_terminal"):
        return None
    cut = _nothing_after_cut(view)
    if cut:
        return cut
    horizon = view.fact("horizon")
    ends = [(row.get("step"), e.get("end")) for row in view.history.evals for e in episodes(row)
            if e.get("length") == horizon and e.get("end") not in UNSAID]  # fmt: skip
    if not any(e.get("end") not in UNSAID for row in view.history.evals for e in episodes(row)):
        raise Missing("evaluations that say how their episodes ended")
    wrong = [step for step, end in ends if end not in ("time_limit", "unused")]
    if len(ends) < least_ends or len(wrong) < share * len(ends):
        return None
    return Finding(f"{len(wrong)} of {len(ends)} episodes that reached the horizon of {horizon:g} count as terminated",
                   len(wrong) / len(ends), to_int(wrong[0]) or 0, confidence="high")  # fmt: skip


def _nothing_after_cut(view: View, rows: int = 3, at_zero: float = 0.9, value_above: float = 1e-3) -> Finding | None:
    if not view.has("value/after_cut") or not view.has("value/mean"):
        return None
    beyond, value = view.curve("value/after_cut"), view.curve("value/mean")
    if len(beyond) < rows or np.mean(beyond.values == 0) < at_zero or np.median(np.abs(value.values)) < value_above:
        return None
    return Finding(f"the targets expect nothing beyond a time limit, where the critic's mean value is {value.last:.4g}",
                   0.0, int(beyond.steps[0]), [beyond.evidence("= 0"), value.evidence()],
                   confidence="high", severity="warning")  # fmt: skip


@rule("throughput-drop", about="operation", needs=("time/collect_s", "time/update_s"), algos=())
def throughput_drop(view: View, *, times: float = 2.0) -> Finding | None:
    """
    What: three of four iterations of the last quarter take more than twice as long as three of four of the first half.
    Why: a leak, a growing log, another program on the machine; times of this run say nothing about the method.
    Known problems: episodes that get longer, or more agents alive, change the cost per step.
    Refuted by: the machine having been busy with something else.
    Try: look at time/rss_mb and at what else ran; profile the slow part.
    """
    collect, update = view.curve("time/collect_s", rows=12), view.curve("time/update_s", rows=12)
    if len(collect) != len(update):
        raise Missing("time/collect_s and time/update_s in the same rows")
    spent = Curve("time/collect_s + time/update_s", collect.steps, collect.values + update.values)
    n = len(spent)
    middle, usual_high = np.percentile(spent.values[max(1, n // 10) : n // 2], (50, 75))
    late, usual_low = np.percentile(spent.tail(0.25).values, (50, 25))
    if usual_low <= times * usual_high:
        return None
    return Finding(f"an iteration takes {late:.3g} s now, {middle:.3g} s before", float(late / middle),
                   spent.onset(spent.values > times * middle),
                   [spent.evidence(f"late p25 / early p75 > {times:g}")],
                   confidence="low")  # fmt: skip


@rule("busy-machine", about="operation", algos=(), footer=True)
def busy_machine(view: View, *, per_core: float = 1.25, beside_own: float = 0.5, rows: float = 0.25) -> Finding | None:
    """
    What: in a quarter of the rows or more the machine had more to do than it has cores, by a quarter or more, and not
        from this run's own threads alone: a thread got less than 80 % of a core.
    Why: times, speeds and costs of this run are those of a shared machine; they are not to be quoted or compared.
    Known problems: the load is a mean over the last minute, and counts programs that wait for a disk. Returns and
        losses do not depend on it.
    Refuted by: the other programs having run on cores that this run could not use.
    Try: measure speed again on a quiet machine (time/load below its cores); the learning itself stands.
    """
    facts = view.meta.get("load")
    cores = facts.get("cores") if isinstance(facts, dict) else None
    if type(cores) is not int or cores < 1 or not view.has("time/load"):
        raise Missing("the machine's load and cores, as relab's own runs keep them")
    load, threads = view.curve("time/load"), view.meta.get("threads")
    own = threads if type(threads) is int else 1
    busy = load.values > max(per_core * cores, own + beside_own)
    if busy.mean() < rows:
        return None
    usual = float(np.median(load.values[busy]))
    return Finding(f"the machine was busy in {busy.mean():.0%} of the rows (load {usual:.3g} on {cores} cores):"
                   " its speeds are not to be quoted", usual, load.onset(busy),
                   [load.evidence(f"> {per_core:g} x {cores} cores")], confidence="high")  # fmt: skip


@rule("metric-at-ceiling", about="evidence", algos=(), scope="folder")
def metric_at_ceiling(groups: list[ViewGroup]) -> Finding | None:
    """
    What: two or more configs of one environment all end at the highest return there is.
    Why: a metric at its maximum cannot say which of them is better.
    Known problems: a demonstration that all of them solve the task is just that.
    Refuted by: the question being whether they solve it.
    Try: compare the steps until a level is first reached, or take a harder task.
    """
    ended: dict[str, list[tuple[str, float]]] = {}
    for group in groups:
        for view in group.views:
            if view.has_evals(view.by):
                ended.setdefault(str(view.spec.get("env")), []).append((group.name, view.evals()[-1].mean))
    top = {str(v.spec.get("env")): v for g in groups for v in g.views}
    for env, rows in ended.items():
        names = sorted({name for name, _ in rows})
        if len(names) >= 2 and all(_full(top[env], mean) for _, mean in rows):
            return Finding(f"all {len(names)} configs on {env} end at the highest return ({rows[0][1]:.4g})",
                           rows[0][1], confidence="high")  # fmt: skip
    if not ended:
        raise Missing("evaluations with their episodes")
    return None


def _full(view: View, mean: float) -> bool:
    try:
        return mean >= view.ceiling() - 1e-9
    except Missing:
        return False
