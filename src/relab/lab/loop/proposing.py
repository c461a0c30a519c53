"""What is tried next? What somebody dropped into the folder, what a finding calls for, then a sampled point.

Every proposal, whoever makes it, is a diff against the resolved settings of its parent and passes the same checks:
the policy, the config's own rules, and that it was not tried and refuted before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.advise import tried as answered
from relab.advise.proposal import Cost, Predicted, Proposal, diff_text, new_values
from relab.base.documents import Document, Settings
from relab.base.enclosed import own, subfolder
from relab.base.errors import UserError, refusal
from relab.base.jsonl import write_atomic
from relab.config import layers
from relab.config.base import ConfigError
from relab.config.lineage import FromTo
from relab.config.registry import UntrustedError
from relab.formats.read import find
from relab.health.examine import Report, examine_loaded
from relab.health.rule import Finding
from relab.health.view import View
from relab.lab.experiment import cells as runs
from relab.lab.experiment import template
from relab.lab.loop import dropped, policy, sampler, variants
from relab.lab.loop.arms import Arms
from relab.lab.loop.foresee import foresee
from relab.lab.loop.journal import Trial
from relab.lab.loop.policy import RefusedError
from relab.lab.loop.sampler import Past

SHOWN = 3  # runs of the best config that are examined: findings repeat over seeds


@dataclass
class Idea:
    """A change, whose it is, and why."""

    change: dict[str, FromTo]
    source: str  # the slug of a finding, `dropped` or `sampler`
    rationale: str
    parent: str
    known: bool = False  # to a value that somebody has tried
    resume_from: str | None = None
    predicted: Document = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    file_hash: str = ""  # of the file that somebody dropped


@dataclass
class Proposer:
    """Makes the next proposal of a loop."""

    arms: Arms
    earlier: list[answered.Tried] = field(default_factory=list)  # what experiments and logs have answered
    passed_over: list[str] = field(default_factory=list)
    trusting: bool = True  # False for a mere look: code that the folder's files name is not imported

    @property
    def past(self) -> list[Past]:
        return [Past(each.parent, each.proposal["diff"], self.worth(each), each.proposal["source"], each.kept)
                for each in self.arms.journal.state.trials]  # fmt: skip

    def worth(self, trial: Trial) -> float | None:
        """What its runs logged, never what the hidden evaluation said."""
        seeds = trial.first["seeds"] if trial.first else []
        return float(self.arms.open_values(self.arms.cells(trial.name, seeds)).mean()) if seeds else None

    def next(self) -> Idea | None:
        """The first idea that passes; what did not is told in `passed_over`."""
        self.passed_over = []
        for idea in (*self.taken(), *self.called_for()):
            return idea
        return self.sampled()

    def pass_over(self, text: str) -> None:
        """Several seeds have the same finding: it is said once."""
        self.passed_over += [text] if text not in self.passed_over else []

    # ---- Dropped

    def taken(self) -> Iterator[Idea]:
        """A dropped file is taken at once: it becomes a proposal, or is put into refused/ with the reason."""
        folder = self.arms.folder
        path = dropped.waiting(folder)
        if path is None or self.seen(path):
            return
        try:
            dropped.check_file(path)
            idea = self.from_file(path)
        except (UserError, OSError) as error:
            why = refusal(error) if isinstance(error, OSError) else str(error)
            n = len(self.arms.journal.state.refused) + 1
            self.arms.journal.add("refused", n=n, source="dropped", file_hash=dropped.digest(path), why=why)
            self.arms.tell(f"  refused: {why}")
            self.put_away(path)
            return
        yield idea

    def seen(self, path: Path) -> bool:
        """A file whose event was written down before somebody killed the loop: it is put away, and not taken twice."""
        state = self.arms.journal.state
        rows = [*state.refused[-1:], *(each.proposal for each in state.trials[-1:])]
        before = any(row.get("file_hash") == dropped.digest(path) for row in rows)
        if before:
            self.put_away(path)
        return before

    def put_away(self, path: Path) -> None:
        """Beside the proposal that it became, or into refused/."""
        state, hash_ = self.arms.journal.state, dropped.digest(path)
        no = next((row for row in reversed(state.refused) if row.get("file_hash") == hash_), None)
        place, name = (
            ("refused", f"r{no['n']:03d}.yaml") if no else ("proposals", f"{state.trials[-1].name}-dropped.yaml")
        )
        try:
            path.rename(own(subfolder(self.arms.folder, place), name))  # never a copy, for which a pipe would be opened
        except OSError as error:
            self.arms.tell(f"  {path} cannot be moved into {place}/ ({error.strerror}): it is passed over while it lies"
                           " there")  # fmt: skip

    def from_file(self, path: Path) -> Idea:
        """The idea in a file, checked; UserError where it must not run."""
        state = self.arms.journal.state
        configs = [each.stem for each in sorted((self.arms.folder / "variants").glob("*.yaml"))]
        parent = dropped.parent_of(path, state.best, configs)
        file = dropped.read(path, parent, self.arms.settings(parent))
        idea = Idea(file.change, "dropped", file.rationale or "somebody proposed it", parent, False, file.resume_from,
                    file.predicted, file_hash=dropped.digest(path))  # fmt: skip
        return self.checked(idea)

    # ---- Findings

    def called_for(self) -> Iterator[Idea]:
        """What rules say to try with the best config, known values before steps into the dark."""
        if not self.arms.plan.findings:
            return
        report = self.examined()
        for known in (True, False):
            for finding in report.main if report else []:
                if finding.remedy is None or finding.remedy.known != known:
                    continue
                idea = self.of_finding(finding, known)
                if idea is not None:
                    yield idea

    def examined(self) -> Report | None:
        state = self.arms.journal.state
        folders = [
            cell.folder for cell in self.arms.cells(state.best, state.measured(state.best)) if runs.settled(cell)
        ]
        loaded = find.LoadedRuns([one for folder in folders[:SHOWN] for one in find.load_all(folder).runs])
        return examine_loaded(loaded, self.arms.folder / "runs") if loaded.runs else None

    def of_finding(self, finding: Finding, known: bool) -> Idea | None:
        """None where the policy, the config or an earlier try speaks against it, which is kept."""
        best = self.arms.journal.state.best
        settings = self.arms.settings(best)
        assert finding.remedy is not None
        try:
            change = self.translated(finding.remedy.changes, settings)
            since = "" if not finding.onset else f", since step {finding.onset:,}"
            why = f"{finding.slug}: {finding.message}{since}. {new_values(change)} is {finding.remedy.why}."
            return self.checked(Idea(change, finding.slug, why, best, known))
        except ConfigError as error:
            self.pass_over(f"{finding.slug}: {error}")
            return None

    def translated(self, changes: Mapping[str, tuple[Any, Any]], settings: Settings) -> dict[str, FromTo]:
        """A remedy in the words of the settings: a command's placeholder may be called learning_rate."""
        change: dict[str, FromTo] = {}
        for key, (_, to) in changes.items():
            fits = [key] if key in settings else layers.fitting_keys(key, settings)
            name = fits[0] if fits else key
            change[name] = {"from": settings.get(name), "to": to}
        return change

    # ---- Sampled

    def sampled(self) -> Idea | None:
        plan, state = self.arms.plan, self.arms.journal.state
        change = sampler.draw(plan, self.arms.settings(state.best), state.best, self.past)
        if change is None:
            self.passed_over.append("sampler: nothing is left in the allowed ranges that was not tried")
            return None
        which = {"optuna": "Optuna's TPE", "sobol": "Sobol's sequence", "random": "a random stream"}[
            sampler.name_of(plan)
        ]
        why = f"no finding calls for a change that may be made; {diff_text(change)} is the next point of {which}"
        try:
            return self.checked(Idea(change, "sampler", why, state.best))
        except ConfigError as error:
            self.passed_over.append(f"sampler: {error}")
            return None

    # ---- Checks

    def checked(self, idea: Idea) -> Idea:
        """The same idea with what was checked, in words; ConfigError where it must not run."""
        plan, settings = self.arms.plan, self.arms.settings(idea.parent)
        allowed = policy.check(plan.policy, idea.change, settings, idea.known)
        legal = self.legal(idea.change, idea.parent)
        again = sampler.tried(plan, idea.change, idea.parent, self.past)
        start = settings.get("start_from")
        policy.refuse(idea.resume_from in (None, start), f"`resume_from` is {idea.resume_from}, but its parent began"
                      f" with {start or 'fresh weights'}: what was trained before would be a larger budget. Begin a"
                      " loop of its own with `resume_mode: continue`: its base begins there as well")  # fmt: skip
        policy.refuse(
            again is None, f"{diff_text(idea.change)} was tried in this loop and not kept; try something else"
        )
        for one in answered.matching(
            idea.change, answered.subject(settings, template.join(plan.command)), self.earlier
        ):
            policy.refuse(one.verdict != answered.NO, f"{diff_text(idea.change)} was answered no before: {one.text}"
                          f" ({one.where})")  # fmt: skip
        idea.checks = {"policy": "; ".join(allowed), "config": legal, "repeat": "not tried in this loop",
                       "evaluator": "locked and unchanged"}  # fmt: skip
        return idea

    def legal(self, change: Mapping[str, FromTo], parent: str) -> str:
        plan = self.arms.plan
        if plan.command:
            template.fill(plan.command, {**self.arms.settings(parent), **{k: c["to"] for k, c in change.items()},
                                         "seed": 0, "run": "run"})  # fmt: skip
            return "fills the command; whether the values are legal is the program's to say"
        try:
            self.resolved(change, parent)
        except UntrustedError:  # it says nothing about the config: nothing was looked at
            raise
        except ConfigError as error:
            raise RefusedError(f"the config would not be legal: {error}") from None
        return "resolves and passes its checks"

    def resolved(self, change: Mapping[str, FromTo], parent: str) -> Settings:
        """The whole settings of the changed config."""
        settings = self.arms.settings(parent)
        values = {key: each["to"] for key, each in change.items()}
        if self.arms.plan.command:
            return {**settings, **values}
        trusted = self.trusting
        stack = [layers.Layer("parent", settings, trusted), layers.Layer("proposal", values, trusted)]
        whole = layers.to_dict(layers.resolve(stack, presets=False).config)
        whole.pop("seed")
        return whole

    # ---- Written down

    def write(self, idea: Idea, k: int, cost: Cost) -> Document:
        """The proposal as files: its settings, and a next_config.yaml against a run of its parent."""
        arms, name = self.arms, f"p{k:03d}"
        settings = self.resolved(idea.change, idea.parent)
        runs.write_variants({name: settings}, arms.folder)
        proposal = Proposal(
            parent=self.parent_run(idea.parent), diff={key: dict(each) for key, each in idea.change.items()},
            rationale=idea.rationale, checks=idea.checks, predicted=self.predicted(idea), cost=cost,
            source=idea.source, resume_from=None, passed_over=list(self.passed_over),
        )  # fmt: skip
        subfolder(arms.folder, "proposals")
        text = layers.format_yaml(proposal.file_keys())
        write_atomic(own(arms.folder, variants.of_proposal(name)), text.encode())
        files = {variants.of_config(name): variants.digest(variants.written(settings)),
                 variants.of_proposal(name): variants.digest(text.encode())}  # fmt: skip
        return {**proposal.file_keys(), "source": idea.source, "parent_config": idea.parent,
                "passed_over": list(self.passed_over), "file_hash": idea.file_hash,
                variants.FILES: files}  # fmt: skip

    def parent_run(self, config: str) -> str:
        """The first finished run of the parent's config."""
        seeds = self.arms.journal.state.measured(config)
        some = [cell for cell in self.arms.cells(config, seeds) if runs.settled(cell)]
        return some[0].folder.name if some else config

    def predicted(self, idea: Idea) -> Predicted:
        """Its own, where whoever dropped it said what to expect; else by what earlier changes did."""
        plan = self.arms.plan
        if idea.predicted.get("low") is not None and idea.predicted.get("high") is not None:
            ends = [
                float(idea.predicted[key]) if idea.predicted.get(key) is not None else None
                for key in ("delta", "low", "high")
            ]
            return Predicted(plan.metric, ends[0], ends[1], ends[2], str(idea.predicted.get("how") or "as proposed"),
                             plan.at, plan.direction)  # fmt: skip
        return foresee(plan, self.view(idea.parent), idea.change, self.arms.journal.state.trials)

    def view(self, config: str) -> View | None:
        seeds = self.arms.journal.state.measured(config)
        cell = next((each for each in self.arms.cells(config, seeds) if runs.settled(each)), None)
        return View(self.arms.read(cell), cell.folder.name) if cell is not None else None
