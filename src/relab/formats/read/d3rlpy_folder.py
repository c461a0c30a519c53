"""d3rlpy's folders: params.json, METRIC.csv without a header (epoch,step,value), PARAMETER_grad.csv with one.

A step is a gradient step in `fit` and a step of the environment in `fit_online`, which alone logs `rollout_return` or
`time_environment_step`. Each number is the mean of all updates of its epoch. Traps: the same name means different
things in different algorithms (`critic_loss` of CQL holds the conservative term and may be negative, that of IQL the
value's loss; `alpha` is CQL's weight, no temperature), hence a table per algorithm. EnvironmentEvaluator acts with
`predict`, the mean or best action, with epsilon 0 unless told otherwise. Models (model_N.d3) are not opened.
"""

from __future__ import annotations

import re

import numpy as np

from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, inside
from relab.base.numbers import MAX_STEP
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.formats.read import bare_csv, common, csv_file, settings_files, table
from relab.formats.read.source import Listing, Names, Source, problem, put, set_config, start
from relab.record.history import History

PARAMS = "params.json"
SIGNS = (b'"observation_shape"', b'"action_size"')
GRADIENTS = "_grad.csv"
GRADIENT_HEAD = b"epoch,step,min,max,mean,std"
ONLINE = ("rollout_return", "time_environment_step")
WIDTH = 3  # epoch, step, value

EVERYWHERE: Names = {
    "environment": ("eval/return_det", 1.0),  # what d3rlpy's examples call EnvironmentEvaluator
    "evaluation": ("eval/return_det", 1.0),  # fit_online with eval_env
    "rollout_return": ("return/mean", 1.0),
    "td_loss": ("value/critic_loss", 1.0),  # the temporal difference's part, where a loss has several
}
TEMPERATURE: Names = {"temp": ("optim/temperature", 1.0), "temp_loss": ("optim/temperature_loss", 1.0)}
CRITIC: Names = {"critic_loss": ("value/critic_loss", 1.0)}
ACTOR: Names = {"actor_loss": ("policy/actor_loss", 1.0)}  # minus Q, but for SAC's entropy
DQN: Names = {"loss": ("value/critic_loss", 1.0)}
# type of the config, without `discrete_` -> what its losses are; an algorithm that is not here keeps its own names
LOSSES: dict[str, Names] = {
    **dict.fromkeys(("dqn", "double_dqn", "nfq", "fqe"), DQN),
    **{name: {**CRITIC, **ACTOR} for name in ("td3", "ddpg", "plas", "plas_with_perturbation", "bcq")},
    **dict.fromkeys(("td3_plus_bc", "rebrac", "prdc", "awac", "crr"), CRITIC),  # their actors imitate as well
    "sac": {**CRITIC, **ACTOR, **TEMPERATURE},
    "bear": {**CRITIC, **TEMPERATURE},
    **dict.fromkeys(("cql", "cal_ql"), TEMPERATURE),
    "iql": {"q_loss": ("value/critic_loss", 1.0)},
}
DISCRETE = ("dqn", "double_dqn", "nfq")
KEYS = {"algo": "algo.name", "gamma": "algo.gamma", "learning_rate": "algo.lr", "seed": "seed"}
INNER = re.compile(r"^(?:config\.params|impl\.params)\.")


def sniff(listing: Listing) -> bool:
    """A metric without a header, beside d3rlpy's settings or its gradients."""
    own = all(sign in listing.start_of(PARAMS, 1 << 16) for sign in SIGNS) if PARAMS in listing.files else False
    return bool(_metrics(listing)) and (own or bool(_gradients(listing)))


def _metrics(listing: Listing) -> list[str]:
    names = [name for name in listing.ending(".csv") if not name.endswith(GRADIENTS)]
    return [name for name in names if bare_csv.is_bare(listing.start_of(name, 200), WIDTH)]


def _gradients(listing: Listing) -> list[str]:
    return [name for name in listing.ending(GRADIENTS) if listing.start_of(name, 99).startswith(GRADIENT_HEAD)]


def sources(listing: Listing) -> list[Source]:
    files = [listing.folder / name for name in (*_metrics(listing), *_gradients(listing))]
    return [Source("d3rlpy", listing.folder, tuple(files))]


def read(source: Source) -> History:
    history = start(source)
    params = _params(history, source)
    kind = _kind(params)
    metrics = [path for path in source.files if not path.name.endswith(GRADIENTS)]
    metric_points = {path.stem: bare_csv.read(history, path, WIDTH) for path in metrics}
    axis = "env_steps" if any(name in metric_points for name in ONLINE) else "updates"
    names = names_for(kind, metric_points, axis)
    for name, points in metric_points.items():
        put(history, name, points.steps, points.values, axis, names)
    if axis == "updates":
        _put_updates(history, metric_points)
    for path in source.files:
        if path.name.endswith(GRADIENTS):
            _put_gradients(history, csv_file.load(path), path.name.removesuffix(".csv"), axis)
    _use(history, source, params, kind)
    return history


# ---- Metrics


def names_for(kind: str, metric_points: dict[str, bare_csv.Points], axis: str) -> Names:
    """relab's names for the metrics of one algorithm; what is no loss of `fit` is one of the user's evaluators."""
    names = {**EVERYWHERE, **LOSSES.get(kind, {})}
    if axis == "updates":
        judged = {name: common.meaning(f"eval/{name}") for name in metric_points if name not in names}
        names |= {name: (ours, 1.0) for name, ours in judged.items() if ours == "eval/return_det"}
        if per_row := _per_row(metric_points):
            names["time_algorithm_update"] = ("time/update_s", per_row)
    return names


def _per_row(metric_points: dict[str, bare_csv.Points]) -> float:
    """Updates between two rows, where it is the same number throughout; 0 elsewhere. Times are means of an update."""
    steps = metric_points["time_algorithm_update"].steps if "time_algorithm_update" in metric_points else np.zeros(0)
    gaps = np.unique(np.diff(steps, prepend=0))
    return float(gaps[0]) if len(gaps) == 1 and gaps[0] > 0 else 0.0


def _put_updates(history: History, metric_points: dict[str, bare_csv.Points]) -> None:
    """`fit` makes one update a step, so that its steps are the number of updates so far."""
    longest = max((points.steps for points in metric_points.values()), key=len)
    put(history, "step", longest, longest, "updates", {"step": ("data/updates", 1.0)})


def _put_gradients(history: History, cells: table.Table, name: str, axis: str) -> None:
    """Of each parameter the least, largest and mean gradient and their spread, at the last update of an epoch."""
    history.problems += cells.problems
    step = table.numbers(cells.cells.get("step", []))
    whole = (np.abs(step.values) < MAX_STEP) & (step.values == np.floor(step.values))
    at, steps = step.at[whole], step.values[whole].astype(np.int64)
    for column in ("min", "max", "mean", "std"):
        read = table.numbers(cells.cells.get(column, []))
        _, mine, theirs = np.intersect1d(at, read.at, return_indices=True)
        order, _ = common.in_order(steps[mine])
        put(history, f"{name}_{column}", steps[mine][order], read.values[theirs][order], axis)


# ---- Settings


def _params(history: History, source: Source) -> Settings:
    try:
        path = inside(source.folder, PARAMS)
        return settings_files.read_settings(path) if path.is_file() else {}
    except (RecordError, ConfigError, OSError, RecursionError) as error:
        problem(history, PARAMS, str(error))
        return {}


def _kind(params: Settings) -> str:
    """The algorithm, whatever its actions are like."""
    return _type(params).removeprefix("discrete_")


def _type(params: Settings) -> str:
    """`config.type` of d3rlpy 2, `algorithm` of d3rlpy 1 in the same spelling; empty where neither is there."""
    config = params.get("config")
    said = config.get("type") if isinstance(config, dict) else params.get("algorithm")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", said).lower() if isinstance(said, str) else ""


def _use(history: History, source: Source, params: Settings, kind: str) -> None:
    flat = {INNER.sub("", key): value for key, value in flatten(params).items()}
    if kind:
        flat["algo"] = kind
    beta = _beta(kind, flat)
    flat |= {"beta": beta} if beta else {}
    set_config(history, flat, KEYS | ({"beta": "algo.beta"} if beta else {}))
    settings_files.name_parts(history)
    settings_files.group_by_name(history, source, settings=set(flat) - {"algo"})
    if action := _action(params, kind):
        history.meta.setdefault("spec", {})["action"] = action


def _beta(kind: str, flat: Settings) -> float:
    """The temperature of advantage weights, exp(A / beta); 0 where there is none. IQL sets its inverse."""
    key = {"awac": "lam", "crr": "beta", "iql": "weight_temp"}.get(kind, "")
    value = flat.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1e-100 < value < 1e100:
        return 0.0
    return 1.0 / value if kind == "iql" else float(value)


def _action(params: Settings, kind: str) -> Document:
    """What the size of the action means: choices of a discrete one, components of a continuous one."""
    size = params.get("action_size")
    if not kind or kind == "fqe" or isinstance(size, bool) or not isinstance(size, int) or size < 1:
        return {}
    if kind in DISCRETE or _type(params).startswith("discrete_"):
        return {"kind": "discrete", "dim": 1, "n": [size]}
    return {"kind": "continuous", "dim": size, "n": []}
