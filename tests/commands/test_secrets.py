"""Does a secret that somebody typed, printed or set reach any file or answer that may travel?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import made_up
from relab import cli, logger
from relab.formats.read import find
from relab.formats.write.convert import TARGETS
from relab.record import history
from relab.record.run_folder import Record, append_event_to
from report.made import write_run

S = "Zq7hunter2Xy"
COMMAND = f"relab train ppo --wandb-key {S} '--password={S} {S}'"
PATCH = {"text": f"+api_key = '{S}'\n+lr = 3e-4\n", "bytes": 99, "sha256": "ab" * 32, "cut": False}
META = {"command": COMMAND, "intent": f"try token={S}", "patch": PATCH}
CONFIG = {"logger": {"api_key": S, "max_tokens": 512}}


def leaks(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and S.encode() in p.read_bytes())


@pytest.fixture
def stranger(tmp_path) -> Path:
    """A run that some other program wrote with all its secrets, beside a second one."""
    for name, value in (("a", 0.001), ("b", 0.002)):
        folder = write_run(
            tmp_path / "runs" / name, (10.0, 20.0, 30.0), config={**CONFIG, "algo": {"name": "ppo", "lr": value}}
        )
        meta = json.loads((folder / "meta.json").read_text())
        (folder / "meta.json").write_text(json.dumps({**meta, **META}))
        with open(folder / "events.jsonl", "a") as file:
            file.write(json.dumps({"kind": "error", "step": 1, "text": f"password={S}"}) + "\n")
    return tmp_path / "runs"


# ---- What is written


def test_a_record_is_stored_masked(tmp_path):
    folder = write_run(tmp_path / "a", (1.0,), meta=META)
    append_event_to(folder, "error", 1, text=f"login failed: password={S}")
    with Record.open(folder) as record:
        record.update_meta(intent=f"again, token={S}", why=f"ghp_{S * 3} is wrong")
    assert leaks(folder) == []
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["command"] == "relab train ppo --wandb-key *** '--password=***'"
    assert meta["patch"] == {**PATCH, "text": "+api_key = ***\n+lr = 3e-4\n"}, "size and hash are of the patch itself"


def test_settings_of_ones_own_run_stay_because_resume_needs_them(tmp_path):
    folder = write_run(tmp_path / "a", (1.0,), config=CONFIG)
    assert leaks(folder) == ["config.yaml"]
    assert history.load(folder).config["logger"] == {"api_key": "***", "max_tokens": 512}


def test_the_logger_keeps_no_secret(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--wandb-key", f"{S} {S}", f"--password={S} {S}", "--lr", "3e-4"])
    settings = {"api_key": S, "lr": 3e-4, "nested": {"tokens": 5, "password": [S]}, "url": f"https://me:{S}@host.org"}
    with logger.Logger(str(tmp_path / "a"), settings, intent=f"try token={S}") as log:
        log.log(1, x=1.0)
    assert leaks(tmp_path) == []
    kept = history.load(tmp_path / "a")
    assert kept.meta["command"] == "train.py --wandb-key *** --password=*** --lr 3e-4"
    foreign = kept.config["foreign"]
    assert (foreign["nested.tokens"], foreign["nested.password"]) == (5, ["***"])


def test_captured_output_is_masked(tmp_path, capfd):
    lines = [f"token={S}", "-----BEGIN RSA PRIVATE KEY-----", S, S, "-----END RSA PRIVATE KEY-----", "step=1 loss=2.0"]
    words = [
        "--runs",
        str(tmp_path),
        "--name",
        "a",
        "--",
        sys.executable,
        "-c",
        f"print({chr(10).join(lines)!r})",
        "--pw",
        S,
    ]
    assert cli.main(["capture", *words]) == 0
    assert S in capfd.readouterr().out, "on the screen it is the program's own"
    text = (tmp_path / "a" / "output.log").read_text()
    assert S not in text
    assert "step=1 loss=2.0" in text
    assert f"--pw {S}" not in (tmp_path / "a" / "meta.json").read_text()


# ---- What is read from a stranger, shown and passed on

HEX = "3f9a1c0b7d2e4f6a8b1c3d5e7f90a1b2c3d4e5f6"
SETTINGS = f"""\
env: MyEnv-v0
algo: AKIAIOSFODNN7EXAMPLE
wandb: {{0}}{HEX}
wandb_api: {{0}}{HEX}
wandb_key: >-
  {{0}}{HEX}
tok: {{0}}{HEX}
notes: "auth=('user', '{{0}}{HEX}')"
cmd: "setenv WANDB_API_KEY {{0}}{HEX}; export WANDB_API_KEY {{0}}{HEX}"
db: "<password>{{0}}{HEX}</password>"
"""


def test_two_runs_that_differ_in_their_secrets_show_none(tmp_path, capsys):
    for name in "ab":
        (tmp_path / "logs" / name).mkdir(parents=True)
        rows = "".join(f"{1000 * i},{3 * i}\n" for i in range(40))
        (tmp_path / "logs" / name / "progress.csv").write_text("global_step,episodic_return\n" + rows)
        (tmp_path / "logs" / name / "config.yaml").write_text(SETTINGS.format(name))
        (tmp_path / f"{name}.yaml").write_text(SETTINGS.format(name))
    assert cli.main(["report", str(tmp_path / "logs"), "--out", str(tmp_path / "page.html")]) == 0
    for suffix in ("", ".yaml"):
        one, other = (str(tmp_path / ("" if suffix else "logs") / f"{name}{suffix}") for name in "ab")
        assert cli.main(["diff", one, other]) == 0
    shown = [capsys.readouterr().out, *((tmp_path / f"page.{kind}").read_text() for kind in ("html", "md"))]
    for text in shown:
        assert not [part for part in (HEX, HEX[-8:], "iosfodnn7") if part in text.lower()]


@pytest.mark.parametrize(
    "words",
    [
        ["examine", "{}", "--json"],
        ["examine", "{}/a", "-v"],
        ["report", "{}", "--json"],
        ["compare", "{}", "--json"],
        ["diff", "{}/a", "{}/b", "--json"],
        ["runs", "{}", "--json"],
        ["next", "{}/a", "--json"],
    ],
    ids=lambda words: " ".join(words),
)
def test_no_answer_holds_a_secret(stranger, capsys, words):
    cli.main([word.format(stranger) for word in words])
    shown = capsys.readouterr()
    assert shown.out
    assert S not in shown.out + shown.err


@pytest.mark.parametrize("to", TARGETS)
def test_no_export_holds_a_secret(stranger, tmp_path, to):
    assert cli.main(["convert", str(stranger), "--to", to, "--out", str(tmp_path / "out")]) == 0
    assert leaks(tmp_path / "out") == []


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_no_page_holds_a_secret(stranger, tmp_path, full, capsys):
    for name in ("page.html", "page.md"):
        assert cli.main(["report", str(stranger / "a"), "--out", str(tmp_path / name), *full]) == 0
        assert S not in (tmp_path / name).read_text()


def test_no_entry_of_a_log_holds_a_secret(stranger, tmp_path, capsys):
    log = tmp_path / "LOG.md"
    assert cli.main(["note", str(stranger / "a"), "--into", str(log)]) == 0
    assert S not in log.read_text()
    assert "a" in log.read_text()


def test_a_foreign_command_of_an_experiment_is_kept_masked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(
        "import sys, json, os\nrun = sys.argv[sys.argv.index('--run') + 1]\n"
        "rows = 'rollout/ep_rew_mean,time/total_timesteps\\n1.0,10\\n2.0,20\\n'\n"
        "open(os.path.join(run, 'progress.csv'), 'w').write(rows)\n"
        "assert sys.argv[2] == 'Zq7hunter2Xy', sys.argv\n"
    )
    Path("e.yaml").write_text(
        "question: does it\nmetric: return/mean_100\ndirection: higher\nsmallest_effect: 0.1\nseeds: [0, 1]\n"
        f"command: {sys.executable} train.py --wandb-key {S} --run {{run}} --lr {{lr}} --seed {{seed}}\n"
        "variants: {a: {lr: 1}, b: {lr: 2}}\n"
    )
    code = cli.main(["experiment", "e.yaml", "--name", "x", "--json", "--yes"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert S not in shown.out
    assert leaks(tmp_path / "experiments") in ([], ["x/experiment.yaml"]), "what is to be run again stays in its file"


def test_a_queue_shows_no_secret_and_runs_with_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = f"import sys; print('password=' + sys.argv[2]); assert sys.argv[2] == {S[::-1]!r}[::-1]"
    assert cli.main(["queue", "add", "--", sys.executable, "-c", code, "--token", S]) == 0
    assert cli.main(["queue", "work", "--workers", "1"]) == 0
    capsys.readouterr()
    for words in (["--json"], [], ["show", "--json"], ["show"]):
        cli.main(["queue", *words])
    shown = capsys.readouterr().out
    assert S not in shown
    assert "1 done" in shown


def test_histories_are_masked_for_every_reader(stranger):
    for run in find.load_all(stranger).runs:
        assert S not in json.dumps([run.history.config, run.history.meta["command"], run.history.meta["intent"]])


def test_secrets_do_not_part_runs_that_are_the_same(tmp_path):
    for name, key in (("a", "k1"), ("b", "k2")):
        made_up.run(tmp_path / name, 10.0)
        path = tmp_path / name / "config.yaml"
        path.write_text(path.read_text() + f"wandb_key: {key}\n")
    one, other = (run.history.config for run in find.load_all(tmp_path).runs)
    assert one == other


def test_the_examples_run_without_relab_installed(tmp_path):
    """The logger masks by itself where it was copied next to a program."""
    (tmp_path / "logger.py").write_text(Path(logger.__file__).read_text())
    code = "import logger; logger.Logger('a', {'api_key': 'Zq7hunter2Xy'}).close(); print(logger.json)"
    done = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}", "--token", S],
                          cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert leaks(tmp_path / "a") == []
