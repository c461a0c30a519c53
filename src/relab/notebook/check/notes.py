"""Does a write-up say what the runs did? Finds the runs it quotes, checks its claims, tells settings it leaves out.

Plain text processing: claims come from read.py, the record's answers from claims.py. Nothing is called wrong
that could not be matched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.numbers import is_number
from relab.base.text import plural
from relab.config.views import Change, diff
from relab.health.examine import Report
from relab.health.foreign import plain_key
from relab.health.render import clean, fitted
from relab.health.rules.design import quiet
from relab.health.view import View
from relab.logger import KEYS
from relab.notebook.check import wording
from relab.notebook.check import words as w
from relab.notebook.check.claim import MAX_CLAIMS, Claim
from relab.notebook.check.claims import Checker
from relab.notebook.check.read import Reader
from relab.notebook.check.record import RunRecord, normal
from relab.notebook.check.verdict import Checked

SLUG = "change-not-mentioned"
SHOWN = 4  # contradictions that are printed without -v


@dataclass
class Notes:
    """A write-up held against runs."""

    path: str
    lines: int
    runs: list[str] = field(default_factory=list)  # those that it names
    examined: int = 0
    checked: list[Checked] = field(default_factory=list)
    unsaid: list[Checked] = field(default_factory=list)  # settings that changed, and are not spoken of
    cut: str = ""  # what was not read

    def having(self, status: str) -> list[Checked]:
        return [each for each in self.checked if each.status == status]

    def to_json(self) -> Document:
        counts = {status: len(self.having(status)) for status in ("matched", "contradicted", "unmatched")}
        return {
            "path": self.path, "lines": self.lines, "runs": self.runs, "not_read": self.cut or None, **counts,
            "claims": [each.to_json() for each in self.checked],
            "not_mentioned": [each.to_json() for each in self.unsaid],
        }  # fmt: skip


def check(path: str | Path, report: Report) -> Notes:
    """The claims of a file about the runs of a report."""
    text = wording.read(Path(path))
    records = {run.view.name: RunRecord(run.view) for run in report.runs}
    reader = Reader(records)
    place = home(Path(path), records)
    claims = reader.read(text, place)
    if len(claims) == MAX_CLAIMS:
        text.cut = f"only the first {MAX_CLAIMS:,} claims were checked"
    checker = Checker(records, report.groups)
    notes = Notes(str(path), text.lines, list(reader.quoted), len(records), cut=text.cut)
    notes.checked = fair([checker.check(claim) for claim in claims])
    if not reader.quoted and place is None and not fits_run(notes):
        notes.checked = [weakened(each) for each in notes.checked]
        return notes
    said = [line for line in text.blocks if isinstance(line, wording.Line)]
    for name in subjects(said, reader):
        notes.unsaid += unmentioned(records[name].view, said, reader)
    return notes


def fair(checked: list[Checked]) -> list[Checked]:
    """A peak that is quoted as reached hides nothing where the text tells the end as well."""
    ends = {(each.claim.run, column) for each in checked if each.status == "matched" and each.claim.role == "last"
            for column in each.claim.names.columns}  # fmt: skip
    return [_as_peak(each) if each.slug == "peak-as-result" and each.claim.role == "result"
            and any((each.claim.run, column) in ends for column in each.claim.names.columns) else each
            for each in checked]  # fmt: skip


def _as_peak(each: Checked) -> Checked:
    return Checked(each.claim, "matched", f"{each.says}, as the text says")


def fits_run(notes: Notes) -> bool:
    """Whether a text that names no run is about the one it was given with: most of its long numbers stand there."""
    exact = [each for each in notes.having("matched") if any(n.digits >= 3 for n in each.claim.numbers)]
    return len(exact) >= 3 and len(exact) > 2 * len(notes.having("contradicted"))


def weakened(each: Checked) -> Checked:
    """Not contradicted: which run is meant was a guess."""
    if each.status != "contradicted":
        return each
    return Checked(each.claim, says=f"no run is named; in this one {each.says}")


def home(path: Path, records: Mapping[str, RunRecord]) -> str | None:
    """The run in whose folder the write-up lies."""
    above = path.resolve().parents
    inside = [name for name, record in records.items() if record.view.history.folder.resolve() in above]
    return inside[0] if len(inside) == 1 else None


def subjects(lines: list[wording.Line], reader: Reader) -> list[str]:
    """The runs that a text is about: named in a heading or in its first line, or the only one; not those in passing."""
    if reader.only:
        return [reader.only]
    titles = [line for line in lines if line.heading] + lines[:1]
    return list(dict.fromkeys(run for line in titles for run in reader.mentioned(line.raw)))


# ---- Settings that changed, and are not spoken of


def unmentioned(view: View, lines: list[wording.Line], reader: Reader) -> list[Checked]:
    """Settings that differ from the parent's where no line tells it: none names the key with its old value, or with a
    word for a change in that direction."""
    if view.reference is None or not view.is_parent:
        return []
    unsaid = []
    named = next((line.number for line in lines if view.name in reader.mentioned(line.raw)), 1)
    for change in diff(view.reference.history.config, view.history.config):
        if quiet(change):
            continue
        about = [line for line in lines if _names(line.text, change.key)]
        if about and not any(_leaves(line.text, change) for line in about):
            continue  # named in some other way: not to be judged
        if not any(_tells(line.text, change) for line in about) and not any(
            _hints(line.text, change) for line in lines
        ):
            unsaid.append(_not_mentioned(change, about, view, named))
    return unsaid


def _not_mentioned(change: Change, about: list[wording.Line], view: View, line: int) -> Checked:
    parent, key = view.reference.name if view.reference else "", plain_key(change.key)
    difference = f"{key} is {change.b}, was {change.a} in {parent}"
    if about:
        claim = Claim(about[0].number, about[0].raw.strip()[:100], "mention", view.name, key)
        return Checked(claim, "not mentioned", f"{difference}; the text names it, but not this change", SLUG)
    claim = Claim(line, view.name, "mention", view.name, key)
    return Checked(claim, "not mentioned", f"{difference}; the text never names it", SLUG)


def _names(text: str, key: str) -> bool:
    """Whether a line names a setting, by any of its names."""
    own = plain_key(key)
    words = {own, own.rpartition(".")[2], *(word for word, ours in KEYS.items() if ours == key)}
    spoken = "_" + "_".join(re.findall(r"[a-z0-9]+", text.lower())) + "_"
    return any(f"_{normal(word)}_" in spoken for word in words)


def _tells(text: str, change: Change) -> bool:
    """Whether a line that names the key tells the change: the old value, the new one as it is, or a word for it."""
    a, b = change.a, change.b
    if not (is_number(a) and is_number(b)):
        return True  # a word for a word
    shown = wording.numbers(text)
    if any(_shows(n, a) or (_shows(n, b) and not _left(text, n)) for n in shown):
        return True
    up, down = bool(w.UP.search(text)), bool(w.DOWN.search(text))
    return up != down and (up if b > a else down)


def _leaves(text: str, change: Change) -> bool:
    """`ent_coef: 0.12 → 0.10` leaves 0.12: that it had come from 0.01 is not told by it."""
    return is_number(change.b) and any(_shows(n, change.b) and _left(text, n) for n in wording.numbers(text))


def _shows(n: wording.Number, value: Any) -> bool:
    return is_number(value) and abs(n.value - value) < n.unit / 2


def _left(text: str, n: wording.Number) -> bool:
    return bool(re.match(r"[\s`]*(→|to\b|到)", text[n.end : n.end + 8]))


def _hints(text: str, change: Change) -> bool:
    """Other ways to tell it: a word by its new value (`fresh`), a budget (`20.9M steps`), `ent=0.02`."""
    b = change.b
    if isinstance(b, str):
        return len(b) > 2 and b.lower() in text.lower()
    if not is_number(b):
        return False
    shown = wording.numbers(text)
    if change.key == "total_steps":
        return "step" in text.lower() and any(abs(n.value - b) <= 0.1 * b for n in shown)
    shown = [n for n in shown if _shows(n, b) and not _left(text, n)]
    start = re.escape(re.split(r"[_.]", plain_key(change.key).rpartition(".")[2])[0].lower())
    return any(re.search(rf"{start}[a-z]{{0,8}}[ =:]{{1,2}}$", text[: n.start].lower()) for n in shown)


# ---- Told in a terminal


def text(notes: Notes, verbose: bool = False) -> str:
    """The counts, then what is contradicted; all claims with -v."""
    wrong = notes.having("contradicted") + notes.unsaid
    lines = [head(notes)]
    for each in wrong if verbose else wrong[:SHOWN]:
        lines += [f'  line {each.claim.line}: "{each.claim.quote}"', f"    {each.slug}: {brief(each)}"]
    more = len(wrong) - SHOWN
    lines += [f"  and {more} more (-v)"] if more > 0 and not verbose else []
    if verbose:
        lines += [listed(each) for each in notes.checked if each.status != "contradicted"]
    return "\n".join([clean(lines[0]), *(part for line in lines[1:] for part in fitted(clean(line)))])


def head(notes: Notes) -> str:
    n = {status: len(notes.having(status)) for status in ("matched", "contradicted", "unmatched")}
    runs = f"names {len(notes.runs)} of {notes.examined}" if notes.runs else f"names none of {notes.examined}"
    parts = [
        f"{Path(notes.path).name} {runs} run{'s' * (notes.examined != 1)}, {sum(n.values())} claims",
        f"{n['matched']} matched, {n['contradicted']} contradicted, {n['unmatched']} not matched (not wrong)",
    ]
    parts += [f"{plural(len(notes.unsaid), 'changed setting')} not mentioned"] if notes.unsaid else []
    parts += [notes.cut] if notes.cut else []
    return parts[0] + ": " + "; ".join(parts[1:])


def brief(each: Checked) -> str:
    """Names as the tool has them."""
    return each.says.replace("foreign/", "")


def listed(each: Checked) -> str:
    says = brief(each)
    status = "matched" if each.status == "matched" else "not matched"
    return f'  line {each.claim.line}: {status}: "{each.claim.quote}"{": " if says else ""}{says}'
