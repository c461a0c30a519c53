"""May the runs of a loop begin with these weights? A best checkpoint is evaluated afresh first, and its ledger kept.

loops/NAME/trust.json    what speaks for the checkpoint (relab.advise.trust); one with a gap is refused with the reason

The original log's best checkpoint was chosen by a success rate of 1,715.8, which no rate can be; whoever went on
from it knew that it could not be relied on, and had nothing to go by.
"""

from __future__ import annotations

from pathlib import Path

from relab.advise import trust
from relab.base.documents import Settings
from relab.base.enclosed import own, subfolder
from relab.base.interrupts import Interrupted
from relab.base.jsonl import encode, read_json, write_atomic
from relab.base.processes import PYTHON
from relab.lab.execute import local
from relab.lab.loop import lock
from relab.lab.loop.deciding import FOLDER, JUDGE
from relab.lab.loop.plan import Loop
from relab.lab.loop.policy import refuse

FILE = "trust.json"


def check(plan: Loop, folder: Path, settings: Settings, trusted_code: bool) -> None:
    """Nothing to do for fresh weights, a named step, or a ledger that was closed before."""
    word = str(settings.get("start_from") or "")
    if not word.endswith("@best") or (folder / FILE).is_file():
        return
    from relab.train.weights import locate

    run, _ = locate(word, Path("runs"))
    book = trust.ledger(run, settings, evaluated(plan, folder, run, trusted_code))
    why = book.refusal(strict=True)
    refuse(not why, f"`resume_from` is {word}, but {why}")
    write_atomic(own(folder, FILE), encode(book.to_dict(), indent=True))


def evaluated(plan: Loop, folder: Path, run: Path, trusted_code: bool) -> dict[str, object]:
    """The best checkpoint on the loop's hidden episodes, which nothing was chosen on."""
    out = own(subfolder(folder, FOLDER), "start.json")
    rows = [{"folder": str(run), "checkpoint": "best", "out": str(out)}]
    tasks = own(folder, f"{FOLDER}/.start.json")
    body = {"seed": lock.hidden_seed(plan), "episodes": plan.hidden, "trust": trusted_code, "runs": rows}
    write_atomic(tasks, encode(body))
    words = [*PYTHON, "-m", JUDGE, str(tasks)]
    done = local.run([local.Job("judge-start", lambda: words, out.is_file, folder / FOLDER / "log")], 1)
    if done.interrupted:
        raise Interrupted
    return read_json(folder, f"{FOLDER}/start.json") if out.is_file() else {}
