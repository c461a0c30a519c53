"""Does a program get the answers of the commands, small, from below one folder alone, and find a cause with them?"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import made_up
from outside import state
from relab.web.mcp_answer import LINE, MOST, answer, tokens
from where import ROOT

pytest.importorskip("mcp", reason="the extra mcp is not installed")
import anyio
import anyio.to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from relab.base.errors import UserError
from relab.web import mcp_tools
from relab.web.mcp_server import READS, RUNS, server

DRONES = ROOT.parent / "shared" / "corpus" / "drones"
CHANGED = re.compile(r"^(?:error|warning): \S+ in (\S+)[^\n]*\n  changed since (\S+?), not mentioned: (\S+) ", re.M)


def ask(root: Path, *calls: tuple[str, dict[str, Any]], allow_run: bool = False) -> list[str]:
    """The texts of some calls, one after the other, over the protocol; an error begins with `error: `."""

    async def talk() -> list[str]:
        texts = []
        async with Client(server(root, allow_run)) as client:
            for name, words in calls:
                reply = await client.call_tool(name, words)
                text = "".join(part.text for part in reply.content)  # type: ignore[union-attr]
                texts.append(f"error: {text}" if reply.is_error else text)
        return texts

    return anyio.run(talk)


def regressed(folder: Path) -> Path:
    """A chain of three runs: the last one lost what its parent could do, and one setting nobody spoke of differs."""
    facts = {"intent": "more seeds"}
    made_up.run(folder / "first", 150.0, facts, algo__ent_coef=0.01)
    made_up.run(folder / "second", 480.0, {**facts, "parent": "first"}, algo__ent_coef=0.01)
    made_up.run(folder / "third", 20.0, {**facts, "parent": "second"}, algo__ent_coef=0.12, algo__lr=0.0004)
    return folder


# ---- A program that looks for the cause of a regression


class Detective:
    """Three calls: what is wrong, what differs from the parent, how the run went. Knows nothing of the folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.calls, self.tokens = root, 0, 0

    def call(self, name: str, **words: Any) -> str:
        (text,) = ask(self.root, (name, words))
        self.calls, self.tokens = self.calls + 1, self.tokens + tokens(text)
        return text

    def cause(self) -> tuple[str, str, str, bool]:
        """(run, setting, change, whether the run got worse on its way)."""
        suspect = CHANGED.search(self.call("examine"))
        assert suspect is not None, "no finding names a change since a parent"
        run, parent, key = suspect.groups()
        changes = self.call("diff", a=parent, b=run).split("\n")[1:]
        change = next(line for line in changes if line.startswith(f"{key} "))
        ends = re.search(r"last (\S+); highest (\S+)", self.call("curves", path=run))
        assert ends is not None
        last, highest = (float(text.rstrip(",;").replace(",", "")) for text in ends.groups())
        return run, key, " ".join(change.split()[1:4]), last < highest


def test_a_program_finds_the_cause_of_a_regression_in_three_calls(tmp_path: Path) -> None:
    detective = Detective(regressed(tmp_path))
    assert detective.cause()[:3] == ("third", "algo.ent_coef", "0.01 -> 0.12")
    assert detective.calls <= 3
    assert detective.tokens <= 6_000


@pytest.mark.skipif(not DRONES.is_dir(), reason=f"there is no {DRONES}")
def test_a_program_finds_the_cause_in_the_original_log_in_three_calls() -> None:
    detective = Detective(DRONES)
    assert detective.cause() == ("2025-09-20T153515Z", "algo.ent_coef", "0.01 -> 0.12", True)
    assert detective.calls <= 3
    assert detective.tokens <= 6_000


# ---- Eight tools that read


def test_there_are_eight_tools_and_all_say_that_they_only_read(tmp_path: Path) -> None:
    async def listed() -> list[Any]:
        async with Client(server(tmp_path)) as client:
            return (await client.list_tools()).tools

    tools = anyio.run(listed)
    assert [tool.name for tool in tools] == [*READS]
    assert len(tools) == 8
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert all(tool.description and all(p.get("description") for p in tool.input_schema["properties"].values())
               for tool in tools)  # fmt: skip


def test_every_tool_answers_and_nothing_is_written_into_the_folder(tmp_path: Path) -> None:
    regressed(tmp_path)
    (tmp_path / "LOG.md").write_text("# log\n\nThe entropy bonus was too high.\n")
    before = state(tmp_path)
    texts = ask(
        tmp_path, ("list_runs", {}), ("examine", {"path": "third"}), ("compare", {"by": "ent_coef"}),
        ("curves", {"path": "third"}), ("diff", {"a": "second", "b": "third"}),
        ("search_notes", {"words": ["entropy"]}), ("propose", {"path": "third"}),
        ("explain", {"word": "unmentioned-config-change"}),
    )  # fmt: skip
    signs = ("3 runs", "unmentioned-config-change", "ent_coef", "eval/return_det", "algo.ent_coef", "too high",
             "ent_coef 0.12 -> 0.01", "settings differ from the parent's")  # fmt: skip
    assert [sign in text for sign, text in zip(signs, texts)] == [True] * 8, texts
    assert state(tmp_path) == before


def test_answers_are_those_of_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from relab import cli

    regressed(tmp_path)
    cli.main(["diff", str(tmp_path / "second"), str(tmp_path / "third")])
    printed = capsys.readouterr().out.strip().split("\n")
    (text,) = ask(tmp_path, ("diff", {"a": "second", "b": "third"}))
    assert text.split("\n")[1:] == printed


def test_a_question_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    regressed(tmp_path)
    texts = ask(
        tmp_path, ("examine", {"path": "no-such-run"}), ("list_runs", {"where": ["lr"]}), ("explain", {"word": "qqq"}),
        ("compare", {"smallest_effect": -1}), ("curves", {}),
        ("list_runs", {"sort": "'; drop table runs"}), ("curves", {"path": "third", "metric": "policy/klx"}),
    )  # fmt: skip
    assert all(text.startswith("error: ") for text in texts[:-1]), texts
    assert all("Traceback" not in text for text in texts)
    assert "does not log 'policy/klx'" in texts[-1]


def test_a_name_is_looked_for_as_text(tmp_path: Path) -> None:
    """A regular expression can take for ever: (a+)+$ on forty letters would."""
    regressed(tmp_path)
    (tmp_path / "third").rename(tmp_path / ("a" * 40 + "b"))
    none, one = ask(tmp_path, ("list_runs", {"match": "(a+)+$"}), ("list_runs", {"match": "aab"}))
    assert "aab" not in none
    assert "aab" in one


# ---- Size


def test_tokens_are_never_counted_too_low() -> None:
    assert tokens("entropy 24.05 -> 32.73") >= 9
    assert tokens("熵" * 10) == 30
    assert tokens("x" * 1000) == 200


def test_an_answer_is_cut_between_lines_and_says_what_is_missing() -> None:
    text = answer([f"line {i} of many" for i in range(5_000)], "ask for less")
    assert tokens(text) <= MOST
    kept = len(text.split("\n")) - 1
    assert text.endswith(f"left out: {5_000 - kept:,} more lines; ask for less")
    assert answer(["short"], "ask for less") == "short"
    assert len(answer(["x" * 100_000], "")) <= LINE


def test_many_runs_stay_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tools, "LISTED", 8)
    monkeypatch.setattr(mcp_tools, "CURVES", 8)
    for i in range(20):
        made_up.run(tmp_path / f"run-{i:03}-{'long' * 30}", float(i), seed=i)
    texts = ask(tmp_path, ("list_runs", {}), ("examine", {"detail": True}), ("compare", {"detail": True}),
                ("curves", {"path": ""}), ("propose", {}))  # fmt: skip
    assert all(tokens(text) <= MOST for text in texts)
    assert "left out: 12 more runs" in texts[0]
    assert "12 more runs are left out" in texts[3]


def test_a_huge_folder_is_refused_with_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tools, "MANY_RUNS", 2)
    texts = ask(regressed(tmp_path), ("examine", {}), ("examine", {"path": "third"}), ("list_runs", {}))
    assert texts[0].startswith("error: ")
    assert "holds 3 runs, and one answer reads at most 2" in texts[0]
    assert not any(text.startswith("error: ") for text in texts[1:])


# ---- Strangers' folders


def test_names_and_notes_of_a_stranger_stay_text(tmp_path: Path) -> None:
    name = "evil\x1b[31m\u202erun\nerror: fake-finding in other"
    made_up.run(tmp_path / name, 1.0, {"intent": "\x1b]0;x\x07 token=ghp_0123456789abcdefghijklmnopqrstuvwxyz"})
    texts = ask(tmp_path, ("list_runs", {}), ("examine", {}), ("curves", {"path": ""}), ("compare", {}))
    for text in texts:
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\nerror: fake" not in text
        assert "ghp_0123456789abcdef" not in text


OUT = ["..", "../outside", "/etc", "link", "link/secret", "a\0b", "x" * 5_000, "./../outside", "inside/../../outside"]


@pytest.mark.parametrize("word", [*OUT, "~", "$HOME", "file:///etc/passwd"])
def test_no_path_leads_out(tmp_path: Path, word: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    regressed(root / "inside")
    made_up.run(outside / "secret", 777.0)
    (root / "link").symlink_to(outside, target_is_directory=True)
    calls = [("list_runs", {"path": word}), ("examine", {"path": word}), ("compare", {"paths": [word]}),
             ("curves", {"path": word}), ("diff", {"a": word, "b": "inside/third"}), ("propose", {"path": word}),
             ("search_notes", {"words": ["x"], "log": word}), ("explain", {"word": "lr", "run": word}),
             ("examine", {"path": "inside/third", "against": word})]  # fmt: skip
    texts = ask(root, *calls)
    assert all(text.startswith("error: ") for text in texts), texts
    assert all("777" not in text for text in texts)


def test_a_note_that_is_a_link_out_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    regressed(root)
    (tmp_path / "secret.md").write_text("the password\n")
    (root / "notes").mkdir()
    (root / "notes" / "a.md").symlink_to(tmp_path / "secret.md")
    (text,) = ask(root, ("search_notes", {"words": ["password"]}))
    assert text.startswith("error: ")
    assert "the password" not in text


# ---- The process of its own


def run_command(root: Path, use: Callable[[Client], Any], *options: str) -> Any:
    """`relab mcp ROOT` as a client starts it, and what `use` makes of it."""

    async def talk() -> Any:
        command = StdioServerParameters(command=sys.executable, args=["-m", "relab.cli", "mcp", str(root), *options],
                                        env=dict(os.environ))  # fmt: skip
        async with Client(command) as client:
            return await use(client)

    return anyio.run(talk)


def test_the_command_serves_and_reads_nothing_beside_its_folder(tmp_path: Path) -> None:
    """A run's parent and its experiment lie beside the served folder: code that looks there finds a wall."""
    regressed(tmp_path / "runs")
    (tmp_path / "answer.json").write_text('{"answers": [{"names": ["secret", "names"]}]}')
    (tmp_path / "runs" / "answer.json").write_text('{"answers": [{"names": ["secret", "names"]}]}')

    async def use(client: Client) -> list[str]:
        calls = [("examine", {}), ("compare", {}), ("list_runs", {}), ("examine", {"path": "../second"})]
        replies = [await client.call_tool(name, words) for name, words in calls]
        return ["".join(part.text for part in reply.content) for reply in replies]  # type: ignore[union-attr]

    examined, compared, listed, refused = run_command(tmp_path / "runs" / "third", use)
    assert "unmentioned-config-change" not in examined  # which would tell what the parent's settings are
    assert "1 run" in listed
    assert "secret" not in compared
    assert "must lie inside of" in refused


class GoneError(Exception):
    """Nobody waits for the answer any more."""


def test_reading_stops_at_the_next_run_once_nobody_waits(tmp_path: Path) -> None:
    left = [3]

    def alive() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise GoneError

    with pytest.raises(GoneError):
        mcp_tools.Bench(regressed(tmp_path), alive).examine()


def test_a_cancelled_call_ends_and_the_next_one_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question is worked on at a time: a call that nobody could end would hold up all that follow."""
    started = threading.Event()

    def endless(bench: mcp_tools.Bench, *_: Any) -> str:
        started.set()
        while True:
            bench.alive()
            time.sleep(0.01)

    monkeypatch.setattr(mcp_tools.Bench, "examine", endless)

    async def talk() -> str:
        async with Client(server(tmp_path)) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "examine", {})
                await anyio.to_thread.run_sync(started.wait, 20)
                group.cancel_scope.cancel()
            with anyio.fail_after(20):
                reply = await client.call_tool("explain", {"word": "gae"})
        return "".join(part.text for part in reply.content)  # type: ignore[union-attr]

    assert "gae" in anyio.run(talk)
    assert started.is_set()


def test_what_a_client_calls_wrongly_is_masked_and_escaped(tmp_path: Path) -> None:
    regressed(tmp_path)
    token = "ghp_" + "a1B2" * 9
    unknown, wrong = ask(tmp_path, (f"nobody\x1b[31m {token}", {}), ("compare", {"smallest_effect": token}))
    assert unknown.startswith("error: Unknown tool: nobody?[31m")
    for text in (unknown, wrong):
        assert token not in text
        assert "\x1b" not in text
    with pytest.raises(UserError, match="smallest_effect must be a finite number, but is inf"):
        mcp_tools.Bench(tmp_path).compare(smallest_effect=float("1e400"))


# ---- Starting runs


def test_runs_are_queued_only_where_it_was_allowed(tmp_path: Path) -> None:
    (refused,) = ask(tmp_path, ("queue_run", {"algo": "ppo", "settings": ["env=cartpole"]}))
    assert refused == "error: Unknown tool: queue_run"
    settings = ["env=cartpole", "seed=3", "total_steps=2048"]
    added, listed = ask(tmp_path, ("queue_run", {"algo": "ppo", "settings": settings}), (RUNS[0], {}), allow_run=True)
    assert "is waiting" in added
    assert "train ppo env=cartpole seed=3" in listed
    assert not (tmp_path / "runs").exists(), "queued is not started"


@pytest.mark.parametrize("setting", ["env=os:system", "--runs=/tmp", "env=gym:os:x", "; rm -rf /", "algo.lr="])
def test_no_code_and_no_option_comes_in_as_a_setting(tmp_path: Path, setting: str) -> None:
    (text,) = ask(tmp_path, ("queue_run", {"algo": "ppo", "settings": [setting]}), allow_run=True)
    (other,) = ask(tmp_path, ("queue_run", {"algo": "evil.module:Algo", "settings": []}), allow_run=True)
    assert other.startswith("error: ")
    assert text.startswith("error: ")
    assert not list(tmp_path.iterdir())
