"""How is one run made by Stable-Baselines3 or by relab, and how good is what a run learned?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.noise import NormalActionNoise

from benchmarks.peers import plan
from benchmarks.peers.sb3_worlds import SideBySide, Success
from benchmarks.peers.tasks import ALL
from benchmarks.peers.worlds import Rows, Worlds

ALGOS = {"ppo": PPO, "a2c": A2C, "dqn": DQN, "sac": SAC, "td3": TD3}
Policy = Callable[[Rows], Rows]
Make = Callable[[int, int], Worlds]


def evaluated(policy: Policy, make: Make, episodes: int = 32, seed: int = 99_991) -> float:
    """Mean return of the first episode of each of some worlds that no learner saw."""
    worlds = make(episodes, seed)
    obs, totals = worlds.reset(), np.full(episodes, np.nan)
    while np.isnan(totals).any():
        now = worlds.step(policy(obs))
        obs = now.obs
        for episode in now.episodes:
            if np.isnan(totals[episode.world]):
                totals[episode.world] = episode.total
    return float(totals.mean())


def by_sb3(algo: str, task: str, seed: int, settings: plan.Settings, folder: Path, logs: tuple[str, ...],
           make: Make | None = None, judge: Make | None = None, success: Success | None = None,
           total: int | None = None) -> Policy:  # fmt: skip
    settings, wide = dict(settings), plan.worlds(algo, task)
    envs = SideBySide(make or ALL[task], wide, seed, success)
    rate = settings["learning_rate"]
    if isinstance(rate, tuple):
        settings["learning_rate"] = lambda left: left * rate[1]
    if "noise" in settings:
        dims = envs.worlds.dims
        settings["action_noise"] = NormalActionNoise(np.zeros(dims), settings.pop("noise") * np.ones(dims))
    settings.setdefault("policy_kwargs", dict(plan.SMALL))
    model = ALGOS[algo]("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    kinds = [word for key, word in (("csv", "csv"), ("tb", "tensorboard")) if key in logs]
    model.set_logger(configure(str(folder), kinds))
    total = total or plan.steps(algo, task)
    watch = None
    if "eval" in logs:
        others = SideBySide(judge or make or ALL[task], 8, 1000 + seed)
        every = max(total // 8 // wide, 1)
        watch = EvalCallback(others, n_eval_episodes=8, eval_freq=every, log_path=str(folder), verbose=0)
    model.learn(total, callback=watch, log_interval=_log_interval(algo))
    if "zip" in logs:
        model.save(folder / "model.zip")
    return lambda obs: model.predict(obs, deterministic=True)[0]


def _log_interval(algo: str) -> int:
    """Some hundred rows at most: A2C's updates are many, replay methods count episodes."""
    return {"a2c": 5, "ppo": 1}.get(algo, 4)


def by_relab(case: plan.Case, folder: Path, relab: Path) -> float:
    """relab's own learner, in its own venv; its last evaluation."""
    words = plan.RELAB[case.algo, case.task][case.variant].split()
    command = [str(relab), "train", case.algo, f"env={case.task}", f"seed={case.seed}", "threads=1", *words,
               "--runs", str(folder), "--name", "run", "--quiet"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    rows = [json.loads(line) for line in (folder / "run" / "evals.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["mode"] == "det"][-1]
    return float(np.mean([episode["return"] for episode in last["episodes"]]))
