"""What does a loop leave to read? For each proposal a write-up and an entry in the log, for all of them a table.

notes/p003.txt, notes/p003.json    the write-up
LOG.md                             an entry for each proposal, and the table of the whole loop
loop.md, loop.json                 the table; the same for programs
report.md, report.html             curves, findings and settings of every config, with the table
best.json, latest.json             the best config with the evidence for it, and the last one
"""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

from relab.advise import calibration
from relab.advise.proposal import diff_text
from relab.base import masks
from relab.base.documents import Document
from relab.base.enclosed import own, subfolder
from relab.base.jsonl import encode, write_atomic
from relab.base.text import cut, number, plural, rows
from relab.formats.read import find
from relab.health.examine import Report, examine_loaded
from relab.lab.experiment import cells as runs
from relab.lab.loop import deciding, foresee, lock, worth, writeup
from relab.lab.loop.drive import Looping, facts
from relab.lab.loop.journal import Trial
from relab.notebook import fence, making
from relab.notebook import folder as notes
from relab.notebook.page import Entry
from relab.report import content, render, sections
from relab.report.page import Lead
from relab.report.parts import Section
from relab.report.parts import table as page_table
from relab.stats import keeping

LOG = "LOG.md"
TABLE = "loop-table"  # the id of the table in the log
HEAD = ["k", "change", "of", "source", "first seeds", "fresh seeds", "measured again", "verdict", "prediction"]
NARROW = 46
SHOWN = 8  # proposals on the first screen, besides those that were kept
ALL_RUNS = (
    "these numbers are of runs that had no part in choosing a config; the curves and the outcome below show all runs"
)


def of_trial(loop: Looping, trial: Trial) -> None:
    """The write-up of a proposal that is done, its entry in the log, and what follows from it."""
    report = examined(loop, trial)
    up = writeup.of_trial(loop, trial, report)
    place = subfolder(loop.arms.folder, "notes")
    write_atomic(own(place, f"{trial.name}.txt"), masks.mask(up.text()).encode())
    write_atomic(own(place, f"{trial.name}.json"), encode(masks.masked(up.to_json()), indent=True))
    enter(loop, trial)
    pointers(loop, trial)
    prune(loop)


def examined(loop: Looping, trial: Trial) -> Report | None:
    """Its first runs, held against a run of its parent."""
    seeds = (trial.first or {}).get("seeds", [])
    folders = [cell.folder for cell in loop.arms.cells(trial.name, seeds) if runs.settled(cell)]
    loaded = find.LoadedRuns([one for folder in folders for one in find.load_all(folder).runs])
    parent = loop.arms.folder / "runs" / str(trial.proposal["parent"])
    return (
        examine_loaded(loaded, loop.arms.folder / "runs", parent if parent.is_dir() else None) if loaded.runs else None
    )


def log_of(loop: Looping) -> Path:
    return Path(loop.plan.log) if loop.plan.log else loop.arms.folder / LOG


def enter(loop: Looping, trial: Trial) -> None:
    """The entry of its first run, as `relab note` writes it; what cannot be written is said, and the loop goes on."""
    cells = loop.arms.cells(trial.name, (trial.first or {}).get("seeds", []))
    first = next((cell.folder for cell in cells if runs.settled(cell)), None)
    try:
        if not loop.plan.log:
            own(loop.arms.folder, LOG)  # a link that a run put there is not written through
        if first is not None:
            entry = making.of_folder(first, log_of(loop), roots=[first.parent])
            notes.write(log_of(loop), titled(loop, entry, trial))
        fence.write(log_of(loop), TABLE, f"# {loop.plan.question}\n\n{markdown(loop)}\n")
    except Exception as error:  # hours of runs must not end in a traceback because of a page about them
        loop.arms.tell(f"  the log was not written: {error}")


def titled(loop: Looping, entry: Entry, trial: Trial) -> Entry:
    """What was changed, and what came of it: the loop's question, which a run carries, is that of all proposals; what
    the entry says of its first run alone is not the answer."""
    change = f"{trial.name}: {diff_text(trial.proposal['diff'])} (a change of {trial.parent})"
    answer = worth.of_trial(loop, trial)
    alone = [f"{entry.name or entry.id} alone: {text}" for text in entry.answer]
    return replace(
        entry, title=f"{entry.date} {change}", answer=[answer], notes=[*writeup.outcome(trial), *entry.notes],
        record=replace(entry.record, overview=[*alone, *entry.record.overview]),
        next="the table of the loop says what came next", facts={**entry.facts, "text": answer},
    )  # fmt: skip


# ---- Best and latest


def pointers(loop: Looping, trial: Trial) -> None:
    """Which config is the best, with the evidence; which is the last. Both name runs, never a copy of weights."""
    state, arms = loop.state, loop.arms
    seeds = state.measured(state.best)
    cells = [cell for cell in arms.cells(state.best, seeds) if runs.settled(cell)]
    numbered = [cell for cell in cells if math.isfinite(arms.number(cell).value)]
    best = max(numbered, key=lambda cell: loop.plan.sign * arms.number(cell).value, default=None)
    body: Document = {"config": state.best, "metric": loop.plan.metric, "decides": loop.plan.decides,
                      "protocol": lock.evaluator(loop.plan)["settings"], "seeds": seeds,
                      "settings": arms.settings(state.best)}  # fmt: skip
    if best is not None:
        values = arms.values(cells) * loop.plan.sign
        body |= {"run": best.folder.name, "checkpoint": f"{best.folder.name}@latest", "value": arms.number(best).value,
                 "n": arms.number(best).n, "mean": float(values.mean()), "runs": len(cells)}  # fmt: skip
    write_atomic(own(arms.folder, "best.json"), encode(masks.masked(body), indent=True))
    last = [c.folder.name for c in arms.cells(trial.name, (trial.first or {}).get("seeds", []))]
    row = {"config": trial.name, "k": trial.k, "verdict": trial.verdict, "run": last[-1] if last else None}
    write_atomic(own(arms.folder, "latest.json"), encode(row, indent=True))


def prune(loop: Looping) -> None:
    """Delete checkpoints that are not wanted: `best` keeps those of the best config, `latest` also the last ones."""
    wanted = {loop.state.best, "base"} | (
        {loop.state.trials[-1].name} if loop.plan.save_strategy == "latest" else set()
    )
    if loop.plan.save_strategy == "all" or loop.plan.command:
        return
    for trial in loop.state.trials:
        if trial.name in wanted or trial.stage != "done":
            continue
        for config, seed in loop.state.cells()[trial.name]:
            place = own(loop.arms.folder, f"runs/{config}-s{seed}/checkpoints")
            if place.is_dir():
                shutil.rmtree(place)


# ---- The whole loop


def table(loop: Looping) -> list[list[str]]:
    """A row for each proposal."""
    return [HEAD, *([str(t.k), cut(diff_text(t.proposal["diff"]), NARROW), t.parent, t.proposal["source"], *_looks(t),
                     t.verdict, _scored(t)] for t in loop.state.trials)]  # fmt: skip


def _looks(t: Trial) -> list[str]:
    first = f"{t.first['delta']:+.4g} ({len(t.first['seeds'])})" if t.first else "-"
    d = t.decided
    fresh = f"{d['delta']:+.4g} [{d['low']:+.4g}, {d['high']:+.4g}] ({d['n'][1]})" if d else "-"
    again = f"{t.stands['delta']:+.4g} ({len(t.stands['seeds'])})" if t.stands else "-"
    return [first, fresh, again]


def _scored(t: Trial) -> str:
    row = (t.scored or {}).get("score")
    if not row:
        return "-"
    ends = calibration.span(row["predicted"], row["kind"])
    return "none yet" if ends == "-" else f"{ends}: {row['verdict']}"


def verdict_lines(loop: Looping) -> list[str]:
    """What a reader must know before the table: what is best, how many keeps luck alone would give, what decides."""
    state, plan = loop.state, loop.plan
    if state.noise is None:
        return ["nothing was measured yet"]
    tests, kept = state.tests(), [t for t in state.trials if t.kept]
    chance = keeping.by_chance(tests, plan.proposals, plan.error)
    noise, spread = state.noise, loop.arms.spread()
    lines = [
        worth.sentence(loop),
        f"{plural(len(state.trials), 'proposal')}: {len(kept)} kept, {len(tests)} came to a decision;"
        f" if nothing did anything, {chance:.2g} keeps would be expected by chance at most, {plan.error:g} over"
        " everything that is ever proposed",
        f"noise floor: standard deviation between seeds {number(noise['sd'])} ({noise['n']} runs alike),"
        f" {number(spread.sd)} over all runs ({spread.freedom} degrees of freedom)",
        f"what decides: {deciding.said(plan)}; the evaluator is locked (lock.json)",
    ]  # fmt: skip
    lines += [
        f"refused before anything ran: {len(state.refused)}, the last because {row['why']}"
        for row in state.refused[-1:]
    ]
    lines += [
        f"runs that do not count: {len(state.void)}, the last {row['run']}: {row['why']}" for row in state.void[-1:]
    ]
    lines += [
        f"taken as they stood (--accept): the first {row['rows']} rows of the journal, at {row['time']}"
        for row in state.accepted[-1:]
    ]
    record = calibration.calibration([foresee.of_row(t.scored["score"]) for t in state.trials if t.scored])
    return [*lines, f"predictions: {record.line}"]


def markdown(loop: Looping) -> str:
    head, *body = [[cell.replace("|", "\\|") for cell in row] for row in table(loop)]
    lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body]]
    return "\n".join([*(f"- {line}" for line in verdict_lines(loop)), "", *lines])


def summary(loop: Looping) -> list[str]:
    """For the terminal."""
    return [*rows(table(loop)), *verdict_lines(loop), f"log:    {log_of(loop)}"]


def first_screen(loop: Looping) -> tuple[Lead, list[Section]]:
    """The sentence, the table and what limits it; of a long loop the whole table stands further down."""
    head, *body = table(loop)
    few = [row for t, row in zip(loop.state.trials, body) if t.kept or len(body) - t.k < SHOWN]
    cut_off = len(few) < len(body)
    said = [f"{len(few)} of {len(body)} proposals: what was kept, and the last ones"] if cut_off else []
    lines = [*said, ALL_RUNS, *verdict_lines(loop)[1:]]
    lead = Lead(loop.plan.question, worth.sentence(loop), [page_table(head, few)] if few else [], lines)
    return lead, [Section("All proposals", [], [page_table(head, body)], "", [])] if cut_off else []


def of_loop(loop: Looping) -> list[Path]:
    """The table and the page; what cannot be written is said, and the loop stands without it."""
    folder = loop.arms.folder
    write_atomic(own(folder, "loop.json"), encode(masks.masked(facts(loop)), indent=True))
    write_atomic(own(folder, "loop.md"), masks.mask(f"# {loop.plan.question}\n\n{markdown(loop)}\n").encode())
    if loop.state.noise is None:
        return []
    try:
        here = content.of_folder(folder / "runs", making.known_here)
        lead, every = first_screen(loop)
        page = sections.build(folder / "runs", replace(here, lead=lead, more=every))
        return render.write(page, folder)
    except Exception as error:  # hours of runs must not end in a traceback because of a page about them
        loop.arms.tell(f"the report was not written: {error}")
        return []
