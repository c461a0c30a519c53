"""Do the networks compute what torch's own modules compute, and is every parameter a view of one vector?"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relab.config.base import ConfigError
from relab.train.nets import networks
from relab.train.nets.networks import Net

MLP = Net(obs_dim=5, out_dim=3, hidden=(8, 6), log_std_dim=3)
GRU = Net(obs_dim=5, out_dim=3, hidden=(8,), rnn="gru", rnn_size=7)
LSTM = Net(obs_dim=5, out_dim=3, hidden=(8,), rnn="lstm", rnn_size=7)
MIN_GRU = Net(obs_dim=5, out_dim=3, hidden=(8,), rnn="mingru", rnn_size=7)
ALL = pytest.mark.parametrize("net", [MLP, GRU, LSTM, MIN_GRU], ids=["mlp", "gru", "lstm", "mingru"])
RECURRENT = pytest.mark.parametrize("net", [GRU, LSTM], ids=["gru", "lstm"])


def made(net: Net, seed: int = 0) -> networks.Params:
    """Parameters with every entry random, biases too."""
    params = networks.init(net, np.random.default_rng(seed))
    params.flat.copy_(torch.from_numpy(np.random.default_rng(seed).normal(0, 0.4, params.flat.numel())))
    return params


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


# ---- One flat vector


@ALL
def test_named_parameters_and_gradients_are_views_that_fill_the_vector(net):
    params = networks.init(net, np.random.default_rng(0))
    for flat, views in ((params.flat, params.named), (params.grad, params.grads)):
        at = 0
        for name, view in views.items():
            assert view.data_ptr() == flat.data_ptr() + 4 * at, name
            assert tuple(view.shape) == networks.shapes(net)[name]
            at += view.numel()
        assert at == flat.numel()
    params.flat.fill_(3.0)
    assert all((view == 3.0).all() for view in params.named.values())


def test_backward_adds_into_the_flat_gradient():
    params = made(MLP)
    obs = normal(10, 5)
    (networks.policy(MLP, params, obs).square().sum() + networks.value(MLP, params, obs).sum()).backward()
    first = params.grad.clone()
    assert (params.grads["critic/2/bias"] == 10).all()  # d sum(v) / d bias
    assert params.grads["log_std"].tolist() == [0, 0, 0]  # not part of this loss
    networks.value(MLP, params, obs).sum().backward()
    assert params.grads["critic/2/bias"].item() == 20
    assert torch.equal(params.grad[: params.grads["actor/0/weight"].numel()], first[: 8 * 5])
    assert params["actor/0/weight"].grad.data_ptr() == params.grad.data_ptr()  # still the view


def test_shapes_and_memory():
    assert networks.shapes(MLP)["actor/2/weight"] == (3, 6)
    assert networks.shapes(MLP)["critic/2/weight"] == (1, 6)
    assert networks.shapes(GRU)["rnn/input"] == (21, 8)
    assert networks.shapes(LSTM)["rnn/hidden"] == (28, 7)
    assert (MLP.memory_dim, GRU.memory_dim, LSTM.memory_dim) == (0, 7, 14)
    without_body = Net(obs_dim=5, out_dim=3, hidden=(), rnn="gru", rnn_size=7)
    assert networks.shapes(without_body)["rnn/input"] == (21, 5)


# ---- The start


def test_weights_are_orthogonal_with_their_gains():
    net = Net(obs_dim=12, out_dim=4, hidden=(32, 16))
    params = networks.init(net, np.random.default_rng(0))
    gains = {
        "actor/0": 2**0.5,
        "actor/1": 2**0.5,
        "actor/2": 0.01,
        "critic/0": 2**0.5,
        "critic/1": 2**0.5,
        "critic/2": 1,
    }
    for name, gain in gains.items():
        w = params[f"{name}/weight"].detach().double().numpy()
        square = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(square, gain**2 * np.eye(len(square)), atol=1e-6 * gain, err_msg=name)
        assert not params[f"{name}/bias"].any()


def test_a_recurrent_net_starts_with_gain_one_in_the_cell_and_a_timid_policy():
    params = networks.init(GRU, np.random.default_rng(0))
    for name in ("rnn/input", "rnn/hidden"):
        w = params[name].detach().double().numpy()
        np.testing.assert_allclose(w.T @ w, np.eye(w.shape[1]), atol=1e-6, err_msg=name)
    assert float(params["actor/0/weight"].detach().norm()) == pytest.approx(0.01 * math.sqrt(3), rel=1e-5)
    assert float(params["critic/0/weight"].detach().norm()) == pytest.approx(1.0, rel=1e-5)
    assert not params["rnn/input_bias"].any()


def test_log_std_starts_where_it_is_told():
    assert networks.init(MLP, np.random.default_rng(0), log_std=-0.5)["log_std"].tolist() == [-0.5] * 3


def test_the_start_depends_on_the_stream_alone():
    same, other = (networks.init(MLP, np.random.default_rng(seed)).flat for seed in (0, 1))
    assert torch.equal(same, networks.init(MLP, np.random.default_rng(0)).flat)
    assert not torch.equal(same, other)


def test_orthogonal_matrices_are_not_biased_to_one_sign():
    """QR alone gives a first column of one sign only; the sign of R's diagonal makes the draw uniform."""
    firsts = [networks.orthogonal(np.random.default_rng(seed), 3, 3)[0, 0] for seed in range(200)]
    assert 60 < sum(x > 0 for x in firsts) < 140


# ---- Feed-forward


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_an_mlp_is_torchs_stack_of_linears(activation):
    net = Net(obs_dim=5, out_dim=3, hidden=(8, 6), activation=activation)
    params, obs = made(net), normal(4, 2, 5)
    act = torch.tanh if activation == "tanh" else torch.relu
    for name, function in (("actor", networks.policy), ("critic", networks.value)):
        x = obs
        for i in range(3):
            x = x @ params[f"{name}/{i}/weight"].T + params[f"{name}/{i}/bias"]
            x = act(x) if i < 2 else x
        found = function(net, params, obs)
        assert found.shape == ((4, 2, 3) if name == "actor" else (4, 2))
        np.testing.assert_allclose(found.detach().reshape(x.shape), x.detach(), rtol=1e-5, atol=1e-6)


# ---- Recurrent


def torch_twin(net: Net, params: networks.Params) -> torch.nn.RNNBase:
    module = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[net.rnn](net.hidden[-1], net.rnn_size)
    theirs = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    ours = ("rnn/input", "rnn/hidden", "rnn/input_bias", "rnn/hidden_bias")
    with torch.no_grad():
        for a, b in zip(theirs, ours):
            getattr(module, a).copy_(params[b])
    return module


@RECURRENT
def test_unroll_is_torchs_recurrent_layer_between_body_and_heads(net):
    params, obs, memory = made(net), normal(6, 4, 5), normal(4, net.memory_dim, seed=2)
    out, v, after = networks.unroll(net, params, obs, memory, torch.zeros(6, 4))
    body = torch.tanh(obs @ params["body/0/weight"].T + params["body/0/bias"])
    start = memory[None] if net.rnn == "gru" else tuple(x[None].contiguous() for x in memory.split(7, 1))
    hidden, end = torch_twin(net, params)(body, start)
    end = end[0] if net.rnn == "gru" else torch.cat([x[0] for x in end], 1)
    policy = hidden @ params["actor/0/weight"].T + params["actor/0/bias"]
    value = (hidden @ params["critic/0/weight"].T + params["critic/0/bias"])[..., 0]
    for found, expected in ((out, policy), (v, value), (after, end)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-4, atol=1e-5)


@RECURRENT
def test_memory_is_cleared_before_a_fresh_step(net):
    """Row 0 begins anew at t = 3: from there on it is what a run from empty memory gives; row 1 goes on."""
    params, obs, memory = made(net), normal(6, 2, 5), normal(2, net.memory_dim, seed=2)
    fresh = torch.zeros(6, 2, dtype=torch.bool)
    through = networks.unroll(net, params, obs, memory, fresh)
    fresh[3, 0] = True
    out, v, after = networks.unroll(net, params, obs, memory, fresh)
    anew = networks.unroll(net, params, obs[3:], torch.zeros_like(memory), torch.zeros(3, 2))
    assert torch.equal(out[:3], through[0][:3])
    for found, again in ((out[3:, 0], anew[0][:, 0]), (v[3:, 0], anew[1][:, 0]), (after[0], anew[2][0])):
        np.testing.assert_allclose(found.detach(), again.detach(), rtol=1e-5, atol=1e-6)
    assert not torch.allclose(out[3, 0], through[0][3, 0])
    assert torch.equal(out[:, 1], through[0][:, 1])


@RECURRENT
def test_no_gradient_flows_through_a_fresh_step(net):
    params, obs, memory = made(net), normal(4, 1, 5).requires_grad_(), normal(1, net.memory_dim).requires_grad_()
    fresh = torch.tensor([[False], [False], [True], [False]])
    networks.unroll(net, params, obs, memory, fresh)[1][3].sum().backward()
    assert not obs.grad[:2].any()
    assert obs.grad[2].any()
    assert not memory.grad.any()


@RECURRENT
def test_single_steps_equal_one_unroll(net):
    """Acting step by step, as collection does, gives what the learner sees when it unrolls the whole."""
    params, obs, memory = made(net), normal(5, 3, 5), torch.zeros(3, net.memory_dim)
    whole = networks.unroll(net, params, obs, memory, torch.zeros(5, 3))
    for t in range(5):
        out, v, memory = networks.unroll(net, params, obs[t : t + 1], memory, torch.zeros(1, 3))
        np.testing.assert_allclose(out[0].detach(), whole[0][t].detach(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(v[0].detach(), whole[1][t].detach(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(memory.detach(), whole[2].detach(), rtol=1e-5, atol=1e-6)


# ---- Loading


def values(net: Net) -> dict[str, np.ndarray]:
    return {name: np.random.default_rng(5).normal(size=shape) for name, shape in networks.shapes(net).items()}


def test_load_copies_by_name_in_any_order():
    params = networks.init(MLP, np.random.default_rng(0))
    given = values(MLP)
    params.load(dict(reversed(given.items())))
    for name, array in given.items():
        np.testing.assert_allclose(params[name].detach(), array.astype(np.float32), err_msg=name)
    assert params.named["actor/0/weight"].data_ptr() == params.flat.data_ptr()


def test_a_wrong_shape_is_named_with_both_shapes():
    params = networks.init(MLP, np.random.default_rng(0))
    before = params.flat.clone()
    given = values(MLP) | {"actor/1/weight": np.zeros((6, 9))}
    with pytest.raises(
        ValueError, match=r"`actor/1/weight` has shape \(6, 8\) by the config.* holds \(6, 9\).*`hidden`"
    ):
        params.load(given)
    assert torch.equal(params.flat, before)  # all or nothing


def test_a_missing_name_is_named_with_those_that_are_there():
    given = values(MLP)
    del given["log_std"]
    with pytest.raises(KeyError, match=r"`log_std` is missing.*actor/0/bias"):
        networks.init(MLP, np.random.default_rng(0)).load(given)


def test_a_critic_that_is_too_large_is_called_by_its_own_setting():
    with pytest.raises(ConfigError, match="but the layers of `critic_hidden` make 900,"):
        networks.init(networks.Net(4, 2, critic_hidden=(30_000, 30_000)), np.random.default_rng(0))
    with pytest.raises(ConfigError, match="but `hidden`, `rnn_size` and what it observes make 1,800,"):
        networks.init(networks.Net(4, 2, hidden=(30_000, 30_000)), np.random.default_rng(0))
