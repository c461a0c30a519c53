"""What becomes of text that the terminal cannot take? Stand-ins for characters that it does not know or that would
steer it; and a listener that is gone ends a command that only reads, but never one that trains.

The command line puts `Stream`s in the place of sys.stdout and sys.stderr; every print goes through them. Standard
output can be closed (`>&-`), full (`> /dev/full`, a full disk), or nobody reads it any more (`| head`).
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO

TEXT, JSON = "relab-text", "relab-json"  # error handlers of codecs
STAND_INS = {
    "±": "+-", "…": "...", "→": "->", "←": "<-", "–": "-", "—": "-", "−": "-", "×": "x", "·": ".", "∙": "*", "•": "*",
    "●": "o", "○": ".", "²": "^2", "³": "^3", "⁴": "^4", "⁻": "^-", "₀": "_0", "₁": "_1", "≥": ">=", "≤": "<=",
    "≈": "~", "≠": "!=", "√": "sqrt", "⁄": "/", "✓": "ok", "✗": "no", "‘": "'", "’": "'", "“": '"', "”": '"',
    "█": "#", "▓": "#", "▒": "+", "░": ".", "│": "|", "┃": "|", "─": "-", "━": "-", "µ": "mu",
    "、": ",", "。": ".", "「": '"', "」": '"', "『": '"', "』": '"', "《": '"', "》": '"', "【": "[", "】": "]",
}  # fmt: skip
STAND_INS |= dict(zip("▁▂▃▄▅▆▇", "_.,-=+*"))  # a curve drawn in blocks keeps its shape
COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
STEERING = re.compile(  # control characters, line breaks that are none, marks that turn or hide text
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_listener: Stream | None = None
_own = False  # see as_is
CLOSED, FULL = (errno.EBADF,), (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutputError(OSError):
    """Standard output takes nothing any more; the message says why."""


class UnreadError(OutputError):
    """Whoever read standard output has stopped, as `| head` does: no error of a command that only prints."""


# ---- Characters


def stand_in(char: str) -> str:
    """Readable ASCII for one character.

    >>> "".join(map(stand_in, "5 ± 1 → σ², café ┏█░"))
    '5 +- 1 -> sigma^2, cafe +#.'
    """
    if char in STAND_INS or char.isascii():
        return STAND_INS.get(char, char)
    name = unicodedata.name(char, "")
    if name.startswith("GREEK") and "LETTER" in name:
        word = name.split(" WITH ")[0].rpartition(" ")[2].lower()
        return word.capitalize() if "CAPITAL" in name else word
    if name.startswith("BOX DRAWINGS"):
        return "+"
    plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
    return plain if plain.isprintable() and plain else "?"


def escape(char: str) -> str:
    r"""The same character as JSON writes it in ASCII, e.g. \u00b1: programs read it back."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def harmless(text: str, as_json: bool = False) -> str:
    r"""Text that may quote a stranger's log, without what steers a terminal; JSON keeps its value.

    >>> harmless("a\x1b[31mb\u202e\x9bc"), harmless('"\u202e"', as_json=True)
    ('ab??c', '"\\u202e"')
    """
    if as_json:
        return STEERING.sub(lambda match: escape(match[0]), text)
    return STEERING.sub("?", COLOUR.sub("", text) if "\x1b" in text else text)


def _handler(replace: Any) -> Any:
    def handle(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        return "".join(map(replace, error.object[error.start : error.end])), error.end

    return handle


codecs.register_error(TEXT, _handler(stand_in))
codecs.register_error(JSON, _handler(escape))


# ---- Streams


class Stream:
    """A text stream whose errors are named; where it `goes_on`, text that nobody can read is dropped instead."""

    def __init__(self, inner: TextIO, errors: str, goes_on: bool, quiet: bool = False) -> None:
        self.inner, self.goes_on, self.quiet, self.lost = inner, goes_on, quiet, ""
        self.as_json = errors == JSON
        with contextlib.suppress(AttributeError, OSError, ValueError):  # a stream of somebody else's making
            inner.reconfigure(errors=errors)  # type: ignore[attr-defined]

    def write(self, text: str) -> int:
        with self.naming_errors():
            self.inner.write(text if _own else harmless(text, self.as_json))
        return len(text)

    def flush(self) -> None:
        with self.naming_errors():
            self.inner.flush()

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextlib.contextmanager
    def naming_errors(self) -> Iterator[None]:
        """What the stream's own errors mean."""
        try:
            yield
        except (OSError, ValueError) as error:  # ValueError: closed by this very program
            first, self.lost = not self.lost, self.lost or reason(error)
            silence(self.inner)
            if not self.goes_on:
                kind = UnreadError if isinstance(error, BrokenPipeError) else OutputError
                raise kind(f"{self.lost}, and the text for it is lost") from None
            if first and not self.quiet:
                note(f"{self.lost}: nothing more is shown, the work goes on")


def reason(error: Exception) -> str:
    """Why standard output takes no text.

    >>> reason(BrokenPipeError(errno.EPIPE, "")), reason(OSError(errno.ENOSPC, ""))
    ('nobody reads standard output any more', 'standard output has no room left')
    """
    number = getattr(error, "errno", None)
    if isinstance(error, BrokenPipeError):
        return "nobody reads standard output any more"
    if number in FULL:
        return "standard output has no room left"
    closed = number in CLOSED or isinstance(error, ValueError)
    return "standard output is closed" if closed else f"standard output cannot be written ({error})"


def silence(stream: TextIO) -> None:
    """Let the stream lead nowhere: what it still holds would fail again when the interpreter ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # streams without a file have nothing to lead away
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def note(text: str) -> None:
    """One line on standard error, where there is one."""
    with contextlib.suppress(OSError, ValueError):
        print(f"relab: {text}", file=sys.stderr, flush=True)


# ---- The process


@contextlib.contextmanager
def streams(as_json: bool = False) -> Iterator[None]:
    """Inside, standard output and standard error are `Stream`s; as_json: what cannot be encoded is escaped."""
    _fill_gaps()
    out, err = sys.stdout, sys.stderr
    sys.stdout = Stream(out, JSON if as_json else TEXT, goes_on=False)
    sys.stderr = Stream(err, TEXT, goes_on=True, quiet=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


@contextlib.contextmanager
def as_is() -> Iterator[None]:
    """Inside, what is printed is relab's own, or the user's own program's, and may steer the terminal."""
    global _own
    before, _own = _own, True
    try:
        yield
    finally:
        _own = before


def keep_going() -> None:
    """From here on there is work that must not end because nobody can read about it."""
    if isinstance(sys.stdout, Stream):
        sys.stdout.goes_on = True


def listener() -> Stream:
    """Standard output for such work, also where it was not started by the command line."""
    global _listener
    if isinstance(sys.stdout, Stream):
        keep_going()
        return sys.stdout
    if _listener is None or _listener.inner is not sys.stdout:
        _fill_gaps()
        _listener = Stream(sys.stdout, TEXT, goes_on=True)
    return _listener


def lost() -> str:
    """Why standard output shows nothing any more; empty while it does."""
    return listener().lost


def _fill_gaps() -> None:
    """Streams that the caller closed: else the first file that is opened, of a run perhaps, would take their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY  # writing to standard output is an error
            number = os.open(os.devnull, flags)  # the lowest that is free, which is the stream's own
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for the process
