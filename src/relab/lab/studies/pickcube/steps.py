"""How is each part of the pickcube study done? Functions of a folder that return plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.jsonl import write_atomic
from relab.config import layers
from relab.lab.studies import Carry, Say, making
from relab.lab.studies.pickcube import full as sizes
from relab.record import history
from relab.record.history import History

HERE = Path(__file__).parent
CRITICS = {"CRITIC_START": "shipped:pickcube-gantry@65536", "CRITIC_BEST": "shipped:pickcube-gantry@301056"}
LAST = ("data/env_steps", "data/sim_steps", "data/updates", "data/advantage_mean", "data/advantage_std",
        "data/advantage_rank", "data/advantage_snr", "data/advantage_positive", "policy/weight_mean",
        "policy/weight_ess", "policy/weight_capped", "policy/std_mean", "value/fit_epochs")  # fmt: skip


def ask(name: str, full: bool = False, fresh: bool = False) -> Carry:
    """A step that runs the experiment NAME.yaml of this folder to its answer; `full`: at the sizes of the log."""

    def run(folder: Path, workers: int, say: Say) -> Document:
        file = with_critics(name, folder, say, full)
        text, answers, runs_of = making.carry_out(file, folder, workers, say, trained(folder.parent), fresh)
        arms = {arm: [of_run(run) for run in runs] for arm, runs in runs_of.items()}
        keys = ("verdict", "text", "delta", "low", "high", "names")
        return {"question": text, "answers": [{k: getattr(a, k) for k in keys} for a in answers], "arms": arms}

    return run


def with_critics(name: str, folder: Path, say: Say, full: bool) -> Path:
    """The experiment's file; where it names critics, they are fitted first, and their runs stand in their places."""
    file = HERE / f"{name}.yaml"
    text = file.read_text(encoding="utf-8")
    if full:
        text = layers.format_yaml(sizes.sized(layers.parse_yaml(text), name))
    named = [word for word in CRITICS if word in text]
    if not named and not full:
        return file
    for word in named:
        policy = CRITICS[word]
        run = (folder.parent / "critics" / word.lower()).resolve()
        say(f"  critic of {policy}")
        settings = {"algo": "critic", "env": "pickcube-gantry", "start_from": policy, "seed": 0}
        making.one(run, settings, "a critic to begin with", "pickcube")
        text = text.replace(word, str(run))
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "question.yaml", text.encode())
    return folder / "question.yaml"


def trained(root: Path) -> list[Path]:
    """Runs of the steps before: an arm that is the same is not trained for each question anew."""
    return sorted(path for path in root.glob("*/runs/*") if path.is_dir())


def of_run(run: History) -> Document:
    """Success by evaluation, and the last row's numbers."""
    det, sampled = (run.column(f"eval/success_{mode}") for mode in ("det", "sampled"))
    row: Document = {"seed": run.meta["seed"], "iterations": [int(step) for step in det.steps],
                     "det": rounded(det.values), "sampled": rounded(sampled.values)}  # fmt: skip
    known = [name for name in LAST if name in run.columns]
    return row | {name: float(run.column(name).values[-1]) for name in known}


def rounded(values: np.ndarray) -> list[float]:
    return [round(float(x), 3) for x in values]


# ---- Does what can be known beforehand say how it ends?


def rank(folder: Path, workers: int, say: Say) -> Document:
    """Rank correlation and signal to noise of the advantages against what each run with re-rollouts gained."""
    rows = []
    for path in trained(folder.parent):
        if path.parent.parent.name.startswith("full_"):  # of other sizes
            continue
        run = history.load(path)
        if "data/advantage_rank" in run.columns and len(run.columns["eval/success_det"].values) > 2:
            det = run.columns["eval/success_det"].values
            known = {key: float(np.mean(run.columns[f"data/advantage_{key}"].values)) for key in ("rank", "snr")}
            rows.append({"run": f"{path.parent.parent.name}/{path.name}", "seed": int(run.meta["seed"]),
                         "gain": float(det[-2:].mean() - det[0]), **known})  # fmt: skip
    same = {repr([row[key] for key in ("seed", "gain", "rank", "snr")]): row for row in rows}  # runs that were borrowed
    rows = list(same.values())
    both = {key: correlation(rows, key) for key in ("rank", "snr")} if len(rows) > 2 else {}
    return {"runs": rows, **both}


def correlation(rows: list[Document], key: str) -> Document:
    """Spearman's, within seeds (each seed's mean taken off), with an interval by drawing seeds again."""
    draw = np.random.default_rng(0)
    seeds = sorted({row["seed"] for row in rows})
    drawn = [of_seeds(rows, list(draw.choice(seeds, len(seeds))), key) for _ in range(2000)]
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    middle = of_seeds(rows, seeds, key)
    return {"rho": middle, "low": float(low), "high": float(high), "n": len(rows), "seeds": len(seeds)}


def of_seeds(rows: list[Document], seeds: list[int], key: str) -> float:
    from relab.train.algos.finetune.equations import spearman

    known, gains = [], []
    for seed in seeds:
        mine = [row for row in rows if row["seed"] == seed]
        known += list(np.array([row[key] for row in mine]) - np.mean([row[key] for row in mine]))
        gains += list(np.array([row["gain"] for row in mine]) - np.mean([row["gain"] for row in mine]))
    return spearman(np.array(known), np.array(gains))


# ---- What standardised advantages can tell


def standard(folder: Path, workers: int, say: Say) -> Document:
    """Rewards times 16, and as they are, with standardised advantages: how far apart are the weights at the end?"""
    settings: dict[str, Any] = {"algo": "finetune", "env": "pickcube-gantry", "advantage": "rerollout", "update": "awr",
                                "envs": 10, "steps": 20, "mc_samples": 2, "epochs": 10, "total_steps": 3, "seed": 10,
                                "eval.every": 0}  # fmt: skip
    from relab.train import checkpoint

    ends = {}
    arms: dict[str, dict[str, Any]] = {"one": {}, "sixteen": {"reward_scale": 16.0}, "raw": {"norm_adv": False},
                                       "raw_sixteen": {"norm_adv": False, "reward_scale": 16.0}}  # fmt: skip
    for name, more in arms.items():
        say(f"  {name}")
        making.one(folder / name, settings | more, "does the scale of advantages matter?", "pickcube")
        ends[name] = checkpoint.load(folder / name / "checkpoints", "latest")[0]["params"]
    return {"standardised": apart(ends["one"], ends["sixteen"]), "raw": apart(ends["raw"], ends["raw_sixteen"])}


def apart(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    """The largest difference of two weights."""
    return float(max(np.abs(a[name] - b[name]).max() for name in a))
