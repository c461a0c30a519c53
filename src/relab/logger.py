"""How does any program write a record that relab can read? One file without dependencies, for Python 3.8 and newer.

Copy it next to your program, or import it from relab:

    from relab.logger import Logger
    log = Logger("runs/my-run", config={"lr": 3e-4}, seed=0, env="CartPole-v1", algo="ppo")
    log.log(2048, **{"return/mean": 21.3, "policy/kl": 0.01, "my_number": 3.0})
    log.evaluation(2048, returns=[20.0, 31.0], lengths=[20, 31])
    log.close()

Names of relab's glossary (docs/metrics.md) are understood by its rules; any other name is kept as foreign/NAME.
Settings may have the names that programs usually give them (SETTINGS below): learning_rate is written as algo.lr. A
mapping will do, nested ones too, and so will what argparse returns, or a dataclass. The folder has the layout of
docs/record.md. Each row is flushed: after kill -9 all but the last line is there. Started by
`relab capture`, Logger() without a folder writes where capture says.
"""

import errno
import functools
import json
import math
import os
import platform
import re
import sys
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

SCHEMA = 1
HEARTBEAT_S = 10.0
FOLDER_VARIABLE = "RELAB_RUN"
GROUPS = ("return/", "eval/", "policy/", "value/", "model/", "data/", "optim/", "time/", "env/", "foreign/")


class Logger:
    """Writes one run folder; a context manager that notes how the run ended."""

    def __init__(
        self,
        folder: Optional[str] = None,
        config: Any = None,
        seed: Optional[int] = None,
        env: Optional[str] = None,
        algo: Optional[str] = None,
        axis: str = "env_steps",
        intent: Optional[str] = None,
        spec: Optional[Mapping[str, Any]] = None,
    ) -> None:
        chosen = folder or os.environ.get(FOLDER_VARIABLE)
        if not chosen:
            raise ValueError("Logger needs a folder: Logger('runs/NAME'), or start the program by `relab capture`")
        self.folder, self.axis = chosen, axis
        self._files: Dict[str, Any] = {}
        os.makedirs(chosen, exist_ok=True)
        self._claim()
        flat = _plain(config)
        settings = _masked(_nested(flat, seed, env, algo))
        self._replace("config.yaml", json.dumps(settings, indent=1))  # JSON is YAML
        self.meta = _facts(settings, intent, spec)
        self.meta.update(_masked({"places": {k: v for k, v in flat.items() if is_place(k)}}))
        self.meta["keys"] = known_settings(key for key in flat if not is_place(key))  # the program's name -> relab's
        self._beat = 0.0
        self._write_meta()
        self.event("start", None)

    def log(self, step: int, values: Optional[Mapping[str, Any]] = None, **metrics: Any) -> None:
        """One row of numbers at a step, by name or as a mapping; numbers that are not finite are kept as such."""
        if values is not None and not isinstance(values, Mapping):
            metrics, values = dict(metrics, values=values), None  # a metric of that name
        self.row(step, dict(values or {}, **metrics))

    def row(self, step: int, metrics: Mapping[str, Any]) -> None:
        """The same of a mapping, whatever its names."""
        row: Dict[str, Any] = {"step": int(step), "axis": self.axis}
        row.update({_name(key): _number(value) for key, value in metrics.items() if value is not None})
        self._append("metrics.jsonl", row)
        if time.monotonic() - self._beat > HEARTBEAT_S:
            self._write_meta()

    def evaluation(
        self,
        step: int,
        returns: Iterable[float],
        lengths: Optional[Iterable[int]] = None,
        successes: Optional[Iterable[bool]] = None,
        mode: str = "det",
    ) -> None:
        """Every episode of an evaluation, so that intervals can be told; mode is det or sampled."""
        values = [float(x) for x in returns]
        sizes = [int(x) for x in lengths] if lengths is not None else [0] * len(values)
        won: List[Any] = [bool(x) for x in successes] if successes is not None else [None] * len(values)
        episodes = [
            {"seed": None, "return": _number(r), "length": n, "success": s, "end": "unknown"}
            for r, n, s in zip(values, sizes, won)
        ]
        self._append("evals.jsonl", {"step": int(step), "mode": mode, "episodes": episodes})

    def event(self, kind: str, step: Optional[int], **data: Any) -> None:
        self._append("events.jsonl", dict(data, kind=kind, step=step, time=_now()))

    def close(self, status: str = "finished", why: str = "") -> None:
        try:
            if self.meta["status"] == "running":
                said = {"message": _mask(why[:500])} if why else {}
                self.event("finish" if status == "finished" else "error", None, **said)
                self.meta["status"] = status
                self._write_meta()
        finally:  # also where the disk is full
            for file in self._files.values():
                file.close()
            self._files = {}

    def __enter__(self) -> "Logger":
        return self

    def __exit__(self, kind: Any, error: Any = None, *_: Any) -> None:
        return self.close(*ending(kind, error))

    # ---- Files

    def _claim(self) -> None:
        """A folder belongs to one run: two that write into it at once would mix their rows."""
        events = os.path.join(self.folder, "events.jsonl")
        try:
            if os.path.exists(os.path.join(self.folder, "metrics.jsonl")):
                raise FileExistsError
            os.close(os.open(events, os.O_CREAT + os.O_EXCL + os.O_WRONLY, 0o666))
        except FileExistsError:
            raise ValueError(
                f"Logger must write into a new folder, but {self.folder} holds a run; choose another name"
            ) from None

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        self._put(name, (json.dumps(row) + "\n").encode())

    def _put(self, name: str, line: bytes) -> None:
        if name not in self._files:
            path = os.path.join(self.folder, name)
            self._files[name] = open(path, "ab", buffering=0, opener=_no_link)  # noqa: SIM115 - until close()
        file = self._files[name]
        written = _write(file.write, line, file.name)
        if written != len(line):  # a full disk: no half row stays in the file
            os.ftruncate(file.fileno(), os.fstat(file.fileno()).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)

    def _write_meta(self) -> None:
        self._beat, self.meta["heartbeat"] = time.monotonic(), _now()
        self.meta.update({key: _masked(self.meta.get(key)) for key in ("command", "intent")})
        self._replace("meta.json", json.dumps(self.meta, indent=1))

    def _replace(self, name: str, text: str) -> None:
        path = os.path.join(self.folder, name)
        with open(path + ".tmp", "w", encoding="utf-8", opener=_no_link) as file:
            _write(file.write, text, path)
        os.replace(path + ".tmp", path)


def _no_link(path: str, flags: int) -> int:
    """Nothing outside of the folder is written through a link in it."""
    return os.open(path, flags + getattr(os, "O_NOFOLLOW", 0), 0o666)  # open() never sets that bit


def sb3_callback(folder: Optional[str] = None, **facts: Any) -> Any:
    """A callback for Stable-Baselines3's learn(): what its logger holds goes to a relab record, row by row.

    For programs that only have this file, or that `relab capture` starts. With relab installed use
    relab.callbacks.SB3Callback: it keeps every episode and evaluation, and warns while it trains.
    """
    from stable_baselines3.common.callbacks import BaseCallback

    class ToRelab(BaseCallback):
        def _on_training_start(self) -> None:
            self.rows = _Sb3Rows(self.model, folder, facts)

        def _on_rollout_start(self) -> None:  # the update before it is done, and its numbers are not yet cleared
            self.rows.reached(self.num_timesteps)

        def _on_step(self) -> bool:
            return True

        def _on_training_end(self) -> None:
            self.rows.ended(self.num_timesteps)

    return ToRelab()


class _Sb3Rows:
    """What a model's logger holds, kept row by row; nothing that goes wrong here ends a training."""

    def __init__(self, model: Any, folder: Optional[str], facts: Mapping[str, Any]) -> None:
        self.model, self.last, self.lost = model, 0, False
        self.record = Logger(folder, **dict(sb3_facts(model), **facts))
        self.every = 1000 if hasattr(model, "replay_buffer") else 1  # off-policy: an update each step

    def reached(self, step: int) -> None:
        if step >= self.last + self.every:
            self._unharmed(lambda: self._write(step))

    def ended(self, step: int) -> None:
        if step > self.last:
            self._unharmed(lambda: self._write(step))
        self._unharmed(self.record.close)

    def _unharmed(self, do: Any) -> None:
        try:
            do()
        except Exception as error:  # a full disk, say: hours of training are worth more than a row
            try:
                if not self.lost and sys.stderr is not None:
                    print(f"relab: a row was not kept ({error!r}); training goes on", file=sys.stderr)
            except (OSError, ValueError):  # a stderr that is full or closed
                pass
            self.lost = True

    def _write(self, step: int) -> None:
        values = {k: v for k, v in self.model.logger.name_to_value.items() if hasattr(v, "__float__")}
        buffer = getattr(self.model, "ep_info_buffer", None)
        if buffer:
            values["rollout/ep_rew_mean"] = sum(e["r"] for e in buffer) / len(buffer)
            values["rollout/ep_len_mean"] = sum(e["l"] for e in buffer) / len(buffer)
        self.last = step
        if values:
            self.record.row(step, sb3_row(values, type(self.model).__name__.lower()))


# Traps: entropy_loss is minus the entropy; value_loss has no factor 1/2; fps is a mean since the start.
SB3 = {
    "rollout/ep_rew_mean": ("return/mean_100", 1.0),
    "rollout/ep_len_mean": ("return/length", 1.0),
    "rollout/success_rate": ("return/success", 1.0),
    "rollout/exploration_rate": ("policy/exploration", 1.0),
    "eval/mean_reward": ("eval/return_det", 1.0),
    "eval/mean_ep_length": ("eval/length_det", 1.0),
    "eval/success_rate": ("eval/success_det", 1.0),
    "train/entropy_loss": ("policy/entropy", -1.0),
    "train/policy_gradient_loss": ("policy/loss", 1.0),
    "train/policy_loss": ("policy/loss", 1.0),
    "train/value_loss": ("value/loss", 0.5),
    "train/explained_variance": ("value/explained_variance", 1.0),
    "train/approx_kl": ("policy/kl", 1.0),
    "train/clip_fraction": ("policy/clip_share", 1.0),
    "train/learning_rate": ("optim/lr", 1.0),
    "train/actor_loss": ("policy/actor_loss", 1.0),
    "train/critic_loss": ("value/critic_loss", 1.0),
    "train/ent_coef": ("optim/temperature", 1.0),
    "train/ent_coef_loss": ("optim/temperature_loss", 1.0),
    "train/n_updates": ("data/updates", 1.0),
    "time/fps": ("time/sps_mean", 1.0),
    "time/time_elapsed": ("time/elapsed_s", 1.0),
    "time/iterations": ("data/iteration", 1.0),
    "time/episodes": ("data/episodes", 1.0),
}
SB3_SETTINGS = """
learning_rate gamma gae_lambda clip_range clip_range_vf ent_coef vf_coef max_grad_norm n_epochs n_steps n_envs
batch_size target_kl normalize_advantage use_sde buffer_size learning_starts tau gradient_steps target_update_interval
exploration_fraction exploration_initial_eps exploration_final_eps policy_delay target_policy_noise target_noise_clip
target_entropy
"""


def sb3_algo(names: Iterable[str]) -> str:
    """Which algorithm of Stable-Baselines3 logs these names; empty where none of them tells."""
    marks = (("ppo", "train/clip_fraction"), ("dqn", "rollout/exploration_rate"), ("sac", "train/ent_coef"),
             ("a2c", "train/policy_loss"), ("td3", "train/actor_loss"))  # fmt: skip
    logged = set(names)
    return next((algo for algo, mark in marks if mark in logged), "")


def sb3_names(algo: str) -> Dict[str, Any]:
    """Stable-Baselines3's name -> (relab's, factor); some mean something else in another algorithm."""
    names: Dict[str, Any] = dict(SB3)
    if algo == "ppo":
        names["train/n_updates"] = ("foreign/train/n_updates", 1.0)  # counts passes over the batch, not steps
    if algo == "dqn":
        names["train/loss"] = ("value/critic_loss", 1.0)
    return names


def sb3_row(values: Mapping[str, Any], algo: str = "") -> Dict[str, float]:
    """A row of Stable-Baselines3's logger under relab's names, for Logger.log()."""
    names = sb3_names(algo)
    rows = [(names.get(key, (key, 1.0)), value) for key, value in values.items()]
    return {name: factor * float(value) for (name, factor), value in rows}


def sb3_facts(model: Any) -> Dict[str, Any]:
    """What Logger() wants to know of a Stable-Baselines3 model: algorithm, seed, environment, hyperparameters."""
    algo = type(model).__name__.lower()
    values = {name: _now_worth(getattr(model, name, None)) for name in SB3_SETTINGS.split()}
    values.update(sb3_structure(model), total_timesteps=getattr(model, "_total_timesteps", None))
    config: Dict[str, Any] = {k: v for k, v in values.items() if isinstance(v, (bool, int, float, str))}
    rows, batch = (config.get("n_envs") or 0) * (config.get("n_steps") or 0), config.get("batch_size")
    if "n_epochs" in config and rows and batch:
        config["n_minibatches"] = -(-rows // batch)
    if not hasattr(model, "rollout_buffer") and "ent_coef" in config:
        config["temperature"] = config.pop("ent_coef")  # of SAC: not the weight of a bonus
    action = action_spec(getattr(model, "action_space", None))
    spec = {"action": action} if action else None
    return {"algo": algo, "seed": model.seed, "env": _env_id(model.get_env()), "config": config, "spec": spec}


def sb3_structure(model: Any) -> Dict[str, Any]:
    """Settings that a model keeps as objects: steps (or "2 episode") between rounds of updates, layers."""
    often, layers = getattr(model, "train_freq", None), (getattr(model, "policy_kwargs", None) or {}).get("net_arch")
    unit = getattr(getattr(often, "unit", None), "value", None)
    count = getattr(often, "frequency", often if isinstance(often, int) else None)
    values = {"train_freq": count if unit in (None, "step") else str(count) + " " + unit}
    return {**values, "net_arch": None if layers is None else str(layers)}


def _now_worth(value: Any) -> Any:
    """A schedule is a function of the share of training that is left: its value at the start."""
    try:
        return float(value(1.0)) if callable(value) else value
    except Exception:
        return None


def action_spec(space: Any) -> Dict[str, Any]:
    """The action space as meta.spec has it; empty where it is neither one choice nor a box."""
    if type(space).__name__ == "Discrete":
        return {"kind": "discrete", "dim": 1, "n": [int(space.n)], "low": [], "high": []}
    if type(space).__name__ != "Box":
        return {}
    low, high = ([_number(x) for x in end.ravel()[:1000]] for end in (space.low, space.high))
    return {"kind": "continuous", "dim": len(low), "n": [], "low": low, "high": high}


class PufferLogger(Logger):
    """PufferLib's logger protocol: run_id, log(dict, step), close(path)."""

    def __init__(self, folder: Optional[str] = None, **facts: Any) -> None:
        super().__init__(folder, axis="agent_steps", **facts)
        self.run_id = os.path.basename(os.path.normpath(self.folder))

    def log(self, logs: Any, step: Any = None, **metrics: Any) -> None:  # type: ignore[override]
        rows = logs if isinstance(logs, Mapping) else {}
        super().log(int(step if step is not None else rows.get("agent_steps", 0)), **dict(rows, **metrics))

    def close(self, model_path: Any = None, *_: Any) -> None:
        super().close("finished")


# ---- Plain facts


def ending(kind: Any, error: Any) -> Tuple[str, str]:
    """Status and reason of a run that an exception of this kind ended, or none; sys.exit(0) is an end like any."""
    if kind is None or (issubclass(kind, SystemExit) and not getattr(error, "code", error)):
        return "finished", ""
    status = "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
    return status, "%s: %s" % (kind.__name__, error)  # noqa: UP031 - for Python 3.8


def _write(write: Any, data: Any, path: str) -> int:
    """An error says which file it is about, which Python leaves out."""
    try:
        return write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


@functools.lru_cache(4096)
def _name(name: str) -> str:
    name = _mask(name)
    return name if name.startswith(GROUPS) else "foreign/" + name


def _number(value: Any) -> Any:
    number = float(value)
    return number if math.isfinite(number) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, "NaN")


def _plain(config: Any) -> Dict[str, Any]:
    """Settings as dotted keys with plain values: of a mapping, of argparse's namespace or of a dataclass."""
    if config is None or isinstance(config, Mapping):
        return _flat(json.loads(json.dumps(dict(config or {}), default=_value)))
    if not hasattr(config, "__dict__"):
        raise ValueError("config must be a mapping, a namespace or a dataclass, but is a " + type(config).__name__)
    return _plain(vars(config))


def _value(value: Any) -> Any:
    """What JSON cannot hold: an object with settings of its own, a number of numpy's or torch's, else its text."""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        return value.item()
    inner = type(value).__name__ == "Namespace" or hasattr(value, "__dataclass_fields__")
    return dict(vars(value)) if inner and hasattr(value, "__dict__") else str(value)


def _flat(nested: Mapping[str, Any], above: str = "") -> Dict[str, Any]:
    flat: Dict[str, Any] = {}
    for key, value in nested.items():
        inner = isinstance(value, dict) and value
        flat.update(_flat(value, above + key + ".") if inner else {above + key: value})
    return flat


def _nested(flat: Mapping[str, Any], seed: Any, env: Any, algo: Any) -> Dict[str, Any]:
    """relab's layout: the settings that it knows under its names, the others below `foreign`; what is told wins."""
    settings = {key: value for key, value in flat.items() if not is_place(key)}
    names = known_settings(settings)
    kept = {names[key]: value for key, value in settings.items() if key in names}
    kept.update({k: v for k, v in (("algo.name", algo), ("env.name", env), ("seed", seed)) if v is not None})
    if isinstance(kept.get("algo.name"), str):
        kept["algo.name"] = kept["algo.name"].lower()
    other = {key: value for key, value in settings.items() if key not in names}
    nested: Dict[str, Any] = {"foreign": other} if other else {}
    for key, value in kept.items():
        group, _, last = key.rpartition(".")
        (nested.setdefault(group, {}) if group else nested)[last] = value
    return nested


def _facts(settings: Mapping[str, Any], intent: Any, spec: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    about = dict(spec or {}, env=settings.get("env", {}).get("name"))
    return {
        "schema": SCHEMA, "status": "running", "command": " ".join(_words(sys.argv)), "seed": settings.get("seed"),
        "intent": intent, "parent": None, "spec": about, "packages": {"python": platform.python_version()},
        "started": _now(), "logger": "relab.logger",
    }  # fmt: skip


def _env_id(envs: Any) -> Any:
    try:
        return envs.get_attr("spec")[0].id
    except Exception:
        return None


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000Z"


# ---- Settings: relab's name | what programs call it, as the last part of a dotted key; relab's readers use it too

SETTINGS = """
algo.lr            | lr learning_rate
algo.gamma         | gamma discount discount_factor
algo.lam           | gae_lambda lam lambda_
algo.clip          | clip clip_range clip_coef clip_param clip_ratio clip_eps ppo_clip_ratio
algo.ent_coef      | ent_coef entropy_coef entropy_coeff entropy_coefficient exploration_loss_coeff
algo.value_coef    | vf_coef value_coef vf_loss_coeff value_loss_coef value_loss_coeff
algo.max_grad_norm | max_grad_norm
algo.epochs        | n_epochs update_epochs num_epochs num_sgd_iter ppo_epochs num_learning_epochs
algo.minibatches   | num_minibatches n_minibatches num_mini_batch num_mini_batches num_batches_per_epoch minibatches
algo.envs          | num_envs n_envs num_processes
algo.steps         | num_steps n_steps rollout_length num_steps_per_env rollout
algo.target_kl     | target_kl
algo.norm_adv      | norm_adv normalize_advantage
algo.name          | algo algorithm algo_name algo.name algorithm.name agent.name algorithm.class_name
env.name           | env env_id env_name task task_name env.name env.id task.name
seed               | seed
total_steps        | total_timesteps total_steps max_timesteps total_env_steps num_env_steps train_for_env_steps
"""
# Where a run was written and when: not a setting, and it would put every run into a group of its own.
PLACES = {"logdir", "log_dir", "output_dir", "out_dir", "save_dir", "save_path", "save_folder", "work_dir", "workdir",
          "run_dir", "run_name", "run_id", "exp_name", "experiment_name", "timestamp", "datetime", "hostname", "host",
          "pid", "uuid", "log_path", "checkpoint_path", "job_id", "slurm_job_id", "monitor_dir", "tensorboard_log",
          "wandb_id", "cwd", "commit", "git_commit", "git_hash", "git_repo_name", "train_dir", "command_line",
          "user", "checkpoint_dir", "gpu_id"}  # fmt: skip
PLACES_ALONE = {"name", "id", "date", "time", "path"}  # only as a whole key: `env.name` is a setting


def _table(text: str) -> Dict[str, str]:
    rows = [line.split("|") for line in text.strip().splitlines()]
    return {word: ours.strip() for ours, words in rows for word in words.split()}


KEYS = _table(SETTINGS)
OWN_KEYS = set(KEYS.values())


def known_settings(keys: Iterable[str]) -> Dict[str, str]:
    """A program's key -> relab's, where no other key of the same program means the same; relab's own is itself.

    >>> known_settings(["ppo.learning_rate", "hidden", "actor.gamma", "critic.gamma", "algo.steps", "steps"])
    {'ppo.learning_rate': 'algo.lr', 'algo.steps': 'algo.steps'}
    """
    meant: Dict[str, List[str]] = {}
    for key in keys:
        ours = key if key in OWN_KEYS else KEYS.get(key.lower()) or KEYS.get(key.rpartition(".")[2].lower())
        if ours:
            meant.setdefault(ours, []).append(key)
    return {_shortest(same): ours for ours, same in meant.items() if _shortest(same)}


def _shortest(keys: List[str]) -> str:
    """The key with the fewest parts; none where two are as short (an actor's lr and a critic's)."""
    ranked = sorted(keys, key=lambda key: key.count("."))
    return "" if len(ranked) > 1 and ranked[0].count(".") == ranked[1].count(".") else ranked[0]


def is_place(key: str) -> bool:
    return key.lower() in PLACES_ALONE or key.rpartition(".")[2].lower() in PLACES


# ---- Secrets: a short version of relab/base/masks.py, for a command line and settings

_SHAPE = re.compile(
    r"(?i:-----BEGIN [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----)(?:[^-]|-(?!-)){0,20000}(?i:-{5,6}END [A-Z ]{0,40}-----)?"
    r"|(?<![\w-])(?:(?i:eyJ)[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|(?i:AIza)[\w-]{30,}|ya29\.[\w.-]{20,}"
    r"|(?:SG|sg(?=\.[a-z_-]{0,60}[0-9]))\.[\w-]{16,}\.[\w-]{16,}|dapi[0-9a-f]{32}(?![A-Za-z0-9])"
    r"|pypi-(?i:AgE)[\w-]{16,}|(?:xai|pypi)[-_](?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{16,}[\w-]*"
    r"|(?:glpat|nvapi|pplx|tvly|xkeysib)[-_][\w-]{16,}|sk-(?=[A-Za-z_-]{0,40}[0-9])[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|xapp-[\w-]{10,}|github_pat_\w{20,}|gh[oprsu]_[A-Za-z0-9]{20,}|[prs]k_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|(?:hf|r8|gsk|npm)_(?=[a-z]{0,60}[A-Z0-9])[A-Za-z0-9]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![\w-])"
    r"|(?:akia|asia)(?=[a-z]{0,15}[0-9])[a-z0-9]{16}(?![\w-])"
    r"|AGE-SECRET-KEY-[A-Z0-9-]{20,}|(?:dckr_pat|dop_v1|wandb_v1)_[\w-]{20,}|\d{8,10}:(?i:AA)[\w-]{30,})"
    r"|(?<=://)[^\s/\"'<>:]{0,300}:[^\s/\"'<>]{1,300}(?=@)|(?<=https://)[^\s/\"'<>]{1,300}(?=@)"
    r"|(?<=[Bb]earer )(?=[A-Za-z_.+/=~-]{0,200}[0-9])[\w.+/=~-]{8,}"
)
_PART = r"(?:\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\n]*'|\[[^\]\n]*\]|\([^()\n]{0,300}\)|[^\s;&\"'`\[\])}]+)"
_AT = re.compile(
    r"(?<![\w.\-])(-{0,2})((?:[Mm]ot de )?[^\W\d][\w.\-]{0,99})"
    r"([\"']?\]?[ \t]{0,8}[=:][ \t]{0,8}|[ \t]{1,8}|[\"'],[ \t]{0,8})"
)
_VALUE = re.compile(r"(?:(?i:bearer|basic|token)[ ])?" + _PART + "+")
_STAYS = re.compile(
    r"[\"']?(?:(?i:none|null|true|false|yes|no|str|int|float|bool|any)(?=[\s,;\"')\]}|]|$)|\*\*\*|\$\{?[A-Z][A-Z0-9_]*"
    r"|\{\w+\}|<[\w/|-]+>)"
)
_CODE = re.compile(r"[,;)\]}]|[A-Za-z_][A-Za-z_.]{0,80}\(|[\"']?[.~]{0,2}/")  # nothing, a call, a path
_NUMBER = re.compile(r"[\"']?[-+]?[\d.,_]*\d(?:[eE][-+]?\d+)?(?=[\s,;&\"')\]}]|$)")
_SECRET = re.compile(
    r"(?:^|_)(?:\w*passw(?:or)?[dt]s?|pass_?(?:word|phrase)|kennwort|pwd|pw|secrets?|authorization|contraseñas?|senha|mot_de_passe|пароль)$"
    r"|(?:密码|密钥|口令|비밀번호|パスワード)$"
)
_WEAK = re.compile(
    r"(?:^|_)(?:auth|jwt|cookies?|cred(?:ential)?s?|(?:\w*(?:api|access|private|secret|ssh|wandb|openai|hf|huggingface|aws"
    r"|azure|github|gitlab|comet|neptune|clearml|account|service|client|auth|user|db|root|admin|bot|refresh)_?)"
    r"(?:keys?|tok(?:en)?s?|pass))$"
)
_LOOSE = re.compile(
    r"^(?!.*(?:max|min|num|eos|bos|pad|unk|mask|sep|cls|special|stop|start|end)_token$)(?:\w*_)?token$"
    r"|(?:^|_)(?:my|id)_?(?:keys?|tokens?)$"
)
_TOOL = re.compile(  # wandb: KEY
    r"(?:^|_)(?:toks?|(?:wandb|swanlab|comet|neptune|clearml|openai|anthropic|huggingface|kaggle|trackio)(?:_?api)?)$"
)
_RANDOM = re.compile(r"[\"']?(?=(?:[A-Za-z]{0,60}[0-9]){2})[A-Za-z0-9]{16}")
_LETTERS = r"(?:[a-z]{1,3}|(?=[a-z]{0,14}[aeiouy])(?![a-z]{0,14}[b-df-hj-np-tv-xz]{6})[a-z]{4,14})"
_ITEM = r"([\"']?)" + _LETTERS + r"(?:[_./\-]" + _LETTERS + r"){0,3}"
_ORDINARY = re.compile(_ITEM + r"\1(?:[,\s]{1,8}" + _ITEM + r"\2)*,?")  # reward; obs action reward
_MANY = re.compile(r"[ \t]{1,8}(?!-)" + _PART)


def _named(name: str, flag: bool) -> int:
    """4: any value of this name is a secret, 3: one that is no number, 2: and no word, 1: what is random, 0: none."""
    low = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[. \-]", "_", name).lower().rstrip("_0123456789")
    tool = _TOOL.search(low)
    low = low[:-3] if low.endswith("_id") else low
    if _SECRET.search(low) or _WEAK.search(low):
        return 4 if _SECRET.search(low) else 3
    loud = name.isupper() and name.endswith(("_KEY", "_TOKEN", "_PASS"))
    if loud or (flag and low in ("key", "keys", "pass")):
        return 3 if low.endswith("pass") else 2
    return 2 if _LOOSE.search(low) else int(tool is not None)


def _is_ordinary(value: str, sure: int) -> bool:
    """Whether a value is no secret under a name that says so much."""
    if _STAYS.match(value) or (sure < 4 and _NUMBER.match(value)):
        return True
    if sure == 2:
        return len(value) < 1000 and _ORDINARY.fullmatch(value) is not None
    return sure == 1 and not _RANDOM.match(value)


def _mask(text: str) -> str:
    """A text with secrets as ***; relab masks again, and more, when it reads."""
    text, parts, done, at = _SHAPE.sub("***", text), [], 0, 0
    key = _AT.search(text)
    while key:
        end = _behind(text, key)
        parts += [text[done : key.end()], "***"] if end else []
        done, at = (end, end) if end else (done, key.end(2))
        key = _AT.search(text, at)
    return "".join(parts) + text[done:]


def _behind(text: str, key: Any) -> int:
    """Where the secret behind a name ends; 0 where there is none."""
    dashes, name, between, at = key[1], key[2], key[3], key.end()
    sure = _named(name, bool(dashes))
    if not dashes and not between.strip():
        sure = int(sure > 1)  # WANDB_API_KEY X
    if not sure or (not dashes and "," in between) or (sure == 1 and not _RANDOM.match(text, at)):
        return 0
    if _STAYS.match(text, at) or (sure < 4 and _NUMBER.match(text, at)) or (dashes and text.startswith("-", at)):
        return 0
    if not dashes and _CODE.match(text, at):
        return 0
    quote = text[key.start() - 1 : key.start()]
    whole = quote in ("'", '"') and "=" in between and text[at : at + 1] not in ("'", '"')
    if whole and text.find(quote, at, at + 2000) > 0:  # '--password=a b'
        return text.find(quote, at, at + 2000)
    value = _VALUE.match(text, at)
    more = value and not between.strip() and name.endswith("s") and _MANY.match(text, value.end())
    while more:
        value, more = more, _MANY.match(text, more.end())
    return value.end() if value and not _is_ordinary(text[at : value.end()], sure) else 0


def _masked(data: Any) -> Any:
    """Plain data with every secret as ***, by shape and by the name of its setting."""
    if isinstance(data, str):
        return _mask(data)
    if isinstance(data, list):
        return [_masked(each) for each in data]
    if not isinstance(data, dict):
        return data
    return {_mask(str(key)): _setting(str(key), value) for key, value in data.items()}


def _words(words: List[str]) -> List[str]:
    """The words of a command: a flag and its value are two of them, or all behind the first = is the value."""
    masked, before = [], ""
    for word in words:
        flag, equals, value = (word if word.startswith("-") or "=" in word else "").partition("=")
        if before.startswith("-") and "=" not in before and not word.startswith("-"):
            flag, equals, value = before, "", word
        dashes, name = flag.startswith("-"), flag.lstrip("-+")
        sure = _named(name, dashes) if value and re.match(r"[^\W\d][\w.\-]{0,99}$", name) else 0
        stays = not sure or _is_ordinary(value, sure)
        masked.append(_mask(word) if stays else (flag + "=" if equals else "") + "***")
        many = sure and before.endswith("s") and not word.startswith("-")  # --api-keys a b
        before = before if many else word
    return masked


def _setting(name: str, value: Any) -> Any:
    sure = _named(name, False)
    if not sure or isinstance(value, (dict, bool)) or value is None or value == "":
        return _masked(value)
    if isinstance(value, list):
        return [_setting(name, each) for each in value]
    if isinstance(value, str) and sure < 3:
        return _mask(value) if _is_ordinary(value, sure) else "***"
    return "***" if sure == 4 or not isinstance(value, (int, float)) else value
