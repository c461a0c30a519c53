"""Does `relab doctor` see what is wrong here, say what to do about it, and stay quick?"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from relab.cli import main
from relab.lab import checkup
from relab.record.run_folder import Record, now
from shelves import make, set_meta


def lines(path: Path, capsys, code: int = 0) -> dict[str, dict[str, str]]:
    assert main(["doctor", str(path), "--json"]) == code
    return {line["name"]: line for line in json.loads(capsys.readouterr().out)["lines"]}


def ago(seconds: float) -> str:
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return then.isoformat().replace("+00:00", "Z")


def test_a_sound_folder(tmp_path, capsys):
    make(tmp_path / "one")
    (tmp_path / "sb3").mkdir()
    (tmp_path / "sb3" / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n100,1.5\n")
    checks = lines(tmp_path, capsys)
    assert checks["formats"]["found"] == f"1 sb3, 1 relab below {tmp_path}"
    assert {checks[name]["level"] for name in ("relab", "python", "packages", "runs folder", "stale", "hung")} == {"ok"}
    assert [name for name, line in checks.items() if (line["level"] == "ok") == bool(line["remedy"])] == []
    for name in ("cores", "memory", "threads", "gpu", "clock", "cache folder", "train", "kernels"):
        assert checks[name]["found"], name


def test_the_text_has_a_line_for_each_and_a_sum(tmp_path, capsys):
    assert main(["doctor", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert f"no runs of any format that relab reads below {tmp_path}" in out
    assert out.splitlines()[-1].endswith(" 0 broken")


def test_a_folder_that_is_not_there_yet_is_no_fault(tmp_path, capsys):
    checks = lines(tmp_path / "not" / "yet", capsys)
    assert checks["runs folder"]["level"] == "ok"
    assert "(not there yet)" in checks["runs folder"]["found"]


@pytest.mark.skipif(not os.path.isdir("/proc/sys/kernel/random"), reason="a folder that nobody can write to is needed")
def test_a_folder_that_cannot_be_written_is_broken(capsys):
    checks = lines(Path("/proc/sys/kernel/random"), capsys, code=1)
    assert checks["runs folder"]["level"] == "broken"
    assert "choose a folder with --runs" in checks["runs folder"]["remedy"]


def test_runs_that_died_hang_or_have_a_wrong_clock(tmp_path, capsys):
    for name, beat in {"dead": ago(500), "hangs": ago(500), "alive": now(), "ahead": ago(-500)}.items():
        set_meta(make(tmp_path / name), status="running", heartbeat=beat)
    with Record.open(tmp_path / "hangs"):
        checks = lines(tmp_path, capsys)
    for state, name in {"stale": "dead", "hung": "hangs", "ahead": "ahead"}.items():
        assert checks[state]["level"] == "warn"
        assert checks[state]["found"].split()[0] == name
    assert "relab resume" in checks["stale"]["remedy"]
    assert "alive" not in str(checks)


def test_a_look_that_ends_early_says_so(tmp_path, capsys, monkeypatch):
    make(tmp_path / "one")
    monkeypatch.setattr(checkup, "LOOK_S", -1.0)
    checks = lines(tmp_path, capsys)
    assert "so far: the look ended after" in checks["formats"]["found"]
    assert checks["stale"]["found"] == "none so far"


def test_names_of_runs_are_printed_without_control_characters(tmp_path, capsys):
    set_meta(make(tmp_path / "esc\x1b[31m"), status="running", heartbeat=ago(500))
    assert main(["doctor", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "esc?[31m" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(("value", "level"), [("1", "ok"), ("0", "warn"), ("many", "warn"), ("4096", "warn")])
def test_threads_that_make_no_sense(tmp_path, capsys, monkeypatch, value, level):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    threads = lines(tmp_path, capsys)["threads"]
    assert threads["level"] == level
    assert ("OMP_NUM_THREADS" in threads["remedy"]) is (level == "warn")


def test_a_cache_folder_that_cannot_be_written_is_a_warning(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/sys/kernel/random")
    cache = lines(tmp_path, capsys)["cache folder"]
    assert (cache["level"], cache["remedy"]) == ("warn", "set XDG_CACHE_HOME")


def test_packages_that_are_missing_or_old_are_named():
    assert checkup.lacks("no-such-package", "1.0") == "missing"
    assert checkup.lacks("numpy", "999.0").endswith("but 999.0 or newer is needed")
    assert checkup.lacks("numpy", "1.26") == ""
    assert checkup.numbers("2.13.0+cpu") == (2, 13, 0)
    packages = {(name, extra) for name, _, extra in checkup.requirements()}
    assert {("numpy", ""), ("torch", "train"), ("pytest", "dev")} <= packages


def test_a_check_that_breaks_is_a_line_and_the_others_are_done(tmp_path, monkeypatch):
    monkeypatch.delattr("shutil.disk_usage")  # a system that lacks it
    checks = checkup.checkup(tmp_path)
    assert [line.level for line in checks if "could not be done: AttributeError" in line.state] == ["warn"]
    assert "formats" in [line.name for line in checks]


def test_nothing_heavy_is_imported(tmp_path):
    make(tmp_path / "one")
    code = (
        f"import sys; from relab.cli import main; main(['doctor', {str(tmp_path)!r}])\n"
        "print(sorted({'torch', 'numba', 'gymnasium', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_deep_lets_torch_compute():
    pytest.importorskip("torch")
    (line,) = checkup.torch_works()
    assert (line.level, line.name) == ("ok", "torch")
    assert "computes" in line.state


def test_kernels_are_counted_wherever_in_the_package_they_lie(tmp_path, monkeypatch):
    """They lie beside the code of train/, not of the wing that looks for them."""
    import relab
    from relab.lab import checkup

    assert Path(relab.__file__).parent == checkup.PACKAGE
    place = tmp_path / "train" / "kernels" / "__pycache__"
    place.mkdir(parents=True)
    (place.parent / "returns.py").write_text("")
    (place / "returns.gae-14.py311.nbi").write_bytes(b"")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(checkup, "PACKAGE", tmp_path)
    (line,) = checkup.kernels()
    assert line.state.startswith("1 compiled in ")
