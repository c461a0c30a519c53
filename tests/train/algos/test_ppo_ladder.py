"""Does PPO reach the known value and action on the five rungs? The first that fails names the broken part."""

from __future__ import annotations

import numpy as np
import pytest

from relab.config import registry
from relab.train.algos import ppo
from train.algos.learning import learn, make

RUNGS = ("ladder-value", "ladder-backprop", "ladder-discount", "ladder-policy", "ladder-both")
KINDS = {
    "plain": {},
    "monte carlo": {"advantage": "monte_carlo"},
    "gru": {"rnn": "gru", "bptt": 4, "hidden": (16,), "rnn_size": 16},
    "mingru": {"rnn": "mingru", "bptt": 4, "hidden": (16,), "rnn_size": 16},
    "muon": {"optimizer": "muon", "lr": 0.01},
    "adamw": {"optimizer": "adamw", "weight_decay": 1e-3},
}


SLOW = {
    (rung, kind) for kind in ("gru", "mingru", "muon", "adamw") for rung in RUNGS if rung != "ladder-both"
}  # which needs all of their parts


@pytest.mark.parametrize(
    ("rung", "kind"),
    [pytest.param(rung, kind, marks=[pytest.mark.slow] if (rung, kind) in SLOW else [])
     for rung in RUNGS for kind in KINDS],
)  # fmt: skip
def test_known_values_and_actions(rung: str, kind: str) -> None:
    gamma = 0.9
    cfg = {
        "envs": 16,
        "steps": 8,
        "epochs": 8,
        "minibatches": 2,
        "lr": 3e-3,
        "gamma": gamma,
        "lam": 0.9,
        "hidden": (16,),
    }
    state = make(rung, **cfg | KINDS[kind])
    learn(state, 40)
    for answer in registry.env_class(rung)().known_answers():
        obs = np.array([[answer.obs]], np.float32)
        memory = np.zeros((1, state.agent.memory_dim), np.float32)
        if rung == "ladder-discount" and answer.obs == 1 and state.agent.memory_dim:
            memory = state.agent.act(np.zeros((1, 1), np.float32), memory, np.zeros(1, np.uint64), 1).memory
        value = state.agent.value(obs, memory)[0]
        assert value == pytest.approx(answer.value(gamma), abs=0.1), f"value of observation {answer.obs}"
        if answer.action is not None:
            acted = state.agent.act(obs, memory, np.zeros(1, np.uint64), n_mode=1)
            assert acted.action[0, 0] == answer.action, f"action at observation {answer.obs}"


def test_a_planted_fault_fails_the_rung_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ladder is only worth something if it catches bugs: turn the advantage's sign and climb."""
    honest = ppo.appraise

    def upside_down(s: ppo.State):
        batch, found = honest(s)
        return batch._replace(adv=-batch.adv), found

    monkeypatch.setattr(ppo, "appraise", upside_down)
    state = make("ladder-policy", envs=16, steps=8, epochs=8, minibatches=2, lr=3e-3, hidden=(16,))
    learn(state, 40)
    acted = state.agent.act(
        np.zeros((1, 1), np.float32), np.zeros((1, 0), np.float32), np.zeros(1, np.uint64), n_mode=1
    )
    assert acted.action[0, 0] == 0, "the wrong action is learned"
