"""Where do the fixtures come from that no tool need write? Small runs with made-up numbers, in the tools' own layouts.

They are not in git: `complete` writes them beside a copy of the others when the tests start (fixtures() of where.py).
Spinning Up and Acme, which need MPI or TensorFlow, are written with the columns and settings that their code logs.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path
from typing import Any

from relab.formats.read import tfevents

FIXTURES = Path(__file__).parent / "fixtures"
BEGIN = 1_700_000_000


def fresh(root: Path, name: str) -> Path:
    (root / name).mkdir(parents=True, exist_ok=True)  # what a tool wrote may lie beside it
    return root / name


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


# ---- PufferLib: frames of the dashboard, and a file of 4.0


def frame(epoch: int, steps: str, losses: dict[str, str], stats: list[tuple[str, str]]) -> str:
    """One drawing, 80 columns wide; names that do not fit are cut."""

    def row(text: str) -> str:
        return f"│{text:<78}│"

    left = [("Env", "puffer_toy"), ("Params", "12.3K"), ("Steps", steps), ("SPS", "101.5K"), ("Epoch", str(epoch)),
            ("Uptime", f"{epoch // 60}m {epoch % 60}s"), ("Remaini…", "1m 2s")]  # fmt: skip
    right = [(name if len(name) <= 14 else name[:13] + "…", value) for name, value in losses.items()]
    middle = ["Forwa…", "Env", "Copy", "Misc", "Train", "Forwa…", "Learn", "Copy"]
    lines = [row("  PufferLib 3.0 🐡             CPU: 12.0%  GPU: 0.0%  DRAM: 16.5%  VRAM: 0.0%"), row("")]
    lines.append(
        row(f"  {'Summary':<9}{'Value':>13}    {'Evaluate':<8}{'0s':>6}{'0%':>5}    {'Losses':<14}{'Value':>9}")
    )
    for i, name in enumerate(middle):
        key, value = left[i] if i < len(left) else ("", "")
        loss, number = right[i] if i < len(right) else ("", "")
        lines.append(row(f"  {key:<9}{value:>13}      {name:<6}{'0s':>6}{'0%':>5}    {loss:<14}{number:>9}"))
    lines += [row(""), row(f"  {'User Stats':<23}{'Value':>12}    {'User Stats':<23}{'Value':>12}")]
    for i in range(0, len(stats), 2):
        a, b = stats[i], stats[i + 1] if i + 1 < len(stats) else ("", "")
        lines.append(row(f"  {a[0]:<23}{a[1]:>12}    {b[0]:<23}{b[1]:>12}"))
    return "\x1b[0;0H╭" + "─" * 78 + "╮\n" + "\n".join(lines) + "\n╰" + "─" * 78 + "╯\n\n"


def short(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1e3:.1f}K" if number < 1e6 else f"{number / 1e6:.1f}M"


def puffer_log(epochs: int, batch: int = 8192) -> str:
    text = "a warning of a library\n" + frame(0, "0", {}, [])
    for epoch in range(1, epochs + 1):
        losses = {"policy_loss": f"{-0.01 * epoch:.3f}", "value_loss": "0.125", "entropy": f"{2 - 0.01 * epoch:.3f}",
                  "old_approx_kl": "-0.001", "approx_kl": "0.002", "clipfrac": "0.100", "importance": "1.000",
                  "explained_variance": f"{0.9 - 1 / epoch:.3f}"}  # fmt: skip
        stats = [("perf", "0.500"), ("score", f"{epoch:.3f}"), ("episode_return", f"{0.5 * epoch:.3f}"),
                 ("episode_length", "100.000"), ("n", "12.500")]  # fmt: skip
        text += frame(epoch, short(epoch * batch), losses, stats if epoch > 1 else [])
    return text


def pufferlib(root: Path) -> None:
    folder = fresh(root, "pufferlib")
    (folder / "v3").mkdir()
    (folder / "v3" / "train.log").write_text(puffer_log(70))
    logs = folder / "v4" / "puffer_toy"
    logs.mkdir(parents=True)
    (logs / "1700000000000.json").write_text(json.dumps({**PUFFER_ARGS, "metrics": puffer_metrics(NATIVE)}))
    slowly = {**PUFFER_ARGS, "slowly": True, "gpu_id": 1, "metrics": puffer_metrics(TORCH)}
    (logs / "1700000100000.json").write_text(json.dumps(slowly))
    logs = folder / "v5" / "puffer_toy"
    logs.mkdir(parents=True)
    (logs / "1700000200000.ini").write_text(puffer_ini())
    (logs / "1700000300000.ini").write_text(puffer_ini())
    (logs / "1700000300000.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in puffer_rows(NATIVE))
        + '{"agent_steps": 819200, "eval/score": 30, "eval/n": 10010}\n'
    )


# As PufferLib 4.0 writes them: all arguments, those of the section `base` at the top, then the metrics, in one line.
PUFFER_ARGS: dict[str, Any] = {
    **{"load_model_path": None, "load_id": None, "render_mode": "auto", "wandb": False, "wandb_project": "puffer4"},
    **{"wandb_group": "debug", "tag": None, "slowly": False, "env_name": "puffer_toy", "rank": 0, "world_size": 1},
    **{"gpu_id": 0, "profile": False, "checkpoint_dir": "checkpoints", "log_dir": "logs", "checkpoint_interval": 200},
    **{"eval_episodes": 10000, "cudagraphs": 10, "seed": 73, "reset_state": True},
    "vec": {"total_agents": 128, "num_buffers": 2, "num_threads": 16},
    "env": {"frameskip": 4, "width": 576},
    "policy": {"hidden_size": 128, "num_layers": 4, "expansion_factor": 1},
    "torch": {"network": "MinGRU", "encoder": "DefaultEncoder", "decoder": "DefaultDecoder"},
    "train": {"gpus": 1, "seed": 42, "total_timesteps": 819200, "learning_rate": 0.015, "anneal_lr": 1, "gamma": 0.995,
              "gae_lambda": 0.9, "replay_ratio": 1.0, "clip_coef": 0.2, "vf_coef": 2.0, "max_grad_norm": 1.5,
              "ent_coef": 0.001, "minibatch_size": 8192, "horizon": 64},
    "sweep": {"metric": "score", "goal": "maximize", "downsample": 5,
              "train": {"learning_rate": {"distribution": "log_normal", "min": 1e-05, "max": 0.1, "scale": 0.5}}},
}  # fmt: skip
NATIVE = {"policy": -0.01, "value": 0.3, "entropy": 1.5, "total": 0.6, "old_kl": 0.001, "kl": 0.01, "clipfrac": 0.15}
TORCH = {"policy_loss": -0.01, "value_loss": 0.3, "entropy": 1.5, "old_approx_kl": 0.001, "approx_kl": 0.01,
         "clipfrac": 0.15, "importance": 1.0, "explained_variance": 0.5}  # fmt: skip


def puffer_rows(losses: dict[str, float]) -> list[dict[str, float]]:
    """What the trainer logs, here after every epoch of 128 agents and 64 steps."""
    rows = []
    for epoch in range(1, 101):
        row = {"SPS": 90000 + epoch, "agent_steps": 8192 * epoch, "uptime": 0.6 * epoch, "epoch": epoch}
        row |= {"env/score": 0.25 * epoch, "env/perf": 0.01 * epoch, "env/episode_return": 0.5 * epoch}
        row |= {"env/episode_length": 100.0, "env/n": 40.0}
        row |= {f"loss/{name}": round(value * (1 - 0.002 * epoch), 6) for name, value in losses.items()}
        row |= {"perf/rollout": 0.25, "perf/eval_gpu": 0.125, "perf/train": 0.25, "util/gpu_percent": 80.0}
        rows.append(row)
    return rows


def puffer_metrics(losses: dict[str, float], points: int = 5) -> dict[str, list[float]]:
    """Means over equal parts of the steps, then the last row, whose env/ values are those of the evaluation."""
    rows = puffer_rows(losses)
    last = {**rows[-1], "env/score": 30.0, "env/episode_return": 60.0, "env/n": 10010.0}
    metrics: dict[str, list[float]] = {name: [] for name in rows[0]}
    size = len(rows) // (points - 1)
    for part in range(points - 1):
        for name, values in metrics.items():
            values.append(sum(row[name] for row in rows[part * size : (part + 1) * size]) / size)
    for name, values in metrics.items():
        values.append(last[name])
    return metrics


def puffer_ini() -> str:
    """As PufferLib 5.0 writes the same: sections, no losses."""
    sections = {"base": {k: v for k, v in PUFFER_ARGS.items() if not isinstance(v, dict)}}
    sections |= {name: PUFFER_ARGS[name] for name in ("vec", "env", "policy", "train")}
    metrics = {name: values for name, values in puffer_metrics(NATIVE).items() if not name.startswith("loss/")}
    sections["metrics"] = {name: ",".join(f"{v:.17g}" for v in values) for name, values in metrics.items()}
    parts = [f"\n[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()) for name, rows in sections.items()]
    return "# PufferLib log v1\n" + "".join(parts)


# ---- A loop that writes its own next config


def loop(root: Path) -> None:
    folder = fresh(root, "loop")
    base = {"learning_rate": 0.002, "ent_coef": 0.01, "clip_coef": 0.15, "seed": 4, "total_timesteps": 80_000,
            "batch_size": 8192}  # fmt: skip
    runs = [("2025-01-01T000000Z", None, {}, {}), ("2025-01-01T010000Z", "2025-01-01T000000Z", {"clip_coef": 0.12},
                                                   {"ent_coef": 0.1})]  # fmt: skip
    for name, parent, overrides, slipped in runs:
        _loop_run(folder / name, parent, {**base, **overrides, **slipped}, overrides, base)
    write_json(folder / "best.json", {"run_id": runs[0][0], "success_rate": 12.5, "mean_reward": 3.0})
    unfinished = folder / "2025-01-01T020000Z"
    unfinished.mkdir()
    write_json(unfinished / "config.json", {"env_name": "puffer_toy", "train": base})
    write_json(unfinished / "override.json", {"train": {}})
    write_json(unfinished / "run.json", {"run_id": unfinished.name, "metadata": {"parent_run": runs[1][0]}})


def _loop_run(
    folder: Path, parent: str | None, train: dict[str, Any], overrides: dict[str, Any], base: dict[str, Any]
) -> None:
    folder.mkdir()
    weights = {"load_model_path": "/models/a.pt"} if parent else {}
    write_json(folder / "config.json", {"env_name": "puffer_toy", "train": train, **weights})
    write_json(folder / "override.json", {"train": overrides})
    changed = {key: {"old": base[key], "new": value} for key, value in train.items() if base[key] != value}
    write_json(folder / "config_diff.json", {"train": changed})
    about = {"run_id": folder.name, "created_at": "2025-01-01T00:00:00Z", "metadata": {"parent_run": parent}}
    write_json(folder / "run.json", about)
    metrics = {"success_rate": 0.25, "mean_reward": 3.0, "sps": 1e5, "agent_steps": 81_920, "epoch": 10}
    write_json(folder / "trainer_summary.json", {"timestamp": "2025-01-01T00:10:00Z", "metrics": metrics})
    write_json(folder / "summary.json", {"run_id": folder.name, "seed": 4, **metrics})
    (folder / "notes.txt").write_text("Went well; nothing else was changed.\n")
    if parent:
        (folder / "train.log").write_text(puffer_log(10))


# ---- A curriculum with a gate, begun twice


def swarm(root: Path) -> None:
    folder = fresh(root, "swarm") / "escape_v1"
    folder.mkdir()
    (folder / "command.txt").write_text(
        "python train.py \\\n--run_name escape_v1 --total_iterations 20 --num_envs 8 --n_steps 16 \\\n"
        "--gate_success_early 0.10 --curriculum 5:10,10:10 --skip_final --seed 77\n"
    )
    rows, gates = [], []
    for begin, last, process in ((BEGIN, 8, "host.100"), (BEGIN + 1000, 20, "host.200")):
        _swarm_board(folder / "tb", begin, last, process)
        for i in range(4, last + 1, 4):
            time = _utc(begin + 10 * i)
            rows.append({"iteration": i, "timestamp": time, "summary": {"episodes": 6, "avg_survival": 0.5 + 0.01 * i},
                         "early_death_fraction": 0.2 - 0.005 * i, "stage_label": "stage1:a"})  # fmt: skip
            gates.append(
                {"iteration": i, "timestamp": time, "event": {"event": "hold" if i < 20 else "advance", "stage": 0}}
            )
    write_rows(folder / "eval_multi_history.jsonl", rows)
    write_rows(folder / "penalty_stage_debug.jsonl", gates)
    trace = [{"iteration": i, "entropy_coef": 0.02, "tail_stage_label": "stage1:a" if i < 11 else "stage2:b",
              "tail_stage_type": "main"} for i in range(1, 21)]  # fmt: skip
    write_json(folder / "schedule_trace.json", {"generated_at": _utc(BEGIN + 3000), "trace": trace})
    clusters = {"total": 8, "clusters": [{"share": 0.5, "count": 4}, {"share": 0.25, "count": 2}]}
    write_rows(folder / "step_one_clusters.jsonl", [{**row, "clusters": clusters} for row in rows[2:]])
    stats = {"summary": {"spawn_radius": {"count": 4, "mean": 0.5, "std": 0.2, "p10": 0.3}, "sampled_episodes": 4}}
    write_rows(folder / "pre_roll_stats.jsonl", [{**row, **stats} for row in rows[2:]])


def _utc(unix: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(unix, UTC).isoformat().replace("+00:00", "Z")


def _swarm_board(folder: Path, begin: int, last: int, process: str) -> None:
    """Training counts steps (128 an iteration), the evaluations count iterations."""
    name = "PPO_1" if begin == BEGIN else "PPO_2"
    with tfevents.Writer(folder / name, wall=begin, suffix=f"{process}.1") as train:
        for i in range(1, last + 1):
            train.scalar("rollout/ep_rew_mean", 10.0 + i, 128 * i, wall=begin + 10 * i)
    with tfevents.Writer(folder / "probes", wall=begin, suffix=f"{process}.0") as judge:
        for i in range(4, last + 1, 4):
            judge.scalar("eval_probe/survival", 0.5, i, wall=begin + 10 * i)


# ---- Curves and probes


def probes(root: Path) -> None:
    folder = fresh(root, "probes")
    for name, last in (("tmos0_s0", 10), ("tmos1_s0", 4)):
        _probe_run(folder / name, last)


def _probe_run(folder: Path, last: int) -> None:
    (folder / "probes").mkdir(parents=True)
    write_json(folder / "config.json", {"seed": 0, "outer_iters": 10, "gamma": 0.9, "probes": {"n_power_iters": 80}})
    write_json(folder / "params.json", {"run_id": folder.name, "seed": 0, "offset": 0.5 if "1" in folder.name else 0.0})
    lines = ["iter,td_loss,w_norm,clip_fraction,fixed_point_gap"]
    for i in range(last):
        gap = 0.25 if i % 5 == 0 else math.nan
        lines.append(f"{i},{1e-5 * (i + 1)},4.5,0.0,{gap}")
    (folder / "learning_curves.csv").write_text("\n".join(lines) + "\n")
    rows = ["iter,w_gap,w_gap_std,converged,num_iters,batch_size"]
    rows += [f"{i},0.25,0.01,False,2000,4096" for i in range(0, last, 5)]
    (folder / "probes" / "fixed_point_probe.csv").write_text("\n".join(rows) + "\n")


# ---- Spinning Up and Acme


def spinup(root: Path) -> None:
    folder = fresh(root, "spinup")
    for seed in (0, 1):
        settings = {"steps_per_epoch": 4000, "gamma": 0.99, "seed": seed, "exp_name": "x", "max_ep_len": 1000,
                    "env_fn": f"<function <lambda> at 0x7f00{seed}>", "ac_kwargs": {"hidden_sizes": [64, 64]},
                    "logger": {f"<spinup.utils.logx.EpochLogger object at 0x7f11{seed}>": {"first_row": True}},
                    "logger_kwargs": {"output_dir": f"/tmp/data/x_s{seed}", "exp_name": "x"}}  # fmt: skip
        ppo = {"clip_ratio": 0.2, "pi_lr": 3e-4, "vf_lr": 1e-3, "lam": 0.97, "target_kl": 0.01, "train_pi_iters": 80}
        _spin(folder / f"ppo_s{seed}", [_ppo_row(i, seed) for i in range(12)], settings | ppo | {"epochs": 12})
        sac = {"polyak": 0.995, "lr": 1e-3, "alpha": 0.2, "replay_size": 1_000_000, "batch_size": 100}
        _spin(folder / f"sac_s{seed}", [_sac_row(i, seed) for i in range(12)], settings | sac | {"epochs": 12})


def _spin(folder: Path, rows: list[dict[str, float]], settings: dict[str, object]) -> None:
    """As logx.Logger writes them: a header, tabs, and JSON with a tab behind each colon."""
    folder.mkdir()
    lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
    (folder / "progress.txt").write_text("\n".join(lines) + "\n")
    text = json.dumps(settings, separators=(",", ":\t"), indent=4, sort_keys=True)
    (folder / "config.json").write_text(text)


def acme(root: Path) -> None:
    """As its CSVLogger writes them: a folder a label, sorted fields, lines that end as those of Python's csv."""
    folder = fresh(root, "acme") / "20260101-000000" / "logs"
    for label in ("train", "evaluator", "learner"):
        (folder / label).mkdir(parents=True)
        rows = [_acme_row(label, i) for i in range(1, 13)]
        with open(folder / label / "logs.csv", "a") as file:
            writer = csv.DictWriter(file, fieldnames=sorted(rows[0]), extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


def _acme_row(label: str, i: int) -> dict[str, float]:
    shared = {"actor_steps": 200 * i, "actor_episodes": i, "learner_steps": 150 * i, "learner_walltime": 3.5 * i}
    if label == "learner":
        return {**shared, "critic_loss": 4.0 / i, "policy_loss": -2.0 * i}
    episode = {"episode_length": 200, "episode_return": 10.0 * i + (label == "evaluator"), "steps_per_second": 800.0}
    return {**shared, **episode} | (
        {"evaluator_steps": 200 * i, "evaluator_episodes": i} if label == "evaluator" else {}
    )


def _returns(i: int, seed: int) -> dict[str, float]:
    mean = 20.0 * (i + 1) + math.sin(i + seed)
    return {"AverageEpRet": mean, "StdEpRet": 5.0, "MaxEpRet": mean + 9, "MinEpRet": mean - 9}


def _ppo_row(i: int, seed: int) -> dict[str, float]:
    return {"Epoch": i, **_returns(i, seed), "EpLen": 200.0, "AverageVVals": 3.0 + i, "StdVVals": 1.0, "MaxVVals": 9.0,
            "MinVVals": 0.0, "TotalEnvInteracts": (i + 1) * 4000, "LossPi": -0.01, "LossV": 40.0 / (i + 1),
            "DeltaLossPi": -0.01, "DeltaLossV": -2.0, "Entropy": 1.4 - 0.02 * i, "KL": 0.012, "ClipFrac": 0.1,
            "StopIter": 30.0, "Time": 4.0 * (i + 1)}  # fmt: skip


def _sac_row(i: int, seed: int) -> dict[str, float]:
    test = {name.replace("Ep", "TestEp"): value + 2 for name, value in _returns(i, seed).items()}
    return {"Epoch": i + 1, **_returns(i, seed), **test, "EpLen": 200.0, "TestEpLen": 200.0,
            "TotalEnvInteracts": (i + 1) * 4000 - 1, "AverageQ1Vals": 2.0 * i, "StdQ1Vals": 1.0, "MaxQ1Vals": 30.0,
            "MinQ1Vals": -1.0, "AverageQ2Vals": 2.0 * i, "StdQ2Vals": 1.0, "MaxQ2Vals": 30.0, "MinQ2Vals": -1.0,
            "AverageLogPi": -1.0, "StdLogPi": 0.5, "MaxLogPi": 2.0, "MinLogPi": -4.0, "LossPi": -2.0 * i,
            "LossQ": 3.0 / (i + 1), "Time": 9.0 * (i + 1)}  # fmt: skip


# ---- Tables and lines of JSON


def plain(root: Path) -> None:
    table = fresh(root, "csv")
    for seed in (0, 1):
        _write(table / "folders" / f"a_seed{seed}" / "progress.csv", _rows(seed))
        settings = {"algo": "PPO", "env_id": "CartPole-v1", "seed": seed, "lr": 3e-4, "logdir": f"runs/a_seed{seed}"}
        (table / "folders" / f"a_seed{seed}" / "config.json").write_text(json.dumps(settings))
    long = [{"algo": algo, "seed": seed} | row for algo in ("ppo", "sac") for seed in (0, 1) for row in _rows(seed)[:6]]
    _write(table / "long" / "all.csv", long, ";")
    _write(table / "parts" / "train.csv", _rows(2))
    _write(
        table / "parts" / "eval.csv", [{"step": row["global_step"], "reward": row["reward"]} for row in _rows(2)[::5]]
    )
    (table / "parts" / ".hydra").mkdir()
    (table / "parts" / ".hydra" / "config.yaml").write_text("seed: 5\nenv:\n  name: Ant-v5\nagent:\n  lr: 3e-4\n")
    lines = fresh(root, "jsonl")
    for seed in (0, 1):
        path = lines / f"b_seed{seed}" / "metrics.jsonl"
        path.parent.mkdir(parents=True)
        nested = [{"iteration": i, "train": row, "note": "x"} for i, row in enumerate(_rows(seed))]
        path.write_text("".join(json.dumps(row) + "\n" for row in nested))


def _rows(seed: int) -> list[dict[str, float]]:
    """A curve that rises, one that falls, and one that is not there from the start; the NaN is Python's own."""
    return [
        {"global_step": 2048 * i, "reward": round(10 * i + math.sin(i + seed), 3), "entropy": round(0.69 * 0.95**i, 4),
         "kl": math.nan if i == 7 else 0.01, "fancy": i % 3}
        for i in range(1, 21)
    ]  # fmt: skip


def _write(path: Path, rows: list[dict[str, float]], mark: str = ",") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [mark.join(rows[0]), *(mark.join(str(cell) for cell in row.values()) for row in rows)]
    path.write_text("".join(line + "\n" for line in lines))


MAKERS = {"pufferlib": pufferlib, "loop": loop, "swarm": swarm, "probes": probes, "spinup": spinup, "acme": acme,
          "plain": plain}  # fmt: skip


def complete(root: Path) -> None:
    """All fixtures below `root`."""
    shutil.copytree(FIXTURES, root)
    for maker in MAKERS.values():
        maker(root)
