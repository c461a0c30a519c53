"""How does any program write a record that relab can read? One file without dependencies, for Python 3.8 and newer.

Copy it next to your program, or import it from relab:

    from relab.logger import Logger
    log = Logger("runs/my-run", config={"lr": 3e-4}, seed=0, env="CartPole-v1", algo="ppo")
    log.log(2048, **{"return/mean": 21.3, "policy/kl": 0.01, "my_number": 3.0})
    log.evaluation(2048, returns=[20.0, 31.0], lengths=[20, 31])
    log.close()

Names of relab's glossary (docs/metrics.md) are understood by its rules; any other name is kept as foreign/NAME. The
folder has the layout of docs/record.md. Each row is flushed: after kill -9 all but the last line is there. Started by
`relab capture`, Logger() without a folder writes where capture says.
"""

import errno
import json
import math
import os
import platform
import re
import sys
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional

SCHEMA = 1
HEARTBEAT_S = 10.0
FOLDER_VARIABLE = "RELAB_RUN"
GROUPS = ("return/", "eval/", "policy/", "value/", "model/", "data/", "optim/", "time/", "env/", "foreign/")


class Logger:
    """Writes one run folder; a context manager that notes how the run ended."""

    def __init__(
        self,
        folder: Optional[str] = None,
        config: Optional[Mapping[str, Any]] = None,
        seed: Optional[int] = None,
        env: Optional[str] = None,
        algo: Optional[str] = None,
        axis: str = "env_steps",
        intent: Optional[str] = None,
    ) -> None:
        chosen = folder or os.environ.get(FOLDER_VARIABLE)
        if not chosen:
            raise ValueError("Logger needs a folder: Logger('runs/NAME'), or start the program by `relab capture`")
        self.folder, self.axis = chosen, axis
        self._files: Dict[str, Any] = {}
        os.makedirs(chosen, exist_ok=True)
        if os.path.exists(os.path.join(chosen, "metrics.jsonl")):
            raise ValueError(f"Logger must write into a new folder, but {chosen} holds a run; choose another name")
        settings = _masked(_nested(config or {}, seed, env, algo))
        self._replace("config.yaml", json.dumps(settings, indent=1))  # JSON is YAML
        self.meta = _facts(seed, env, intent)
        self._beat = 0.0
        self._write_meta()
        self.event("start", None)

    def log(self, step: int, **metrics: Any) -> None:
        """One row of numbers at a step; numbers that are not finite are kept as such."""
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

    def close(self, status: str = "finished") -> None:
        if self.meta["status"] == "running":
            self.event("finish" if status == "finished" else "error", None)
            self.meta["status"] = status
            self._write_meta()
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self) -> "Logger":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt)
        self.close("finished" if kind is None else "interrupted" if stopped else "failed")

    # ---- Files

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        if name not in self._files:
            path = os.path.join(self.folder, name)
            self._files[name] = open(path, "ab", buffering=0, opener=_no_link)  # noqa: SIM115 - until close()
        file, line = self._files[name], (json.dumps(row) + "\n").encode()
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
    """A callback for Stable-Baselines3's learn(): what its logger holds goes to a relab record, row by row."""
    from stable_baselines3.common.callbacks import BaseCallback

    class ToRelab(BaseCallback):
        def _on_training_start(self) -> None:
            algo = type(self.model).__name__.lower()
            known = dict({"algo": algo, "seed": self.model.seed, "env": _env_id(self.training_env)}, **facts)
            self.record, self.last = Logger(folder, **known), 0
            self.every = 1000 if hasattr(self.model, "replay_buffer") else 1  # off-policy: an update each step

        def _on_rollout_start(self) -> None:  # the update before it is done, and its numbers are not yet cleared
            if self.num_timesteps >= self.last + self.every:
                self._keep()

        def _on_step(self) -> bool:
            return True

        def _on_training_end(self) -> None:
            if self.num_timesteps > self.last:
                self._keep()
            self.record.close()

        def _keep(self) -> None:
            values = {k: v for k, v in self.model.logger.name_to_value.items() if hasattr(v, "__float__")}
            buffer = getattr(self.model, "ep_info_buffer", None)
            if buffer:
                values["rollout/ep_rew_mean"] = sum(e["r"] for e in buffer) / len(buffer)
                values["rollout/ep_len_mean"] = sum(e["l"] for e in buffer) / len(buffer)
            self.last = self.num_timesteps
            if values:
                self.record.log(self.last, **{SB3.get(k, k): SIGN.get(k, 1) * float(v) for k, v in values.items()})

    return ToRelab()


SB3 = {
    "rollout/ep_rew_mean": "return/mean_100", "rollout/ep_len_mean": "return/length", "train/approx_kl": "policy/kl",
    "train/clip_fraction": "policy/clip_share", "train/entropy_loss": "policy/entropy",
    "train/value_loss": "value/loss",
    "train/policy_gradient_loss": "policy/loss", "train/explained_variance": "value/explained_variance",
    "train/learning_rate": "optim/lr",
}  # fmt: skip
SIGN = {"train/entropy_loss": -1}  # Stable-Baselines3 logs minus the entropy


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


def _write(write: Any, data: Any, path: str) -> int:
    """An error says which file it is about, which Python leaves out."""
    try:
        return write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _name(name: str) -> str:
    return name if name.startswith(GROUPS) else "foreign/" + name


def _number(value: Any) -> Any:
    number = float(value)
    return number if math.isfinite(number) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, "NaN")


def _nested(config: Mapping[str, Any], seed: Any, env: Any, algo: Any) -> Dict[str, Any]:
    settings = json.loads(json.dumps(dict(config), default=str))
    nested: Dict[str, Any] = {"foreign": settings} if settings else {}
    nested.update({"algo": {"name": algo}} if algo else {})
    nested.update({"env": {"name": env}} if env else {})
    nested.update({"seed": seed} if seed is not None else {})
    return nested


def _facts(seed: Any, env: Any, intent: Any) -> Dict[str, Any]:
    return {
        "schema": SCHEMA, "status": "running", "command": " ".join(_words(sys.argv)), "seed": seed, "intent": intent,
        "parent": None, "spec": {"env": env}, "packages": {"python": platform.python_version()}, "started": _now(),
        "logger": "relab.logger",
    }  # fmt: skip


def _env_id(envs: Any) -> Any:
    try:
        return envs.get_attr("spec")[0].id
    except Exception:
        return None


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000Z"


# ---- Secrets: a short version of relab/base/masks.py, for a command line and settings

_SHAPE = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----(?:[^-]|-(?!-)){0,20000}(?:-{5,6}END [A-Z ]{0,40}-----)?"
    r"|(?<![\w-])(?:eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|AIza[\w-]{30,}|SG\.[\w-]{16,}\.[\w-]{16,}|ya29\.[\w.-]{20,}"
    r"|(?:glpat|nvapi|xai|pplx|tvly|pypi)[-_][\w-]{16,}|sk-(?=[A-Za-z_-]{0,40}[0-9])[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|xapp-[\w-]{10,}|github_pat_\w{20,}|gh[oprsu]_[A-Za-z0-9]{20,}|[prs]k_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|(?:hf|r8|gsk|npm)_(?=[a-z]{0,60}[A-Z0-9])[A-Za-z0-9]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![\w-])"
    r"|AGE-SECRET-KEY-[A-Z0-9-]{20,}|(?:dckr_pat|dop_v1|wandb_v1)_[\w-]{20,}|\d{8,10}:AA[\w-]{30,})"
    r"|(?<=://)[^\s/\"'<>:]{0,300}:[^\s/\"'<>]{1,300}(?=@)|(?<=https://)[^\s/\"'<>]{1,300}(?=@)"
    r"|(?<=[Bb]earer )(?=[A-Za-z_.+/=~-]{0,200}[0-9])[\w.+/=~-]{8,}"
)
_PART = r"(?:\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\n]*'|\[[^\]\n]*\]|[^\s;&\"'`\[\])}]+)"
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
    r"(?:keys?|tokens?|pass))$"
    r"|^(?!.*(?:max|min|num|eos|bos|pad|unk|mask|sep|cls|special|stop|start|end)_token$)(?:\w*_)?token$"
)
_MANY = re.compile(r"[ \t]{1,8}(?!-)" + _PART)


def _named(name: str, flag: bool) -> int:
    """2: any value of this name is a secret, 1: one that is no number, 0: none is."""
    low = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[. \-]", "_", name).lower().rstrip("_0123456789")
    low = low[:-3] if low.endswith("_id") else low
    if _SECRET.search(low) or _WEAK.search(low):
        return 2 if _SECRET.search(low) else 1
    loud = name.isupper() and name.endswith(("_KEY", "_TOKEN", "_PASS"))
    return int(loud or (flag and low in ("key", "keys", "pass")))


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
    if not sure or (not dashes and (not between.strip() or "," in between)):
        return 0
    if _STAYS.match(text, at) or (sure == 1 and _NUMBER.match(text, at)) or (dashes and text.startswith("-", at)):
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
    return value.end() if value else 0


def _masked(data: Any) -> Any:
    """Plain data with every secret as ***, by shape and by the name of its setting."""
    if isinstance(data, str):
        return _mask(data)
    if isinstance(data, list):
        return [_masked(each) for each in data]
    if not isinstance(data, dict):
        return data
    return {key: _setting(str(key), value) for key, value in data.items()}


def _words(words: List[str]) -> List[str]:
    """The words of a command: a flag and its value are two of them, or all behind the first = is the value."""
    masked = []
    for i, word in enumerate(words):
        flag, equals, value = (word if word.startswith("-") or "=" in word else "").partition("=")
        before = words[i - 1] if i else ""
        if before.startswith("-") and "=" not in before and not word.startswith("-"):
            flag, equals, value = before, "", word
        dashes, name = flag.startswith("-"), flag.lstrip("-+")
        sure = _named(name, dashes) if value and re.match(r"[^\W\d][\w.\-]{0,99}$", name) else 0
        stays = not sure or _STAYS.match(value) or (sure == 1 and _NUMBER.match(value))
        masked.append(_mask(word) if stays else (flag + "=" if equals else "") + "***")
    return masked


def _setting(name: str, value: Any) -> Any:
    sure = _named(name, False)
    if not sure or isinstance(value, (dict, bool)) or value is None or value == "":
        return _masked(value)
    if isinstance(value, list):
        return [_setting(name, each) for each in value]
    return "***" if sure == 2 or not isinstance(value, (int, float)) else value
