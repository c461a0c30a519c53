"""Is a best checkpoint that nothing vouches for refused, with the reason?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from relab.advise import trust
from relab.advise.proposal import load
from relab.config.base import ConfigError
from relab.train import fresh
from small_runs import run as train


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trust") / "runs" / "a"
    train(folder, total_steps="512", eval__every="256")
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "runs" / "a")
    return tmp_path / "runs" / "a"


def changed(run: Path, **facts: object) -> None:
    path = run / "checkpoints" / "best.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def states(book: trust.Ledger) -> dict[str, bool | None]:
    return {entry.name: entry.ok for entry in book.entries}


def test_a_sound_best_lacks_only_what_was_not_done(run: Path):
    book = trust.ledger(run)
    assert states(book) == {"range": True, "evaluated": True, "fresh": None, "episodes": False}
    assert book.refusal(strict=False) == ""
    assert "it was chosen on 4 episodes, 20 are the least" in book.refusal(strict=True)
    assert "it was not evaluated again on fresh episodes" in book.refusal(strict=True)


def test_a_fresh_evaluation_is_an_entry_of_the_ledger(run: Path):
    fresh.fresh(run, "best", 30, 0)
    entry = next(entry for entry in trust.ledger(run).entries if entry.name == "fresh")
    assert entry.ok is not None
    assert "on 30 fresh episodes" in entry.text


def test_what_its_record_contradicts_is_refused(run: Path):
    changed(run, value=1715.8)
    assert "range: eval/return_det is 1715.8, and can be 1 to 500" in trust.ledger(run).refusal(strict=False)
    changed(run, value=77.25)
    assert "does not have that evaluation" in trust.ledger(run).refusal(strict=False)
    changed(run, metric="return/mean_100")
    assert "which is no evaluation" in trust.ledger(run).refusal(strict=False)
    (run / "checkpoints" / "best.json").unlink()
    assert "it has no best checkpoint" in trust.ledger(run).refusal(strict=False)


def test_luck_that_fresh_episodes_do_not_bear_out_is_refused(run: Path):
    best = json.loads((run / "checkpoints" / "best.json").read_text())
    mode = {"mean": best["value"] - 5.0, "sd": 1.0, "n": 50, "success": None}
    assert states(trust.ledger(run, fresh={"modes": {"det": mode}}))["fresh"] is False
    close = mode | {"mean": best["value"] - 0.5}
    assert states(trust.ledger(run, fresh={"modes": {"det": close}})) == {
        "range": True, "evaluated": True, "fresh": True, "episodes": True}  # fmt: skip


def test_another_task_is_another_protocol(run: Path):
    from relab.record.run_folder import read_config

    same = read_config(run)
    assert states(trust.ledger(run, same))["protocol"] is True
    other = same | {"env": same["env"] | {"horizon": 100}}
    assert "protocol: another env.horizon" in trust.ledger(run, other).refusal(strict=True)


def test_a_proposal_that_goes_on_from_it_is_refused_with_the_reason(run: Path):
    from relab.record.run_folder import read_config

    lr = read_config(run)["algo"]["lr"]
    path = run / "next_config.yaml"
    path.write_text(f"parent: a\ndiff: {{algo.lr: {{from: {lr}, to: 0.0001}}}}\nresume_from: best\n")
    loaded = load(path, run.parent)
    assert loaded.resume_from.endswith("a@best"), "best alone is the parent's"
    changed(run, value=1715.8)
    with pytest.raises(ConfigError, match=r"must not be gone on with .range: eval/return_det is 1715\.8"):
        load(path, run.parent)
