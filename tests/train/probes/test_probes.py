"""Do probes measure what they say, against direct solutions and loops, and change nothing?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from kill.subjects import TRACKING
from relab.base.jsonl import read_jsonl
from relab.config.base import ConfigError
from relab.config.probes import Distribution, FixedPoint, Plateau, Probes, QKernel, Stability
from relab.stats.gauss_ratio import Pair
from relab.train import probes
from relab.train.algos import tracking_ac as ac
from relab.train.kernels.crew import Crew
from relab.train.probes import linear
from relab.train.probes.companion import stands_still
from relab.train.probes.distribution import combine, distribution, members, mmd
from relab.train.probes.fixed_point import fixed_point
from relab.train.probes.q_kernel import q_kernel
from relab.train.probes.round import Room
from relab.train.probes.stability import stability
from relab.train.probes.tracking_round import TrackingRound
from small_runs import run
from train.algos.tracking_small import iterate, make


def at(s: ac.State, **cfg: object) -> TrackingRound:
    return TrackingRound(s.worlds.env, s, Probes(**{"fixed_point": FixedPoint(samples=600), **cfg}))  # type: ignore[arg-type]


def dense(system: linear.Linear) -> np.ndarray:
    phi, psi = system.phi.astype(float), system.psi.astype(float)
    return (phi * system.rho[:, None]).T @ psi / system.n


# ---- The fixed point


def test_the_fixed_point_solves_the_system_far_below_1e_8():
    s = make()
    (found,) = fixed_point(at(s))
    want = np.linalg.solve(dense(at(s).linear), at(s).linear.b)
    assert found.more["residual"] < 1e-10
    assert found.more["converged"] is True
    assert found.value == pytest.approx(np.linalg.norm(s.agent.w - want), rel=1e-7)


def test_expected_update_is_zero_at_the_fixed_point():
    s = make()
    system = at(s).linear
    w = system.solve(1e-9).w
    mean = system.weighted(system.delta(w))
    assert np.linalg.norm(mean) < 1e-9 * np.linalg.norm(system.weighted(system.reward))


def test_without_bootstrap_the_fixed_point_is_the_teacher():
    s = make(gamma=0.0)
    (found,) = fixed_point(at(s))
    assert found.more["teacher_distance"] < 1e-7 * np.linalg.norm(s.agent.teacher_N)
    assert found.value == pytest.approx(math.sqrt(40 * np.square(s.agent.w - s.agent.teacher_N).mean()), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.9])
def test_the_capped_iteration_run_long_enough_agrees_with_the_solution(gamma: float):
    s = make(gamma=gamma, feature_dim=12, alpha_w=4.0)
    cfg = FixedPoint(samples=600, capped=True, max_iters=200_000, capped_tol=1e-12)
    solved, capped = fixed_point(at(s, fixed_point=cfg))
    assert capped.more["converged"] is True
    assert capped.more["num_iters"] < 200_000
    assert capped.more["to_w_sharp"] < 1e-6
    assert capped.value == pytest.approx(solved.value, rel=1e-6)


@pytest.mark.parametrize("size", [8, 40])
def test_thousands_of_steps_in_a_small_space_are_the_plain_iteration(size: int):
    s = make()
    system = at(s).linear
    matrix = dense(system)
    args = (lambda v: matrix @ v, system.b, s.agent.w, 0.3, 2000, 1e-7)
    plain, small = linear.iterate(*args), linear.iterate_small(*args, size=size)
    assert (small.steps, small.converged) == (plain.steps, plain.converged)
    assert small.w == pytest.approx(plain.w, abs=1e-7)
    assert small.last_step == pytest.approx(plain.last_step, rel=1e-4)


def test_an_iteration_that_stops_at_its_cap_says_so():
    s = make()
    _, capped = fixed_point(at(s, fixed_point=FixedPoint(samples=600, capped=True)))
    assert capped.more["converged"] is False
    assert capped.more["num_iters"] == capped.more["max_iters"] == 2000


def test_the_error_of_the_gap_is_the_spread_over_samples():
    s = make(gamma=0.9, feature_dim=12)
    found = []
    for k in range(40):
        s.counts.iteration = k  # another sample
        found += fixed_point(at(s, fixed_point=FixedPoint(samples=6000)))
    spread, told = np.std([f.value for f in found], ddof=1), np.sqrt(np.mean([f.noise**2 for f in found]))
    assert told == pytest.approx(spread, rel=3 / math.sqrt(2 * 39))  # the spread of 40 is known to 11 %


def test_as_many_unknowns_as_rows_have_no_error_to_give():
    (found,) = fixed_point(at(make(), fixed_point=FixedPoint(samples=30)))
    assert found.more["rows_per_feature"] <= 1
    assert math.isnan(found.noise)


# ---- Stability


@pytest.mark.parametrize("alpha_w", [0.02, 40.0, 4000.0])
def test_the_radius_is_that_of_the_dense_matrix(alpha_w: float):
    s = make(alpha_w=alpha_w)
    (found,) = stability(at(s, stability=Stability(krylov=38)))
    J = np.eye(40) - math.sqrt(4) * alpha_w / math.sqrt(40) * dense(at(s).linear)
    radius = np.abs(np.linalg.eigvals(J)).max()
    assert found.value == pytest.approx(1 - radius, rel=1e-4)
    assert found.more["stable"] == (radius <= 1)


def test_training_multiplies_its_sums_by_the_step_scale():
    s = make(alpha_w=3.0)
    (found,) = stability(at(s))
    assert found.more["step_scale_measured"] == pytest.approx(3.0 / (2.0 * 15), rel=1e-5)
    assert found.more["step_scale_ratio"] == pytest.approx(1.0, abs=1e-5)


def test_a_wrong_normalisation_in_training_is_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ac, "root_steps", lambda cfg: cfg.trajectories * cfg.horizon)  # B T instead of sqrt(B) T
    (found,) = stability(at(make()))
    assert found.more["step_scale_ratio"] == pytest.approx(0.5, rel=1e-5)


def test_an_unstable_step_size_really_diverges():
    s = make(alpha_w=4000.0)
    (found,) = stability(at(s))
    rows = iterate(s, 6)
    assert found.value < 0
    assert rows[-1]["value/w_norm"] > 100 * rows[0]["value/w_norm"]


# ---- Kernel and distributions


@pytest.mark.parametrize("trained", [True, False])
def test_the_kernel_gives_the_loss(trained: bool):
    s = make()
    rows = iterate(s, 2) if trained else []
    (found,) = q_kernel(at(s))
    assert found.value == pytest.approx(found.more["td_loss"], rel=1e-12)
    assert found.more["batch"] == ("training" if trained else "own")
    if trained:
        assert found.value == pytest.approx(rows[-1]["value/td_loss"], rel=1e-12)
    part = q_kernel(at(s, q_kernel=QKernel(trajectories=2)))[0]
    assert part.more["rel_diff"] > 0, "half of the batch is another sample"


def test_mmd_is_the_sum_over_all_pairs():
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((6, 5, 3)).astype(np.float32) + shift for shift in (0.0, 0.7))
    a, b = x.reshape(-1, 3).astype(float), y.reshape(-1, 3).astype(float)

    def kernel(p: np.ndarray, q: np.ndarray) -> float:
        return float(np.mean([[math.exp(-((u - v) @ (u - v)) / (2 * 1.3**2)) for v in q] for u in p]))

    value, noise = mmd(x, y, 1.3, Crew(1))
    assert mmd(x, y, 1.3, Crew(2)) == (value, noise)
    assert value == pytest.approx(kernel(a, a) + kernel(b, b) - 2 * kernel(a, b), abs=1e-6)
    assert 0 < noise < value
    assert mmd(x, x.copy(), 1.3, Crew(1))[0] == pytest.approx(0.0, abs=1e-6)
    assert members(x, 5).sum(0).tolist() == [6.0] * 5
    assert combine(np.ones((3, 2, 2)), np.ones((2, 2)), np.ones(2, bool)) == 0.0


def test_distribution_of_equal_means_has_the_closed_forms():
    s = make(theta_mu_offset_scale=0.0)
    (found,) = distribution(at(s, distribution=Distribution(samples=6000)))
    pair, more = Pair(0.35, 0.3), found.more
    assert more["action_kl"] == pytest.approx(pair.kl(), rel=1e-12)
    assert abs(more["action_tv"] - pair.tv()) < 4 * more["action_tv_error"]
    for name, want in (("rho2_mean", pair.square(6000)), ("rho_mean", pair.mean(6000))):
        assert abs(more[name] - want.value) < 4 * want.error
        assert more[f"{name}_error"] == pytest.approx(want.error, rel=0.3)
    for q in (95, 99):
        want = pair.quantile(q / 100, 6000)
        assert abs(more[f"rho_p{q}"] - want.value) < 4 * want.error
    assert more["rho_max"] <= pair.top * (1 + 1e-9)
    assert more["ess_share"] == pytest.approx(pair.effective(), abs=4 * pair.square(6000).error)
    assert more["rho_clipped_share"] == 0.0, "the clip at 10 never binds"


def test_on_policy_there_is_no_distance():
    s = make(sigma_mu=0.3, beta=1.0, theta_mu_offset_scale=0.0)
    (found,) = distribution(at(s))
    assert (found.more["action_kl"], found.more["action_tv"], found.more["rho2_mean"]) == (0.0, 0.0, 1.0)


# ---- When, and without side effects


def test_a_plateau_is_relative_to_the_noise_whatever_the_size():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(30)
    for size in (1e-6, 1.0, 1e6):
        assert stands_still([size * (5 + 0.1 * e) for e in noise], Plateau())
        assert not stands_still([size * (5 + 0.1 * e - 0.05 * k) for k, e in enumerate(noise)], Plateau())
    assert not stands_still([1.0, 2.0, math.nan], Plateau())


def test_rounds_come_on_schedule_at_a_plateau_and_at_the_end(tmp_path: Path):
    run(tmp_path / "run", algo="tracking_ac", **TRACKING)
    rows, problems = read_jsonl(tmp_path / "run" / "probes.jsonl")
    assert problems == []
    asked = {row["iteration"]: row["asked_by"] for row in rows}
    assert {k for k, why in asked.items() if why == "schedule"} == {3, 5, 7, 9, 11, 12}
    assert set(asked.values()) == {"schedule", "plateau"}
    assert {row["probe"] for row in rows} == {"distribution", "fixed_point", "capped", "stability", "q_kernel"}
    assert all({"value", "noise", "n"} <= set(row) for row in rows)


def test_probes_change_no_byte_of_the_metrics(tmp_path: Path):
    plain = {key: value for key, value in TRACKING.items() if not key.startswith("probes")}
    run(tmp_path / "with", algo="tracking_ac", **TRACKING)
    run(tmp_path / "without", algo="tracking_ac", **plain)
    for name in ("metrics.jsonl", "evals.jsonl"):
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()
    assert (tmp_path / "without" / "probes.jsonl").read_bytes() == b""


@pytest.mark.slow
def test_threads_change_no_probe(tmp_path: Path):
    for threads in ("1", "2"):
        run(tmp_path / threads, algo="tracking_ac", threads=threads, **TRACKING)
    one, two = (read_jsonl(tmp_path / threads / "probes.jsonl")[0] for threads in ("1", "2"))
    assert [row["value"] for row in one] == pytest.approx([row["value"] for row in two], rel=1e-6)


def test_an_algorithm_has_its_own_probes():
    assert probes.of("ppo") == ["value_vs_rerun"]
    assert "value_vs_rerun" not in probes.of("tracking_ac"), "its critic is of states and actions"
    with pytest.raises(ConfigError, match="made for tracking_ac"):
        probes.check("stability", "ppo")


# ---- Threads


def test_products_with_the_matrix_are_those_of_the_features():
    system = at(make()).linear
    v = np.random.default_rng(0).standard_normal(system.size)
    assert system.steered(v) == pytest.approx(dense(system) @ v, abs=1e-6)
    assert system.steered(v, turned=True) == pytest.approx(dense(system).T @ v, abs=1e-6)


def test_rounds_in_one_room_find_what_rounds_in_rooms_of_their_own_find():
    s, room = make(), Room()
    for k in range(3):
        s.counts.iteration = k
        shared = TrackingRound(s.worlds.env, s, Probes(fixed_point=FixedPoint(samples=600)), None, room)
        for probe in (fixed_point, stability):
            assert [found.row(0, k) for found in probe(shared)] == [found.row(0, k) for found in probe(at(s))]


def test_together_gives_all_threads_and_takes_them_back():
    before = torch.get_num_threads()
    with Crew(2).together():
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
