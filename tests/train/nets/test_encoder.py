"""Do the convolutions compute what torch's own modules compute, gradients too, and do policy and value share them?"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from relab.train.nets import encoder, networks
from relab.train.nets.networks import Net

IMAGES = [(8, 8, 1), (3, 4, 2), (10, 10, 6), (36, 36, 1), (40, 52, 3)]


def net_for(image: tuple[int, ...], **more) -> Net:
    return Net(obs_dim=math.prod(image), out_dim=3, hidden=(8,), image=image, **more)


def made(net: Net) -> networks.Params:
    """Parameters with biases that are not zero."""
    params = networks.init(net, np.random.default_rng(0))
    params.flat.add_(torch.from_numpy(np.random.default_rng(1).normal(0, 0.05, params.flat.numel())))
    return params


def pictures(net: Net, *rows: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(2).random((*rows, net.obs_dim), np.float32))


def twin(net: Net, params: networks.Params) -> torch.nn.Sequential:
    """torch's modules with the same numbers, for images [B, channels, height, width]."""
    large = min(net.image[:2]) >= 36
    sizes = [(32, 8, 4), (64, 4, 2), (64, 3, 1)] if large else [(16, 3, 1)]
    channels = [net.image[2], *(size[0] for size in sizes)]
    parts: list[torch.nn.Module] = []
    for (n_in, n_out), (_, size, stride) in zip(pairwise(channels), sizes):
        parts += [torch.nn.Conv2d(n_in, n_out, size, stride), torch.nn.ReLU()]
    dense = params[f"encoder/{len(sizes)}/weight"]
    modules = torch.nn.Sequential(*parts, torch.nn.Flatten(), torch.nn.Linear(*reversed(dense.shape)), torch.nn.ReLU())
    with torch.no_grad():
        for ours, theirs in zip(encoder_names(params), modules.parameters()):
            theirs.copy_(params[ours])
    return modules


def encoder_names(params: networks.Params) -> list[str]:
    return [name for name in params.named if name.startswith("encoder")]


@pytest.mark.parametrize("image", IMAGES, ids=str)
def test_it_is_torchs_stack_of_convolutions_and_so_are_its_gradients(image):
    net = net_for(image)
    params, obs = made(net), pictures(net, 2, 3)
    modules = twin(net, params)
    found = networks.seen(net, params, obs)
    expected = modules(obs.view(6, *image).permute(0, 3, 1, 2).contiguous()).view(2, 3, -1)
    assert found.shape == (2, 3, net.seen_dim)
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-4, atol=1e-5)
    (found**2).sum().backward()
    (expected**2).sum().backward()
    for name, theirs in zip(encoder_names(params), modules.parameters()):
        scale = float(theirs.grad.abs().max())
        np.testing.assert_allclose(params.grads[name], theirs.grad, rtol=1e-3, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize(
    ("image", "inputs", "features"),
    [((36, 36, 4), 64, 512), ((84, 84, 4), 3136, 512), ((35, 90, 4), 16 * 33 * 88, 128), ((10, 10, 7), 16 * 64, 128),
     ((3, 3, 1), 16, 128)],
)  # fmt: skip
def test_sizes_are_those_of_the_papers(image, inputs, features):
    assert list(encoder.shapes(image).values())[-2:] == [(features, inputs), (features,)]


def test_filters_are_orthogonal_with_gain_root_two():
    params = networks.init(net_for((36, 36, 3)), np.random.default_rng(0))
    for i in range(4):
        w = params[f"encoder/{i}/weight"].detach().double().flatten(1).numpy()
        square = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(square, 2 * np.eye(len(square)), atol=3e-6, err_msg=str(i))
        assert not params[f"encoder/{i}/bias"].any()


def test_policy_and_value_share_it():
    net = net_for((8, 8, 1))
    params, obs = made(net), pictures(net, 5)
    out, v = networks.both(net, params, obs)
    assert torch.equal(out, networks.policy(net, params, obs))
    assert torch.equal(v, networks.value(net, params, obs))
    for outputs in (out, v):
        params.grad.zero_()
        outputs.sum().backward(retain_graph=True)
        assert all(params.grads[name].any() for name in encoder_names(params))


@pytest.mark.parametrize("rnn", ["gru", "lstm"])
def test_a_recurrent_net_sees_the_features(rnn):
    net = net_for((8, 8, 1), rnn=rnn, rnn_size=7)
    params, obs, memory = made(net), pictures(net, 4, 3), torch.zeros(3, net.memory_dim)
    without = Net(obs_dim=128, out_dim=3, hidden=(8,), rnn=rnn, rnn_size=7)
    bare = networks.Params(networks.shapes(without))
    bare.load({name: params[name].detach().numpy() for name in bare.named})
    found = networks.unroll(net, params, obs, memory, torch.zeros(4, 3))
    expected = networks.unroll(without, bare, networks.seen(net, params, obs), memory, torch.zeros(4, 3))
    assert all(torch.equal(a, b) for a, b in zip(found, expected))


def test_an_image_beyond_the_limit_of_weights_is_refused_before_anything_is_laid_out():
    with pytest.raises(ValueError, match=r"at most 268,435,456 weights, but .*what it observes"):
        networks.init(net_for((20_000, 20_000, 3)), np.random.default_rng(0))
