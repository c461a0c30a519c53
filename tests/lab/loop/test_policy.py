"""Is a proposal that must not run refused, with the key, the value, what is allowed and what to do?"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.lab.loop import dropped, plan, policy, sampler
from relab.lab.loop.policy import RefusedError
from relab.lab.loop.sampler import Past

CORPUS = Path("/work/shared/corpus/drones")
PARENT, CHILD = "2025-09-20T152244Z", "2025-09-20T153515Z"
ALLOW = {"algo.lr": {"low": 1e-5, "high": 1e-2, "log": True}, "algo.ent_coef": {"low": 0.0, "high": 1.0},
         "algo.epochs": {"low": 1, "high": 12, "int": True}, "algo.activation": ["tanh", "relu"]}  # fmt: skip
SETTINGS = {"algo.lr": 0.001, "algo.ent_coef": 0.01, "algo.epochs": 4, "algo.activation": "tanh", "algo.gamma": 0.99,
            "algo.envs": 8, "seed": 0, "total_steps": 1000, "eval.episodes": 20, "env.name": "cartpole-v1"}  # fmt: skip


def made(**more: object) -> policy.Policy:
    return policy.load({"allow": ALLOW, **more})


def change(key: str, to: object) -> dict:
    return {key: {"from": SETTINGS.get(key), "to": to}}


@pytest.mark.parametrize(
    ("key", "to", "says"),
    [
        ("seed", 7, "`seed` is locked and must not become 7: it is the seed"),
        ("total_steps", 9000, "`total_steps` is locked and must not become 9000: it is the budget"),
        ("eval.episodes", 1, "`eval.episodes` is locked"),
        ("env.name", "pendulum-v1", "`env.name` is locked and must not become pendulum-v1: it is the task"),
        ("algo.gamma", 0.9, "`algo.gamma` must stay 0.99 and not become 0.9: this loop's policy allows algo.lr"),
        ("algo.lrr", 0.1, "`algo.lrr` (proposed: 0.1) is no setting of the parent; the nearest known one is `algo.lr`"),
        ("algo.lr", 0.5, "`algo.lr` must be a number from 1e-05 to 0.01, but is proposed as 0.5; propose a value"),
        ("algo.lr", "fast", "`algo.lr` must be a number from 1e-05 to 0.01, but is proposed as fast"),
        ("algo.epochs", 4.5, "`algo.epochs` must be a whole number from 1 to 12, but is proposed as 4.5"),
        ("algo.activation", "gelu", "`algo.activation` must be one of tanh, relu, but is proposed as gelu"),
        ("algo.ent_coef", 0.12, "from 0.01 to 0.12, 12 times in one step, but `policy.largest_step` is 10"),
        ("algo.lr", 0.001, "`algo.lr` goes from 0.001 to itself"),
    ],
)  # fmt: skip
def test_each_refusal_names_key_value_range_and_remedy(key: str, to: object, says: str):
    with pytest.raises(RefusedError) as refusal:
        policy.check(made(), change(key, to), SETTINGS)
    assert says in str(refusal.value)


def test_what_is_allowed_passes_and_a_known_value_may_be_far():
    assert policy.check(made(), change("algo.lr", 0.005), SETTINGS)
    assert policy.check(made(), change("algo.ent_coef", 0.5), SETTINGS, known=True), "a preset knows"
    assert policy.check(made(largest_step=None), change("algo.ent_coef", 0.5), SETTINGS), "the check is off"


def test_constraints_hold_for_the_whole_config():
    limits = made(constraints=["algo.envs * algo.epochs <= 40"])
    assert policy.check(limits, change("algo.epochs", 5), SETTINGS)
    with pytest.raises(
        RefusedError, match=r"algo.envs \* algo.epochs <= 40.* must hold, but algo.envs = 8, algo.epochs = 6"
    ):
        policy.check(limits, change("algo.epochs", 6), SETTINGS)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "`policy` must have `allow`"),
        ({"allow": {"seed": [1, 2]}}, "`policy.allow` must not have `seed`"),
        ({"allow": {"train.total_timesteps": [1, 2]}}, "it is the budget"),
        ({"allow": {"x": [1]}, "alow": 1}, "unknown key `alow`"),
        ({"allow": {"x": [1]}, "lock": ["x"]}, "`x` is allowed and locked"),
        ({"allow": {"x": [1]}, "largest_step": 1}, "must be a factor above 1"),
    ],
)
def test_a_policy_that_cannot_be_is_an_error(value: dict, says: str):
    with pytest.raises(ConfigError) as error:
        policy.load(value)
    assert says in str(error.value)


FILE = """
question: q
base: {algo: ppo, env: cartpole}
budget: 1000
policy: {allow: {algo.lr: {low: 1e-5, high: 1e-2, log: true}}}
"""


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("algo.lr: {", "lr: {", "write the whole key, `algo.lr`"),
        ("algo.lr: {", "algo.lrr: {", "unknown key `algo.lrr`; the nearest known one is `algo.lr`"),
        ("question: q", "quesstion: q", "unknown key `quesstion`"),
        ("budget: 1000", "budget: 1000\\nseeds: {noise: 2}", "3 <= `seeds.noise`"),
        ("budget: 1000", "budget: 1000\\nseeds: 5", "`seeds` must be {noise, first, confirm, again}"),
        ("budget: 1000", "budget: 1000\\nevaluate: x {run}", "`evaluate` goes with `command`"),
        ("budget: 1000", "budget: 1000\\nresume_mode: continue", "go together"),
        ("budget: 1000", "budget: 1000\\nresume_mode: continue\\nresume_from: best", "must be RUN@latest, RUN@best"),
        ("budget: 1000", "budget: 1000\\nrange: [1, 0]", "`range` must be [lowest, highest]"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_is_an_error_before_anything_runs(before: str, after: str, says: str, tmp_path: Path):
    path = tmp_path / "l.yaml"
    path.write_text(FILE.replace(before, after.replace("\\n", "\n")))
    with pytest.raises(ConfigError) as error:
        plan.load(path)
    assert says in str(error.value)


# ---- The original's mistake


TEMPLATE = {"train": {"ent_coef": 0.12, "learning_rate": 0.003, "total_timesteps": 10_000_000, "update_epochs": 1,
                      "clip_coef": 0.12, "max_grad_norm": 1.5}}  # fmt: skip
GOOD = {"train": {"ent_coef": 0.01, "learning_rate": 0.0025, "total_timesteps": 20_000_000, "update_epochs": 20,
                  "clip_coef": 0.15, "max_grad_norm": 1.5}}  # fmt: skip
OVERRIDE = {"train": {"update_epochs": 12, "clip_coef": 0.12, "max_grad_norm": 1.0}}
REASONS = "fewer update_epochs, a tighter clip_coef, max_grad_norm 1.0; keep lr and entropy"
LOOP = policy.load({"allow": {
    "train.ent_coef": {"low": 0, "high": 1}, "train.learning_rate": {"low": 1e-6, "high": 1, "log": True},
    "train.update_epochs": {"low": 1, "high": 32, "int": True}, "train.clip_coef": {"low": 0, "high": 1},
    "train.max_grad_norm": {"low": 0, "high": 10}}})  # fmt: skip


def written(folder: Path, **body: object) -> Path:
    path = folder / "next_config.yaml"
    path.write_text(json.dumps(body))
    return path


def records() -> list:
    """(the parent's config, what was asked for, the config that ran): made up, and the real one where it is."""
    child = {"train": {**TEMPLATE["train"], **OVERRIDE["train"]}}
    cases = [pytest.param(GOOD, OVERRIDE, child, id="made")]
    if CORPUS.is_dir():
        real = [json.loads((CORPUS / run / name).read_text()) for run, name in
                ((PARENT, "config.json"), (CHILD, "override.json"), (CHILD, "config.json"))]  # fmt: skip
        real = [{"train": each["train"]} for each in real]
        cases.append(pytest.param(*real, id="record"))
    else:
        cases.append(pytest.param(None, None, None, id="record", marks=pytest.mark.skip("the records are not here")))
    return cases


@pytest.mark.parametrize(("parent", "override", "ran"), records())
def test_the_override_over_a_template_is_refused_and_over_the_parent_is_harmless(parent, override, ran, tmp_path: Path):
    settings = flatten(parent)
    with pytest.raises(RefusedError) as refusal:  # what the loop of the original ran
        dropped.read(written(tmp_path, config=ran, override=override, rationale=REASONS), "base", settings)
    assert "train.ent_coef 0.01 -> 0.12" in str(refusal.value)
    assert "laid over a template, not over the parent" in str(refusal.value)
    asked = dropped.read(written(tmp_path, override=override, rationale=REASONS), "base", settings)
    assert set(asked.change) == {"train.update_epochs", "train.clip_coef", "train.max_grad_norm"}
    assert policy.check(LOOP, asked.change, settings), "against the parent the entropy weight stays what it was"


@pytest.mark.parametrize(("parent", "override", "ran"), records())
def test_the_change_itself_is_refused_too_by_two_checks_of_their_own(parent, override, ran, tmp_path: Path):
    settings = flatten(parent)
    alone = dropped.read(written(tmp_path, set={"train.ent_coef": 0.12}), "base", settings)
    with pytest.raises(RefusedError, match="12 times in one step"):
        policy.check(LOOP, alone.change, settings)
    whole = dropped.read(written(tmp_path, config=ran, rationale=f"all of {' '.join(flatten(ran))}"), "base", settings)
    with pytest.raises(RefusedError, match="it is the budget"):
        policy.check(policy.Policy(LOOP.allow, largest_step=None), whole.change, settings)
    off = policy.Policy(LOOP.allow, largest_step=None)
    assert policy.check(off, alone.change, settings), "with the check off it runs"


# ---- Sampled points


def loop(tmp_path: Path, more: str = "") -> plan.Loop:
    path = tmp_path / "l.yaml"
    more_keys = ", algo.epochs: {low: 1, high: 12, int: true}, algo.activation: [tanh, relu]}}"
    path.write_text(f"{FILE.replace('true}}}', 'true}' + more_keys)}sampler: sobol\n{more}")
    return plan.load(path)


def test_points_take_turns_stay_off_the_borders_and_away_from_what_was_refuted(tmp_path: Path):
    x, past = loop(tmp_path), []
    settings = {"algo.lr": 0.001, "algo.epochs": 4, "algo.activation": "tanh"}
    for _ in range(12):
        drawn = sampler.draw(x, settings, "base", past)
        if drawn is None:
            break
        (key,) = drawn
        axis = x.policy.axes[key]
        if axis.is_range:
            assert axis.at(0.05) <= drawn[key]["to"] <= axis.at(0.95)
        assert sampler.tried(x, drawn, "base", past) is None
        past.append(Past("base", drawn, 1.0, "sampler", kept=False))
    keys = [next(iter(one.change)) for one in past]
    assert keys[:3] == ["algo.lr", "algo.epochs", "algo.activation"]
    assert keys.count("algo.activation") == 1, "there is one other value"
    rates = sorted(one.change["algo.lr"]["to"] for one in past if "algo.lr" in one.change)
    assert all(b / a > 1000**0.05 for a, b in pairwise(rates)), "no two within a twentieth of the range"
    assert all(0.0001 <= rate <= 0.01 for rate in rates), "within a step of ten"
    assert all(abs(math.log(rate / 0.001)) > 0.05 * math.log(1000) for rate in rates), "none is hardly another one"


def test_a_present_value_far_outside_of_its_range_binds_nothing(tmp_path: Path):
    x = loop(tmp_path)
    drawn = sampler.draw(x, {"algo.lr": 5.0, "algo.epochs": 4, "algo.activation": "tanh"}, "base", [])
    assert drawn is None or "algo.lr" not in drawn or drawn["algo.lr"]["to"] <= 0.01


def test_what_a_proposal_costs_at_most_counts_the_second_confirmation():
    """Three first, twice six with two of the best beside them, eight once it is kept."""
    from relab.lab.loop.plan import Seeds

    assert Seeds(noise=8, first=3, confirm=6, again=2).most == 3 + 2 * (6 + 2) + 8
