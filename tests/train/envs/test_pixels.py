"""Do pictures show where cart and pole are, exactly as bytes, and does every environment that draws give them?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from relab.config.base import ConfigError
from relab.config.envs import CartPole as Params
from relab.config.envs import Gym as GymParams
from relab.train import rollout
from relab.train.envs import cartpole_pixels, resize
from relab.train.envs.base import Worlds
from relab.train.envs.cartpole import CartPole
from relab.train.envs.check import check_env
from relab.train.envs.gym_bridge import Gym


def picture(x: float, angle: float, side: int = 64) -> np.ndarray:
    flat = np.zeros(side * side, np.float32)
    cartpole_pixels.draw(x, angle, side, flat)
    return flat.reshape(side, side)


def centre(row: np.ndarray) -> float:
    """The mean column of what is bright."""
    return float((row * (np.arange(row.size) + 0.5)).sum() / row.sum())


def test_pictures_of_cartpole_keep_the_contract():
    env = CartPole(Params(pixels=64))
    assert (env.spec.obs_dim, env.spec.obs_shape) == (4096, (64, 64, 1))
    check_env(env, worlds=3, steps=60)
    assert not rollout.offers_collect(env)  # whose kernel sees the four numbers
    assert rollout.offers_collect(CartPole())


def test_a_cart_a_tenth_of_a_pixel_further_is_seen():
    here, there = picture(0.0, 0.0), picture(0.1 / cartpole_pixels.PER_METRE, 0.0)
    for row in (20, 54):  # the pole, and the cart with it
        assert centre(there[row]) - centre(here[row]) == pytest.approx(0.1, abs=0.01)
    assert centre(here[20]) == pytest.approx(32, abs=1e-6)


def test_the_tip_leans_by_nine_pixels_until_the_pole_falls():
    lean = centre(picture(0.0, math.radians(12))[10]) - 32
    assert lean == pytest.approx(42 * math.tan(math.radians(12)), abs=0.5)
    np.testing.assert_allclose(picture(0.0, -0.1), picture(0.0, 0.1)[:, ::-1], atol=1e-6)


@pytest.mark.parametrize("side", [16, 64, 128])
def test_a_byte_holds_a_pixel_exactly(side):
    pixels = picture(0.7, 0.13, side)
    assert (np.rint(pixels * 255).astype(np.uint8) / np.float32(255) == pixels).all()
    assert pixels.max() == 1.0
    assert 0.02 < pixels.mean() < 0.2


def test_an_end_of_the_track_is_inside_of_the_picture():
    for x in (-2.4, 2.4):
        assert picture(x, 0.0)[54].sum() > 0.9 * picture(0.0, 0.0)[54].sum()


def test_a_picture_made_small_keeps_its_mean():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (100, 150, 3), np.uint8)
    small = resize.square(image, 64)
    assert small.shape == (64, 64, 3)
    assert abs(float(small.mean()) - float(image.mean())) < 0.5
    whole = resize.square(np.kron(np.array([[0, 255], [255, 0]], np.uint8), np.ones((32, 48), np.uint8))[..., None], 2)
    assert whole[..., 0].tolist() == [[0, 255], [255, 0]]
    assert resize.square(small, 64) is small


class Drawn(CartPoleEnv):
    """Gymnasium's CartPole with a picture that needs no library: the cart is a dark column on white."""

    metadata = {"render_modes": ["rgb_array"]}

    def render(self) -> np.ndarray:
        image = np.full((100, 150, 3), 255, np.uint8)
        at = int(75 + 30 * self.state[0])
        image[60:80, max(0, at - 10) : at + 10] = 0
        return image


class Blind(CartPoleEnv):
    metadata = {"render_modes": []}


def registered(entry: type) -> Gym:
    gymnasium.register("Pictured-v0", entry_point=entry, max_episode_steps=20)
    return Gym(GymParams(name="gym:Pictured-v0", pixels=32))


@pytest.fixture(autouse=True)
def unregister() -> Iterator[None]:
    yield
    gymnasium.registry.pop("Pictured-v0", None)


def test_gymnasium_gives_its_pictures_made_small():
    env = registered(Drawn)
    assert (env.spec.obs_dim, env.spec.obs_shape) == (32 * 32 * 3, (32, 32, 3))
    check_env(env, worlds=2, steps=12)
    worlds = Worlds(env, 1)
    obs = worlds.reset(np.arange(1)).reshape(32, 32, 3)
    assert obs.max() == 1.0
    assert (np.rint(obs * 255) / np.float32(255) == obs).all()
    assert obs[22, 16, 0] == 0.0  # the cart
    assert obs[5].min() == 1.0


def test_what_cannot_draw_is_told_with_the_numbers():
    with pytest.raises(ConfigError, match=r"`pixels` = 32 asks for pictures of 32 x 32, but gym:Pictured-v0 cannot"):
        registered(Blind)
    with pytest.raises(ConfigError, match=r"must be from 16 to 512 a side, or null \(none\), but got 8"):
        Params(pixels=8).check()


def test_a_drawing_library_that_is_missing_is_told_before_anything_starts(monkeypatch):
    def missing(self):
        raise gymnasium.error.DependencyNotInstalled("pygame is not installed")

    monkeypatch.setattr(Drawn, "render", missing)
    with pytest.raises(ConfigError, match="gym:Pictured-v0 cannot be drawn: pygame is not installed"):
        registered(Drawn)
