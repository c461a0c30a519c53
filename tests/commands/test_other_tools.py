"""What do commands that act with a policy say of a run that relab only reads?"""

from __future__ import annotations

import pytest

from relab import cli


@pytest.mark.parametrize("command", ["eval", "video", "probe", "resume"])
def test_a_run_of_another_tool_is_no_missing_run(tmp_path, capsys, command):
    (tmp_path / "monitor.csv").write_text('#{"t_start": 1.0, "env_id": "CartPole-v1"}\nr,l,t\n10.0,10,0.1\n')
    assert cli.main([command, str(tmp_path)]) != 0
    err = capsys.readouterr().err
    assert "wrote, and relab cannot act with another tool's policy" in err
    assert "Stable-Baselines3" in err
    assert "no run" not in err


def test_a_folder_without_any_run_is_still_one(tmp_path, capsys):
    assert cli.main(["eval", str(tmp_path)]) != 0
    assert "no run" in capsys.readouterr().err
