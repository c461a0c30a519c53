"""Is a file replaced as a whole, by nobody else read where it is secret, and never written into a pipe?"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from relab.base.jsonl import SECRET, RecordError, write_atomic


@pytest.mark.parametrize("before", [None, 0o644])
def test_what_is_secret_is_for_its_user_alone(tmp_path: Path, before: int | None) -> None:
    if before is not None:  # what a killed write left
        (tmp_path / ".key.json.tmp").touch(before)
    write_atomic(tmp_path / "key.json", b"{}", mode=SECRET)
    assert stat.S_IMODE((tmp_path / "key.json").stat().st_mode) == 0o600


def test_a_pipe_in_the_place_of_the_unfinished_file_is_refused(tmp_path: Path) -> None:
    """Opening it would wait for a reader that never comes."""
    os.mkfifo(tmp_path / ".key.json.tmp")
    with pytest.raises(RecordError, match=r"^\.key\.json\.tmp must be a file, but is a folder, a pipe"):
        write_atomic(tmp_path / "key.json", b"{}")
    assert not (tmp_path / "key.json").exists()
