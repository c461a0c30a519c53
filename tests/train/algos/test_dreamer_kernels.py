"""Dreamer's kernels against what torch computes and differentiates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from relab.config import registry
from relab.config.dreamer import Dreamer
from relab.record.spec import Action
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import layers, make_agent
from relab.train.algos.dreamer.actions import Actions
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.optimiser import LaProp
from relab.train.algos.dreamer.rows import exp
from relab.train.algos.dreamer.world_model import Batch, Start
from relab.train.kernels import blas

pytestmark = pytest.mark.skipif(not blas.AVAILABLE, reason="torch was built without a BLAS that kernels can call")
SMALL = Dreamer(deter=24, hidden=20, units=28, stoch=6, classes=3, bins=11, learning_starts=64)


def small_agent(**changes) -> Agent:
    """All weights a little away from where they begin: no scale is 1 and no bias 0."""
    env = registry.env_class("cartpole-v1")(registry.env_params_class("cartpole-v1")())
    agent = make_agent(replace(SMALL, **changes), env.spec, 0)
    agent.params.flat.add_(0.1 * torch.randn(agent.params.flat.shape, generator=noise(1)))
    return agent


def noise(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def with_gradient(agent: Agent, fast: bool, loss) -> tuple[list[Tensor], Tensor]:
    """(what `loss` returns beside the loss, the flat gradient)."""
    agent.params.fast = fast
    agent.params.grad.zero_()
    total, *parts = loss()
    total.backward()
    return parts, agent.params.grad.clone()


def test_exp_is_right_to_the_last_places():
    x = np.linspace(-86, 86, 10_001).astype(np.float32)
    ours = np.array([exp(v) for v in x], np.float64)
    assert np.abs(ours / np.exp(x.astype(np.float64)) - 1).max() < 3e-7


@pytest.mark.parametrize("name", ["actor", "critic", "model/encoder", "model/reward", "model/prior"])
@pytest.mark.parametrize("rows", [1, 5, 300])  # 300: more than one block
def test_a_head_and_its_gradients(name, rows):
    agent = small_agent()
    depth = len(agent.params.layout(name).weight)
    x = torch.randn(rows, int(agent.params.layout(name).sizes[0]), generator=noise(2), requires_grad=True)
    compute = layers.head if agent.params.layout(name).out else layers.mlp

    def loss():
        y = compute(agent.params, name, x, depth)
        d_x = torch.autograd.grad(y.square().sum(), x, retain_graph=True)[0]
        return y.square().sum(), y.detach(), d_x

    (y, d_x), grad = with_gradient(agent, True, loss)
    # the kernels add to the flat gradient each time they are asked, here twice
    (y_torch, d_x_torch), grad_torch = with_gradient(agent, False, loss)
    assert torch.allclose(y, y_torch, atol=1e-5)
    assert torch.allclose(d_x, d_x_torch, rtol=1e-4, atol=1e-4)
    assert torch.allclose(grad / 2, grad_torch, rtol=1e-3, atol=1e-4 * float(grad_torch.abs().max()))


def made_batch(agent: Agent, T: int = 7, B: int = 5) -> Batch:
    g = noise(3)
    fresh, over = (torch.rand(T, B, generator=g) < 0.2).float(), (torch.rand(T, B, generator=g) < 0.1).float()
    action = torch.rand(T, B, agent.actions.in_dim, generator=g)
    obs, reward = torch.randn(T, B, 4, generator=g), torch.rand(T, B, generator=g)
    return Batch(obs, action, reward, fresh, 1 - fresh, over, over, torch.ones(T, B))


def test_a_scan_and_its_gradients_through_time():
    agent = small_agent()
    batch, uniform = made_batch(agent), torch.rand(7, 5, SMALL.stoch, generator=noise(4))
    g = noise(5)
    start = Start(torch.randn(5, SMALL.deter, generator=g), torch.randn(5, agent.model.latent, generator=g))
    weights = [torch.randn(7, 5, size, generator=g) for size in (SMALL.deter, agent.model.latent, agent.model.latent)]

    def loss():
        m, keep = agent.model, 1 - batch.fresh
        del vars(m)["fast_core"]
        h, z, post = m.scan(m.see(batch.obs), m.effect(batch.action), keep, uniform, start)
        parts = h, z, post.flatten(-2)
        return sum((x * w).sum() for x, w in zip(parts, weights)), *(x.detach() for x in parts)

    assert agent.model.fast_core is not None
    fast, grad = with_gradient(agent, True, loss)
    plain, grad_torch = with_gradient(agent, False, loss)
    assert agent.model.fast_core is None
    for ours, theirs in zip(fast, plain):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert torch.allclose(grad, grad_torch, rtol=1e-3, atol=1e-5 * float(grad_torch.abs().max()))


@pytest.mark.parametrize("kind", ["choices", "two kinds of choices", "box"])
def test_the_same_uniform_numbers_give_the_same_dreams(kind):
    sizes = {"choices": (2,), "two kinds of choices": (3, 2), "box": ()}[kind]
    env = registry.env_class("cartpole-v1")(registry.env_params_class("cartpole-v1")())
    kind_of = "multi_discrete" if sizes else "continuous"
    action = Action(kind_of, len(sizes) or 2, sizes, (-1.0,) * 2, (1.0,) * 2)
    agent = Agent(SMALL, replace(env.spec, action=action), np.random.default_rng(0))
    agent.params.flat.add_(0.2 * torch.randn(agent.params.flat.shape, generator=noise(1)))
    batch = made_batch(agent)
    uniform = torch.rand(6, 35, SMALL.stoch + agent.actions.draws, generator=noise(8))
    with torch.no_grad():
        course = agent.model.observe(batch, torch.rand(7, 5, SMALL.stoch, generator=noise(4)))
        feature, drawn = agent.behaviour.imagine(agent.model, course.feature.flatten(0, 1), uniform)
        agent.params.fast = False
        del vars(agent.model)["fast_core"]
        feature_torch, drawn_torch = agent.behaviour.imagine(agent.model, course.feature.flatten(0, 1), uniform)
    assert torch.allclose(feature, feature_torch, atol=1e-4)
    assert torch.allclose(drawn.float(), drawn_torch.float(), atol=1e-4)


def test_a_two_hot_loss_and_its_gradient():
    support, g = eq.Support.of(-50, 50, 21), noise(9)
    logits = torch.randn(40, 21, generator=g, requires_grad=True)
    first, second = (60 * torch.randn(40, generator=g) for _ in range(2))
    support.loss(logits, first, second, weights=(1.0, 0.5)).square().sum().backward()
    grad, logits.grad = logits.grad, None
    logs = logits.log_softmax(-1)
    by_hand = -(logs * (support.two_hot(first) + 0.5 * support.two_hot(second))).sum(-1)
    by_hand.square().sum().backward()
    assert torch.allclose(grad, logits.grad, rtol=1e-4, atol=1e-5)
    assert torch.allclose(support.mean(logits), logits.softmax(-1) @ support.values, rtol=1e-4, atol=1e-4)


def test_a_step_of_the_optimiser_by_hand():
    agent = small_agent()
    p, lr = agent.params, {"model": 1e-2, "actor": 2e-2, "critic": 3e-2}
    optimiser = LaProp(p, lr, clip=0.3, warmup=4, betas=(0.9, 0.999))
    before = {name: x.detach().clone() for name, x in p.named.items()}
    p.grad.copy_(torch.randn(p.grad.shape, generator=noise(10)))
    grads = {name: x.clone() for name, x in p.grads.items()}
    moving = torch.cat([x.flatten() for name, x in grads.items() if not name.startswith("critic")])
    norm = optimiser.step({"model": 0.5, "actor": 0.5, "critic": 0.0})
    assert norm == pytest.approx(float(moving.norm()), 1e-4)
    for name, x in before.items():
        if name.startswith("critic"):  # it rests: not its turn
            assert torch.equal(p[name].detach(), x)
            continue
        g = grads[name]
        g = g * min(1.0, 0.3 * max(1e-3, float(x.norm())) / float(g.norm()))
        step = 0.5 * lr[name.split("/")[0]] * (1 / 4) * g / g.abs()  # the first step of an unbiased average: the sign
        assert torch.allclose(p[name].detach(), x - step, atol=1e-6), name
    assert float(p.grad.abs().max()) == 0.0
    assert optimiser.updates.tolist() == [1, 1, 0]


def dreamt(agent: Agent, fast: bool, rows: int = 5) -> tuple[list[Tensor], Tensor]:
    """Losses of actor and critic in dreams, and the flat gradient."""
    batch, b = made_batch(agent, B=rows), agent.behaviour
    uniform = torch.rand(4, 7 * rows, SMALL.stoch + agent.actions.draws, generator=noise(8))

    def loss():
        vars(agent.model).pop("fast_core", None)
        course = agent.model.observe(batch, torch.rand(7, rows, SMALL.stoch, generator=noise(4)))
        dream = b.dream(agent.model, course, batch, uniform)
        actor = b.actor_loss(dream, 2.0, 0.1)[0]
        critic = b.critic_loss(dream.logits[:-1], dream.feature[:-1], dream.returns, dream.hot.first(28 * rows))
        return actor.sum() + critic.sum(), actor.detach(), critic.detach()

    return with_gradient(agent, fast, loss)


def test_actor_and_critic_learn_in_dreams_as_torch_says():
    fast, grad = dreamt(small_agent(), True)
    plain, grad_torch = dreamt(small_agent(), False)
    for ours, theirs in zip(fast, plain):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    assert torch.allclose(grad, grad_torch, rtol=1e-3, atol=1e-4 * float(grad_torch.abs().max()))


def test_two_threads_leave_the_same_bytes_as_one():
    env = registry.env_class("cartpole-v1")(registry.env_params_class("cartpole-v1")())
    one, two = (make_agent(SMALL, env.spec, 0, threads=threads) for threads in (1, 2))
    assert (one.params.crew.size, two.params.crew.size) == (1, 2)
    (actor, critic), grad = dreamt(one, True, rows=60)  # 420 dreams: more than one block in each half
    (actor_2, critic_2), grad_2 = dreamt(two, True, rows=60)
    assert torch.equal(actor, actor_2)
    assert torch.equal(critic, critic_2)
    assert torch.equal(grad, grad_2)


@pytest.mark.parametrize("mix", [0.0, 0.01, 0.3])
def test_choices_are_judged_as_autograd_says(mix):
    actions, g = Actions((3, 2), 2, mix), noise(11)
    out = torch.randn(20, 5, generator=g, requires_grad=True)
    chosen = torch.stack([torch.randint(n, (20,), generator=g) for n in (3, 2)], -1)
    logp, nats = actions.judge(out, chosen)
    (2 * logp + nats.square()).sum().backward()
    grad, out.grad = out.grad, None
    probs = actions.probs(out)
    logp_torch = sum(p.gather(-1, chosen[:, i : i + 1]).log().squeeze(-1) for i, p in enumerate(probs))
    nats_torch = sum(torch.special.entr(p).sum(-1) for p in probs)
    (2 * logp_torch + nats_torch.square()).sum().backward()
    assert torch.allclose(logp, logp_torch, atol=1e-5)
    assert torch.allclose(nats, nats_torch, atol=1e-5)
    assert torch.allclose(grad, out.grad, rtol=1e-4, atol=1e-5)
