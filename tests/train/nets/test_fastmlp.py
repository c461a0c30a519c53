"""Is the fast MLP the same function as the readable one, and its backward pass the derivative?"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relab.train.kernels import blas
from relab.train.kernels.blas import matmul
from relab.train.nets import fastmlp, networks
from relab.train.nets.fastmlp import add_rows, relu_back_rows, relu_rows, tanh_back_rows, tanh_rows
from relab.train.nets.networks import Net

pytestmark = pytest.mark.skipif(not blas.AVAILABLE, reason="this torch has no sgemm to call; autograd does the work")


def fast_tanh(x) -> np.ndarray:
    rows = np.array(x, np.float32).reshape(1, -1)
    tanh_rows(rows, np.zeros(rows.size, np.float32))
    return rows[0]


def test_tanh_is_right_to_a_millionth():
    x = np.concatenate([np.linspace(-20, 20, 400_001), np.linspace(-0.01, 0.01, 20_001)]).astype(np.float32)
    found = fast_tanh(x)
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 1e-6
    assert np.abs(found).max() <= 1.0


def test_tanh_at_the_ends_of_the_number_line():
    tiny, top = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
    x = np.array([0.0, tiny, -tiny, 1e-40, 1e-38, 1e-20, top, -top, math.inf, -math.inf], np.float32)
    found = fast_tanh(x)
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 1e-6
    assert np.abs(found).max() <= 1.0
    np.testing.assert_allclose(found[5], 1e-20, rtol=1e-5)  # small numbers keep their digits


@pytest.mark.parametrize("size", [1, 7, 8, 33])
def test_tanh_of_what_is_not_a_number_is_not_a_number(size):
    """A diverged network must look diverged; vectorised minimum and maximum like to swallow NaN."""
    x = np.linspace(-3, 3, size).astype(np.float32)
    for i in range(size):
        bad = x.copy()
        bad[i] = math.nan
        found = fast_tanh(bad)
        assert np.isnan(found[i])
        assert np.isfinite(np.delete(found, i)).all()


def test_tanh_is_odd():
    x = np.linspace(0, 12, 100_001).astype(np.float32)
    assert np.array_equal(fast_tanh(x), -fast_tanh(-x))


def test_tanh_does_not_depend_on_the_place_in_the_row():
    """Same bytes in the vectorised body and in the rest of a loop."""
    x = np.random.default_rng(0).normal(0, 3, 37).astype(np.float32)
    whole = fast_tanh(x)
    alone = np.array([fast_tanh([v])[0] for v in x])
    assert whole.tobytes() == alone.tobytes()


def test_derivatives_from_outputs():
    h = np.array([[-1.0, -0.5, 0.0, 0.5]], np.float32)
    d = np.full_like(h, 2.0)
    tanh_back_rows(d, h)
    np.testing.assert_allclose(d, [[0, 1.5, 2, 1.5]])
    d = np.full_like(h, 2.0)
    relu_back_rows(d, h)
    assert d.tolist() == [[0, 0, 0, 2]]  # 0 at the kink, as torch has it


def test_biases_are_added_before_the_nonlinearity():
    bias = np.array([0.5, -0.25, 1.0], np.float32)
    for function, expected in ((tanh_rows, np.tanh), (relu_rows, lambda x: np.maximum(x, 0)), (add_rows, lambda x: x)):
        x = np.array([[1, 0, -2], [0.1, 0.2, 0.3]], np.float32)
        y = expected(x + bias)
        function(x, bias)
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_relu_does_not_hide_what_is_not_a_number():
    x = np.array([[math.nan, -1.0, 1.0]], np.float32)
    relu_rows(x, np.zeros(3, np.float32))
    assert math.isnan(x[0, 0])
    assert x[0, 1:].tolist() == [0, 1]


# ---- Whole networks


class Fast:
    """The kernels with buffers for `rows` rows, as the learner uses them."""

    def __init__(self, net: Net, rows: int):
        self.params = networks.init(net, np.random.default_rng(0))
        self.params.flat.copy_(torch.from_numpy(np.random.default_rng(1).normal(0, 0.5, self.params.flat.numel())))
        self.layout, self.theta = fastmlp.layout(net, "actor"), self.params.flat.numpy()
        self.work = fastmlp.workspace(rows, self.layout)

    def forward(self, x: torch.Tensor) -> np.ndarray:
        return fastmlp.forward(self.theta, self.layout, x.numpy().reshape(-1), len(x), self.work)

    def backward(self, x: torch.Tensor, d_out: torch.Tensor) -> np.ndarray:
        grad = np.full_like(self.theta, 7)
        fastmlp.backward(self.theta, self.layout, x.numpy().reshape(-1), len(x), self.work, d_out.numpy(), grad)
        return grad


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (8,), (8, 5), (8, 5, 9)], ids=str)
def test_forward_and_backward_equal_autograd(hidden, activation):
    net = Net(obs_dim=6, out_dim=3, hidden=hidden, activation=activation)
    fast = Fast(net, rows=50)
    rng = np.random.default_rng(2)
    for n in (50, 17):  # fewer rows than there is room for, after more: nothing may be left over
        x = torch.from_numpy(rng.normal(size=(n, 6)).astype(np.float32))
        d_out = torch.from_numpy(rng.normal(size=(n, 3)).astype(np.float32))
        out = networks.policy(net, fast.params, x)
        fast.params.grad.zero_()
        (out * d_out).sum().backward()
        np.testing.assert_allclose(fast.forward(x), out.detach(), rtol=1e-4, atol=1e-5)
        grads = networks.split(torch.from_numpy(fast.backward(x, d_out)), networks.shapes(net))
        for name, expected in fast.params.grads.items():
            if name.startswith("actor"):
                assert float((grads[name] - expected).norm()) <= 1e-5 * float(expected.norm()), name
            else:
                assert (grads[name] == 7).all(), f"{name} is not the actor's to write"


def test_weights_are_read_through_views():
    net = Net(obs_dim=4, out_dim=2, hidden=(8,))
    fast = Fast(net, rows=5)
    x = torch.ones(5, 4)
    before = fast.forward(x).copy()
    fast.params.flat.mul_(0.5)
    after = fast.forward(x)
    assert not np.allclose(before, after)
    np.testing.assert_allclose(after, networks.policy(net, fast.params, x).detach(), rtol=1e-4, atol=1e-5)


def test_blocks_give_the_same_bytes_whoever_takes_them():
    net = Net(obs_dim=4, out_dim=2, hidden=(8,))
    fast = Fast(net, rows=16)
    x = np.random.default_rng(3).normal(size=(100, 4)).astype(np.float32)
    found = []
    for workers in (1, 2, 3):
        out = np.empty((100, 2), np.float32)
        for worker in range(workers):
            fastmlp.forward_blocks(worker, workers, 16, fast.theta, fast.layout, x, fast.work, out)
        found.append(out.tobytes())
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(
        out, networks.policy(net, fast.params, torch.from_numpy(x)).detach(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 4, 5), (64, 20, 17)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_matmul_is_a_matrix_product(m, n, k, turned):
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    stored = [np.ascontiguousarray(x.T if turn else x).reshape(-1) for x, turn in zip((a, b), turned)]
    c = np.full(m * n, 7, np.float32)
    matmul(stored[0], turned[0], stored[1], turned[1], c, m, n, k)
    np.testing.assert_allclose(c.reshape(m, n), a @ b, rtol=1e-4, atol=1e-5)
