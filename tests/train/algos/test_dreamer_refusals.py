"""Is a Dreamer that could not learn refused before it starts, with the numbers and what to do?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from relab import cli
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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"length": "1"}, "`length` must be at least 2 rows: what follows from a row is learned from the next one"),
        ({"length": "1000"}, r"= 4,000 steps, but `learning_starts` is 512; set algo.learning_starts=4000, or use"),
        ({"unimix": "1"}, "0 <= `unimix` < 1 must hold, but got unimix = 1"),
        ({"mode": "model", "focus": "0.1"}, "focus=0.1 would make .* with mode=model actor and critic do not learn"),
        ({"mode": "behaviour", "model_updates": "4"}, "with mode=behaviour the world model does not learn; leave it"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        config(**settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"slow_scale": "1e38"}, "0 <= `slow_scale` <= 1e[+]06 must hold"),
        ({"obs_scale": "1e9"}, "0 <= `obs_scale` <= 1e[+]06 must hold"),
        ({"support": "1e300"}, "`support` must be above 0 and at most 1e[+]09, or null, but got 1e[+]300"),
        ({"lr_warmup": str(10**24)}, "0 <= `lr_warmup` <= 1e[+]09 must hold"),
        ({"imagine": str(10**9)}, r"`sequences` \* `length` \* \(`imagine` \+ 1\) = 8 \* 25 \* 1,000,000,001 = "),
        ({"sequences": str(10**6)}, r"at most 67,108,864 rows, but .* = 1,000,000 \* 25 \* 33 = 825,000,000"),
    ],
)
def test_numbers_that_leave_no_digits_or_no_memory_are_refused_by_their_name(settings, words):
    with pytest.raises(ConfigError, match=words):
        config(**settings)


def test_updates_of_the_model_must_leave_some_for_the_actor():
    with pytest.raises(ConfigError, match="`model_updates` = 1,000,000,000 must leave more than one update"):
        check(model_updates=str(10**9))


def test_a_sequence_longer_than_any_episode_is_refused_with_the_numbers():
    with pytest.raises(ConfigError, match=r"`length` is 41 rows and no episode has more than 40 .* algo.length=40 or"):
        check(length="41", **{"env.horizon": "39"})
    check(length="40", **{"env.horizon": "39"})


def test_a_run_that_ends_before_it_learns_says_both_ways_out():
    with pytest.raises(ConfigError, match=r"nothing would be learned; lower it, or train longer"):
        check(total_steps="512")


def test_pictures_that_cannot_be_or_never_come_due_are_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def measured(*_: Any) -> None:
        raise AssertionError("the random policy was measured")

    monkeypatch.setattr(session, "random_baseline", measured)
    words = ["train", "dreamer", "env=cartpole", "--runs", str(tmp_path), "--quiet"]
    assert cli.main([*words, "record.pictures=512"]) == 64
    assert "keeps a world model's pictures" in capsys.readouterr().err
    assert cli.main([*words, "env.pixels=16", "total_steps=2048", "lr_until=1", "record.pictures=4096"]) == 64
    assert (
        "must come due after learning starts (step 512) and before the run ends (step 2,048)" in capsys.readouterr().err
    )


def test_an_environment_without_settings_of_its_own_takes_minutes_and_not_days():
    for env in ("pendulum", "gym:Acrobot-v1"):
        cfg = layers.resolve([Layer("test", {"algo": "dreamer", "env": env})]).config
        assert (cfg.total_steps, cfg.eval.every, cfg.algo.replay_ratio) == (32_768, 2_048, 50)
    assert layers.resolve([Layer("test", {"algo": "sac", "env": "gym:Pendulum-v1"})]).config.total_steps == 1_000_000


def test_weights_of_another_environment_are_said_to_be_so():
    source = weights.Source("a", "", "", "latest", 0, {}, "pendulum-v1")
    inherited = weights.Inherited(source, {"params": {}}, {"model/encoder/0/weight": ((8, 3), (8, 4))})
    with pytest.raises(
        ConfigError,
        match=r"a@latest does not fit \(it was trained on pendulum-v1, and this run is on"
        r" cartpole-v1\): 1 of the 1 weights .*; start from a run on cartpole-v1, or",
    ):
        weights.require_whole(inherited, (), "cartpole-v1")
    with pytest.raises(ConfigError, match="a@latest is of another size"):
        weights.require_whole(inherited, (), "pendulum-v1")
