"""Does a committed run give the committed page, every word of it, and nothing of a person?

`PYTHONPATH=tests python tests/report/test_golden.py` writes the page anew.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from relab.health.engine import NotChecked
from relab.health.rule import Evidence, Finding
from relab.report import render, sections
from relab.report.page import Facts
from where import histories

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "update-too-large.md"
RUN = histories() / "faulty" / "update-too-large"
FINDINGS = [
    Finding("KL is above 1.5 x target_kl in 92% of the iterations (median 0.00986, target 0.001)", severity="info",
            slug="update-too-large", run="update-too-large", onset=1024,
            evidence=[Evidence("policy/kl", [1024, 40960], [0.0088, 0.2781], "> 1.5 * 0.001")],
            suggest=[{"key": "algo.lr", "from": 0.02, "to": 0.02 / 3}]),
    Finding("the best evaluation (500 at 30,720) is far above the last 2 (324.4)", severity="info",
            slug="peak-selection", run="update-too-large", explained_by="update-too-large",
            suggest=["quote the mean of the last evaluations"]),
]  # fmt: skip
GONE = [NotChecked("throughput-drop", "update-too-large", "time/sps")]


def page(folder: Path) -> str:
    """The run as if it lay in runs/, seen from a place one hour east of Greenwich."""
    shutil.copytree(RUN, folder / "runs" / RUN.name)
    os.chdir(folder)
    facts = Facts(FINDINGS, GONE, limits=["1 seed: no conclusion about the config"])
    return render.markdown(sections.build(Path("runs") / RUN.name, facts))


def test_the_page_is_as_committed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    try:
        assert page(tmp_path) == GOLDEN.read_text(encoding="utf-8")
    finally:
        monkeypatch.undo()
        time.tzset()


# ---- Nothing of a person leaks


# no name here could be a part of a hash in hexadecimal digits
SECRETS = ("zoe", "bighost", "hunter2", "/home/zoe", "s3cr3tvalue")
NOISE = (
    "at /home/zoe/runs/x", "file:///home/zoe/y", "bighost:/home/zoe", "token=hunter2", "PASSWORD: hunter2",
    "--api-key hunter2", "https://zoe:hunter2@git.example.org/x", "~zoe/z", "zoe@bighost: ls", "../home/zoe/q",
    "C:\\Users\\zoe\\x", "{'password': 'hunter2'}", 'AWS_SECRET_ACCESS_KEY="s3cr3tvalue"', "on bighost.", "<bighost>",
)  # fmt: skip


@pytest.mark.parametrize("text", NOISE)
def test_nothing_leaks_from_meta(tmp_path, text):
    from report.made import write_run

    noisy = dict.fromkeys(("why", "intent", "command", "parent", "status", "commit"), text)
    check(write_run(tmp_path / "run", (10.0, 400.0), meta={"machine": {"host": "bighost"}, **noisy}))


@pytest.mark.parametrize("text", NOISE)
def test_nothing_leaks_from_rows_and_findings(tmp_path, text):
    from relab.base.jsonl import encode
    from report.made import write_run

    meta = {"machine": {"host": "bighost"}, "spec": {"env": text}}
    folder = write_run(tmp_path / "run", (10.0, 400.0), meta=meta, config={"note": text, "nested": {"list": [text]}})
    with open(folder / "events.jsonl", "ab") as file:
        file.write(encode({"step": 1, "kind": "warning", "message": text, "more": {"a": text}}))
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(encode({"step": 9000, "axis": "agent_steps", "return/mean": text}))
    proof = [Evidence("m", [1], [1.0], text)]
    finding = Finding(text, slug="s", severity="info", run="run", suggest=[text], evidence=proof)
    check(folder, findings=[finding], limits=[text], muted={"x": text}, proposal=text)


def check(folder: Path, **named) -> None:
    data = sections.build(folder, Facts(**named))
    for shown in (render.html(data), render.markdown(data)):
        left = [word for word in (*SECRETS, str(folder.parent)) if word in shown]
        assert not left


if __name__ == "__main__":
    os.environ["TZ"] = "CET-1"
    time.tzset()
    with tempfile.TemporaryDirectory() as made_here:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(page(Path(made_here)), encoding="utf-8")
