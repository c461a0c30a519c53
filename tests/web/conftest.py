"""What do the tests of the dashboard share? Small records, and an application that is asked without a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import made_up
from relab.web.app import made
from relab.web.bench import Bench

TOKEN = "a-token-for-tests"
VALUES = {"wide": (400.0, 420.0, 440.0, 460.0, 480.0), "narrow": (40.0, 90.0, 60.0, 50.0, 70.0)}


class Inline:
    """A desk in this process: what it is asked it answers at once."""

    def ask(self, question: Callable[..., Any], *about: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        try:
            answer.set_result(question(*about))
        except Exception as error:
            answer.set_exception(error)
        return answer

    def close(self) -> None:
        pass


class Served:
    """An application, its bench, and a client on the same machine."""

    def __init__(self, root: Path, **words: Any):
        self.root = root
        self.app = made(root, TOKEN, **words)
        self.bench: Bench = self.app.app.state.bench  # type: ignore[attr-defined]
        self.bench.desk = Inline()  # type: ignore[assignment]
        self.bench.shelf.refresh()
        self.client = TestClient(self.app, base_url="http://127.0.0.1", raise_server_exceptions=False)

    def get(self, address: str, **headers: str) -> Any:
        return self.client.get(address, headers=headers, follow_redirects=False)

    def act(self, verb: str, body: dict[str, Any], **headers: str) -> Any:
        return self.client.post(f"/act/{verb}", json=body, headers={"X-Relab-Token": TOKEN, **headers})

    def key(self, label: str) -> str:
        return next(group.key for group in self.bench.shelf.every() if group.label == label)


@pytest.fixture
def shelf_of(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Serve a folder; all that was started ends with the test."""
    every: list[Served] = []

    def serve(root: Path = tmp_path, **words: Any) -> Served:
        every.append(Served(root, **words))
        return every[-1]

    yield serve
    for each in every:
        each.client.close()
        each.bench.close()


@pytest.fixture
def served(tmp_path: Path, shelf_of: Callable[..., Served]) -> Served:
    """Two configs of five seeds each."""
    two_configs(tmp_path)
    return shelf_of()


def two_configs(root: Path) -> None:
    for name, values in VALUES.items():
        for seed, value in enumerate(values):
            lr = "0.001" if name == "wide" else "0.1"
            made_up.run(root / "runs" / f"{name}-s{seed}", [value - 10, value, value + 10], seed=seed, algo__lr=lr)
