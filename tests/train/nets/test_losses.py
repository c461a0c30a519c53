"""Is the PPO loss what the paper says, and is the hand-written derivative its derivative?

Single rows with hand numbers hold `losses.ppo`; torch's autograd of `losses.ppo` then holds the fast kernels.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relab.train.nets import losses
from relab.train.nets.heads import Head
from relab.train.nets.losses import STATS, Batch, Coefs

GAUSSIAN = Head((), 3, low=(-1.0,) * 3, high=(1.0,) * 3)
ONE_CHOICE = Head((4,), 1)
SEVERAL = Head((2, 3, 4), 3)
HEADS = pytest.mark.parametrize("head", [GAUSSIAN, ONE_CHOICE, SEVERAL], ids=["gaussian", "discrete", "multi"])
INF = math.inf
PLAIN = Coefs(0.2, INF, 0.5, 0.0, 1.0)


# ---- One row by hand: two choices with probabilities 0.75 and 0.25, action 0 was taken

LOGITS = [math.log(3.0), 0.0]
ENTROPY = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))


def one_row(ratio: float, adv: float, v=0.0, v_old=0.0, target=0.0, mask=1.0, c=PLAIN):
    """(loss, stats by name, max ratio, d loss / d logits, d loss / d v) where pi_old(a) = 0.75 / ratio."""
    out = torch.tensor([LOGITS], dtype=torch.float64, requires_grad=True)
    value = torch.tensor([v], dtype=torch.float64, requires_grad=True)
    columns = {"logp": math.log(0.75 / ratio), "adv": adv, "target": target, "v_old": v_old, "mask": mask}
    rows = {name: torch.tensor([x], dtype=torch.float64) for name, x in columns.items()}
    rows["action"] = torch.tensor([[0]])
    loss, sums, top = losses.ppo(Head((2,), 1), out, None, value, rows, c)
    loss.backward()
    assert out.grad is not None
    assert value.grad is not None
    return float(loss.detach()), dict(zip(STATS, sums.tolist())), top, out.grad[0].tolist(), float(value.grad)


@pytest.mark.parametrize(
    ("ratio", "adv", "policy_loss", "slope"),
    [
        # slope: d loss / d ln pi(a) = -r A, or 0 where the clip binds
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.2),
        (1.5, 2.0, -2.4, 0.0),  # good and already likelier: held at 1.2 A
        (0.5, 2.0, -1.0, -1.0),  # good but less likely: pulled back, not held
        (1.1, -2.0, 2.2, 2.2),
        (1.5, -2.0, 3.0, 3.0),  # bad and likelier: pushed down, not held
        (0.5, -2.0, 1.6, 0.0),  # bad and already less likely: held at 0.8 A
    ],
)
def test_surrogate_by_hand(ratio, adv, policy_loss, slope):
    loss, stats, top, d_logits, d_v = one_row(ratio, adv)
    assert loss == pytest.approx(policy_loss)
    assert stats["policy_loss"] == pytest.approx(policy_loss)
    assert stats["clipped"] == float(abs(ratio - 1) > 0.2)  # outside, whichever way the advantage points
    assert stats["kl"] == pytest.approx(ratio - 1 - math.log(ratio))
    assert stats["kl_k1"] == pytest.approx(-math.log(ratio))
    assert stats["entropy"] == pytest.approx(ENTROPY)
    assert (stats["rows"], top, d_v) == (1.0, pytest.approx(ratio), 0.0)
    # d ln pi(0) / d logits = (1 - 0.75, -0.25)
    assert d_logits == pytest.approx([slope * 0.25, slope * -0.25])
    assert stats["pg_push"] == pytest.approx(2 * (slope * 0.25) ** 2)


@pytest.mark.parametrize(
    ("v", "v_old", "target", "clip_value", "value_loss", "slope", "clipped"),
    [
        (3.0, 1.0, 2.5, INF, 0.125, 0.5, 0),
        (3.0, 1.0, 2.5, 2.5, 0.125, 0.5, 0),  # moved by 2, may move by 2.5
        (3.0, 1.0, 2.5, 0.5, 0.5, 0.0, 1),  # moved too far: judged at 1.5, where no gradient is
        (3.0, 1.0, -1.0, 0.5, 8.0, 4.0, 1),  # moved too far and away: the larger error counts, and pulls back
        (-3.0, -1.0, -2.5, 0.5, 0.5, 0.0, 1),
    ],
)
def test_value_loss_by_hand(v, v_old, target, clip_value, value_loss, slope, clipped):
    loss, stats, _, _, d_v = one_row(1.0, 0.0, v, v_old, target, c=Coefs(0.2, clip_value, 0.5, 0.0, 1.0))
    assert loss == pytest.approx(0.5 * value_loss)  # value_coef
    assert stats["value_loss"] == pytest.approx(value_loss)
    assert stats["value_clipped"] == clipped
    assert d_v == pytest.approx(0.5 * slope)


def test_entropy_bonus_by_hand():
    """d H / d logit_j = -p_j (ln p_j + H); the bonus is subtracted from the loss."""
    loss, stats, _, d_logits, _ = one_row(1.0, 0.0, c=Coefs(0.2, INF, 0.5, 0.1, 1.0))
    assert loss == pytest.approx(-0.1 * ENTROPY)
    slopes = [0.1 * p * (math.log(p) + ENTROPY) for p in (0.75, 0.25)]
    assert d_logits == pytest.approx(slopes)
    assert d_logits[0] > 0 > d_logits[1]  # descending makes the likely choice less likely
    assert stats["ent_push"] == pytest.approx(sum(s * s for s in slopes))


def test_a_masked_row_counts_for_nothing():
    loss, stats, top, d_logits, d_v = one_row(3.0, 5.0, v=1.0, mask=0.0, c=Coefs(0.2, 0.1, 0.5, 0.1, 1.0))
    assert loss == 0.0
    assert set(stats.values()) == {0.0}
    assert (top, d_logits, d_v) == (0.0, [0.0, 0.0], 0.0)


def test_scale_is_a_factor_of_loss_and_gradient_but_not_of_the_sums():
    c = Coefs(0.2, INF, 0.5, 0.1, 1.0)
    loss, stats, _, d_logits, d_v = one_row(1.1, 2.0, v=1.0, c=c)
    part, same, _, d_part, d_v_part = one_row(1.1, 2.0, v=1.0, c=c._replace(scale=0.25))
    assert part == pytest.approx(0.25 * loss)
    assert d_part == pytest.approx([0.25 * d for d in d_logits])
    assert d_v_part == pytest.approx(0.25 * d_v)
    assert same == stats


def test_a_masked_row_may_hold_an_impossible_action():
    """A dead agent's old log-probability can be anything: exp(1000) times a mask of 0 would be NaN."""
    out = torch.zeros(2, 2, requires_grad=True)
    rows = {name: torch.tensor([1.0, 1.0]) for name in ("adv", "target", "v_old")}
    rows |= {"action": torch.zeros(2, 1, dtype=torch.int64), "mask": torch.tensor([1.0, 0.0])}
    rows["logp"] = torch.tensor([math.log(0.5), -1000.0])
    loss, sums, top = losses.ppo(Head((2,), 1), out, None, torch.zeros(2), rows, Coefs(0.2, INF, 0.5, 0.1, 1.0))
    loss.backward()
    assert torch.isfinite(sums).all()
    assert top == pytest.approx(1.0)
    assert out.grad is not None
    assert torch.isfinite(out.grad).all()
    assert out.grad[1].tolist() == [0.0, 0.0]


# ---- The fast kernels against autograd


def made_up(head: Head, n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, Batch]:
    """Network outputs for n rows, and a batch whose ratios lie on both sides of the clip for both signs of A."""
    rng = np.random.default_rng(seed)
    out = rng.normal(size=(n, head.out_dim)).astype(np.float32)
    log_std = rng.uniform(-1, 0.5, head.dim if head.gaussian else 0).astype(np.float32)
    if head.gaussian:
        action = (out + np.exp(log_std) * rng.normal(size=out.shape)).astype(np.float32)
    else:
        action = np.stack([rng.integers(0, k, n) for k in head.sizes], 1)
    with torch.no_grad():
        logp = head.log_prob(*map(torch.from_numpy, (out, log_std, action))).numpy()
    v, v_old, adv, target = rng.normal(size=(4, n)).astype(np.float32)
    old = (logp - rng.normal(scale=0.5, size=n)).astype(np.float32)
    return out, log_std, v, Batch(action, old, adv, target, v_old, np.ones(n, np.float32))


def by_autograd(head: Head, out, log_std, v, batch: Batch, rows, c: Coefs):
    """(d out, d log_std, d v, sums, max ratio) of the rows by torch, in float64."""
    x, s, w = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (out, log_std, v))
    columns = {name: torch.from_numpy(column)[rows] for name, column in batch._asdict().items()}
    columns = {name: column.double() if column.is_floating_point() else column for name, column in columns.items()}
    loss, sums, top = losses.ppo(head, x, s if head.gaussian else None, w, columns, c)
    loss.backward()
    return x.grad, s.grad, w.grad, sums.numpy(), top


def by_hand(head: Head, out, log_std, v, batch: Batch, rows, c: Coefs):
    d_out, d_log_std, d_v = np.full_like(out, 7), np.full_like(log_std, 7), np.full((len(v), 1), 7, np.float32)
    sums = np.zeros(len(STATS))
    if head.gaussian:
        top = losses.ppo_gaussian_grad(out, log_std, rows, batch, c, d_out, d_log_std, sums)
    else:
        top = losses.ppo_categorical_grad(out, np.array(head.sizes), rows, batch, c, d_out, sums)
    losses.ppo_value_grad(v[:, None], rows, batch, c, d_v, sums)
    return d_out, d_log_std, d_v[:, 0], sums, top


def check_equal(head: Head, c: Coefs, rows: np.ndarray, seed: int = 0) -> dict[str, float]:
    out, log_std, v, batch = made_up(head, seed=seed)
    out, v = np.ascontiguousarray(out[rows]), np.ascontiguousarray(v[rows])
    expected, found = (f(head, out, log_std, v, batch, rows, c) for f in (by_autograd, by_hand))
    for name, a, b in zip(("d out", "d log_std", "d v", "sums", "max ratio"), found, expected):
        if b is not None:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7, err_msg=name)
    return dict(zip(STATS, found[3]))


@HEADS
@pytest.mark.parametrize("clip_value", [INF, 0.3])
@pytest.mark.parametrize("ent_coef", [0.0, 0.05])
def test_kernels_equal_autograd(head, clip_value, ent_coef):
    rows = np.random.default_rng(1).permutation(200)
    stats = check_equal(head, Coefs(0.2, clip_value, 0.5, ent_coef, 1 / 200), rows)
    assert stats["rows"] == 200
    assert 50 < stats["clipped"] < 180  # the case has rows on both sides
    assert (stats["value_clipped"] > 50) == (clip_value == 0.3)
    assert (stats["ent_push"] > 0) == (ent_coef > 0 and not head.gaussian)


@HEADS
def test_kernels_take_any_rows_of_a_batch(head):
    """Row i of the outputs is row rows[i] of the batch; a row may come twice."""
    check_equal(head, Coefs(0.1, 0.5, 1.0, 0.01, 1 / 3), np.array([17, 3, 17]), seed=2)


@HEADS
def test_each_case_of_the_surrogate_occurs(head):
    """The 200 rows above hold every combination of sign and side, so that equality means something."""
    out, log_std, _, batch = made_up(head)
    new = head.log_prob(*map(torch.from_numpy, (out, log_std, batch.action))).numpy()
    ratio = np.exp(new - batch.logp)
    for sign in (batch.adv > 0, batch.adv < 0):
        for side in (ratio > 1.2, ratio < 0.8, np.abs(ratio - 1) < 0.2):
            assert (sign & side).sum() > 5


@HEADS
def test_kernels_add_to_the_sums(head):
    out, log_std, v, batch = made_up(head)
    c, whole = Coefs(0.2, 0.3, 0.5, 0.05, 1.0), np.arange(200)
    _, _, _, expected, top = by_hand(head, out, log_std, v, batch, whole, c)
    sums, tops = np.zeros(len(STATS)), []
    for part in (whole[:77], whole[77:]):
        _, _, _, more, highest = by_hand(head, out[part], log_std, v[part], batch, part, c)
        sums += more
        tops.append(highest)
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    assert max(tops) == top


def test_certain_choices_stay_finite():
    """Logits of +-200 are probabilities of 1 and 0: ln 0 times 0 must be 0, in both forms."""
    out = np.array([[200, -200, 0, 0], [0, 200, 200, -200]], np.float32)
    batch = Batch(np.array([[0], [1]]), np.zeros(2, np.float32), *np.ones((4, 2), np.float32))
    args = ONE_CHOICE, out, np.zeros(0, np.float32), np.zeros(2, np.float32), batch, np.arange(2)
    c = Coefs(0.2, INF, 0.5, 0.1, 0.5)
    d_out, _, _, sums, _ = by_hand(*args, c)
    expected = by_autograd(*args, c)
    assert np.isfinite(d_out).all()
    np.testing.assert_allclose(d_out, expected[0], rtol=1e-5, atol=1e-12)
    assert sums[STATS.index("entropy")] == pytest.approx(math.log(2))
