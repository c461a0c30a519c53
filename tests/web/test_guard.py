"""Is every request of another site turned away, and does every answer say what it may do?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relab.web import guard
from web.conftest import TOKEN, Served

REBOUND = ("evil.example", "evil.example:8450", "127.0.0.1.evil.example", "localhost.evil.example", "169.254.169.254",
           "user@127.0.0.1", "127.0.0.1@evil.example", "[::ffff:8.8.8.8]", "", "0.0.0.0", "2130706433")  # fmt: skip


@pytest.mark.parametrize("host", REBOUND)
def test_a_name_that_points_here_is_not_answered(served: Served, host: str) -> None:
    for address in ("/runs", "/api/curve?r=x", "/live", "/static/style.css"):
        assert served.get(address, Host=host).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:9999", "[::1]:8450", "LOCALHOST"])
def test_this_machine_is_answered_also_through_a_tunnel(served: Served, host: str) -> None:
    assert served.get("/runs", Host=host).status_code == 200


FORGED = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://[::1"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"X-Relab-Token": ""},
    {"X-Relab-Token": TOKEN + "x"},
    {"X-Relab-Token": TOKEN[:-1]},
)


@pytest.mark.parametrize("headers", FORGED)
def test_a_change_of_another_site_is_refused(served: Served, headers: dict[str, str]) -> None:
    answer = served.act("star", {"runs": ["runs/wide-s0"], "on": True}, **headers)
    assert answer.status_code == 403
    assert not (served.root / "runs" / "wide-s0" / "labels.json").exists()


def test_a_form_of_another_site_cannot_send_the_token(served: Served) -> None:
    """A form can post without a preflight, but sets no header."""
    answer = served.client.post("/act/archive", data={"runs": "runs/wide-s0"})
    assert answer.status_code == 403
    assert (served.root / "runs" / "wide-s0").is_dir()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_not_answered(served: Served, method: str) -> None:
    answer = served.client.request(method, "/act/star", headers={"X-Relab-Token": TOKEN})
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


def test_nothing_is_changed_by_get(served: Served) -> None:
    for verb in ("star", "archive", "undo", "tag", "note"):
        assert served.get(f"/act/{verb}?runs=runs/wide-s0&token={TOKEN}").status_code in (404, 405)


@pytest.mark.parametrize("address", ["/runs", "/nothing", "/api/curve", "/static/app.js", "/run/nobody"])
def test_every_answer_says_what_it_may_do(served: Served, address: str) -> None:
    answer = served.get(address)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_pages_hold_no_script_and_no_style_of_their_own(served: Served) -> None:
    pages = ["/runs", f"/group/{served.key('wide')}", "/run/runs/wide-s0"]
    for text in (served.get(page).text.lower() for page in pages):
        assert "<script>" not in text
        assert " style=" not in text
        assert " onclick" not in text
        assert "<style" not in text


def test_sizes_are_limited(served: Served) -> None:
    assert served.get("/runs?q=" + "x" * 20_000).status_code == 414
    body = {"runs": ["runs/wide-s0"], "text": "x" * 70_000}
    assert served.act("note", body).status_code == 413


def test_a_body_without_a_length_is_cut(served: Served) -> None:
    def pieces() -> Any:
        for _ in range(40):
            yield b"x" * 4096

    answer = served.client.post("/act/note", content=pieces(), headers={"X-Relab-Token": TOKEN})
    assert answer.status_code in (400, 413)


# ---- Open to others


@pytest.fixture
def public(served: Served, shelf_of: Callable[..., Served]) -> Served:
    return shelf_of(served.root, host="0.0.0.0", port=8450)


def test_another_address_than_loopback_needs_the_token_for_everything(public: Served) -> None:
    for address in ("/runs", "/api/alive", "/static/app.js", "/live", "/runs?token=wrong", "/?token="):
        assert public.get(address, Host="10.0.0.7:8450").status_code == 401


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_do_not_see(public: Served) -> None:
    answer = public.get(f"/runs?token={TOKEN}", Host="10.0.0.7:8450")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    public.client.cookies.clear()
    assert public.get("/runs", Host="10.0.0.7:8450", Cookie=f"relab={TOKEN}").status_code == 200


def test_a_name_is_not_answered_there_unless_it_was_listed(served: Served, shelf_of: Callable[..., Served]) -> None:
    unlisted, listed = (
        shelf_of(served.root, host="0.0.0.0", port=8450),
        shelf_of(served.root, host="0.0.0.0", port=8450, names=("lab.example",)),
    )
    cookie = {"Cookie": f"relab={TOKEN}"}
    assert unlisted.get("/runs", Host="evil.example:8450", **cookie).status_code == 421
    assert listed.get("/runs", Host="lab.example:8450", **cookie).status_code == 200
    assert listed.get("/runs", Host="evil.example:8450", **cookie).status_code == 421


def test_which_addresses_are_this_machine_alone() -> None:
    assert [guard.is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [True] * 4
    assert [guard.is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example")] == [False] * 4
