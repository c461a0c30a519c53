"""What does a plain table under odd names show by itself, and what is only a guess?"""

from __future__ import annotations

import numpy as np
import pytest

from relab.formats.read import find
from relab.health import guess
from relab.health.examine import examine
from relab.health.view import View

ROWS = 60
LOSS = 0.8 * np.exp(np.linspace(0, 13.5, ROWS))


def table(folder, columns) -> View:
    rows = zip(*(np.asarray(values, float).tolist() for values in columns.values()))
    lines = [",".join(f"{x:.6g}" for x in row) for row in rows]
    (folder / "log.csv").write_text("\n".join([",".join(columns), *lines]) + "\n")
    (run,) = find.load_all(folder).runs
    return View(run.history, run.name)


@pytest.mark.parametrize("name", ["Critic-Loss", "q_loss", "value_loss"])
@pytest.mark.parametrize("returns", [{}, {"my number": np.ones(ROWS)}, {"Avg score": 100 + np.arange(ROWS) % 7}])
def test_a_loss_that_explodes_is_a_warning_without_anything_else(tmp_path, name, returns):
    table(tmp_path, {"step": np.arange(ROWS) * 1000, name: LOSS, **returns})
    found = {f.slug: f.severity for f in examine(tmp_path).main}
    slug = "value-loss-blow-up" if name == "value_loss" else "critic-loss-blow-up"
    assert found.get(slug) == "warning", found
    table(tmp_path, {"step": np.arange(ROWS) * 1000, name: np.linspace(0.01, 50, ROWS), **returns})
    assert slug not in {f.slug for f in examine(tmp_path).main}


def test_one_name_does_not_tell_an_algorithm(tmp_path):
    steps, ones = {"step": np.arange(ROWS) * 1000}, np.ones(ROWS)
    assert table(tmp_path, {**steps, "eps": ones, "actor loss": ones, "critic_loss": ones}).algo is None
    assert table(tmp_path, {**steps, "eps": ones, "reward": ones}).algo is None
    assert table(tmp_path, {**steps, "alpha": ones, "reward": ones}).algo is None
    assert table(tmp_path, {**steps, "epsilon": ones, "q_loss": ones}).algo == "dqn"
    assert guess.family(["optim/temperature", "policy/actor_loss"]) == "sac"


def test_a_guess_is_called_one_and_odd_names_get_their_remedy(tmp_path, capsys):
    from relab import cli

    table(tmp_path, {"Frames (x1)": np.arange(ROWS) * 1000, "epsilon": np.ones(ROWS), "q_loss": np.ones(ROWS),
                     "my points": np.arange(ROWS) % 5})  # fmt: skip
    cli.main(["examine", str(tmp_path), "-v"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "apply to dqn (a guess by what is logged)" in shown
    assert "--mapping 'Frames (x1)=step'" in shown
    assert "--mapping 'my points=return/mean'" in shown
