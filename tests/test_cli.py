"""Does the command line do what it says, and say what went wrong?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from relab.cli import COMMANDS, GROUPS, REST, main
from where import ROOT

TINY = (
    "total_steps=512 algo.envs=8 algo.steps=16 algo.epochs=1 algo.minibatches=2 eval.every=256 eval.episodes=3"
).split()


def relab(*words: str, code: int = 0, capsys: pytest.CaptureFixture[str] | None = None) -> tuple[str, str]:
    assert main(words) == code
    streams = capsys.readouterr() if capsys else ("", "")
    return streams[0], streams[1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    relab("train", "ppo", "env=cartpole", "seed=0", *TINY, "--runs", str(root), "--name", "one", "--quiet")
    more = ["lr=1e-2", "algo.gamma=0.5", "eval.episodes=4"]
    words = [word for word in TINY if not word.startswith("eval.episodes")]
    relab("train", "ppo", "env=cartpole", "seed=1", *words, *more, "--runs", str(root), "--name", "two", "--quiet")
    return root


def test_help_names_every_command_and_needs_nothing_heavy(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = relab("help", "--all", capsys=capsys)
    for name, summary in COMMANDS.items():
        assert re.search(rf"^\w* +{name} +{re.escape(summary)}$", out, re.M), name
    short, _ = relab("--help", capsys=capsys)
    assert sorted([*REST, *(name for names in GROUPS.values() for name in names)]) == sorted(COMMANDS)
    assert all(re.search(rf"\b{name}\b", short) for name in COMMANDS), "what is not told is at least named"
    assert relab(capsys=capsys)[0] == short, "no words at all is a question too"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = relab(name, "--help", capsys=capsys)
    assert f"usage: relab {name}" in out
    assert f"  relab {name} " in out.partition("Examples")[2]


def test_train_prints_what_follows_from_the_config_and_where_the_record_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = relab("train", "ppo", "env=cartpole", *TINY, "--runs", str(tmp_path), capsys=capsys)
    assert re.search(r"^\d{4}-\d\d-\d\d-\w+-\w+  ppo on cartpole-v1, seed 0, config [0-9a-f]{12}$", out, re.M)
    assert "batch 128" in out
    assert "horizon 1/(1-gamma) 100" in out
    assert "updates per iteration 2" in out
    assert "random policy: return" in out
    assert len(re.findall(r"eval at .*: return det .* ± .*, sampled .* \(mean ± SE, 3 episodes each\)", out)) == 3
    assert "finished: total_steps reached; 512 steps" in out
    assert "\r" not in out, "plain lines where there is no terminal"


def test_train_as_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = relab("train", "ppo", "env=cartpole", *TINY, "--runs", str(tmp_path), "--json", capsys=capsys)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["kind"] for row in rows].count("iteration") == 4
    assert (rows[0]["kind"], rows[-1]["kind"], rows[-1]["status"]) == ("start", "end", "finished")
    assert rows[0]["folder"] == rows[-1]["folder"]


def test_settings_from_files_and_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.yaml").write_text("env: pendulum\nalgo:\n  lr: 3e-4\n  envs: 1_000\n")
    words = ["train", str(tmp_path / "my.yaml"), "seed=3", "--print-config"]
    out, _ = relab(*words, capsys=capsys)
    assert re.search(r"^algo.lr +0.0003 +file .*my.yaml$", out, re.M)
    assert re.search(r"^algo.envs +1000 +file .*my.yaml$", out, re.M)
    assert re.search(r"^seed +3 +command line$", out, re.M)
    assert re.search(r"^algo.clip +0.2 +defaults$", out, re.M)
    assert not list(tmp_path.glob("runs*"))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["trian"], 64, "no command 'trian'; the nearest is 'train'"),
        (["train", "ppo", "env=cartpol"], 64, "the nearest is 'cartpole-v1'"),
        (["train", "ppo", "env=cartpole", "learning_rate=1"], 64, "the nearest known one is `algo.lr`"),
        (["train", "ppo", "env=cartpole", "lr=fast"], 64, "`algo.lr` must be a number, but got `fast`"),
        (["train", "ppo", "env=cartpole", "minibatches=7"], 64, "16 * 64 = 1024 and minibatches = 7"),
        (["train", "ppo", "a2c", "env=cartpole"], 64, "one algorithm is expected, but got ppo, a2c"),
        (["train", "ppo", "env=cartpole", "--name", "../x"], 64, "must be one plain folder name"),
        (["train", "ppo", "env=cartpole", "--name", ".."], 64, "'..' begins with '.'"),
        (["train", "ppo", "env=cartpole", "--name", ""], 64, "'' is empty"),
        (["train", "ppo", "env=cartpole", "--name", "a\0b"], 64, "cannot be printed"),
        (["train", "ppo", "env=cartpole", "--name", "x" * 300], 64, "is 300 bytes long"),
        (["capture", "--name", "..", "--", "true"], 64, "'..' begins with '.'"),
        (["train", "ppo", "env=gym:NoSuch-v0"], 64, "NoSuch"),
        (["train", "ppo", "env=cartpole", "device=mps"], 64, "mps is not available here; try cpu"),
        (["train", "missing.yaml"], 2, "missing.yaml"),
        (["train", "--bogus"], 64, ""),
        (["resume", "nobody"], 2, "no run `nobody`"),
        (["diff", "nobody", "nowhere"], 2, "no run `nobody`"),
    ],
)
def test_errors_name_the_condition_and_exit_with_their_kind(
    words: list[str],
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _, err = relab(*words, code=code, capsys=capsys)
    assert says in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("runs/*")), "nothing is left behind"


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['safetensors'] = None; from relab.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", hide, "train", "ppo", "env=cartpole", "--runs", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 64
    assert done.stderr == "relab: `relab train` needs safetensors: pip install 'relab[train]'\n"
    assert not list(tmp_path.iterdir())


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`relab --help | head -1`"""
    words = f"{sys.executable} -m relab.cli --help | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {words}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_diff_shows_only_what_differs_biggest_first(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = relab("diff", "one", "two", "--runs", str(runs), capsys=capsys)
    keys = [line.split()[0] for line in out.splitlines()]
    assert keys == ["algo.lr", "algo.gamma", "eval.episodes", "seed"]
    assert "algo.lr        0.003 -> 0.01  (x3.333)" in out
    out, _ = relab("diff", "one", "one", "--runs", str(runs), capsys=capsys)
    assert re.fullmatch(r"no difference \(\d+ settings compared\)\n", out)
    out, _ = relab("diff", "one", "two", "--runs", str(runs), "--json", capsys=capsys)
    assert json.loads(out)["changes"][0]["key"] == "algo.lr"


def test_eval_is_on_fresh_seeds_and_kept_as_an_event(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (runs / "one" / "evals.jsonl").read_bytes()
    words = ["eval", "one", "--runs", str(runs), "--episodes", "10", "--json"]
    first, again, other = (json.loads(relab(*words, "--seed", s, capsys=capsys)[0]) for s in ("0", "0", "1"))
    assert first == again
    seeds = [[e["seed"] for e in evaluation["episodes"]["det"]] for evaluation in (first, other)]
    trained_on = {e["seed"] for line in before.splitlines() for e in json.loads(line)["episodes"]}
    assert len(set(seeds[0]) | set(seeds[1])) == 20
    assert not trained_on & set(seeds[0] + seeds[1])
    det = [e["return"] for e in first["episodes"]["det"]]
    assert first["modes"]["det"]["mean"] == pytest.approx(np.mean(det))
    assert first["modes"]["det"]["low"] < np.mean(det) < first["modes"]["det"]["high"]
    assert (runs / "one" / "evals.jsonl").read_bytes() == before, "the run's own record is not touched"
    events = [json.loads(line) for line in (runs / "one" / "events.jsonl").read_text().splitlines()]
    assert [event["kind"] for event in events].count("evaluation") == 3
    out, _ = relab("eval", "one", "--runs", str(runs), "--episodes", "10", capsys=capsys)
    assert "chosen as best for eval/return_det = " in out
    assert "95 % t-interval, n = 10" in out


def test_video_films_the_recorded_episode(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = relab("video", "one", "--runs", str(runs), "--episode", "worst", capsys=capsys)
    path = Path(out.partition(": seed")[0])
    assert "as recorded" in out
    assert path.parent == runs / "one" / "media"
    frames, _ = imageio_ffmpeg.count_frames_and_secs(str(path))
    rows = [json.loads(line) for line in (runs / "one" / "evals.jsonl").read_text().splitlines()]
    best = json.loads((runs / "one" / "checkpoints" / "best.json").read_text())
    lengths = {e["length"] for r in rows if r["step"] == best["step"] and r["mode"] == "det" for e in r["episodes"]}
    assert frames == min(lengths), "for cartpole the worst episode is the shortest"


def test_checkpoints_are_filmed_in_one_world(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Side by side on the dashboard: the same seed at every checkpoint, and the same film twice."""
    from relab.formats.read import find
    from relab.runs import grouping
    from relab.web import films

    words = ["video", "one", "--runs", str(runs), "--checkpoint", "all", "--seed", "7", "--fps", "30"]
    out, _ = relab(*words, capsys=capsys)
    lines = out.splitlines()
    kept = sorted(path.name for path in (runs / "one" / "checkpoints").glob("step-*"))
    assert len(lines) == len(kept) > 1
    assert relab(*words, capsys=capsys)[0] == out
    (loaded,) = find.load_all(runs / "one").runs
    rows = films.of_runs([grouping.of_loaded(loaded, "one")])
    row = dict(rows)["world of seed 7, deterministic actions"]
    assert [f"step-{film.step:012d}" for film in row] == kept
    assert main(["video", "one", "--runs", str(runs), "--checkpoint", "all"]) == 64


def test_eval_and_video_take_another_environment(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "one", "env.horizon=9", "--runs", str(runs), "--episodes", "5", "--json"]
    body = json.loads(relab(*words, capsys=capsys)[0])
    assert body["changes"] == ["env.horizon=9"]
    assert max(e["length"] for e in body["episodes"]["det"]) <= 9
    gif = tmp_path / "short.gif"
    out, _ = relab("video", "one", "env.horizon=9", "--out", str(gif), "--runs", str(runs), capsys=capsys)
    assert "fresh seeds" in out
    assert gif.read_bytes()[:6] == b"GIF89a"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["video", "one", "--episode", "99"], "must be worst, best, median or 0..2"),
        (["video", "one", "--mode", "greedy"], "must be one of det, sampled"),
        (["video", "one", "lr=1"], "only parameters of the environment (env.key=value)"),
        (["eval", "one", "env.name=pendulum"], "the policy sees 4 numbers"),
        (["eval", "one", "env.lenght=7"], "env.lenght"),
        (["eval", "one", "--checkpoint", "7"], "has no checkpoint 'step-000000000007'"),
        (["eval", "one", "--checkpoint", "../../x"], "has no checkpoint"),
    ],
)
def test_what_cannot_be_shown(words: list[str], says: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*words, "--runs", str(runs)])
    assert code in (64, 2)
    assert says in capsys.readouterr().err


def test_diff_lets_no_control_characters_of_a_config_reach_the_terminal(tmp_path, capsys):
    for name, word in (("a", "tanh"), ("b", '"\\e]0;title\\a\\e[2J"')):
        (tmp_path / f"{name}.yaml").write_text(f"algo: {{activation: {word}}}\n")
    assert main(["diff", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]) == 0
    said = capsys.readouterr().out
    assert "algo.activation  tanh -> ?]0;title??[2J" in said


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_speaks_to_people(name, capsys):
    """No types in braces, no nested brackets, no default that says nothing."""
    out, _ = relab(name, "--help", capsys=capsys)
    for slip in ("{None}", "[[", " [STR ", " [INT ", " [PATH [", "(default: None)", "(default: False)", "(default: )"):
        assert slip not in out


@pytest.mark.parametrize("words", ["faults --seeds INT ...", "note --search STR ...", "gate --floor STR ...",
                                   "video --mode {det,sampled}", "completion SHELL bash, zsh or fish"])  # fmt: skip
def test_help_says_what_an_option_takes(words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    name, *shown = words.split()
    assert " ".join(shown) in " ".join(relab(name, "--help", capsys=capsys)[0].split())


def test_a_paragraph_of_a_commands_description_has_no_line_ends_of_the_source(capsys):
    text = relab("runs", "--help", capsys=capsys)[0]
    assert "so are outcome, steps, size (100MB), age (7d)" in text


@pytest.mark.parametrize("verb", ["add", "work", "pause", "resume", "cancel", "retry", "show", "clear", "orphans"])
def test_each_verb_of_the_queue_has_an_example(verb, capsys):
    assert f"Examples:\n  relab queue {verb}" in relab("queue", verb, "--help", capsys=capsys)[0]


def test_help_of_a_command_is_that_commands_help(capsys):
    by_word, _ = relab("help", "train", capsys=capsys)
    assert by_word == relab("train", "--help", capsys=capsys)[0]
    assert "usage: relab queue add" in relab("help", "queue", "add", capsys=capsys)[0]
    assert "the nearest is 'train'" in relab("help", "trian", code=64, capsys=capsys)[1]


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("kl", "policy/kl (metric"), ("approx_kl", "policy/kl (metric"), ("ep_rew_mean", "return/mean_100 (metric"),
        ("dqn", "dqn (algorithm)"), ("sac", "sac (algorithm)"), ("ppo", "ppo (algorithm)"),
        ("dreamer", "dreamer (algorithm)"),
        *((word, f"{word}: ") for word in ("gae", "td3", "iql", "awr", "a2c", "cql", "off-policy")),
    ],
)  # fmt: skip
def test_words_of_the_field_are_explained(word, first, capsys):
    assert relab("explain", word, capsys=capsys)[0].startswith(first)


def test_a_word_that_is_near_none_gets_no_guess(capsys):
    _, err = relab("explain", "zzz", code=2, capsys=capsys)
    assert err == "relab: relab knows no 'zzz'\n"


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not there")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("relab tr", "train"), ("relab help tr", "train"), ("relab train --dr", "--dry-run"),
        ("relab train ppo gam", "gamma="), ("relab train ppo env = cartpole-", "cartpole-v1"),
        ("relab explain policy/clip_s", "policy/clip_share"), ("relab examine --fa", "--fail-on"),
    ],
)  # fmt: skip
def test_the_shell_completes(typed, offered, tmp_path, capsys):
    (tmp_path / "relab.sh").write_text(relab("completion", "bash", capsys=capsys)[0])
    words = " ".join(f"'{word}'" for word in typed.split())
    last = len(typed.split()) - 1
    script = f"source relab.sh; COMP_WORDS=({words}); COMP_CWORD={last}; _relab; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [offered]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command(shell, capsys):
    script, _ = relab("completion", shell, capsys=capsys)
    assert all(name in script for name in COMMANDS)
    assert "env=cartpole" in script or "cartpole" in script


def test_one_word_for_saying_what_would_be_done(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("step,reward\n1,2\n2,3\n")
    (tmp_path / "question.yaml").write_text((ROOT / "examples" / "demo.yaml").read_text())
    before = sorted(path.name for path in tmp_path.iterdir())
    for line in ("train ppo env=cartpole --dry-run", "experiment question.yaml --dry-run", "study fish --dry-run",
                 "convert log.csv --to csv --out out --dry-run", "capture --dry-run -- false"):  # fmt: skip
        relab(*line.split(), capsys=capsys)
        assert sorted(path.name for path in tmp_path.iterdir()) == before, line


def test_numbers_that_overflow_are_no_warning_and_no_traceback(tmp_path):
    (tmp_path / "huge.csv").write_text("step,return,loss\n1,1e308,1e308\n2,-1e308,inf\n3,1e308,-inf\n")
    (tmp_path / "nan.csv").write_text("step,return,loss\n1,nan,nan\n2,nan,nan\n3,nan,nan\n")
    for name in ("huge", "nan"):
        for command in ("report", "examine"):
            words = [sys.executable, "-m", "relab.cli", command, f"{name}.csv"]
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), (name, command)
