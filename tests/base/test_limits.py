"""Is every file that a stranger may have made read within a limit, and does the error say which?"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import re
from pathlib import Path

import pytest

import syntax
from bounds import bounded
from relab import cli
from relab.base import limits
from relab.base.jsonl import RecordError, read_json, read_jsonl
from relab.config import yaml_io
from relab.config.yaml_io import YamlError, parse_yaml, read_yaml
from relab.record.history import load
from relab.runs import labels
from where import ROOT

SRC = ROOT / "src" / "relab"
GB = 1 << 30
# Files that may read a file whole, and why.
WHOLE = {
    "record/levels.py": "package data",
    "health/reference.py": "package data",
    "notebook/words.py": "package data",
    "lab/studies": "package data, and what studies wrote a moment ago",
    "commands/study.py": "a page that the study wrote a moment ago",
    "lab/checkup.py": "/proc and /sys",
    "base/processes.py": "/proc",
    "base/writers.py": "/proc",
    "web/machine.py": "/proc",
    "commands/schemas.py": "package data",
    "web/render.py": "package data",
    "lab/execute/release.py": "the sources of relab",
    "lab/execute/slots.py": "/sys",
    "train/check_algo.py": "runs that this program made a moment ago",
    "train/replay.py": "training: rows that this program wrote, as many as the config asks for",
    "train/checkpoint.py": "training: state that this program wrote, as large as it must be",
    "lab/faults": "copies of runs that this program made",
    "record/provenance.py": "the output of git, cut when it is kept",
}


def sparse(path: Path, size: int = GB) -> Path:
    """A file of so many zero bytes that takes no room on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(size)
    return path


# ---- The source


def unlimited(tree: ast.AST) -> list[int]:
    """Lines with a call that reads a file to its end."""
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, node.func.value
        ours = isinstance(owner, ast.Name) and owner.id == "limits"
        whole = name in ("read_bytes", "read_text", "readlines") or (name == "read" and not node.args)
        of_module = isinstance(owner, ast.Name) and (owner.id, name) in (
            ("json", "load"),
            ("np", "load"),
            ("np", "fromfile"),
        )
        if (whole and not ours and not (name == "read" and _is_no_file(owner))) or of_module:
            lines.append(node.lineno)
    return lines


def _is_no_file(owner: ast.expr) -> bool:
    """Names that are modules or objects of relab, whose read() is a reader with limits of its own."""
    return isinstance(owner, ast.Attribute) or (isinstance(owner, ast.Name) and owner.id not in ("file", "opened", "f"))


def test_no_reader_reads_without_a_limit():
    places = []
    for path in sorted(SRC.rglob("*.py")):
        name = path.relative_to(SRC).as_posix()
        if not any(name == each or name.startswith(f"{each}/") for each in WHOLE) and name != "base/limits.py":
            places += [f"{name}:{line}" for line in unlimited(syntax.tree(path))]
    assert places == [], "use relab.base.limits.read_bytes or read_text, or say in WHOLE why not"


@pytest.mark.parametrize(
    "text", ["path.read_bytes()", "open(p).read()", "json.load(f)", "np.load(p)", "p.read_text('utf-8')"]
)
def test_the_scan_sees_what_reads_without_a_limit(text):
    if text == "open(p).read()":
        text = "with open(p) as file:\n  file.read()"
    assert unlimited(ast.parse(text))
    assert not unlimited(ast.parse("limits.read_bytes(p, 5); find.read(source); file.read(10)"))


def test_the_exceptions_are_files():
    assert [name for name in WHOLE if not (SRC / name).exists()] == []


# ---- Whole files


def test_a_file_over_the_limit_is_not_read(tmp_path):
    path = sparse(tmp_path / "x.json")
    with bounded(memory=100_000_000), pytest.raises(limits.TooLargeError) as error:
        limits.read_bytes(path, 1000, "cut it")
    assert str(error.value) == "x.json has 1,073,741,824 bytes, and no more than 1,000 are read; cut it"
    assert limits.read_bytes(sparse(tmp_path / "y", 1000), 1000) == b"\0" * 1000
    assert limits.read_end(path, 10) == b"\0" * 10


def test_a_gigabyte_of_json_and_yaml(tmp_path):
    sparse(tmp_path / "meta.json")
    sparse(tmp_path / "config.yaml")
    with bounded(memory=200_000_000):
        with pytest.raises(
            RecordError, match=r"meta.json has 1,073,741,824 bytes, and no more than 33,554,432 are read"
        ):
            read_json(tmp_path, "meta.json")
        with pytest.raises(
            YamlError, match=r"config.yaml has 1,073,741,824 bytes, and no more than 1,000,000 are read"
        ):
            read_yaml(tmp_path / "config.yaml")
        assert labels.read(sparse(tmp_path / "labels.json")) == labels.Labels()
        assert labels.read(os.fsencode(tmp_path / "labels.json")) == labels.Labels()


def test_a_run_of_gigabytes_is_examined_as_far_as_it_goes(tmp_path, capsys):
    run = tmp_path / "run"
    for name in ("config.yaml", "meta.json", "labels.json", "provenance.json", "evals.jsonl", "events.jsonl"):
        sparse(run / name)
    (run / "metrics.jsonl").write_text("".join(f'{{"step":{i},"return/mean":1.0}}\n' for i in range(50)))
    with bounded(seconds=20, memory=GB):
        history = load(run)
        assert cli.main(["examine", str(run), "-v"]) == 0
    problems = "\n".join(f"{p.file}: {p.message}" for p in history.problems)
    assert "config.yaml has 1,073,741,824 bytes" in problems
    assert "evals.jsonl: only the first 134217728 of 1073741824 bytes were read" in problems
    assert "longer than 16,777,216 bytes" in problems
    assert "config.yaml has 1,073,741,824 bytes" in capsys.readouterr().out


# ---- YAML


@pytest.mark.slow
def test_plain_keys_are_counted_while_they_are_read():
    text = "".join(f"k{i}: 1\n" for i in range(400_000))
    with bounded(seconds=5, memory=300_000_000):
        with pytest.raises(YamlError, match="characters, and no more than 1,000,000 are read"):
            parse_yaml(text)
        with pytest.raises(YamlError, match=r"yaml:\d+: there are more than 30,000 keys and values"):
            parse_yaml(text[:900_000])


def test_aliases_that_multiply():
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    laughs += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    with bounded(seconds=5, memory=300_000_000), pytest.raises(YamlError, match="aliases expand without end"):
        parse_yaml(laughs)
    merged = "a: &a {x: 1}\n" + "".join(f"b{i}: *a\n" for i in range(yaml_io.MAX_NODES))
    with bounded(seconds=10), pytest.raises(YamlError, match="more than 30,000 keys and values"):
        parse_yaml(merged)


BUSY = ["# c\n" * 240_000, "\n" * 900_000, "a: " + "x y " * 240_000, "a: [" + "1," * 400_000, "- " * 100_000,
        "? " * 100_000, "a: " + "{a: " * 100_000, "&a " * 100_000]  # fmt: skip


@pytest.mark.parametrize("text", BUSY, ids=lambda text: repr(text[:6]))
@pytest.mark.some(2)
def test_yaml_that_keeps_a_parser_busy(text):
    with bounded(seconds=20, memory=400_000_000), contextlib.suppress(YamlError):
        parse_yaml(text)


# ---- Lines


def test_lines_are_those_of_split(tmp_path):
    for text in (b"", b"a", b"a\n", b"\n\na\r\nb", b"abc\n" * 9 + b"x"):
        (tmp_path / "x").write_bytes(text)
        for size in (1, 2, 3, 100):
            lines = list(limits.split(limits.blocks(tmp_path / "x", block=size)))
            assert [line.data for line in lines] == text.split(b"\n")
            assert [line.number for line in lines if line.last] == [len(lines)]


def test_a_line_without_end_is_left_out_and_the_others_stay(tmp_path):
    path = tmp_path / "x.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"step":1}\n')
        file.seek(100 << 20)
        file.write(b'\n{"step":2}\n')
    with bounded(memory=200_000_000):
        rows, problems = read_jsonl(path)
    assert rows == [{"step": 1}, {"step": 2}]
    assert [(p.line, p.message) for p in problems] == [(2, "longer than 16,777,216 bytes; it was left out")]


def test_what_is_beyond_the_limit_is_not_read(tmp_path):
    (tmp_path / "x").write_bytes(b"ab\ncd\nef\n")
    assert [line.data for line in limits.lines(tmp_path / "x", most=5)] == [b"ab", b"cd"]
    assert [line.data for line in limits.lines(tmp_path / "x", longest=1)] == [None, None, None, b""]


# ---- The page


def test_the_page_of_limits_says_what_the_constants_are():
    page = (SRC.parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([\d,]+) \| `([\w.]+)` \|", page.partition("\n## Bounds\n")[2], re.M)
    assert len(rows) > 30
    for number, name in rows:
        module, _, constant = name.rpartition(".")
        assert getattr(importlib.import_module(module), constant) == int(number.replace(",", "")), name
    held = {f"relab.base.limits.{name}" for name in vars(limits) if name.isupper() and name != "BLOCK"}
    assert held <= {name for _, name in rows}


# ---- Settings that memory is laid out by

HUGE = {
    "algo.hidden=[99999999,99999999]": r"a layer of `hidden` must have at most 65,536 units, but got 99,999,999",
    "algo.hidden=[60000,60000]": r"networks of at most 268,435,456 weights, but got hidden = \[60000, 60000\]",
    "algo.rnn_size=999999999": r"a layer of `rnn_size` must have at most 65,536 units",
    "algo.envs=99999999": r"an iteration must have at most 67,108,864 agent rows",
    "algo.chunk=99999999999": r"`chunk` must be at most 1,048,576 rows",
    "eval.episodes=99999999": r"`eval.episodes` <= 1e\+06 must hold",
    "env.agents=99999999": r"`agents` <= 65536 must hold",
}


@pytest.mark.parametrize("word", HUGE)
def test_a_setting_beyond_memory_is_refused_before_there_is_a_run(word, tmp_path, capsys):
    env = "herd" if word.startswith("env.") else "cartpole"
    with bounded(memory=GB):
        assert cli.main(["train", "ppo", f"env={env}", word, "--runs", str(tmp_path / "runs")]) == 64
    assert re.search(HUGE[word], capsys.readouterr().err)
    assert not (tmp_path / "runs").exists()


def test_linear_agents_have_a_limit_too(tmp_path, capsys):
    for word in ("algo.feature_dim=99999999999", "algo.actor_feature_dim=99999999999"):
        assert cli.main(["train", "tracking_ac", "env=torus", word, "--runs", str(tmp_path)]) == 64
        assert "<= 1.04858e+06 must hold" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["eval"], ["resume"], ["video"], ["eval", "--episodes", "99999999999"]])
def test_a_record_that_asks_for_more_memory_than_there_is(command, tmp_path, capsys):
    from relab.record.run_folder import read_meta
    from small_runs import Interrupt, run

    run(tmp_path / "run", Interrupt(at=2))
    path = tmp_path / "run" / "config.yaml"
    if len(command) == 1:
        path.write_text(re.sub(r"hidden:.*", "hidden: [99999999, 99999999]", path.read_text()))
    before = read_meta(tmp_path / "run")
    with bounded(memory=GB):
        assert cli.main([command[0], str(tmp_path / "run"), *command[1:]]) == 64
    assert re.search(r"at most 65,536 units, but got 99,999,999|`--episodes` <= 1e\+06", capsys.readouterr().err)
    assert read_meta(tmp_path / "run") == before


def test_what_is_observed_counts_among_the_weights():
    from relab.config.base import ConfigError
    from relab.train.nets.networks import Params

    with pytest.raises(ConfigError, match=r"at most 268,435,456 weights, but .* make 10,000,000,000"):
        Params({"actor/0/weight": (100_000, 100_000)})


def test_a_lack_of_memory_is_one_line(monkeypatch, capsys):
    from relab.commands import doctor

    def greedy(words):
        raise MemoryError("Unable to allocate 8 TB")

    monkeypatch.setattr(doctor, "main", greedy)
    assert cli.main(["doctor"]) == 1
    assert "needs more memory than there is (Unable to allocate 8 TB)" in capsys.readouterr().err
