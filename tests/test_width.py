"""Do Chinese signs take their two columns in tables and wrapped lines?"""

from __future__ import annotations

import pytest

from relab.width import cut, pad, rows, width, wrap


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("lr 0.1", 6),
        ("学习率", 6),
        ("ｆｕｌｌ", 8),
        ("e\u0301", 1),
        ("a\u200bb", 2),
        ("（过期）", 8),
        ("한국어", 6),
    ],
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns
    assert width(pad(text, 12)) == 12


def test_columns_line_up() -> None:
    lines = rows([["名称", "x"], ["a", "学"], ["longer", "y"]])
    assert [width(line[: line.index(last)]) for line, last in zip(lines, "x学y", strict=True)] == [8, 8, 8]


def test_a_cut_text_fits() -> None:
    assert cut("学习率从零开始", 9) == "学习 ..."
    assert cut("学习率", 6) == "学习率"
    assert all(width(cut("学a习b率c" * 9, n)) <= n for n in range(5, 40))


@pytest.mark.parametrize("columns", [20, 31, 60])
def test_wrapped_lines_fit_and_lose_nothing(columns: int) -> None:
    text = "学习率从 0.003 提高到 0.1 之后，策略在第 512 步崩溃（KL 高达 17.8）。The parent was better by far."
    lines = wrap(text, columns, "  因为  ")
    assert all(width(line) <= columns for line in lines)
    assert lines[0].startswith("  因为  学")
    assert all(line.startswith(" " * 8) for line in lines[1:])
    assert "".join("".join(lines).split()) == "因为" + "".join(text.split())
    assert not any(line.strip()[0] in "，。）" for line in lines), "no line begins with a closing mark"


def test_at_most_so_many_lines() -> None:
    lines = wrap("word " * 50, 30, "- ", 2)
    assert len(lines) == 2
    assert lines[1].endswith(" ...")
    assert all(width(line) <= 30 for line in lines)
