"""Is our Adam the Adam everyone means, and does clipping a norm clip the norm?"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relab.train.nets import mlps
from relab.train.nets.networks import Params
from relab.train.nets.optim import Adam, Muon, clip_norm, orthogonalised


def gradients(steps: int, size: int) -> list[torch.Tensor]:
    """Of very different sizes per coordinate; one coordinate is always 0, one only now and then."""
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.uniform(-6, 3, size)
    found = []
    for k in range(steps):
        g = rng.normal(size=size) * scale
        g[0], g[1] = 0.0, g[1] if k % 7 == 3 else 0.0
        found.append(torch.tensor(g, dtype=torch.float32))
    return found


class OnTheCPU:
    """mlps.Adam behind torch's tensors."""

    def __init__(self, theta, eps, betas):
        self.adam = mlps.Adam(theta.numel(), eps, betas)

    def step(self, theta, grad, lr):
        norm = self.adam.step(theta.numpy(), grad.numpy(), lr)
        assert norm == pytest.approx(float(grad.norm()), rel=1e-5)

    @property
    def updates(self):
        return self.adam.updates


@pytest.mark.parametrize("ours", [Adam, OnTheCPU])
@pytest.mark.parametrize(("eps", "betas"), [(1e-8, (0.9, 0.999)), (1e-5, (0.9, 0.999)), (1e-3, (0.5, 0.9))])
def test_fifty_steps_equal_torchs(eps, betas, ours):
    theta = torch.linspace(-1, 1, 40)
    theirs = theta.clone().requires_grad_()
    start = theta.clone()
    adam, reference = ours(theta, eps, betas), torch.optim.Adam([theirs], lr=1.0, eps=eps, betas=betas)
    for k, grad in enumerate(gradients(50, 40)):
        lr = 1e-2 * (1 - k / 60)  # a schedule: the rate is a matter of each step
        adam.step(theta, grad, lr)
        theirs.grad = grad.clone()
        reference.param_groups[0]["lr"] = lr
        reference.step()
    assert adam.updates == 50
    np.testing.assert_allclose(theta.numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert theta[0] == start[0]  # no gradient, no step
    assert float((theta - start).abs().max()) > 0.05


def test_a_step_is_cut_to_the_norm():
    theta, grad, adam = np.zeros(50, np.float32), np.full(50, 3.0, np.float32), mlps.Adam(50)
    adam.step(theta, grad, 0.01, max_norm=1.0)
    assert np.linalg.norm(adam.m) == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("size", [1, 3, 4, 7, 1001])
def test_the_norm_is_the_norm(size):
    x = np.random.default_rng(size).normal(size=size).astype(np.float32)
    assert mlps.norm_of(x) == pytest.approx(np.linalg.norm(x.astype(np.float64)), rel=1e-12)


def test_the_first_step_is_the_learning_rate():
    """m_hat / sqrt(v_hat) = sign(g) at the first step, whatever the size of g."""
    theta = torch.zeros(3)
    Adam(theta, eps=1e-8).step(theta, torch.tensor([1e-3, -50.0, 0.0]), lr=0.1)
    np.testing.assert_allclose(theta.numpy(), [-0.1, 0.1, 0.0], rtol=1e-4)


def test_step_leaves_the_gradient_alone():
    theta, grad = torch.zeros(3), torch.tensor([1.0, 2.0, 3.0])
    Adam(theta).step(theta, grad, lr=0.1)
    assert grad.tolist() == [1.0, 2.0, 3.0]


def test_a_longer_gradient_is_cut_to_the_norm_and_keeps_its_direction():
    grad = torch.tensor([3.0, 4.0, 0.0])
    assert clip_norm(grad, 0.5) == 5.0
    np.testing.assert_allclose(grad.numpy(), [0.3, 0.4, 0.0], rtol=1e-5)
    assert float(grad.norm()) <= 0.5


@pytest.mark.parametrize("max_norm", [5.0, 6.0, math.inf])
def test_a_shorter_gradient_is_left_alone(max_norm):
    grad = torch.tensor([3.0, 4.0])
    assert clip_norm(grad, max_norm) == 5.0
    assert grad.tolist() == [3.0, 4.0]


def test_no_gradient_and_no_number():
    grad = torch.zeros(2)
    assert clip_norm(grad, 0.5) == 0.0
    assert grad.tolist() == [0.0, 0.0]
    assert math.isnan(clip_norm(torch.tensor([1.0, math.nan]), 0.5))  # reported, not hidden


# ---- AdamW and Muon


def test_decay_is_adamws():
    theta = torch.linspace(-1, 1, 40)
    theirs = theta.clone().requires_grad_()
    adam = Adam(theta, decay=0.1)
    reference = torch.optim.AdamW([theirs], lr=1e-2, weight_decay=0.1, eps=1e-8)
    for grad in gradients(30, 40):
        adam.step(theta, grad, 1e-2)
        theirs.grad = grad.clone()
        reference.step()
    np.testing.assert_allclose(theta.numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5)])
def test_newton_schulz_by_hand(shape):
    """A slow loop in numpy, and what it is for: singular values near 1, the singular vectors as they were."""
    g = np.random.default_rng(0).normal(size=shape)
    x = g.T if shape[0] > shape[1] else g
    x = x / np.sqrt((x**2).sum())
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    ours = orthogonalised(torch.from_numpy(g)).numpy()
    np.testing.assert_allclose(ours, x.T if shape[0] > shape[1] else x, rtol=1e-6, atol=1e-7)
    u, s, vt = np.linalg.svd(g, full_matrices=False)
    inside = u.T @ ours @ vt.T
    np.testing.assert_allclose(inside, np.diag(np.diag(inside)), atol=1e-6)
    assert np.all((np.diag(inside) > 0.5) & (np.diag(inside) < 1.3))
    assert np.ptp(s) > 0.5  # they were far apart


def test_two_steps_of_muon_by_hand():
    params = Params({"body/0/weight": (3, 2), "body/0/bias": (3,)})
    start = torch.linspace(-1, 1, 9)
    params.flat.data.copy_(start)
    muon, weight, momentum = (
        Muon(params, momentum=0.9, decay=0.5),
        start[:6].reshape(3, 2).double().numpy(),
        np.zeros((3, 2)),
    )
    beside, adam = start[6:].clone(), None
    adam = Adam(beside)
    for k in range(2):
        grad = torch.from_numpy(np.random.default_rng(k).normal(size=9).astype(np.float32))
        muon.step(params.flat.data, grad.clone(), lr=0.02)
        g = grad[:6].reshape(3, 2).double().numpy()
        momentum = 0.9 * momentum + g
        push = orthogonalised(torch.from_numpy(g + 0.9 * momentum)).numpy() * (3 / 2) ** 0.5
        weight = weight * (1 - 0.02 * 0.5) - 0.02 * push
        adam.step(beside, grad[6:], lr=0.002)
    np.testing.assert_allclose(params["body/0/weight"].detach().numpy(), weight, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(params["body/0/bias"].detach().numpy(), beside.numpy(), rtol=1e-5)
    assert muon.updates == 2


def test_muon_goes_on_where_it_stood():
    params = Params({"w": (3, 4), "b": (3,)})
    grads = [torch.from_numpy(np.random.default_rng(k).normal(size=15).astype(np.float32)) for k in range(4)]
    muon = Muon(params)
    for grad in grads[:2]:
        muon.step(params.flat.data, grad.clone(), 0.01)
    tree = {k: v.clone().numpy() if isinstance(v, torch.Tensor) else v for k, v in muon.to_tree().items()}
    flat = params.flat.data.clone()
    other = Muon(params)
    other.load(tree)
    ends = []
    for optimiser in (muon, other):
        theta = flat.clone()
        for grad in grads[2:]:
            optimiser.step(theta, grad.clone(), 0.01)
        ends.append(theta)
    assert torch.equal(*ends)
