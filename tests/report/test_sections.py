"""Does a report say what the run folders hold, relative to their noise, and admit what it cannot know?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import small_runs as runs
from relab import cli
from relab.base.jsonl import RecordError, encode
from relab.health.engine import NotChecked
from relab.health.rule import Finding
from relab.record import clock
from relab.record.history import Column
from relab.report import content, course, curves, render, sections, tables
from relab.report.page import Facts
from relab.report.parts import ConfigChanges
from relab.report.share import Cleaner
from relab.runs import grouping
from report.made import write_run
from where import fixtures, histories

UP = (10.0, 60.0, 150.0, 300.0, 400.0)


@pytest.mark.parametrize(
    ("evals", "spread", "start"),
    [
        (UP, 2.0, "Learned: 10 → 400 (random 20)."),
        (
            (10.0, 200.0, 400.0, 60.0, 25.0),
            2.0,
            "Lost what it had learned, from step 3,000 on (best evaluation 400): 10 → 25 (random 20).",
        ),
        (
            (10.0, 200.0, 400.0, 300.0),
            2.0,
            "Lost part of what it had learned after 2,000 steps (best evaluation 400): 10 → 300",
        ),
        ((10.0, 22.0, 18.0, 21.0), 3.0, "Did not learn: 10 → 21 (random 20)."),
        ((10.0, 22.0, 18.0, 21.0), 30.0, "Cannot tell whether it learned, the noise is too large: 10 → 21"),
        ((19.0, 20.0, 9.0, 9.0), 0.1, "Did not learn, ends worse than a random policy: 19 → 9"),
        ((19.0, 20.0, 9.0), 0.1, "Did not learn: 19 → 9"),  # one bad evaluation is not an end
        ((10.0,), 2.0, "Too few values or steps to tell: 10 (random 20)."),
        ((), 2.0, "No result yet: no evaluation was made and no episode has ended."),
        ((10.0, 50.0, math.nan, math.nan), 2.0, "Broke: the return is not a number (nan) from step 2,000 on."),
        ((10.0, 380.0, 400.0, 390.0), 120.0, "Learned: 10 → 390"),  # the drop is within the noise
    ],
)
def test_the_sentence(tmp_path, evals, spread, start):
    assert sections.build(write_run(tmp_path / "run", evals, spread=spread)).sentence.startswith(start)


def test_above_random_is_required(tmp_path):
    """From 5 to 19 is a gain over the start, but not over a random policy."""
    data = sections.build(write_run(tmp_path / "run", (5.0, 12.0, 19.0), spread=0.1))
    assert data.sentence.startswith("Did not learn: 5 → 19 (random 20)")


def test_a_log_that_begins_after_the_start_is_held_against_random():
    """Stable-Baselines3 evaluates first when it has learned for a while: no gain since then is not nothing learned."""
    folder = fixtures() / "sb3" / "ppo_cartpole_seed0"
    sentence = "Better than random, but no gain beyond the noise (−"
    assert sections.build(folder).sentence.startswith(sentence)


def test_rows_of_training_are_not_called_episodes(tmp_path, capsys):
    rows = "".join(f"{i * 10},{i}\n" for i in range(50))
    (tmp_path / "a.csv").write_text("global_step,return\n" + rows)
    (tmp_path / "a.json").write_text('{"zeta": 1, "lr": 0.1}')
    assert cli.main(["note", str(tmp_path / "a.csv")]) == 0
    shown = capsys.readouterr().out
    assert "| 1 | - | return/mean" in shown
    assert shown.index("| algo.lr | 0.1 |") < shown.index("| foreign.zeta | 1 |")


def test_solved_is_told_with_its_bias(tmp_path):
    folder = write_run(tmp_path / "run", UP, config={"eval": {"stop_at": 390.0}})
    data = sections.build(folder)
    assert data.sentence == "Learned: 10 → 400 (random 20), solved (390) after 4,000 steps."
    assert "training stopped at the first good evaluation, so its value is picked high" in data.not_known
    other = write_run(tmp_path / "other", UP, config={"eval": {"stop_at": 900.0}})
    assert sections.build(other).sentence.endswith("900 not reached.")


def training_only(folder, values):
    """What a foreign tool leaves: one number per row, neither episodes nor meta.json."""
    folder.mkdir()
    rows = [encode({"step": i, "axis": "agent_steps", "return/mean": float(v)}) for i, v in enumerate(values)]
    (folder / "metrics.jsonl").write_bytes(b"".join(rows))
    return folder


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((2, 5), "Too few values or steps to tell: training return 2 → 5."),
        (
            (2, 9, 1, 8, 2, 9, 3, 5),
            "No gain since the first value (what random earns is not known): training return 5.5 → 5.",
        ),
        ((2, 12, 21, 33, 41, 52, 60), "Learned: training return 7 → 60."),
    ],
)
def test_without_episodes_the_curve_gives_the_noise(tmp_path, values, sentence):
    data = sections.build(training_only(tmp_path / "run", values))
    assert data.sentence == sentence
    assert "no evaluations: judged by training episodes, sampled actions" in data.not_known


def test_broken_files_are_reported_not_raised(tmp_path):
    folder = write_run(tmp_path / "run", UP)
    (folder / "meta.json").write_text('{"seed": [1], "spec": 5, "machine": [], "patch": {"bytes": 3}, "parent": 5}')
    (folder / "config.yaml").write_text("eval: 5\nalgo: []\nenv: {name: [a]}\ntotal_steps: x\n")
    with open(folder / "evals.jsonl", "ab") as file:
        file.write(b'{"step":9,"mode":"det","episodes":5}\n{"mode":["det"]}\nnot json\n')
    data = sections.build(folder)
    assert data.sentence == "Learned: 10 → 400."
    assert "3 places in the logs could not be read (the run's own part says which)" in data.not_known


def test_one_seed_has_no_interval(tmp_path):
    (outcome,) = sections.build(write_run(tmp_path / "run", UP)).outcome
    assert (outcome.value, outcome.seeds, outcome.episodes) == ("400", 1, "10")
    assert outcome.sure.startswith("no interval from one seed; over its episodes ± 0.6667")


def test_seeds_are_one_group_with_an_interval_and_a_band(tmp_path):
    for seed, last in enumerate((380.0, 390.0, 400.0, 410.0, 420.0)):
        write_run(tmp_path / f"s{seed}", (*UP[:-1], last), seed=seed)
    data = sections.build(tmp_path)
    (outcome,) = data.outcome
    assert outcome.value == "400 [380.4, 419.6]"  # 400 ± 2.776 * 15.81 / sqrt(5)
    assert data.first.sentence == "Learned on all 5 seeds: 10 → 400 (mean of seeds, random 20)."
    (group,) = data.curve.groups
    assert (len(group.lines), group.band.label) == (5, "mean, 95% interval, n = 5 seeds")
    assert (group.band.x, group.band.mean[-1]) == ([0, 1000, 2000, 3000, 4000], 400.0)


def test_a_repeated_seed_is_no_second_sample(tmp_path):
    for i, seed in enumerate((0, 1, 1)):
        write_run(tmp_path / f"r{i}", UP, seed=seed)
    data = sections.build(tmp_path)
    assert (data.outcome[0].seeds, data.curve.groups[0].band) == (2, None)
    assert "1 run repeats a seed of its config and is not counted in the outcome" in data.not_known
    assert data.outcome[0].sure == "all 2 seeds equal: no interval"


def test_groups_are_named_by_what_differs(tmp_path):
    for name, lr in (("low", 0.001), ("high", 0.1)):
        for seed in range(2):
            write_run(tmp_path / f"{name}-s{seed}", UP, seed=seed, config={"algo": {"name": "ppo", "lr": lr}})
    data = sections.build(tmp_path)
    assert [o.label for o in data.outcome] == ["high", "low"]
    assert data.config.rows == [["algo.lr", "0.1", "0.001"]]


def test_config_against_the_parent(tmp_path):
    write_run(tmp_path / "first", UP)
    folder = write_run(tmp_path / "second", UP, config={"algo": {"name": "ppo", "lr": 0.002}}, meta={"parent": "first"})
    data = sections.build(folder)
    assert data.config == ConfigChanges("Config against its parent", ["key", "parent", "this run"],
                                           [["algo.lr", "0.001", "0.002"]])  # fmt: skip
    orphan = write_run(tmp_path / "alone" / "third", UP, meta={"parent": "gone"})
    data = sections.build(orphan)
    assert data.config.rows == [["algo.lr", "0.001", "command line"]]  # from provenance: made-v1 has no preset
    assert "the parent was not found beside the run" in data.not_known


def test_running_and_stale_runs(tmp_path):
    folder = write_run(tmp_path / "run", UP, status="running")
    assert sections.build(folder).sentence.startswith("Still running at 4k of 10k steps. So far: learned: 10 → 400")
    assert sections.build(folder, now=4e9).sentence.startswith("Stale at 4k steps. Learned: 10 → 400")


def test_an_experiment_answers(tmp_path):
    write_run(tmp_path / "runs" / "a", UP)
    (tmp_path / "answer.json").write_bytes(encode({"question": "Is it?", "answers": [{"text": "Yes."}]}))
    assert sections.build(tmp_path).sentence == sections.build(tmp_path / "runs").sentence == "Is it? Yes."


def test_findings_of_one_rule_are_shown_once(tmp_path):
    write_run(tmp_path / "a", UP)
    findings = [Finding("m", slug="high-kl", severity="warning", run=run) for run in ("a", "b", "c")]
    shared = [Finding("m", slug="other", status="also-in-reference")]
    data = sections.build(tmp_path, Facts(findings + shared))
    assert [f.where for f in data.findings] == ["a and 2 more"]
    assert (data.more_findings, len(data.sections[1].tables[0].rows)) == (2, 3), "as examine counts them"


def test_metrics_have_a_slope_with_its_error(tmp_path):
    data = sections.build(write_run(tmp_path / "run", [10.0 + 5 * i for i in range(20)], spread=0.1))
    core = next(s for s in data.sections if s.title == "Core metrics")
    row = next(row for row in core.tables[0].rows if row[0].endswith("(return/mean)"))
    assert row[:5] == ["training return (return/mean)", "105", "10", "105", "82.5"]
    assert row[5].startswith("5 ± ")
    assert row[6:] == ["10"], "no column for values that are not finite, where all are"


def test_nan_is_counted_and_not_averaged(tmp_path):
    data = sections.build(write_run(tmp_path / "run", (1.0, math.nan, 3.0)))
    core = next(s for s in data.sections if s.title == "Core metrics")
    assert core.tables[0].rows[0][:5] == ["training return (return/mean)", "3", "1", "3", "2"]
    assert core.tables[0].rows[0][-1] == "1"


def test_time_of_a_resumed_run_adds_up(tmp_path):
    from relab.record import history
    from relab.record.run_folder import Record

    folder = write_run(tmp_path / "run", UP)  # 8 seconds
    with Record.open(folder) as record:
        record.append_timing(5000, {"time/elapsed_s": 3.0})
    assert clock.elapsed(history.load(folder)) == 11.0


def test_a_speed_from_a_busy_machine_is_marked():
    from relab.runs import grouping

    said = {}
    for name in ("faulty/busy-machine", "healthy/cartpole"):
        speed = course.throughput(grouping.load(histories() / name)[0].runs[0])
        said[name] = " ".join(speed.lines)
    assert "the machine was busy in 75% of the rows (load 6 on 2 cores)" in said["faulty/busy-machine"]
    assert "busy" not in said["healthy/cartpole"]


def test_no_run_is_an_error(tmp_path):
    with pytest.raises(RecordError, match="no runs at or below"):
        sections.build(tmp_path)


def test_a_real_run(tmp_path):
    runs.run(tmp_path / "run")
    before = sorted(p.name for p in (tmp_path / "run").iterdir())
    data = sections.build(tmp_path / "run")
    titles = [s.title for s in data.sections]
    assert titles == ["Run info", "Health", "Curves", "Scale checks", "Core metrics", "All other metrics", "Samples",
                      "Evaluations", "Throughput", "Events", "Artefacts", "Next steps"]  # fmt: skip
    assert data.budget[0].steps == "2.05k steps"
    assert ["eval.episodes", "20", "4"] in data.config.rows
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == before, "reading writes nothing"


# ---- Safe to share


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("relab train --api-key abc123 x", "relab train --api-key *** x"),
        ("WANDB_API_KEY=deadbeef relab", "WANDB_API_KEY=*** relab"),
        ("password: 'a b' rest", "password: *** rest"),
        ("https://me:pass@host.org/x", "https://***@host.org/x"),
        ("Authorization: Bearer abcdefghij", "Authorization: ***"),
        ("see /home/ada/secret/run.yaml now", "see .../run.yaml now"),
        ("C:\\Users\\ada\\x.py", ".../x.py"),
        ("eval/return_det 1 / 2", "eval/return_det 1 / 2"),
        ("on bighost alone", "on (name) alone"),
        ("file:///home/ada/x.csv", ".../x.csv"),
        ("rsync bighost:/home/ada/x", "rsync (name):.../x"),
        ("at /home/ada, in ../home/ada/x, ~ada/y, ~/z", "at .../(name), in ../home/(name)/x, ~(name)/y, ~/z"),
        ("C:/Users/ada/x.py", ".../x.py"),
        ("\\\\server\\share\\a.txt", ".../a.txt"),
        ("by ada@example.org, ssh ada@box: acc@5", "by (name), ssh (name): acc@5"),
        ("cat </home/ada/in", "cat <.../in"),
        ("A=/home/ada/lib:/opt/x https://a.org/b/c", "A=.../lib:.../x https://a.org/b/c"),
        ("a\x1b[31mb\u202ec", "a\ufffd[31mb\ufffdc"),
    ],
)
def test_texts_are_made_safe(text, safe):
    assert Cleaner([], {"bighost"}).text(text) == safe


def test_a_secret_beside_its_key_is_masked():
    rows = [["env.api_key", "abc", "null"], ["max_tokens", "512"], ["lr", "abc"]]
    assert Cleaner([], set()).clean({"rows": rows, "token": "a1c"}) == {
        "rows": [["env.api_key", "***", "null"], ["max_tokens", "512"], ["lr", "abc"]],
        "token": "***",
    }


def test_paths_below_the_folder_become_relative(tmp_path):
    cleaner = Cleaner([tmp_path], set())
    assert cleaner.text(f"--runs {tmp_path}/runs --at {tmp_path}") == "--runs runs --at ."
    assert Cleaner([tmp_path], set(), full=True).text(f"at {tmp_path}/x") == f"at {tmp_path}/x"


def test_nothing_of_the_machine_is_in_the_data(tmp_path):
    meta = {"machine": {"host": "bighost"}, "command": "relab train --runs /home/ada-l/runs --token t0psecret",
            "patch": {"text": "+secret line", "bytes": 12, "sha256": "ab" * 32, "cut": False}}  # fmt: skip
    folder = write_run(tmp_path / "run", UP, meta=meta)
    shared, full = (str(sections.build(folder, full=full)) for full in (False, True))
    for word in ("bighost", "ada-l", "t0psecret", "+secret line", str(tmp_path)):
        assert word not in shared
    assert all(word in full for word in ("bighost", "/home/ada-l/runs", "+secret line"))
    assert "t0psecret" not in full, "secrets are masked when a run is read, for oneself too"
    assert "sha256 abababab" in shared
    assert "'host'" not in shared


# ---- The first screen


def cartpoles(tmp_path, lasts, **more):
    spec = {
        "env": "cartpole-v1",
        "reward_low": 1.0,
        "reward_high": 1.0,
        "horizon": 500,
        "random": {"return_mean": 20.0},
    }
    for seed, last in enumerate(lasts):
        config = {"algo": {"name": "ppo", "lr": 0.001}, "env": {"name": "cartpole-v1"}}
        write_run(tmp_path / f"s{seed}", (10.0, 200.0, last), seed=seed, config=config, meta={"spec": spec}, **more)
    return sections.build(tmp_path)


def test_no_interval_and_no_band_leaves_what_is_possible(tmp_path):
    data = cartpoles(tmp_path, (500.0, 500.0, 500.0, 500.0, 400.0), spread=0.0)
    assert data.outcome[0].value.endswith(", 500]")
    (band,) = [group.band for group in data.curve.groups]
    assert max(band.high) <= 500
    assert min(band.low) >= 1
    kl = curves.possible("policy/kl", grouping.load(tmp_path)[0].runs)
    assert kl[0] == 0.0
    assert curves.band([curves.Line("", i, [0.0], [0.001 * i * i]) for i in range(5)], kl).low == [0.0]


def test_an_evaluation_of_500_has_no_interval_above_it(tmp_path):
    data = cartpoles(tmp_path, (495.0,), spread=5.0)
    rows = next(part for part in data.sections if part.title == "Evaluations").tables[0].rows
    assert rows[-1][3] == "[491.2, 498.8]"
    data = cartpoles(tmp_path / "b", (499.0,), spread=1.0)
    rows = next(part for part in data.sections if part.title == "Evaluations").tables[0].rows
    assert rows[-1][3].startswith("[498.2, ")
    assert float(rows[-1][3].strip("[]").split(", ")[1]) <= 500


def test_evaluations_that_say_the_same_are_one_row():
    rows = [["0", "20", "9"], ["10", "20", "500"], ["20", "20", "500"], ["30", "20", "500"], ["40", "20", "9"]]
    assert tables.together(rows) == [rows[0], ["10 to 30 (3 times)", "20", "500"], rows[4]]


def test_what_is_missing_is_told_of_a_run_only_where_there_are_several():
    one = [NotChecked("a", "run", "time/sps"), NotChecked("b", "run", "time/sps")]
    assert tables.unchecked(one).head == ["missing", "rules that need it"]
    assert tables.unchecked(one).rows == [["time/sps", "a, b"]]
    both = [*one, NotChecked("a", "other", "time/sps")]
    assert tables.unchecked(both).head == ["missing", "rules that need it"], "all lack it"
    assert tables.unchecked([*both, NotChecked("c", "other", "value/loss")]).rows[-1] == ["value/loss", "c", "other"]


def test_large_counters_have_no_exponent():
    column = Column(np.arange(20), np.linspace(1e5, 1.32e6, 20))
    assert tables.metric_row("data/sim_steps", column)[1:4] == ["1.32M", "100,000", "1.32M"]


def test_returns_outside_of_what_the_environment_says_are_not_cut(tmp_path):
    data = cartpoles(tmp_path, (900.0, 950.0, 1000.0, 1100.0, 1200.0))  # rewards were scaled
    assert max(data.curve.groups[0].band.high) > 1000


def test_two_seeds_are_shown_as_two_seeds(tmp_path):
    data = cartpoles(tmp_path, (100.0, 480.0))
    (outcome,) = data.outcome
    assert outcome.value == "290"
    assert outcome.sure == "mean of 2 seeds, from 100 to 480; no interval under 5 seeds"
    assert data.curve.groups[0].band is None


def test_the_first_words_are_algorithm_and_environment(tmp_path):
    first = cartpoles(tmp_path, (500.0,) * 5).first
    assert (first.task, first.sentence.split(":")[0]) == ("PPO on CartPole-v1", "Learned on all 5 seeds")


def test_each_environment_has_a_panel_and_a_card_of_its_own(tmp_path):
    for env in ("CartPole-v1", "Pendulum-v1"):
        for seed in range(2):
            config = {"algo": {"name": "ppo"}, "env": {"name": env}}
            write_run(tmp_path / f"{env}-s{seed}", UP, seed=seed, config=config)
    data = sections.build(tmp_path)
    assert [(panel.env, len(panel.curve.lines)) for panel in data.panels] == [("CartPole-v1", 2), ("Pendulum-v1", 2)]
    said = "CartPole-v1: learned on both seeds, ends at 400; Pendulum-v1: learned on both seeds, ends at 400."
    assert data.first.sentence == said, "short: the rest stands with the outcome"
    page = render.html(data)
    assert page.index('class="low"') < page.index("<h2>Findings</h2>") < page.index('class="side"'), "no empty column"
    assert page.count("<h3>") == 2
    assert "CartPole-v1: last evaluated return" in page


def write_grid(folder: Path, name: str = "{i}{seed}x") -> Path:
    """Two step sizes on two environments, five seeds each; the runs' names say nothing, if not told to."""
    arms = [("Pendulum-v1", 0.1), ("CartPole-v1", 0.2), ("CartPole-v1", 0.1), ("Pendulum-v1", 0.2)]
    random = {"return_mean": 20.0, "return_std": 8.0, "n": 100}
    meta = {"spec": {"random": random, "reward_low": 1.0, "reward_high": 1.0, "horizon": 500}}
    for i, (env, lr) in enumerate(arms):
        for seed in range(5):
            config = {"algo": {"name": "ppo", "lr": lr}, "env": {"name": env}}
            called = name.format(i=i, seed=seed, env=env, lr=lr)
            write_run(folder / called, [v + lr * seed for v in UP], seed=seed, config=config, meta=meta)
    return folder


def test_over_environments_a_config_has_no_hash_for_a_name(tmp_path):
    """Where names hold the environment the profile's lines were "ppo ed34ee" and the like, as wide as a page."""
    folder = write_grid(tmp_path / "grid", "ppo-{env}-lr{lr}-s{seed}")
    data = sections.build(folder, content.content([folder]))
    figure = [part for part in data.sections if part.title == "Comparison"][-1].figures[0]
    assert (figure.title, {row.label for row in figure.rows}) == ("2 environments", {"lr=0.1", "lr=0.2"})
    assert ".thirds > :only-child { max-width:" in render.html(data)


def test_a_config_has_one_short_name_and_one_colour_in_all_panels(tmp_path):
    folder = write_grid(tmp_path / "grid")
    data = sections.build(folder, content.content([folder]))
    named = [{group.label: group.place for group in panel.curve.groups} for panel in data.panels]
    assert named[0] == named[1]
    assert sorted(named[0]) == ["lr=0.1", "lr=0.2"]
    compared = [part for part in data.sections if part.title == "Comparison"]
    for part in compared:
        assert {(row.label, row.place) for drawn in part.figures for row in drawn.rows} <= set(named[0].items())
        assert "on CartPole-v1, lr" not in str((part.lines, part.tables)), "the heading says it"
    assert compared[-1].figures[0].title == "2 environments"
    assert compared[-1].tables[0].rows[0][0] in named[0], "no hash of the settings"
    fired = sections.examined(Facts([Finding("m", run="00x", slug="s")]), grouping.load(folder)).fired
    assert fired[0].where == "ppo on Pendulum-v1, lr=0.1, seed 0"


def test_what_is_missing_is_told_once_for_all_rules_and_runs():
    gone = [NotChecked(slug, run, "policy/kl") for slug in ("a", "b") for run in ("x", "y")]
    gone += [NotChecked("c", "x", "value/loss")]
    assert tables.not_checked(gone) == [["policy/kl", "a, b", "all"], ["value/loss", "c", "x"]]


def test_an_answer_is_short_and_says_apart_what_its_numbers_are(tmp_path):
    text = "Yes: b is better than a, by +5 [+1, +9] (final eval/return_det, + is better; 95 % interval, 5 and 5 seeds)."
    write_run(tmp_path / "runs" / "a", UP)
    (tmp_path / "answer.json").write_text(json.dumps({"question": "Is b better?", "answers": [{"text": text}]}))
    first = sections.build(tmp_path).first
    assert (first.question, first.sentence) == ("Is b better?", "Yes: b is better than a, by +5 [+1, +9].")
    assert first.detail == "final evaluated return, + is better; 95 % interval, 5 and 5 seeds", "words, no codes"


@pytest.mark.parametrize(("done", "total", "text"), [
    (40_960, 40_000, "41k steps (40k planned)"),  # the last batch of PPO goes beyond
    (20_000, 40_000, "20k of 40k steps"),
    (40_000, 40_000, "40k steps"),
    (40_000, None, "40k steps"),
])  # fmt: skip
def test_steps_beyond_the_plan_are_no_share_of_it(done, total, text):
    assert sections._steps_of_planned(sections.count(done), done, total, "steps") == text


def test_what_limits_many_runs_in_the_same_way_is_said_once():
    """A page of 25 runs had a line for each of them: the machine was busy, with another load."""
    busy = [
        Finding(f"the machine was busy (load {i})", slug="busy-machine", run=f"r{i}", footer=True) for i in range(9)
    ]
    few = [Finding(f"1 seed of {name}", slug="single-seed", group=name, footer=True) for name in "ab"]
    assert content.footers(busy + few) == [
        "the machine was busy (load 0); 8 more like this", "1 seed of a", "1 seed of b"
    ]  # fmt: skip


def test_a_code_without_words_has_what_the_glossary_says(tmp_path):
    run = grouping.load(write_run(tmp_path / "run", UP))[0].runs[0]
    column = Column(np.arange(3), np.ones(3))
    run.history.columns |= {"data/reward_mean": column, "foreign/train/mine": column}
    shown = tables.all_metrics(run).tables[0]
    said = {row[0]: row[-1] for row in shown.rows}
    assert shown.head[-1] == "what it is"
    assert said["data/reward_mean"] == "mean reward per agent step, as the environment gave it"
    assert said["foreign/train/mine"] == ""


def test_runs_beyond_those_with_sections_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "DETAILED", 1)
    for seed in range(2):
        write_run(tmp_path / f"run{seed}", UP, seed=seed)
    parts = {part.title: part.lines for part in sections.build(tmp_path).sections}
    assert parts["Other runs"][0].startswith("1 run more, listed under Runs")
