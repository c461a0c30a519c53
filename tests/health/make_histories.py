"""Where do the histories come from that the rules are tested on? Real runs are in git; the others are planted in them.

`python tests/health/make_histories.py` trains relab's own anew: healthy/NAME with shipped settings, faulty/SLUG with a
bad setting. Runs are thinned to a dozen rows and five evaluations, numbers to four digits, checkpoints to best.json.
thin_foreign.py makes the runs of other libraries. `complete` adds, when the tests start, all that follows from those:
copies of a real run whose rows were edited as the function of the fault here or in planted.py says, and the runs with
gates of gate_histories.py. So faulty/SLUG holds, for each rule, the fault that the rule SLUG must find.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gate_histories
from planted import PLANTED, make

ROOT = Path(__file__).resolve().parent / "histories"
ROWS, EVALUATIONS, SAMPLED = 12, 5, 10
DROPPED = {"time/log_s", "time/eval_s", "time/save_s", "time/elapsed_s", "time/sps_mean", "time/rss_mb"}
DROPPED |= {f"model/surprise_{part}" for part in ("obs", "reward", "continue", "dyn", "rep", "max", "ready")}
FEW = 20  # tensors of a network whose fingerprints are kept one by one
QUIET = {"time/load": 1.0}  # the histories do not depend on what else ran where they were made
Rows = list[dict[str, Any]]

HEALTHY = {
    "cartpole": "env=cartpole seed=0",
    "cartpole-2": "env=cartpole seed=2",
    "cartpole-3": "env=cartpole seed=7 lr=0.001 lr_schedule=adaptive_kl target_kl=0.03",
    "pendulum": "env=pendulum seed=0",
    "pendulum-2": "env=pendulum seed=1",
    "herd": "env=herd seed=0",
    "ladder-value": "env=ladder-value seed=0",
    "ladder-discount": "env=ladder-discount seed=0",
    "ladder-policy": "env=ladder-policy seed=0",
    "ladder-both": "env=ladder-both seed=2",
    "relab-dqn": "algo=dqn env=cartpole seed=0 total_steps=24576 eval.every=3072",
    "relab-sac": "algo=sac env=pendulum seed=0 total_steps=8192 eval.every=1024 algo.steps=128",
    "relab-dreamer": "algo=dreamer total_steps=4608 eval.every=768 algo.envs=16 algo.steps=16 algo.learning_starts=512"
    " algo.updates_per_step=0.25 algo.sequences=8 algo.length=25 algo.deter=64 algo.stoch=16 algo.bins=41"
    " algo.gamma=0.99 algo.lr=0.001 algo.lr_warmup=100 algo.lr_final=1.0 env=cartpole seed=200",
}
SHORT = "env=cartpole seed=0 total_steps=40000"
REAL = {
    "diverged": f"{SHORT} lr=0.1 lr_schedule=constant target_kl=null",
    "worse-than-random": "env=pendulum seed=0 lr=0.1 total_steps=60000",
    "update-too-large": f"{SHORT} lr=0.02 lr_schedule=constant target_kl=0.001",
    "clip-share-high": "env=pendulum seed=0 lr=0.01 epochs=30 total_steps=60000",
    "frozen-parameters": f"{SHORT} lr=1e-12 lr_schedule=constant",
    "policy-not-moving": f"{SHORT} lr=1e-6 lr_schedule=constant",
    "has-not-learned": "env=pendulum seed=0 lr=1e-7 total_steps=60000",
    "entropy-collapse": f"{SHORT} ent_coef=-1",
    "no-policy-signal": f"{SHORT} ent_coef=10",
    "entropy-runaway": "env=pendulum seed=0 ent_coef=1 total_steps=60000",
    "std-exceeds-action-range": "env=pendulum seed=0 ent_coef=1 total_steps=60000",
    "gradient-always-clipped": f"{SHORT} max_grad_norm=1e-6 lr_schedule=constant",
    "critic-not-learning": f"{SHORT} value_coef=0",
    "advantage-off-centre": f"{SHORT} value_coef=0",
    "untrusted-best": "env=pendulum seed=0 eval.episodes=4 total_steps=60000",
    "metric-at-ceiling/a": "env=cartpole seed=2",
    "metric-at-ceiling/b": "env=cartpole seed=2 lam=0.92",
    "unmentioned-config-change/parent": "env=pendulum seed=0 total_steps=60000",
    "unmentioned-config-change/child": "env=pendulum seed=0 ent_coef=0.12 total_steps=60000",
}


# ---- Faults planted into the rows of a real run


class Folder:
    """The files of a thinned run, to be edited."""

    def __init__(self, path: Path):
        self.path = path
        self.metrics, self.evals, self.timing = (read_rows(path / f"{n}.jsonl") for n in ("metrics", "evals", "timing"))
        self.meta = json.loads((path / "meta.json").read_text())

    def save(self) -> None:
        for name in ("metrics", "evals", "timing"):
            write_rows(self.path / f"{name}.jsonl", getattr(self, name))
        (self.path / "meta.json").write_text(json.dumps(self.meta) + "\n")

    def scale_evals(self, factor: Callable[[int], float]) -> None:
        """Multiply the returns of the k-th evaluation."""
        steps = sorted({row["step"] for row in self.evals})
        for row in self.evals:
            for episode in row["episodes"]:
                episode["return"] *= factor(steps.index(row["step"]))


def every(rows: Rows, key: str, change: Callable[[int, float], Any]) -> None:
    for i, row in enumerate(rows):
        if isinstance(row.get(key), (int, float)):
            row[key] = change(i, row[key])


def non_finite(f: Folder) -> None:
    """The policy loss is NaN from the seventh row on."""
    every(f.metrics, "policy/loss", lambda i, x: "NaN" if i >= 6 else x)


def rate_out_of_range(f: Folder) -> None:
    """The clip share is summed over 32 minibatches instead of averaged."""
    every(f.metrics, "policy/clip_share", lambda i, x: 32 * x)


def steps_not_monotone(f: Folder) -> None:
    """A resume did not cut the three rows that it wrote again."""
    f.metrics[9:9] = [dict(row) for row in f.metrics[6:9]]


def value_above_bound(f: Folder) -> None:
    """The value of terminal states is bootstrapped: three times what can be earned."""
    every(f.metrics, "value/mean", lambda i, x: 3 * x)


def uncounted_steps(f: Folder) -> None:
    """Each training step is re-rolled four times."""
    for row in f.metrics:
        row["data/sim_steps"] += 4 * row["data/env_steps"]


def negative_kl(f: Folder) -> None:
    """Old log-probabilities of other actions: the KL's sign turns."""
    every(f.metrics, "policy/kl", lambda i, x: -x)


def weights_grow(f: Folder) -> None:
    """Parameters grow tenfold while gradients fade."""
    every(f.metrics, "optim/param_norm", lambda i, x: x * (1 + i))
    every(f.metrics, "optim/grad_norm", lambda i, x: x * math.exp(-i))


def value_loss_blow_up(f: Folder) -> None:
    """The value loss rises to a thousand times the targets' variance."""
    every(f.metrics, "value/loss", lambda i, x: 1e3 * f.metrics[i]["value/target_mean"] ** 2 if i >= 8 else x)


def value_up_return_down(f: Folder) -> None:
    """From the fourth evaluation on the policy earns a tenth, and the critic believes in ever more."""
    f.scale_evals(lambda k: 0.1 if k >= 3 else 1.0)
    every(f.metrics, "value/mean", lambda i, x: x * (1 + 0.3 * max(0, i - 4)))


def peak_then_collapse(f: Folder) -> None:
    """From the fourth evaluation on the policy earns a tenth."""
    f.scale_evals(lambda k: 0.1 if k >= 3 else 1.0)


def peak_selection(f: Folder) -> None:
    """All evaluations but the third earn 60 %."""
    f.scale_evals(lambda k: 1.0 if k == 2 else 0.6)


def start_already_solved(f: Folder) -> None:
    """The first evaluation is that of the solved policy."""
    f.evals[0]["episodes"], f.evals[1]["episodes"] = f.evals[-2]["episodes"], f.evals[-1]["episodes"]


def lost_its_start(f: Folder) -> None:
    """The evaluations in reverse, in a run that went on from another's checkpoint: from solved to untrained."""
    f.meta["parent"] = "solved-before"
    turned = [row["episodes"] for pair in zip(f.evals[::-2], f.evals[-2::-2]) for row in reversed(pair)]
    for row, episodes in zip(f.evals, turned):
        row["episodes"] = episodes


def truncation_as_termination(f: Folder) -> None:
    """Episodes cut at the horizon are written down as falls."""
    for row in f.evals:
        for episode in row["episodes"]:
            episode["end"] = "fell"


def throughput_drop(f: Folder) -> None:
    """From the seventh row on everything takes five times as long."""
    for key in ("time/collect_s", "time/update_s"):
        every(f.timing, key, lambda i, x: 0.05 * (5 if i >= 6 else 1))


def not_reproducible(f: Folder) -> None:
    """Command and packages are not written down."""
    f.meta["command"], f.meta["packages"] = None, {}


def run_incomplete(f: Folder) -> None:
    """The process died: status running, the last heartbeat long ago, half of the rows."""
    f.meta["status"], f.meta["heartbeat"] = "running", "2026-01-01T00:00:00.000Z"
    for rows in (f.metrics, f.timing, f.evals):
        del rows[6:]


EDITED: dict[str, Callable[[Folder], None]] = {
    "non-finite": non_finite, "rate-out-of-range": rate_out_of_range, "steps-not-monotone": steps_not_monotone,
    "value-above-bound": value_above_bound, "uncounted-steps": uncounted_steps, "negative-kl": negative_kl,
    "weights-grow-gradients-fade": weights_grow, "value-loss-blow-up": value_loss_blow_up,
    "value-up-return-down": value_up_return_down, "peak-then-collapse": peak_then_collapse,
    "peak-selection": peak_selection, "start-already-solved": start_already_solved,
    "resumed-run-lost-its-start": lost_its_start, "truncation-as-termination": truncation_as_termination,
    "throughput-drop": throughput_drop, "not-reproducible": not_reproducible, "run-incomplete": run_incomplete,
    "single-seed": lambda f: None,
}  # fmt: skip


# ---- Making them


def train(settings: str, folder: Path) -> None:
    from relab.config import layers
    from relab.record import provenance
    from relab.train import session

    found = layers.resolve([layers.Layer("command line", layers.parse_overrides(settings.split()))])
    algo = found.config.algo.name
    facts = {
        "command": f"relab train {algo} {settings.removeprefix(f'algo={algo} ')}",
        "parent": None,
        "intent": None,
        **provenance.start().collect(),
    }
    session.start(found.config, folder, found.provenance, facts)


def read_rows(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_rows(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


def spread(count: int, keep: int) -> list[int]:
    """`keep` indices from first to last."""
    return sorted({round(i * (count - 1) / (keep - 1)) for i in range(keep)}) if count > keep else list(range(count))


def digits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: digits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [digits(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) and math.isfinite(value) else value


def thin(source: Path, target: Path) -> None:
    """A small copy without checkpoints, hosts and package lists."""
    target.mkdir(parents=True)
    shutil.copy(source / "config.yaml", target)
    (target / "checkpoints").mkdir()
    shutil.copy(source / "checkpoints" / "best.json", target / "checkpoints")
    for name in ("metrics", "timing"):
        rows = [{k: v for k, v in row.items() if k not in DROPPED} for row in read_rows(source / f"{name}.jsonl")]
        rows = [row | QUIET if "time/load" in row else row for row in rows]
        write_rows(target / f"{name}.jsonl", [digits(rows[i]) for i in spread(len(rows), ROWS)])
    write_rows(target / "evals.jsonl", thin_evals(read_rows(source / "evals.jsonl")))
    kept = [row for row in read_rows(source / "events.jsonl") if row["kind"] != "checkpoint"]
    write_rows(target / "events.jsonl", kept)
    meta = json.loads((source / "meta.json").read_text())
    meta |= {"packages": {"relab": meta["packages"].get("relab")}, "machine": {}, "name": target.name}
    meta |= {"commit": None, "patch": None, "untracked": None, "load": {"one_minute": 1.0, "cores": 2}}
    if len(meta.get("init_parts", {})) > FEW:
        del meta["init_parts"]
    (target / "meta.json").write_text(json.dumps(meta) + "\n")


def thin_evals(rows: Rows) -> Rows:
    steps = sorted({row["step"] for row in rows})
    kept = {steps[i] for i in spread(len(steps), EVALUATIONS)}
    found = [digits(row) for row in rows if row["step"] in kept]
    for row in found:
        del row["episodes"][20 if row["mode"] == "det" else SAMPLED :]
        for i, episode in enumerate(row["episodes"]):
            episode["seed"] = i  # twenty digits each, and no rule reads them
            episode.pop("info", None)
    return found


def complete(root: Path) -> None:
    """All histories below `root`: a copy of the real ones, and what follows from them."""
    shutil.copytree(ROOT, root)
    for slug, fault in EDITED.items():
        edit(slug, fault, root)
    for slug in PLANTED:
        make(slug, root)
    gate_histories.make(root)


def edit(slug: str, fault: Callable[[Folder], None], root: Path) -> None:
    shutil.copytree(root / "healthy" / "cartpole", root / "faulty" / slug)
    folder = Folder(root / "faulty" / slug)
    folder.meta["name"] = slug
    fault(folder)
    folder.save()


def main(names: list[str]) -> int:
    """relab's own real runs anew, all (`all`) or those named; those of other libraries stay."""
    real = {f"healthy/{n}": s for n, s in HEALTHY.items()} | {f"faulty/{n}": s for n, s in REAL.items()}
    short = {name.partition("/")[2]: name for name in real}
    strange = [name for name in names if name != "all" and name not in short]
    if strange or not names:
        print(f"give `all`, or some of {', '.join(short)}; what is planted or edited is made when tests start")
        return 64
    wanted = real if "all" in names else {short[name]: real[short[name]] for name in names}
    with tempfile.TemporaryDirectory() as scratch:
        cache: dict[str, Path] = {}
        for i, (name, settings) in enumerate(wanted.items()):
            if settings not in cache:
                cache[settings] = Path(scratch) / str(i)
                print(f"{name}: {settings}")
                train(settings, cache[settings])
            shutil.rmtree(ROOT / name, ignore_errors=True)
            thin(cache[settings], ROOT / name)
    if "faulty/unmentioned-config-change/child" not in wanted:
        return 0
    child = Folder(ROOT / "faulty" / "unmentioned-config-change" / "child")
    child.meta |= {"parent": "parent", "intent": "more steps for the same policy"}
    child.save()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
