"""Who may ask, and what may an answer do in a browser? Every request passes here first, every answer last.

A page of another site can make a browser send requests to this machine. It is kept out by four checks: the Host that
was named must be this server (or another name was made to point here: DNS rebinding), the Origin of a request that
changes something must be this server's own page, such a request must carry the token that only its pages know, and what
is served may load nothing from elsewhere and run no script of a page's own text (Content-Security-Policy).
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self';"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
LONGEST_ADDRESS, LARGEST_BODY = 16_384, 65_536  # bytes
TOKEN_HEADER, COOKIE = "x-relab-token", "relab"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def new_token() -> str:
    return secrets.token_urlsafe(32)


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("lab.example")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, token: str, host: str, port: int, names: Iterable[str] = ()):
        self.app, self.token, self.open = app, token, is_loopback(host)
        self.hosts = {name.lower() for name in (*LOOPBACK, *names, *([] if host in ("0.0.0.0", "::") else [host]))}
        self.any_host = not self.open and host in ("0.0.0.0", "::") and not tuple(names)
        self.port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # nothing here speaks websockets
        refusal = self.refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, with_headers(send))
            return
        await self.app(scope, limited(receive), with_headers(send))

    def refusal(self, scope: Scope) -> Response | None:
        """Why this request is not answered; None where it is."""
        headers = Headers(scope=scope)
        if len(scope.get("query_string", b"")) + len(scope.get("raw_path") or b"") > LONGEST_ADDRESS:
            return PlainTextResponse("the address is too long", 414)
        if not self._is_here(headers.get("host", "")):
            return PlainTextResponse("this server is not known by that name; ask it by the address it printed", 421)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("only GET and POST are answered", 405)
        if not self.open and (entry := self._entry(scope, headers)) is not None:
            return entry
        return self._refused_change(headers) if scope["method"] == "POST" else None

    def _is_here(self, host: str) -> bool:
        """The name in the Host header is one of this server's; where it listens on every address, any address is, but
        a name is only one that was listed."""
        name, port = split_host(host)
        if port is not None and port != self.port:
            return name in self.hosts and self.open  # ssh -L and containers move the port
        return name in self.hosts or (self.any_host and _is_address(name))

    def _entry(self, scope: Scope, headers: Headers) -> Response | None:
        """On another address than loopback every request needs the token: once in the address, then in a cookie."""
        if self._has(cookie_of(headers)) or self._has(headers.get(TOKEN_HEADER, "")):
            return None
        sent = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if not self._has(sent):
            text = "this server is open to others and needs the token that it printed: add ?token=... to the address"
            return PlainTextResponse(text, 401)
        answer = RedirectResponse(scope["path"], 303)
        answer.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return answer

    def _refused_change(self, headers: Headers) -> Response | None:
        origin = headers.get("origin")
        if origin is not None and host_of(origin) != headers.get("host", "").lower():
            return PlainTextResponse("a page of another site may not change anything here", 403)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("a page of another site may not change anything here", 403)
        if not self._has(headers.get(TOKEN_HEADER, "")):
            return PlainTextResponse("a change needs the token of this start; load the page again", 403)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            return PlainTextResponse(f"no more than {LARGEST_BODY:,} bytes are read", 413)
        return None

    def _has(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


def cookie_of(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None else ""


def split_host(host: str) -> tuple[str, int | None]:
    """
    >>> split_host("localhost:8000"), split_host("[::1]:80"), split_host("evil.example"), split_host("a:b")
    (('localhost', 8000), ('::1', 80), ('evil.example', None), ('', None))
    """
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    return ("", None) if parts.username is not None or parts.path else (name.lower(), port)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def with_headers(send: Send) -> Send:
    """Every answer says what it may do."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sent


def limited(receive: Receive) -> Receive:
    """No more of a body than the limit, whatever its header says."""
    taken = 0

    async def received() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST_BODY:
            raise ValueError(f"a request holds more than {LARGEST_BODY:,} bytes")
        return message

    return received


def host_of(origin: str) -> str:
    """The host of an address; empty where it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
