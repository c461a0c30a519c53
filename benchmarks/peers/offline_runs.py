"""What do healthy and faulty runs of AWR and IQL look like? Small real trainings on a fixed CartPole dataset.

    .venv-sb3/bin/python -m benchmarks.peers.offline_runs OUT --seeds 0 1 [--only cap-reached ...]

AWR (Peng et al. 2019): V by regression on returns, weights min(exp(A / beta), cap), A standardised when norm_adv.
IQL (Kostrikov et al. 2021): V as an expectile of Q, Q by r + gamma V(s'), the same weights with A = Q - V.
The dataset's controller does the wrong thing more often than not, so that imitation alone fails and weights matter.
Each folder OUT/FAULT/ALGO-sSEED holds config.json and log.jsonl.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everyone calls it

from benchmarks.peers.once import once

ROWS, UPDATES, LOG, EVAL, BATCH = 12_000, 1_440, 30, 240, 256
BASE: dict[str, dict[str, Any]] = {
    "awr": {"beta": 1.0, "weight_cap": 20.0, "norm_adv": True, "gamma": 0.99, "lr": 1e-3},
    "iql": {"beta": 0.3, "weight_cap": 100.0, "norm_adv": False, "gamma": 0.99, "lr": 1e-3, "expectile": 0.8,
            "tau": 0.01},
}  # fmt: skip
BOTH = ("awr", "iql")
FAULTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "healthy": (BOTH, {}),
    "cap-reached": (BOTH, {"beta": 0.02}),
    "weights-uniform": (BOTH, {"beta": 1000.0}),
    "few-rows-decide": (("awr",), {"beta": 0.25, "weight_cap": 1e6}),
    "value-above-q": (("iql",), {"expectile": 0.9999, "lr": 3e-3}),
    "lr-over-1000": (BOTH, {"lr": 1e-6}),
    "bootstrap-beyond-end": (("iql",), {"mask_ends": False}),
    "gamma-one": (("iql",), {"gamma": 1.0, "mask_ends": False}),
}


class Data(NamedTuple):
    """Rows of episodes, in order."""

    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    following: torch.Tensor
    ended: torch.Tensor
    to_go: torch.Tensor  # discounted return from here
    returns: np.ndarray  # of the episodes


def collect(seed: int, gamma: float) -> Data:
    rng, env = np.random.default_rng(seed), gymnasium.make("CartPole-v1")
    rows: list[tuple[Any, ...]] = []
    returns, to_go = [], []
    obs, _ = env.reset(seed=seed)
    right, rewards = rng.uniform(0.25, 0.6), []
    while len(rows) < ROWS or rewards:
        push = int(obs[2] + 0.3 * obs[3] + 0.05 * obs[1] > 0)
        action = push if rng.random() < right else 1 - push
        new, reward, ended, cut, _ = env.step(action)
        rows.append((obs, action, reward, new, float(ended)))
        rewards.append(float(reward))
        obs = new
        if ended or cut:
            returns.append(sum(rewards))
            to_go += discounted(rewards, gamma)
            obs, _ = env.reset()
            right, rewards = rng.uniform(0.25, 0.6), []
    columns = [torch.tensor(np.array(c), dtype=torch.float32) for c in zip(*rows, strict=True)]
    return Data(columns[0], columns[1].long(), columns[2], columns[3], columns[4],
                torch.tensor(to_go, dtype=torch.float32), np.array(returns))  # fmt: skip


def discounted(rewards: list[float], gamma: float) -> list[float]:
    found, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(total)
    return found[::-1]


def net(out: int, inputs: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, out))


class Learner:
    """Networks and one update of either method."""

    def __init__(self, algo: str, cfg: dict[str, Any]):
        self.algo, self.cfg = algo, cfg
        self.policy, self.v, self.q, self.slow = net(2), net(1), net(2), net(2)
        self.slow.load_state_dict(self.q.state_dict())
        self.adams = {n: torch.optim.Adam(getattr(self, n).parameters(), cfg["lr"]) for n in ("policy", "v", "q")}

    def step(self, d: Data, i: torch.Tensor) -> dict[str, float]:
        found, adv = self.judge_awr(d, i) if self.algo == "awr" else self.judge_iql(d, i)
        scaled = (adv - adv.mean()) / (adv.std() + 1e-8) if self.cfg["norm_adv"] else adv
        weight = (scaled / self.cfg["beta"]).clamp(max=60).exp().clamp(max=self.cfg["weight_cap"])
        logits = self.policy(d.obs[i])
        logp = F.log_softmax(logits, -1)
        chosen = logp.gather(1, d.action[i, None]).squeeze(1)
        share = weight / weight.sum() * len(weight)
        loss = -(share * chosen).mean()
        self.descend("policy", loss)
        ess = weight.double().sum() ** 2 / (len(weight) * (weight.double() ** 2).sum())
        return found | {
            "actor_loss": loss.item(), "policy/entropy": -(logp.exp() * logp).sum(-1).mean().item(),
            "policy/weight_mean": weight.mean().item(), "policy/weight_max": weight.max().item(),
            "policy/weight_capped": float((weight >= self.cfg["weight_cap"]).float().mean()),
            "policy/weight_ess": float(ess), "policy/data_logprob": chosen.mean().item(),
            "data/advantage_mean": float(adv.mean()), "data/advantage_std": float(adv.std()),
            "data/advantage_positive": float((adv > 0).float().mean()),
            "data/reward_nonzero": float((d.reward[i] != 0).float().mean()),
        }  # fmt: skip

    def judge_awr(self, d: Data, i: torch.Tensor) -> tuple[dict[str, float], torch.Tensor]:
        v = self.v(d.obs[i]).squeeze(1)
        loss = 0.5 * (d.to_go[i] - v).square().mean()
        self.descend("v", loss)
        return {"value_loss": loss.item(), "value/mean": v.mean().item()}, (d.to_go[i] - v).detach()

    def judge_iql(self, d: Data, i: torch.Tensor) -> tuple[dict[str, float], torch.Tensor]:
        with torch.no_grad():
            q_slow = self.slow(d.obs[i]).gather(1, d.action[i, None]).squeeze(1)
        v = self.v(d.obs[i]).squeeze(1)
        gap = q_slow - v
        high = self.cfg["expectile"]
        v_loss = (torch.where(gap > 0, high, 1 - high) * gap.square()).mean()
        self.descend("v", v_loss)
        goes_on = 1 - d.ended[i] if self.cfg.get("mask_ends", True) else 1.0
        with torch.no_grad():
            after = goes_on * self.v(d.following[i]).squeeze(1)
            target = d.reward[i] + self.cfg["gamma"] * after
        q = self.q(d.obs[i]).gather(1, d.action[i, None]).squeeze(1)
        q_loss = (q - target).square().mean()
        self.descend("q", q_loss)
        with torch.no_grad():
            for slow, fast in zip(self.slow.parameters(), self.q.parameters(), strict=True):
                slow.lerp_(fast, self.cfg["tau"])
        found = {"value_loss": v_loss.item(), "q_loss": q_loss.item(), "value/mean": v.mean().item(),
                 "value/q_mean": q_slow.mean().item()}  # fmt: skip
        ends = d.ended[i] > 0
        return found | ({"value/after_end": after[ends].mean().item()} if ends.any() else {}), gap.detach()

    def descend(self, name: str, loss: torch.Tensor) -> None:
        self.adams[name].zero_grad()
        loss.backward()
        self.adams[name].step()


def play(policy: nn.Module, seed: int, episodes: int = 10) -> tuple[float, float]:
    env, returns = gymnasium.make("CartPole-v1"), []
    for k in range(episodes):
        obs, _ = env.reset(seed=seed + k)
        total, over = 0.0, False
        while not over:
            with torch.no_grad():
                action = int(policy(torch.as_tensor(obs, dtype=torch.float32)).argmax())
            obs, reward, ended, cut, _ = env.step(action)
            total, over = total + float(reward), ended or cut
        returns.append(total)
    return float(np.mean(returns)), float(np.std(returns, ddof=1))


def make(fault: str, algo: str, seed: int, folder: Path) -> None:
    cfg = BASE[algo] | FAULTS[fault][1]
    torch.manual_seed(seed)
    data, learner = collect(1_000 + seed, cfg["gamma"]), Learner(algo, cfg)
    rng, rows = np.random.default_rng(seed), []
    for update in range(1, UPDATES + 1):
        found = learner.step(data, torch.from_numpy(rng.integers(0, len(data.reward), BATCH)))
        if update % LOG == 0 or update == 1:
            row = {"update": update, **found, "data/updates": update}
            row |= {"data/dataset_return_mean": float(data.returns.mean()),
                    "data/dataset_return_max": float(data.returns.max())}  # fmt: skip
            if update % EVAL == 0 or update == 1:
                row["eval/return_det"], row["eval/std_det"] = play(learner.policy, 77_000 + 100 * seed)
                row["eval/length_det"], row["eval/episodes"] = row["eval/return_det"], 10
            rows.append(row)
    told = {"algo": algo, "env": "CartPole-v1", "seed": seed, "batch_size": BATCH, "updates": UPDATES, **cfg}
    (folder / "config.json").write_text(json.dumps(told, indent=1) + "\n")
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    for seed in args.seeds:
        for fault in args.only:
            for algo in FAULTS[fault][0]:
                name = f"{fault}/{algo}-s{seed}"
                once(args.out / name, "log.jsonl", partial(make, fault, algo, seed), name)


if __name__ == "__main__":
    main()
