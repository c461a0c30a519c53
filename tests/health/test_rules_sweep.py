"""Do the rules about sweeps fire on sweeps with holes, and keep silent on whole ones and on what never was a sweep?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import plans
from relab.health import engine
from relab.health.examine import examine
from relab.health.rule import all_rules
from relab.health.view import View, ViewGroup
from relab.record.history import Column, History
from where import ROOT

CORPUS = ROOT.parent / "shared" / "corpus"


def run(folder: Path, settings: dict, seed: int = 0, state: str = "finished", level: float = 1.0, **meta) -> View:
    history = History(folder / ("_".join(f"{k}{v}" for k, v in settings.items()) + f"_s{seed}"))
    noise = np.random.default_rng(seed).normal(size=20)
    history.columns = {"return/mean": Column(np.arange(20), level + noise)}
    history.config = {"seed": seed, "algo": {"name": "x"}, "env": {"name": "e"}, "foreign": settings}
    history.meta = {"seed": seed, **meta}
    return View(history, history.folder.name, state=state)


def grouped(views: list[View]) -> list[ViewGroup]:
    found: dict[str, ViewGroup] = {}
    for view in views:
        key = repr(sorted((k, v) for k, v in view.config.items() if k != "seed"))
        found.setdefault(key, ViewGroup(key)).views.append(view)
    return list(found.values())


def asked(slug: str, groups: list[ViewGroup]):
    return engine._call(all_rules()[slug], groups, "all")


def grid(folder: Path, lrs, others, seeds=(0,), skip=()) -> list[View]:
    return [run(folder, {"lr": lr, "ent": other}, seed, level=10 * i + j)
            for i, lr in enumerate(lrs) for j, other in enumerate(others) for seed in seeds
            if (lr, other) not in skip]  # fmt: skip


# Document 001's sweep of actor_lr x actor_entropy_coef: 3 x 4 = 12 configs, one seed, of which five rows say TBD. The
# numbers here are made up; which cells are missing is not.
LRS, ENTROPIES = (1e-5, 3e-5, 1e-4), (0.001, 0.005, 0.01, 0.03)
TBD = ((3e-5, 0.03), *((1e-4, e) for e in ENTROPIES))


def test_five_of_twelve_cells_are_missing(tmp_path):
    found = asked("incomplete-cells", grouped(grid(tmp_path, LRS, ENTROPIES, skip=TBD)))
    assert "1 of 8 combinations of lr, ent have no run, such as lr=3e-05 ent=0.03" in found.message, "by what is seen"
    names = [f"lr{lr}_ent{e}_s0" for lr in LRS for e in ENTROPIES]
    (tmp_path / "trials.json").write_text(json.dumps({"planned": names}))
    found = asked("incomplete-cells", grouped(grid(tmp_path, LRS, ENTROPIES, skip=TBD)))
    assert found.message == "7 of 12 planned cells have a whole run, 5 have none"
    assert found.value == pytest.approx(5 / 12)


def test_a_whole_grid_is_silent(tmp_path):
    whole = grouped(grid(tmp_path, LRS, ENTROPIES, seeds=(0, 1)))
    assert asked("incomplete-cells", whole) is None
    assert asked("confounded-arms", whole) is None
    assert isinstance(asked("sweep-cost", whole), engine.NotChecked)


def test_changes_one_at_a_time_and_points_drawn_at_random_are_no_grid(tmp_path):
    star = [{"lr": 1, "ent": 1}, {"lr": 2, "ent": 1}, {"lr": 1, "ent": 2}, {"lr": 3, "ent": 1}]
    assert asked("incomplete-cells", grouped([run(tmp_path, p) for p in star])) is None
    assert asked("confounded-arms", grouped([run(tmp_path, p) for p in star])) is None
    rng = np.random.default_rng(0)
    drawn = [{"lr": float(rng.random()), "ent": float(rng.random())} for _ in range(12)]
    assert asked("incomplete-cells", grouped([run(tmp_path, p) for p in drawn])) is None


def test_a_run_that_broke_off_leaves_its_seed_missing(tmp_path):
    views = [run(tmp_path, {"lr": lr}, seed) for lr in (1, 2, 3) for seed in (0, 1, 2)]
    assert asked("incomplete-cells", grouped(views)) is None
    views[-1].state = "failed"
    found = asked("incomplete-cells", grouped(views))
    assert "1 of 3 configs lack seeds that the others have run to the end, such as lr=3: seed 2" in found.message
    views[-1].state = "running"
    assert "still going" in asked("incomplete-cells", grouped(views)).missing


def test_arms_that_differ_twice(tmp_path):
    both = [run(tmp_path, {"lr": 1e-3, "net": "small"}), run(tmp_path, {"lr": 1e-4, "net": "large"})]
    assert "lr and net change only together in 2 configs" in asked("confounded-arms", grouped(both)).message
    apart = [*both, run(tmp_path, {"lr": 1e-4, "net": "small"})]
    assert asked("confounded-arms", grouped(apart)) is None
    alike = [run(tmp_path, {"lr": lr, "sde": sde}) for lr, sde in ((1e-3, True), (1e-4, "true"))]
    refused = asked("confounded-arms", grouped(alike))  # one value, however it is written: as `relab diff` says
    assert refused is None or hasattr(refused, "missing")
    derived = [run(tmp_path, {"envs": n, "batch": 128 * n}) for n in (8, 16)]
    assert asked("confounded-arms", grouped(derived)) is None
    child = [both[0], run(tmp_path, {"lr": 1e-4, "net": "large"}, parent="other")]
    assert isinstance(asked("confounded-arms", grouped(child)), engine.NotChecked), "its own rule asks what changed"
    many = [run(tmp_path, dict.fromkeys("abcdef", i)) for i in (1, 2)]
    assert isinstance(asked("confounded-arms", grouped(many)), engine.NotChecked), "two experiments, not two arms"


def test_a_setting_that_means_nothing_in_the_other_arm_is_not_confounded(tmp_path):
    def arms(*pairs):
        runs = [run(tmp_path, {"algo": {"acting_rate": rate, "collects": who}}) for rate, who in pairs]
        return asked("confounded-arms", grouped(runs))

    assert arms((0.005, "learned"), (1.0, "acting")) is None
    assert "change only together" in arms((0.005, "learned"), (0.02, "acting")).message


def test_the_cost_of_what_is_left(tmp_path):
    (tmp_path / "trials.json").write_text(json.dumps({"planned": [f"lr{k}_s0" for k in range(1000)]}))
    views = [run(tmp_path, {"lr": k}, seconds=2418.0) for k in range(9)]
    found = asked("sweep-cost", grouped(views))
    assert found.message == "991 of 1,000 planned cells are left at 40m18s each: 27.7 days, 28.0 days in all"
    quick = [run(tmp_path, {"lr": k}, seconds=20.0) for k in range(9)]
    assert asked("sweep-cost", grouped(quick)) is None
    unknown = [run(tmp_path, {"lr": k}) for k in range(9)]
    assert "the time that finished cells took" in asked("sweep-cost", grouped(unknown)).missing


def test_plans_of_strangers_are_read_with_care(tmp_path):
    ours, theirs = "trials.json", "grid_effective.yaml"
    for name, text in ((ours, '{"planned": "all"}'), (ours, "[1"), (ours, '{"planned": [1]}'), (theirs, "a_values: 3"),
                       (theirs, "a: ["), (theirs, "a_values: []")):  # fmt: skip
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / name).write_text(text)
        assert plans.of(folder / "run") is None, text
    (tmp_path / "link").mkdir()
    (tmp_path / "secret.yaml").write_text("a_values: [1, 2]")
    (tmp_path / "link" / "grid_effective.yaml").symlink_to(tmp_path / "secret.yaml")
    assert plans.of(tmp_path / "link" / "run") is None, "links are not followed"


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no real run records at {CORPUS}")
def test_the_sweep_of_document_000():
    """Four of its ten runs are here: three whole ones, and the tenth, which died. 40 min 18 s a run by the document;
    the reports' time stamps give 40 min 20 s, which is the time between runs."""
    report = examine(CORPUS / "torus")
    found = {f.slug: f.message for f in report.findings}
    assert found["incomplete-cells"].startswith("3 of 1,000 planned cells have a whole run, 996 have none;")
    assert "tmos0p5_s0_c42bf18b ended at step 34 of 199" in found["incomplete-cells"]
    assert found["sweep-cost"] == "997 of 1,000 planned cells are left at 40m20s each: 27.9 days, 28.0 days in all"
    assert "theta_mu_offset_scale" in found["inert-axis"]
    assert "confounded-arms" not in found


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no real run records at {CORPUS}")
def test_other_folders_are_no_sweeps():
    for name in ("drones", "fish"):
        slugs = {f.slug for f in examine(CORPUS / name).findings}
        assert not slugs & {"confounded-arms", "incomplete-cells", "sweep-cost"}
