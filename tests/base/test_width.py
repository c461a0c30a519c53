"""Are numbers and durations short and right, and do Chinese signs take their two columns in tables and lines?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.base.text import count, cut, duration, number, pad, rows, width, wrap


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


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0, "0"),
        (7, "7"),
        (1234567, "1,234,567"),
        (500.0, "500"),
        (-12.0, "-12"),
        (0.99, "0.99"),
        (-1.23456, "-1.235"),
        (99.953, "99.95"),
        (123.456, "123.5"),
        (-1234.56, "-1,234.6"),
        (1e-5, "1e-05"),
        (0.0003, "0.0003"),
        (1234567.8, "1.235e+06"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (np.float32(2.5), "2.5"),
        (np.float32("nan"), "nan"),
        (np.int64(12345), "12,345"),
    ],
)
def test_number(x, text):
    assert number(x) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0, "0"),
        (999, "999"),
        (999.6, "1k"),
        (1000, "1k"),
        (12_345, "12.3k"),
        (99_950, "100k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (999_999, "1M"),
        (1_500_000, "1.5M"),
        (999_999_999, "1G"),
        (2.5e9, "2.5G"),
        (5e12, "5,000G"),
        (-12_345, "-12.3k"),
        (0.4, "0"),
    ],
)
def test_count(x, text):
    assert count(x) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.7, "1m00s"),
        (61, "1m01s"),
        (3599.6, "1h00m"),
        (3661, "1h01m"),
        (90_000, "25h00m"),
        (math.inf, "?"),
        (math.nan, "?"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text
