"""Do named streams depend on their name and seed alone, for ever, and do they survive a checkpoint?"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import orjson
import pytest

from relab.base import streams


def test_seeds_are_what_they_always_were():
    """Changing these changes every run that was ever made: raise the scheme's version instead."""
    assert streams.seed_for(0, "init") == 10691038346555676643
    assert streams.seed_for(1, "eval", 3) == 5863766696730921791
    assert streams.world_seeds(0, "env", 3).tolist() == [
        11203367712498482354,
        6428174089149876222,
        6490667616996069274,
    ]
    assert streams.generator(0, "init").integers(0, 2**63, 2).tolist() == [5597767253917449549, 3672873363199429622]


def test_seeds_are_64_bits_and_tell_all_parts_apart():
    seeds = [
        streams.seed_for(s, n, *i)
        for s in (0, 1, 11)
        for n in ("a", "b", "a1")
        for i in ((), (0,), (1,), (0, 0), (1, 1))
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert max(seeds) > 2**60


def test_numpy_integers_are_integers():
    assert streams.seed_for(np.int64(3), "a", np.uint8(1)) == streams.seed_for(3, "a", 1)


@pytest.mark.parametrize("name", ["", "a:1"])
def test_names_that_could_collide_are_refused(name):
    with pytest.raises(ValueError, match="stream's name"):
        streams.seed_for(0, name)


def test_world_i_does_not_depend_on_how_many_there_are():
    many = streams.world_seeds(5, "env", 10_000)
    assert (many.dtype, many.shape) == (np.uint64, (10_000,))
    assert np.array_equal(many[:7], streams.world_seeds(5, "env", 7))
    assert np.array_equal(many[300:310], streams.world_seeds(5, "env", 10, start=300))
    assert len(np.unique(many)) == len(many)
    assert not np.isin(many, streams.world_seeds(6, "env", 10_000)).any()
    assert not np.isin(many, streams.world_seeds(5, "eval", 10_000)).any()


def test_world_seeds_are_spread_over_all_bits():
    bits = np.unpackbits(streams.world_seeds(0, "env", 10_000).view(np.uint8)).reshape(10_000, 64)
    assert np.abs(bits.mean(0) - 0.5).max() < 0.03  # 6 standard deviations


def test_splitmix64_matches_its_reference():
    """The first outputs of Vigna's splitmix64.c for seed 1234567."""
    states = np.uint64(1234567) + np.arange(1, 4, dtype=np.uint64) * streams.GOLDEN
    assert streams.splitmix64(states).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_one_stream_drawing_more_leaves_the_others_alone():
    a, b = streams.generator(0, "action"), streams.generator(0, "minibatch")
    expected = streams.generator(0, "minibatch").random(5)
    a.random(100)
    assert np.array_equal(b.random(5), expected)


def test_state_survives_json():
    rng = streams.generator(3, "minibatch")
    rng.integers(0, 10, 7, dtype=np.int32)  # leaves half a word in the generator
    state = orjson.loads(orjson.dumps(streams.get_state(rng)))
    expected = (rng.integers(0, 10, 3, dtype=np.int32).tolist(), rng.random(5).tolist(), rng.permutation(9).tolist())
    for again in (streams.from_state(state), streams.set_state(streams.generator(0, "x"), state)):
        drawn = (
            again.integers(0, 10, 3, dtype=np.int32).tolist(),
            again.random(5).tolist(),
            again.permutation(9).tolist(),
        )
        assert drawn == expected


def test_foreign_generators_and_states_are_refused():
    with pytest.raises(TypeError, match="MT19937"):
        streams.get_state(np.random.Generator(np.random.MT19937(0)))
    with pytest.raises(ValueError, match="Philox"):
        streams.from_state({"kind": "Philox"})


def test_hash_randomisation_changes_nothing():
    code = "from relab.base import streams; print(streams.seed_for(0, 'init'), *streams.world_seeds(1, 'env', 3))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": h}, capture_output=True, check=True
        ).stdout
        for h in ("1", "2")
    }
    assert len(runs) == 1


def test_the_world_of_a_seed():
    for seed, name in ((0, "env"), (7, "eval"), (-3, "env")):
        seeds = streams.world_seeds(seed, name, 50, start=10**6)
        assert [streams.world_of(int(s), seed, name) for s in seeds] == list(range(10**6, 10**6 + 50))
