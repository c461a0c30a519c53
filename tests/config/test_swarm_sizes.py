"""Do PufferLib's words for the size of a batch become relab's, and are those that do not fit refused?"""

from __future__ import annotations

import pytest

from relab.config import layers
from relab.config.base import ConfigError
from relab.config.layers import Layer, parse_overrides

WORDS = ("vec.num_envs=56", "vec.num_workers=28", "env.num_envs=4", "env.num_drones=8")
RUN = ("algo=ppo", "env=drones", "rnn=lstm")


def resolved(*words: str):
    return layers.resolve([Layer("command line", parse_overrides([*RUN, *words]))]).config


@pytest.mark.parametrize("size", [("train.bptt_horizon=16",), ("train.batch_size=28_672", "train.bptt_horizon=auto"),
                                  ("train.bptt_horizon=16", "train.batch_size=28672")])  # fmt: skip
def test_three_ways_to_one_batch(size):
    run = resolved(*WORDS, *size, "train.minibatch_size=28672", "train.max_minibatch_size=7168")
    algo = run.algo
    assert (algo.envs, run.env.agents, algo.steps, algo.bptt) == (224, 8, 16, 16)
    assert algo.envs * run.env.agents * algo.steps == 28_672
    assert (algo.minibatches, algo.chunk) == (1, 7168)


def test_minibatches_follow():
    assert resolved(*WORDS, "train.bptt_horizon=16", "train.minibatch_size=7168").algo.minibatches == 4


@pytest.mark.parametrize(("words", "message"), [
    (("vec.num_envs=56", "vec.num_workers=24", "train.bptt_horizon=16"), "`vec.num_workers`, but got 56 and 24"),
    ((*WORDS, "train.bptt_horizon=16", "train.batch_size=30000"), r"30000 and 4 x 8 x 56 x 16 = 28672"),
    ((*WORDS, "train.batch_size=30000"), r"30000 and 4 x 8 x 56 = 1792; try 28672"),
    (WORDS, "both are auto"),
    ((*WORDS, "train.bptt_horizon=16", "train.minibatch_size=10000"), "28672 and 10000"),
    ((*WORDS, "train.bptt_horizon=16", "train.max_minibatch_size=10000"), "28672 and 10000"),
    ((*WORDS, "train.bptt_horizon=0"), "at least 1"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        resolved(*words)


def test_a_file_in_those_words():
    env = {"name": "drones", "num_envs": "4", "num_drones": "8", "rings": "3"}
    vec, train = {"num_envs": "56", "num_workers": "28"}, {"bptt_horizon": "16", "batch_size": "28672"}
    nested = {"algo": "ppo", "env": env, "vec": vec, "train": train}
    run = layers.resolve([Layer("file swarm.yaml", nested)]).config
    assert (run.algo.envs, run.env.agents, run.env.rings, run.algo.steps) == (224, 8, 3, 16)


def test_other_words_of_theirs_are_still_unknown():
    with pytest.raises(ConfigError, match=r"train\.optimizer"):
        resolved(*WORDS, "train.bptt_horizon=16", "train.optimizer=muon")
