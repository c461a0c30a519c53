"""Which parts of a text or of plain data are secrets? The one place that knows; pages, records and exports ask here.

A secret is known by its name (`--wandb-key X`, `"api_key": "X"`, `密码: X`; letters that only look like ours and unseen
ones disguise no name) or by its shape (`ghp_...`, a JWT, a PEM block). What is masked becomes `***`; masking twice
changes nothing, and a text without secrets keeps every byte. Time grows with the length of the text alone: no pattern
may look at one character more than a bounded number of times.
relab/logger.py carries a short version for programs without relab; tests/base/test_masks.py holds both to one list.

>>> mask("train.py --wandb-key abc --max_tokens 512")
'train.py --wandb-key *** --max_tokens 512'
"""

from __future__ import annotations

import binascii
import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relab.base.documents import Document

MASK = "***"
SHORT = 200  # characters of a text whose masking is remembered
MACHINE = ("packages", "machine", "spec")  # of meta.json: what relab says itself, with names like google-auth
LONGEST_KEY = 200  # lines of a private key
STRONG, WEAK, MAYBE, NO = "strong", "weak", "maybe", ""  # how much a name says of its value

# ---- By shape

_ANY = r"[A-Za-z0-9_-]"
SHAPES = {  # what must stand in the text (asked first, because that is fast) -> the pattern
    (
        "-----BEGIN ",
    ): re.compile(  # a private key, in a patch too, where each line has a sign; cut off, as far as it goes
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
        r"(?:(?:[^-]|-(?!-)){0,20000}-{5,6}END [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----|[A-Za-z0-9+/=\\\s]*)"
    ),
    ("eyJ",): re.compile(rf"(?<!{_ANY})eyJ{_ANY}{{8,}}\.{_ANY}{{8,}}(?:\.{_ANY}*)?"),  # JSON web token
    ("AIza", "ya29.", "GOCSPX-"): re.compile(
        rf"(?<!{_ANY})(?:AIza{_ANY}{{30,}}|ya29\.[\w.-]{{20,}}|GOCSPX-{_ANY}{{20,}})"
    ),
    ("github_pat_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_"): re.compile(
        r"(?<![A-Za-z0-9])(?:github_pat_\w{20,}|gh[oprsu]_[A-Za-z0-9]{20,})"
    ),
    ("glpat", "gldt", "glrt", "nvapi", "xai", "pplx", "tvly", "pypi", "shpat", "lin_api"): re.compile(
        rf"(?<!{_ANY})(?:glpat|gldt|glrt|nvapi|xai|pplx|tvly|pypi|shpat|lin_api)[-_]{_ANY}{{16,}}"
    ),
    ("sk-",): re.compile(rf"(?<!{_ANY})sk-(?=[A-Za-z_-]{{0,40}}[0-9]){_ANY}{{16,}}"),  # OpenAI, Anthropic and others
    ("k_live_", "k_test_", "whsec_"): re.compile(  # Stripe
        r"(?<![A-Za-z0-9])(?:[prs]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,}"
    ),
    ("AKIA", "ASIA", "ABIA", "ACCA"): re.compile(  # Amazon
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    ),
    ("hf_", "r8_", "gsk_", "npm_"): re.compile(
        r"(?<![A-Za-z0-9])(?:hf|r8|gsk|npm)_(?=[a-z]{0,60}[A-Z0-9])[A-Za-z0-9]{20,}"
    ),
    ("dckr_pat_", "dop_v1_", "wandb_v1_", "api_org_"): re.compile(
        r"(?<![A-Za-z0-9])(?:dckr_pat|dop_v1|wandb_v1|api_org)_[\w-]{20,}"
    ),
    ("xox", "xapp-"): re.compile(r"(?<![A-Za-z0-9])(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),  # Slack
    ("SG.",): re.compile(r"(?<![A-Za-z0-9.])SG\.[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
    ("AGE-SECRET-KEY-",): re.compile(r"(?<![A-Za-z0-9])AGE-SECRET-KEY-[A-Z0-9-]{20,}"),
    (":AA",): re.compile(r"(?<![\w:])\d{8,10}:AA[\w-]{30,}"),  # Telegram
}
_BEGINS = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY")
_LINE = r"[^\n|;&]{0,200}?[ \t]"
_GAP = r"(?:[\"']?,?[ \t]{1,4}[\"']?)"  # between two words of a command, in a list too
_SPACE = r"(?:\s|\\n){1,20}"  # a line break may be written as \n
_TOOLS = r"(?:wandb|swanlab|comet|neptune|clearml|mlflow|trackio|modal|hf|huggingface-cli|kaggle)"
WITHIN = {  # the same in small letters; the first group stays
    ("hooks.slack.com/", "/api/webhooks/"): re.compile(
        r"(hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/)[\w/-]{8,}"
    ),
    ("key=", "sig=", "signature=", "x-amz-"): re.compile(
        r"(?i)([?&](?:key|sig|signature|x-amz-(?:signature|credential|security-token))=)[^\s&#\"'<>]+"
    ),
    ("bearer",): re.compile(r"(?i)(\bbearer[ \t])[ \t]{0,8}(?=[a-z_.+/=~-]{0,200}[0-9])[\w.+/=~-]{8,}"),
    ("authorization",): re.compile(  # Authorization: ApiKey KEY, whatever the scheme is called
        r"(?i)(\bauthorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?[\w-]{1,30}[ \t]{1,4})"
        r"(?=[^\s\"'0-9]{0,200}[0-9])[^\s\"']{8,}"
    ),
    ("login(",): re.compile(rf"(\b{_TOOLS}\.login\([ \t]{{0,4}}[\"'])[^\s\"']{{16,}}"),  # wandb.login("KEY")
    ("cookie:",): re.compile(r"(?i)((?<![\w-])(?:set-)?cookie:[ \t])[^\n\"']+"),
    ("mysql", "mariadb"): re.compile(rf"(\b(?:mysql|mysqldump|mysqladmin|mariadb)\b{_LINE}-p)[^\s-]\S*"),
    ("sshpass", " login"): re.compile(rf"(\b(?:sshpass|(?:docker|podman)[ ]login)\b{_LINE}-p[ \t]?)[^\s-]\S*"),
    (" login", "'login", '"login'): re.compile(  # wandb login KEY, swanlab login -k KEY
        rf"(\b{_TOOLS}{_GAP}login(?:{_GAP}--?[\w-]{{1,40}}(?:=\S{{1,200}})?(?:[ \t]https?://\S{{1,200}})?){{0,4}}{_GAP})"
        r"(?=[A-Za-z_-]{0,60}[0-9])[\w-]{16,}"
    ),
    (" login ", "'login'", '"login"'): re.compile(
        rf"(\b[\w-]{{1,40}}{_GAP}login\b[^\n|;&]{{0,200}}?[ \t][\"']?-k"
        rf"(?:{_GAP}|=|(?=[A-Za-z0-9]{{16}})))[^\s\"'-][^\s\"']*"
    ),
    ("machine", "default"): re.compile(  # .netrc
        rf"(?i)((?:\bmachine{_SPACE}[^\s.,]{{1,100}}\.[^\s,]{{1,100}}|\b(?:machine{_SPACE}[^\s,]{{1,200}}|default)(?={_SPACE}(?:login|account)))"
        rf"{_SPACE}(?:(?:login|account){_SPACE}[^\s,]{{1,200}}?{_SPACE}){{0,2}}password{_SPACE})\S+"
    ),
    ("password ",): re.compile(  # a line of it, alone
        r"(?i)(\bpassword[ \t]{1,8})(?=[a-z]{0,60}[0-9])(?=[0-9]{0,60}[a-z])[a-z0-9]{32,200}(?![\w-])"
    ),
    ("redis-cli",): re.compile(rf"(\bredis-cli\b{_LINE}-a[ \t])\S+"),
    (" -u", " --user"): re.compile(
        rf"(\b(?:curl|wget|http)\b{_LINE}(?:-u|--user)[ =]['\"]?[^\s:'\"]{{1,80}}:)[^\s'\"]+"
    ),
}
_URL = re.compile(r"(?<!\w)([A-Za-z][A-Za-z0-9+.-]{0,20}://)([^\s/\"'<>]{1,2000})(?=@)")
_BASIC = re.compile(r"(?i)(\bbasic[ \t])([A-Za-z0-9+/]{4,2000}={0,2})")

# ---- By name

_STRONG = frozenset("password passwords passwd passphrase passcode pwd pw secret secrets authorization".split())
_WEAK = frozenset("credential credentials creds auth apikey apikeys jwt bearer cookie cookies token".split())
_LIKE = frozenset("key keys tokens pass".split())  # alone they say little: whose key?
_OF = frozenset(  # whose, or what for: a key of these is a secret
    "api access private secret ssh encryption encrypt signing license wandb openai anthropic hf huggingface hugging aws"
    " azure gcp google github gitlab comet neptune clearml mlflow account storage service client auth app server master"
    " shared deploy admin user root session bot webhook slack discord telegram sendgrid stripe twilio kaggle modal"
    " replicate together groq mistral cohere pinecone datadog sentry aim swanlab login db database redis s3 gcs hmac"
    " jwt crypto sas refresh id oauth bearer mysql postgres pg smtp mail email imap ftp http proxy ray vault consul"
    " my".split()
)
_NOT = frozenset(  # words in front of it that say: no secret
    "max min num n eos bos pad unk mask sep cls special stop start end image audio text vocab total per next prev first"
    " last target context register action state obs observation goal return reward patch class mean sos blank begin new"
    " sort primary foreign public metric rng prng group cache forward backward second low high band all single one two"
    " multi by no use enable disable with without require skip has is show ask save reset query attn attention"
    " count".split()
)
_TAIL = frozenset("id value str string text b64 base64".split())
_PASSE = ["mot", "de", "passe"], ["mots", "de", "passe"]
_CASES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STEM = re.compile(r"([a-z0-9]+?)(keys?|tokens?|pass)")
_ENDS = re.compile(r".{0,40}(?:password|passwd|passphrase|passwort|kennwort|paßwort)s?")
_ABROAD = "contraseña contraseñas senha senhas wachtwoord lösenord adgangskode heslo şifre пароль пароли"
_MARKS = "密码 密碼 口令 비밀번호 암호 パスワード 暗証番号".split()  # no blank parts them from the words before
_KEYS = "密钥 密鑰 私钥 私鑰 秘密鍵".split()
_NAME = r"[^\W\d][\w.\-]{0,99}"
_FLAG = re.compile(rf"-{{1,2}}{_NAME}")
_WORD = re.compile(rf"(-{{0,2}}[+]{{0,2}}({_NAME})=)(.+)", re.DOTALL)
_PHRASE = r"[Mm]ots?[ _-][Dd]e[ _-][Pp]asse"
_ENGLISH = ("pass", "pw", "secret", "token", "key", "auth", "cred", "cookie", "jwt", "bearer")  # in every such name
_LOOKS = str.maketrans(  # letters of other alphabets, and marks, that look like ours
    "асеорхукѕіјԁһԝѵтмАВСЕНІЈКМОРЅТХУԜαορνκιυτχΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡ、，；：＝“”„‘’",
    'aceopxyksijdhwvtmABCEHIJKMOPSTXYWaopvkiutxABEZHIKMNOPTYXiag,,;:="""\'\'',
)
_TYPE = (  # password: str = ...
    r":[ \t]?(?:(?:[a-z]{1,10}\.)?(?:Optional|Union|Annotated|SecretStr|[Ll]ist)(?:\[[\w., |]{0,60}\])?"
    r"|str|bytes|int|Any)"
    r"(?:[ ]?\|[ ]?\w{1,20}){0,3}[ \t]?="
)
_AT = re.compile(
    rf"(?<![\w.\-])(-{{0,3}})({_PHRASE}|{_NAME})"
    rf"(?:\\{{0,3}}[\"']?\]?[ \t]{{0,40}}(?:{_TYPE}|==?|:=|=>|:)[ \t]{{0,40}}"
    r"|[ \t]{0,40}\\?\r?\n[ \t]{0,40}(?:-[ \t]{1,8})?|[ \t]{1,40}"  # the next line, or a blank
    r"|\\{0,3}[\"'],\s{0,40}(?=\\{0,3}[\"']))"
)

# ---- What stands behind a name

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


# ---- Disguises


class _Fold(dict[int, str | None]):
    """For str.translate: a letter without its accents, in our alphabet where it looks like ours; unseen ones go."""

    def __missing__(self, code: int) -> str | None:
        sign = chr(code)
        bare = [c for c in unicodedata.normalize("NFKD", sign) if unicodedata.category(c) not in ("Cf", "Mn", "Me")]
        plain = bare[0] if len(bare) == 1 else sign if bare else ""
        self[code] = plain.translate(_LOOKS) or None
        return self[code]


_FOLD = _Fold()


def fold(text: str) -> str:
    """What a text says to the eye, for names that are looked up.

    >>> fold("p\u0430ss\u200bword：contraseña")
    'password:contrasena'
    """
    return text if text.isascii() else text.translate(_FOLD)


def _origins(text: str) -> Sequence[int]:
    """Of each character of the folded text: where it stands in the text itself; then the end."""
    if text.isascii():
        return range(len(text) + 1)
    return [*(i for i, sign in enumerate(text) if _FOLD[ord(sign)] is not None), len(text)]


_SECRET_MARKS, _WEAK_MARKS = (tuple(map(fold, words)) for words in (_MARKS, _KEYS))
_STRONG |= frozenset(fold(_ABROAD).split()) | {"motdepasse"}
_HINTS = ("kennwort", "pass_", "pass-", "creds", *_ENGLISH, *map(fold, _ABROAD.split()), *_SECRET_MARKS, *_WEAK_MARKS)


# ---- Names


@functools.lru_cache(8192)
def kind(name: str, flag: bool = False) -> str:
    """How sure a name is of a secret: strong (any value is), weak (numbers are none), maybe (if it looks random).

    >>> kind("WANDB_API_KEY"), kind("max_tokens"), kind("db.password"), kind("sort_key")
    ('weak', '', 'strong', '')
    """
    name = fold(name)
    words = [word.lower() for word in re.split(r"[\W_]+", _CASES.sub("_", name)) if word]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _TAIL):
        words.pop()
    if not words:
        return NO
    if words[-2:-1] == ["pass"] and words[-1] in ("word", "words", "phrase", "code"):  # pass_word
        words[-2:] = ["password"]
    *front, last = [*words[:-3], "motdepasse"] if words[-3:] in _PASSE else words
    stem = _STEM.fullmatch(last)
    if stem and stem[1] in _OF:  # wandbkey
        front, last = [*front, stem[1]], stem[2]
    if front and front[-1] in _NOT:
        return NO
    if last in _STRONG or _ENDS.fullmatch(last) or last.endswith(_SECRET_MARKS):
        return STRONG
    if last in _WEAK or last.endswith(_WEAK_MARKS):
        return WEAK
    return _like(name, front, last, flag) if last in _LIKE else NO


def _like(name: str, front: list[str], last: str, flag: bool) -> str:
    if front and front[-1] in _OF:
        return STRONG if "secret" in front else WEAK
    if set(front) & _NOT:
        return NO
    loud = name.isupper() and "_" in name  # a variable of the environment
    alone = flag and not front and last != "tokens"
    return WEAK if loud or alone else MAYBE


def names_secret(name: str) -> bool:
    """Whether the value of a setting with this name is one, unless it is a number or nothing."""
    return kind(name) in (STRONG, WEAK)


def mask(text: str) -> str:
    """The text with every secret as ***."""
    return _mask_short(text) if len(text) < SHORT else _mask(text)


def _mask(text: str) -> str:
    for words, pattern in SHAPES.items():
        text = pattern.sub(MASK, text) if any(word in text for word in words) else text
    low = text.lower()
    for words, pattern in WITHIN.items():
        text = pattern.sub(rf"\g<1>{MASK}", text) if any(word in low for word in words) else text
    text = _URL.sub(_user, text) if "://" in text else text
    text = _BASIC.sub(_basic, text) if "basic" in low else text
    low = low if text.isascii() else fold(text).lower()
    return _by_name(text) if any(word in low for word in _HINTS) else text


_mask_short = functools.lru_cache(8192)(_mask)  # the words of tables and settings, which come again and again


def _user(match: re.Match[str]) -> str:
    """Of a URL: a user with a password, or a token alone, as https has it; git@ says nothing."""
    telling = ":" in match[2] or match[1].lower() in ("http://", "https://")
    return match[1] + MASK if telling else match[0]


def _basic(match: re.Match[str]) -> str:
    """`Basic` and user:password in base64; any other word behind it is prose."""
    try:
        said = b":" in binascii.a2b_base64(match[2].encode(), strict_mode=True)
    except binascii.Error:
        said = False
    return match[1] + MASK if said else match[0]


def _by_name(text: str) -> str:
    parts, done, origin = [], 0, _origins(text)
    for begin, end in _values(fold(text)):
        parts += [text[done : origin[begin]], MASK]
        done = origin[end]
    return "".join([*parts, text[done:]])


def _values(text: str) -> Iterator[tuple[int, int]]:
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
    return sure == MAYBE and not _looks_random(text, inner)


def _fits(pattern: re.Pattern[str], text: str, at: int, closes: bool) -> bool:
    """Whether it is the whole value; within quotes that is up to the quote."""
    match = pattern.match(text, at)
    return match is not None and (not closes or text[match.end() : match.end() + 1] in ("", "'", '"', "\\"))


def _looks_random(text: str, at: int) -> bool:
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


# ---- Plain data


def masked(data: Any) -> Any:
    """The same plain data: texts masked, and what stands under or behind a name that says so."""
    if isinstance(data, str):
        return mask(data)
    if isinstance(data, Mapping):
        return {mask(k) if isinstance(k, str) else k: beside(k, v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return _words(data)
    return data


def beside(key: Any, value: Any, flag: bool = False) -> Any:
    """The value of a setting; numbers stay (max_tokens), but not where the name is a password's."""
    sure = kind(key, flag) if isinstance(key, str) else NO
    if not sure or isinstance(value, (Mapping, bool)) or value is None:
        return masked(value)
    if isinstance(value, (list, tuple)):
        return [beside(key, each, flag) for each in value]
    if not isinstance(value, str):
        return MASK if sure == STRONG else value
    return value if _is_plain_whole(value, str(key), sure) else MASK


def _is_plain_whole(value: str, name: str, sure: str) -> bool:
    match = _SAID.match(value) or (_NUMBER.match(value) if sure != STRONG else None)
    if not value or (match and match.end() == len(value)):
        return True
    if name.lower().endswith(PLACES) and _PLACE.match(value):
        return True
    return sure == MAYBE and mask(value) == value and not _looks_random(value, 0)


def _words(words: Sequence[Any]) -> list[Any]:
    """A list, which may be the words of a command: a flag and its value stand in two of them."""
    masked_words: list[Any] = []
    for i, word in enumerate(words):
        before = words[i - 1] if i else None
        flag = isinstance(before, str) and _FLAG.fullmatch(fold(before)) and kind(before.lstrip("-"), True)
        value = isinstance(word, str) and not word.startswith("-")
        shown = beside(str(before).lstrip("-"), word, True) if flag and value else _word(word)
        masked_words.append(MASK if value and _is_login(words[:i], word) else shown)
    return masked_words


def _is_login(before: Sequence[Any], word: str) -> bool:
    """`wandb login KEY` and `swanlab login -k KEY`, as words."""
    return "login" in before[1:] and (before[-1] == "-k" or _looks_random(word, 0))


def _word(word: Any) -> Any:
    """One word of a command: all behind the first = is the value, blanks too."""
    match = _WORD.fullmatch(fold(word)) if isinstance(word, str) else None
    flag = match is not None and match[1].startswith("-")
    if match is None or kind(match[2], flag) in (NO, MAYBE) or (not flag and _CALL.match(match[3])):
        return masked(word)
    at = _origins(word)[match.start(3)]
    return word[:at] + str(beside(match[2], word[at:], flag))


def of_meta(meta: Mapping[str, Any]) -> Document:
    """What a run says of itself, as it is stored: command, intent, patch and reasons are anybody's text."""
    return {key: value if key in MACHINE else beside(key, value) for key, value in meta.items()}


# ---- Lines


class Lines:
    """Masks what a program prints, line by line; a private key takes many of them."""

    def __init__(self) -> None:
        self.left = 0  # lines that may still belong to a key
        self.before = ""  # the last line, where it ends with a flag whose value may follow

    def __call__(self, line: str) -> str:
        if self.left:
            self.left = 0 if "-----END " in line else self.left - 1
            return MASK + "\n"
        if _BEGINS.search(line) and "-----END " not in line:
            self.left = LONGEST_KEY
        before, last = self.before, _FLAG.fullmatch(fold(line.split()[-1])) if line.strip() else None
        self.before = line if last and kind(last[0].lstrip("-"), True) else ""
        return mask(before + line).removeprefix(mask(before)) if before else mask(line)
