"""Does the check of a write-up find what the record refutes, and call nothing wrong that it cannot place?"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from relab.base.jsonl import RecordError
from relab.cli import main
from relab.health.examine import examine
from relab.notebook.check import notes, wording
from relab.notebook.check.verdict import RULES
from relab.notebook.check.when import steps
from relab.notebook.check.wording import numbers, parse, plain
from where import ROOT, histories

SHARED = ROOT.parent / "shared"
needs_corpus = pytest.mark.skipif(not (SHARED / "corpus").is_dir(), reason=f"no real run records at {SHARED}")

SCORES = [0.10, 0.25, 0.31, 0.44, 0.58, 0.71, 0.66, 0.52, 0.47, 0.39]
ROWS = ["iteration,top_score,mean_loss,entropy"] + [
    f"{10 * (i + 1)},{score},{2.5 - 0.2 * i:.3f},{1.05 + 0.11 * i:.3f}" for i, score in enumerate(SCORES)
]


@pytest.fixture
def runs(tmp_path):
    """Two runs of another tool: alpha-01 with a peak and a fall, beta-02 the same backwards, each with its settings."""
    folder = tmp_path / "runs"
    for name, rows in (("alpha-01", ROWS), ("beta-02", [ROWS[0], *_backwards()])):
        place = folder / name
        place.mkdir(parents=True)
        (place / "progress.csv").write_text("\n".join(rows) + "\n")
        (place / "config.json").write_text(json.dumps({"learning_rate": 0.003, "buffer_rows": 4096, "seed": 3}))
    return folder


def _backwards() -> list[str]:
    cells = [row.split(",") for row in ROWS[1:]]
    return [",".join([cells[i][0], *cells[-1 - i][1:]]) for i in range(len(cells))]


def check(text: str, path: Path, folder: Path | None = None):
    file = (folder or path.parent) / "LOG.md"
    file.write_text(text, encoding="utf-8")
    return notes.check(file, examine(path))


def one(checks, status=None):
    """The only claim of a text (of that status)."""
    claims = [c for c in checks.checked if status is None or c.status == status]
    assert len(claims) == 1, [(c.claim.quote, c.status, c.says) for c in checks.checked]
    return claims[0]


# ---- Reading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("124.6k and 11,038,720", [(124600, 100), (11038720, 1)]),
        ("2.777e-05, 84.7%", [(2.777e-05, 1e-08), (84.7, 0.1)]),
        ("1.2万 ５．５％", [(12000, 1000), (5.5, 0.1)]),
        ("4×8×56 = 1,792, vec 28/56, 56 % 28 = 0", [(1792, 1), (0, 1)]),
        ("2025-11-12 23:40 v38 3.0.1 x2 3x", []),
        ("-0.301 and ~.85", [(-0.301, 0.001), (0.85, 0.01)]),
    ],
)
def test_numbers_with_their_precision(text, expected):
    pairs = [(n.value, n.unit) for n in numbers(plain(text))]
    assert pairs == [(pytest.approx(value), pytest.approx(unit)) for value, unit in expected]


@pytest.mark.parametrize(
    ("text", "axis", "step", "exact"),
    [
        ("0.3 (iter40)", "iteration", 40, True),
        ("at step 200k", "env_steps", 200_000, True),
        ("after 1M steps", "env_steps", 1_000_000, True),
        ("第 40 轮", "iteration", 40, True),
        ("iter40 / 48 / 56", "iteration", 40, False),
    ],
)
def test_quoted_steps(text, axis, step, exact):
    quoted = steps(plain(text))[0][0]
    assert (quoted.axis, quoted.number.value, quoted.exact) == (axis, step, exact)


def test_code_blocks_are_no_claims_and_tables_are_read():
    text = parse("# A\n```\nloss 0.5\n```\n| a | b |\n| --- | --- |\n| x | 1 |\n\nend 2\n")
    assert [type(block).__name__ for block in text.blocks] == ["Line", "Table", "Line"]
    assert text.blocks[1].rows[0][1] == ["x", "1"]
    assert text.blocks[1].rows[0][0].number == 7


# ---- One number


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("`top_score` 0.39", "last"),
        ("peak `top_score` 0.71", "peak"),
        ("`top_score` was 0.58 at iteration 50", "iteration 50"),
        ("`top_score` 58% (iter 50)", "iteration 50"),
        ("`mean_loss` averaged 1.600", "mean"),
        ("`top_score` 峰值 0.71（iter60）", "iteration 60"),
        ("learning_rate = 3e-3", "setting"),
    ],
)
def test_what_stands_in_the_record_is_matched(runs, claim, reason):
    checked = one(check(f"## alpha-01\n- {claim}\n", runs))
    assert checked.status == "matched", checked.says
    assert reason in checked.says


@pytest.mark.parametrize(
    ("claim", "slug", "reason"),
    [
        ("`top_score` was 0.71 at iteration 90", "another-step", "stands at iteration 60"),
        ("`top_score` 峰值 0.71（iter90）", "another-step", "0.47"),
        ("`top_score` was 0.93 at iteration 90", "number-differs", "0.47"),
        ("`top_score` 0.99", "number-nowhere", "0.1 to 0.71"),
        ("peak `top_score` 0.44", "not-the-peak", "0.71"),
        ("final `top_score` is 0.71", "peak-as-result", "ends at 0.39"),
        ("`top_score` reaches 0.71", "peak-as-result", "ends at 0.39"),
        ("final `entropy` is 1.05", "not-the-last", "ends at 2.04"),
        ("learning_rate = 0.01", "setting-differs", "0.003"),
        ("buffer_rows: 8192", "setting-differs", "4096"),
        ("`mean_loss` rose", "direction-differs", "2.4 to 0.8"),
        ("entropy stayed flat", "direction-differs", "1.1"),
        ("entropy 下降", "direction-differs", "1.1"),
    ],
)
def test_what_the_record_refutes_is_contradicted(runs, claim, slug, reason):
    checked = one(check(f"## alpha-01\n- {claim}\n", runs))
    assert (checked.status, checked.slug) == ("contradicted", slug), checked.says
    assert reason in checked.says
    assert checked.claim.line == 2
    assert slug in RULES


@pytest.mark.parametrize(
    "claim",
    [
        "`top_score` should be 0.99",
        "the target for `top_score` is 0.99",
        "`top_score` 0.99 in the previous run",
        "v7 had `top_score` 0.99",
        "`top_score` < 0.99",
        "learning_rate → 0.01",
        "if `top_score` falls to 0.02 stop",
        "`top_score` 阈值 0.99",
        "`other_score` 0.99",
        "mean over 5 seeds of `top_score` 0.99",
        "`top_score` 0.5~0.95",
        "`top_score` improved by 99%",
        "final `top_score` is 0.40",
        "`top_score` was 0.71 at iteration 61",
        "`top_score` was 0.99 at iteration 7",
    ],
)
def test_what_is_not_certain_is_never_contradicted(runs, claim):
    checks = check(f"## alpha-01\n- {claim}\n", runs)
    assert not checks.having("contradicted"), [c.says for c in checks.having("contradicted")]


@pytest.mark.parametrize(
    "claim",
    [
        "`top_score` climbs to 0.71 at iteration 60 then falls to 0.39",
        "between iteration 20 and 60 `top_score` rose from 0.25 to 0.71",
        "`top_score` fell to 0.39 from 0.71",
        "final `top_score` 0.39 (peak 0.71)",
        "`top_score` reached its maximum of 0.71",
        "`top_score` started at 0.10 and ended at 0.39",
        "then `mean_loss` rose again",
        "`mean_loss` dropped below 2.9",
        "an improvement in `top_score` of 0.9",
        "`mean_loss` fell 1.8",
        "`entropy` increased 0.99",
        "the standard deviation of `top_score` is 0.01",
        "`top_score` 提升 0.9",
        "`top_score` 在 iter60 达到 0.71，最终 0.39",
        "`top_score` 0.71 → 0.39 in 40 iterations",
        "buffer_rows = 4k, learning_rate=3e-3 and seed 3",
        "iter60: `top_score` 0.71, `mean_loss` 1.5",
    ],
)
def test_what_is_true_in_other_words_is_never_contradicted(runs, claim):
    checks = check(f"## alpha-01\n- {claim}\n", runs)
    assert not checks.having("contradicted"), [c.says for c in checks.having("contradicted")]


@pytest.mark.parametrize(
    ("claim", "slug"),
    [
        ("`top_score` never exceeded 0.5.", "bound-crossed"),
        ("`entropy` stayed below 1.2 throughout.", "bound-crossed"),
        ("`mean_loss` never fell below 1.5.", "bound-crossed"),
        ("It reached a `top_score` of 0.70 by iteration 30.", "bound-not-reached"),
        ("The run needed 20 iterations to reach a `top_score` of 0.7.", "bound-not-reached"),
        ("`mean_loss` dropped below 0.5.", "bound-not-reached"),
        ("Entropy collapsed below 0.1 by iteration 50.", "bound-not-reached"),
        ("`top_score` ended above 0.6.", "bound-not-reached"),
        ("`top_score` peaked at 0.71 around iteration 20 and settled at 0.39.", "another-step"),
        ("`top_score` peaked at 0.71 around iteration 60 and settled at 0.62.", "not-the-last"),
        ("The best `top_score`, 0.51, came late.", "not-the-peak"),
        ("Best `top_score` at iteration 20.", "another-step"),
        ("Entropy started at 1.9 and rose from there.", "number-differs"),
        ("Entropy went from 1.05 at the start to 1.31 at the end.", "not-the-last"),
        ("`mean_loss` went from 2.5 to 1.9 between iteration 10 and 90.", "number-differs"),
        ("In the first half `top_score` fell.", "direction-differs"),
        ("Halfway through, `mean_loss` was 0.45.", "number-differs"),
        ("With a learning rate of 0.03 the run was stable.", "setting-differs"),
        ("Compared with the baseline, `entropy` ended at 1.1.", "not-the-last"),
        ("`top_score` 最终为 0.62。", "not-the-last"),
        ("Entropy endete bei 1,10 (final).", "not-the-last"),
        ("The final `top_score` is **0.62**.", "not-the-last"),
        ("It took 20 iterations to get `top_score` to 0.7.", "bound-not-reached"),
        ("`top_score` < 0.4 throughout.", "bound-crossed"),
        ("`entropy` was always less than 1.3.", "bound-crossed"),
        ("`mean_loss` stayed above 1.4 from start to finish.", "bound-crossed"),
        ("There is a clear downward trend in entropy.", "direction-differs"),
        ("On average `mean_loss` was 2.48.", "number-differs"),
        ("Checkpoint 90: `top_score` 0.71.", "another-step"),
        ("Entropy is lower at the end than at the start.", "direction-differs"),
        ("`mean_loss` was above 1.5 at all times.", "bound-crossed"),
        ("learning_rate (0.1) was left alone.", "setting-differs"),
        ("`top_score` maxes out (0.52) late.", "not-the-peak"),
    ],
)
def test_sentences_as_people_write_them(runs, claim, slug):
    checks = check(f"## alpha-01\n\n{claim}\n", runs)
    assert slug in [c.slug for c in checks.having("contradicted")], [(c.claim, c.says) for c in checks.checked]


@pytest.mark.parametrize(
    "claim",
    [
        "`top_score` never exceeded 0.75.",
        "`entropy` stayed above 1.0 throughout and ended at 2.04.",
        "It reached a `top_score` of 0.7 by iteration 60, then lost half of it.",
        "`top_score` peaked at 0.71 around iteration 60 and settled at 0.39.",
        "On the hard maps `top_score` was 0.99.",
        "The expert has a `top_score` of 0.99.",
        "Our old code had an `entropy` of 44.4 at this point.",
        "Maria's branch scored a `top_score` of 0.99.",
        "Unlike the previous run, which ended at a `top_score` of 0.95, this one ended at 0.39.",
        "`top_score` improved by 0.61 before it fell.",
        "`mean_loss` plateaued at 10k.",
        "The entropy bonus was 0.99.",
        "The discounted `entropy` was 9.9.",
        "The best `top_score` was 0.7 or so.",
        "The final `top_score` is just under 0.4.",
        "`top_score` (5 seeds) 0.99.",
        "It took 3 hours.",
        "`top_score` was 0.39 at the end (noise 0.99).",
        "We would need a `top_score` of 0.99.",
        "`entropy` rose from 1.05 to 2.04.",
        "It took 60 iterations to get `top_score` to 0.7.",
        "It took 60 iterations to get `mean_loss` to 1.5.",
        "It was stopped after 50 iterations. The highest `top_score` was 0.71.",
        "The mean `mean_loss` of the last three rows was 0.9.",
        "Entropy went from 1.05 at the start to 2.04 at the end.",
        "In the first half `top_score` rose, and in the second half it fell.",
        "The best competitor has a `top_score` of 0.99.",
        "A checkpoint from March has an `entropy` of 44.4.",
        "Every tenth episode has a `top_score` of 0.99, I do not know why.",
        "The histogram of `entropy` has a second mode at 44.4.",
        "`entropy` of a perfect player was 44.4.",
        "The leaderboard lists 0.99 `top_score`.",
        "On the second task the `entropy` was 44.4.",
        "Log of the `entropy` is 44.4.",
    ],
)
def test_true_or_unclear_sentences_of_people_stand(runs, claim):
    checks = check(f"## alpha-01\n\n{claim}\n", runs)
    assert not checks.having("contradicted"), [(c.claim.quote, c.says) for c in checks.having("contradicted")]


def test_a_reached_peak_is_fair_where_the_text_tells_the_end(runs):
    alone = check("## alpha-01\n- `top_score` reaches 0.71\n", runs)
    assert one(alone).slug == "peak-as-result"
    both = check("## alpha-01\n- `top_score` reaches 0.71\n- final `top_score` 0.39\n", runs)
    assert [c.status for c in both.checked] == ["matched", "matched"]


def test_a_wrapped_paragraph_is_one_text_with_the_lines_of_its_claims(runs):
    text = (
        "## alpha-01\n\nThis was the first run with the new sampler, and the final value of its\n"
        "`top_score` was 0.62, which is far more than I had hoped for when starting, while\n`mean_loss` ended at 0.7.\n"
    )
    checks = check(text, runs)
    assert [(c.claim.line, c.status) for c in checks.checked] == [(4, "contradicted"), (5, "matched")]


def test_two_runs_in_one_sentence(runs):
    text = "# Log\n\nalpha-01 ended with an `entropy` of 2.04, beta-02 ended with an `entropy` of 1.9.\n"
    checks = check(text, runs)
    assert [(c.claim.run, c.status) for c in checks.checked] == [("alpha-01", "matched"), ("beta-02", "contradicted")]
    order = check("# Log\n\nalpha-01 has a lower final `entropy` than beta-02.\n", runs)
    assert one(order).slug == "order-differs"
    assert one(check("# Log\n\nalpha-01 has a higher final `entropy` than beta-02.\n", runs)).status == "matched"


@pytest.mark.parametrize("heading", ["Next steps", "Plan", "下一步", "Hypothesis"])
def test_plans_are_no_claims_about_the_run(runs, heading):
    assert not check(f"## alpha-01\n### {heading}\n- `top_score` 0.99\n", runs).having("contradicted")


# ---- Which run


def test_the_run_is_the_one_named_nearest_above(runs):
    text = "## alpha-01\n- final `entropy` is 2.04\n## beta-02\n- final `entropy` is 2.04\n"
    checks = check(text, runs)
    assert [c.status for c in checks.checked] == ["matched", "contradicted"]
    assert [c.claim.run for c in checks.checked] == ["alpha-01", "beta-02"]
    assert checks.runs == ["alpha-01", "beta-02"]


def test_a_section_without_a_run_says_nothing_that_can_be_checked(runs):
    checks = check(
        "## alpha-01\n- `top_score` 0.39\n## beta-02\n- `top_score` 0.10\n## Old\n- `top_score` 0.99\n", runs
    )
    assert [c.status for c in checks.checked] == ["matched", "matched", "unmatched"]


def test_after_two_runs_in_one_section_it_is_not_certain_which_is_meant(runs):
    text = "# Log\nalpha-01 was first.\nbeta-02 came after.\n- `top_score` 0.99\n"
    assert not check(text, runs).having("contradicted")


def test_a_text_that_names_no_run_is_only_held_against_one_that_it_fits(runs):
    alone = runs / "alpha-01"
    wrong = check("- `top_score` 0.99\n- `mean_loss` 0.001\n", alone, runs.parent)
    assert not wrong.having("contradicted")
    fitting = (
        "- `entropy` 2.04 at the end\n- `mean_loss` 0.700\n- `entropy` first 1.05\n- `mean_loss` 2.500 (iter 10)\n"
    )
    right = check(fitting + "- `top_score` 0.99\n", alone, runs.parent)
    assert one(right, "contradicted").slug == "number-nowhere"


def test_a_text_in_the_folder_of_a_run_is_about_it(runs):
    checks = check("- `top_score` 0.99\n", runs, runs / "beta-02")
    assert one(checks).claim.run == "beta-02"
    assert one(checks).status == "contradicted"


def test_a_run_whose_name_is_a_plain_word_must_be_named_as_one(runs):
    (runs / "alpha-01").rename(runs / "baseline")
    assert check("The baseline is weak.\n- `top_score` 0.39\n", runs).runs == []
    assert check("Run `baseline`:\n- `top_score` 0.39\n", runs).runs == ["baseline"]


def test_a_run_is_known_by_its_top_folder(runs):
    """As CleanRL and TensorBoard lay them out: the name that people use is the folder above."""
    for name in ("alpha-01", "beta-02"):
        (runs / f"exp-{name}" / "runs").mkdir(parents=True)
        (runs / name).rename(runs / f"exp-{name}" / "runs" / "PPO_1")
    checks = check("## exp-alpha-01\n- final `entropy` is 1.05\n\n## exp-beta-02\n- final `entropy` is 1.05\n", runs)
    assert checks.runs == ["exp-alpha-01/runs/PPO_1", "exp-beta-02/runs/PPO_1"]
    assert [c.status for c in checks.checked] == ["contradicted", "matched"]
    alone = check("## exp-alpha-01\n- final `entropy` is 1.05\n", runs / "exp-alpha-01", runs.parent)
    assert one(alone).status == "contradicted"
    assert check("## PPO_1\n- final `entropy` is 1.05\n", runs).runs == [], "both runs are called so"


def test_runs_that_are_not_there_take_their_numbers_with_them(runs):
    other = "## alpha-77\n- `top_score` 0.99\n"
    assert not check(other, runs).having("contradicted")
    assert not check(f"# alpha-01\n{other}", runs / "alpha-01", runs.parent).having("contradicted")
    line = check("## alpha-01\n- alpha-77 had `top_score` 0.99\n- `top_score` 0.39\n", runs)
    assert [c.status for c in line.checked] == ["unmatched", "matched"]
    home = check(
        "- `top_score` 0.39\n- alpha-77: `top_score` 0.99\n\nTheory\n- `mean_loss` 9.99\n", runs, runs / "alpha-01"
    )
    assert not home.having("contradicted")


# ---- Tables


def test_a_row_per_step(runs):
    text = (
        "## alpha-01\n\n| iter | top_score | mean_loss |\n|---|---|---|\n| 50 | 0.58 | 1.700 |\n| 60 | 0.99 | 1.5 |\n"
    )
    checks = check(text, runs)
    assert [c.status for c in checks.checked] == ["matched", "matched", "contradicted", "matched"]
    assert one(checks, "contradicted").claim.line == 6


def test_a_row_per_metric(runs):
    text = "## alpha-01\n\n| metric | last | min | max |\n|---|---|---|---|\n| top_score | 0.39 | 0.10 | 0.82 |\n"
    checks = check(text, runs)
    assert [c.status for c in checks.checked] == ["matched", "matched", "contradicted"]
    assert "0.71" in one(checks, "contradicted").says


def test_names_and_values(runs):
    rows = "| final top_score | 0.62 |\n| peak top_score | 0.71 |\n| learning_rate | 0.1 |\n"
    text = f"## alpha-01\n\n| | |\n|---|---|\n{rows}"
    assert [c.status for c in check(text, runs).checked] == ["contradicted", "matched", "contradicted"]


def test_a_row_per_run_with_what_its_columns_hold(runs):
    text = "| run | final top_score | best top_score |\n|---|---|---|\n| alpha-01 | 0.62 | 0.71 |\n"
    assert [c.status for c in check(text, runs).checked] == ["contradicted", "matched"]


def test_a_row_per_run_is_matched_but_never_contradicted(runs):
    text = "| run | top_score |\n|---|---|\n| alpha-01 | 0.39 |\n| beta-02 | 0.99 |\n"
    assert [c.status for c in check(text, runs).checked] == ["matched", "unmatched"]


# ---- Evaluations, settings, counts


def test_a_peak_of_the_evaluations_is_no_result():
    report = examine(histories() / "faulty" / "peak-then-collapse")
    assert one(said(report, "## peak-then-collapse\n- eval return reaches 500\n")).slug == "peak-as-result"
    assert one(said(report, "## peak-then-collapse\n- final eval return is 50\n")).status == "matched"


@pytest.fixture
def family():
    return examine(histories() / "faulty" / "unmentioned-config-change")


def said(report, text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "LOG.md"
        file.write_text(text, encoding="utf-8")
        return notes.check(file, report)


def test_a_difference_inside_the_noise(family):
    text = "## run `child`\n- eval return improved from -193.4 to -168.8, ent_coef 0.12\n"
    checked = one(said(family, text), "contradicted")
    assert checked.slug == "difference-in-noise"
    assert "-193.4 ± 24" in checked.says
    assert "-168.8 ± 29" in checked.says
    clear = said(family, "## run `child`\n- eval return improved from -1181 to -107.3\n").checked
    assert [c.status for c in clear] == ["matched"]
    assert "standard errors apart" in clear[0].says
    honest = said(family, "## run `child`\n- eval return rose from -193.4 to -168.8, inside the noise\n")
    assert not honest.having("contradicted")


def test_a_round_step_means_the_nearest_row(family):
    checked = one(said(family, "## run `child`\n- see `parent`\n- `policy/entropy` was 2.548 at step 30k\n"))
    assert checked.slug == "another-step"
    assert "2.548 stands at step 61,440; policy/entropy is 1.875 at step 30k" in checked.says


def test_a_changed_setting_that_the_text_leaves_out(family):
    silent = said(family, "## run `child`\n- final eval return -107.3\n")
    assert [(c.slug, c.claim.word) for c in silent.unsaid] == [("change-not-mentioned", "algo.ent_coef")]
    leaves = said(family, "## run `child`\n- ent_coef: 0.12 -> 0.10 next\n")
    assert "names it, but not this change" in leaves.unsaid[0].says
    assert leaves.unsaid[0].claim.line == 2
    for mention in ("ent_coef 0.0 -> 0.12", "ent_coef=0.12", "we raised ent_coef", "entropy_coef is 0.12 now"):
        assert not said(family, f"## run `child`\n- {mention}\n").unsaid, mention
    assert not said(family, "## run `parent`\n- final eval return -106.4\n").unsaid


def test_episodes_as_asked_for_and_as_run(tmp_path):
    place = tmp_path / "runs" / "gamma-03"
    place.mkdir(parents=True)
    rows = [f"{10 * i},{0.5 + i / 100},12" for i in range(1, 6)]
    (place / "progress.csv").write_text("\n".join(["iteration,eval_score,eval_episodes", *rows]))
    (place / "config.json").write_text(json.dumps({"num_eval_episodes": 24}))
    checks = check("## gamma-03\n- Evaluation (24 episodes)\n", tmp_path / "runs")
    assert one(checks).slug == "count-differs"
    assert "12 episodes were run" in one(checks).says
    assert one(check("## gamma-03\n- Evaluation (12 episodes)\n", tmp_path / "runs")).status == "matched"
    assert one(check("## gamma-03\n- tested on 100 episodes\n", tmp_path / "runs")).status == "unmatched"


# ---- Hostile input


@pytest.mark.parametrize(
    "piece", ["1", "1,", "(", "a_", "iter 1 ", "1e", "~", "1,111", "| ", "`", "→ 1 ", "**", "1.", "-"]
)
def test_long_lines_are_read_and_cut(runs, piece):
    checks = check("## alpha-01\n" + piece * (100_000 // len(piece)), runs)
    assert checks.lines == 2
    assert "cut at" in checks.cut or piece in "~`"  # these open a code block


@pytest.mark.slow
def test_deeply_nested_text(runs):
    text = "## alpha-01\n" + "\n".join("  " * i + "- " * i + f"`top_score` 0.{i % 10}9" for i in range(0, 400, 8))
    text += (
        "\n" + "\n".join(">" * i + " x" for i in range(0, 400, 8)) + "\n" + "#" * 50 + " deep\n```\nnever closed 0.99"
    )
    assert check(text, runs).lines == 104


def test_a_huge_file_is_read_in_part(runs, monkeypatch):
    monkeypatch.setattr(wording, "MAX_BYTES", 100_000)
    checks = check("## alpha-01\n- `top_score` 0.39\n" + ("x" * 99 + "\n") * 1400, runs)
    assert checks.cut == "only its first 0.1 MB were read"
    assert len(checks.having("matched")) == 1


def test_what_is_no_text_is_said(runs, tmp_path):
    (tmp_path / "LOG.md").write_bytes(b"abc\0def")
    with pytest.raises(RecordError, match="zero byte at 3"):
        notes.check(tmp_path / "LOG.md", examine(runs))
    (tmp_path / "LOG.md").write_bytes(b"\xff\xfe## alpha-01 \xe9\n")
    assert notes.check(tmp_path / "LOG.md", examine(runs)).checked == []


def test_control_characters_do_not_reach_the_terminal(runs):
    checks = check("## alpha-01\n- `top_score` 0.99\x1b[31m\n", runs)
    assert "\x1b" not in notes.text(checks, verbose=True)


# ---- The documents


def test_every_kind_of_contradiction_is_explained():
    page = (ROOT / "docs" / "checking-notes.md").read_text(encoding="utf-8")
    assert [slug for slug in RULES if f"`{slug}`" not in page] == []


# ---- The command


def test_the_command_tells_it_in_ten_lines(runs, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(runs.parent))
    log = runs.parent / "LOG.md"
    log.write_text("## alpha-01\n" + "- `top_score` 0.99\n" * 20 + "- `top_score` 0.39\n")
    assert main(["examine", str(runs), "--notes", str(log)]) == 0
    lines = capsys.readouterr().out.partition(log.name)[2].splitlines()
    assert len(lines) == 10
    assert "21 claims: 1 matched, 20 contradicted, 0 not matched" in lines[0]
    assert lines[1] == '  line 2: "top_score 0.99"'
    assert "number-nowhere" in lines[2]
    assert lines[-1] == "  and 16 more (-v)"
    assert main(["examine", str(runs), "--notes", str(log), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["notes"]
    assert (summary["matched"], summary["contradicted"], len(summary["claims"])) == (1, 20, 21)
    assert summary["claims"][0]["slug"] == "number-nowhere"
    assert summary["claims"][0]["line"] == 2


def test_a_missing_file_is_an_error(runs, capsys):
    assert main(["examine", str(runs), "--notes", str(runs / "none.md")]) == 64
    assert "must be a file" in capsys.readouterr().err


# ---- Real write-ups


@needs_corpus
def test_the_log_of_the_fish(capsys):
    checks = notes.check(SHARED / "documents" / "004-fish-dev-log.md", examine(SHARED / "corpus" / "fish"))
    wrong = checks.having("contradicted")
    assert [(c.slug, c.claim.line) for c in wrong] == [("another-step", 52), ("count-differs", 54)]
    assert "0.375 stands at iteration 40" in wrong[0].says
    assert "12 episodes were run" in wrong[1].says
    assert len(checks.having("matched")) >= 40


@needs_corpus
def test_the_notes_of_the_drones():
    checks = notes.check(SHARED / "documents" / "003-drones-run-notes.md", examine(SHARED / "corpus" / "drones"))
    assert not checks.having("contradicted")
    assert "algo.ent_coef is 0.12, was 0.01 in 2025-09-20T152244Z" in checks.unsaid[0].says
    assert len(checks.having("matched")) >= 20


@needs_corpus
def test_every_number_of_the_report_on_the_torus_stands_in_its_run():
    report = examine(SHARED / "corpus" / "torus")
    checks = notes.check(SHARED / "documents" / "000-torus-run-report.md", report)
    assert not checks.having("contradicted")
    assert len(checks.having("matched")) >= 370


@needs_corpus
def test_write_ups_of_other_systems_are_not_contradicted_by_these_runs():
    for name in ("torus", "fish"):
        report = examine(SHARED / "corpus" / name)
        for document in (SHARED / "documents").glob("00[123]*.md"):
            assert not notes.check(document, report).having("contradicted"), (name, document.name)


def test_copying_a_run_keeps_the_answer(runs, tmp_path):
    """What a write-up is held against does not depend on where the runs lie."""
    shutil.copytree(runs, tmp_path / "elsewhere")
    text = "## alpha-01\n- `top_score` 0.99\n"
    assert [c.says for c in check(text, runs).checked] == [c.says for c in check(text, tmp_path / "elsewhere").checked]
