"""What may somebody outside drop into a loop, and what waits there? As `relab loop --check` says it.

A loop runs its own proposals as soon as they have passed its checks, so that none of them waits to be approved. A
change that a person drops into its folder is checked here, taken before the loop's next proposal, and checked once
more then. Nothing of a program or its evaluator is opened or run, and no code is imported that a file of the
loop names: only who calls the loop trusts it. Plain data in, plain data out: other processes ask.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from relab.advise.proposal import FILE, diff_text
from relab.base import blame, limits
from relab.base.documents import Document
from relab.base.enclosed import RecordError, own
from relab.base.errors import UserError, refusal
from relab.base.jsonl import write_atomic
from relab.base.text import number
from relab.config import layers
from relab.config.base import require
from relab.config.coerce import scalar
from relab.config.registry import UntrustedError
from relab.lab import loop
from relab.lab.loop import dropped
from relab.lab.loop.drive import Looping
from relab.lab.sweep.axis import Axis
from relab.runs.naming import shown

OWN_CODE = ("Its settings name code of its own, which looking at it does not run: a change is checked when the loop is"
            " called, and is dropped by hand (docs/loop.md).")  # fmt: skip


def standing(root: str, folders: Sequence[Path]) -> list[Document]:
    """How far each loop is, what may change in it, and what waits to be taken; one that is broken says why."""
    made = []
    for folder in folders:
        name = Path(os.path.relpath(folder, root)).as_posix()
        try:
            made.append({"name": name, "problem": ""} | _standing(folder))
        except Exception as error:  # whatever a stranger's journal holds, the other loops are still shown
            made.append({"name": name, "problem": blame.reason(error)})
    return made


def _standing(folder: Path) -> Document:
    looping = loop.glance(folder)
    state, settings = looping.state, looping.arms.settings(looping.state.best)
    waits, why, unchecked = _waiting(looping)
    keys = [{"key": each.key, "now": shown(settings.get(each.key)), "span": span(each),
             "to": shown(waits[each.key] if each.key in waits else settings.get(each.key))}
            for each in looping.plan.policy.allow]  # fmt: skip
    return {
        "question": looping.plan.question, "running": loop.running(folder), "doing": looping.doing, "best": state.best,
        "made": len(state.trials), "kept": sum(trial.kept for trial in state.trials), "may_change": keys,
        "waits": bool(waits or why or unchecked), "why_not": why, "file": FILE,
        "unchecked": OWN_CODE if unchecked or looping.arms.trust else "",
    }  # fmt: skip


def _waiting(looping: Looping) -> tuple[dict[str, object], str, bool]:
    """What was dropped and not taken yet: key -> its value; why it would be refused; whether only the loop can tell."""
    path = dropped.waiting(looping.arms.folder)
    if path is None:
        return {}, "", False
    try:
        dropped.check_file(path)
        return {key: each["to"] for key, each in looping.proposer.from_file(path).change.items()}, "", False
    except UntrustedError:
        return {}, "", True
    except (UserError, OSError) as error:  # it cannot be read, or was taken meanwhile
        return {}, refusal(error) if isinstance(error, OSError) else str(error), False


def span(each: Axis) -> str:
    if each.values:
        return ", ".join(shown(value) for value in each.values)
    return f"{number(each.low)} to {number(each.high)}"


def drop(root: str, folder: Path, values: Mapping[str, str], rationale: str) -> Document:
    """Put a change of the best config into the loop's folder, if the loop would run it."""
    with _as_written(folder):
        looping = loop.glance(folder)
        require(not looping.arms.trust, "its code is the loop's own: drop the file by hand (docs/loop.md)")
        best = looping.state.best
        settings = looping.arms.settings(best)
        allowed = looping.plan.policy.axes
        unknown = [key for key in values if key not in allowed]
        require(not unknown, f"the loop may not change {unknown[:1]}")
        wanted = {key: scalar(text.strip()) for key, text in values.items() if text.strip() != shown(settings.get(key))}
        change = {key: value for key, value in wanted.items() if value != settings.get(key)}
        require(bool(change), f"every value is that of {best}, the best config: change one")
        body = {"parent": best, "set": change, **({"rationale": rationale.strip()} if rationale.strip() else {})}
        data = layers.format_yaml(body).encode()
        with TemporaryDirectory() as place:  # as the loop will: nothing is dropped that it would refuse
            tried = Path(place) / FILE
            tried.write_bytes(data)
            idea = looping.proposer.from_file(tried)
    path = own(folder, FILE)
    if dropped.waiting(folder) is not None:
        dropped.check_file(path)
    before = _now(path)
    write_atomic(path, data)
    when = "before its next proposal" if loop.running(folder) else "first when the loop is called again"
    name = Path(os.path.relpath(folder, root)).as_posix()
    return _done(f"{name}: {diff_text(idea.change)} waits in {FILE}, taken {when}", path, before, data)


def withdraw(root: str, folder: Path) -> Document:
    """Take away what waits."""
    path = own(folder, FILE)
    if dropped.waiting(folder) is not None:
        dropped.check_file(path)
    before = _now(path)
    require(before is not None, "nothing waits any more: the loop has taken it")
    path.unlink()
    return _done(f"{Path(os.path.relpath(folder, root)).as_posix()}: {FILE} no longer waits", path, before, None)


@contextlib.contextmanager
def _as_written(folder: Path) -> Iterator[None]:
    """Inside, what lacks in a loop's files or has another shape is an error in words: relab did not write them so."""
    try:
        yield
    except UserError:  # some are errors of values or keys as well
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(f"the journal or the variants in {folder} are not as a loop writes them ({error!r:.120}): put"
                          " them back, or begin another loop with --name") from error  # fmt: skip


def _done(text: str, path: Path, before: bytes | None, after: bytes | None) -> Document:
    """What became of the file, and what taking that back needs."""
    return {"text": text, "path": path, "before": before, "after": after}


def _now(path: Path) -> bytes | None:
    return limits.read_bytes(path, limits.TEXT) if path.is_file() else None
