"""Are plain CSV files read as a person would read them, and is everything odd about them said?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import common, csv_cells, csv_file, find, table
from relab.record.history import History
from relab.record.state import group_key, seed_of


def read(tmp_path: Path, text: str, name: str = "log.csv") -> History:
    (tmp_path / name).write_text(text)
    (run,) = find.load_all(tmp_path).runs
    return run.history


def said(history: History) -> list[str]:
    return [f"{p.line}: {p.message}" for p in history.problems]


def test_columns_get_relabs_names_and_the_steps_of_the_step_column(tmp_path):
    history = read(
        tmp_path, "global_step,charts/episodic_return,losses/entropy,mystery\n100,1.5,0.6,7\n200,2.5,0.5,8\n"
    )
    assert history.source == "csv"
    assert history.column("return/mean").steps.tolist() == [100, 200]
    assert history.column("return/mean").values.tolist() == [1.5, 2.5]
    assert history.column("policy/entropy").values.tolist() == [0.6, 0.5]
    assert history.column("foreign/mystery").values.tolist() == [7, 8]
    assert history.mapping["charts/episodic_return"] == "return/mean"
    assert set(history.axes.values()) == {"env_steps"}
    assert history.problems == []


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_delimiters_are_recognised(tmp_path, mark):
    history = read(tmp_path, f"step{mark}reward\n1{mark}2.5\n2{mark}3.5\n")
    assert history.column("return/mean").values.tolist() == [2.5, 3.5]


@pytest.mark.parametrize(
    ("header", "axis"),
    [
        ("Step", "env_steps"),
        ("time/total_timesteps", "env_steps"),
        ("agent_steps", "agent_steps"),
        ("update", "updates"),
        ("Epoch", "iteration"),
        ("train/episode", "episodes"),
    ],
)
def test_the_axis_follows_from_the_name(tmp_path, header, axis):
    history = read(tmp_path, f"{header},reward\n5,1\n6,2\n")
    assert history.axes["return/mean"] == axis
    assert history.column("return/mean").steps.tolist() == [5, 6]


def test_an_exact_count_is_preferred_and_the_other_counters_stay_as_columns(tmp_path):
    history = read(tmp_path, "iteration,reward,total_timesteps\n1,0.5,2048\n2,0.6,4096\n")
    assert history.column("return/mean").steps.tolist() == [2048, 4096]
    assert history.column("data/iteration").values.tolist() == [1, 2]


def test_the_length_of_an_episode_is_no_step(tmp_path):
    history = read(tmp_path, "episode,reward,steps\n1,10,200\n2,12,35\n3,14,180\n4,13,20\n")
    assert history.axes["return/mean"] == "episodes"
    assert history.column("foreign/steps").values.tolist() == [200, 35, 180, 20]


def test_rows_are_counted_where_nothing_counts_steps(tmp_path):
    history = read(tmp_path, "reward,entropy\n1,0.5\n2,0.4\n")
    assert history.column("return/mean").steps.tolist() == [0, 1]
    assert history.axes["return/mean"] == "iteration"
    assert "no column counts steps" in said(history)[0]


def test_steps_written_as_floats_are_integers_and_others_are_left_out_and_said(tmp_path):
    history = read(tmp_path, "step,reward\n1e3,1\n2000.0,2\n2500.5,3\nx,4\n3000,5\n")
    assert history.column("return/mean").steps.tolist() == [1000, 2000, 3000]
    assert said(history) == ["4: 2 rows without an integer step in `step` left out"]


def test_empty_cells_are_missing_and_nan_and_inf_stay(tmp_path):
    history = read(tmp_path, "step,reward,kl\n1,,0.1\n2,nan,\n3,inf,0.3\n4,-Infinity,0.4\n")
    column = history.column("return/mean")
    assert column.steps.tolist() == [2, 3, 4]
    assert math.isnan(column.values[0])
    assert column.values[1:].tolist() == [math.inf, -math.inf]
    assert history.column("policy/kl").steps.tolist() == [1, 3, 4]
    assert history.problems == []


def test_cells_that_are_no_numbers_are_counted_with_their_first_line(tmp_path):
    history = read(tmp_path, "step,reward\n1,1\n2,oops\n3,3\n4,broken\n")
    assert history.column("return/mean").steps.tolist() == [1, 3]
    assert said(history) == ["3: `reward` is no number in 2 rows, first 'oops'"]


def test_columns_of_text_are_no_metrics(tmp_path):
    history = read(tmp_path, "step,comment,reward\n1,good,1\n2,bad,2\n")
    assert set(history.columns) == {"return/mean"}
    assert history.problems == []


def test_short_and_long_rows_are_read_as_far_as_they_go(tmp_path):
    history = read(tmp_path, "step,reward,kl\n1,1,0.1\n2,2\n3,3,0.3,9\n4,4,0.4,9\n")
    assert history.column("policy/kl").steps.tolist() == [1, 3, 4]
    assert [line.split(" (")[0].split(";")[0] for line in said(history)] == [
        "3: 1 rows are shorter than the header of 3",
        "4: 2 rows are longer than the header of 3",
    ]


def test_a_header_that_comes_again_is_left_out(tmp_path):
    history = read(tmp_path, "step,reward\n1,1\n2,2\nstep,reward\n3,3\n")
    assert history.column("return/mean").values.tolist() == [1, 2, 3]
    assert said(history) == ["4: 1 lines are a header again, as after a restart, and were left out"]


def test_after_a_restart_the_later_rows_win_and_the_others_are_counted(tmp_path):
    rows = [(s, s / 10) for s in (10, 20, 30, 40)] + [(s, s) for s in (30, 40, 50)]
    history = read(tmp_path, "step,reward\n" + "".join(f"{s},{r}\n" for s, r in rows))
    assert history.column("return/mean").steps.tolist() == [10, 20, 30, 40, 50]
    assert history.column("return/mean").values.tolist() == [1, 2, 30, 40, 50]
    (message,) = said(history)
    assert "go back once, as after a restart; 2 older rows were superseded" in message


def test_episodes_that_end_at_one_step_all_stay(tmp_path):
    history = read(tmp_path, "step,reward\n10,1\n10,2\n20,3\n20,4\n30,5\n")
    assert history.column("return/mean").values.tolist() == [1, 2, 3, 4, 5]
    assert history.problems == []


def test_rows_without_any_order_are_sorted_and_it_is_said(tmp_path):
    rng = np.random.default_rng(0)
    steps = np.arange(100) + rng.integers(-3, 4, 100)
    history = read(tmp_path, "step,reward\n" + "".join(f"{s},{s}\n" for s in steps))
    column = history.column("return/mean")
    assert (np.diff(column.steps) >= 0).all()
    assert len(column.steps) == 100
    assert "sorted by step" in said(history)[0]


def test_a_last_line_without_a_line_break_may_be_cut_and_is_left_out(tmp_path):
    history = read(tmp_path, "step,reward\n1,100\n2,100\n3,1")
    assert history.column("return/mean").steps.tolist() == [1, 2]
    assert said(history) == ["4: the last line has no line break and may be cut; it was left out"]


def test_an_index_column_without_a_name_and_a_byte_order_mark_do_no_harm(tmp_path):
    (tmp_path / "log.csv").write_bytes(b"\xef\xbb\xbf,step,reward\r\n0,1,5\r\n1,2,6\r\n")
    (run,) = find.load_all(tmp_path).runs
    assert run.history.column("return/mean").values.tolist() == [5, 6]
    assert run.history.column("foreign/unnamed_0").values.tolist() == [0, 1]


def test_names_given_twice_are_both_kept(tmp_path):
    history = read(tmp_path, "step,reward,reward\n1,1,2\n2,3,4\n")
    assert history.column("return/mean").values.tolist() == [1, 3]
    assert history.column("foreign/reward_2").values.tolist() == [2, 4]
    assert "first `reward`" in said(history)[0]


def test_an_estimate_of_the_kl_that_goes_below_zero_is_the_other_estimator(tmp_path):
    history = read(tmp_path, "step,approx_kl\n1,0.01\n2,-0.02\n")
    assert "policy/kl_k1" in history.columns
    assert "policy/kl" not in history.columns


# ---- Which runs


def test_a_long_table_holds_a_run_per_seed_and_the_groups_are_told_apart(tmp_path):
    rows = [f"{algo};{seed};{step};{step * seed}\n" for algo in ("PPO", "SAC") for seed in (3, 4) for step in (1, 2)]
    (tmp_path / "all.csv").write_text("algo;seed;step;reward\n" + "".join(rows))
    runs = find.load_all(tmp_path).runs
    assert [run.name for run in runs] == [f"all.csv/{algo}/seed={seed}" for algo in ("PPO", "SAC") for seed in (3, 4)]
    assert [seed_of(run.history, run.name) for run in runs] == [3, 4, 3, 4]
    assert runs[1].history.column("return/mean").values.tolist() == [4, 8]
    keys = [group_key(run.history, run.name) for run in runs]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert runs[2].history.config["algo"]["name"] == "sac"


def test_each_file_of_a_folder_is_a_run_unless_they_are_parts_of_one(tmp_path):
    for name in ("lr1_seed0.csv", "lr1_seed1.csv", "lr2_seed0.csv"):
        (tmp_path / name).write_text("step,reward\n1,2\n2,3\n")
    runs = find.load_all(tmp_path).runs
    assert [run.name for run in runs] == ["lr1_seed0.csv", "lr1_seed1.csv", "lr2_seed0.csv"]
    assert [seed_of(run.history, run.name) for run in runs] == [0, 1, 0]
    keys = [group_key(run.history, run.name) for run in runs]
    assert keys[0] == keys[1] != keys[2]


def test_train_and_eval_are_one_run(tmp_path):
    (tmp_path / "train.csv").write_text("step,episode_reward\n1,2\n2,3\n")
    (tmp_path / "eval.csv").write_text("step,episode_reward\n2,5\n")
    (run,) = find.load_all(tmp_path).runs
    assert run.name == tmp_path.name
    assert run.history.column("return/mean").values.tolist() == [2, 3]
    assert run.history.column("eval/return_det").values.tolist() == [5]


def test_a_file_can_be_given_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("step,reward\n1,2\n2,3\n")
    (tmp_path / "b.csv").write_text("step,reward\n1,2\n2,3\n")
    (run,) = find.load_all(tmp_path / "b.csv").runs
    assert run.name == "b.csv"


def test_tables_that_are_no_logs_are_no_runs(tmp_path):
    (tmp_path / "people.csv").write_text("name,city\nx,y\n")
    (tmp_path / "other.csv").write_text("1,2,3\n4,5,6\n")
    (tmp_path / "noise.csv").write_bytes(b"step,reward\0\0\n")
    assert list(find.find(tmp_path)) == []


def test_a_file_that_is_there_alone_needs_no_known_name_but_numbers(tmp_path):
    path = tmp_path / "alone.csv"
    path.write_text("name,city\nx,y\n")
    assert list(find.find(path)) == []
    path.write_text("height,weight\n1.5,60\n")
    (run,) = find.load_all(path).runs
    assert set(run.history.columns) == {"foreign/height", "foreign/weight"}


def test_runs_below_a_folder_with_a_summary_are_found(tmp_path):
    (tmp_path / "summary.csv").write_text("step,reward\n1,2\n2,3\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "progress.csv").write_text("step,reward\n1,2\n2,3\n")
    assert [run.name for run in find.load_all(tmp_path).runs] == ["summary.csv", "a"]


def test_a_file_of_a_million_cells_is_read_in_one_pass_per_column(tmp_path):
    rows = "".join(f"{i},{i * 0.5},{i * 0.25}\n" for i in range(20_000))
    history = read(tmp_path, "step,reward,kl\n" + rows)
    assert len(history.column("return/mean").steps) == 20_000
    assert history.column("policy/kl").values[-1] == 19_999 * 0.25


@pytest.mark.parametrize("data", [b"", b"\n", b"step,reward", b"step,reward\n", b'step,"reward\n1,2\n'])
def test_files_without_rows_give_no_columns(tmp_path, data):
    table = csv_file.parse(data, "x.csv")
    assert not any(table.cells.values())


def test_a_large_table_is_the_same_as_a_small_one(monkeypatch):
    """Rows beyond a limit are kept as numbers; what is read must not depend on where the limit lies."""
    rows = [
        f"{i},{i / 7},{'' if i == 33 else i},{'x' if i == 41 else i},007,{'nan' if i % 5 else 'inf'}" for i in range(60)
    ]
    text = "\n".join(["step,a,gap,word,seed,odd", *rows]) + "\n"
    whole = csv_file.parse(text.encode(), "a.csv")
    for limit in (1, 7, 59, 60, 61):
        monkeypatch.setattr(table, "PACK", limit)
        packed = csv_file.parse(text.encode(), "a.csv")
        assert (packed.lines, packed.problems) == (whole.lines, whole.problems)
        assert packed.cells["seed"] == whole.cells["seed"] == ["007"] * 60
        for name in ("step", "a", "gap", "word", "odd"):
            before, now = table.numbers(whole.cells[name]), table.numbers(packed.cells[name])
            np.testing.assert_array_equal(now.values, before.values)
            assert (now.at.tolist(), list(now.bad)) == (before.at.tolist(), list(before.bad))


def test_a_cut_last_line_of_a_large_table(monkeypatch):
    monkeypatch.setattr(table, "PACK", 3)
    cells = csv_file.parse(b"step,a\n1,1\n2,2\n3,3\n4,4", "a.csv")
    assert list(cells.lines) == [2, 3, 4]
    assert list(cells.cells["a"]) == [1.0, 2.0, 3.0]
    assert "may be cut" in cells.problems[-1].message


def test_quoted_line_breaks_and_all_kinds_of_line_ends():
    parsed = csv_file.parse(b'step,"a\nb"\r\n1,2\r3,4\n\n5,6\n', "a.csv")
    assert parsed.cells["step"] == ["1", "3", "5"]


# ---- Large files


def both(data: bytes, monkeypatch) -> None:
    """A file cell by cell, and at C speed in chunks of a few lines: the same columns, lines and problems."""
    monkeypatch.setattr(csv_cells, "LARGE", 1 << 60)
    slow = csv_file.parse(data, "a.csv")
    monkeypatch.setattr(csv_cells, "LARGE", 0)
    monkeypatch.setattr(csv_cells, "HEAD_BYTES", 40)
    for size in (7, 40, 300, 10**6):
        fast = csv_file.parse([data[i : i + size] for i in range(0, len(data), size)], "a.csv")
        assert (list(fast.lines), fast.problems) == (list(slow.lines), slow.problems)
        assert list(fast.cells) == list(slow.cells)
        for name in slow.cells:
            if common.plain(name) in table.KEYS:
                assert list(fast.cells[name]) == list(slow.cells[name])
            before, now = table.numbers(slow.cells[name]), table.numbers(fast.cells[name])
            np.testing.assert_array_equal(now.values, before.values)
            assert (now.at.tolist(), list(now.bad)) == (before.at.tolist(), list(before.bad))


ROWS = {
    "plain": "{i},{x},-1e-3\n",
    "gaps": "{i},,\n,{x},\n{i},1,2\n",
    "nan": "{i},nan,-inf\n{i},NaN,inf\n{i},1,2\n",
    "nan and gaps": "{i},nan,\n{i},inf,1\n",
    "words": "{i},word,1\n{i},2,true\n{i},null,False\n",
    "other numbers": "{i},.5,1.\n{i},+1,007\n{i},1_000,0x1\n{i},1e999,123456789012345678901234567890\n",
    "blanks": " {i} , 2,\t3 \n\n{i},  ,1\n",
    "windows": "{i},1,2\r\n{i},3,4\r\n",
    "old mac": "{i},1,2\r",
    "ends mixed": "{i},1,2\r\n{i},3,4\n{i},5,6\r",
    "short and long": "{i},1\n{i},1,2,3\n{i},1,2\n",
    "brackets": "{i},[1],2\n{i},{{}},[]\n",
    "header again": "{i},1,2\nstep,a,b\n",
    "quotes": '{i},"1",2\n{i},1,"a\nb"\n{i},3,4\n',
    "comments": "#{i},1,2\n{i},1,2\n",
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("end", ["", "9,9", "9,9,9"])
def test_both_ways_of_reading_say_the_same(kind, end, monkeypatch):
    rows = "".join(ROWS[kind].format(i=i, x=i / 7) for i in range(30))
    both(f"# made up\nstep,a,b\n{rows}{end}".encode(), monkeypatch)
    both(f"step,a,b\n5,6,7\n{rows}{end}".replace(",", ";").encode(), monkeypatch)
    both(f"\ufeffstep,a,b\n{rows}{end}".encode(), monkeypatch)


def test_text_beside_numbers_both_ways(monkeypatch):
    rows = "".join(f"{i},007,walker é,{i / 3},{'train' if i % 2 else 'eval'}\n" for i in range(50))
    both(f"step,seed,env,a,phase\n{rows}".encode(), monkeypatch)
    both(f"step,seed,env,a,phase\n{rows}".encode("utf-16"), monkeypatch)
    both(f"seed,env\n{'1,a' * 20}\n".encode(), monkeypatch)


@pytest.mark.slow
def test_a_large_file_is_read_in_little_more_than_its_numbers_take(tmp_path):
    import tracemalloc

    with open(tmp_path / "a.csv", "w") as file:
        file.write("step,reward,kl,loss\n")
        file.writelines(f"{i},{i / 7:.6f},0.01,{i % 13}\n" for i in range(200_000))
    tracemalloc.start()
    cells = csv_file.load(tmp_path / "a.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(cells.lines) == 200_000
    assert peak < 50_000_000  # 6.4 MB of numbers, and what one block of 1 MB takes while it is read


# ---- Numbers with commas


@pytest.mark.parametrize("form", ["{};{};{}\n", "{}\t{}\t{}\n", '"{}","{}","{}"\n'])
def test_commas_before_decimals_are_read_and_said(tmp_path, form):
    """As spreadsheets write them in half of the world; the columns were left out in silence."""
    rows = [form.format(i * 1000, f"{20 + i},{i % 10}", i) for i in range(1, 6)]
    history = read(tmp_path, form.format("step", "reward", "loss") + "".join(rows))
    assert history.column("return/mean").values.tolist() == [21.1, 22.2, 23.3, 24.4, 25.5]
    assert history.column("return/mean").steps.tolist() == [1000, 2000, 3000, 4000, 5000]
    assert said(history) == ["2: reward: numbers with a comma before their decimals were read as such (25,1 is 25.1)"]


def test_what_may_be_thousands_is_not_guessed(tmp_path):
    history = read(tmp_path, "step;reward;loss\n" + "".join(f"{i};{i},250;0,5\n" for i in range(1, 6)))
    assert "return/mean" not in history.columns
    assert any("reward: cells like 1,234 may be 1.234 or 1234: they were not read" in line for line in said(history))


def test_lists_and_words_with_commas_stay_words(tmp_path):
    history = read(tmp_path, "step;reward;layers\n" + "".join(f"{i};{i};64,64 tanh\n" for i in range(1, 6)))
    assert said(history) == []


@pytest.mark.parametrize("rows", [1000, 60_000, 120_000])
def test_a_comma_after_many_whole_numbers_is_read(tmp_path, rows):
    """Only the first 1,000 cells were looked at; what came later was left out."""
    body = "".join(f"{i};1\n" for i in range(rows)) + "".join(f"{rows + i};{i},5\n" for i in range(1000))
    history = read(tmp_path, "step;reward\n" + body)
    assert len(history.column("return/mean").values) == rows + 1000
    assert history.column("return/mean").values[-1] == 999.5
    assert any("reward: numbers with a comma" in line for line in said(history))


def test_points_before_a_comma_keep_a_column_as_it_is(tmp_path):
    body = "".join(f"{i};0.{i % 9 + 1}\n" for i in range(60_000)) + "".join(f"{60_000 + i};{i},5\n" for i in range(9))
    assert not any("read as such" in line for line in said(read(tmp_path, "step;reward\n" + body)))


def test_one_word_late_in_a_column_keeps_it_as_it_is(tmp_path):
    body = "".join(f"{i};{i},5\n" for i in range(2000)) + "2000;1,2,3\n"
    assert not any("read as such" in line for line in said(read(tmp_path, "step;reward\n" + body)))


def test_a_constant_follows_the_other_columns_and_a_list_does_not(tmp_path):
    rows = "".join(f"{i};{i},5;0,10;-200,0;64,64\n" for i in range(1, 6))
    history = read(tmp_path, "step;reward;clip;low;layers\n" + rows)
    assert history.column("foreign/clip").values.tolist() == [0.1] * 5
    assert history.column("foreign/low").values.tolist() == [-200] * 5
    assert "foreign/layers" not in history.columns
    assert [line.partition(":")[2].partition(":")[0].strip() for line in said(history)] == [
        "reward, clip, low",
        "layers",
    ]


def test_a_constant_alone_is_not_guessed(tmp_path):
    history = read(tmp_path, "step;reward;clip\n" + "".join(f"{i};{i};0,10\n" for i in range(1, 6)))
    assert "foreign/clip" not in history.columns
    assert any(line.startswith("2: clip: a single value with a comma") for line in said(history))
