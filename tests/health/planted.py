"""Which faults are planted into numbers that relab itself does not log? Into copies of committed healthy runs.

Each function edits the copy of one healthy run as its docstring says; some need several runs beside each other.
make_histories.py calls them.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

Copy = Callable[[str, str], "Editable"]  # (healthy run, name below the fault's folder) -> its files


class Editable:
    """The rows of a copied run; saved by make()."""

    def __init__(self, path: Path):
        self.path = path
        self.rows = {p.name: [json.loads(line) for line in p.read_text().splitlines()] for p in path.glob("*.jsonl")}
        self.meta = json.loads((path / "meta.json").read_text())
        self.config = (path / "config.yaml").read_text()

    @property
    def metrics(self) -> list[dict]:
        return self.rows["metrics.jsonl"]

    def add(self, **columns: Callable[[int], float]) -> None:
        """New columns under foreign/, by the number of the row."""
        for i, row in enumerate(self.metrics):
            row |= {f"foreign/{name}": float(f"{value(i):.6g}") for name, value in columns.items()}

    def change(self, key: str, value: Callable[[int, float], float]) -> None:
        """A column's values by number of the row and value; rows without it stay."""
        held = [row for row in self.metrics if key in row]
        for i, row in enumerate(held):
            row[key] = value(i, row[key])

    def save(self) -> None:
        for name, rows in self.rows.items():
            text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
            (self.path / name).write_text(text)
        (self.path / "meta.json").write_text(json.dumps(self.meta) + "\n")
        (self.path / "config.yaml").write_text(self.config)


def frozen(copy: Copy) -> None:
    """A critic whose steps are 1e-5 of its size; w is drawn with 0.1 * sqrt(2048)."""
    run = copy("cartpole", "")
    run.add(w_norm=lambda i: 4.5304 - 4e-5 * i, delta_w_norm=lambda i: 6e-5 + 1e-6 * (i % 3))
    run.config += "foreign:\n  w_init_scale: 0.1\n  feature_dim: 2048\n"


def capped(copy: Copy) -> None:
    """A solver that stops at 2000 of 2000 iterations; its flag is written as text."""
    run = copy("cartpole", "")
    rows = [{"step": row["step"], "probe": "fixed_point", "value": 0.03, "converged": "False", "num_iters": 2000}
            for row in run.metrics]  # fmt: skip
    run.rows["probes.jsonl"] = rows
    run.config += "foreign:\n  probes.fixed_point.max_iters: 2000\n"


def pinned(copy: Copy) -> None:
    """A dynamics loss under its free bits: exactly 1 in all rows; there are two for each row of the original."""
    run = copy("cartpole", "")
    kept = ("axis", "return/mean", "value/mean", "policy/kl", "policy/clip_share", "optim/lr")
    first = [(row["step"], {key: row[key] for key in kept if key in row}) for row in run.metrics]
    run.rows["metrics.jsonl"] = [{"step": step - 1 + k, **row} for step, row in first for k in (0, 1)]
    run.add(dyn_loss=lambda i: 1.0, recon_loss=lambda i: 2.0 / (1 + i))
    run.config += "foreign:\n  free_nats: 1.0\n"


def ceiling(copy: Copy) -> None:
    """A categorical critic that ends at 20, where the rewards allow 50."""
    run = copy("cartpole", "")
    run.change("value/mean", lambda i, x: 20 * (1 - math.exp(-1.0 - i)))
    run.config += "foreign:\n  v_max: 20.0\n"


def unread(copy: Copy) -> None:
    """80 power iterations were asked for under a name that nobody reads; the probe shows 20."""
    run = copy("cartpole", "")
    run.rows["probes.jsonl"] = [{"step": row["step"], "probe": "stability", "value": 0.99, "power_iters": 20}
                                for row in run.metrics]  # fmt: skip
    run.config += "foreign:\n  stability.power_iters: 20\n  stability.n_power_iters: 80\n"


def ratio(copy: Copy) -> None:
    """The second estimate of the loss lacks a factor of two, and has noise of its own."""
    run = copy("cartpole", "")
    run.add(td_loss=lambda i: 3 + math.sin(i), td_loss_from_q=lambda i: (3 + math.sin(i)) / 2 * (1 + 0.05 * (-1) ** i))


def alias(copy: Copy) -> None:
    """What is called mean_reward is a score."""
    run = copy("pendulum", "")
    run.add(mean_reward=lambda i: 7.0 + 0.1 * (i % 2), score=lambda i: 7.0 + 0.1 * (i % 2))


def misquoted(copy: Copy) -> None:
    """The speed at the end is that of an evaluation."""
    run = copy("cartpole", "")
    rows = run.rows["timing.jsonl"]
    for row in rows:
        row |= {"time/elapsed_s": row["step"] / 1000, "time/sps_mean": 1000.0}
    rows[-1]["time/sps_mean"] = 2600.0


def axes(copy: Copy) -> None:
    """Another writer counts iterations."""
    run = copy("cartpole", "")
    run.metrics.extend({"step": i, "axis": "iteration", "foreign/tail_share": 0.1 * i} for i in range(1, 8))


def label(copy: Copy) -> None:
    """The folder is called lr0.01, the config says something else."""
    copy("cartpole", "lr0.01_s0")


def inert(copy: Copy) -> None:
    """Three values of a setting that nothing depends on; the returns differ by a thousandth."""
    for k, value in enumerate((0.1, 0.2, 0.4)):
        run = copy("pendulum", f"clip-{value}")
        run.config = run.config.replace("clip: 0.2", f"clip: {value}")
        run.meta |= {"config_hash": f"{k:012d}", "id": f"{k:012d}"}
        for row in run.rows["evals.jsonl"]:
            for episode in row["episodes"]:
                episode["return"] = float(f"{episode['return'] * (1 + 0.001 * k):.5g}")


def coupled(copy: Copy) -> None:
    """Without an offset one draw less is made, and the critic begins elsewhere."""
    for k, (offset, norm) in enumerate(((0.0, 4.5817), (0.1, 4.5304), (0.2, 4.5304))):
        run = copy("pendulum", f"offset-{offset}")
        run.config += f"foreign:\n  mu_offset: {offset}\n"
        run.meta |= {"config_hash": f"{k:012d}", "id": f"{k:012d}"}
        run.metrics.insert(0, {"step": 0, "axis": "agent_steps", "foreign/w_norm": norm})
        for row in run.rows["evals.jsonl"]:
            for episode in row["episodes"]:
                episode["return"] *= 1 + 0.2 * k


# ---- Marks of the program itself


def marked(copy: Copy, name: str = "cartpole-3") -> Editable:
    return copy(name, "")


def wrong_sign(copy: Copy) -> None:
    """The advantages' sign is turned."""
    marked(copy).change("data/advantage_td", lambda i, x: -0.4 - 0.01 * i)


def beyond(copy: Copy) -> None:
    """The successor of a terminated state is the next episode's first."""
    marked(copy).change("value/after_end", lambda i, x: 20.0 + i)


def one(copy: Copy) -> None:
    """The old log-probability is the new one."""
    run = marked(copy)
    for key in ("policy/kl", "policy/kl_k1", "policy/kl_max", "policy/clip_share"):
        run.change(key, lambda i, x: 0.0)


def unlearned(copy: Copy) -> None:
    """The value loss after the epochs is the one before."""
    run = marked(copy)
    for row in run.metrics:
        row["value/loss"] = (row["data/advantage_mean"] ** 2 + row["data/advantage_std"] ** 2) / 2


def rewards(copy: Copy) -> None:
    """A thousand per step where the environment gives one."""
    marked(copy).change("data/reward_max", lambda i, x: 1000 * x)


def inputs(copy: Copy) -> None:
    """One number of each observation in other units."""
    marked(copy).change("data/obs_max", lambda i, x: 1e5 * x)


def stale(copy: Copy) -> None:
    """The policy of some iterations ago acts."""
    marked(copy).change("policy/kl_start", lambda i, x: 0.01 + 0.001 * i)


def forgotten(copy: Copy) -> None:
    """Adam's count starts anew in the seventh row."""
    marked(copy).change("optim/adam_steps", lambda i, x: x if i < 6 else 32.0 * (i - 5))


def same_seeds(copy: Copy) -> None:
    """Evaluations use the seeds of the training worlds."""
    from relab.streams import world_seeds

    run = marked(copy)
    for row in run.rows["evals.jsonl"]:
        for episode, seed in zip(row["episodes"], world_seeds(run.meta["seed"], "env", len(row["episodes"]))):
            episode["seed"] = int(seed)


def twice(copy: Copy) -> None:
    """One run under two seeds."""
    for seed in (3, 4):
        run = copy("cartpole-3", f"seed-{seed}")
        run.meta |= {"seed": seed, "id": f"{seed:012d}"}
        run.config = run.config.replace("seed: 7", f"seed: {seed}")


def tries(copy: Copy) -> None:
    """One config and seed, and another result from the start."""
    for number in (1, 2):
        run = copy("cartpole-3", f"try-{number}")
        run.meta |= {"id": f"{number:012d}"}
        run.change("return/mean", lambda i, x, share=0.6 * number: share * x)


# ---- Replay methods: real runs of another library


def never_started(copy: Copy) -> None:
    """The buffer is to be filled for longer than the run lasts."""
    run = copy("dqn-cartpole", "")
    run.config = run.config.replace("learning_starts: 1000", "learning_starts: 1000000")
    run.change("data/updates", lambda i, x: 0.0)


def never_ends(copy: Copy) -> None:
    """The share of random actions stays above 60 %."""
    copy("dqn-cartpole", "").change("policy/exploration", lambda i, x: 0.6 + 0.4 * x)


def hot(copy: Copy) -> None:
    """The temperature grows by half in every row, and the returns fall with it."""
    run = copy("sac-pendulum", "")
    run.change("optim/temperature", lambda i, x: 0.1 * 1.6**i)
    for row in run.rows["evals.jsonl"][-3:]:
        for episode in row["episodes"]:
            episode["return"] = -1200.0


def stuck(copy: Copy) -> None:
    """The temperature's optimiser does nothing."""
    copy("sac-pendulum", "").change("optim/temperature", lambda i, x: 0.2)


def believing(copy: Copy) -> None:
    """The critic expects a thousand where every reward is negative."""
    copy("sac-pendulum", "").change("policy/actor_loss", lambda i, x: x - 200.0 * i)


def torn(copy: Copy) -> None:
    """The critic's loss doubles in every row."""
    copy("sac-pendulum", "").change("value/critic_loss", lambda i, x: x * 8.0**i)


PLANTED: dict[str, Callable[[Copy], None]] = {
    "metric-frozen-at-init": frozen, "probe-hit-cap": capped, "loss-pinned": pinned, "support-ceiling": ceiling,
    "unknown-config-key": unread, "constant-ratio": ratio, "name-is-not-definition": alias,
    "throughput-misquoted": misquoted, "mixed-step-axes": axes, "label-mismatch": label, "inert-axis": inert,
    "coupled-random-streams": coupled, "learning-never-started": never_started, "exploration-never-ends": never_ends,
    "advantage-misaligned": wrong_sign, "value-beyond-end": beyond, "ratio-always-one": one, "critic-frozen": unlearned,
    "reward-out-of-scale": rewards, "observation-out-of-scale": inputs, "stale-data": stale,
    "resume-lost-state": forgotten, "evaluation-on-training-seeds": same_seeds, "duplicated-seeds": twice,
    "same-seed-differs": tries,
    "temperature-runaway": hot, "temperature-stuck": stuck, "q-overestimation": believing, "critic-loss-blow-up": torn,
}  # fmt: skip


def make(slug: str, root: Path) -> None:
    """faulty/SLUG anew, out of the healthy runs below root."""
    target = root / "faulty" / slug
    shutil.rmtree(target, ignore_errors=True)
    made: list[Editable] = []

    def copy(healthy: str, name: str) -> Editable:
        folder = target / name if name else target
        shutil.copytree(root / "healthy" / healthy, folder)
        made.append(Editable(folder))
        made[-1].meta["name"] = folder.name
        return made[-1]

    PLANTED[slug](copy)
    for each in made:
        each.save()
