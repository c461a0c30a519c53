"""Does every rule end soon, in little memory and without failing, whatever numbers a config or a spec holds?"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bounds import bounded
from relab.config.views import flatten
from relab.health import engine
from relab.health import rule as rules
from relab.health.curve import Curve
from relab.health.rules import units
from relab.health.view import View, ViewGroup
from relab.record.history import History, load
from where import histories

ROOT = histories() / "faulty"
SLUGS = list(rules.all_rules(plugins=False))
ABSURD = [10**9, 10**18, 1e308, -1, 0, math.nan, math.inf, -math.inf, "", 10**400, -(10**400), 1e-320]
# Settings and facts that some rule reads and its planted fault does not have.
SETTINGS = """seed envs n_envs num_envs steps n_steps num_steps batch_size minibatch_size minibatches epochs gamma lam
    lr target_kl clip beta tau polyak_tau buffer_size weight_cap b_start b_end bins v_min v_max free_nats unimix horizon
    ent_coef max_grad_norm value_coef feature_dim w_init_scale ratio_clip expectile total_steps temperature max_iters
    learning_starts train_freq gradient_steps target_update_interval num_agents outer_iters""".split()
SPEC = {"horizon": 1, "agents": 1, "reward_low": 1, "reward_high": 1,
        "action": {"n": 2, "dim": 1, "low": [0], "high": [1]},
        "random": {"return_mean": 0, "return_std": 0, "n": 1, "length_mean": 1}}  # fmt: skip


@functools.cache
def runs(slug: str) -> list[tuple[str, History]]:
    """Read once for all tests, which change copies."""
    folders = sorted({path.parent for path in (ROOT / slug).rglob("meta.json")})
    return [(folder.name, load(folder)) for folder in folders]


def places(tree: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths to everything in nested settings that is a number, or a list of them."""
    found = []
    for key, value in tree.items():
        if isinstance(value, dict):
            found += places(value, (*above, key))
        elif isinstance(value, (int, float, list)) and not isinstance(value, bool):
            found.append((*above, key))
    return found


def put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *above, last = path
    for key in above:
        tree = tree[key]
    tree[last] = [value] * len(tree[last]) if isinstance(tree.get(last), list) else value


def _copy(tree: dict[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in tree.items()}


def changed(history: History, value: Any, only: tuple[str, ...] | None = None) -> History:
    """A copy with an absurd number in one place, or in every place that a rule might read."""
    meta, config = _copy(history.meta), _copy(history.config)
    for tree in (meta, config):
        for path in places(tree):
            if only is None or path == only:
                put(tree, path, value)
    if only is None:
        algo = config.setdefault("algo", {})
        for word in SETTINGS:
            algo.setdefault(word, value)
        spec = meta.setdefault("spec", {})
        for path in places(SPEC):
            place = spec
            for key in path[:-1]:
                place = place.setdefault(key, {}) if isinstance(place, dict) else {}
            if isinstance(place, dict):
                place.setdefault(path[-1], [value] if isinstance(flatten(SPEC)[".".join(path)], list) else value)
    return replace(history, meta=meta, config=config)


def test_a_billion_environments():
    """The seeds of so many worlds cannot be gone through; whether one of them was used still can be said."""
    history = changed(runs("evaluation-on-training-seeds")[0][1], 999_999_999, ("algo", "envs"))
    with bounded(seconds=2):
        found, _ = engine.ask_run([rules.RULES["evaluation-on-training-seeds"]], View(history, "x"))
    assert [f.slug for f in found] == ["evaluation-on-training-seeds"]


def asked(given: list[rules.Rule], found: list[tuple[str, History]]) -> list[str]:
    """What failed when the rules were asked."""
    views = [View(history, name) for name, history in found]
    gone = [each for view in views for each in engine.ask_run(given, view)[1]]
    gone += engine.ask_groups(given, [ViewGroup("all", views)])[1]
    return [f"{each.slug}: {each.missing}" for each in gone if "the rule failed" in each.missing]


@pytest.mark.slow
@pytest.mark.parametrize("slug", SLUGS)
def test_no_number_keeps_a_rule_busy_or_breaks_it(slug):
    """Each number of the rule's own planted fault by itself, asked of this rule."""
    found = runs(slug)[:3]
    paths = {path for _, h in found for tree in (h.meta, h.config) for path in places(tree)}
    failed = set()
    for path in sorted(paths):
        for value in ABSURD:
            hostile = [(name, changed(history, value, path)) for name, history in found]
            with bounded(seconds=2):
                failed |= {(".".join(path), f"{value!r:.20}", why) for why in asked([rules.RULES[slug]], hostile)}
    assert failed == set()


# `make test` puts one of these into each planted fault, in turn; `make test-all` puts every one into every fault.
USUAL = (-1, 10**400, math.nan)
TURNS = [pytest.param(value, SLUGS[i :: len(USUAL)], id=f"{value!r:.12}") for i, value in enumerate(USUAL)]
TURNS += [pytest.param(value, SLUGS, marks=pytest.mark.slow, id=f"all-{value!r:.12}") for value in ABSURD]


@pytest.mark.parametrize(("value", "slugs"), TURNS)
@pytest.mark.some(1)
def test_all_numbers_absurd_at_once(value, slugs):
    """Every rule is asked about planted faults with the same absurd number everywhere."""
    failed = set()
    for slug in slugs:
        hostile = [(name, changed(history, value)) for name, history in runs(slug)[:2]]
        with bounded(seconds=10):
            failed |= set(asked(list(rules.RULES.values()), hostile))
    assert failed == set()


# ---- Long columns

AGREE = rules.RULES["unit-change"].thresholds["agree"]


def jump(values: np.ndarray) -> tuple | None:
    """unit-change row by row, as it is defined."""
    for at in range(5, len(values) - 5):
        left, right = values[at - 5 : at], values[at : at + 5]
        before, after = float(np.median(left)), float(np.median(right))
        if before == 0 or after == 0 or np.ptp(left) > AGREE * abs(before) or np.ptp(right) > AGREE * abs(after):
            continue
        if what := units._factor(before, after, AGREE):
            return at, before, after, what
    return None


@pytest.mark.parametrize("block", [1, 7, 100, 100_000])
@pytest.mark.some(1)
def test_a_change_of_unit_is_found_where_it_is_row_by_row(block, monkeypatch):
    monkeypatch.setattr(units, "BLOCK", block)
    rng, found = np.random.default_rng(0), []
    for length, level in itertools.product((10, 11, 12, 40), (-3.0, 1.01, 1.5, 40.0, 0.0)):
        for at in range(0, length, 3):
            for after in (100 * level, level / 1000, math.copysign(math.expm1(abs(level)), level), level * 1.6):
                values = np.where(np.arange(length) < at, level, after) * (1 + 0.01 * rng.random(length))
                with np.errstate(all="ignore"):
                    found.append(units._jump(Curve("x", np.arange(length), values), AGREE))
                assert found[-1] == jump(values)
    assert {each[3] for each in found if each} == {"a factor of 100", "a factor of 1000", "symexp"}
