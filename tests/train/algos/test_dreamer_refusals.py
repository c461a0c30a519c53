"""Is a Dreamer that could not learn refused before it starts, with the numbers and what to do?"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from relab.config import layers
from relab.config.base import ConfigError
from relab.config.layers import Layer
from relab.train import session, weights
from relab.train.algos import dreamer
from relab.train.algos.dreamer.collector import Collector

TINY = {"algo": "dreamer", "env": "cartpole", "total_steps": "1536", "lr_until": "1.0"}


def config(**settings: str):
    return layers.resolve([Layer("test", TINY | settings)]).config


def check(**settings: str) -> None:
    cfg = config(**settings)
    dreamer.check(session.setup_of(cfg, session.make_env(cfg)))


def test_a_step_size_that_has_fallen_before_learning_begins_is_refused():
    with pytest.raises(ConfigError, match=r"at step 461 .* `learning_starts` is 512; train longer, or set lr_until=1"):
        check(lr_until="0.3")
    check(lr_until="0.3", lr_final="1.0")
    check()


def test_a_warm_up_beyond_the_last_update_is_refused():
    with pytest.raises(ConfigError, match=r"`warmup_updates` = 5,000 .* the run makes 256 of them"):
        check(warmup_updates="5000")


@pytest.mark.parametrize(("key", "value"), [("classes", "1"), ("updates_per_step", "1e9")])
def test_absurd_sizes_are_refused(key, value):
    with pytest.raises(ConfigError, match=f"`{key}` must be at"):
        config(**{key: value})


def test_dreams_need_a_world_model_that_somebody_trained(tmp_path):
    cfg = config(mode="behaviour")
    with pytest.raises(ConfigError, match="nothing learns model in this run, so all of it must come from another"):
        session.inherited_by(cfg, session.make_env(cfg), tmp_path)
    weights.require_borrowed(("model",), ("actor/0/weight",))
    with pytest.raises(ConfigError, match="model/encoder/0/weight would stay as drawn"):
        weights.require_borrowed(("model",), ("actor/0/weight", "model/encoder/0/weight"))
    assert dreamer.borrowed(config().algo) == ()


@pytest.mark.parametrize(("code", "how"), [(-9, "was killed by signal 9"), (3, "exited with 3")])
def test_a_collector_that_was_killed_is_no_fault_of_relab(code, how):
    lost = Collector.lost(SimpleNamespace(process=SimpleNamespace(exitcode=code)))  # type: ignore[arg-type]
    assert how in str(lost)
    assert "`relab resume` goes on from there" in str(lost)
