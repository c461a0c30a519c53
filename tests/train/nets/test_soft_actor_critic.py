"""Are the gradients of soft actor-critic those of its equations, and its densities those of a squashed Gaussian?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from relab.train.kernels import blas
from relab.train.kernels.crew import Crew
from relab.train.nets import fastmlp
from relab.train.nets import soft_actor_critic as soft
from relab.train.nets.fastmlp import Layout
from relab.train.nets.mlps import Adam, Networks
from relab.train.nets.soft_actor_critic import Batch, Nets, Stats
from relab.train.nets.temperature import Temperature

pytestmark = pytest.mark.skipif(not blas.AVAILABLE, reason="this torch has no sgemm to call")

ROWS, OBS, DIM = 19, 4, 3


class Case(NamedTuple):
    nets: Networks
    where: Nets
    target: np.ndarray
    batch: Batch
    noise: np.ndarray
    room: soft.Room


def case(activation: str = "relu", rows: int = ROWS) -> Case:
    rng = np.random.default_rng(5)
    sizes = {"q1": (OBS + DIM, 16, 8, 1), "q2": (OBS + DIM, 16, 8, 1), "actor": (OBS, 16, 8, 2 * DIM)}
    nets = Networks(sizes, activation, rng)
    nets.flat += rng.normal(0, 0.05, nets.flat.size).astype(np.float32)
    target = nets.flat[nets.part("q1", "q2")] + np.float32(0.1)
    obs, after = (rng.normal(size=(rows, OBS)).astype(np.float32) for _ in range(2))
    action, noise = np.tanh(rng.normal(size=(rows, DIM))).astype(np.float32), rng.normal(size=(2, rows, DIM))
    discount = np.where(rng.random(rows) < 0.3, 0, 0.9).astype(np.float32)
    batch = Batch(obs, action, rng.normal(0, 2, rows).astype(np.float32), discount, after, discount == 0)
    where = Nets(**nets.layouts)
    return Case(nets, where, target, batch, noise.astype(np.float32), soft.room(rows, where, nets.flat.size))


def torch_mlp(net: Layout, flat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    for layer in range(len(net.sizes) - 1):
        rows, cols = int(net.sizes[layer + 1]), int(net.sizes[layer])
        weight = flat[net.weight[layer] : net.weight[layer] + rows * cols].reshape(rows, cols)
        x = x @ weight.T + flat[net.bias[layer] : net.bias[layer] + rows]
        if layer < len(net.sizes) - 2:
            x = torch.relu(x) if net.relu else torch.tanh(x)
    return x


def double(x: np.ndarray, grad: bool = False) -> torch.Tensor:
    """In float64, where a standard deviation of e^-20 beside a mean of 1 still has digits."""
    return torch.tensor(x, dtype=torch.float64, requires_grad=grad)


def torch_policy(net: Layout, flat: torch.Tensor, obs: np.ndarray, noise: np.ndarray) -> tuple[torch.Tensor, ...]:
    """Action and log-probability, the latter by torch's own transformed distribution."""
    mean, log_std = torch_mlp(net, flat, double(obs)).split(DIM, dim=1)
    base = Normal(mean, log_std.clamp(soft.LOG_STD_LOW, soft.LOG_STD_HIGH).exp())
    policy = TransformedDistribution(Independent(base, 1), TanhTransform(cache_size=1))
    action = policy.transforms[0](base.loc + base.scale * double(noise))
    return action, policy.log_prob(action)


def torch_q(net: Layout, flat: torch.Tensor, obs: np.ndarray, action: torch.Tensor) -> torch.Tensor:
    return torch_mlp(net, flat, torch.cat((double(obs), action), 1))[:, 0]


# ---- The distribution


def test_the_log_probability_of_a_hand_number() -> None:
    """tanh(0) with standard deviation 1 has the Gaussian's density; elsewhere 1 - a² is the change of volume."""
    action, logp = np.empty((2, 1), np.float32), np.empty(2, np.float32)
    soft.squash(np.zeros((2, 2), np.float32), np.array([[0.0], [1.0]], np.float32), action, logp)
    assert action[:, 0] == pytest.approx([0.0, 0.761594])
    gauss = [-0.918939, -1.418939]
    assert logp == pytest.approx([gauss[0], gauss[1] - math.log(1 - 0.761594**2)], abs=1e-5)


@pytest.mark.parametrize("mean", [-30.0, -3.0, 0.0, 0.2, 5.0, 30.0])
def test_the_log_probability_is_that_of_the_transformed_distribution(mean: float) -> None:
    """Also far out, where 1 - tanh² rounds to 0 and its logarithm would be lost."""
    out = np.array([[mean, -0.7]], np.float32)
    action, logp = np.empty((1, 1), np.float32), np.empty(1, np.float32)
    soft.squash(out, np.array([[0.4]], np.float32), action, logp)
    std = math.exp(float(out[0, 1]))
    u = torch.tensor(mean + std * float(np.float32(0.4)), dtype=torch.float64)
    base = Normal(torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64))
    expected = TransformedDistribution(base, TanhTransform(cache_size=1))
    y = expected.transforms[0](u)  # the cache brings u back where tanh(u) is 1
    assert logp[0] == pytest.approx(expected.log_prob(y).item(), rel=1e-5)
    assert -1 <= action[0, 0] <= 1


def test_the_density_adds_up_to_one() -> None:
    a = np.linspace(-0.99999, 0.99999, 200_001)
    u = np.arctanh(a)
    logp = np.array([soft.log_density((x - 0.3) / 0.5, math.log(0.5), x) for x in u])
    assert np.trapezoid(np.exp(logp), a) == pytest.approx(1.0, abs=1e-3)


def test_the_standard_deviation_is_cut_at_both_ends_and_nan_stays() -> None:
    assert [soft.cut(x) for x in (-50.0, -3.0, 9.0)] == [-20.0, -3.0, 2.0]
    assert math.isnan(soft.cut(math.nan))


def test_noise_comes_from_each_rows_own_stream_and_the_mode_has_none() -> None:
    streams = np.arange(6, dtype=np.uint64) + np.uint64(77)
    first, alone = np.empty((6, 3), np.float32), np.empty((1, 3), np.float32)
    one = streams[4:5].copy()
    soft.draw_noise(streams, 2, first)
    soft.draw_noise(one, 0, alone)
    assert (first[:2] == 0).all()
    assert (first[4] == alone[0]).all()
    assert (first[2:] != 0).all()


# ---- Gradients


def look(c: Case, alpha: float = 0.3) -> Stats:
    """An update that changes no weight: all gradients are left in the room."""
    adam, stats = Adam(c.nets.flat.size), np.zeros(len(Stats._fields))
    soft.learn(c.nets.flat, c.target, adam.m, adam.v, c.where, c.batch, c.noise, alpha, adam.count(0.0), c.room, stats)
    return Stats(*stats)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_gradient_of_the_inputs(activation: str) -> None:
    c = case(activation)
    x = np.concatenate((c.batch.obs_ND, c.batch.action_NK), axis=1)
    d_out, d_in = np.random.default_rng(1).normal(size=ROWS).astype(np.float32), np.empty(ROWS * DIM, np.float32)
    work = fastmlp.workspace(ROWS, c.where.q2)
    fastmlp.forward(c.nets.flat, c.where.q2, x.reshape(-1), ROWS, work)
    fastmlp.backward_inputs(c.nets.flat, c.where.q2, ROWS, work, d_out, DIM, d_in)
    leaf = double(x, grad=True)
    torch_mlp(c.where.q2, double(c.nets.flat), leaf)[:, 0].backward(double(d_out))
    assert leaf.grad is not None
    np.testing.assert_allclose(d_in.reshape(ROWS, DIM), leaf.grad.numpy()[:, OBS:], rtol=1e-4, atol=1e-6)


def test_some_rows_are_as_if_only_they_had_been_asked_for() -> None:
    c = case()
    x = np.concatenate((c.batch.obs_ND, c.batch.action_NK), axis=1)
    work = fastmlp.workspace(ROWS, c.where.q1)
    fastmlp.forward(c.nets.flat, c.where.q1, x.reshape(-1), ROWS, work)
    rows, some = np.array([3, 4, 11], np.int64), fastmlp.workspace(ROWS, c.where.q1)
    fastmlp.take_rows(c.where.q1, ROWS, work, rows, 3, some)
    alone = fastmlp.workspace(3, c.where.q1)
    fastmlp.forward(c.nets.flat, c.where.q1, x[rows].reshape(-1), 3, alone)
    used = 3 * int(c.where.q1.sizes[1:].sum())
    np.testing.assert_allclose(some[:used], alone[:used], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_critics_gradient_is_that_of_the_equation(activation: str) -> None:
    c, alpha = case(activation), 0.3
    found = look(c, alpha)
    theta = double(c.nets.flat, grad=True)
    with torch.no_grad():
        action, logp = torch_policy(c.where.actor, theta, c.batch.next_ND, c.noise[0])
        slow = [torch_q(net, double(c.target), c.batch.next_ND, action) for net in (c.where.q1, c.where.q2)]
        value = torch.minimum(*slow) - alpha * logp
        y = double(c.batch.return_N) + double(c.batch.discount_N) * value
    q = [torch_q(net, theta, c.batch.obs_ND, double(c.batch.action_NK)) for net in (c.where.q1, c.where.q2)]
    loss = sum(0.5 * (each - y).square().mean() for each in q)
    assert isinstance(loss, torch.Tensor)
    loss.backward()
    assert theta.grad is not None
    part = c.nets.part("q1", "q2")
    np.testing.assert_allclose(c.room.grad[part], theta.grad.numpy()[part], rtol=1e-3, atol=1e-5)
    assert found.critic_loss == pytest.approx(loss.item(), rel=1e-4)
    assert found.td_error == pytest.approx(torch.stack([(each - y).abs() for each in q]).mean().item(), rel=1e-4)
    assert found.q_mean == pytest.approx(torch.stack(q).mean().item(), rel=1e-3, abs=1e-5)
    assert (found.target_mean, found.target_max) == pytest.approx((y.mean().item(), y.max().item()), rel=1e-3)
    assert found.after_end == 0
    assert found.critic_norm == pytest.approx(np.linalg.norm(theta.grad.numpy()[part]), rel=1e-4)
    unmasked = c._replace(batch=c.batch._replace(discount_N=np.full(ROWS, 0.9, np.float32)))
    worth = 0.9 * value[c.batch.ended_N].abs().max().item()
    assert look(unmasked, alpha).after_end == pytest.approx(worth, rel=1e-4), "a mask that is missing shows"


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("wide", [0.0, 3.0, -25.0])
def test_the_actors_gradient_is_that_of_the_equation(activation: str, wide: float) -> None:
    """Through the smaller critic of each row to the action; nothing through a standard deviation that is cut."""
    c, alpha = case(activation), 0.3
    c.nets.named["actor/2/bias"][DIM] += np.float32(wide)
    found = look(c, alpha)
    theta = double(c.nets.flat, grad=True)
    action, logp = torch_policy(c.where.actor, theta, c.batch.obs_ND, c.noise[1])
    q = [torch_q(net, theta, c.batch.obs_ND, action) for net in (c.where.q1, c.where.q2)]
    loss = (alpha * logp - torch.minimum(*q)).mean()
    loss.backward()
    assert theta.grad is not None
    assert 0 < (q[0] < q[1]).sum() < ROWS, "both critics are the smaller one somewhere"
    part = c.nets.part("actor")
    np.testing.assert_allclose(c.room.grad[part], theta.grad.numpy()[part], rtol=1e-3, atol=1e-5)
    assert (found.actor_loss, found.entropy) == pytest.approx((loss.item(), -logp.mean().item()), rel=1e-3)


@pytest.mark.parametrize("first", [True, False])
def test_one_critic_may_be_the_smaller_in_every_row(first: bool) -> None:
    c = case()
    c.nets.named["q1/2/bias"][:] += np.float32(-50 if first else 50)
    look(c)
    assert np.isfinite(c.room.grad[c.nets.part("actor")]).all()
    assert (c.room.q_2N[0] < c.room.q_2N[1]).all() == first


def step(c: Case, adam: Adam, crew: Crew | None = None) -> np.ndarray:
    stats = np.zeros(len(Stats._fields))
    of = (c.nets.flat, c.target, adam.m, adam.v, c.where, c.batch, c.noise, 0.3, adam.count(0.01), c.room, stats)
    soft.learn(*of) if crew is None else soft.learn_by(crew, *of)
    return stats


def test_a_step_is_adams_for_the_critics_and_then_for_the_actor() -> None:
    c, mine = case(), case()
    step(c, Adam(c.nets.flat.size))
    look(mine)
    for part in (mine.nets.part("q1"), mine.nets.part("q2")):
        Adam(part.stop - part.start).step(mine.nets.flat[part], mine.room.grad[part], 0.01)
    look(mine)
    actor = mine.nets.part("actor")
    Adam(actor.stop - actor.start).step(mine.nets.flat[actor], mine.room.grad[actor], 0.01)
    assert (c.nets.flat == mine.nets.flat).all()


@pytest.mark.parametrize("rows", [1, 2, ROWS, 64])
def test_two_threads_give_the_bytes_of_one(rows: int) -> None:
    alone, shared, crew = case(rows=rows), case(rows=rows), Crew(2)
    adams = Adam(alone.nets.flat.size), Adam(shared.nets.flat.size)
    for _ in range(5):
        assert step(alone, adams[0]).tobytes() == step(shared, adams[1], crew).tobytes()
    assert alone.nets.flat.tobytes() == shared.nets.flat.tobytes()


# ---- The temperature


def test_the_temperatures_gradient_and_the_way_it_goes() -> None:
    t, logp = Temperature(None, -2.0, 1e-8), torch.tensor([0.5, 1.5, -0.3])
    t.log[0] = 0.7
    leaf = torch.tensor(0.7, requires_grad=True)
    loss = -(leaf * (logp - 2.0)).mean()
    loss.backward()
    assert leaf.grad is not None
    assert t.step(-logp.mean().item(), 0.01) == pytest.approx(loss.item(), rel=1e-5)
    assert t.adam.m[0] == pytest.approx(0.1 * leaf.grad.item(), rel=1e-5)
    assert t.log[0] == pytest.approx(0.69, abs=1e-4), "the entropy is above its target: it is worth less"
    t.step(-9.0, 0.01)
    t.step(-9.0, 0.01)
    assert t.log[0] > 0.69, "below it, more"


def test_a_fixed_temperature_stays() -> None:
    t = Temperature(0.2, -1.0, 1e-8)
    assert t.alpha == 0.2
