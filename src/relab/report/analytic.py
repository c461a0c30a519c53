"""Which numbers of a run with two Gaussian policies are known before it is run? Measured beside closed forms.

Reads relab's own runs of tracking_ac and the logs of the program it was studied on. The error of a row is that of its
estimate: from n draws where a formula gives it, else as `known` says; `z` is the distance in errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from relab.base.documents import Document
from relab.config.views import flatten
from relab.record.history import History
from relab.stats.gauss_ratio import Expected, Pair

# the names of the same number: relab's column, the studied program's
NAMES = {
    "rho2": ("policy/rho2_mean", "foreign/mean_rho2"), "rho": ("policy/rho_mean", "foreign/mean_rho"),
    "rho_min": ("policy/rho_min", "foreign/min_rho"), "rho_max": ("policy/rho_max", "foreign/max_rho"),
    "gap": ("policy/tracking_gap", "foreign/tracking_gap"), "w_norm": ("value/w_norm", "foreign/w_norm"),
    "teacher": ("value/teacher_error", "foreign/critic_teacher_error"),
    "theta_step": ("policy/theta_step", "foreign/delta_theta_pi_norm"),
}  # fmt: skip
PROBE_NAMES = {"kl": ("action_kl", "dist_action_kl"), "tv": ("action_tv", "dist_action_tv")}
KEYS = {
    "sigma_mu": 1, "sigma_pi": 1, "beta": 1, "trajectories": 1, "horizon": 1, "gamma": 1, "alpha_w": 1,
    "w_init_scale": 1, "theta_init_scale": 1, "theta_mu_offset_scale": 1, "theta_radius": 1, "feature_dim": 1,
    "actor_feature_dim": 1,
}  # fmt: skip
TEACHER = (0.05, (1.0, 1.0, 1.0, 0.1))  # scale of the random part, sizes of the four named weights
ORDER = "the gap of the means is known to its order, which is in the error"
DRAWS = 400  # of the simulated first gap


@dataclass(frozen=True)
class Row:
    """One number: measured, known, and how far apart they may be."""

    name: str
    measured: float
    known: float
    error: float  # standard error of the measurement around the known value
    how: str  # where the known value comes from

    @property
    def z(self) -> float:
        away = self.measured - self.known
        return away / self.error if self.error > 0 else 0.0 if abs(away) <= 1e-9 * abs(self.known) else math.inf

    @property
    def ok(self) -> bool:
        return abs(self.z) <= 4.0


@dataclass(frozen=True)
class GaussianRun:
    """A run, seen as what the identities need."""

    history: History
    key: dict[str, float]

    def column(self, name: str) -> np.ndarray:
        column = next((self.history.columns[n].values for n in NAMES[name] if n in self.history.columns), None)
        return np.zeros(0) if column is None else column

    def probe(self, name: str) -> np.ndarray:
        """A number of the distribution probe, round by round."""
        rows = [row for row in self.history.probes if str(row.get("probe")).startswith("distribution")]
        for key in PROBE_NAMES.get(name, (name,)):
            numbers = [float(row[key]) for row in rows if isinstance(row.get(key), (int, float))]
            if numbers:
                return np.array(numbers)
        return np.zeros(0)

    @property
    def n(self) -> int:
        return int(self.key["trajectories"] * self.key["horizon"])

    @property
    def probe_n(self) -> int:
        rows = [row for row in self.history.probes if str(row.get("probe")).startswith("distribution")]
        return int(next((row["n"] for row in rows if row.get("n")), 4096))

    def pair(self, gap: float = 0.0) -> Pair:
        """The two policies; a gap of the parameters moves the means by about sqrt(gap / P)."""
        return Pair(self.key["sigma_mu"], self.key["sigma_pi"], gap / self.key["actor_feature_dim"])


def gaussian_run(history: History) -> GaussianRun | None:
    """None where the run has no two Gaussian policies."""
    flat = flatten(history.config)
    settings: dict[str, float] = {}
    for name in KEYS:
        near = [v for k, v in flat.items() if k.rpartition(".")[2] == name and isinstance(v, (int, float))]
        near = near or [flat[k] for k in flat if k == f"algo.{name}"]
        if name == "horizon":
            near = [v for k, v in flat.items() if k.endswith("horizon") and not k.startswith("env.")]
        if not near or isinstance(near[0], bool):
            return None
        settings[name] = float(near[0])
    return GaussianRun(history, settings)


def rows(history: History) -> list[Row]:
    """Every identity that the run has the numbers for."""
    run = gaussian_run(history)
    return [] if run is None else [row for each in IDENTITIES for row in each(run)]


# ---- Ratios


def moments(run: GaussianRun) -> Iterator[Row]:
    """E[rho^2] and E[rho] over all rows; a gap of the means enters by its formula."""
    gap, square, mean = run.column("gap"), run.column("rho2"), run.column("rho")
    if len(square) and len(gap) == len(square):
        known = float(np.mean([run.pair(g).moment(2) for g in gap]))
        error = run.pair().square(run.n * len(square)).error or 0.0
        yield Row("E[rho²]", float(square.mean()), known, error, f"σ_μ⁴/(σ_π²(2σ_μ²-σ_π²)) = {run.pair().moment(2):.5f}"
                  " and the gap of the means")  # fmt: skip
        yield Row("ESS / n", float(np.mean(mean**2 / square)), 1.0 / known, error / known**2, "1 / E[rho²]")
    if len(mean):
        yield Row("E[rho]", float(mean.mean()), 1.0, run.pair().mean(run.n * len(mean)).error or 0.0, "1")


def extremes(run: GaussianRun) -> Iterator[Row]:
    """Largest and smallest of n, averaged over iterations."""
    gap, low, high = run.column("gap"), run.column("rho_min"), run.column("rho_max")
    if len(low):
        known = run.pair().least(run.n)
        yield Row(f"smallest of {run.n:,} ratios", float(low.mean()), known.value, per_root(known, len(low)),
                  "R Γ(1+k) Γ(n+1) / Γ(n+1+k)")  # fmt: skip
    if len(high) and len(gap) == len(high):
        known = run.pair().largest(run.n)
        more = float(np.mean([run.pair(g).top for g in gap])) - run.pair().top
        yield Row(f"largest of {run.n:,} ratios", float(high.mean()), known.value + more,
                  per_root(known, len(high)) + more, f"R n / (n + k), R = {run.pair().top:.4f}; {ORDER}")  # fmt: skip


def quantiles(run: GaussianRun) -> Iterator[Row]:
    for q in (95, 99):
        measured = run.probe(f"rho_p{q}")
        if len(measured):
            known = run.pair().quantile(q / 100, run.probe_n)
            error = per_root(known, len(measured)) + mean_shift(run)
            yield Row(f"rho, {q} % quantile", float(measured.mean()), known.value, error, f"R q^k; {ORDER}")


def mean_shift(run: GaussianRun) -> float:
    """By how much a gap of the means moves large ratios: its order."""
    gap = run.column("gap")
    return run.pair(float(gap.mean())).top - run.pair().top if len(gap) else 0.0


def per_root(known: Expected, n: int) -> float:
    return (known.error or 0.0) / math.sqrt(max(n, 1))


def distances(run: GaussianRun) -> Iterator[Row]:
    """KL in closed form: exact but for the gap of the means, which is known to its order; TV by draws."""
    kl, tv, gap = run.probe("kl"), run.probe("tv"), run.column("gap")
    if len(kl) and len(gap):
        known = run.pair(float(gap[-1])).kl()
        yield Row("KL(π, μ) at the end", float(kl[-1]), known, max(known - run.pair().kl(), 1e-9),
                  f"{run.pair().kl():.6f} + gap² / (2 σ_μ²); {ORDER}")  # fmt: skip
    if len(tv):
        noise = run.probe("action_tv_error")
        error = float(noise.mean()) if len(noise) else float(tv.std(ddof=1)) if len(tv) > 1 else 0.0
        more = run.pair(float(gap.mean())).kl() - run.pair().kl() if len(gap) else 0.0
        yield Row("TV(π, μ)", float(tv.mean()), run.pair().tv(), error / math.sqrt(len(tv)) + more,
                  "exp(-r²/2σ_μ²) - exp(-r²/2σ_π²)")  # fmt: skip


# ---- Parameters


def tracking(run: GaussianRun) -> Iterator[Row]:
    """gap_t = (1 - beta)^(2 t) gap_0 while the target policy stands; it moves by what its steps add up to."""
    gap, steps, beta = run.column("gap"), run.column("theta_step"), run.key["beta"]
    if len(gap) < 2 or gap[0] < 1e-12:
        return
    known = float(gap[0]) * (1.0 - beta) ** (2 * (len(gap) - 1))
    size = math.sqrt(known * run.key["actor_feature_dim"])
    way = float(steps.sum()) if len(steps) else 0.0
    yield Row(f"tracking gap after {len(gap)} iterations", float(gap[-1]), known, known * max(2.0 * way / size, 1e-12),
              f"(1-β)^(2t) times the first, {gap[0]:.5f}")  # fmt: skip
    mean, spread = first_gap(run)
    yield Row(
        "tracking gap after the first", float(gap[0]), mean, spread, "first draws, one step, projection; simulated"
    )


def first_gap(run: GaussianRun) -> tuple[float, float]:
    """Mean and spread of the gap after one iteration, over draws of the first parameters."""
    size, rng, gaps = int(run.key["actor_feature_dim"]), np.random.default_rng(0), []
    for _ in range(DRAWS):
        theta = run.key["theta_init_scale"] * rng.standard_normal((size, 2))
        mu = theta + run.key["theta_mu_offset_scale"] * rng.standard_normal((size, 2))
        mu = (1.0 - run.key["beta"]) * mu + run.key["beta"] * theta
        pair = [x * min(1.0, run.key["theta_radius"] / float(np.linalg.norm(x))) for x in (theta, mu)]
        gaps.append(float(np.square(pair[0] - pair[1]).sum()) / size)
    return float(np.mean(gaps)), max(float(np.std(gaps)), 1e-15)


def critic(run: GaussianRun) -> Iterator[Row]:
    """The critic's first numbers, and those after all its steps."""
    N, scale = run.key["feature_dim"], run.key["w_init_scale"]
    norm, teacher = run.column("w_norm"), run.column("teacher")
    if len(norm):
        yield Row("|w| at the start", float(norm[0]), scale * math.sqrt(N), scale / math.sqrt(2.0), "w_init √N")
    if len(teacher):
        spread, named = TEACHER
        each = scale**2 + spread**2
        known = each * (N - 4) / N + (4 * scale**2 + sum(x * x for x in named)) / N
        error = math.sqrt(2 * each**2 * (N - 4) + 4 * scale**2 * sum(x * x for x in named)) / N
        yield Row("teacher error at the start", float(teacher[0]), known, error, "w_init² + 0.05² + 3.01 / N")


IDENTITIES: tuple[Callable[[GaussianRun], Iterator[Row]], ...] = (
    moments, extremes, quantiles, distances, tracking, critic,
)  # fmt: skip


def table(identities: list[Row]) -> list[list[str]]:
    """Head and rows, as text."""
    cells = [
        [r.name, f"{r.measured:.6g}", f"{r.known:.6g}", f"{r.error:.2g}", f"{r.z:+.1f}", r.how] for r in identities
    ]
    return [["number", "measured", "known", "error", "z", "known from"], *cells]


def to_dict(row: Row) -> Document:
    return vars(row) | {"z": row.z, "ok": row.ok}
