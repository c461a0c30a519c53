"""How does another program hear of a finding? One POST of JSON to an address that the user gave; off by default.

Nothing of what comes back is read, no redirect is followed, and a receiver that is slow or gone holds nobody up.
"""

from __future__ import annotations

import json
import queue
import threading
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from relab.config.base import require

WAIT_S = 5.0
WAITING = 100  # messages that wait for a slow receiver; the oldest go first


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **words: Any) -> None:
        return None


class Webhook:
    """An address, and a thread that tells it."""

    def __init__(self, address: str):
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        require(good, f"`--webhook` must be an address that begins with http:// or https://, but got {address!r:.80}")
        self.address, self.problem = address, ""
        self._open = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({})).open
        self._messages: queue.Queue[bytes] = queue.Queue(WAITING)
        threading.Thread(target=self._tell, name="relab-webhook", daemon=True).start()

    def send(self, findings: list[dict[str, Any]]) -> None:
        if not findings:
            return
        body = json.dumps({"schema": 1, "from": "relab", "findings": findings}).encode()
        try:
            self._messages.put_nowait(body)
        except queue.Full:
            self._messages.get_nowait()
            self._messages.put_nowait(body)

    def _tell(self) -> None:
        while True:
            body = self._messages.get()
            request = urllib.request.Request(self.address, body, {"Content-Type": "application/json"}, method="POST")
            try:
                with self._open(request, timeout=WAIT_S):
                    self.problem = ""
            except Exception as error:  # a receiver that is gone is no reason to stop
                self.problem = type(error).__name__
