"""Sample Factory's experiments: config.json (cfg.json of version 1) beside the hidden folder .summary/POLICY of events.

Its names are in libraries.py. Two of its settings decide what they mean: `stats_avg`, over how many episodes
returns are averaged, and `value_loss_coeff`, by which the value's loss is multiplied before it is logged.
"""

from __future__ import annotations

from pathlib import Path

from relab.base.documents import Settings
from relab.formats.read import hints, settings_files, tensorboard
from relab.formats.read.source import Listing, Source, start
from relab.record.history import History

SUMMARIES = ".summary"
CONFIGS = ("config.json", "cfg.json")
WINDOW, COEFF = 100, 0.5  # its defaults
DROPPED = ("cli_args.", "experiment")  # how the run was called


def sniff(listing: Listing) -> bool:
    return any(name in listing.files for name in CONFIGS) and bool(_policies(listing.folder))


def _policies(folder: Path) -> list[Path]:
    """The folders of single policies, each with events of its own."""
    place = folder / SUMMARIES
    if place.is_symlink() or not place.is_dir():
        return []
    try:
        folders = sorted(path for path in place.iterdir() if path.name.isdecimal())
    except OSError:
        return []
    return [path for path in folders if tensorboard.event_files(path)]


def sources(listing: Listing) -> list[Source]:
    """A run per policy: a population is trained in one folder."""
    policies = _policies(listing.folder)
    keys = [f"policy{path.name}" if len(policies) > 1 else "" for path in policies]
    return [
        Source("sample_factory", listing.folder, tuple(tensorboard.event_files(path)), key)
        for path, key in zip(policies, keys, strict=True)
    ]


def read(source: Source) -> History:
    history = start(source)
    config = settings_files.beside(history, source, CONFIGS)
    logged = tensorboard.read_into(history, list(source.files), source.files[0].parent)
    _rescale(history, config)
    if isinstance(command := config.get("command_line"), str):
        history.meta["command"] = command
    kept = {key: value for key, value in config.items() if not key.startswith(DROPPED)}
    facts = tensorboard.library_facts(history, source.folder.name)
    settings_files.use(history, source, kept | logged, {k: v for k, v in facts.items() if k not in config})
    return history


def _rescale(history: History, config: Settings) -> None:
    coeff, window = config.get("value_loss_coeff"), config.get("stats_avg", WINDOW)
    if isinstance(coeff, float) and 0 < coeff < 1e100 and coeff != COEFF:
        hints.rename(history, "train/value_loss", "value/loss", 0.5 / coeff)
    if window != WINDOW:
        hints.rename(history, "reward/reward", "return/mean", 1.0)
