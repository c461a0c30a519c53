"""What is shown, step by step? Each step makes its runs and returns plain numbers; the page only lays them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relab import stats
from relab.base.documents import Document, Settings
from relab.config.probes import FixedPoint, Probes
from relab.config.tracking_ac import MODES, TrackingAC
from relab.formats.read import find
from relab.health import examine
from relab.lab.faults import replacements
from relab.lab.faults.seams import planted
from relab.lab.studies import Say
from relab.lab.studies.torus import runs
from relab.record import history
from relab.record.history import History
from relab.report import analytic
from relab.report.tables import key_settings
from relab.train.algos import tracking_ac as ac
from relab.train.contract import Setup
from relab.train.envs.torus import Torus
from relab.train.probes.fixed_point import fixed_point
from relab.train.probes.stability import stability
from relab.train.probes.tracking_round import TrackingRound

ORIGINAL: Settings = {
    "algo": "tracking_ac", "env": "torus", "algo.theta_mu_offset_scale": 0.277777777778, "probes.every": 5,
    "probes.fixed_point.capped": True, "save.every": 32_000, "seed": 0,
}  # fmt: skip
CORPUS = Path("../shared/corpus/torus")
MOVED = ("value/w_norm", "value/teacher_error", "value/td_loss")
SAMPLED = ("value/td_loss", "value/teacher_error", "policy/tracking_gap", "policy/rho2_mean", "value/w_norm")
SAMPLED_PROBES = ("capped", "stability", "distribution")
SEEDS = range(5)


def last(run: History, name: str) -> float:
    return float(run.columns[name].values[-1])


def first(run: History, name: str) -> float:
    return float(run.columns[name].values[0])


def interval(values: list[float]) -> Document:
    ends = stats.mean_over_seeds(values)
    return {"mean": float(ends[0]), "low": float(ends[1]), "high": float(ends[2]), "values": values}


def findings(folder: Path) -> list[str]:
    """Warnings and errors of the examiner, a line per kind; those that another one explains are left out."""
    by_slug: dict[str, list[Any]] = {}
    for finding in examine.examine(folder).main:
        if finding.severity in ("warning", "error") and not finding.explained_by:
            by_slug.setdefault(finding.slug, []).append(finding)
    return [f"{slug}{f' (in {len(each)} runs)' if len(each) > 1 else ''}: {each[0].message}"
            for slug, each in by_slug.items()]  # fmt: skip


def named(arms: dict[str, list[History]]) -> dict[str, list[str]]:
    """Which kinds of finding each arm's runs have, run by run."""
    every = {arm: [slug.partition(":")[0] for r in group for slug in findings(r.folder)] for arm, group in arms.items()}
    return {arm: [f"{slug} in {slugs.count(slug)} of {len(arms[arm])} runs" for slug in dict.fromkeys(slugs)]
            for arm, slugs in every.items()}  # fmt: skip


# ---- The original report


def original(folder: Path, workers: int, say: Say) -> Document:
    run = runs.one(folder / "run", ORIGINAL | {"threads": workers}, "the original report's config")
    timing = {name: float(run.columns[f"time/{name}_s"].values.sum())
              for name in ("collect", "update", "probes", "log", "save", "eval")}  # fmt: skip
    probes: dict[str, list[Document]] = {}
    for row in run.probes:
        probes.setdefault(row["probe"], []).append(row)
    return {
        "identities": [analytic.to_dict(row) for row in analytic.rows(run)],
        "moved": {name: [first(run, name), last(run, name)] for name in MOVED},
        "steps_w": float(run.columns["value/w_step"].values.sum()), "rounds": len(probes["fixed_point"]),
        "fixed_point": probes["fixed_point"][-1], "capped": probes["capped"][-1], "stability": probes["stability"][-1],
        "not_converged": sum(not row["converged"] for row in probes["capped"]),
        "kernel_difference": max(row["rel_diff"] for row in probes["q_kernel"]),
        "residual": max(row["residual"] for row in probes["fixed_point"]),
        "clipped": float(run.columns["policy/rho_clipped_share"].values.max()),
        **as_reported(run, probes),
        "timing": timing, "seconds": float(run.columns["time/elapsed_s"].values[-1]),
        "examine": findings(folder / "run"),
    }  # fmt: skip


def as_reported(run: History, probes: dict[str, list[Document]]) -> Document:
    """Key settings and the first and last rows in the original report's form: iterations from 0, probes beside them."""
    iterations = run.columns["data/iteration"].values.astype(int) - 1
    measured = {name: {row["iteration"] - 1: row["value"] for row in probes[name]} for name in SAMPLED_PROBES}
    rows = [{"iter": int(k), **{name: float(run.columns[name].values[i]) for name in SAMPLED},
             **{name: values.get(int(k)) for name, values in measured.items()}}
            for i, k in enumerate(iterations)]  # fmt: skip
    return {"key_hparams": f"outer_iters={len(rows)}, {key_settings(run.config)}", "head": rows[:8], "tail": rows[-8:]}


def corpus(folder: Path, workers: int, say: Say) -> Document:
    """Skipped, and said so, where the logs are not at hand."""
    if not CORPUS.is_dir():
        return {"skipped": "the original logs are not beside the repository"}
    by_run = {
        source.name: [analytic.to_dict(row) for row in analytic.rows(find.read(source))] for source in find.find(CORPUS)
    }
    return {"runs": by_run, "examine": findings(CORPUS)}


# ---- Sanity


def sanity(folder: Path, workers: int, say: Say) -> Document:
    """Two iterations of each mode at full size."""
    return {mode: mode_numbers(mode) for mode in MODES}


def mode_numbers(mode: str) -> Document:
    cfg = TrackingAC(**MODES[mode])
    world: Any = Torus()
    s = ac.init(Setup(world, cfg, 0, 1))
    theta = s.agent.theta_pi.copy()
    for _ in range(2):
        ac.collect(s)
        row = ac.update(s)
    assert s.batch is not None
    at = TrackingRound(s.worlds.env, s, Probes(fixed_point=FixedPoint()))
    (solved,) = fixed_point(at)
    (steady,) = stability(at)
    return {
        "ratio_off_one": float(np.abs(s.batch.rho_TB - 1.0).max()), "gap": row["policy/tracking_gap"],
        "theta_moved": float(np.linalg.norm(s.agent.theta_pi - theta)),
        "w_sharp_to_teacher": solved.more["teacher_distance"], "residual": solved.more["residual"],
        "w_sharp_norm": solved.more["w_sharp_norm"], "w_gap": solved.value, "w_gap_noise": solved.noise,
        "one_minus_radius": steady.value, "one_minus_radius_noise": steady.noise,
        "step_scale_ratio": steady.more["step_scale_ratio"],
    }  # fmt: skip


# ---- Coupled draws


def coupled(folder: Path, workers: int, say: Say) -> Document:
    """Offset 0 against 0.2778 with all first parameters from one generator, and with named streams."""
    variants: Settings = {}
    for name, seams in (("coupled", {"first parameters": replacements.one_generator}), ("named", {})):
        with planted(seams):
            arms = {offset: [short(folder / name / f"offset={offset:g}-s{seed}", offset, seed) for seed in SEEDS]
                    for offset in (0.0, 0.2778)}  # fmt: skip
        td = {offset: [float(r.columns["value/td_loss"].values.mean()) for r in arm] for offset, arm in arms.items()}
        change = [100.0 * (b / a - 1.0) for a, b in zip(td[0.0], td[0.2778])]
        norms = {offset: [first(r, "value/w_norm") for r in arm] for offset, arm in arms.items()}
        starts = [[r.meta["init_parts"]["w"] for r in arm] for arm in arms.values()]
        variants[name] = {"change_percent": interval(change), "w_norm": {str(k): v for k, v in norms.items()},
                          "same_start": starts[0] == starts[1], "examine": findings(folder / name)}  # fmt: skip
    return variants


def short(folder: Path, offset: float, seed: int) -> History:
    settings = {"algo": "tracking_ac", "env": "torus", "total_steps": 38_400, "seed": seed, "eval.episodes": 2,
                "algo.theta_mu_offset_scale": offset}  # fmt: skip
    return runs.one(folder, settings, "does the offset shift other draws?")


# ---- Experiments


def learns(folder: Path, workers: int, say: Say, fresh: bool = False) -> Document:
    arms, answers = runs.run_experiment("learns", folder, say, fresh)
    name = "value/teacher_error"
    down = {arm: interval([first(r, name) / last(r, name) for r in group]) for arm, group in arms.items()}
    return {"answer": answers[0].text, "down": down, "examine": named(arms)}  # fmt: skip


def sharp(folder: Path, workers: int, say: Say, fresh: bool = False) -> Document:
    arms, answers = runs.run_experiment("sharp", folder, say, fresh)
    distances = {arm: [distance(r) for r in group] for arm, group in arms.items()}
    down = {arm: interval([row["before"] / row["after"] for row in group]) for arm, group in distances.items()}
    return {"answer": answers[0].text, "down": down, "distances": distances, "examine": named(arms)}  # fmt: skip


def distance(run: History, samples: int = 50_000, parts: int = 4) -> dict[str, float]:
    """|w - w_sharp| before and after training, free of w_sharp's own error: products of independent solutions.

    E[(w - a).(w - b)] = |w - w_sharp|^2 for independent solutions a and b, whereas |w - a|^2 is too large by a's noise.
    """
    state = loaded(run.folder)
    begun = ac.init(Setup(state.worlds.env, state.cfg, state.seed, 1))
    solutions = [sample_solution(state, k, samples) for k in range(parts)]
    numbers = {"noise": float(np.linalg.norm(np.std(solutions, axis=0, ddof=1)) / np.sqrt(parts))}
    for name, w in (("before", begun.agent.w), ("after", state.agent.w)):
        pairs = [(w - a) @ (w - b) for i, a in enumerate(solutions) for b in solutions[:i]]
        numbers[name] = float(np.sqrt(max(np.mean(pairs), 0.0)))
        numbers[f"{name}_error"] = float(np.std(pairs, ddof=1) / np.sqrt(len(pairs)) / (2 * max(numbers[name], 1e-12)))
    return numbers


def sample_solution(state: ac.State, part: int, samples: int) -> np.ndarray:
    """w_sharp from one more sample; the count only names its random stream."""
    state.counts.iteration = 1_000_000 + part
    cfg = Probes(fixed_point=FixedPoint(samples=samples, k_mc=1))
    return TrackingRound(state.worlds.env, state, cfg).linear.solve(1e-9).w


def loaded(folder: Path) -> ac.State:
    """A run's last state."""
    from relab.config import layers
    from relab.train import checkpoint
    from relab.train.session import make_env, setup_of

    cfg = layers.from_dict(layers.read_yaml(folder / "config.yaml"))
    tree, _ = checkpoint.load(folder / "checkpoints", "latest")
    state = ac.init(setup_of(cfg, make_env(cfg)))
    state.load({key: value for key, value in tree.items() if not key.startswith("with_")})
    return state


def offset(folder: Path, workers: int, say: Say, fresh: bool = False) -> Document:
    arms, answers = runs.run_experiment("offset", folder, say, fresh)
    metrics = ("value/td_loss", "value/w_norm", "value/teacher_error", "policy/rho2_mean")
    table = {arm: {name: interval([tail(r, name) for r in group]) for name in metrics} for arm, group in arms.items()}
    control = next(iter(arms))
    change = {arm: interval([percent(a, b, metrics[0]) for a, b in zip(arms[control], group)])
              for arm, group in arms.items() if arm != control}  # fmt: skip
    return {"answers": [a.text for a in answers], "table": table, "change_percent": change, "examine": findings(folder)}


def percent(a: History, b: History, name: str) -> float:
    return 100.0 * (tail(b, name) / tail(a, name) - 1.0)


def tail(run: history.History, name: str, rows: int = 20) -> float:
    return float(run.columns[name].values[-rows:].mean())
