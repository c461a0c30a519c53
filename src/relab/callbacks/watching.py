"""How is a run recorded and looked at while it is trained elsewhere? The rules are asked every so many steps.

Looking waits where it would take more than SHARE of the training's time; whatever goes wrong here is told, and training
goes on.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from relab.base.blame import reason
from relab.base.numbers import is_finite
from relab.base.places import cut_short, printable
from relab.formats.read import cleanrl, find, settings_files
from relab.formats.read.source import FOREIGN, Names, settings
from relab.health.examine import examine
from relab.health.render import tried
from relab.health.rule import Finding, all_rules
from relab.logger import Logger, _masked, ending, known_settings

SHARE = 0.01  # of the time since the start that looking may take
TOGETHER_S = 2.0  # rows that come faster are written together: on a busy disk each write waits
KNOWN = ("run-incomplete",)  # how it ended is no news to who ended it
TELLING = ("warning", "error")  # an info is for who looks, not for who waits
UNCLOSED = "the program ended before training was said to be at its end: by close(), its with block or learn()"
Tell = Callable[[str, Finding], None]


def tell_stderr(text: str, finding: Finding) -> None:
    say(text)


def say(text: str) -> None:
    """On stderr, where there is one: a full disk, a closed pipe or no stderr at all ends no training."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)


class Watch:
    """A run folder that is looked at while it is written; a context manager that notes how the run ended."""

    def __init__(
        self,
        folder: str,
        config: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        env: str | None = None,
        algo: str | None = None,
        every: int = 10_000,
        tell: Tell = tell_stderr,
        names: Names | None = None,
        keys: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
    ):
        if every < 1:
            raise ValueError(f"`every` is a number of steps and must be at least 1, but is {every}")
        self.started = time.perf_counter()
        self.every, self.tell, self.names = every, tell, dict(cleanrl.NAMES if names is None else names)
        flat = {key: value for key, value in (config or {}).items() if not settings_files.is_place(key)}
        flat |= {key: value for key, value in (("seed", seed), ("env", env), ("algo", algo)) if value is not None}
        self.record = Record(folder, flat, known_settings(flat) if keys is None else keys, spec or {})
        self.seconds = 0.0  # spent on writing and looking
        self.looking = 0.0  # of these on looking
        self.looks = 0
        self.blind = False  # a look has failed, and would again
        self.faults: set[str] = set()  # what went wrong, each told once
        self.warned: list[Finding] = []
        self._looked = 0  # step of the last look
        self._cost = 0.0  # of the last look
        self._closed: float | None = None  # when it was
        self._later: threading.Timer | None = None  # writes rows that wait, should no other come
        self._turn = threading.RLock()  # one thread looks at a time
        self._old_error = getattr(sys, "last_value", None)  # which ended nothing of this run
        atexit.register(self._left)
        self._ready()

    @property
    def folder(self) -> Path:
        return Path(self.record.folder)

    @property
    def share(self) -> float:
        """How much of the time since the start went into writing and looking."""
        return self.seconds / max(time.perf_counter() - self.started, 1e-9)

    def log(self, step: int, **metrics: Any) -> None:
        """One row at a step, under the tool's names or relab's; then a look, if it is time for one."""
        self.row(step, metrics)

    def row(self, step: int, metrics: Mapping[str, Any]) -> None:
        """The same of a mapping, whatever its names."""
        begun = time.perf_counter()
        with self.unharmed("a row was not kept"):
            self.record.row(step, dict(self._translated(name, value) for name, value in metrics.items()))
            self._write_later()
        self.seconds += time.perf_counter() - begun
        if self.record.last - self._looked >= self.every and self._may_look():
            self.look(self.record.last)

    def _write_later(self) -> None:
        """Rows that wait are written in time also where training is silent from here on, or is killed."""
        if self.record.waiting and self._later is None:
            self._later = threading.Timer(TOGETHER_S, self._write_now)
            self._later.daemon = True
            with suppress(RuntimeError):  # no thread begins while a program ends: close() writes them
                self._later.start()

    def _write_now(self) -> None:
        self._later = None
        with self.unharmed("a row was not kept"):
            self.record.flush()

    def evaluation(self, step: int, returns: Iterable[float], lengths: Iterable[int] | None = None) -> None:
        """The episodes of an evaluation with deterministic actions."""
        begun = time.perf_counter()
        with self.unharmed("an evaluation was not kept"):
            self.record.evaluation(step, returns, lengths)
        self.seconds += time.perf_counter() - begun

    def look(self, step: int) -> list[Finding]:
        """Ask every rule about the rows so far; what is new is told, and returned."""
        with self._turn:
            begun, new = time.perf_counter(), self._new()
            self.warned += new
            for finding in new:
                with self.unharmed("a warning was not kept"):
                    self.record.event("warning", step, slug=finding.slug, message=finding.message)
            self._looked, self._cost, self.looks = step, time.perf_counter() - begun, self.looks + 1
            self.seconds, self.looking = self.seconds + self._cost, self.looking + self._cost
        for finding in new:
            self.tell(warning(finding, step), finding)  # which may stop the training: that is its user's choice
        return new

    def _new(self) -> list[Finding]:
        """What rules find that was not told yet; none where they cannot be asked."""
        known, self.blind, new = {finding.slug for finding in self.warned}, True, list[Finding]()
        with self.unharmed("relab cannot look at this run while it trains"):
            self.record.flush()
            fired = [f for f in examine(self.folder).main if f.severity in TELLING and f.slug not in (*known, *KNOWN)]
            causes = known | {f.slug for f in fired}
            new = [f for f in fired if f.explained_by not in causes]  # a symptom of what is told says nothing more
            self.blind = False
        return new

    @contextmanager
    def unharmed(self, what: str) -> Iterator[None]:
        """Inside, nothing that goes wrong reaches the training: it is told, once for each kind."""
        try:
            yield
        except Exception as error:  # whatever it is: hours of training are worth more than a row
            if what not in self.faults:
                self.faults.add(what)
                why = reason(error) if self.blind else f"{type(error).__name__}: {error}"
                say(printable(f"relab: {what} ({why}); training goes on"))

    def close(self, status: str = "finished", why: str = "") -> None:
        """A last look, which costs training nothing, and the end of the record."""
        if self.record.meta["status"] != "running" or not self.record.own:
            return
        atexit.unregister(self._left)
        if self._later is not None:
            self._later.cancel()
            self._later = None
        with self.unharmed("the end of the run was not kept"):
            self.record.close(status, why)  # first: an unfinished run is judged with more patience
        try:
            self.look(self.record.last)
        finally:
            with self.unharmed("the end of the run was not kept"):
                self.record.release()
            self._closed = time.perf_counter()

    def stopped(self, reason: str, step: int) -> None:
        """Why it ends before its planned steps."""
        with self.unharmed("the end of the run was not kept"):
            self.record.meta["stopped"] = reason  # for listings, which read no events
            self.record.event("stop", step, reason=reason)

    def go_on(self, total: int) -> None:
        """Once more, after its end or after what kept it from one."""
        self._old_error = getattr(sys, "last_value", None)
        if self._closed is not None:
            self.started, self._closed = self.started + time.perf_counter() - self._closed, None
            atexit.register(self._left)
        with self.unharmed("the record cannot be written"):
            self.record.go_on(total)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: Any, error: Any = None, *_: Any) -> None:
        self.close(*ending(kind, error))

    def _left(self) -> None:
        """The program ends and nobody has closed the record: what ended it is known of an uncaught error alone."""
        error = getattr(sys, "last_value", None)
        if error is None or error is self._old_error or hasattr(sys, "ps1"):  # at a prompt: of any line before
            return self.close() if self.record.whole else self.close("interrupted", UNCLOSED)
        return self.close(*ending(type(error), error))

    def _ready(self) -> None:
        """What a look imports is imported before the first step, so that none waits for it."""
        with self.unharmed("the record cannot be read"):
            all_rules()
            for source in find.find(self.folder):
                find.read(source)
        self.started = time.perf_counter()

    def _may_look(self) -> bool:
        """Whether a look now and the last one, as dear as the one before, stay within SHARE of the time.

        Where writing alone takes so much, looking still has half of it: a record that nobody looks at warns of nothing.
        """
        so_far, most = time.perf_counter() - self.started, 2 * self._cost
        within = self.seconds + most <= SHARE * so_far or self.looking + most <= SHARE / 2 * so_far
        return within and not self.blind

    def _translated(self, name: str, value: Any) -> tuple[str, Any]:
        ours, factor = self.names.get(name, (name, 1.0))
        return ours.removeprefix(FOREIGN), value if factor == 1.0 else factor * float(value)


def warning(finding: Finding, step: int) -> str:
    """relab at step 20,480: kl-too-high since 2,048: ...; try: lr 0.1 → 0.003 (relab explain kl-too-high)"""
    since = f" since {finding.onset:,}" if finding.onset is not None else ""
    tries = f"; try: {'; '.join(tried(one) for one in finding.suggest[:2])}" if finding.suggest else ""
    return (f"relab at step {step:,}: {finding.severity}: {finding.slug}{since}: {finding.message}{tries}"
            f" (relab explain {finding.slug})")  # fmt: skip


class Record(Logger):
    """The logger, with settings under relab's names, and the step it has come to."""

    def __init__(self, folder: str, flat: Mapping[str, Any], keys: Mapping[str, str], spec: Mapping[str, Any]):
        self.last, self.settings = 0, plain(settings(flat, keys))
        self._process, self._lock = os.getpid(), threading.RLock()
        self._lines: list[bytes] = []
        self._written = 0.0  # when rows were last written
        env, algo = (self.settings.get(part, {}).get("name") for part in ("env", "algo"))
        super().__init__(folder, None, self.settings.get("seed"), env, algo)
        self._replace("config.yaml", json.dumps(_masked(self.settings), indent=1))
        self.meta["spec"].update(spec)
        self.meta["keys"] = {key: keys[key] for key in flat if key in keys}
        self._write_meta()

    def row(self, step: int, metrics: Mapping[str, Any]) -> None:
        with self._alone():
            self.last = max(self.last, int(step))
            super().row(step, metrics)

    @property
    def own(self) -> bool:
        """Whether this is the process that began it, and none that was forked from it and has its rows as well."""
        return self._process == os.getpid()

    @property
    def whole(self) -> bool:
        """Whether it took the steps that were planned; False where nobody says how many these are."""
        planned = self.settings.get("total_steps")
        return is_finite(planned) and not cut_short(self.last, planned)

    @property
    def waiting(self) -> bool:
        return bool(self._lines)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Inside, no other thread writes; a fork does not either, and may have inherited a lock that nobody opens."""
        if not self.own:
            raise OSError(f"only the process that began {self.folder} writes it; this one was forked from that")
        with self._lock:
            yield

    def _put(self, name: str, line: bytes) -> None:
        with self._alone():
            if name != "metrics.jsonl":
                return super()._put(name, line)
            self._lines.append(line)
            if time.monotonic() - self._written >= TOGETHER_S or self.meta["status"] != "running":
                self.flush()

    def flush(self) -> None:
        """Rows that wait to be written together."""
        with self._alone():
            lines, self._lines, self._written = self._lines, [], time.monotonic()
            if lines:
                super()._put("metrics.jsonl", b"".join(lines))

    def close(self, status: str = "finished", why: str = "") -> None:
        with self._alone():
            try:
                self.flush()
            finally:
                super().close(status, why)

    def go_on(self, total: int) -> None:
        """More steps of a run that had ended."""
        with self._alone():
            self.meta["status"] = "running"
            self.meta.pop("stopped", None)
            self.settings["total_steps"] = total
            self._replace("config.yaml", json.dumps(_masked(self.settings), indent=1))
            self.event("resume", self.last)
            self._write_meta()

    def release(self) -> None:
        """Files that were opened again after the end."""
        with self._alone():
            for file in self._files.values():
                file.close()
            self._files = {}


def plain(data: Any) -> Any:
    """As JSON has it; whatever else a script keeps among its settings becomes text."""
    return json.loads(json.dumps(data, default=str))
