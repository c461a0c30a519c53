"""Does a head draw what it says, tell how likely that was, and hand the environment an action inside its box?"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats as reference

from relab.record.spec import Action
from relab.train.kernels.rng import mix
from relab.train.nets.heads import Head

DISCRETE = Head.of(Action("discrete", 1, n=(4,)))
MULTI = Head.of(Action("multi_discrete", 3, n=(2, 3, 4)))
GAUSSIAN = Head.of(Action("continuous", 2, low=(-1.0, -1.0), high=(1.0, 1.0)))
ALL = pytest.mark.parametrize("head", [DISCRETE, MULTI, GAUSSIAN], ids=["discrete", "multi", "gaussian"])


def outputs(head: Head, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    out = rng.normal(size=(n, head.out_dim)).astype(np.float32)
    return out, np.array([-0.7, 0.4][: head.dim], np.float32) if head.gaussian else np.zeros(0, np.float32)


def draw(head: Head, out: np.ndarray, log_std: np.ndarray, rng: np.ndarray, n_mode: int = 0):
    action, logp = head.action_buffer(len(out)), np.empty(len(out), np.float32)
    head.sample(out, log_std, rng, n_mode, action, logp)
    return action, logp


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(a) for a in arrays]


def test_a_head_follows_from_the_action():
    assert (DISCRETE.out_dim, MULTI.out_dim, GAUSSIAN.out_dim) == (4, 9, 2)
    assert (DISCRETE.gaussian, MULTI.gaussian, GAUSSIAN.gaussian) == (False, False, True)
    assert MULTI.max_entropy == pytest.approx(math.log(24))
    assert GAUSSIAN.max_entropy == math.inf
    assert MULTI.action_buffer(5, 2).shape == (5, 2, 3)
    assert (MULTI.action_buffer(1).dtype, GAUSSIAN.action_buffer(1).dtype) == (np.int64, np.float32)


# ---- Log-probability and entropy


def test_gaussian_log_prob_and_entropy_equal_scipys():
    out, log_std = outputs(GAUSSIAN, 50)
    action = (out + np.random.default_rng(1).normal(size=out.shape)).astype(np.float32)
    expected = reference.norm.logpdf(action, out, np.exp(log_std)).sum(1)
    np.testing.assert_allclose(GAUSSIAN.log_prob(*tensors(out, log_std, action)), expected, rtol=1e-5, atol=1e-5)
    entropy = GAUSSIAN.entropy(*tensors(out, log_std))
    assert entropy.shape == (50,)
    np.testing.assert_allclose(entropy, reference.norm.entropy(0, np.exp(log_std)).sum(), rtol=1e-6)


@pytest.mark.parametrize("head", [DISCRETE, MULTI], ids=["discrete", "multi"])
def test_categorical_log_prob_and_entropy_equal_torchs(head):
    out, log_std = outputs(head, 50)
    action, _ = draw(head, out, log_std, mix(np.arange(50)))
    parts = [torch.distributions.Categorical(logits=b) for b in torch.from_numpy(out).split(head.sizes, -1)]
    expected = sum(part.log_prob(torch.from_numpy(action[:, i])) for i, part in enumerate(parts))
    np.testing.assert_allclose(
        head.log_prob(torch.from_numpy(out), None, torch.from_numpy(action)), expected, rtol=1e-5
    )
    entropy = sum(part.entropy() for part in parts)
    np.testing.assert_allclose(head.entropy(torch.from_numpy(out), None), entropy, rtol=1e-5)


@ALL
def test_log_prob_and_entropy_take_leading_dimensions(head):
    """[T, B, ...] as in sequences gives the numbers of [T * B, ...]."""
    out, log_std = outputs(head, 12)
    action, _ = draw(head, out, log_std, mix(np.arange(12)))
    x, s, a = tensors(out, log_std, action)
    shaped = head.log_prob(x.view(3, 4, -1), s, a.view(3, 4, -1)), head.entropy(x.view(3, 4, -1), s)
    for found, flat in zip(shaped, (head.log_prob(x, s, a), head.entropy(x, s))):
        assert found.shape == (3, 4)
        np.testing.assert_allclose(found.reshape(-1), flat, rtol=1e-6)


def test_uniform_choices_have_the_greatest_entropy():
    flat = MULTI.entropy(torch.zeros(1, 9), None)
    assert float(flat) == pytest.approx(MULTI.max_entropy)


# ---- Sampling


@ALL
def test_the_log_probability_of_a_draw_is_that_of_log_prob(head):
    out, log_std = outputs(head, 300)
    action, logp = draw(head, out, log_std, mix(np.arange(300)), n_mode=20)
    expected = head.log_prob(*tensors(out, log_std, action)).numpy()
    np.testing.assert_allclose(logp, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head", [DISCRETE, MULTI], ids=["discrete", "multi"])
def test_choices_come_as_often_as_they_should(head):
    n, at = 40_000, 0
    out = np.repeat(outputs(head, 1, seed=3)[0], n, axis=0)
    action, _ = draw(head, out, np.zeros(0, np.float32), mix(np.arange(n)))
    for i, size in enumerate(head.sizes):
        p = np.exp(out[0, at : at + size].astype(np.float64))
        p /= p.sum()
        share = np.bincount(action[:, i], minlength=size) / n
        assert (np.abs(share - p) < 4 * np.sqrt(p * (1 - p) / n)).all(), (i, share, p)
        at += size


def test_components_are_drawn_independently():
    n = 40_000
    action, _ = draw(MULTI, np.zeros((n, 9), np.float32), np.zeros(0, np.float32), mix(np.arange(n)))
    joint = np.bincount(action @ [12, 4, 1], minlength=24) / n
    assert (np.abs(joint - 1 / 24) < 4.5 * math.sqrt(23 / 24 / 24 / n)).all()


def test_gaussian_draws_have_mean_spread_and_shape():
    n = 40_000
    mean, log_std = np.array([[0.5, -2.0]], np.float32), np.array([-1.0, 0.5], np.float32)
    action, _ = draw(GAUSSIAN, np.repeat(mean, n, axis=0), log_std, mix(np.arange(n)))
    z = (action - mean) / np.exp(log_std)
    assert (np.abs(z.mean(0)) < 4 / math.sqrt(n)).all()
    assert (np.abs(z.var(0) - 1) < 4 * math.sqrt(2 / n)).all()
    assert abs((z[:, 0] * z[:, 1]).mean()) < 4 / math.sqrt(n)
    assert all(reference.kstest(z[:, k], "norm").pvalue > 1e-4 for k in range(2))


def test_a_stream_goes_on_and_gives_other_draws():
    out, log_std = outputs(GAUSSIAN, 5)
    rng = mix(np.arange(5))
    first, second = draw(GAUSSIAN, out, log_std, rng)[0], draw(GAUSSIAN, out, log_std, rng)[0]
    assert (first != second).all()


@ALL
def test_the_first_rows_take_the_mode(head):
    out, log_std = outputs(head, 40)
    rng = mix(np.arange(40))
    before = rng.copy()
    action, _ = draw(head, out, log_std, rng, n_mode=15)
    if head.gaussian:
        mode = out
    else:
        mode = np.stack([b.argmax(-1) for b in torch.from_numpy(out).split(head.sizes, -1)], 1)
    assert np.array_equal(action[:15], mode[:15])
    assert not np.array_equal(action[15:], mode[15:])
    assert np.array_equal(rng[:15], before[:15])  # the mode takes no random numbers
    assert (rng[15:] != before[15:]).all()


@ALL
def test_the_mode_is_the_likeliest_action(head):
    out, log_std = outputs(head, 40)
    _, mode = draw(head, out, log_std, mix(np.arange(40)), n_mode=40)
    for seed in range(20):
        _, drawn = draw(head, out, log_std, mix(np.arange(40) + 1000 * seed))
        assert (drawn <= mode + 1e-6).all()


@ALL
def test_a_row_draws_the_same_in_any_batch(head):
    """Same bytes for the whole batch, any split of it, and any order."""
    out, log_std = outputs(head, 30)
    action, logp = draw(head, out, log_std, mix(np.arange(30)), n_mode=5)
    for cuts in ((0, 30), (0, 5, 30), (0, 1, 2, 17, 30)):
        parts = []
        for a, b in pairwise(cuts):
            n_mode = min(max(5 - a, 0), b - a)
            parts.append(draw(head, out[a:b], log_std, mix(np.arange(a, b)), n_mode))
        assert np.concatenate([p[0] for p in parts]).tobytes() == action.tobytes()
        assert np.concatenate([p[1] for p in parts]).tobytes() == logp.tobytes()
    order = np.random.default_rng(0).permutation(np.arange(5, 30))
    shuffled, _ = draw(head, np.ascontiguousarray(out[order]), log_std, mix(order))
    assert shuffled.tobytes() == action[order].tobytes()


def test_a_certain_choice_is_always_taken():
    out = np.tile(np.array([-300, 0, -300, -300], np.float32), (1000, 1))
    action, logp = draw(DISCRETE, out, np.zeros(0, np.float32), mix(np.arange(1000)))
    assert (action == 1).all()
    np.testing.assert_allclose(logp, 0, atol=1e-6)


# ---- What the environment gets


def box(low: tuple[float, ...], high: tuple[float, ...], squash: bool = False) -> Head:
    return Head.of(Action("continuous", len(low), low=low, high=high), squash)


def test_choices_reach_the_environment_as_they_are():
    action = np.array([[1, 2, 3]])
    assert MULTI.to_env(action) is action


def test_raw_one_is_the_end_of_the_box():
    head = box((-2.0, 0.0), (2.0, 10.0))  # one of them not around 0
    raw = np.array([[-1, -1], [0, 0], [0.5, 0.5], [1, 1], [7, -7]], np.float32)
    expected = [[-2, 0], [0, 5], [1, 7.5], [2, 10], [2, 0]]
    assert np.array_equal(head.to_env(raw), np.array(expected, np.float32))
    assert head.to_env(raw).dtype == np.float32


def test_squashing_is_a_tanh_into_the_box():
    head = box((-2.0, 0.0), (2.0, 10.0), squash=True)
    raw = np.array([[0, 0], [0.5, -0.5], [50, -50]], np.float32)
    t = math.tanh(0.5)
    np.testing.assert_allclose(head.to_env(raw), [[0, 5], [2 * t, 5 - 5 * t], [2, 0]], rtol=1e-6)


@pytest.mark.parametrize("squash", [False, True])
def test_a_direction_without_bounds_gets_the_raw_action(squash):
    head = box((-math.inf, -2.0), (math.inf, 2.0), squash)
    found = head.to_env(np.array([[25.0, 25.0], [-25.0, -25.0]], np.float32))
    assert np.array_equal(found, np.array([[25, 2], [-25, -2]], np.float32))


@pytest.mark.parametrize("squash", [False, True])
def test_a_single_bound_is_kept(squash):
    head = box((0.5, -math.inf), (math.inf, 0.5), squash)
    found = head.to_env(np.array([[-3.0, -3.0], [3.0, 3.0]], np.float32))
    assert np.array_equal(found, np.array([[0.5, -3.0], [3.0, 0.5]], np.float32))


def test_the_widest_finite_box_does_not_overflow():
    top = float(np.finfo(np.float32).max)
    found = box((-top,), (top,)).to_env(np.array([[0.0], [1.0], [-1.0]], np.float32))
    assert np.array_equal(found, np.array([[0], [top], [-top]], np.float32))


@pytest.mark.parametrize("squash", [False, True])
def test_actions_are_inside_the_box_to_the_last_bit(squash):
    """mid + half can round past the end: 1,000 boxes of odd numbers."""
    rng = np.random.default_rng(0)
    ends = np.sort(rng.normal(size=(2, 1000)).astype(np.float32), axis=0)
    head = box(tuple(map(float, ends[0])), tuple(map(float, ends[1])), squash)
    raw = np.array([[-20.0], [-1.0], [0.3], [1.0], [20.0]], np.float32).repeat(1000, axis=1)
    found = head.to_env(raw)
    assert (found >= ends[0]).all()
    assert (found <= ends[1]).all()
    np.testing.assert_allclose(found[[0, 4]], ends, rtol=1e-6)
