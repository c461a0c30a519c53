"""Where does the secret behind a name begin, and where does it end? In a command line, JSON, YAML, a patch, prose.

No pattern may look at one character more than a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from relab.base.secret_names import MAYBE, NAME, STRONG, WEAK, kind
from relab.base.secret_shapes import MASK

# ---- A name, and what joins it to its value

_PHRASE = r"[Mm]ots?[ _-][Dd]e[ _-][Pp]asse"
_TYPE = (  # password: str = ...
    r":[ \t]?(?:(?:[a-z]{1,10}\.)?(?:Optional|Union|Annotated|SecretStr|[Ll]ist)(?:\[[\w., |]{0,60}\])?"
    r"|str|bytes|int|Any)"
    r"(?:[ ]?\|[ ]?\w{1,20}){0,3}[ \t]?="
)
_AT = re.compile(
    rf"(?<![\w.\-])(-{{0,3}})({_PHRASE}|{NAME})"
    rf"(?:\\{{0,3}}[\"']?\]?[ \t]{{0,40}}(?:{_TYPE}|==?|:=|=>|:)[ \t]{{0,40}}"
    r"|[ \t]{0,40}\\?\r?\n[ \t]{0,40}(?:-[ \t]{1,8})?|[ \t]{1,40}"  # the next line, or a blank
    r"|\\{0,3}[\"'],\s{0,40}(?=\\{0,3}[\"']))"
)

# ---- What stands behind it

BLANKS = " \t\r\n\\-"  # that part a flag from its value; a dash begins an item of YAML
_END = r"(?=[\s,;&\"'`)\]}|]|\\n|\\\"|$)"
_NOTHING = re.compile(_END)
_SAID = re.compile(  # a truth, a type, the name of a variable, a place to fill in
    r"(?:(?i:none|\(none\)|null|nil|true|false|yes|no|str|string|int|float|bool|bytes|any|[|>][+-]?)"
    rf"|\$\{{?[A-Z][A-Z0-9_]*\}}?|\$?\{{[\w.]+\}}|<[\w/|-]+>|\.\.\.){_END}"
)
_NUMBER = re.compile(rf"[-+]?[\d.,_]*\d(?:[eE][-+]?\d+)?[kKmMbB]?{_END}|\[[\d.,\s]*\]")
PLACES = ("pwd", "credentials", "credential")  # often the path of a file, which is none
_PLACE = re.compile(r"[.~]{0,2}/")
_CALL = re.compile(r"[A-Za-z_][A-Za-z_.]{0,80}[(\[]")
_OPEN = re.compile(r"\\{0,3}[\"']")
_RANDOM = re.compile(r"[A-Za-z0-9]{16,200}")
_QUOTED = r"(?:\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\\\n]*(?:\\.[^'\\\n]*)*')"
_BARE = r"[^\s,;&\"'`\])}]+"
_VALUE = re.compile(
    r"\\{1,3}\"[^\"\\\n]*\\{1,3}\""
    rf"|{_QUOTED}+(?:{_BARE})?"
    r"|[\"'][^\n]*"  # never closed
    r"|\[[^\]\[{}]*\]"
    rf"|(?:(?i:bearer|basic|token|digest)[ \t]{{1,8}})?{_BARE}(?:,(?![\w.\-]{{1,60}}[\"']?[ \t]?[=:]){_BARE})*"
    r"|\S"
)
_MORE = re.compile(rf"(?:,[ \t]?(?![\"']-){_QUOTED}(?![ \t]{{0,8}}[:=]))+")  # "a", "b" behind a name in the plural
_WORDS = re.compile(rf"(?:[ \t]{{1,8}}(?!-)(?:{_QUOTED}|{_BARE}))+")  # --keys a b c
_BLOCK = re.compile(r"(?:\n[ \t+]{0,40}-[ \t][^\n]*)+")  # a list of YAML
_SHELL = r"(?:\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\n]*')"  # where a stroke in single quotes means itself
_ARGUMENT = re.compile(rf"(?:{_SHELL}|[^\s;&\"'`\])}}]+)+")  # of a flag: commas do not end it
_CLOSE = {q: re.compile(rf"[^{q}\n]*{q}{_SHELL}*") for q in "'\""}  # of a word that is quoted as a whole


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the secrets behind names begin and end."""
    at = 0
    while match := _AT.search(text, at):
        end = _end_of_value(text, match)
        at = end or match.end(2)
        if end:
            yield match.end(), end


def _end_of_value(text: str, match: re.Match[str]) -> int:
    """Where the secret behind a name ends; 0 where there is none."""
    dashes, name, at = match[1], match[2].rstrip(".-"), match.end()
    sure, between = kind(name, bool(dashes)), text[match.end(2) : at]
    if not sure or not _joins(dashes, name, between):
        return 0
    if "\n" in between and "," not in between and sure == WEAK:  # a new line may be about something else
        sure = MAYBE
    many = name.lower().rstrip("0123456789_").endswith("s")
    if many and between.rstrip().endswith(":") and sure != MAYBE and (block := _BLOCK.match(text, at)):
        return block.end() if text[at : block.end()].strip(" \t\n+-*") else 0
    quote = text[match.start() - 1 : match.start()]
    within = quote in _CLOSE and "=" in between and not set(between) & set(_CLOSE)
    whole = _CLOSE[quote].match(text, at) if within else None
    if (whole and whole[0] == quote) or _is_plain(text, at, name, sure, dashes, between, whole is not None):
        return 0
    if whole:  # '--password=a b'
        return whole.end() - whole[0].endswith(quote)
    return _further(text, at, many, "," not in between and dashes != "", not between.strip(BLANKS))


def _joins(dashes: str, name: str, between: str) -> bool:
    """A blank joins a flag and its value, a comma between quotes also a variable and its value; `pass:` is prose."""
    if not between.strip(BLANKS):
        return bool(dashes)
    if "," in between:
        return bool(dashes) or (name.isupper() and "_" in name)
    return bool(dashes) or name.lower() not in ("pass", "auth", "bearer", "pw") or any(c in between for c in "=\"'")


def _is_plain(text: str, at: int, name: str, sure: str, dashes: str, between: str, whole: bool = False) -> bool:
    """Whether no secret can stand here: nothing, another flag, a number, the call of a function, a path.

    `whole`: the name is quoted together with its value, which ends with the quote alone.
    """
    opened = None if whole else _OPEN.match(text, at)
    inner, closes = opened.end() if opened else at, whole or opened is not None
    if _fits(_SAID, text, inner, closes) or text.startswith(MASK, inner):
        return True
    empty = text[at : at + 2] in ("''", '""') and text[at + 2 : at + 3] not in _CLOSE
    if empty or (not closes and _NOTHING.match(text, at)):
        return True
    if dashes and not between.strip(BLANKS) and text.startswith("-", at):
        return True
    if not dashes and not closes and _CALL.match(text, at):
        return True
    if name.lower().endswith(PLACES) and _PLACE.match(text, inner):
        return True
    if sure != STRONG and _fits(_NUMBER, text, inner, closes):
        return True
    return sure == MAYBE and not looks_random(text, inner)


def _fits(pattern: re.Pattern[str], text: str, at: int, closes: bool) -> bool:
    """Whether it is the whole value; within quotes that is up to the quote."""
    match = pattern.match(text, at)
    return match is not None and (not closes or text[match.end() : match.end() + 1] in ("", "'", '"', "\\"))


def looks_random(text: str, at: int) -> bool:
    match = _RANDOM.match(text, at)
    digits = sum(c.isdigit() for c in match[0]) if match else 0
    return match is not None and 2 <= digits <= len(match[0]) - 2


def _further(text: str, at: int, many: bool, flag: bool, blank: bool) -> int:
    """The end of a value, and of the others in its list where the name is a plural."""
    value = (_ARGUMENT.match(text, at) if flag else None) or _VALUE.match(text, at)
    if value is None:
        return 0
    more = _MORE.match(text, value.end()) or (_WORDS.match(text, value.end()) if blank else None) if many else None
    return more.end() if more else value.end()


def is_plain_whole(value: str, name: str, sure: str) -> bool:
    """Whether a value that stands alone cannot be a secret, whatever it looks like."""
    match = _SAID.match(value) or (_NUMBER.match(value) if sure != STRONG else None)
    if not value or (match and match.end() == len(value)):
        return True
    return bool(name.lower().endswith(PLACES) and _PLACE.match(value))


def is_call(text: str) -> bool:
    """Whether it begins with the call of a function, or with a list's name and its bracket."""
    return _CALL.match(text) is not None
