"""Can a name in a log steer the terminal, or pass for a line of relab's own? JSON keeps the name as it is."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path

import pytest

from relab import cli
from relab.base import terminal
from relab.base.jsonl import encode
from relab.config.yaml_io import read_yaml, write_yaml
from shelves import make, set_meta

STEERING = "\x1b]0;title\x07\x1b[2J\x9b31m\r\x08\u202eabc\u2066\u200b\ufeff\x85\x00"
BREAKS = "\nINJECTED line\u2028INJECTED\u2029INJECTED"
ENV = f"env{STEERING}{BREAKS}"
RUN = ENV.replace("\x00", "").replace("]0;", "")
METRIC = f"loss/{STEERING}{BREAKS}"
TEXTS = (
    "examine runs", "examine runs -v", "examine {0}", "report {0} --out page.html", "report runs --out page.html",
    "note {0}", "note {0} --lang zh", "note {0} --into LOG.md", "note --search env --into LOG.md",
    "note --digest 7d --into LOG.md", "note --families --into LOG.md", "runs", "runs disk", "runs env", "compare runs",
    "diff {0} {1}", "next {0}", "next runs", "gate lint {0}", "doctor", "convert runs --to csv --out out",
    "explain lr", "runs tag {2} {0}", "runs note {0} {2}", "eval {0}", "resume {0}", "probe {0}", "video {0}",
    "train --parent {0} --print-config", "examine foreign", "examine foreign -v", "report foreign --out f.html",
    "compare foreign", "runs foreign", "next foreign", "note foreign",
)  # fmt: skip
JSONS = (
    "examine runs --json", "report {0} --json", "note {0} --json", "runs --json", "compare runs --json",
    "diff {0} {1} --json", "next {0} --json", "runs disk --json", "doctor --json", "examine foreign --json",
    "report foreign --json",
)  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two runs and another tool's log, whose names steer; what the words of a command mean."""
    monkeypatch.chdir(tmp_path)
    folders = [Path("runs") / f"{RUN}{k}" for k in range(2)]
    for k, folder in enumerate(folders):
        spoil(make(folder, seed=str(k)), k)
    Path("foreign").mkdir()
    write_yaml(Path("foreign/config.yaml"), {"env_id": ENV, "lr": 0.1, METRIC: ENV})
    head = ",".join(["step", "return", f'"{METRIC}"', "env"]).replace("\x00", "")  # a file with zeros is no text
    rows = [f'{k},{k}.5,{k},"{ENV}"'.replace("\x00", "") for k in range(30)]
    Path("foreign/progress.csv").write_text("\n".join([head, *rows]))
    return [*map(str, folders), f"label{STEERING}{BREAKS}"]


def spoil(folder: Path, k: int) -> None:
    settings = read_yaml(folder / "config.yaml")
    write_yaml(folder / "config.yaml", settings | {"env": {**settings["env"], "name": ENV}, "lr": k, METRIC: ENV})
    set_meta(
        folder,
        spec={"env": ENV, "action": {"kind": ENV}},
        name=RUN,
        intent=ENV,
        command=f"train {STEERING}",
        parent=RUN,
        why=ENV,
    )
    rows = [{"step": i, "axis": "agent_steps", METRIC: i / 7, "return/mean": float(i)} for i in range(40)]
    (folder / "metrics.jsonl").write_bytes(b"".join(map(encode, rows)))
    (folder / "events.jsonl").write_bytes(encode({"kind": ENV, "step": 3, "stage": ENV}))


def printed(line: str, names: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    capsys.readouterr()
    cli.main([word.format(*names) for word in line.split()])
    return capsys.readouterr()


def steers(text: str) -> list[str]:
    bad = [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Zl", "Zp")]
    return bad + [c for c in text if c in "\u202e\u2066\u200b\ufeff"]


def test_no_command_prints_what_steers_a_terminal(hostile: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for line in TEXTS:
        for text in printed(line, hostile, capsys):
            assert not steers(text), (line, steers(text))
            assert "\nINJECTED" not in text, line


def test_json_escapes_it_and_keeps_its_value(hostile: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    values = ""
    for line in JSONS:
        out, _ = printed(line, hostile, capsys)
        assert not steers(out), line
        values += str(json.loads(out))
    assert repr("\u202eabc\u2066")[1:-1] in values
    assert repr(ENV)[1:-1] in values


def test_pages_hold_no_line_of_a_stranger(hostile: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("report {0} --out page.html", "report runs --out page.html", "note {0} --into LOG.md"):
        printed(line, hostile, capsys)
    for name in ("page.md", "LOG.md"):
        text = Path(name).read_text()
        assert "\nINJECTED" not in text, name
        assert not steers(text), name


def test_what_relab_draws_itself_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.streams():
        print("\x1b[31mred\x1b[0m \x1b[K a\tb")
        with terminal.as_is():
            print("\r\x1b[K 3 of 4", end="")
        print("\x9b", file=sys.stderr)
    assert capsys.readouterr() == ("red ?[K a\tb\n\r\x1b[K 3 of 4", "?\n")
