"""Dreamer from images: what is kept of them, what is drawn of them, and the contract with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relab.config import layers
from relab.config.base import ConfigError
from relab.config.dreamer import Dreamer
from relab.config.envs import CartPole as Params
from relab.config.layers import Layer
from relab.record.spec import Action, Spec
from relab.train import dream_films, replay, session
from relab.train.algos import dreamer
from relab.train.algos.dreamer import frames, images, learning, sequences
from relab.train.check_algo import check_algo
from relab.train.contract import Setup
from relab.train.envs.cartpole import CartPole
from relab.train.probes import open_loop
from relab.train.replay import Data, Rows

SMALL: dict[str, Any] = {
    "algo": "dreamer", "env": "cartpole", "env.pixels": 16, "total_steps": 240, "algo.envs": 2, "algo.steps": 16,
    "algo.learning_starts": 100, "algo.replay": 150, "algo.sequences": 2, "algo.length": 8, "algo.deter": 16,
    "algo.hidden": 8, "algo.stoch": 4, "algo.units": 8, "algo.filters": 4, "algo.imagine": 3, "algo.lr_until": 1.0,
    "algo.updates_per_step": 0.1, "algo.bins": 11, "eval.every": 100, "eval.episodes": 2,
}  # fmt: skip


def state(root: Path | None = None, **more: Any) -> Any:
    cfg = Dreamer(envs=2, learning_starts=64, sequences=3, length=8, deter=16, hidden=8, stoch=4, units=8, filters=4,
                  imagine=3, bins=11, replay=200, **more)  # fmt: skip
    return dreamer.init(Setup(CartPole(Params(pixels=16)), cfg, 0, 10**6, data=Data(root)))


def test_dreamer_keeps_the_contract_on_images():
    check_algo(SMALL)


def test_every_row_of_a_sequence_shows_the_image_that_was_seen():
    """The replay's bytes, and those an episode ended with, against what the worlds showed."""
    s = state()
    seen: list[np.ndarray] = []
    ends: dict[tuple[int, int], np.ndarray] = {}
    for t in range(90):
        seen.append(s.gathering.worlds.obs[:, 0].copy())
        s.gathering.step(dreamer.Even(s.agent), s.counts)
        for row in np.flatnonzero(s.gathering.replay.ring[t]["terminated"]):
            ends[t, int(row)] = s.gathering.worlds.final_obs[row, 0].copy()
    assert len(ends) > 4
    (end, row), image = list(ends.items())[2]
    rows = frames.filled(s.gathering, Rows(np.array([end - 2]), np.array([row])), 6)
    assert rows.last[:, 0].tolist() == [0, 0, 0, 1, 0, 0]
    wanted = [seen[end - 2][row], seen[end - 1][row], seen[end][row], image, seen[end + 1][row], seen[end + 2][row]]
    np.testing.assert_array_equal(rows.obs[:, 0], np.stack(wanted))


def test_a_ring_that_went_round_still_shows_them():
    s = state()
    for _ in range(250):  # of 100 slots
        s.gathering.step(dreamer.Even(s.agent), s.counts)
    last = s.gathering.worlds.obs[:, 0].copy()
    s.gathering.step(dreamer.Even(s.agent), s.counts)
    rows = frames.filled(s.gathering, Rows(np.array([250, 250]), np.array([0, 1])), 1)
    np.testing.assert_array_equal(rows.obs[0], last)
    places = sequences.filled(s.gathering.replay, Rows(np.arange(160, 240), np.zeros(80, np.int64)), 8, places=True)
    finals = -1 - places.obs[places.last > 0]
    assert finals.size
    assert finals.min() >= s.gathering.finals.oldest


def test_images_are_bytes_in_the_record_each_of_them_once(tmp_path):
    s = state(tmp_path)
    for _ in range(60):
        s.gathering.step(dreamer.Even(s.agent), s.counts)
    s_data = s.gathering.replay.store
    s_data.flush()
    s.gathering.finals.store.flush()
    rows = replay.read(tmp_path / "data" / "replay")
    assert rows["obs"].dtype == np.uint8
    assert rows["obs"].shape == (60, 2, 256)
    assert "next_obs" not in rows
    finals = replay.read(tmp_path / "data" / "finals")
    assert len(finals["obs"]) == int((rows["terminated"] | rows["truncated"]).sum()) > 0


def test_rows_that_no_run_wrote_are_refused():
    s = state()
    for _ in range(60):
        s.gathering.step(dreamer.Even(s.agent), s.counts)
    ring = s.gathering.replay.ring
    s.gathering.check(60)
    over = np.argwhere(ring["terminated"])[0]
    ring["final"][tuple(over)] = -1000
    with pytest.raises(ValueError, match="rows of its replay were changed"):
        s.gathering.check(60)


@pytest.mark.parametrize(("side", "channels"), [(16, 1), (64, 3)])
def test_the_decoder_draws_what_the_encoder_sees(side, channels):
    spec = Spec("seen-v1", side * side * channels, Action("discrete", 1, (2,)), obs_shape=(side, side, channels))
    image = images.image_of(spec, 4)
    assert image is not None
    params = weights(image)
    seen = images.encode(image, params, torch.rand(3, 2, spec.obs_dim))
    assert seen.shape == (3, 2, image.seen)
    assert images.decode(image, params, torch.rand(3, 2, 10)).shape == (3, 2, spec.obs_dim)


def weights(image: images.Image) -> Any:
    from relab.train.algos.dreamer.layers import Weights

    return Weights(images.shapes(image, 10))


def test_a_pixel_keeps_its_place_through_encoder_and_decoder():
    """Flat images are row by row with the channels of a pixel side by side, in and out."""
    image = images.Image(16, 3, 4)
    params = weights(image)
    with torch.no_grad():
        params[f"{images.DECODER}/out/bias"].copy_(torch.arange(48.0))  # of a patch of 4 x 4 pixels
    drawn = images.decode(image, params, torch.rand(1, 10)).view(16, 16, 3)
    assert drawn[7, 9].tolist() == [39.0, 40.0, 41.0]  # row 3 and column 1 of its patch


@pytest.mark.slow
def test_an_image_is_learned_until_the_pole_is_drawn():
    """A hundred updates of the model alone on the first steps: the error falls to a fraction of an empty picture's."""
    s = state(mode="model", lr=3e-3, lr_warmup=0)
    for _ in range(50):
        s.gathering.step(dreamer.Even(s.agent), s.counts)
    first = learning.update(s)["model/obs_loss"]
    last = [learning.update(s)["model/obs_loss"] for _ in range(150)][-20:]
    assert np.mean(last) < 0.25 * first


def test_an_image_that_does_not_halve_is_told():
    with pytest.raises(ConfigError, match=r"side is 16, 32, 64 or 128, but cartpole-v1 observes images of 48 x 48 x 1"):
        dreamer.init(Setup(CartPole(Params(pixels=48)), Dreamer(), 0, 10**6))


def config(**more: Any) -> Any:
    return layers.resolve([Layer("test", {**SMALL, **more})]).config


def test_a_checkpoint_of_another_size_is_told_before_anything_starts(tmp_path):
    cfg = config(total_steps=128)
    session.start(cfg, tmp_path / "small", {}, {})
    larger = config(start_from=str(tmp_path / "small"), start_parts=["model"], **{"algo.deter": 32})
    with pytest.raises(ConfigError, match=r"of another size: 8 of the 36 weights .* is 8x32 there and 8x48 here"):
        session.inherited_by(larger, session.make_env(larger), tmp_path)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"algo.updates_per_step": 1e-3}, r"at least one update, but 0.001 for each of the 140 steps .* make 0.14"),
        ({"algo.updates_per_step": 0.02, "algo.sequences": 1}, r"0.02 \* 1 \* 8 = 0.16 leave 85% of the steps unused"),
    ],
)
def test_a_replay_ratio_that_starves_is_told(more, words):
    cfg = config(**more)
    with pytest.raises(ConfigError, match=words):
        dreamer.init(session.setup_of(cfg, session.make_env(cfg)))


# ---- Stored latents


@pytest.mark.parametrize("pixels", ["null", 16])
@pytest.mark.some(1)
def test_dreamer_keeps_the_contract_with_stored_latents(pixels):
    check_algo(SMALL | {"env.pixels": pixels, "algo.latents": "stored", "total_steps": 200})


def test_a_sequence_goes_on_from_what_was_remembered_before_it():
    s = state(latents="stored")
    for _ in range(60):
        s.gathering.step(dreamer.behaviour_of(s), s.counts)
    g, kept = s.gathering, s.latents
    kept.h[:], kept.z[:] = np.arange(100)[:, None, None], 1
    over = (g.replay.ring["terminated"] | g.replay.ring["truncated"])[:60, 0]
    end, middle = np.flatnonzero(over)[0], np.flatnonzero(~over[:-1])[20]
    starts = Rows(np.array([end + 1, middle + 1]), np.zeros(2, np.int64))
    rows, recalled = kept.recall(starts, frames.filled(g, starts, 4))
    assert rows.fresh[0].tolist() == [1, 0]  # an episode begins, one goes on
    assert recalled.start.h[:, 0].tolist() == [0, middle]
    assert recalled.start.z[:, 0].tolist() == [0, 1]
    assert rows.action[0, 1] == g.replay.ring["action"][middle, 0]


def test_an_update_refreshes_the_rows_that_it_ran_over():
    s = state(latents="stored")
    for _ in range(60):
        s.gathering.step(dreamer.behaviour_of(s), s.counts)
    before = s.latents.h.copy()
    learning.update(s)
    changed = (s.latents.h != before).any(-1)
    assert 8 <= changed.sum() <= 3 * 8  # three sequences of eight rows, of which some may be ends
    assert (s.latents.z[changed].reshape(-1, 4, 4).sum(1) == 1).all()  # one-hot, classes first


# ---- Films


def test_a_film_shows_real_seen_and_foreseen_pictures(tmp_path):
    from PIL import Image

    session.start(config(total_steps=128), tmp_path / "run", {}, {})
    strip = dream_films.film(tmp_path / "run", "latest", tmp_path / "strip.png", 10, 2, 3, 9)
    assert (strip.frames, strip.looks, strip.step) == (12, 3, 128)
    assert 0 < strip.seen < 0.2
    with Image.open(strip.path) as picture:
        side = 16 * 12 + 2 * dream_films.EDGE + dream_films.GAP
        assert picture.size == (12 * side, 2 * 3 * side)  # two worlds, three pictures of each
        corners = [[picture.getpixel((t * side, k * side)) for t in (2, 3)] for k in range(3)]
    white, looks, foresees = (255, 255, 255), dream_films.LOOKS, dream_films.FORESEES
    assert corners == [[white, white], [looks, looks], [looks, foresees]]  # three looks, as in films
    assert strip.learned
    assert not dream_films.film(tmp_path / "run", "step-000000000000", tmp_path / "0.png", 10, 1, 3, 9).learned
    gif = dream_films.film(tmp_path / "run", "latest", None, 10, 1, 3, 5)
    assert gif.path.parent == tmp_path / "run" / "media"
    assert gif.path.stat().st_size > 500


def test_pictures_are_kept_while_it_trains_and_change_nothing(tmp_path):
    for name, more in (("plain", {}), ("kept", {"record.pictures": 64})):
        session.start(config(total_steps=224, **more), tmp_path / name, {}, {})
    kept = sorted(path.name for path in (tmp_path / "kept" / "media").iterdir())
    assert kept == [f"step-{step:012d}-imagine.png" for step in (128, 192)]  # at 64 nothing had been learned
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("plain", "kept")]
    assert metrics[0] == metrics[1]


def test_pictures_need_a_world_model_that_draws(tmp_path):
    with pytest.raises(ConfigError, match=r"`record.pictures` = 64 keeps .* draws none; train dreamer with"):
        session.start(config(**{"env.pixels": None, "record.pictures": 64}), tmp_path / "run", {}, {})
    assert not (tmp_path / "run").exists()


def test_what_was_seen_is_the_same_in_film_and_world(tmp_path):
    """The first picture is the real one, and after an end all three are black."""
    s = state()
    walk = open_loop.walk_of(CartPole(Params(pixels=16)), s.agent, 0, "test", 4, 80)
    pictures = dream_films.drawn(s.agent, walk, 5, np.random.default_rng(0))
    assert torch.equal(pictures[0], walk.obs * walk.counts.unsqueeze(-1))
    assert walk.counts[-1].sum() < 4
    assert float(pictures[:, walk.counts == 0].abs().max()) == 0.0


def test_a_run_without_pictures_is_told(tmp_path):
    session.start(config(total_steps=128, **{"env.pixels": "null"}), tmp_path / "run", {}, {})
    with pytest.raises(ConfigError, match=r"`--imagine` films .* run \(dreamer on 4 numbers\) draws none"):
        dream_films.film(tmp_path / "run", "latest", None, 10, 1, 3, 5)
