"""Folders of a loop that writes its own next config: run.json names the parent, config_diff.json what changed.

A run has run.json and config.json, and what it came to: override.json (what was asked for), summary.json,
trainer_summary.json, notes.txt, train.log (PufferLib's dashboard). best.json may lie in the folder above.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.jsonl import RecordError
from relab.base.numbers import is_number
from relab.config.lineage import FromTo
from relab.config.views import flatten
from relab.formats.read import pufferlib, settings_files
from relab.formats.read.find import look
from relab.formats.read.source import Listing, Names, Source, problem, put, start
from relab.logger import known_settings
from relab.record import glossary
from relab.record.history import History

DEEP = True
NEEDED = ("run.json", "config.json")
SIGNS = ("override.json", "config_diff.json", "trainer_summary.json")
FILES = (*NEEDED, *SIGNS, "summary.json", "notes.txt", "train.log")
BEST = "best.json"
MAX_NOTES = 20_000
STARTS_FROM = ("load_model_path", "resume_path", "init_from")  # weights a run begins with: a place, not a setting
NAMES: Names = {  # mean_reward is left out: loops call scores by that name
    "summary/success_rate": ("return/success", 1),
    "summary/episode_length": ("return/length", 1),
    "summary/sps": ("time/sps", 1),
}


def sniff(listing: Listing) -> bool:
    return _is_run(listing) or (BEST in listing.files and any(_is_run(below) for below in _below(listing)))


def _is_run(listing: Listing) -> bool:
    return listing.has(*NEEDED) and any(sign in listing.files for sign in SIGNS)


def _below(listing: Listing) -> list[Listing]:
    return [look(listing.folder / name) for name in listing.folders]


def sources(listing: Listing) -> list[Source]:
    """This folder's run, or those of a folder above that keeps the best of them."""
    if _is_run(listing):
        return [_source(listing, ())]
    runs = [below for below in _below(listing) if _is_run(below)]
    named = [run for run in runs if run.folder.name == _best_run(listing.folder / BEST)]
    owner = (named or runs)[-1]  # the run that it names; else the newest, which left it as it is
    return [_source(run, (listing.folder / BEST,) if run is owner else ()) for run in runs]


def _best_run(path: Path) -> Any:
    try:
        return settings_files.read_settings(path).get("run_id")
    except (RecordError, OSError):
        return None


def _source(listing: Listing, more: tuple[Path, ...]) -> Source:
    own = tuple(listing.folder / name for name in FILES if name in listing.files)
    return Source("loop", listing.folder, own + more)


def read(source: Source) -> History:
    history, files = start(source), {path.name: path for path in source.files}
    flat = flatten(_json(history, files.get("config.json")))
    if "train.log" in files:
        pufferlib.read_log(history, files["train.log"], flat)
    _results(history, _json(history, files.get("trainer_summary.json")), _json(history, files.get("summary.json")))
    overrides = {k: v for k, v in flatten(_json(history, files.get("override.json"))).items() if v != {}}
    if overrides:
        history.meta["intent"] = intent(overrides, known_settings(flat))
        history.meta["override"] = overrides
    begins = {key: value for key, value in flat.items() if key.rpartition(".")[2] in STARTS_FROM}
    history.meta |= {"resumed": begins} if any(begins.values()) else {}
    settings_files.use(history, source, {key: value for key, value in flat.items() if key not in begins})
    _facts(history, files)
    return history


def intent(overrides: Mapping[str, Any], ours: Mapping[str, str]) -> str:
    """What a run was meant to change, in the tool's words and in relab's.

    >>> intent({"train.clip_coef": 0.12}, {"train.clip_coef": "algo.clip"})
    'asked for train.clip_coef (algo.clip) 0.12'
    """
    parts = [f"{key} ({ours[key]}) {value}" if key in ours else f"{key} {value}" for key, value in overrides.items()]
    return "asked for " + ", ".join(parts)


def _json(history: History, path: Path | None) -> Document:
    """A JSON object of the run; empty where the file is missing, with a problem where it is broken."""
    if path is None:
        return {}
    try:
        return settings_files.read_settings(path)
    except (RecordError, OSError) as error:
        problem(history, path, str(error))
        return {}


def _facts(history: History, files: Mapping[str, Path]) -> None:
    about = _json(history, files.get("run.json"))
    more = about.get("metadata")
    more = more if isinstance(more, dict) else {}
    facts = {"id": about.get("run_id"), "created": about.get("created_at"), "parent": more.get("parent_run")}
    history.meta |= {key: value for key, value in facts.items() if isinstance(value, str) and value}
    changed = _json(history, files.get("config_diff.json"))
    history.meta |= {"changed": changes(changed)} if changed else {}
    if best := _json(history, files.get(BEST)):
        history.meta["best"] = evidence(best)
    if "notes.txt" in files:
        with open(files["notes.txt"], encoding="utf-8", errors="replace") as file:
            history.meta["notes"] = file.read(MAX_NOTES)
    if "summary.json" not in files:
        problem(history, "summary.json", "there is no summary.json: the run left no result")


def changes(difference: Mapping[str, Any], prefix: str = "") -> dict[str, FromTo]:
    """A nested difference as flat keys.

    >>> changes({"train": {"ent_coef": {"old": 0.01, "new": 0.12}}})
    {'train.ent_coef': {'from': 0.01, 'to': 0.12}}
    """
    flat: dict[str, FromTo] = {}
    for key, value in difference.items():
        if isinstance(value, dict) and set(value) == {"old", "new"}:
            flat[prefix + key] = {"from": value["old"], "to": value["new"]}
        elif isinstance(value, dict):
            flat |= changes(value, f"{prefix}{key}.")
    return flat


def evidence(best: Mapping[str, Any]) -> Document:
    """best.json in relab's words: the metric is the first number in it; on how many episodes it stands is not known."""
    metric = next((k for k, v in best.items() if is_number(v)), "")
    return {**best, "metric": f"summary/{metric}", "value": best.get(metric), "n": None, "step": None}


def _results(history: History, trainer: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """The numbers of the summaries, one point each."""
    inner = trainer.get("metrics")
    metrics = inner if isinstance(inner, dict) else {k: v for k, v in summary.items() if k != "seed"}
    step = metrics.get("agent_steps")
    at = step if isinstance(step, int) else _last_step(history)
    for name, value in metrics.items():
        if is_number(value) and name in glossary.METRICS:  # as `relab convert --to loop` writes relab's own metrics
            put(history, name, [at], [value], "agent_steps", {name: (name, 1)})
        elif is_number(value):
            put(history, f"summary/{name}", [at], [value], "agent_steps", NAMES)
    if trainer or summary:
        history.meta["status"] = "finished"
    history.meta |= {"ended": trainer["timestamp"]} if isinstance(trainer.get("timestamp"), str) else {}


def _last_step(history: History) -> int:
    return max((int(column.steps.max()) for column in history.columns.values() if len(column.steps)), default=0)
