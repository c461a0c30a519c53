"""Does each value arrive as its type says, from the layer that should win, and is every slip named?"""

from __future__ import annotations

import dataclasses
import doctest
import math
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from relab.base import streams
from relab.config import base, envs
from relab.config import coerce as coerce_module
from relab.config import layers as config
from relab.config.base import ConfigError, field_docs, property_docs, require_range
from relab.config.coerce import coerce, describe
from relab.config.layers import Layer, parse_overrides, resolve
from relab.config.ppo import PPO
from relab.config.presets import PRESETS
from relab.config.run import Eval, RunConfig, Save
from relab.record import names


def cli(*words: str) -> Layer:
    return Layer("command line", parse_overrides(words))


def run(*words: str) -> RunConfig:
    return resolve([cli("env=cartpole", *words)], presets=False).config


def write(tmp_path, text: str, name: str = "a.yaml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


# ---- Values: the same rules for overrides and files


def by_override(text: str, type_: Any, tmp_path) -> Any:
    return coerce(parse_overrides([f"x={text}"])["x"], type_, "x")


def by_file(text: str, type_: Any, tmp_path) -> Any:
    return coerce(config.read_yaml(write(tmp_path, f"x: {text}\n"), text=True)["x"], type_, "x")


WRONG = "wrong"
DOORS = pytest.mark.parametrize("door", [by_override, by_file])


@DOORS
@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("3e-4", float, 3e-4),
        ("3e-4", int, WRONG),
        ("3e-4", bool, WRONG),
        ("3e-4", str, "3e-4"),
        ("3e-4", float | None, 3e-4),
        ("3e-4", Literal["3e-4", "b"], "3e-4"),
        ("3e-4", tuple[float, ...], (3e-4,)),
        ("3e-4", Any, 3e-4),
        ("15:9", float, WRONG),
        ("15:9", int, WRONG),
        ("15:9", bool, WRONG),
        ("15:9", str, "15:9"),
        ("15:9", str | None, "15:9"),
        ("15:9", tuple[str, ...], ("15:9",)),
        ("15:9", Literal["15:9"], "15:9"),
        ("15:9", Any, "15:9"),
        ("on", float, WRONG),
        ("on", int, WRONG),
        ("on", bool, WRONG),
        ("on", str, "on"),
        ("on", bool | None, WRONG),
        ("on", Literal["on", "off"], "on"),
        ("on", Any, "on"),
        ("1_000", int, 1000),
        ("1_000", float, 1000.0),
        ("1_000", bool, WRONG),
        ("1_000", str, "1_000"),
        ("1_000", int | None, 1000),
        ("1_000", tuple[int, ...], (1000,)),
        ("1_000", Any, "1_000"),
        ("1e6", int, 1_000_000),
        ("1.5", int, WRONG),
        ("-3", int, -3),
        ("007", str, "007"),
        ("1.10", str, "1.10"),
        ("true", bool, True),
        ("False", bool, False),
        ("yes", bool, WRONG),
        ("1", bool, WRONG),
        ("true", str, "true"),
        ("null", float | None, None),
        ("none", int | None, None),
        ("~", str | None, None),
        ("null", float, WRONG),
        ("null", int, WRONG),
        ("none", Literal["none", "gru"], "none"),
        ("gr", Literal["none", "gru"], WRONG),
        ("2", Literal[1, 2], 2),
        ("[64, 64]", tuple[int, ...], (64, 64)),
        ("[]", tuple[int, ...], ()),
        ("[1, x]", tuple[int, ...], WRONG),
        ("[1, 2.5]", tuple[int, float], (1, 2.5)),
        ("[1, 2, 3]", tuple[int, float], WRONG),
        ("[a, b]", list[str], ["a", "b"]),
        (".inf", float, math.inf),
        ("-.inf", float, -math.inf),
        ("inf", float, math.inf),
        ("inf", int, WRONG),
        ("1e400", int, WRONG),
        ("9" * 5000, int, WRONG),
        ("1__0", int, WRONG),
        ("_1", float, WRONG),
        ("0x10", int, WRONG),
        ('{"a": 1}', dict[str, Any], {"a": 1}),
    ],
)
def test_values_take_the_type_of_their_field(door, text, type_, expected, tmp_path):
    if expected is WRONG:
        with pytest.raises(ConfigError, match="`x` must be"):
            door(text, type_, tmp_path)
    else:
        value = door(text, type_, tmp_path)
        assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize("text", ["64,64", "(64, 64)", "[64,64]", " 64 , 64 "])
def test_lists_may_leave_their_brackets_out(text):
    assert coerce(text, tuple[int, ...], "x") == (64, 64)


def test_nan_is_a_number():
    assert math.isnan(coerce("nan", float, "x"))
    assert math.isnan(coerce(".nan", float, "x"))


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (1, float, 1.0),
        (2.0, int, 2),
        (2.5, int, WRONG),
        (True, int, WRONG),
        (True, float, WRONG),
        (1, bool, WRONG),
        (3, str, WRONG),
        (None, float | None, None),
        (None, int, WRONG),
        ([1, 2], tuple[int, ...], (1, 2)),
        (64, tuple[int, ...], (64,)),
        ({"a": 1}, int, WRONG),
    ],
)
def test_plain_values_are_checked_too(value, type_, expected):
    if expected is WRONG:
        with pytest.raises(ConfigError, match="`x` must be"):
            coerce(value, type_, "x")
    else:
        result = coerce(value, type_, "x")
        assert (result, type(result)) == (expected, type(expected))


def test_a_quoted_null_is_a_word(tmp_path):
    values = config.read_yaml(write(tmp_path, "a: 'null'\nb: null\nc:\n"), text=True)
    assert coerce(values["a"], str | None, "a") == "null"
    assert coerce(values["b"], str | None, "b") is None
    assert coerce(values["c"], str | None, "c") is None


def test_types_that_no_rule_covers_are_a_programming_error():
    with pytest.raises(TypeError, match="not supported"):
        coerce("1", complex, "x")


def test_types_in_words():
    assert describe(tuple[int, ...] | None) == "a list of whole numbers or null"
    assert describe(Literal["a", "b"]) == "one of a, b"


# ---- YAML files


def test_yaml_is_read_as_yaml_1_2(tmp_path):
    text = "a: 3e-4\nb: 15:9\nc: on\nd: 1_000\ne: '1'\nf: [1, 2.5, no]\ng: ~\ni: 2026-11-16\nj: !!str 5\n"
    expected = {"a": 3e-4, "b": "15:9", "c": "on", "d": "1_000", "e": "1", "f": [1, 2.5, "no"], "g": None,
                "i": "2026-11-16", "j": "5"}  # fmt: skip
    assert config.read_yaml(write(tmp_path, text)) == expected
    assert config.read_yaml(write(tmp_path, f"%YAML 1.1\n---\n{text}")) == expected, "whatever the file says it is"
    assert config.parse_yaml("a: 0o17\nb: 0x1F\nc: .inf\nd: TRUE") == {"a": 15, "b": 31, "c": math.inf, "d": True}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "`a` is given twice, first on line 1"),
        ("x:\n  a: 1\n  a: 2\n", 3, "given twice"),
        ("a: 1\nb: [1, 2\n", 3, "expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", 2, ""),
        ("- 1\n- 2\n", 1, "`key: value` lines are needed"),
        ("a: !!python/object:os.system {}\n", 1, "python"),
        ("a: &x [*x]\n", 1, "without end"),
        ("a: 1\n---\nb: 2\n", None, ""),
        ("? [a, b]\n: 1\n", 1, "keys must be plain text"),
    ],
)
def test_broken_yaml_names_file_and_line(tmp_path, text, line, words):
    path = write(tmp_path, text)
    with pytest.raises(config.YamlError) as error:
        config.read_yaml(path)
    assert str(path) in str(error.value)
    assert words in str(error.value)
    assert line is None or error.value.line == line


def test_an_alias_bomb_ends_early():
    rows = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)
    ]
    with pytest.raises(config.YamlError, match="without end"):
        config.parse_yaml("\n".join(rows))


def test_deep_nesting_and_binary_files_are_errors_not_crashes(tmp_path):
    for depth in (450, 100_000):
        with pytest.raises(config.YamlError, match="nested too deeply"):
            config.parse_yaml("a: " + "[" * depth + "]" * depth)
    assert len(config.parse_yaml("a: [" + "[], " * 600 + "[]]")["a"]) == 601, "many brackets are not deep ones"
    path = tmp_path / "b.yaml"
    path.write_bytes(b"\xff\xfe\x00garbage")
    with pytest.raises(config.YamlError, match=r"b\.yaml"):
        config.read_yaml(path)


TRICKY = {
    "text": ["on", "null", "15:9", "3e-4", "1_000", "", " a", "a: b", "#x", "é", "\u2028", "😀", "\x7f", '"\\', "- a"],
    "numbers": [3e-4, 1e-5, 1e22, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 2**80, math.inf, -math.inf],
    "others": [True, False, None, [], {}, [[1], ["a"]], {"k": [1]}],
    "nested": {"a b": {"x": 1}, "on": {"y": "off"}},
}  # fmt: skip


def test_what_was_read_belongs_to_the_reader(tmp_path):
    """What was parsed is remembered, and still nobody sees what another did to it, or an older file."""
    path = write(tmp_path, "a: {b: [1, 2]}\n")
    config.read_yaml(path)["a"]["b"].append(3)
    assert config.read_yaml(path) == {"a": {"b": [1, 2]}}
    write(tmp_path, "a: {b: [1, 4]}\n")
    assert config.read_yaml(path) == {"a": {"b": [1, 4]}}


def test_yaml_round_trip_keeps_values_and_types(tmp_path):
    config.write_yaml(tmp_path / "t.yaml", TRICKY)
    back = config.read_yaml(tmp_path / "t.yaml")
    assert back == TRICKY
    assert repr(back) == repr(TRICKY)  # 1 and 1.0, 0.0 and -0.0


def test_floats_are_written_so_that_every_reader_sees_a_number():
    assert config.format_yaml({"eps": 1e-5}) == "eps: 1.0e-05\n"
    assert "nan" in config.format_yaml({"x": math.nan})


def test_values_yaml_cannot_hold_are_refused():
    with pytest.raises(TypeError, match="complex"):
        config.format_yaml({"x": 1j})


# ---- Overrides and keys


def test_overrides_are_key_value():
    assert parse_overrides(["a=1", "b.c = x=y", "d="]) == {"a": "1", "b.c": "x=y", "d": ""}
    for word in ("lr", "=3", "--lr"):
        with pytest.raises(ConfigError, match="key=value"):
            parse_overrides([word])
    with pytest.raises(ConfigError, match="given twice"):
        parse_overrides(["lr=1", "lr=2"])


def test_a_key_may_be_given_by_its_tail():
    assert run("lr=1e-3").algo.lr == 1e-3
    assert run("stop_at=475", "eval.every=1_000").eval.stop_at == 475.0
    assert run("env.horizon=50").env.horizon == 50
    assert resolve([cli("env=herd", "agents=5")], presets=False).config.env.agents == 5


def test_a_tail_means_the_algorithms_own_key_and_not_one_of_probes():
    """`cut` and `cap` are settings of fine-tuning in its docs, and of probes too, which are off until one is set."""
    words = ["algo=finetune", "env=cartpole", "advantage=rerollout", "update=awr", "cap=5", "cut=10"]
    made = resolve([Layer("command line", parse_overrides(words))]).config
    assert (made.algo.cap, made.algo.cut, made.probes) == (5.0, 10, None)


def test_comments_to_the_type_checker_are_no_docs():
    from relab.config.finetune import FineTune

    assert field_docs(FineTune)["advantage"].startswith("how good an action was: GAE, return minus value")


def test_an_ambiguous_tail_lists_its_candidates():
    with pytest.raises(ConfigError, match=r"`every` is ambiguous: it could be eval\.every or save\.every"):
        run("every=5")
    with pytest.raises(ConfigError, match=r"algo\.name or env\.name"):
        run("name=x")


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("gama=1", "algo.gamma"),
        ("algo.gama=1", "algo.gamma"),
        ("learning_rate=1", "algo.lr"),
        ("learning_rat=1", "algo.lr"),
        ("env.horizen=1", "env.horizon"),
        ("n_envs=8", "algo.envs"),
        ("total_timesteps=1", "total_steps"),
        ("eval.evry=1", "eval.every"),
        ("env.gamma=1", "algo.gamma"),
    ],
)
def test_an_unknown_key_names_the_nearest(word, nearest):
    with pytest.raises(ConfigError, match=f"unknown key .*nearest known one is `{nearest}`.*command line"):
        run(word)


def test_a_section_takes_no_value():
    with pytest.raises(ConfigError, match=r"`eval` is a section.*eval\.every"):
        run("eval=5")


def test_one_layer_gives_a_key_once():
    with pytest.raises(ConfigError, match=r"`algo\.lr` is given twice in one layer, as `lr` and as `algo\.lr`"):
        run("lr=1", "algo.lr=2")
    with pytest.raises(ConfigError, match="given twice"):
        run("env.name=pendulum")


def test_errors_of_files_carry_their_line(tmp_path):
    path = write(tmp_path, "env: cartpole\nalgo:\n  lr: 3e-4\n  epochs: 1.5\n")
    with pytest.raises(ConfigError, match=r"`algo\.epochs` must be a whole number, but got `1\.5` \(.*a\.yaml:4\)"):
        resolve([config.file_layer(path)])
    path = write(tmp_path, "env: cartpole\nhidden: [3, x]\n")
    with pytest.raises(ConfigError, match=r"`algo\.hidden` must be a list of whole numbers.*a\.yaml:2"):
        resolve([config.file_layer(path)])
    path = write(tmp_path, "env: cartpole\neval:\n  evry: 3\n")
    with pytest.raises(ConfigError, match=r"unknown key `eval\.evry`.*a\.yaml:3"):
        resolve([config.file_layer(path)])
    path = write(tmp_path, "seed: 1\nenv: cartpol\n")
    with pytest.raises(ConfigError, match=r"cartpole-v1.*a\.yaml:2"):
        resolve([config.file_layer(path)])


def test_nothing_in_a_file_is_ignored(tmp_path):
    for text in ("foo: {}\n", "foo:\n", "algo: {foo: {}}\n", "algo: [1]\n", "seed: {}\n"):
        with pytest.raises(ConfigError):
            resolve([config.file_layer(write(tmp_path, f"env: cartpole\n{text}"))])
    layer = config.file_layer(write(tmp_path, "env: cartpole\neval:\nsave: {}\n"))
    assert config.resolve([layer], presets=False).config.eval == Eval()


def test_entries_of_a_mapping():
    layers = [cli("env=gym:Acrobot-v1", "env.kwargs.goal=1e-3"), Layer("more", {"env": {"kwargs.render": "on"}})]
    assert resolve(layers).config.env.kwargs == {"goal": 1e-3, "render": "on"}
    whole = resolve([Layer("python", {"env": {"name": "gym:Acrobot-v1", "kwargs": {"a": {"b": 1}}}})])
    assert whole.config.env.kwargs == {"a": {"b": 1}}
    assert config.from_dict(config.to_dict(whole.config)) == whole.config


# ---- Layers


def test_later_layers_win_and_each_value_remembers_its_own(tmp_path, monkeypatch):
    monkeypatch.setitem(PRESETS, ("ppo", "cartpole-v1"), {"algo": {"lr": 1e-1, "gamma": 0.9, "lam": 0.8, "clip": 0.3}})
    file = write(tmp_path, "env: cartpole\nalgo: {gamma: 0.93, epochs: 7, lam: 0.83}\n")
    layers = [
        Layer("study", {"algo.lam": 0.81, "algo.gamma": 0.91, "steps": 16}),
        Layer("parent", {"algo": {"gamma": 0.92, "lam": 0.82}}),
        config.file_layer(file, "file a.yaml"),
        cli("lam=0.84"),
    ]
    resolved = resolve(layers)
    algo, origin = resolved.config.algo, resolved.provenance
    assert (algo.lr, origin["algo.lr"]) == (1e-1, "preset")
    assert (algo.steps, origin["algo.steps"]) == (16, "study")
    assert (algo.gamma, origin["algo.gamma"]) == (0.93, "file a.yaml")
    assert (algo.lam, origin["algo.lam"]) == (0.84, "command line")
    assert (algo.envs, origin["algo.envs"]) == (64, "defaults")
    assert (algo.clip, origin["algo.clip"]) == (0.3, "preset")
    assert origin["env.name"] == "file a.yaml"
    assert list(origin) == list(config.flatten(resolved.config))


def test_presets_can_be_left_out(monkeypatch):
    monkeypatch.setitem(PRESETS, ("ppo", "cartpole-v1"), {"algo": {"lr": 1e-1}})
    assert resolve([cli("env=cartpole")], presets=False).config.algo.lr == PPO().lr


@pytest.mark.parametrize("pair", list(PRESETS))
def test_each_shipped_preset_resolves(pair):
    algo, env = pair
    assert resolve([cli(f"algo={algo}", f"env={env}")]).config.env.name == env, "presets are keyed by full names"


def test_a_task_may_have_settings_of_its_own():
    """Carrying boxes looks further ahead; hovering and racing have what they had, and whoever sets it is heeded."""

    def gamma(*words: str, presets: bool = True) -> tuple[float, str]:
        resolved = resolve([cli("env=drones", *words)], presets=presets)
        return resolved.config.algo.gamma, resolved.provenance["algo.gamma"]

    assert gamma() == gamma("env.task=pick_place") == (0.995, "preset")
    assert gamma("env.task=hover_race") == gamma("env.task=hover") == (0.99, "defaults")
    assert gamma("gamma=0.98") == (0.98, "command line")
    assert gamma(presets=False) == (0.99, "defaults")
    nested = resolve([Layer("study", {"env": {"name": "drones", "task": "race"}})]).config.algo.gamma
    assert nested == 0.99


def test_an_environment_must_be_chosen():
    with pytest.raises(ConfigError, match=r"`env` must be chosen, e\.g\. env=cartpole"):
        resolve([cli("lr=1e-3")])
    for value in (5, None, ["cartpole"]):
        with pytest.raises(ConfigError, match="env"):
            resolve([Layer("python", {"env": value})])


def test_switching_the_environment_gives_its_defaults():
    parent = config.to_dict(resolve([cli("env=cartpole", "env.horizon=77", "lr=0.01")]).config)
    resolved = resolve([Layer("parent", parent), cli("env=pendulum")], presets=False)
    assert resolved.config.env == envs.Pendulum()
    assert resolved.config.algo.lr == 0.01
    assert resolved.dropped == {"env.horizon": "parent: 77", "env.pixels": "parent: None"}
    assert resolved.provenance["env.horizon"] == "defaults"


def test_switching_keeps_what_the_switching_layer_sets():
    resolved = resolve(
        [Layer("parent", {"env": {"name": "cartpole", "horizon": 77}}), cli("env=pendulum", "horizon=9")]
    )
    assert resolved.config.env == envs.Pendulum(horizon=9)


def test_what_the_user_set_for_another_environment_is_an_error(tmp_path):
    file = config.file_layer(write(tmp_path, "env: {name: herd, agents: 5}\n"), "file a.yaml")
    with pytest.raises(ConfigError, match=r"`env.agents` = 5 was set for env=herd-v1 \(file a.yaml\).*env=cartpole-v1"):
        resolve([file, cli("env=cartpole")])
    assert resolve([file, cli("env=herd")]).config.env.agents == 5, "the same name switches nothing"


def test_a_full_config_file_can_be_moved_to_another_environment(tmp_path):
    config.write_yaml(tmp_path / "c.yaml", config.to_dict(run()))  # every env key is there, at its default
    assert resolve([config.file_layer(tmp_path / "c.yaml"), cli("env=pendulum")]).config.env == envs.Pendulum()


def test_keys_given_before_any_name_belong_to_the_final_one(tmp_path):
    file = config.file_layer(write(tmp_path, "env.horizon: 9\n"))
    assert resolve([file, cli("env=pendulum")]).config.env == envs.Pendulum(horizon=9)


def test_a_key_of_another_algorithm_is_said_to_be_its():
    with pytest.raises(ConfigError, match=r"unknown key `clip`; it is a setting of critic, finetune and ppo"):
        resolve([cli("algo=dqn", "env=cartpole", "clip=0.2")])
    with pytest.raises(ConfigError, match=r"unknown key `algo.temperature`; it is a setting of sac"):
        resolve([cli("algo=dqn", "env=cartpole", "algo.temperature=0.2")])


def test_a_key_of_other_environments_and_a_number_that_follows_are_said_to_be_so():
    with pytest.raises(ConfigError, match=r"unknown key `env\.pixels`; it is a setting of cartpole and gym:"):
        resolve([cli("algo=dreamer", "env=pendulum", "env.pixels=64")])
    with pytest.raises(ConfigError, match=r"unknown key `algo\.batch`; it is not set but follows, from envs \* steps"):
        resolve([cli("algo=dreamer", "env=cartpole", "algo.batch=0")])


def test_a_name_that_other_tools_have_for_a_setting_finds_it():
    with pytest.raises(ConfigError, match=r"unknown key `sequence_length`; the nearest known one is `algo\.length`"):
        resolve([cli("algo=dreamer", "env=cartpole", "sequence_length=32")])


def test_a_key_of_the_old_environment_is_unknown_to_the_new():
    with pytest.raises(ConfigError, match=r"unknown key `env\.agents`"):
        resolve([Layer("parent", {"env": "herd"}), cli("env=cartpole", "env.agents=2")])


def test_round_trip_through_plain_values_and_yaml(tmp_path):
    first = resolve([cli("env=herd", "hidden=[]", "target_kl=0.01", "stop_at=-1.5", "eval.every=10")]).config
    assert config.from_dict(config.to_dict(first)) == first
    config.write_yaml(tmp_path / "c.yaml", config.to_dict(first))
    assert config.from_dict(config.read_yaml(tmp_path / "c.yaml")) == first
    assert config.from_dict(config.flatten(first)) == first


def test_replace_changes_and_checks():
    assert config.replace(run(), {"lr": 1e-2, "seed": 3}).seed == 3
    assert config.replace(run(), {"env": "pendulum"}).env == envs.Pendulum()
    with pytest.raises(ConfigError, match="minibatches = 7"):
        config.replace(run(), {"minibatches": 7})


# ---- Checks


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["envs=3", "steps=5"], r"3 \* 5 = 15 and minibatches = 4"),
        (["rnn=gru", "bptt=5"], "steps = 32 and bptt = 5"),
        (["rnn=gru", "envs=2", "minibatches=8"], r"2 \* 32 / 16 = 4 and minibatches = 8"),
        (["gamma=1.5"], "0 <= `gamma` <= 1 must hold, but got gamma = 1.5"),
        (["gamma=nan"], "gamma = nan"),
        (["lam=-0.1"], "lam = -0.1"),
        (["clip=0"], "0 < `clip` must hold, but got clip = 0"),
        (["lr=0"], "lr = 0"),
        (["lr=inf"], "`lr` must be a finite number, but got inf"),
        (["ent_coef=nan"], "`ent_coef` must be a finite"),
        (["ent_coef_final=-inf"], "`ent_coef_final` must be a finite"),
        (["algo=dqn", "lr=inf"], "`lr` must be a finite number, but got inf"),
        (["algo=sac", "lr=inf"], "`lr` must be a finite number, but got inf"),
        (["algo=dreamer", "lr=inf"], "`lr` must be a finite number, but got inf"),
        (["algo=dreamer", "lr_actor=nan"], "`lr_actor` must be a finite"),
        (["envs=0"], "envs = 0"),
        (["hidden=64,0"], r"\[64, 0\]"),
        (["target_kl=0"], "target_kl = 0"),
        (["log_std_init=3"], "-5, 3, 2"),
        (["lr_schedule=adaptive_kl"], "needs a `target_kl`"),
        (["envs=1", "steps=1", "minibatches=1"], "at least 2 rows"),
        (["eval.episodes=0"], "eval.episodes = 0"),
        (["stop_at=475", "eval.every=0"], "`eval.stop_at` = 475.0 can stop nothing"),
        (["save.keep=-1"], "save.keep = -1"),
        (["total_steps=0"], "total_steps = 0"),
        (["threads=0"], "threads = 0"),
        (["device=gpu"], "cpu, cuda, cuda:N or mps, but got 'gpu'"),
        (["seed=-1"], "seed = -1"),
    ],
)
def test_broken_constraints_state_condition_and_numbers(words, message):
    with pytest.raises(ConfigError, match=message):
        run(*words)


def test_the_edges_are_allowed():
    run("gamma=1", "lam=0", "device=cuda:1", "clip=inf", "max_grad_norm=inf", "save.keep=0")
    run("bptt=5")  # without recurrence nobody asks


def test_require_range_excludes_where_told():
    require_range("x", 0.0, 0, 1)
    for value in (0.0, 1.0, math.nan):
        with pytest.raises(ConfigError, match="0 < `x` < 1 must hold"):
            require_range("x", value, 0, 1, open_="low high")


# ---- Views


def test_derived_numbers():
    numbers = config.derived(resolve([cli("env=herd", "total_steps=10_000")], presets=False).config)
    assert numbers == {
        "agents": 3, "batch": 6144, "minibatch": 1536, "iterations": 2, "algo.batch": 2048, "algo.minibatch": 512,
        "algo.updates": 16, "algo.horizon": pytest.approx(100),
    }  # fmt: skip
    assert config.derived(run("gamma=1"))["algo.horizon"] == math.inf


def test_the_hash_is_stable():
    """A fixed config has this hash for ever: stored experiments group their runs by it."""
    values = {"algo": {"name": "ppo", "lr": 3e-4, "hidden": [64, 64]}, "env": {"name": "cartpole-v1", "kwargs": {}},
              "seed": 7, "eval": {"stop_at": None, "by": "det"}, "flag": True}  # fmt: skip
    assert config.config_hash(values) == "8abeb2163810"


def test_the_hash_sees_everything_but_the_seed():
    base = run()
    assert config.config_hash(base) == config.config_hash(config.replace(base, {"seed": 5}))
    assert config.config_hash(base, without=()) != config.config_hash(config.replace(base, {"seed": 5}), without=())
    changes: list[dict[str, Any]] = [{}, {"lr": 1e-3}, {"hidden": [64]}, {"norm_obs": True}, {"env": "pendulum"},
                                     {"stop_at": 0, "eval.every": 1}, {"eval.every": 1}]  # fmt: skip
    assert len({config.config_hash(config.replace(base, change)) for change in changes}) == len(changes)
    assert config.config_hash({"a": 1, "b": {"c": 2.0}}) == config.config_hash({"b": {"c": 2}, "a": 1.0})
    assert config.config_hash({"a": {"b": 1}, "c": 2}, without=("a",)) == config.config_hash({"c": 2}, without=())


def test_diff_shows_the_biggest_change_first():
    a = run()
    b = config.replace(
        a, {"seed": 1, "lr": 6e-4, "envs": 512, "norm_obs": True, "hidden": [64, 256], "target_kl": 0.01}
    )
    assert [(c.key, c.a, c.b, c.size) for c in config.diff(a, b)] == [
        ("algo.target_kl", None, 0.01, math.inf),
        ("algo.norm_obs", False, True, math.inf),
        ("algo.envs", 64, 512, 3.0),
        ("algo.hidden", [64, 64], [64, 256], 2.0),
        ("algo.lr", 3e-4, 6e-4, 1.0),
        ("seed", 0, 1, 0.0),
    ]
    assert config.diff(a, a) == []


def test_diff_of_other_environments_begins_with_the_name():
    changes = config.diff(run(), resolve([cli("env=herd", "lr=1")], presets=False).config)
    assert changes[0].key == "env.name"
    missing = {c.key: c.a for c in changes}["env.agents"]
    assert missing is config.MISSING
    assert repr(missing) == "(none)"


def test_diff_of_plain_values_minds_kinds_not_spelling():
    assert config.diff({"a": 1, "n": math.nan, "t": (1, 2)}, {"a": 1.0, "n": math.nan, "t": [1, 2]}) == []
    assert [c.key for c in config.diff({"a": 1, "b": 0, "c": -1}, {"a": True, "b": 0.5, "c": 1})] == ["a", "b", "c"]


def test_diff_takes_integers_beyond_every_double():
    changes = config.diff({"a": 10**400, "b": 2}, {"a": 1, "b": 4})
    assert [(change.key, change.size) for change in changes] == [("a", math.inf), ("b", 1)]


# ---- Docs and lightness


@pytest.mark.parametrize("cls", [RunConfig, Eval, Save, PPO], ids=lambda cls: cls.__name__)
def test_every_field_and_derived_number_is_explained(cls):
    assert [name for name, text in (field_docs(cls) | property_docs(cls)).items() if not text] == []


@dataclass
class Documented:
    """A class for the parser of comments."""

    a: int = 1  # the first "a"
    b: tuple[int, ...] = field(  # spread over
        default=(1, 2),  # lines
    )
    # and below
    c: str = "# not a comment"

    # a comment of its own
    d: int = 0


@dataclass
class Child(Documented):
    a: int = 2  # another a


def test_comments_behind_fields_are_docs():
    docs = field_docs(Documented)
    assert docs["a"] == 'the first "a"'
    assert docs["b"] == "spread over lines and below"
    assert (docs["c"], docs["d"]) == ("", "")
    assert field_docs(Child) == docs | {"a": "another a"}
    assert set(docs) == {f.name for f in dataclasses.fields(Documented)}


@pytest.mark.parametrize("module", [base, coerce_module, config, names, streams], ids=lambda m: m.__name__)
def test_examples_in_docstrings_hold(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_config_is_light():
    code = "import sys, relab.config; print(*({'ruamel.yaml', 'rich', 'numpy', 'torch', 'orjson'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
