"""Do images of Gymnasium arrive as (height, width, channels), from 0 to 1, under the contract of every environment?"""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from relab.config.envs import Gym as Params
from relab.record.spec import Action, Spec
from relab.train.envs.base import Worlds
from relab.train.envs.check import EnvError, check_env
from relab.train.envs.check_static import check_spec
from relab.train.envs.gym_bridge import Gym, image_shape, pixels
from train.envs import dots

dots.register()


def bridge(**kwargs) -> Gym:
    return Gym(Params(name=f"gym:{dots.ID}", kwargs=kwargs))


SHAPES = {"hwc": (8, 10, 1), "hw": (8, 10, 1), "chw": (8, 10, 3), "bool": (8, 10, 2)}


@pytest.mark.parametrize("layout", SHAPES)
def test_every_layout_becomes_height_width_channels_from_0_to_1(layout):
    env = bridge(layout=layout, width=10)
    assert env.spec.obs_shape == SHAPES[layout]
    assert env.spec.obs_dim == np.prod(SHAPES[layout])
    worlds = Worlds(env, 4)
    obs = worlds.reset(np.arange(4))
    assert obs.dtype == np.float32
    for i, each in enumerate(worlds.state.envs):
        image = obs[i, 0].reshape(env.spec.obs_shape)
        dot = each.unwrapped
        assert image[dot.row, dot.column].max() == image.max() == 1.0
        assert np.count_nonzero(image) == (2 if layout == "bool" else 1)


@pytest.mark.parametrize("layout", ["hwc", "chw"])
def test_images_keep_the_contract(layout):
    check_env(bridge(layout=layout), worlds=3, steps=40)


@pytest.mark.parametrize(
    ("space", "shape"),
    [
        (spaces.Box(0, 255, (84, 84, 3), np.uint8), (84, 84, 3)),
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), (84, 84, 4)),  # stacked frames
        (spaces.Box(0, 255, (210, 160), np.uint8), (210, 160, 1)),
        (spaces.Box(0, 1, (10, 10, 7), bool), (10, 10, 7)),
        (spaces.Box(0, 255, (128,), np.uint8), ()),  # a machine's memory
        (spaces.Box(0, 255, (4, 84, 84, 3), np.uint8), ()),
        (spaces.Box(0, 1, (8, 8, 3), np.float32), ()),
        (spaces.Dict(a=spaces.Box(0, 255, (8, 8, 3), np.uint8)), ()),
        (spaces.Discrete(3), ()),
    ],
)
def test_what_is_an_image(space, shape):
    assert image_shape(space) == shape


def test_pixels_are_divided_by_what_their_space_allows():
    board = spaces.Box(0, 2, (3, 3), np.uint8)
    assert pixels(board, np.full((3, 3), 2, np.uint8)).tolist() == [1.0] * 9
    frames = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    flat = pixels(spaces.Box(0, 255, (2, 3, 3), np.uint8), frames)
    assert flat.dtype == np.float32
    np.testing.assert_allclose(flat.reshape(3, 3, 2)[1, 2] * 255, [5, 14], rtol=1e-6)


def test_an_image_of_another_size_is_told():
    env = bridge()
    worlds = Worlds(env, 1)
    worlds.reset(np.arange(1))
    worlds.state.envs[0].unwrapped._draw = lambda: np.zeros((8, 9, 1), np.uint8)
    with pytest.raises(EnvError, match=r"step\(\) of gym:Dots-v0 must give an observation of Box"):
        worlds.step(np.zeros((1, 1), np.int64))


class Painted:
    """Nothing but a spec."""

    name, Params = "painted-v1", Params

    def __init__(self, dim: int, shape: tuple[int, ...]) -> None:
        self.spec = Spec("painted-v1", dim, Action("discrete", 1, (2,)), obs_shape=shape)


@pytest.mark.parametrize(("dim", "shape"), [(64, (8, 8)), (64, (8, 8, 2)), (0, (8, 8, 0))])
def test_a_spec_whose_shape_and_size_differ_is_told(dim, shape):
    with pytest.raises(EnvError, match="Probable cause"):
        check_spec(Painted(dim, shape))
    check_spec(Painted(64, (8, 8, 1)))


def test_a_flattening_wrapper_makes_a_vector():
    wrapper = gymnasium.wrappers.FlattenObservation
    gymnasium.register("FlatDots-v0", entry_point=lambda **kwargs: wrapper(dots.Dots(**kwargs)))
    try:
        env = Gym(Params(name="gym:FlatDots-v0"))
    finally:
        del gymnasium.registry["FlatDots-v0"]
    assert (env.spec.obs_dim, env.spec.obs_shape) == (64, ())
