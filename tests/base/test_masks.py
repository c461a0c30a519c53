"""Is every secret masked, whatever it looks like, and does everything else keep its bytes?"""

from __future__ import annotations

import doctest
import json
import shlex
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relab import logger
from relab.base import masks, secret_names
from relab.base.masks import mask, masked

S = "Zq7hunter2Xy"  # what must never be seen
HEX = "0123456789abcdef0123456789abcdef01234567"
RANDOM = "9fK2xQ7vLm3TzB8wRn5Y"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.Zq7hunter2Xy-abc_def"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA{S}\n{S}\n-----END RSA PRIVATE KEY-----"

# Text -> what must be gone from it
SECRETS = {
    f"swanlab.login('{HEX}')": HEX,
    f'wandb.login( "{HEX}")': HEX,
    f"curl -H 'Authorization: ApiKey {HEX}' x": HEX,
    f"train.py --pass-word {S}": S,
    f"pass_word={S}": S,
    f"PassWord={S}": S,
    f"pass-phrase={S}": S,
    f"train.py --creds={HEX}": HEX,
    f"Kennwort={S}": S,
    f"python train.py --wandb-key {S} --lr 3e-4": S,
    f"WANDB_KEY={S} python train.py": S,
    f"train.py --pass {S}": S,
    f"train.py --pw={S}": S,
    f"train.py --password={S}": S,
    f"train.py --password '{S} and more' x": S,
    f"train.py '--password={S} and more' x": "and more",
    "train.py --password 123456": "123456",
    f"train.py --keys={S}a,{S}b,{S}c": S,
    f"train.py --api-keys {S}a {S}b --lr 1": S,
    f'train.py --api-keys "{S}a","{S}b"': S,
    f"train.py --key {S}": S,
    f"train.py --token={S}": S,
    f"train.py -token {S}": S,
    f"train.py --hf-token {S}": S,
    f"train.py --wandbkey {S}": S,
    f"train.py +logger.api_key={S}": S,
    f"relab train ppo logger.wandb.apiKey={S}": S,
    f"OPENAI_API_KEY={S}": S,
    f"export AWS_SECRET_ACCESS_KEY='{S}'": S,
    f"MY_SERVICE_KEY={S}": S,
    f"DB_PASS={S}": S,
    f"MYSQL_PWD={S} mysql": S,
    f"PGPASSWORD={S} psql": S,
    f"mysql -u root -p{S} db": S,
    f"sshpass -p {S} ssh box": S,
    f"docker login -u me -p {S}": S,
    f"redis-cli -h box -a {S} ping": S,
    f"curl -u me:{S} https://a.org": S,
    f"https://me:{S}@host.org/x": S,
    f"https://{S}@github.com/a/b.git": S,
    f"postgresql://me:{S}@db:5432/runs": S,
    f"https://a.org/x?lr=1&token={S}&y=2": S,
    f"https://maps.org/x?key={S}": S,
    f"https://bucket.s3.org/a?X-Amz-Signature={S}": S,
    f"https://hooks.slack.com/services/T000/B000/{S}": S,
    f"Authorization: Bearer {S}": S,
    f'curl -H "Authorization: token {S}" x': S,
    "Authorization: Basic bWU6aHVudGVyMg==": "bWU6aHVudGVyMg",
    "sent Basic bWU6aHVudGVyMg== to it": "bWU6aHVudGVyMg",
    f"sent bearer {S} to it": S,
    f"Cookie: a=1; session={S}": S,
    f'{{"api_key": "{S}", "lr": 0.1}}': S,
    f'{{"api_keys": ["{S}a", "{S}b"], "lr": 0.1}}': S,
    json.dumps(json.dumps({"api_key": S})): S,
    f"api_key: {S}\nlr: 0.1": S,
    f"api_keys:\n  - {S}a\n  - {S}b\nlr: 0.1": S,
    f"password: '{S} it''s'": S,
    f'password = "{S} \\"quoted\\" rest"': "rest",
    f"+    password: str = '{S}'": S,
    f'-    os.environ["WANDB_KEY"] = "{S}"': S,
    f'os.environ.setdefault("HF_TOKEN", "{S}")': S,
    f'wandb.login(key="{HEX}")': HEX,
    f"secret_access_key={S}": S,
    f"AccountName=x;AccountKey={S}==;y=1": S,
    f"client_secret={S}": S,
    f"['--api-key', '{S}']": S,
    f"see {JWT} there": JWT,
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz012345": "AIza",
    "github_pat_11ABCDEFG0abcdefghijkl_ABCDEFGHIJ": "github_pat_",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "ghp_",
    "gho_abcdefghijklmnopqrstuvwxyz0123456789": "gho_",
    "glpat-abcdefghij0123456789": "glpat",
    "sk-proj-abcDEF0123456789abcdef": "sk-",
    "sk-ant-api03-abcDEF0123456789abcdef": "sk-ant",
    "sk_live_abcdefghij0123456789": "sk_live",
    "AKIAIOSFODNN7EXAMPLE": "AKIA",
    "ASIAIOSFODNN7EXAMPLE": "ASIA",
    "hf_abcdefGHIJKLmnopqrstuvwxyz0123456789": "hf_",
    "xoxb-123456789012-abcdefghijkl": "xoxb",
    "xapp-1-A0123456789-abcdefghijkl": "xapp",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789": "npm_",
    "SG.abcdefghijklmnopqrst.abcdefghijklmnopqrst": "SG.",
    "123456789:AAabcdefghijklmnopqrstuvwxyz0123456": "AAabc",
    PEM: S,
    "\n".join("-" + line for line in PEM.split("\n")): S,
    json.dumps({"key": PEM}): S,
    PEM[:-40]: S,
    f"machine api.wandb.ai login user password {HEX}": HEX,
    f"machine api.wandb.ai\n  login user\n  password {S}\n": S,
    f"machine box login me password {S}": S,
    f"default login anonymous password {S}": S,
    f"  password {HEX}": HEX,
    f"wandb login {HEX}": HEX,
    f"$ wandb login --relogin --host=https://w.org {HEX} && python train.py": HEX,
    f"subprocess.run(['wandb', 'login', '{HEX}'])": HEX,
    f"swanlab login -k {S}": S,
    f"swanlab login --relogin -k {S} -h box": S,
    f"swanlab login --key {S}": S,
    f"comet login --api-key={S}": S,
    f"anytool login -k '{S}'": S,
    "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN54": "QQPZ",
    f"train.py --password\n{S}": S,
    f"train.py --password \\\n    {S} --lr 3": S,
    f"args:\n  - --password\n  - {S}\n  - --lr": S,
    f'[\n  "--api-key",\n  "{S}"\n]': S,
    f"密码: {S}": S,
    f"服务器的密码：{S}，学习率：0.1": S,
    f"密钥={S}": S,
    f"口令: {S}": S,
    f"contraseña: {S}": S,
    f"contrasen\u0303a={S}": S,
    f"Passwort: {S}": S,
    f"Benutzerpasswort = '{S}'": S,
    f"mot de passe: {S}": S,
    f"Mot de passe : {S}": S,
    f"mot_de_passe={S}": S,
    f"пароль: {S}": S,
    f"senha={S}": S,
    f"비밀번호: {S}": S,
    f"パスワード：{S}": S,
    f"--contraseña {S}": S,
    f"pass\u200bword={S}": S,
    f"--wandb\u2060-k\ufeffey {S}": S,
    f"p\u0430ssword={S}": S,
    f"\u0440\u0430\u0455\u0455w\u043erd: {S}": S,
    f"ｐａｓｓｗｏｒｄ＝{S}": S,
    f"api\u00ad_k\u0435y: {S}": S,
    f"wandb: {HEX}": HEX,
    f"wandb_api: {HEX}": HEX,
    f"tok: {RANDOM}": RANDOM,
    f"train.py --wandb_api {HEX}": HEX,
    f"train.py --wandb {HEX} --lr 3": HEX,
    f"my_key: {S}": S,
    f"train.py --keys obs {S} action": S,
    "token: correcthorsebatterystaple": "horse",
    "--key xkcdqwrtzpsdfgh": "xkcd",
    "api_key=reward": "reward",
    "access_token: cls": "cls",
    "train.py --password observation": "observation",
    f"export WANDB_API_KEY {HEX}": HEX,
    f"setenv WANDB_API_KEY {HEX}": HEX,
    f"setenv DB_PASSWORD {S}; ls": S,
    f"wandb-api-key\t{HEX}": HEX,
    f"auth=('user','{S}')": S,
    f'auth=("user", "{S}"), lr=3': S,
    f"requests.get(x, auth=(\n    'user',\n    '{S}'\n))": S,
    f"<password>{S}</password>": S,
    f"<db><password type='x'>\n {S} \n</password></db>": S,
    f"<api_key><![CDATA[{S}]]></api_key>": S,
    f'<api_key value="{S}"/>': S,
    f"wandb_key: >-\n  {HEX}\nlr: 3": HEX,
    f"password: |\n  {S}\n\n  {S}\nlr: 3": S,
    f"+wandb_key: >-\n+  {S}\n+lr: 3": S,
    f"wandb_key:\n  {HEX}\nlr: 3": HEX,
    f"wandb_key: !!str {S}": S,
    f'key: !!str "{HEX}"': HEX,
    f"wandb_key: &a {S}": S,
    f"wandb_key: >-\n\n  {S}": S,
    f"wandb.login(key=\n '{HEX}')": HEX,
    f"api_key = \\\n    '{S}'": S,
    f"dapi{HEX[:32]}": HEX[:32],
    f"xkeysib-{HEX}": HEX,
    "pypi-AgEIcHlwaS5vcmcCJDAx-x_y": "cHlwaS5",
    f"xai-{RANDOM}": RANDOM,
    "akiaiosfodnn7example": "akiaios",
    JWT.lower(): JWT.lower(),
    PEM.lower(): S.lower(),
    "aizasya-abcdefghijklmnopqrstuvwxyz012345": "aiza",
    "sg.abcdefghijklmno1pqrst.abcdefghijklmnopqrst": "sg.",
    "123456789:aaabcdefghijklmnopqrstuvwxyz0123456": "aaabc",
}

PLAIN = """\
python train.py --passes 3 --lr 3e-4
python train.py --key_dim 64 --num-keys 8
n_tokens=512
max_tokens: 1024
--max_tokens 2048
keyframe=12
--monkey see
--monkey-patch yes
tokenizer=gpt2
tokenizer: meta/llama-2-7b-hf
author=ada
authors: Ada Lovelace, Charles Babbage
commit 8f3b1c2d4e5f60718293a4b5c6d7e8f901234567
sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
run_id=3f2504e0-4f89-11d3-9a0c-0305e82c3301
env=passthrough-v0
passthrough=true
env=TWFuIGlzIGRpc3Rpbmd1aXNoZWQ-v1
--env-id QWxhZGRpbjpvcGVuIHNlc2FtZQ
seed=12345678901234567890
--checkpoint runs/20260101-brave-otter/checkpoints/step-000000123456789012345678901234567890
pad_token=<pad>
eos_token='</s>'
mask_token=[MASK]
eos_token_id=50256
tokens=512
tokens_per_batch: 65536
--token-dropout 0.1
secret_dim=64
key=value
a key=value pair
keys: lr, gamma
sort_key=return
obs_keys=image,state
mlp_keys='.*'
encoder.cnn_keys=image
hotkey=ctrl
turkey: 3
keyboard: qwerty
--keyboard us
password_file=/run/secrets/x
token_limit=100
api_key=None
api_key: null
api_key=$WANDB_API_KEY
command: python train.py --wandb-key {wandb_key} --seed {seed}
password: str
def f(password: str, token: str | None = None) -> str:
token = tokenizer.decode(ids)
token=get_token()
use_auth=true
auth: none
low_pass=0.5
forward_pass=done
all tests pass: good
PWD=/work/main
GOOGLE_APPLICATION_CREDENTIALS=/etc/gcp/file.json
git@github.com:ada/relab.git
ssh://git@github.com/ada/relab.git
https://github.com/ada/relab/blob/main/x.py@v2
Basic training of the policy with PPO2Config
basic environment settings
a bearer of good news
bypass=1
compass: north
passing=0.9
risk-averse-policy-with-a-long-name-2024
task-based-evaluation-of-policies-1234
sk-learn-models-are-supported-here
eval/return_det 1 / 2
policy/entropy=1.38
learning_rate=3e-4 total_timesteps=1_000_000
hf_transformers_models_and_datasets
AKIAXLE of the car
The pwd command prints the folder
Secrets are masked; tokens are counted.
what a secret: nobody(knows)
2026-01-01T12:00:00.123Z
"key": "lr", "from": 0.1, "to": 0.2
primary_key=id
cache_key=runs/a/b
public_key=abc
lr=0.1,gamma=0.99,keys=3
-----BEGIN PUBLIC KEY-----
pip install passlib==1.7.4
from relab.tokens import Tokenizer
/home/x/passwords/readme.txt
relab login
wandb login
wandb login --relogin
wandb login required: see the page of the tool
swanlab login -h
password login is switched off on this machine
the password prompt of a machine password manager
the default password policy
machine learning, login nodes, password rules
machine api.wandb.ai login user
login fixed in 8f3b1c2d4e5f60718293a4b5c6d7e8f901234567
the wandb login was mended by commit 8f3b1c2d4e5f60718293a4b5c6d7e8f901234567
age-secret-key-generator
AGE-SECRET-KEY-1
train.py --use-auth
密码学: 课程
密码长度: 12
密钥长度=256
密钥数: 8
最大令牌数: 512
contraseñas olvidadas
mot de passe oublié
passe: 3
desenha=azul
пароли бывают разные
Пас: 3
pass​through=1
токены: 512
学习率：0.1，步数：1000
α=0.1 β=0.9 ρ=1
train.py --key reward
train.py --keys obs action reward --lr 3
--keys=obs,action
token: cls
token=bpe
"token": "cls", "lr": 3
LOG_KEY=return_mean
RUN_KEYS = ("run", "env_name")
MODEL_KEY=large_policy
my_key: observation
id_key: uid
pypi-relab-long-name-version-1
xai-explainability-study-2024-a
asiapacificregionwide
wandb: true
wandb: Run data is saved locally
wandb_id: 20260101abcdef0123
wandb_api: https://api.wandb.ai
--wandb online
tok: gpt2
tok/s=1200
the token cls is the first
<key>reward</key>
<token>cls</token>
List<Token> tokens
<td>token</td><td>cls</td>
dapifier
""".splitlines()


# Forms of other programs, of code and of files, which no argument or setting of a program with our logger has
BEYOND = (
    *("mysql -u", "sshpass", "docker", "redis-cli", "curl -u", "?key=", "X-Amz", "hooks.slack", "sent Basic", "Cookie"),
    *('\\"api_key', "keys:\n", "password: str", "setdefault", "login(key", ".login(", "ApiKey"),
    *("machine ", "default login", "  password", "wandb login", "'login'", "login -k", "login --relogin"),
    *("--password\n", "--password \\\n", "[\n", "\u200b", "\u2060", "\u0430", "\u00ad", "n\u0303", "ｐ", "："),
    *("setenv DB", "auth=(\n", "<password", "<api_key", ": >-", ": |", "wandb_key:\n", "!!str", ": &a", "= \\\n"),
)
SHORT = {text: gone for text, gone in SECRETS.items() if not any(form in text for form in BEYOND)}


def compact(text: str) -> str:
    return logger._mask(text)


def test_there_are_enough_examples():
    assert len(SECRETS) >= 50
    assert len(SHORT) >= 50
    assert len(PLAIN) >= 50


@pytest.mark.parametrize(("text", "gone"), SECRETS.items())
def test_secrets_are_masked(text, gone):
    masked_text = mask(text)
    assert gone not in masked_text
    assert masks.MASK in masked_text
    assert mask(masked_text) == masked_text, "twice is once"


@pytest.mark.parametrize(("text", "gone"), SHORT.items())
def test_the_logger_that_was_copied_alone_masks_too(text, gone):
    masked_text = compact(text)
    assert gone not in masked_text
    assert mask(compact(masked_text)) == mask(masked_text)
    assert logger._masked({"a": [text]}) == {"a": [masked_text]}


@pytest.mark.parametrize("how", [mask, compact])
@pytest.mark.parametrize("text", PLAIN)
def test_all_else_stays(how, text):
    assert how(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("train.py --wandb-key X --lr 3", "train.py --wandb-key *** --lr 3"),
        ("--keys=a1,b2,c3 --lr 3", "--keys=*** --lr 3"),
        ("--api-keys a b c --lr 3", "--api-keys *** --lr 3"),
        ('{"api_key":"x","lr":0.1}', '{"api_key":***,"lr":0.1}'),
        ("Config(password=abc,lr=0.1)", "Config(password=***,lr=0.1)"),
        ("train.py '--password=it'\"'\"'s me' x", "train.py '--password=***' x"),
        ("Authorization: Bearer abcdefghij", "Authorization: ***"),
        ("https://me:pass@host.org/x", "https://***@host.org/x"),
        ("https://a.org/x?token=abc1&y=2", "https://a.org/x?token=***&y=2"),
        ("token=get(password='abc')", "token=get(password=***)"),
        (f"auth=('user', '{S}'), lr=3", "auth=***, lr=3"),
        (f"<a><password>{S}</password><lr>3</lr></a>", "<a><password>***</password><lr>3</lr></a>"),
        (f"wandb_key: >-\n  {HEX}\nlr: 3", "wandb_key: ***\nlr: 3"),
        (f"setenv WANDB_API_KEY {HEX}; ls", "setenv WANDB_API_KEY ***; ls"),
        ("secrets:\n  name: x", "secrets:\n  name: x"),
        (f"pass\u200bword=\u200b{S}, l\u200br=3", "pass\u200bword=\u200b***, l\u200br=3"),
        (f"машина, пароль: {S}, шаг 3", "машина, пароль: ***, шаг 3"),
        (f"密码：{S}，学习率：0.1", "密码：***，学习率：0.1"),
        (f"machine a.org login me password {S}\nmachine b.org", "machine a.org login me password ***\nmachine b.org"),
        (f"wandb login {HEX} && ls", "wandb login *** && ls"),
        (f"swanlab login -k {S} -h x", "swanlab login -k *** -h x"),
        (f"--password\n  {S}\nstep 3", "--password\n  ***\nstep 3"),
        ("--use-auth\nstep 3", "--use-auth\nstep 3"),
        ("--api-key\nstep 3", "--api-key\nstep 3"),
    ],
)
def test_what_stands_around_a_secret_stays(text, shown):
    assert mask(text) == shown


def test_data_is_masked_by_its_keys_and_words():
    data = {
        "api_key": S, "max_tokens": 512, "password": 1234, "tokens": 3, "use_auth": True, "api_keys": [S, S],
        "key": "lr", "nested": {"WANDB_KEY": S, "n": [1, "2"]}, "command": ["x", "--token", S, f"--password={S} b"],
        "--keys": None, "note": f"it was ghp_{S * 3}", "empty": {"secret": "", "token": "none"},
    }  # fmt: skip
    masked_data = masked(data)
    assert S not in json.dumps(masked_data)
    assert masked_data["command"] == ["x", "--token", "***", "--password=***"]
    assert (masked_data["max_tokens"], masked_data["password"], masked_data["tokens"], masked_data["use_auth"]) == (
        512,
        "***",
        3,
        True,
    )
    assert masked_data["key"] == "lr"
    assert masked_data["nested"] == {"WANDB_KEY": "***", "n": [1, "2"]}
    assert masked_data["empty"] == {"secret": "", "token": "none"}
    assert masked(masked_data) == masked_data


def test_words_of_a_login_and_disguised_names_are_masked_as_data():
    assert masked(["wandb", "login", HEX]) == ["wandb", "login", "***"]
    assert masked(["swanlab", "login", "-k", S, "-h", "box"]) == ["swanlab", "login", "-k", "***", "-h", "box"]
    assert masked(["x", "--api-keys", S, S, "--lr", "3"]) == ["x", "--api-keys", "***", "***", "--lr", "3"]
    assert logger._words(["x", "--api-keys", S, S, "--lr", "3"]) == ["x", "--api-keys", "***", "***", "--lr", "3"]
    assert masked(["--keys", "obs", "action", "a"]) == ["--keys", "obs", "action", "a"]
    assert masked(["--api-key", S, "a"]) == ["--api-key", "***", "a"]
    assert masked(["relab", "login", "brave-otter"]) == ["relab", "login", "brave-otter"]
    assert masked(["--pass\u200bword", S, f"p\u0430ssword={S}"]) == ["--pass\u200bword", "***", "p\u0430ssword=***"]
    assert masked({"密码": S, "пароль": 12, "pass\u200bword": S}) == dict.fromkeys(
        ("密码", "пароль", "pass\u200bword"), "***"
    )


def test_a_value_on_the_line_behind_its_flag_is_masked_when_lines_come_one_by_one():
    lines = masks.Lines()
    masked_lines = [
        lines(line) for line in ("train.py --password\n", f"  {S} --lr 3\n", "step 3\n", "--key\n", "step 4\n")
    ]
    assert masked_lines == ["train.py --password\n", "  *** --lr 3\n", "step 3\n", "--key\n", "step 4\n"]


WORDS = st.sampled_from([*SECRETS, *PLAIN, "--password", "token=", "'", '"', "\\", "[", "{", ",", "-", "***", "=", ":"])


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(WORDS | st.text(max_size=12), max_size=6), st.sampled_from(["", " ", "\n", ", ", "="]))
@pytest.mark.slow
def test_masking_is_idempotent(parts, between):
    text = between.join(parts)
    once = mask(text)
    assert mask(once) == once


def test_a_sentence_that_ends_in_machine_begins_no_netrc():
    text = "login is off on this machine\nmlp_keys='.*'\npassword login is switched off"
    assert mask(text) == text
    assert mask("machine api.wandb.ai\npassword s3cret") == "machine api.wandb.ai\npassword ***"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PLAIN), max_size=8))
def test_texts_without_secrets_keep_every_byte(lines):
    text = "\n".join(lines)
    assert mask(text) == text
    assert masked({"text": text, "lines": lines}) == {"text": text, "lines": lines}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["--password", "--wandb-key", "--api_token", "--pw"]),
       st.text(st.characters(codec="ascii", exclude_characters="\n\r\0"), min_size=1, max_size=40))  # fmt: skip
def test_a_word_of_a_shell_is_masked_to_its_end(flag, tail):
    secret = "s3" + tail.rstrip("\\")
    for words in (["x", f"{flag}={secret}", "y"], ["x", flag, secret, "y"]):
        shown, _, rest = mask(shlex.join(words)).partition("***")
        assert shown in (f"x {flag} ", f"x {flag}=", f"x '{flag}=")
        assert rest in (" y", "' y", ""), "a quote or a stroke in it may take what follows along"
    assert masked(["x", flag, secret, f"{flag}={secret}"]) == ["x", flag, "***", f"{flag}=***"]


def test_a_short_text_is_masked_once_and_a_long_one_is_not_kept():
    before = masks._mask_short.cache_info()
    assert mask("a cell: token=abcdef1") == mask("a cell: token=abcdef1") == "a cell: token=***"
    long = "x " * masks.SHORT + "token=abcdef1"
    assert mask(long) == mask(long) == "x " * masks.SHORT + "token=***"
    after = masks._mask_short.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 1)


HOSTILE = {
    "letters": "a", "blanks": " ", "a name and blanks": "token ", "assignments": "a=", "keys": "x_key=",
    "secrets": "password=", "open quotes": 'token="', "escapes": 'token=\\"', "colons": "a:", "urls": "a://",
    "users": "http://a:", "dots": "a.", "dashes": "-", "pem": "-----BEGIN PRIVATE KEY-----", "jwt": "eyJabcdefgh.",
    "brackets": "tokens=[", "flags": "--keys a ", "calls": "token=f(", "mysql": "mysql ", "curl": "curl -u ",
    "bearer": "bearer ", "commas": "api_keys=a,", "at": "a@", "lists": "keys:\n- ", "slashes": "\\",
    "logins": "wandb login ", "keys of logins": "a login -k ", "netrc": "machine a login b ", "machines": "machine ",
    "hosts": "machine a.b ", "lines": "--password\n", "signs": "密码", "signs with values": "密码：a，",
    "unseen": "\u200b", "disguised": "pass\u200bword=", "blank lines": "\n", "passe": "mot de ",
    "quotes": "'token=", "elements": "<token>", "ends": "<key>a</", "tuples": "auth=(", "scalars": "key: |\n ",
    "loose lists": "--keys a,", "loose words": "--keys token ", "tags": "key: !!a ", "setenv": "setenv A_KEY ",
    "tools": "wandb=", "basic": "basic YWJj ", "sk": "sk-a", "json": '"a_key": "b", ',
}  # fmt: skip


@pytest.mark.parametrize(("length", "seconds"), [(100_000, 1.0), pytest.param(1_000_000, 5.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", [mask, compact])
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_time_grows_with_the_length_alone(how, piece, length, seconds):
    text = (piece * (length // len(piece) + 1))[:length]
    began = time.process_time()
    how(text)
    assert time.process_time() - began < seconds, "of processor; a pattern that looks twice would take half a minute"


@pytest.mark.parametrize("module", [masks, secret_names])
def test_examples_in_docstrings_hold(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_a_type_in_brackets_opens_no_element():
    text = "List<Token> tokens\neos_token='</s>'"
    assert mask(text) == text
