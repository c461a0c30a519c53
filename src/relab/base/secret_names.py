"""Which names say that a secret stands behind them? `--wandb-key`, `api_key`, `密码`, and not `max_tokens`.

Letters that only look like ours and unseen ones disguise no name.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

STRONG, WEAK, LOOSE, MAYBE, NO = "strong", "weak", "loose", "maybe", ""  # how much a name says of its value
NAME = r"[^\W\d][\w.\-]{0,99}"
FLAG = re.compile(rf"-{{1,2}}{NAME}")

_STRONG = frozenset("password passwords passwd passphrase passcode pwd pw secret secrets authorization".split())
_WEAK = frozenset("credential credentials creds auth apikey apikeys jwt bearer cookie cookies".split())
_LIKE = frozenset("key keys token tokens tok toks pass".split())  # alone they say little: whose key?
_OF = frozenset(  # whose, or what for: a key of these is a secret
    "api access private secret ssh encryption encrypt signing license wandb openai anthropic hf huggingface hugging aws"
    " azure gcp google github gitlab comet neptune clearml mlflow account storage service client auth app server master"
    " shared deploy admin user root session bot webhook slack discord telegram sendgrid stripe twilio kaggle modal"
    " replicate together groq mistral cohere pinecone datadog sentry aim swanlab login db database redis s3 gcs hmac"
    " jwt crypto sas refresh oauth bearer mysql postgres pg smtp mail email imap ftp http proxy ray vault"
    " consul".split()
)
_VAGUE = frozenset({"my", "id"})  # my_key: whose is not said, and of what neither
_TOOLS = frozenset(  # `wandb: KEY`, where only a truth or a mode is looked for
    "wandb swanlab comet neptune clearml openai anthropic huggingface kaggle trackio".split()
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
_STEM = re.compile(r"([a-z0-9]+?)(keys?|tokens?|toks?|pass|api)")
_ENDS = re.compile(r".{0,40}(?:password|passwd|passphrase|passwort|kennwort|paßwort)s?")
_ABROAD = "contraseña contraseñas senha senhas wachtwoord lösenord adgangskode heslo şifre пароль пароли"
_MARKS = "密码 密碼 口令 비밀번호 암호 パスワード 暗証番号".split()  # no blank parts them from the words before
_KEYS = "密钥 密鑰 私钥 私鑰 秘密鍵".split()
_ENGLISH = ("pass", "pw", "secret", "tok", "key", "auth", "cred", "cookie", "jwt", "bearer", *_TOOLS)  # in each
_LOOKS = str.maketrans(  # letters of other alphabets, and marks, that look like ours
    "асеорхукѕіјԁһԝѵтмАВСЕНІЈКМОРЅТХУԜαορνκιυτχΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡ、，；：＝“”„‘’",
    'aceopxyksijdhwvtmABCEHIJKMOPSTXYWaopvkiutxABEZHIKMNOPTYXiag,,;:="""\'\'',
)


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


def origins(text: str) -> Sequence[int]:
    """Of each character of the folded text: where it stands in the text itself; then the end."""
    if text.isascii():
        return range(len(text) + 1)
    return [*(i for i, sign in enumerate(text) if _FOLD[ord(sign)] is not None), len(text)]


_SECRET_MARKS, _WEAK_MARKS = (tuple(map(fold, words)) for words in (_MARKS, _KEYS))
_STRONG |= frozenset(fold(_ABROAD).split()) | {"motdepasse"}
_HINTS = ("kennwort", "pass_", "pass-", "creds", *_ENGLISH, *map(fold, _ABROAD.split()), *_SECRET_MARKS, *_WEAK_MARKS)


# ---- How sure a name is


@functools.lru_cache(8192)
def kind(name: str, flag: bool = False) -> str:
    """How sure a name is of a secret: strong (any value is), weak (numbers are none), loose (words
    are none either), maybe (if it looks random).

    >>> kind("db.password"), kind("WANDB_API_KEY"), kind("token"), kind("wandb"), kind("max_tokens")
    ('strong', 'weak', 'loose', 'maybe', '')
    """
    name = fold(name)
    words = [word.lower() for word in re.split(r"[\W_]+", _CASES.sub("_", name)) if word]
    count = len(words)
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _TAIL):
        words.pop()
    if not words:
        return NO
    if words[-2:-1] == ["pass"] and words[-1] in ("word", "words", "phrase", "code"):  # pass_word
        words[-2:] = ["password"]
    *front, last = [*words[:-3], "motdepasse"] if words[-3:] in _PASSE else words
    stem = _STEM.fullmatch(last)
    if stem and stem[1] in _OF | _VAGUE:  # wandbkey
        front, last = [*front, stem[1]], stem[2]
    if front and front[-1] in _NOT:
        return NO
    if last in _STRONG or _ENDS.fullmatch(last) or last.endswith(_SECRET_MARKS):
        return STRONG
    if last in _WEAK or last.endswith(_WEAK_MARKS):
        return WEAK
    if last in _LIKE:
        return _like(name, front, last, flag)
    tool = last in _TOOLS or (last == "api" and front and front[-1] in _TOOLS)
    return MAYBE if tool and len(words) == count else NO  # wandb_id is none


def _like(name: str, front: list[str], last: str, flag: bool) -> str:
    if front and front[-1] in _OF:
        return STRONG if "secret" in front else WEAK
    if last == "token" or (front and front[-1] in _VAGUE):
        return LOOSE
    if set(front) & _NOT:
        return NO
    loud = name.isupper() and "_" in name  # a variable of the environment
    alone = flag and not front and last in ("key", "keys", "pass")
    if not loud and not alone:
        return MAYBE
    return WEAK if last == "pass" else LOOSE


def mentions(low: str) -> bool:
    """Whether a text in small letters holds a part of any such name: most texts do not, and are done with."""
    return any(word in low for word in _HINTS)
