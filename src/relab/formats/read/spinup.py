"""Spinning Up's folders: progress.txt, tabs below a header, and config.json; pickles and models are not opened.

Traps: the value's loss has no factor 1/2; `KL` is the mean of minus the log-ratio; `LossPi` is the surrogate in PPO,
TRPO and VPG, but minus Q in SAC, TD3 and DDPG; `TotalEnvInteracts` is the step, `Epoch` counts from 0 or 1. Nothing
names the algorithm or the environment: the columns tell the one, config.json may hold a function's address for the
other.
"""

from __future__ import annotations

from typing import Any

from relab.base.documents import Settings
from relab.formats.read import csv_file, settings_files, table
from relab.formats.read.source import Listing, Names, Source, name_table, start
from relab.record.history import History

FILE = "progress.txt"
SIGN = b"TotalEnvInteracts"
HEAD_BYTES = 1 << 14
NAMES: Names = name_table("""
return/mean       | AverageEpRet
return/std        | StdEpRet
return/min        | MinEpRet
return/max        | MaxEpRet
return/length     | EpLen
eval/return_det   | AverageTestEpRet
eval/std_det      | StdTestEpRet
eval/length_det   | TestEpLen
policy/loss       | LossPi
value/loss * 0.5  | LossV
value/critic_loss | LossQ
policy/entropy    | Entropy
policy/kl_k1      | KL
policy/clip_share | ClipFrac
value/mean        | AverageVVals
value/q_mean      | AverageQ1Vals, AverageQVals
time/elapsed_s    | Time
""")
OFF_POLICY: Names = {"LossPi": ("policy/actor_loss", 1.0)}
# the algorithm and the columns that only it has, the first that fits
TELLS = (
    ("ppo", {"LossPi", "ClipFrac"}),
    ("trpo", {"BacktrackIters"}),
    ("sac", {"AverageLogPi"}),
    ("td3", {"LossQ", "AverageQ1Vals"}),
    ("ddpg", {"LossQ", "AverageQVals"}),
    ("vpg", {"LossPi", "LossV"}),
)
ADDRESS = " at 0x"  # of an object in the memory of the process that wrote it
DROPPED = ("logger.", "logger_kwargs.")


def sniff(listing: Listing) -> bool:
    begin = listing.start_of(FILE, HEAD_BYTES).split(b"\n")[0] if FILE in listing.files else b""
    return SIGN in begin and b"\t" in begin


def sources(listing: Listing) -> list[Source]:
    return [Source("spinup", listing.folder, (listing.folder / FILE,))]


def read(source: Source) -> History:
    history = start(source)
    cells = csv_file.load(source.files[0])
    algo = next((algo for algo, there in TELLS if there <= set(cells.names)), "")
    off_policy = algo in ("sac", "td3", "ddpg")
    table.fill(history, cells, {**NAMES, **(OFF_POLICY if off_policy else {})})
    settings_files.use(history, source, _settings(history, source), {"algo": algo} if algo else {})
    return history


def _settings(history: History, source: Source) -> Settings:
    """config.json without what differs from process to process, and with what follows from it."""
    flat = {key: value for key, value in settings_files.beside(history, source).items() if _is_setting(key, value)}
    steps, epochs, polyak = (flat.get(key) for key in ("steps_per_epoch", "epochs", "polyak"))
    if isinstance(steps, int) and isinstance(epochs, int):
        flat["total_steps"] = steps * epochs
    if isinstance(polyak, float) and 0 < polyak < 1:
        flat["tau"] = 1 - polyak  # what others call the share that the target network takes
    return flat


def _is_setting(key: str, value: Any) -> bool:
    return not key.startswith(DROPPED) and ADDRESS not in key and ADDRESS not in str(value)
