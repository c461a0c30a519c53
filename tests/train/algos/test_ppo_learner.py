"""Do the three engines compute one gradient, with the same bytes for any number of threads, and nothing of the dead?"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relab.train.algos.ppo_learner import FastLearner, Gradient, SequenceLearner, TorchLearner, segments
from relab.train.kernels.crew import Crew
from relab.train.nets import losses, networks
from relab.train.nets.heads import Head
from relab.train.nets.losses import STATS, Batch, Coefs
from relab.train.nets.networks import Net, Params

OBS = 5
GAUSSIAN, DISCRETE, MULTI = Head((), 2), Head((4,), 1), Head((2, 3), 2)
HEADS = pytest.mark.parametrize("head", [GAUSSIAN, DISCRETE, MULTI], ids=["gaussian", "discrete", "multi"])
COEFS = Coefs(0.2, 0.3, 0.5, 0.01, 1 / 100)
NONE = np.zeros(0, np.float32)


@pytest.fixture(autouse=True)
def one_torch_thread():
    """As in training: BLAS inside a crew's threads has one thread, and so has it without a crew."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(head: Head, **shape) -> tuple[Net, Params]:
    """A network whose every parameter is random, biases and log_std too."""
    net = Net(OBS, head.out_dim, log_std_dim=head.dim if head.gaussian else 0, **shape)
    params = networks.init(net, np.random.default_rng(0))
    params.flat.copy_(torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, params.flat.numel())))
    return net, params


def made_up(net: Net, head: Head, *rows: int) -> tuple[Batch, np.ndarray]:
    """A batch with leading dimensions `rows`; old policy and values are near enough that not everything is clipped."""
    rng = np.random.default_rng(2)
    obs = rng.normal(size=(*rows, OBS)).astype(np.float32)
    if head.gaussian:
        action = rng.normal(size=(*rows, head.dim)).astype(np.float32)
    else:
        action = np.stack([rng.integers(0, k, rows) for k in head.sizes], -1)
    noise, adv, target, v_old = rng.normal(size=(4, *rows)).astype(np.float32)
    logp = (0.3 * noise - (math.log(4) if not head.gaussian else 2.5)).astype(np.float32)
    return Batch(action, logp, adv, target, 0.2 * v_old, np.ones(rows, np.float32)), obs


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


def check_close(net: Net, found: Params, expected: Params, tolerance: float = 1e-5) -> None:
    """Each parameter's gradient, relative to its own size: a small layer must not hide behind a large one."""
    for name in networks.shapes(net):
        assert float(expected.grads[name].norm()) > 0, f"{name} has no gradient, so nothing is tested"
        assert relative(found.grads[name], expected.grads[name]) < tolerance, name


def check_sums(found: Gradient, expected: Gradient) -> None:
    assert found.sums[STATS.index("clipped")] > 5
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-4, atol=1e-4)
    assert found.ratio_max == pytest.approx(expected.ratio_max, rel=1e-4)


# ---- Feed-forward


def by_torch(
    net: Net, head: Head, params: Params, batch: Batch, obs: np.ndarray, rows: np.ndarray
) -> tuple[Params, Gradient]:
    reference = Params(networks.shapes(net))
    reference.flat.copy_(params.flat)
    learner = TorchLearner(net, head, reference, chunk=10_000)
    learner.load(batch, obs, NONE, NONE)
    return reference, learner.gradient(rows, COEFS)


@HEADS
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("hidden", [(16,), (16, 8), (8, 16, 8)], ids=str)
def test_the_fast_gradient_is_the_gradient(head, activation, hidden):
    net, params = make(head, hidden=hidden, activation=activation)
    batch, obs = made_up(net, head, 100)
    rows = np.random.default_rng(3).permutation(100)
    reference, expected = by_torch(net, head, params, batch, obs, rows)
    for chunk in (100, 1000, 32, 7, 1):  # whole, with room left, and parts that do not divide 100
        learner = FastLearner(net, head, params, chunk, Crew(1))
        learner.load(batch, obs, NONE, NONE)
        params.grad.fill_(123.0)  # must not be added to
        found = learner.gradient(rows, COEFS)
        check_close(net, params, reference)
        check_sums(found, expected)


@HEADS
def test_any_rows_of_the_batch_may_be_asked_for(head):
    """Fewer rows after more: buffers of earlier calls must not leak into later ones."""
    net, params = make(head, hidden=(16, 8))
    batch, obs = made_up(net, head, 100)
    learner = FastLearner(net, head, params, 16, Crew(2))
    learner.load(batch, obs, NONE, NONE)
    for rows in (np.arange(100), np.arange(33, 70), np.array([5, 99, 3, 3, 8, 40, 41, 60, 61, 62])):
        reference, expected = by_torch(net, head, params, batch, obs, rows)
        found = learner.gradient(rows, COEFS)
        check_close(net, params, reference)
        np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-4, atol=1e-4)


@HEADS
@pytest.mark.parametrize("chunk", [32, 7])
def test_the_bytes_do_not_depend_on_the_threads(head, chunk):
    net, params = make(head, hidden=(16, 8))
    batch, obs = made_up(net, head, 100)
    rows, seen = np.random.default_rng(3).permutation(100), set()
    for threads in (1, 2, 3, 2, 1):
        crew = Crew(threads)
        learner = FastLearner(net, head, params, chunk, crew)
        learner.load(batch, obs, NONE, NONE)
        found = learner.gradient(rows, COEFS)
        seen.add((params.grad.numpy().tobytes(), found.sums.tobytes(), found.ratio_max))
        if crew.pool is not None:
            crew.pool.shutdown()
    assert len(seen) == 1


def test_the_fast_learner_follows_the_parameters():
    """An optimiser step between two calls changes the weights in place, log_std too."""
    net, params = make(GAUSSIAN, hidden=(8,))
    batch, obs = made_up(net, GAUSSIAN, 100)
    learner = FastLearner(net, GAUSSIAN, params, 32, Crew(1))
    learner.load(batch, obs, NONE, NONE)
    learner.gradient(np.arange(100), COEFS)
    params.flat.add_(0.1)
    learner.gradient(np.arange(100), COEFS)
    reference, _ = by_torch(net, GAUSSIAN, params, batch, obs, np.arange(100))
    check_close(net, params, reference)


@pytest.mark.parametrize("chunk", [100, 32, 7])
def test_chunks_of_the_torch_learner_add_up(chunk):
    net, params = make(MULTI, hidden=(16, 8))
    batch, obs = made_up(net, MULTI, 100)
    rows = np.random.default_rng(3).permutation(100)
    reference, expected = by_torch(net, MULTI, params, batch, obs, rows)
    learner = TorchLearner(net, MULTI, params, chunk)
    learner.load(batch, obs, NONE, NONE)
    params.grad.fill_(123.0)
    found = learner.gradient(rows, COEFS)
    check_close(net, params, reference)
    check_sums(found, expected)


def test_the_gradient_is_that_of_the_loss():
    """A step of 1e-3 along the gradient changes the loss by 1e-3 |g|, as the central difference says (float64)."""
    net, params = make(GAUSSIAN, hidden=(16, 8))
    batch, obs = made_up(net, GAUSSIAN, 100)
    learner = FastLearner(net, GAUSSIAN, params, 32, Crew(1))
    learner.load(batch, obs, NONE, NONE)
    learner.gradient(np.arange(100), COEFS)
    grad = params.grad.double()
    rows = {k: torch.from_numpy(x) for k, x in batch._asdict().items()}
    rows = {k: x.double() if x.is_floating_point() else x for k, x in rows.items()}

    def loss(flat: torch.Tensor) -> float:
        views = networks.split(flat, networks.shapes(net))
        x = {name: torch.from_numpy(obs).double() for name in ("actor", "critic")}
        for name in x:
            for i in range(3):
                x[name] = x[name] @ views[f"{name}/{i}/weight"].T + views[f"{name}/{i}/bias"]
                x[name] = torch.tanh(x[name]) if i < 2 else x[name]
        return float(losses.ppo(GAUSSIAN, x["actor"], views["log_std"], x["critic"][:, 0], rows, COEFS)[0])

    direction, eps = grad / grad.norm(), 1e-6
    start = params.flat.double()
    slope = (loss(start + eps * direction) - loss(start - eps * direction)) / (2 * eps)
    assert slope == pytest.approx(float(grad.norm()), rel=1e-4)


# ---- Sequences

T, B = 12, 4


def sequence(head: Head, rnn: str = "gru") -> tuple[Net, Params, Batch, np.ndarray, np.ndarray, np.ndarray]:
    """T steps of B agents with episodes that begin in between, and the memory each had before every step."""
    net, params = make(head, hidden=(8,), rnn=rnn, rnn_size=6)
    batch, obs = made_up(net, head, T, B)
    fresh = np.random.default_rng(4).uniform(size=(T, B)) < 0.2
    memory, now = np.zeros((T, B, net.memory_dim), np.float32), torch.full((B, net.memory_dim), 0.3)
    with torch.no_grad():
        for t in range(T):
            now = now * torch.from_numpy(~fresh[t, :, None])
            memory[t] = now.numpy()
            now = networks.unroll(net, params, torch.from_numpy(obs[t : t + 1]), now, torch.zeros(1, B))[2]
    return net, params, batch, obs, memory, fresh


def learn(head: Head, case, bptt: int, rows=None, chunk: int = 10_000) -> tuple[torch.Tensor, Gradient]:
    net, params, batch, obs, memory, fresh = case
    learner = SequenceLearner(net, head, params, chunk, bptt)
    learner.load(batch, obs, memory, fresh)
    params.grad.fill_(123.0)
    found = learner.gradient(np.arange(T // bptt * B) if rows is None else rows, COEFS)
    return params.grad.clone(), found


def test_segments_keep_consecutive_steps_together():
    """Segment s of bptt steps: rows of the first bptt steps come first, each a column."""
    x = torch.arange(T * B).view(T, B)  # entry = t * B + b
    cut = segments(x, 4)
    assert cut.shape == (4, 3 * B)
    for part in range(3):
        for b in range(B):
            assert cut[:, part * B + b].tolist() == [(4 * part + k) * B + b for k in range(4)]
    assert torch.equal(segments(x, T), x)
    assert segments(x, 1).tolist() == [x.reshape(-1).tolist()]
    assert segments(x[..., None].expand(T, B, 7), 4).shape == (4, 3 * B, 7)


def by_hand(net: Net, params: Params, body: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    if net.rnn != "mingru":
        return networks.cell(net, params, body, state)
    z, u = (body @ params["rnn/input"].T + params["rnn/input_bias"]).split(6, dim=1)
    z = torch.sigmoid(z)
    return (1 - z) * state + z * torch.where(u >= 0, u + 0.5, torch.sigmoid(u))


@HEADS
@pytest.mark.parametrize("rnn", ["gru", "lstm", "mingru"])
def test_one_segment_is_the_full_unroll(head, rnn):
    case = sequence(head, rnn)
    net, params, batch, obs, memory, fresh = case
    found, gradient = learn(head, case, bptt=T)
    params.grad.zero_()
    state, outs, values = torch.from_numpy(memory[0]), [], []
    for t in range(T):  # rolled by hand, one step at a time
        state = torch.where(torch.from_numpy(fresh[t])[:, None], 0.0, state)
        body = torch.tanh(torch.from_numpy(obs[t]) @ params["body/0/weight"].T + params["body/0/bias"])
        state = by_hand(net, params, body, state)
        outs.append(state[:, :6] @ params["actor/0/weight"].T + params["actor/0/bias"])
        values.append((state[:, :6] @ params["critic/0/weight"].T + params["critic/0/bias"])[:, 0])
    rows = {name: torch.from_numpy(x) for name, x in batch._asdict().items()}
    log_std = params.named.get("log_std")
    loss, sums, top = losses.ppo(head, torch.stack(outs), log_std, torch.stack(values), rows, COEFS)
    loss.backward()
    assert relative(found, params.grad) < 1e-5
    check_sums(gradient, Gradient(sums.numpy(), top))


@pytest.mark.parametrize("rnn", ["gru", "lstm", "mingru"])
def test_each_segment_begins_from_the_memory_it_had(rnn):
    """The forward pass, and with it the sums, do not change with bptt; the gradient does, being cut at the seams."""
    case = sequence(GAUSSIAN, rnn)
    whole, expected = learn(GAUSSIAN, case, bptt=T)
    for bptt in (6, 3, 1):
        found, gradient = learn(GAUSSIAN, case, bptt)
        np.testing.assert_allclose(gradient.sums, expected.sums, rtol=1e-4)
        assert relative(found, whole) > 1e-3
    forgotten = (*case[:4], np.zeros_like(case[4]), case[5])
    assert not np.allclose(learn(GAUSSIAN, forgotten, bptt=3)[1].sums, expected.sums, rtol=1e-4)


def test_chunks_and_minibatches_of_segments_add_up():
    case = sequence(MULTI)
    whole, expected = learn(MULTI, case, bptt=3)
    parts = np.array_split(np.random.default_rng(0).permutation(16), 3)
    found = [learn(MULTI, case, bptt=3, rows=rows, chunk=6) for rows in parts]  # two segments at a time
    assert relative(sum(f[0] for f in found), whole) < 1e-5
    np.testing.assert_allclose(np.sum([f[1].sums for f in found], 0), expected.sums, rtol=1e-4)
    assert max(f[1].ratio_max for f in found) == pytest.approx(expected.ratio_max)


@HEADS
@pytest.mark.parametrize("bptt", [T, 4])
def test_what_the_dead_hold_does_not_matter(head, bptt):
    """An agent dead from step 3 to 7 begins anew at 8. Whatever its rows hold meanwhile, the gradient is the same."""
    net, params, batch, obs, memory, fresh = sequence(head)
    fresh[:, 1] = False
    fresh[[0, 8], 1] = True
    batch.mask[3:8, 1] = 0.0
    expected, sums = learn(head, (net, params, batch, obs, memory, fresh), bptt)
    assert sums.sums[STATS.index("rows")] == T * B - 5
    dead = batch.mask == 0
    other = Batch(*(x.copy() for x in batch))
    obs, memory = obs.copy(), memory.copy()
    obs[dead] *= -50.0
    memory[dead] = 9.0
    other.adv[dead], other.target[dead], other.v_old[dead], other.logp[dead] = 1e6, -1e6, 3.0, -500.0
    other.action[dead] = 1
    found, same = learn(head, (net, params, other, obs, memory, fresh), bptt)
    assert torch.equal(found, expected)
    assert same.sums.tolist() == sums.sums.tolist()
    assert same.ratio_max == sums.ratio_max
    obs[0, 1] += 1.0  # what a living one holds does matter
    assert not torch.equal(learn(head, (net, params, other, obs, memory, fresh), bptt)[0], expected)
