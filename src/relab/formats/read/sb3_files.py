"""What do Stable-Baselines3's files besides the progress table say? Episodes, evaluations, hyperparameters.

Model zips and npz files are read with limits on their sizes; pickled values in them are never unpickled.
"""

from __future__ import annotations

import base64
import math
import pickletools
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError
from relab.base.numbers import is_finite
from relab.config.base import ConfigError
from relab.config.yaml_io import parse_yaml
from relab.formats.read import csv_file, table
from relab.formats.read.settings_files import MAX_BYTES, parse_json
from relab.formats.read.source import problem
from relab.formats.read.tb_config import iso
from relab.record.clock import CLOCK
from relab.record.history import History

LONGEST_PICKLE = 1_000  # characters of a setting
MAX_ARRAY = 1 << 26  # bytes
MAX_LENGTH = 1e9  # steps of an episode
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, OSError, RuntimeError, NotImplementedError,
          RecordError, OverflowError, struct.error, SyntaxError, tokenize.TokenError)  # fmt: skip


# ---- Episodes


class Episodes(NamedTuple):
    """The episodes of all parallel environments, by the step at which they ended."""

    steps: np.ndarray  # int64
    reward: np.ndarray
    length: np.ndarray
    success: np.ndarray  # empty where it is unknown
    seconds: np.ndarray  # since its file began; empty where it is unknown


def episodes(history: History, paths: Sequence[Path]) -> Episodes:
    """Environments step together: one that made l steps was left when all had made len(paths) * l."""
    parts = [_monitor(history, path, len(paths)) for path in paths]
    fields = range(len(Episodes._fields))
    columns = [np.concatenate([part[i] for part in parts]) if parts else np.zeros(0) for i in fields]
    order = np.argsort(columns[0], kind="stable")
    steps, *rest = (column[order] if len(column) == len(order) else np.zeros(0) for column in columns)
    return Episodes(steps.astype(np.int64), *rest)


def _monitor(history: History, path: Path, envs: int) -> Episodes:
    """One file: `#{...}`, then r (return), l (length), t (seconds since its own start) and what the user asked for."""
    cells = csv_file.load(path)
    history.problems += cells.problems
    r, length = (table.numbers(cells.cells.get(name, [])) for name in ("r", "l"))
    _, i, j = np.intersect1d(r.at, length.at, return_indices=True)
    good = (length.values[j] >= 0) & (length.values[j] < MAX_LENGTH)  # False for NaN
    i, j = i[good], j[good]
    if len(i) < len(cells.lines):
        problem(history, path, f"{len(cells.lines) - len(i)} episodes have no return or no length and were left out")
    beside = [table.numbers(cells.cells.get(name, [])) for name in ("is_success", "t")]
    whole = [column.values if len(column.at) == len(i) == len(cells.lines) else np.zeros(0) for column in beside]
    return Episodes(np.cumsum(length.values[j]) * envs, r.values[i], length.values[j], *whole)


def by_row(ended: Episodes, logged: np.ndarray, rows: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """return/* of the episodes that ended since the row before: at the logged steps, else at `rows` even ones."""
    last = int(ended.steps[-1])
    edges = np.unique(logged) if len(logged) > 1 else np.unique(np.linspace(0, last, rows + 1).astype(np.int64)[1:])
    edges = edges if last <= edges[-1] else np.append(edges, last)
    at, starts, counts = np.unique(np.searchsorted(edges, ended.steps), return_index=True, return_counts=True)
    parts = [slice(s, s + n) for s, n in zip(starts, counts, strict=True)]
    with np.errstate(all="ignore"):  # a return may be infinite
        values = _reduced(ended, parts)
    values["return/episodes"] = [float(n) for n in counts]
    return {name: (edges[at], np.array(column)) for name, column in values.items()}


def _reduced(ended: Episodes, parts: Sequence[slice]) -> dict[str, list[float]]:
    reduce: dict[str, Any] = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max}
    values = {f"return/{name}": [float(f(ended.reward[p])) for p in parts] for name, f in reduce.items()}
    values["return/length"] = [float(ended.length[p].mean()) for p in parts]
    if len(ended.success):
        values["return/success"] = [float(ended.success[p].mean()) for p in parts]
    if len(ended.seconds):
        values[CLOCK] = [float(ended.seconds[p][-1]) for p in parts]
    return values


def monitor_head(paths: Iterable[Path]) -> tuple[str, str]:
    """The environment's id and when the run began, as the first lines of monitor files say."""
    envs, begins = [], []
    for path in (path for path in paths if path.name.endswith("monitor.csv")):
        with open(path, "rb") as file:
            line = file.readline(1 << 16)
        try:
            head = parse_json(line.lstrip(b"#"), path.name)
        except RecordError:
            continue
        env, begin = head.get("env_id"), head.get("t_start")
        envs += [env] if isinstance(env, str) and env not in ("", "None") else []
        begins += [float(begin)] if is_finite(begin) else []
    return next(iter(envs), ""), iso(min(begins)) if begins else ""


# ---- Evaluations


def evaluations(history: History, path: Path) -> list[Document]:
    """A row per evaluation, with its episodes; EvalCallback plays deterministic actions unless told otherwise."""
    try:
        arrays = read_npz(path, ("timesteps", "results", "ep_lengths", "successes"))
        steps, results, lengths = (arrays[name] for name in ("timesteps", "results", "ep_lengths"))
        if steps.ndim != 1 or results.ndim != 2 or results.shape != lengths.shape or len(steps) != len(results):
            raise ValueError(f"shapes {steps.shape}, {results.shape} and {lengths.shape} do not belong together")
        if steps.dtype.kind not in "iu" or not np.isfinite(lengths).all():
            raise ValueError("steps and lengths must be whole numbers")
    except BROKEN as error:
        problem(history, path, f"cannot be read: {type(error).__name__}: {error}")
        return []
    success = arrays.get("successes", np.zeros(0))
    successes = success if success.shape == results.shape else None
    return [_evaluation(steps, results, lengths, successes, i) for i in range(len(steps)) if steps[i] >= 0]


def _evaluation(
    steps: np.ndarray, results: np.ndarray, lengths: np.ndarray, success: np.ndarray | None, i: int
) -> Document:
    n = results.shape[1]
    played = [
        {"seed": None, "return": float(results[i, k]), "length": int(lengths[i, k]),
         "success": None if success is None else bool(success[i, k]), "end": "unknown"}
        for k in range(n)
    ]  # fmt: skip
    with np.errstate(all="ignore"):  # a return may be infinite
        noise = float(results[i].std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return {"step": int(steps[i]), "axis": "env_steps", "mode": "det", "noise": noise, "episodes": played}


def read_npz(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Numeric arrays of an npz file, within limits and without unpickling; objects are an error."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in names:
            if f"{name}.npy" in archive.namelist():
                arrays[name] = _read_npy(archive, f"{name}.npy")
    return arrays


def _read_npy(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    if archive.getinfo(name).file_size > MAX_ARRAY:
        raise ValueError(f"{name} has more than {MAX_ARRAY} bytes")
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        shape, _, dtype = _header(file, version)
    if dtype.hasobject or dtype.kind not in "biuf" or math.prod(shape) * dtype.itemsize > MAX_ARRAY:
        raise ValueError(f"{name} must be a small array of numbers, but is {dtype} of shape {shape}")
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _header(file: Any, version: tuple[int, int]) -> tuple[tuple[int, ...], bool, np.dtype]:
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


# ---- Hyperparameters

WINDOW = 100  # episodes in ep_rew_mean, unless set otherwise
PUBLIC = re.compile(r"[a-z]\w*")  # no private names
PASSING = ("num_timesteps", "start_time", "verbose", "device", "lr_schedule", "exploration_rate")  # no settings
SCHEDULE = re.compile(r"ConstantSchedule\(val=([-+.\deE]+)\)")


def model(history: History, folder: Path, pattern: str = "*.zip") -> Settings:
    """Hyperparameters from the first model zip whose `data` can be read; the final model before the best."""
    zips = sorted(folder.glob(pattern), key=lambda path: (path.name == "best_model.zip", path.name))
    for path in [p for p in zips if p.is_file() and not p.is_symlink()][:5]:
        try:
            return _facts(parse_json(_member(path, "data"), f"{path.name}: data"))
        except BROKEN as error:
            problem(history, path, f"hyperparameters cannot be read: {type(error).__name__}: {error}")
    return {}


def _member(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(name).file_size > MAX_BYTES:
            raise ValueError(f"{name} has more than {MAX_BYTES} bytes")
        with archive.open(name) as file:
            return file.read(MAX_BYTES)


def _facts(data: Settings) -> Settings:
    """The plain values; of what is pickled only the text beside it is looked at."""
    facts: Settings = {}
    for key, value in data.items():
        value = _schedule(value)
        if PUBLIC.fullmatch(key) and key not in PASSING and not isinstance(value, (dict, list)):
            facts[key] = value
    facts |= {key: value for key, value in (("train_freq", _train_freq(data.get("train_freq"))),
              ("net_arch", _net_arch(data.get("policy_kwargs")))) if value is not None}  # fmt: skip
    facts |= {"total_timesteps": data.get("_total_timesteps"), "window": data.get("_stats_window_size", WINDOW)}
    facts["trained"] = data.get("num_timesteps")
    facts["algo"] = _algo(data)
    batch, rows = facts.get("batch_size"), _product(facts.get("n_envs"), facts.get("n_steps"))
    if facts["algo"] == "ppo" and rows and isinstance(batch, int) and batch > 0:
        facts["minibatches"] = -(-rows // batch)  # exact, however large
    action = _action(data.get("action_space"))
    return facts | ({"spec": {"action": action}} if action else {})


def _train_freq(value: Any) -> int | str | None:
    """Steps between two rounds of updates, or "2 episode". It is stored as a pickle, of which the opcodes are read as
    text: nothing is unpickled, so nothing runs."""
    stored = value.get(":serialized:") if isinstance(value, dict) and "TrainFreq'" in str(value.get(":type:")) else None
    if not isinstance(stored, str) or len(stored) > LONGEST_PICKLE:
        return None
    try:
        parts = [(code.name, operand) for code, operand, _ in pickletools.genops(base64.b64decode(stored))]
    except ValueError:
        return None
    count = next((operand for name, operand in parts if name.startswith("BININT")), None)
    unit = next((operand for _, operand in parts if operand in ("step", "episode")), None)
    return count if unit == "step" else f"{count} {unit}" if unit else None


def _net_arch(kwargs: Any) -> str | None:
    """Layers of the networks, as a user wrote them."""
    layers = kwargs.get("net_arch") if isinstance(kwargs, dict) else None
    return None if layers is None else str(layers)[:LONGEST_PICKLE]


def _product(a: Any, b: Any) -> int:
    return a * b if isinstance(a, int) and isinstance(b, int) else 0


def _schedule(value: Any) -> Any:
    """A constant schedule is its value; a function is told without its address, which differs from run to run."""
    if isinstance(value, dict) and isinstance(value.get("value_schedule"), str):
        match = SCHEDULE.fullmatch(value["value_schedule"])
        text = re.sub(r" at 0x[0-9a-f]+", "", value["value_schedule"])
        return float(match[1]) if match and csv_file.is_number(match[1]) else text
    return value


def _algo(data: Settings) -> str | None:
    marks = {"clip_range": "ppo", "exploration_fraction": "dqn", "target_entropy": "sac", "policy_delay": "td3"}
    marked = next((algo for key, algo in marks.items() if key in data), None)
    return marked or ("a2c" if {"vf_coef", "gae_lambda"} <= set(data) else None)


def _action(space: Any) -> Document:
    """The action space as meta.spec has it, from the text beside the pickled one."""
    if not isinstance(space, dict):
        return {}
    kind = str(space.get(":type:", ""))
    if "Discrete'" in kind and "Multi" not in kind and str(space.get("n", "")).isdecimal():
        return {"kind": "discrete", "dim": 1, "n": [int(space["n"])], "low": [], "high": []}
    shape = space.get("_shape")
    if "Box'" in kind and isinstance(shape, list) and all(isinstance(n, int) for n in shape):
        low, high = (_floats(space.get(end)) for end in ("low", "high"))
        complete = len(low) == len(high) == math.prod(shape)
        bounds = {"low": low, "high": high} if complete else {}
        return {"kind": "continuous", "dim": math.prod(shape), "n": []} | bounds
    return {}


def _floats(text: Any) -> list[float]:
    """[-2. 2.] as numpy prints it; empty where it was shortened."""
    words = str(text).replace("[", " ").replace("]", " ").split()
    return [float(word) for word in words] if all(csv_file.is_number(word) for word in words) else []


# ---- RL-Zoo


def zoo(history: History, folder: Path) -> Settings:
    """Settings of <env>/config.yml and args.yml; Python's tags in them are cut out as text, never followed."""
    settings: Settings = {}
    for name in ("config.yml", "args.yml"):
        for path in sorted(folder.glob(f"*/{name}"))[:1]:
            if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
                continue
            try:
                pairs = _pairs(limits.read_text(path, MAX_BYTES), path.name)
                settings |= {key: value for key, value in pairs.items() if not _is_default(key, value)}
            except (ConfigError, UnicodeDecodeError, RecursionError, OSError) as error:
                problem(history, path, str(error), getattr(error, "line", None))
    return _zoo_facts(settings)


def _pairs(text: str, name: str) -> Settings:
    """An ordered dict as YAML writes it, a list of [key, value] lists, as a dict; other values are left out."""
    plain = re.sub(r"!!python/\S+", "", text)
    top = parse_yaml(f"top:\n{plain}", name).get("top")
    while isinstance(top, list) and len(top) == 1 and isinstance(top[0], list):
        top = top[0]
    pairs = [p for p in top or [] if isinstance(p, list) and len(p) == 2 and isinstance(p[0], str)]
    return {key: value for key, value in pairs if isinstance(value, (bool, int, float, str))}


def _zoo_facts(settings: Settings) -> Settings:
    drop = ("log_folder", "tensorboard_log", "uuid", "verbose", "device", "track", "progress", "log_interval")
    facts = {key: value for key, value in settings.items() if key not in drop and value != ""}
    if "n_timesteps" in facts:
        facts["total_timesteps"] = facts.pop("n_timesteps")
    return facts


def _is_default(key: str, value: Any) -> bool:
    """-1 in args.yml: the budget is that of config.yml, the seed was drawn at random and not written down."""
    return key in ("n_timesteps", "seed") and isinstance(value, (int, float)) and value < 0


def with_model(zoo: Settings, model: Settings) -> Settings:
    """What the model says counts more, but a schedule as it was typed: `lin_0.2` also before there is a model."""
    typed = {key for key, value in zoo.items() if isinstance(value, str) and isinstance(model.get(key), str)}
    return {**zoo, **{key: value for key, value in model.items() if key not in typed}}
