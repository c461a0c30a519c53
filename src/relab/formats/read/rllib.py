"""RLlib and Ray Tune trial folders: result.json (JSON lines, old and new API stack) and params.json; nothing pickled.

Traps: `vf_loss` is cut off at `vf_clip_param` row by row, so that only the unclipped loss says how wrong the critic is;
the old stack's episode means are over the last hundred episodes, the new one's over those of the iteration; rows
between two evaluations repeat the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from relab import logger
from relab.base.documents import Settings
from relab.base.jsonl import RecordError
from relab.config.views import flatten
from relab.formats.read import jsonl_file, settings_files, table, tabular
from relab.formats.read.settings_files import MAX_BYTES, parse_json
from relab.formats.read.source import FOREIGN, Listing, Names, Source, name_table, problem, set_config, start
from relab.record.history import History

DEEP = True
MARKS = (b'"training_iteration"', b'"trial_id"')
HEAD_BYTES = 1 << 19  # every line repeats the config
DROP = ("config", "pid", "timestamp", "done", "hostname", "node_ip", "date", "trial_id", "iterations_since_restore")

TOP: Names = name_table("""
time/sps        | num_env_steps_sampled_throughput_per_sec
time/sps        | env_runners/num_env_steps_sampled_lifetime_throughput/throughput_since_last_reduce
time/elapsed_s  | time_total_s
data/iteration  | training_iteration
return/episodes | env_runners/num_episodes, episodes_this_iter
data/episodes   | env_runners/num_episodes_lifetime, episodes_total
""")
# Of the iteration in the new stack; over a hundred episodes in the old one.
NEW_RETURNS: Names = name_table("""
return/mean   | env_runners/episode_return_mean
return/min    | env_runners/episode_return_min
return/max    | env_runners/episode_return_max
return/length | env_runners/episode_len_mean
""")
OLD_RETURNS: Names = {
    "env_runners/episode_reward_mean": ("return/mean_100", 1.0),
    "episode_reward_mean": ("return/mean_100", 1.0),
    **{f"{group}episode_{what}": (f"{FOREIGN}{group}episode_{what}", 1.0)
       for group in ("env_runners/", "") for what in ("len_mean", "reward_min", "reward_max", "return_mean",
                                                      "return_min", "return_max")},
}  # fmt: skip
# Below learners/POLICY/ (new) or info/learner/POLICY/learner_stats/ (old).
LEARNER: Names = name_table("""
policy/loss              | policy_loss
policy/entropy           | entropy
policy/kl                | mean_kl_loss, kl
value/loss * 0.5         | vf_loss_unclipped
value/explained_variance | vf_explained_var
optim/lr                 | cur_lr, default_optimizer_learning_rate
optim/ent_coef           | entropy_coeff, curr_entropy_coeff
optim/grad_norm          | grad_gnorm, gradients_default_optimizer_global_norm
value/critic_loss        | qf_loss, critic_loss
policy/actor_loss        | actor_loss
optim/temperature        | alpha_value
optim/temperature_loss   | alpha_loss
value/q_mean             | qf_mean, mean_q
foreign/vf_loss          | vf_loss
""")
POLICY = re.compile(r"(?:learners/([^/]+)/|info/learner/([^/]+)/(?:learner_stats/)?)([^/]+)")
EVALUATION = re.compile(r"evaluation/(?:env_runners/|sampler_results/)?episode_(?:return|reward)_mean")
FILLED = re.compile(r"(?:^|/)(?:episode|policy_reward|num_\w*parameters)[^/]*$")  # NaN where there was nothing to count
KEYS = {
    **{"lr": "algo.lr", "gamma": "algo.gamma", "lambda": "algo.lam", "clip_param": "algo.clip", "seed": "seed"},
    **{"entropy_coeff": "algo.ent_coef", "vf_loss_coeff": "algo.value_coef", "grad_clip": "algo.max_grad_norm"},
    **{"num_epochs": "algo.epochs", "num_sgd_iter": "algo.epochs", "env": "env.name", "algo": "algo.name"},
    "minibatches": "algo.minibatches",
}


def sniff(listing: Listing) -> bool:
    if "result.json" not in listing.files:
        return False
    begin = listing.start_of("result.json", HEAD_BYTES)
    return all(mark in begin for mark in MARKS)


def sources(listing: Listing) -> list[Source]:
    return [Source("rllib", listing.folder, (listing.folder / "result.json",))]


def read(source: Source) -> History:
    history = start(source)
    config = _config(history, source)
    cells = _fresh(tabular.load(source.files[0], parse), config.get("evaluation_interval"))
    table.fill(history, cells, names_for(cells.names, config))
    if list(cells.cells.get("done", [None])[-1:]) == [True]:
        history.meta["status"] = "finished"
    _use(history, source, config)
    return history


def parse(data: bytes | Iterable[bytes], file: str) -> table.Table:
    """Like any file of JSON lines, without the config that every line repeats, and without what is no number."""
    return jsonl_file.parse(data, file, drop=("config",))


def _fresh(cells: table.Table, interval: Any) -> table.Table:
    """Evaluations only in the rows in which there was one; NaN of episodes is "none ended", not a number gone wrong."""
    rounds = cells.cells.get("training_iteration", [])
    rare = isinstance(interval, int) and interval > 1
    fresh = [not rare or (isinstance(i, (int, float)) and i % interval == 0) for i in rounds]
    columns = {}
    for name, column in cells.cells.items():
        if name.startswith("evaluation/") and fresh:
            column = [cell if new else None for cell, new in zip(column, fresh, strict=True)]
        if FILLED.search(name):
            column = [None if cell != cell else cell for cell in column]  # only NaN differs from itself
        columns[name] = column
    return table.Table(cells.file, columns, cells.lines, cells.problems)


def names_for(names: list[str], config: Settings) -> Names:
    """relab's names for those of this run: which policy learns, which stack wrote it, how it was evaluated."""
    policies = {policy for name in names if (policy := _policy(name)[0])}
    old = any(name.startswith("info/learner/") for name in names) or "episode_reward_mean" in names
    translated: dict[str, tuple[str, float]] = {**TOP, **(OLD_RETURNS if old else NEW_RETURNS)}
    for name in names:
        policy, metric = _policy(name)
        if policy and metric in LEARNER and len(policies) == 1:
            ours, factor = LEARNER[metric]
            translated[name] = (FOREIGN + name if ours.startswith(FOREIGN) else ours, factor)
        elif policy:  # several policies have one glossary name between them: all stay foreign
            translated[name] = (FOREIGN + name, 1.0)
        elif EVALUATION.fullmatch(name):
            translated[name] = (f"eval/return_{_mode(config)}", 1.0)
        elif name in DROP or ("/" in name and name not in translated):  # names without a group may be a Trainable's own
            translated[name] = (FOREIGN + name, 1.0)
    return translated


def _policy(name: str) -> tuple[str, str]:
    match = POLICY.fullmatch(name)
    policy = (match[1] or match[2]) if match else ""
    return (policy, match[3]) if match and policy != "__all_modules__" else ("", "")


def _mode(config: Settings) -> str:
    """RLlib evaluates with exploration unless the config turns it off."""
    return "det" if config.get("evaluation_config.explore") is False else "sampled"


def _config(history: History, source: Source) -> Settings:
    """params.json, flat; else the config in the first line of result.json."""
    path = source.folder / "params.json"
    try:
        if path.is_file() and not path.is_symlink():
            return flatten(settings_files.read_settings(path))
        return _first_config(source.files[0])
    except (RecordError, OSError, RecursionError) as error:
        problem(history, path, str(error))
        return {}


def _first_config(path: Path) -> Settings:
    with open(path, "rb") as file:
        line = file.readline(MAX_BYTES)
    config = parse_json(line, path.name).get("config")
    return flatten(config) if isinstance(config, dict) else {}


def _use(history: History, source: Source, config: Settings) -> None:
    said = {k: v for k, v in config.items() if v not in (None, -1, {}, []) and not k.startswith("_")}
    said = {k: v for k, v in said.items() if not logger.is_place(k)}
    batch, part = _batch(config), said.get("minibatch_size", said.get("sgd_minibatch_size"))
    if batch and isinstance(part, int) and part > 0:
        said["minibatches"] = max(1, round(Fraction(batch, part)))
    match = re.match(r"([A-Z][A-Za-z0-9]+)_", source.folder.resolve().name)
    if match:
        said["algo"] = match[1].lower()
    set_config(history, said, KEYS)
    settings_files.name_parts(history)
    settings_files.group_by_name(history, source, settings=set(said) - {"algo", "env", "seed"})


def _batch(config: Settings) -> int:
    new = config.get("_train_batch_size_per_learner") if config.get("enable_rl_module_and_learner") else None
    size = new or config.get("train_batch_size")
    return size if isinstance(size, int) else 0
