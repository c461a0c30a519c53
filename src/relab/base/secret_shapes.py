"""Which secrets are known by their shape? `ghp_...`, a JWT, a PEM block, the user in a URL, `wandb login KEY`.

Capitals that a shape has are not relied on: names are put in small letters by those who read them.

No pattern may look at one character more than a bounded number of times.
"""

from __future__ import annotations

import binascii
import re

MASK = "***"  # what stands in the place of a secret

_ANY = r"[A-Za-z0-9_-]"
SHAPES = {  # what must stand in it in small letters (asked first, because that is fast) -> the pattern
    (
        "-----begin ",
    ): re.compile(  # a private key, in a patch too, where each line has a sign; cut off, as far as it goes
        r"(?i)-----BEGIN [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
        r"(?:(?:[^-]|-(?!-)){0,20000}-{5,6}END [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----|[A-Za-z0-9+/=\\\s]*)"
    ),
    ("eyj",): re.compile(rf"(?<!{_ANY})(?i:eyJ){_ANY}{{8,}}\.{_ANY}{{8,}}(?:\.{_ANY}*)?"),  # JSON web token
    ("aiza", "ya29.", "gocspx-"): re.compile(
        rf"(?<!{_ANY})(?:(?i:AIza){_ANY}{{30,}}|ya29\.[\w.-]{{20,}}|(?i:GOCSPX)-{_ANY}{{20,}})"
    ),
    ("github_pat_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_"): re.compile(
        r"(?<![A-Za-z0-9])(?:github_pat_\w{20,}|gh[oprsu]_[A-Za-z0-9]{20,})"
    ),
    ("glpat", "gldt", "glrt", "nvapi", "pplx", "tvly", "shpat", "lin_api", "xkeysib"): re.compile(
        rf"(?<!{_ANY})(?:glpat|gldt|glrt|nvapi|pplx|tvly|shpat|lin_api|xkeysib)[-_]{_ANY}{{16,}}"
    ),
    ("pypi-age", "pypi_age"): re.compile(rf"(?<!{_ANY})pypi[-_](?i:AgE){_ANY}{{16,}}"),  # as all of them begin
    ("xai", "pypi"): re.compile(  # words of names too, whose parts are short
        rf"(?<!{_ANY})(?:xai|pypi)[-_](?=[A-Za-z]{{0,60}}[0-9])[A-Za-z0-9]{{16,}}{_ANY}*"
    ),
    ("dapi",): re.compile(r"(?<![A-Za-z0-9])dapi[0-9a-fA-F]{32}(?:-\d{1,2})?(?![A-Za-z0-9])"),  # Databricks
    ("sk-",): re.compile(rf"(?<!{_ANY})sk-(?=[A-Za-z_-]{{0,40}}[0-9]){_ANY}{{16,}}"),  # OpenAI, Anthropic and others
    ("k_live_", "k_test_", "whsec_"): re.compile(  # Stripe
        r"(?<![A-Za-z0-9])(?:[prs]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,}"
    ),
    ("akia", "asia", "abia", "acca"): re.compile(  # Amazon
        r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
        r"|(?:akia|asia|abia|acca)(?=[a-z]{0,15}[0-9])[a-z0-9]{16})(?![A-Za-z0-9])"
    ),
    ("hf_", "r8_", "gsk_", "npm_"): re.compile(
        r"(?<![A-Za-z0-9])(?:hf|r8|gsk|npm)_(?=[a-z]{0,60}[A-Z0-9])[A-Za-z0-9]{20,}"
    ),
    ("dckr_pat_", "dop_v1_", "wandb_v1_", "api_org_"): re.compile(
        r"(?<![A-Za-z0-9])(?:dckr_pat|dop_v1|wandb_v1|api_org)_[\w-]{20,}"
    ),
    ("xox", "xapp-"): re.compile(r"(?<![A-Za-z0-9])(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),  # Slack
    ("sg.",): re.compile(r"(?<![A-Za-z0-9.])(?:SG|sg(?=\.[a-z_-]{0,60}[0-9]))\.[\w-]{16,}\.[\w-]{16,}"),  # SendGrid
    ("age-secret-key-",): re.compile(
        r"(?<![A-Za-z0-9])(?:AGE-SECRET-KEY-[A-Z0-9-]{20,}|age-secret-key-1[a-z0-9]{40,})"
    ),
    (":aa",): re.compile(r"(?<![\w:])\d{8,10}:(?i:AA)[\w-]{30,}"),  # Telegram
}
BEGINS = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY")
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
        rf"(?i)((?:\bmachine{_SPACE}[\w-]{{1,100}}\.[\w.:-]{{1,100}}|\b(?:machine{_SPACE}[^\s,]{{1,200}}|default)(?={_SPACE}(?:login|account)))"
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


def mask_shapes(text: str) -> str:
    """The text with all that looks like a secret as ***."""
    low = text.lower()
    for words, pattern in SHAPES.items():
        text = pattern.sub(MASK, text) if any(word in low for word in words) else text
    for words, pattern in WITHIN.items():
        text = pattern.sub(rf"\g<1>{MASK}", text) if any(word in low for word in words) else text
    text = _URL.sub(_user, text) if "://" in text else text
    return _BASIC.sub(_basic, text) if "basic" in low else text


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
