"""Are run names readable, free and found again?"""

from __future__ import annotations

import datetime
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from relab.record import names
from relab.record.names import ADJECTIVES, ANIMALS, claim, find, name_for
from relab.record.run_folder import Record

DAY = datetime.date(2026, 11, 16)


def make(root, name, id_):
    Record.create(root / name, {"seed": 0}, {}, {"id": id_}).close()


def test_words_are_plain_and_unique():
    for words in (ADJECTIVES, ANIMALS):
        assert len(set(words)) == len(words) >= 100
        assert all(re.fullmatch("[a-z]+", word) for word in words)


def test_a_name_is_date_adjective_animal_and_follows_from_the_id():
    assert name_for("000000000000", DAY) == "2026-11-16-able-adder"
    assert name_for("000000000001", DAY) == "2026-11-16-able-albatross"
    assert name_for("0123456789ab", DAY) == name_for("0123456789ab", DAY)


def test_every_name_of_a_day_differs():
    pairs = len(ADJECTIVES) * len(ANIMALS)
    assert len({name_for("0000000000aa", DAY, i) for i in range(pairs + 50)}) == pairs + 50
    assert name_for("000000000000", DAY, pairs) == "2026-11-16-able-adder-2"


def test_ids_are_random():
    assert len({names.new_id() for _ in range(1000)}) == 1000
    assert re.fullmatch("[0-9a-f]{12}", names.new_id())


def test_a_taken_name_leads_to_the_next(tmp_path):
    first = claim(tmp_path / "runs", "00ff00000000", DAY)
    second = claim(tmp_path / "runs", "00ff00000000", DAY)
    assert first[0] == second[0] == "00ff00000000"
    assert first[1] != second[1]
    assert first[1].is_dir()
    assert second[1].is_dir()


def test_claims_at_once_get_different_folders(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        folders = [folder for _, folder in pool.map(lambda _: claim(tmp_path, "000000000000", DAY), range(40))]
    assert len(set(folders)) == 40


def test_a_run_is_found_by_path_name_part_or_id(tmp_path):
    make(tmp_path, "2026-11-16-bold-otter", "abcdef012345")
    make(tmp_path, "2026-11-16-calm-otter", "abcd99999999")
    make(tmp_path, "2026-11-16-calm-otter-2", "000000000000")
    bold = tmp_path / "2026-11-16-bold-otter"
    assert find(str(bold), tmp_path / "elsewhere") == bold
    assert find("2026-11-16-bold-otter", tmp_path) == bold
    assert find("bold", tmp_path) == bold
    assert find("ABCDEF", tmp_path) == bold
    assert find("2026-11-16-calm-otter", tmp_path).name == "2026-11-16-calm-otter", "a whole name beats a part"


def test_runs_that_are_not_found_say_why(tmp_path):
    make(tmp_path, "2026-11-16-bold-otter", "abcdef012345")
    make(tmp_path, "2026-11-16-calm-otter", "abcd99999999")
    with pytest.raises(LookupError, match=r"`otter` means 2 runs .*bold-otter, .*calm-otter; write more"):
        find("otter", tmp_path)
    with pytest.raises(LookupError, match="`abcd` means 2 runs"):
        find("abcd", tmp_path)
    with pytest.raises(LookupError, match=r"no run `bald-oter` .*2 runs there.*nearest is 2026-11-16-bold-otter"):
        find("bald-oter", tmp_path)
    with pytest.raises(LookupError, match="0 runs there"):
        find("x", tmp_path / "none")


def test_a_broken_folder_hides_no_other(tmp_path):
    make(tmp_path, "2026-11-16-bold-otter", "abcdef012345")
    for name, text in (("a", "{broken"), ("b", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.json").write_text(text)
    assert find("abcdef", tmp_path).name == "2026-11-16-bold-otter"
