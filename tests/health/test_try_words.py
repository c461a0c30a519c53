"""Does advice name only what the run's algorithm can set, in the words of its own program?"""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from relab.config import registry
from relab.health import try_words
from relab.health.examine import examine
from relab.health.rule import Finding, all_rules
from relab.health.usual import CLEANRL, SB3
from relab.logger import Logger

PROGRAMS = [*(("relab", algo) for algo in registry.ALGOS), *(("sb3", algo) for algo in SB3),
            *(("cleanrl", algo) for algo in CLEANRL)]  # fmt: skip
ADVICE = {slug: rule for slug, rule in all_rules().items() if try_words.WORD.search(rule.parts["Try"])}


def view(program: str, algo: str) -> SimpleNamespace:
    """A run of which nothing is known but what made it."""
    config = {"algo.name": algo} | ({"foreign.exp_name": "x"} if program == "cleanrl" else {})
    return SimpleNamespace(
        config=config, algo=algo, history=SimpleNamespace(trained_by_relab=program == "relab", keys={})
    )


def settings(program: str, algo: str) -> set[str]:
    """What can be set, spelled as its program spells it."""
    if program == "relab":
        return set(try_words.settings_of(algo))
    table = set((CLEANRL if program == "cleanrl" else SB3)[algo]) | try_words.BESIDES.get(algo, set())
    return table if program == "cleanrl" else {try_words.name_of(view(program, algo), word) for word in table}


@pytest.mark.parametrize(("program", "algo"), PROGRAMS, ids=lambda each: each)
def test_every_rule_advises_only_what_the_algorithm_has(program, algo):
    can, run = settings(program, algo), view(program, algo)
    for slug, rule in ADVICE.items():
        if rule.algos and algo not in rule.algos:
            continue
        text = try_words.fitted(rule.parts["Try"], run)
        wrong = [word for word in try_words.WORD.findall(text) if word not in can]
        assert not wrong, f"{slug} advises {wrong} to {algo} of {program}: {text}"
        assert text.endswith("."), text
        assert "()" not in text
        assert "  " not in text
        assert ", ." not in text


@pytest.mark.parametrize("slug", [slug for slug, rule in all_rules().items() if rule.fallback])
def test_what_a_rule_falls_back_on_is_a_setting_of_an_algorithm_it_is_about(slug):
    rule = all_rules()[slug]
    algos = [algo for algo in rule.algos or registry.ALGOS if algo in registry.ALGOS]
    words = set().union(*map(try_words.settings_of, algos), *(SB3.get(algo, {}) for algo in rule.algos or SB3))
    for change in rule.fallback:
        assert change.key.rpartition(".")[2] in words


def recorded(folder: Path, algo: str, **config: object) -> list[Finding]:
    """A policy that is sure of itself early and earns what a random one does; what examine says of it."""
    base = {"algo": algo, "env": "CartPole-v1", "seed": 0, "total_timesteps": 60_000}
    with Logger(folder, config={**base, **config}) as log:
        for i in range(60):
            entropy = {} if algo == "DQN" else {"policy/entropy": 0.69 * math.exp(-i / 4)}
            log.row(1000 * (i + 1), {"return/mean": 20.0 + i % 3, "policy/loss": 0.1, **entropy})
    return examine(folder).main


def advice(findings: list[Finding], slug: str) -> list:
    (one,) = [finding for finding in findings if finding.slug == slug]
    return one.suggest


def test_a_bonus_of_nothing_is_raised_for_a2c(tmp_path):
    first, *words = advice(recorded(tmp_path, "A2C", learning_rate=7e-4, ent_coef=0.0), "entropy-collapse")
    assert (first["key"], first["from"], first["to"], first["name"]) == ("algo.ent_coef", 0.0, 0.01, "ent_coef")
    assert words == ["raise `ent_coef`, lower `learning_rate`."]


def test_a_usual_bonus_is_left_and_the_step_made_smaller_for_a2c(tmp_path):
    first, *_ = advice(recorded(tmp_path, "A2C", learning_rate=7e-4, ent_coef=0.01), "entropy-collapse")
    assert first["key"] == "algo.lr"
    assert first["to"] < first["from"]
    assert first["name"] == "learning_rate"


def test_a2c_is_not_told_of_epochs(tmp_path):
    text = " ".join(str(item) for finding in recorded(tmp_path, "A2C", learning_rate=7e-4, ent_coef=0.0)
                    for item in finding.suggest)  # fmt: skip
    assert "epochs" not in text


def test_dqn_is_told_of_its_own_exploration(tmp_path):
    (text,) = advice(recorded(tmp_path, "DQN", learning_rate=1e-4, exploration_fraction=0.1), "has-not-learned")
    assert "ent_coef" not in text
    assert "exploration (`exploration_fraction`)" in text
