"""What should be run next? From findings and an experiment's answer: one proposal, or why there is none.

In this order: an experiment's answer; a setting that explains a finding and has a known better value, causes before
symptoms; more steps for a run that still improves at its end; a cautious step where a finding names a direction alone;
more episodes where a choice rested on too few. A run at the highest return there is, or above the level that is called
solved, needs nothing but more seeds.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relab.advise import foreign, question, restart, tried
from relab.advise.checks import RejectedError, check
from relab.advise.predict import cost, predict, same_group, same_task, worsens
from relab.advise.proposal import FILE, Nothing, Predicted, Proposal, diff_text, new_values
from relab.advise.rising import OPEN, RISES, STAYS, Trend, lowest_ends, of_most_seeds, trend_of
from relab.advise.solved import WAITING, cut_text, is_unstable, more_than_half, reached_goal, run_whole, solved
from relab.advise.tried import Tried
from relab.base.jsonl import RecordError
from relab.base.numbers import is_number
from relab.base.places import address
from relab.base.text import figure, number
from relab.config import stretch
from relab.config.base import ConfigError, require
from relab.health import onsets
from relab.health.chain import CHAIN, lead
from relab.health.examine import Report
from relab.health.foreign import setting_name
from relab.health.mend import in_words
from relab.health.remedy import Remedy
from relab.health.render import tried as tried_text
from relab.health.rule import Finding, Missing, all_rules
from relab.health.view import View
from relab.record.history import load
from relab.record.state import seed_of, state_of
from relab.runs import identity
from relab.runs.sentences import sentence

ENOUGH = 5  # seeds of a config: from here on an interval can be had
LEAP = 10  # a number that moves further is named
NEIGHBOURS = 200  # run folders beside a run that are read at most


def propose(
    report: Report, path: str | os.PathLike[str] | None = None, earlier: Sequence[Tried] = ()
) -> Proposal | Nothing:
    """The best supported next run for what `report` examined; nothing is written.

    With `path` (of the run, folder or experiment) an experiment's answer is used too, and run folders beside a single
    run are read, which may have the proposed value already. Without it, only what the report holds is looked at.
    `earlier` are changes whose outcome is known: what was answered is not proposed again.
    """
    root = None if path is None else Path(path)
    if root is not None and (declared := question.read(root)) is not None:
        return question.propose(declared, root, report)
    return Search(report, neighbours(report, root) if root is not None else [], earlier).best()


def with_values(
    proposal: Proposal, values: Mapping[str, Any], report: Report, path: Path, earlier: Sequence[Tried] = ()
) -> Proposal:
    """A proposal with other values for its keys, which somebody chose: its checks are made anew, and its prediction is
    gone. ConfigError where a check fails."""
    parent = Path(proposal.folder)
    parent = (parent if (parent / "config.yaml").is_file() else parent / proposal.parent).resolve()
    search = Search(report, neighbours(report, path), earlier)
    view = next((view for view in search.views if view.history.folder.resolve() == parent), None)
    require(view is not None, f"{proposal.parent} is no longer there")
    assert view is not None
    diff = {key: change | {"to": values.get(key, change["to"])} for key, change in proposal.diff.items()}
    changes = {key: (change["from"], change["to"]) for key, change in diff.items()}
    try:
        not_again(tried.matching(diff, tried.subject(view.history.config), earlier))
        checks, seeds = check(view, changes, search.others(view))
    except RejectedError as error:
        raise ConfigError(f"{diff_text(diff)} is refused: {error}") from None
    checks |= {"step": far} if (far := leaps(changes)) else {}
    nothing = replace(proposal.predicted, delta=None, low=None, high=None, how="edited by hand: no prediction")
    command = f"relab train {Path(proposal.folder) / FILE} seed={seeds[0]}{view.trust}"
    return replace(proposal, diff=diff, predicted=nothing, rationale=f"{proposal.rationale} (edited by hand)",
                   checks=checks, seeds=seeds, command=command, cost=cost(view, changes))  # fmt: skip


def leaps(changes: Mapping[str, tuple[Any, Any]]) -> str:
    """Numbers that move by more than an order of magnitude, which may be a slip of the hand; empty where none does.

    >>> leaps({"algo.lr": (0.1, 5), "algo.epochs": (4, 8)})
    'algo.lr is 50 times what it was'
    """
    numbers = {key: (a, b) for key, (a, b) in changes.items() if is_number(a) and is_number(b) and a and b}
    far = {key: b / a for key, (a, b) in numbers.items() if not 1 / LEAP <= b / a <= LEAP}
    return "; ".join(f"{key} is {figure(ratio)} times what it was" for key, ratio in far.items())


def neighbours(report: Report, root: Path) -> list[View]:
    """Runs beside a single run, one level; folders that cannot be read are passed over."""
    if len(report.runs) != 1 or report.runs[0].view.history.source != "relab":
        return []
    home, beside = report.runs[0].view.history.folder.resolve(), []
    for meta in sorted(home.parent.glob("*/meta.json"))[:NEIGHBOURS]:
        if meta.parent != home and not meta.parent.is_symlink():
            try:
                run = load(meta.parent)
            except (RecordError, OSError, ValueError):
                continue
            beside.append(View(run, meta.parent.name, state=state_of(run)))
    return beside


@dataclass
class Search:
    """Goes through what could be proposed, and keeps what spoke against each."""

    report: Report
    beside: list[View]
    earlier: Sequence[Tried] = ()
    passed_over: list[str] = field(default_factory=list)
    uneven: list[str] = field(default_factory=list)  # configs of which only some seeds rise

    @property
    def views(self) -> list[View]:
        return [each.view for each in self.report.runs]

    def others(self, view: View) -> list[View]:
        """Every run that is known here besides this one, each folder once."""
        known = {v.history.folder.resolve(): v for v in [*self.beside, *self.views]}
        if view.reference is not None:
            known.setdefault(view.reference.history.folder.resolve(), view.reference)
        known.pop(view.history.folder.resolve(), None)
        return list(known.values())

    def best(self) -> Proposal | Nothing:
        if not self.views:
            return Nothing(f"no run below {self.report.path} could be read")
        open_ = [view for view in self.views if not self.settled(view)]
        self.passed_over += self.settled_first(open_)
        return (
            self.from_findings(open_, known=True)
            or self.from_curve(open_)
            or self.from_findings(open_, known=False)
            or self.from_evidence(open_)
            or self.nothing()
        )

    def settled(self, view: View) -> str:
        """Why a run needs no change of its own; empty where it may."""
        if view.state in WAITING:
            return view.state
        if self.solved(view):
            return "solved"
        return "known" if any(same_task(v, view) and self.solved(v) for v in self.views if v is not view) else ""

    def solved(self, view: View) -> bool:
        """Whether a run is solved, as its config is: the luckiest of its seeds says little."""
        return solved(view) and self.of_most_seeds(view, solved)

    def of_most_seeds(self, view: View, holds: Callable[[View], bool]) -> bool:
        """Whether it holds for more than half of the runs of its config that have ended."""
        seeds = [group.views for group in self.report.groups if any(v is view for v in group.views)] or [[view]]
        return more_than_half([*seeds[0], *(v for v in self.beside if same_group(view, v))], holds)

    def settled_first(self, open_: list[View]) -> list[str]:
        """Why the runs that `relab examine` shows first are not gone on with, where a later one is."""
        names, passed = {view.name for view in open_}, dict[str, str]()
        for finding in lead(self.report.main):
            if finding.run is None or finding.run in names:
                break
            view = next((v for v in self.views if v.name == finding.run), None)
            others = [v for v in self.views if view and v is not view and same_task(v, view)]
            model = next(filter(self.solved, others), None)
            if model is not None:
                said = f"{finding.run} ({finding.slug}): {model.name} has solved the same task already"
                passed.setdefault(finding.run, said)
        return list(passed.values()) if open_ else []

    # ---- Sources of proposals

    def from_findings(self, open_: list[View], known: bool) -> Proposal | None:
        """The first finding, in order of importance, that calls for a change to a known value (or for a blind step)."""
        by_name = {view.name: view for view in open_}
        for finding in self.report.main:
            view = by_name.get(finding.run or "")
            if view is None or finding.about == "evidence":
                continue
            remedy = finding.remedy
            if remedy is None or remedy.known != known:
                continue
            proposal = self.make(view, remedy, finding.slug, self.because(finding, view))
            if proposal is not None:
                return proposal
        return None

    def because(self, finding: Finding, view: View) -> str:
        group = [v for v in self.views if v is view or same_group(v, view)]
        names = {v.name for v in group}
        same = [f for f in self.report.main if f.slug == finding.slug and f.run in names]
        began = onsets.earliest([(str(f.run), f.onset) for f in same], len(group))
        seeds = f" ({len({f.run for f in same})} of {len(group)} seeds)" if len(group) > 1 else ""
        return f"{finding.slug}: {finding.message}{f', {began.words}' if began and began.marked else seeds}"

    def from_curve(self, open_: list[View]) -> Proposal | None:
        for view, rise in self.rising(open_):
            steps = view.config.get("total_steps")
            if type(steps) is int:
                remedy = Remedy({"total_steps": (steps, 2 * steps)}, "twice as many")
                slower = stretch.sentence(view.config, steps, 2 * steps, "this run")
                why = f"still-improving: {rise}{f'; with twice the steps {slower}' if slower else ''}"
                proposal = self.make(view, remedy, "still-improving", why)
                if proposal is not None:
                    return proposal
        return None

    def rising(self, open_: list[View]) -> list[tuple[View, Trend]]:
        kept, uneven = of_most_seeds(self.trends(open_, RISES), run_whole(self.views))
        self.uneven += [each for each in uneven if each not in self.uneven]
        return kept

    def trends(self, views: list[View], kind: str) -> list[tuple[View, Trend]]:
        """Runs that came to their end, and whose return did so there."""
        trends = [(view, _trend(view)) for view in run_whole(views)]
        return [(view, trend) for view, trend in trends if trend is not None and trend.kind == kind]

    def from_evidence(self, open_: list[View]) -> Proposal | None:
        """What limits the conclusion and not the learning is asked last."""
        for finding in (f for f in self.report.main if f.about == "evidence"):
            view = next((v for v in open_ if v.name == finding.run), None)
            remedy = finding.remedy if view is not None else None
            proposal = self.make(view, remedy, finding.slug, self.because(finding, view)) if view and remedy else None
            if proposal is not None:
                return proposal
        return None

    def make(self, view: View, remedy: Remedy, source: str, why: str) -> Proposal | None:
        """The proposal with its checks; None where one of them fails, which is kept."""
        diff = {key: {"from": now, "to": then} for key, (now, then) in remedy.changes.items()}
        here, start = view.history.trained_by_relab, self.start(view, remedy)
        names = {key: setting_name(view, key) for key in diff}
        before = view.config.get("start_from")
        whole = remedy.changes | ({"start_from": (before, start)} if here and start and start != before else {})
        again = tried.matching(diff, tried.subject(view.history.config), self.earlier)
        try:
            not_again(again)
            checks, seeds = check(view, whole, self.others(view))
            expected = self.expected(view, whole)
        except RejectedError as error:
            self.passed_over.append(f"{diff_text(diff, names)} in {view.name} ({source}): {error}")
            return None
        folder = str(view.history.folder)
        command = (
            f"relab train {Path(folder) / FILE} seed={seeds[0]}{view.trust}" if here else foreign.words(view, diff)
        )
        name = view.history.folder.resolve().name if here else view.name
        whose = remedy.why if len(diff) == 1 else remedy.why.replace("the value of", "the values of")
        why = f"{why}. {new_values(diff, names)} {'is' if len(diff) == 1 else 'are'} {whose}."
        price = cost(view, remedy.changes)
        seeds = seeds if here or seed_of(view.history, view.name) is not None else []
        unanswered = [one.to_dict() for one in again if one.verdict == tried.OPEN]
        return Proposal(parent=name, diff=diff, rationale=why, checks=checks, predicted=expected, cost=price,
                        source=source, resume_from=start, seeds=seeds, folder=folder, command=command, runs_here=here,
                        passed_over=list(self.passed_over), tried=unanswered, names=names)  # fmt: skip

    def expected(self, view: View, changes: Mapping[str, tuple[Any, Any]]) -> Predicted:
        outcome = predict(view, changes, self.others(view))
        if worsens(outcome):
            harm = f"{outcome.metric} {number(outcome.delta or 0.0)} ({outcome.how})"
            raise RejectedError(f"it makes things worse: {harm}")
        return outcome

    def start(self, view: View, remedy: Remedy) -> str | None:
        """The weights to try it from; fresh ones where runs with these values say what comes of that."""
        weights = restart.weights(view, self.report.findings)
        known = predict(view, remedy.changes, self.others(view)).delta is not None
        return None if known and restart.is_own(view, weights) else weights

    # ---- Nothing

    def wait_for(self, name: str, state: str) -> Nothing:
        view = next(view for view in self.views if view.name == name)
        ours = view.history.trained_by_relab and state != "running"
        resume = f"`relab resume {address(view.history.folder)}{view.trust}` first"
        then = resume if ours else "what it would end at is not known"
        still = "still " if state == "running" else ""
        return Nothing(f"{name} is {still}{state}: {then}", self.passed_over, self.by_hand())

    def by_hand(self) -> str:
        """What the first finding with a remedy says to try, as `relab examine` prints it."""
        finding = next((f for f in self.report.main if f.suggest), None)
        return f"{finding.slug}: {'; '.join(map(tried_text, finding.suggest)).removesuffix('.')}" if finding else ""

    def nothing(self) -> Nothing:
        """One sentence: why no run is called for."""
        states = {view.name: self.settled(view) for view in self.views}
        solved_ = [view for view in self.views if states[view.name] == "solved"]
        waiting = [name for name, state in states.items() if state in WAITING]
        if waiting:
            return self.wait_for(waiting[0], states[waiting[0]])
        fitted = [view for view in self.views if view.verdict.fit is not None]
        if fitted and len(fitted) == len(self.views):
            return self.use_of_critic(fitted[0])
        if all(view.verdict.kind == "model" for view in self.views):
            return self.use_of_model(self.views[0])
        unwell = [f for f in self.report.main if f.about != "evidence" and states.get(f.run or "", "solved") == ""]
        if solved_ and not unwell:  # what was found on another task is not settled by them
            return Nothing(self.solved_text(solved_), self.passed_over)
        if self.passed_over:
            return Nothing(f"what the findings call for cannot be proposed: {self.passed_over[0]}", self.passed_over,
                           self.by_hand())  # fmt: skip
        cut = [view for view in self.views if view.unfinished and view.planned]
        if cut and all(finding.about == "evidence" for finding in self.report.main):
            return Nothing(f"{cut_text(cut[0])}: what it would end at is not known, so run it to its end first")
        unstable = [view for view in self.views if is_unstable(view) and self.of_most_seeds(view, is_unstable)]
        if unstable and not self.reasons(unstable[0]):
            return Nothing(unstable_text(unstable[0], self.others(unstable[0])), self.passed_over)
        if self.report.main:
            slugs = ", ".join(dict.fromkeys(f.slug for f in self.report.main))
            return Nothing(
                f"{self.lack()} ({slugs}): `relab examine` says what to look at", self.uneven, self.by_hand()
            )
        if self.uneven:
            return Nothing(self.uneven[0], self.uneven[1:])
        return Nothing(self.trend_text())

    def reasons(self, view: View) -> list[Finding]:
        """What says why a run learned as it did."""
        return [f for f in self.report.main if f.run == view.name and f.about in CHAIN and f.severity != "info"]

    def lack(self) -> str:
        """Why no change of a setting follows from the findings."""
        settings = [key for view in self.views for key in view.config if key.startswith(("algo.", "foreign."))]
        if set(settings) <= {"algo.name"}:
            return "the log holds no settings, so that none can be changed for what was found"
        finding = next((f for f in self.report.main if f.suggest), None)
        rule = all_rules().get(finding.slug) if finding else None
        if finding is not None and finding.beyond_settings:
            return f"no setting mends {finding.slug}"
        held = set(rule.mends) & set(settings) if rule is not None else set()
        if finding is not None and rule is not None and rule.mends:
            first = next(iter(rule.mends))
            if not held:
                ways = in_words(rule.mends).replace("algo.", "")
                return f"the log does not hold a setting that may mend {finding.slug} ({ways}), of what was found"
            if first.startswith("algo.") and first not in held:  # which every program has, by that name or another
                way = in_words({first: rule.mends[first]}).replace("algo.", "")
                return f"the log does not hold the setting that mends {finding.slug} first ({way}), of what was found"
        if held and finding is not None:
            view = next((v for v in self.views if v.name == finding.run), self.views[0])
            names = ", ".join(sorted(setting_name(view, key) for key in held))
            return f"{names} may mend {finding.slug}, but no run here and no preset says to which value"
        return "no setting is known to mend what was found"

    def trend_text(self) -> str:
        """Nothing was found: does a return still rise? Only what is known is said."""
        if rising := self.trends(self.views, RISES):
            (view, rise), *_ = rising
            return (f"nothing was found, but in {view.name} {rise}; the log does not say how many steps were planned:"
                    " more of them are worth a try")  # fmt: skip
        if unsure := self.trends(self.views, OPEN):
            return f"nothing was found; {unsure[0][1]} ({unsure[0][0].name})"
        if not self.trends(self.views, STAYS):
            return "nothing was found; whether the return still rises at the end cannot be told"
        return "nothing was found, and no return still rises at the end"

    def solved_text(self, views: list[View]) -> str:
        level, tasks = lowest_ends(views), {v.config.get("env.name") for v in views}
        who = views[0].name if len(views) == 1 else f"{len(views)} of {len(self.views)} runs"
        what = f"ended as high as asked or possible ({level})"
        bar = views[0].verdict.yardstick.solved
        if bar is not None and len(tasks) == 1 and all(not reached_goal(view) for view in views):
            what = f"ended above the level that is called solved ({number(bar)}): {level}"
        return f"{who} {what}{self.errors_text(views) or self.worth_doing(views)}"

    def worth_doing(self, views: list[View]) -> str:
        """What a solved config is still worth: seeds up to five, then nothing. Of several configs it is not said."""
        view, every = views[0], [views[0], *self.others(views[0])]
        if len(set(identity.keys([(v.history, v.name) for v in views]))) > 1:
            return ""
        there = len({seed_of(v.history, v.name) for v in every if v is view or same_group(view, v)})
        if there >= ENOUGH:
            return f"; {there} seeds of the config are there, and nothing more is called for"
        seed = f"seed={_other_seed(view, self.others(view))}"
        command = f"`relab train {seed} --parent {view.name}{view.trust}`"
        more = command if view.history.trained_by_relab else seed  # of another tool: in its own words
        few = "one seed says little about the config, another run of it more" if there == 1 else (
            f"more steps are not needed, more seeds are ({there} of {ENOUGH} are there)")  # fmt: skip
        return f"; {few}: {more}"

    def use_of_critic(self, view: View) -> Nothing:
        """A critic alone: what it is for, if it is of any use."""
        env, fit = view.config.get("env.name"), view.verdict.fit
        use = f"`relab train finetune env={env} critic_from={address(view.history.folder)}` begins with it"
        then = use if fit is not None and fit.useful else "fit another to more data (`envs`, `steps`) before it is used"
        said = sentence(view.verdict)
        return Nothing(f"{said[:1].lower()}{said[1:]}; {then}", self.passed_over, self.by_hand())

    def use_of_model(self, view: View) -> Nothing:
        """A world model alone: what it is for."""
        here, said = address(view.history.folder), sentence(view.verdict)
        then = f"`relab train mode=behaviour start_from={here} start_parts=model --parent {here}`"
        use = f"{said[:1].lower()}{said[1:]}; {then} learns to act in its dreams"
        return Nothing(use, self.passed_over, self.by_hand())

    def errors_text(self, views: list[View]) -> str:
        """Numbers that are not legal speak against the level itself."""
        names = {view.name for view in views}
        slugs = dict.fromkeys(f.slug for f in self.report.main if f.severity == "error" and f.run in names)
        return f"; but {', '.join(slugs)} must be looked at first: `relab examine`" if slugs else ""


def not_again(earlier: Sequence[Tried]) -> None:
    """What was answered is not proposed; who wants it all the same can run it, and is told."""
    done = next((one for one in earlier if one.verdict in (tried.NO, tried.YES)), None)
    if done is not None:
        on = f" on {done.date}" if done.date else ""
        then = f"; `relab next {done.where}` goes on from there" if done.verdict == tried.YES else ""
        raise RejectedError(f"answered {done.verdict} before{on}: {done.text} ({done.where}){then}")


def unstable_text(view: View, others: Sequence[View]) -> str:
    """What it ends at depends on when it ended, and no finding says why."""
    said = sentence(view.verdict)
    more = "evaluate more often near its end, or run" if view.verdict.evaluated else "run"
    seed = "" if type(seed_of(view.history, view.name)) is not int else f" (seed={_other_seed(view, others)})"
    return (f"{view.name} is {said[:1].lower()}{said[1:]}; no finding says why: {more} another seed{seed} before"
            " anything is changed")  # fmt: skip


def _trend(view: View) -> Trend | None:
    try:
        return trend_of(view)
    except Missing:
        return None


def _other_seed(view: View, others: Sequence[View]) -> int:
    """The first seed after its own that no run of its config has."""
    used = {seed_of(v.history, v.name) for v in others if same_group(view, v)}
    own = seed_of(view.history, view.name)
    first = own + 1 if type(own) is int else 1
    return next(seed for seed in itertools.count(first) if seed not in used)
