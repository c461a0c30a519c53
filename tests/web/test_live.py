"""Do pages hear of rows, runs and findings as they come, and are streams limited? The watcher is asked step by step."""

from __future__ import annotations

import asyncio
import http.server
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

import made_up
from relab.base.jsonl import encode
from relab.report import words
from relab.web import live as streams
from relab.web.announced import Announced
from relab.web.examining import examined
from relab.web.live import Live
from relab.web.pages import api
from relab.web.watching import Health, sources
from relab.web.webhook import Webhook
from web.conftest import Served
from where import histories


class Heard(Live):
    """What was said, instead of who hears it."""

    def __init__(self, runs: set[str]) -> None:
        super().__init__()
        self.names, self.said = runs, list[tuple[str, Any]]()

    @property
    def wanted(self) -> set[str]:
        return self.names

    def say(self, kind: str, data: Any, about: Any = None) -> None:
        self.said.append((kind, data))


def test_a_row_that_is_written_is_said_at_the_next_look(served: Served) -> None:
    watcher = served.bench.watcher
    watcher.live = heard = Heard({"runs/wide-s0", "runs/nobody"})
    watcher.look_at_rows()
    watcher.look_at_rows()
    assert heard.said == []
    with open(served.root / "runs" / "wide-s0" / "metrics.jsonl", "ab") as file:
        file.write(encode({"step": 1, "axis": "agent_steps", "policy/kl": 0.5}))
    watcher.look_at_rows()
    assert heard.said == [("rows", {"runs": ["runs/wide-s0"]})]
    assert served.get("/api/curve?r=runs/wide-s0&metric=policy/kl").json()["lines"][0]["y"] == [0.5]


def test_runs_that_come_go_and_change_are_said(served: Served) -> None:
    watcher = served.bench.watcher
    watcher.look_at_runs()
    watcher.live = heard = Heard(set())
    made_up.run(served.root / "runs" / "fresh-s0", 5.0, seed=0)
    served.act("archive", {"runs": ["runs/wide-s4"]})
    served.act("star", {"runs": ["runs/wide-s1"], "on": True})
    served.bench.shelf.refresh()
    watcher.look_at_runs()
    ((kind, data),) = heard.said
    assert kind == "runs"
    assert {"runs/fresh-s0", "runs/wide-s1"} <= set(data["changed"])


def test_the_first_run_of_an_empty_folder_is_said(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    """Its pages promise that a run appears by itself."""
    served = shelf_of(tmp_path)
    watcher = served.bench.watcher
    watcher.live = heard = Heard(set())
    watcher.look_at_runs()
    assert heard.said.pop() == ("runs", {"changed": [], "gone": [], "runs": 0, "version": 1}), "it was read"
    watcher.look_at_runs()
    assert heard.said == []
    made_up.run(tmp_path / "fresh-s0", 5.0, seed=0)
    served.bench.shelf.refresh()
    watcher.look_at_runs()
    assert heard.said == [("runs", {"changed": ["fresh-s0"], "gone": [], "runs": 1, "version": 2})]


def test_findings_are_those_of_examine_and_new_ones_are_said_once(served: Served) -> None:
    from concurrent.futures import Future

    from relab.health.examine import examine

    watcher = served.bench.watcher
    watcher.live = heard = Heard(set())
    runs = [run for group in served.bench.shelf.every() for run in group.runs]
    document = examined(str(served.root), sources(served.bench.shelf, runs))
    expected = [
        (f.slug, f.severity, words.in_text(f.message).replace(" -> ", " → ")) for f in examine(served.root).main
    ]
    assert [(f["slug"], f["severity"], f["message"]) for f in document["findings"]] == expected
    assert document["findings"]
    for some in (document["findings"][1:], document["findings"], document["findings"]):
        answer: Future[Any] = Future()
        answer.set_result({**document, "findings": some})
        watcher._take(answer)
    assert [len(data["new"]) for kind, data in heard.said if kind == "findings"] == [0, 1, 0]


def test_what_fires_in_a_folder_that_was_empty_is_news(tmp_path: Path, shelf_of: Callable[..., Served]) -> None:
    """Neither bell nor webhook told what was found first in the first run of a folder."""
    served = shelf_of(tmp_path)
    watcher = served.bench.watcher
    watcher.desk, watcher.live = served.bench.desk, Heard(set())
    watcher._ask(served.bench.shelf.every())
    watcher.live = heard = Heard(set())
    shutil.copytree(histories() / "faulty" / "diverged", tmp_path / "diverged")
    served.bench.shelf.refresh()
    watcher._ask(served.bench.shelf.every())
    assert watcher._examining is not None
    watcher._take(watcher._examining)
    ((_, data),) = heard.said
    assert "diverged" in {each["slug"] for each in data["new"]}


def test_a_finding_that_comes_and_goes_is_told_once_until_it_is_worse() -> None:
    """Else a rule on the brink rings the bell at every other examination."""
    announced, course = Announced(), ["info", "info", "warning", "info", "warning", "error", "error"]
    assert [announced.is_news("a", "diverged", each) for each in course] == [
        True,
        False,
        True,
        False,
        False,
        True,
        False,
    ]
    assert announced.is_news("b", "diverged", "info")
    assert announced.is_news("a", "plateau", None)


def test_a_failed_examination_is_said_and_keeps_the_last(served: Served) -> None:
    from concurrent.futures import Future

    answer: Future[Any] = Future()
    answer.set_exception(MemoryError("too large"))
    served.bench.watcher._take(answer)
    assert served.bench.watcher.health.state == "failed"
    assert "could not be examined" in served.get("/findings?r=runs/wide-s0").text


def test_many_runs_are_not_examined_together(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relab.web.examining.MOST", 3)
    served.bench.watcher.look_at_runs()
    served.bench.watcher.look_at_findings()
    assert served.bench.watcher.health.state == "too many"
    assert "more than are examined together" in served.get("/findings?r=runs/wide-s0").text


def test_a_filter_by_a_setting_does_not_keep_the_index_from_changing(served: Served) -> None:
    """A filter by settings left a transaction open, and the walk through the folders waited for half a minute."""
    assert served.get("/runs/table?q=lr=0.1").status_code == 200
    assert not served.bench.shelf._ask(lambda index: index.db.in_transaction)
    made_up.run(served.root / "runs" / "late-s0", 5.0, seed=0)
    assert served.bench.shelf.refresh() > 0
    assert "late" in served.get("/runs/table").text


# ---- Streams


def test_a_stream_tells_what_its_page_shows_and_joins_what_waits() -> None:
    async def talk() -> list[bytes]:
        live = Live()
        mine, other = live.join(["a"]), live.join(["b"])
        assert mine is not None
        assert other is not None
        for number in range(3):
            live.say("rows", {"runs": ["a"], "number": number}, ["a"])
        live.say("runs", {"changed": []})
        heard = []
        stream = streams.events(live, mine)
        heard.append(await anext(stream))
        await asyncio.sleep(0)
        heard += [await anext(stream), await anext(stream)]
        assert list(other.waiting) == ["runs"]
        live.end()
        assert [piece async for piece in stream] == []
        assert live.count == 1
        return heard

    first, rows, runs = asyncio.run(talk())
    assert first.startswith(b"retry")
    assert json.loads(rows.split(b"data: ")[1]) == {"runs": ["a"], "number": 2}
    assert runs.startswith(b"event: runs")


def first_words(served: Served) -> bytes:
    """What a page hears as soon as it listens."""

    async def first() -> bytes:
        request = Request({"type": "http", "query_string": b"", "headers": [], "app": served.app.app})  # type: ignore[attr-defined]
        answer = await api.stream(request)
        parts = [part async for part in _some(answer.body_iterator, 2)]  # type: ignore[attr-defined]
        return b"".join(parts)

    return asyncio.run(first())


def test_a_page_hears_of_findings_that_came_before_it_listened(served: Served) -> None:
    """Made while the runs were examined, listening only afterwards: it would say "examining" for ever."""
    served.bench.watcher.health = Health(None, "examining", "", 7)
    assert 'data-findings="7"' in served.get("/today").text
    text = first_words(served)
    assert b"event: findings" in text
    assert b'"version":7' in text


def test_a_page_hears_of_runs_that_came_before_it_listened(served: Served) -> None:
    """Made while the folder was read, listening only afterwards: it stayed empty until the findings came."""
    assert 'data-runs="0"' in served.get("/today").text
    served.bench.watcher.look_at_runs()
    assert 'data-runs="1"' in served.get("/today").text
    text = first_words(served)
    assert b"event: runs" in text
    assert b'"version":1' in text


def test_what_examine_said_is_taken_at_once(served: Served) -> None:
    """Not at the next look, a second later."""
    watcher = served.bench.watcher
    watcher.desk = served.bench.desk
    watcher._wake.clear()
    watcher._ask(served.bench.shelf.every())
    assert watcher._wake.is_set()


async def _some(parts: Any, many: int) -> Any:
    async for part in parts:
        yield part
        many -= 1
        if not many:
            await parts.aclose()
            return


def test_a_folder_that_is_not_examined_is_said(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relab.web.examining.MOST", 3)
    watcher = served.bench.watcher
    watcher.live = heard = Heard(set())
    watcher._ask(served.bench.shelf.every())
    assert heard.said == [("findings", {"version": 1, "new": []})]
    assert "more than are examined together" in served.get("/today").text


def test_what_takes_long_is_worked_out_once_until_a_run_changes(served: Served) -> None:
    asked: list[str] = []

    def question(root: str, some: Any) -> int:
        asked.append(root)
        return len(asked)

    made = sources(served.bench.shelf, [run for group in served.bench.shelf.every() for run in group.runs])
    assert [served.bench.once(question, made).result() for _ in range(3)] == [1, 1, 1]
    with open(served.root / "runs" / "wide-s0" / "evals.jsonl", "ab") as file:
        file.write(b"\n")
    assert served.bench.once(question, made).result() == 2
    log = served.root / "LOG.md"
    assert served.bench.once(question, made, log).result() == 3
    log.write_text("# new\n")
    assert served.bench.once(question, made, log).result() == 4


def test_no_more_streams_than_may_be() -> None:
    async def crowd() -> list[bool]:
        live = Live(most=2)
        return [live.join([]) is not None for _ in range(3)]

    assert asyncio.run(crowd()) == [True, True, False]


# ---- The webhook


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict[str, Any]], threading.Event]]:
    """A program on this machine that is told."""
    bodies, arrived = list[dict[str, Any]](), threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            arrived.set()

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/finding", bodies, arrived
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_finding_is_told_to_the_webhook(receiver: tuple[str, list[dict[str, Any]], threading.Event]) -> None:
    address, bodies, arrived = receiver
    hook = Webhook(address)
    hook.send([])
    hook.send([{"slug": "diverged", "severity": "error", "where": "a", "message": "m"}])
    assert arrived.wait(20)
    assert bodies == [{"schema": 1, "from": "relab", "findings": [
        {"slug": "diverged", "severity": "error", "where": "a", "message": "m"}]}]  # fmt: skip


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://a/b", "nonsense", "http://"])
def test_a_webhook_must_be_an_address(address: str) -> None:
    from relab.config.base import ConfigError

    with pytest.raises(ConfigError, match="--webhook"):
        Webhook(address)


def test_there_is_no_webhook_unless_it_was_named(tmp_path: Path, served: Served) -> None:
    assert served.bench.webhook is None
