"""Where does the secret behind a name begin, and where does it end? In a command line, JSON, YAML, a patch, prose.

No pattern may look at one character more than a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from relab.base.secret_names import LOOSE, MAYBE, NAME, NO, STRONG, kind
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
    rf"(?:\\{{0,3}}[\"']?\]?[ \t]{{0,40}}(?:(?:{_TYPE}|==?|:=|=>)[ \t]{{0,40}}(?:\\?\r?\n[ \t+]{{0,40}}(?=[\"'*]))?"
    r"|:[ \t]{0,40}(?:\r?\n[ \t+]{1,40}(?=[\w\"']))?)"
    r"|[\"']?[ \t]{1,8}value[ \t]{0,4}=[ \t]{0,4}(?=[\"'])"  # <api_key value="..."/>
    r"|[ \t]{0,40}\\?\r?\n[ \t]{0,40}(?:-[ \t]{1,8})?|[ \t]{1,40}"  # the next line, or a blank
    r"|\\{0,3}[\"'],\s{0,40}(?=\\{0,3}[\"']))"
)

_SETS = re.compile(r"(?:\bsetenv|\bENV|\bset -g?x)[ \t]{1,4}\Z")  # before a name: a blank joins it to its value
_ELEMENT = re.compile(  # <password>...</password>
    rf"<({NAME})(?:[ \t][^<>]{{0,200}})?>\s{{0,40}}(?:<!\[CDATA\[)?([^<>]{{1,2000}}?)(?:\]\]>)?\s{{0,40}}</(?=\1\b)"
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
_TAG = re.compile(r"(?:!{1,2}|&)[\w:/.\-]{0,40}[ \t]{1,8}")  # of YAML: !!str, &anchor
_HEAD = re.compile(
    r"[|>][+\-\d]{0,2}[ \t]{0,8}(?:#[^\n]{0,200})?\r?\n(?:[ \t]{0,40}\r?\n){0,5}(?=([+\- ]?[ \t]{1,40}))"
)  # of a YAML text on lines of its own
_BODY = re.compile(r"([+\- ]?[ \t]{1,40})[^\n]*(?:\n(?:\1[^\n]*|[ \t]*(?=\n)))*")
_OPEN = re.compile(r"\\{0,3}[\"']")
_RANDOM = re.compile(r"[A-Za-z0-9]{16,200}")
_QUOTED = r"(?:\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\\\n]*(?:\\.[^'\\\n]*)*')"
_BARE = r"[^\s,;&\"'`\])}]+"
_VALUE = re.compile(
    rf"(?:{_TAG.pattern})?(?:"
    r"\\{1,3}\"[^\"\\\n]*\\{1,3}\""
    rf"|{_QUOTED}+(?:{_BARE})?"
    r"|[\"'][^\n]*"  # never closed
    r"|\[[^\]\[{}]*\]"
    rf"|\((?:{_QUOTED}|[^()\[\]{{}}\"'\n]|\n[ \t]{{0,40}}(?=[\"')])){{0,200}}\)?"  # auth=('user', '...')
    rf"|(?:(?i:bearer|basic|token|digest)[ \t]{{1,8}})?{_BARE}(?:,(?![\w.\-]{{1,60}}[\"']?[ \t]?[=:]){_BARE})*"
    r"|\S)"
)
_LETTERS = r"(?:[a-z]{1,3}|(?=[a-z]{0,14}[aeiouy])(?![a-z]{0,14}[b-df-hj-np-tv-xz]{6})[a-z]{4,14})"  # can be spoken
_IDENTIFIER = rf"{_LETTERS}(?:[_./\-]{_LETTERS}){{0,3}}"
_ITEM = rf"(?:{_IDENTIFIER}|\"{_IDENTIFIER}\"|'{_IDENTIFIER}'|\\{{1,3}}\"{_IDENTIFIER}\\{{1,3}}\")"
_ORDINARY = re.compile(rf"[\[(]?{_ITEM}(?:(?:,[ \t]?|[ \t]{{1,8}}){_ITEM})*[\])]?")  # reward; obs action reward
LONGEST_LIST = 1000  # characters that are looked at once more
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


def elements(text: str) -> Iterator[tuple[int, int]]:
    """Where the secrets within elements of XML begin and end, which bear the name."""
    for match in _ELEMENT.finditer(text):
        name, value = match[1].rstrip(".-"), match[2]
        sure = kind(name)
        plain = is_plain_whole(value, name, sure) or (sure == MAYBE and not looks_random(value, 0))
        if sure and not plain and value != MASK:
            yield match.span(2)


def _end_of_value(text: str, match: re.Match[str]) -> int:
    """Where the secret behind a name ends; 0 where there is none."""
    name, at, between = match[2].rstrip(".-"), match.end(), text[match.end(2) : match.end()]
    dashes = match[1] or ("-" if _SETS.search(text[max(0, match.start() - 12) : match.start()]) else "")
    sure = _joined(kind(name, bool(dashes)), dashes, name, between)
    if not sure:
        return 0
    if ":" in between and (head := _HEAD.match(text, at)):
        body = _BODY.match(text, head.end()) if sure != MAYBE or looks_random(text, head.end(1)) else None
        return body.end() if body else 0
    many = name.lower().rstrip("0123456789_").endswith("s")
    if many and between.rstrip().endswith(":") and sure != MAYBE and (block := _BLOCK.match(text, at)):
        return block.end() if text[at : block.end()].strip(" \t\n+-*") else 0
    quote = text[match.start() - 1 : match.start()]
    within = quote in _CLOSE and "=" in between and not set(between) & set(_CLOSE)
    whole = _CLOSE[quote].match(text, at) if within else None
    if (whole and whole[0] == quote) or _is_plain(text, at, name, sure, dashes, between, whole is not None):
        return 0
    flag, blank = "," not in between and dashes != "", not between.strip(BLANKS)
    end = whole.end() - whole[0].endswith(quote) if whole else _further(text, at, many, flag, blank)  # '--password=a b'
    words = sure == LOOSE and end - at <= LONGEST_LIST and _ORDINARY.fullmatch(text, at, end)
    return 0 if words else end


def _joined(sure: str, dashes: str, name: str, between: str) -> str:
    """How sure a name is of what stands behind it, by what joins them; a new line may be about something else.

    A blank joins a flag and its value, a comma between quotes also a variable and its value; `pass:` is prose.
    """
    if not between.strip(BLANKS):
        if dashes:
            return MAYBE if "\n" in between and sure != STRONG else sure
        return NO if "\n" in between or sure == MAYBE else sure and MAYBE  # wandb_api_key X
    if "," in between:
        return sure if dashes or (name.isupper() and "_" in name) else NO
    if not dashes and name.lower() in ("pass", "auth", "bearer", "pw") and not any(c in between for c in "=\"'"):
        return NO
    below = ":" in between and "\n" in between and between[0] == ":"
    return sure and MAYBE if below else sure


def _is_plain(text: str, at: int, name: str, sure: str, dashes: str, between: str, whole: bool = False) -> bool:
    """Whether no secret can stand here: nothing, another flag, a number, the call of a function, a path.

    `whole`: the name is quoted together with its value, which ends with the quote alone.
    """
    tag = _TAG.match(text, at) if ":" in between else None
    at = tag.end() if tag else at
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
    if sure == LOOSE and len(value) <= LONGEST_LIST and _ORDINARY.fullmatch(value):
        return True
    return bool(name.lower().endswith(PLACES) and _PLACE.match(value))


def is_call(text: str) -> bool:
    """Whether it begins with the call of a function, or with a list's name and its bracket."""
    return _CALL.match(text) is not None
