"""Does a file that runs here run elsewhere as it stands? Only the engine's border is made up: jobs are processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab_machines import Machines
from relab import cli
from relab.base.jsonl import read_jsonl
from relab.lab import loop
from relab.lab.execute import engines
from relab.lab.experiment import cells

PROGRAM = """
import sys
from pathlib import Path
run, seed, level = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
rows = [f"{step},{level + seed + step}" for step in range(5)]
(run / "progress.csv").write_text("step,return\\n" + "\\n".join(rows) + "\\n")
"""
EXPERIMENT = """
question: does a level matter
command: {command}
metric: return/mean
variants: {{low: {{level: 0.0}}, high: {{level: 5.0}}}}
seeds: 1
execute: {{pack: 2}}
"""
SWEEP = """
question: which level is best
command: {command}
metric: return/mean
axes: {{level: [0.0, 5.0]}}
seeds: 1
confirm: 0
"""

LOOP = """
question: which height is best
command: {program} {{run}} {{seed}} {{height}}
base: {{height: 1.0}}
metric: return/mean
range: [-100, 100]
findings: false
sampler: sobol
seeds: {{noise: 3, first: 1, confirm: 3, again: 0}}
policy: {{allow: {{height: {{low: 0.5, high: 1.5}}}}}}
execute: {{pack: 3}}
"""


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    made_up = Machines()
    monkeypatch.setattr(engines, "border", lambda where: made_up)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    return made_up


def question(folder: Path, text: str) -> Path:
    path = folder / "q.yaml"
    program = f"{sys.executable} {folder / 'program.py'}"
    path.write_text(text.format(program=program, command=f"{program} {{run}} {{seed}} {{level}}"))
    return path


def rows(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/runs/*/progress.csv")}


@pytest.mark.parametrize(
    ("kind", "text", "jobs"),
    [
        ("experiment", EXPERIMENT, 2),
        pytest.param("sweep", SWEEP, 2, marks=pytest.mark.slow),
        pytest.param("loop", LOOP, 9, marks=pytest.mark.slow),
    ],
)
def test_the_same_bytes_here_and_elsewhere(tmp_path: Path, machines: Machines, kind: str, text: str, jobs: int) -> None:
    path = question(tmp_path, text)
    more = {"experiment": ["--no-log"], "loop": ["--runs", "1"]}.get(kind, [])
    assert cli.main([kind, str(path), "--yes", "--root", "here", *more]) == 0
    assert machines.sizes == []
    assert cli.main([kind, str(path), "--yes", "--root", "away", "--on", "slurm", *more]) == 0
    assert 1 <= len(machines.sizes) <= jobs
    assert rows(tmp_path / "away") == rows(tmp_path / "here")
    assert len(rows(tmp_path / "away")) == {"loop": 4}.get(kind, 2)
    assert (tmp_path / "away" / "q" / "report.html").is_file(), "the answer is made where it was asked"
    assert cli.main([kind, str(path), "--yes", "--root", "away", "--on", "slurm", *more]) == 0
    assert len(machines.sizes) <= jobs, "finished runs are not sent again"


@pytest.mark.slow
def test_a_loop_gives_its_runs_away_and_decides_at_home(tmp_path: Path, machines: Machines) -> None:
    path = question(tmp_path, LOOP)
    assert cli.main(["loop", str(path), "--yes", "--runs", "0", "--on", "slurm"]) == 0
    assert machines.sizes == [1, 2], "the run that is timed for the forecast, then the rest of the noise floor"
    assert len(rows(tmp_path / "loops")) == 3
    assert '"event":"noise"' in (tmp_path / "loops/q/journal").read_text().replace(" ", "")


def test_one_run_of_a_loop_is_made_by_the_words_that_a_machine_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    plan = loop.load(question(tmp_path, LOOP))
    folder = tmp_path / "loops" / "q"
    arms = loop.prepare(plan, folder, 1, lambda line: None).arms
    assert cli.main(cells.only(arms.cell("base", 2), folder)) == 0
    assert list(rows(tmp_path / "loops")) == ["base-s2"]
    assert [row["event"] for row in read_jsonl(folder / "journal")[0]] == ["begin"], "what happens is written at home"
    assert cli.main(cells.only(arms.cell("p009", 2), folder)) == 64
    assert "`--only` must be a run of" in capsys.readouterr().err
