"""Does relab contradict the entries that it wrote itself, for a run, for a folder, beside others?"""

from __future__ import annotations

from pathlib import Path

import pytest

from relab.cli import main
from relab.logger import Logger


def logged(folder: Path, level: float, seed: int) -> None:
    settings = {"env_id": "CartPole-v1", "algo": "ppo", "lr": 3e-4, "seed": seed}
    with Logger(folder, config=settings) as log:
        for i in range(1, 41):
            earned = min(20 + level * i, 490.0) + (i % 3) + 0.21
            log.log(1000 * i, {"return/mean": earned})
            if i % 5 == 0:
                log.evaluation(1000 * i, [earned + k for k in range(5)])


@pytest.mark.parametrize("read", ["", "a", "b", "b/b_s1"])
def test_nothing_of_it_is_contradicted(tmp_path: Path, capsys: pytest.CaptureFixture[str], read: str) -> None:
    """`every seed 31.21` of a table was taken for a setting `seed` of 31.21."""
    runs, notes = tmp_path / "runs", tmp_path / "LOG.md"
    for config, levels in (("a", (2, 3, 5)), ("b", (11, 12))):
        for seed, level in enumerate(levels):
            logged(runs / config / f"{config}_s{seed}", level, seed)
    for part in ("a", "b", "b/b_s1", ""):
        assert main(["note", str(runs / part), "--into", str(notes)]) == 0
    assert main(["examine", str(runs / read), "--notes", str(notes)]) == 0
    assert " 0 contradicted" in capsys.readouterr().out
