"""Are faults planted where they say, and hidden from the examiner? Small real runs; the long ones are the suite's."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from relab import cli
from relab.base import streams
from relab.config.base import ConfigError
from relab.config.run import RunConfig
from relab.health.examine import examine
from relab.health.rule import all_rules
from relab.lab.faults import catalogue, hide, run, seams, suite
from relab.lab.faults.catalogue import FAULTS, Fault
from relab.record import history
from small_runs import SMALL, fingerprint

SOFT = {"algo": "sac", "total_steps": "1200", "algo.steps": "64", "algo.learning_starts": "200", "algo.hidden": "[16]",
        "algo.minibatch": "32", "eval.episodes": "2", "eval.every": "0"}  # fmt: skip
GREEDY = SOFT | {"algo": "dqn", "algo.envs": "4"}
TUNED = {"algo": "finetune", "env": "pickcube-gantry", "start_from": "shipped:pickcube-gantry@301056",
         "algo.update": "awr", "algo.solved_start": "true", "algo.envs": "4", "algo.steps": "40",
         "algo.minibatches": "2", "algo.epochs": "1", "total_steps": "5", "eval.every": "0",
         "eval.episodes": "2"}  # fmt: skip
TINY = {
    "gantry-gae": TUNED,
    "gantry-again": TUNED | {"algo.advantage": "rerollout", "algo.mc_samples": "2", "algo.states": "8"},
    "gantry-iql": TUNED | {"algo.advantage": "iql", "algo.data": "fixed", "algo.fit_epochs": "3",
                           "algo.expectile": "0.9"},
    "cartpole": SMALL | {"total_steps": "1024"},
    "pendulum": SMALL | {"total_steps": "4096", "env": "pendulum"},
    "pendulum-sac": SOFT | {"env": "pendulum"},
    "herd-sac": SOFT | {"env": "herd"},
    "cartpole-dqn": GREEDY | {"env": "cartpole"},
    "acrobot-dqn": GREEDY | {"env": "gym:Acrobot-v1"},
    "torus": {"algo": "tracking_ac", "env": "torus", "total_steps": "160", "algo.trajectories": "4",
              "algo.horizon": "10", "feature_dim": "40", "actor_feature_dim": "12", "eval.episodes": "2"},
}  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    """Every case as a run of a second."""
    monkeypatch.setattr(catalogue, "BASE", TINY)
    monkeypatch.setattr(run, "BASE", TINY)


def train(tmp_path: Path, name: str | None, env: str = "cartpole", seed: int = 3) -> history.History:
    folder = tmp_path / "made" / str(name)
    run.make(name, env, seed, folder)
    return history.load(folder)


def column(trained: history.History, name: str) -> np.ndarray:
    return trained.columns[name].values


# ---- Seams


@pytest.mark.parametrize("name", seams.SEAMS)
def test_a_seam_is_replaced_and_put_back(name):
    owner, attribute = seams.place(name)
    before = getattr(owner, attribute)
    with suppress(ZeroDivisionError), seams.planted({name: lambda original: [original]}):
        assert getattr(owner, attribute) == [before]
        raise ZeroDivisionError
    assert getattr(owner, attribute) is before


def test_an_unknown_seam_names_the_known_ones():
    with pytest.raises(KeyError, match="collect"), seams.planted({"colect": lambda original: original}):
        pass


def test_algorithms_and_the_loop_know_nothing_of_faults():
    wing = Path(suite.__file__).parents[2] / "train"
    for path in (*wing.glob("*.py"), *wing.glob("algos/*.py"), *wing.glob("nets/*.py"), wing / "envs" / "base.py"):
        assert not re.search(r"\bfaults?\b", path.read_text()), path


# ---- The catalogue


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_is_complete(fault: Fault):
    assert fault.causes
    assert fault.seams or fault.settings
    assert set(fault.seams) <= set(seams.SEAMS)
    assert set(fault.envs) <= set(catalogue.BASE)
    assert fault.kind in ("run", "resume", "seeds", "arms")


def test_rules_name_faults_that_are_planted():
    for rule in all_rules(plugins=False).values():
        assert set(rule.names) <= set(FAULTS), rule.slug
    assert FAULTS["gae-shifted"].causes == {"advantage-misaligned"}


def test_each_config_fault_really_changes_a_setting():
    for fault in FAULTS.values():
        for env in fault.envs:
            changed = {k for k, v in fault.settings_on(env).items() if catalogue.BASE[env].get(k) != v}
            assert changed or fault.seams, fault.name


# ---- Fine-tuning


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("acted-by-another", "gantry-gae"),
        ("every-weight-at-the-cap", "gantry-gae"),
        ("rerollouts-for-free", "gantry-again"),
    ],
)
@pytest.mark.some(1)
def test_a_fault_of_fine_tuning_is_named(tmp_path: Path, tiny, name: str, env: str):
    pytest.importorskip("mujoco")
    run.make(name, env, 3, tmp_path / "faulty")
    said = {finding.slug for finding in examine(tmp_path / "faulty").findings}
    assert said & FAULTS[name].causes, said


@pytest.mark.parametrize("env", ["gantry-gae", "gantry-again"])
@pytest.mark.some(1)
def test_sound_fine_tuning_is_not_named(tmp_path: Path, tiny, env: str):
    pytest.importorskip("mujoco")
    run.make(None, env, 3, tmp_path / "sound")
    causes = {slug for fault in FAULTS.values() for slug in fault.causes if set(fault.envs) & set(catalogue.GANTRY)}
    assert not causes & {finding.slug for finding in examine(tmp_path / "sound").findings}


# ---- Planting


def test_a_healthy_case_is_the_run_that_train_makes(tmp_path, tiny):
    run.make(None, "cartpole", 3, tmp_path / "plain")
    run.make(None, "cartpole", 3, tmp_path / "resumed", kind="resume")
    assert fingerprint(tmp_path / "plain") == fingerprint(tmp_path / "resumed")
    assert "resume" in {event["kind"] for event in history.load(tmp_path / "resumed").events}
    assert np.all(column(history.load(tmp_path / "plain"), "policy/kl_start") < 1e-9)


SEEN = {  # what a fault does to one number of the run, where a healthy run has the other
    "advantage-sign": lambda a, b: column(a, "data/advantage_td")[0] == -column(b, "data/advantage_td")[0] != 0,
    "no-termination-mask": lambda a, b: column(a, "value/after_end").any() and not column(b, "value/after_end").any(),
    "ratio-always-one": lambda a, b: column(a, "policy/kl").max() < 1e-9 < column(b, "policy/kl").max(),
    "lr-over-1000": lambda a, b: column(a, "optim/step_rms").max() < 0.01 * column(b, "optim/step_rms").max(),
    "reward-times-1000": lambda a, b: column(a, "data/reward_max").min() == 1000 * column(b, "data/reward_max").max(),
    "one-huge-observation": lambda a, b: column(a, "data/obs_max").min() > 10 * column(b, "data/obs_max").max(),
    "gradient-clip-1e-6": lambda a, b: column(a, "optim/grad_clipped_share").min() == 1,
    "stale-data": lambda a, b: column(a, "policy/kl_start")[2:].min() > 1e-9 > column(b, "policy/kl_start").max(),
    "best-in-training": lambda a, b: b"return/mean_100" in (a.folder / "checkpoints" / "best.json").read_bytes(),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.some(6)
def test_a_fault_leaves_its_mark_in_the_run(tmp_path, tiny, name):
    faulty, healthy = train(tmp_path, name), train(tmp_path, None)
    assert faulty.meta["status"] == "finished"
    assert SEEN[name](faulty, healthy)


def test_a_frozen_critic_loses_nothing_by_its_updates(tmp_path, tiny):
    trained = train(tmp_path, "critic-frozen")
    before = 0.5 * (column(trained, "data/advantage_std") ** 2 + column(trained, "data/advantage_mean") ** 2)
    assert column(trained, "value/loss") == pytest.approx(before, rel=1e-4)


def test_a_bonus_with_the_wrong_sign_lowers_the_entropy(tmp_path, tiny):
    fault = FAULTS["entropy-punished"]
    for name, planted in (("punished", fault.seams), ("paid", {})):
        run.one(
            run.Member("", fault.settings_on("cartpole") | {"algo.lr": "0.003"}, 3), tmp_path / name, planted, "run"
        )
    punished, paid = (column(history.load(tmp_path / name), "policy/entropy") for name in ("punished", "paid"))
    assert punished[-1] < paid[-1]


@pytest.mark.slow
def test_a_cut_counts_as_an_end(tmp_path, tiny):
    assert not column(train(tmp_path, "cut-as-end", "pendulum"), "value/after_cut").any()
    assert column(train(tmp_path, None, "pendulum"), "value/after_cut").all()


def test_an_observation_that_is_no_number_ends_the_run(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr("relab.lab.faults.replacements.NAN_AT", 3)
    assert train(tmp_path, "nan-observation").meta["status"] == "failed"


@pytest.mark.parametrize(
    ("name", "metric"),
    [("resume-forgets-optimiser", "optim/adam_steps"), ("resume-forgets-scales", "data/obs_seen")],
)
def test_a_resume_loses_what_it_should_keep(tmp_path, tiny, name, metric):
    values = column(train(tmp_path, name), metric)
    assert (np.diff(values) < 0).sum() == 1
    assert np.argmin(np.diff(values)) + 1 == len(values) // 2


@pytest.mark.slow
def test_a_replay_methods_faults_leave_their_marks(tmp_path, tiny):
    stuck, kept = (train(tmp_path, name, "pendulum-sac") for name in ("temperature-stuck", "target-never-copied"))
    assert set(column(stuck, "optim/temperature")) == {1.0}
    assert set(column(stuck, "optim/temperature_loss")) == {0.0}
    assert column(kept, "optim/temperature")[-1] < 1
    assert column(train(tmp_path, "reward-times-1000", "pendulum-sac"), "data/reward_min").min() < -100
    assert column(train(tmp_path, "no-termination-mask", "herd-sac"), "value/after_end").max() > 0
    assert column(train(tmp_path, None, "herd-sac"), "value/after_end").max() == 0


def test_the_faults_of_dqn_leave_their_marks(tmp_path, tiny):
    healthy = train(tmp_path, None, "cartpole-dqn")
    kept, stuck = (train(tmp_path, name, "cartpole-dqn") for name in ("target-never-copied", "exploration-stuck"))
    assert column(kept, "value/target_mean")[-1] < column(healthy, "value/target_mean")[-1]
    assert set(column(stuck, "policy/exploration")) == {1.0}
    assert column(healthy, "policy/exploration")[-1] < 0.1
    assert column(train(tmp_path, "reward-times-1000", "cartpole-dqn"), "data/reward_max").min() == 1000
    assert column(train(tmp_path, "no-termination-mask", "cartpole-dqn"), "value/after_end").max() > 0
    assert column(healthy, "value/after_end").max() == 0


@pytest.mark.parametrize("env", ["cartpole-dqn", "pendulum-sac"])
def test_an_actor_that_is_never_updated_earns_as_at_the_start_and_the_other_one_learns(tmp_path, tiny, env):
    """Training goes on without the learner's weights, which change all the same."""
    stale, healthy = train(tmp_path, "actor-never-updated", env), train(tmp_path, None, env)
    first = column(stale, "return/mean")[0]
    assert first == column(healthy, "return/mean")[0]
    assert column(stale, "return/mean")[-1] != column(healthy, "return/mean")[-1]
    assert column(stale, "optim/step_rms")[-1] > 0
    assert stale.meta["init"] == healthy.meta["init"]


def test_evaluations_begin_where_training_does(tmp_path, tiny):
    trained = set(streams.world_seeds(3, "env", int(SMALL["algo.envs"])).tolist())
    seeds = {e["seed"] for row in train(tmp_path, "evaluated-on-training-streams").evals for e in row["episodes"]}
    assert seeds <= trained
    assert not trained & {e["seed"] for row in train(tmp_path, None).evals for e in row["episodes"]}


def test_several_runs_share_what_they_should_not(tmp_path, tiny):
    run.make("seeds-duplicated", "cartpole", 3, tmp_path / "seeds")
    runs = [history.load(path) for path in sorted((tmp_path / "seeds").iterdir())]
    assert [each.meta["seed"] for each in runs] == [3, 1003, 2003]
    assert len({column(each, "optim/param_norm").tobytes() for each in runs}) == 1
    run.make("arms-begin-apart", "cartpole", 3, tmp_path / "arms")
    first = {path.name: history.load(path).meta["init"] for path in sorted((tmp_path / "arms").iterdir())}
    assert len(set(first.values())) == 4  # two seeds, and each begins apart in the two arms
    assert sorted(first) == ["a-s0", "a-s1", "b-s0", "b-s1"]


@pytest.mark.slow  # four runs
def test_coupled_draws_move_the_critic_and_named_streams_do_not(tmp_path, tiny):
    run.make("draws-coupled", "torus", 3, tmp_path / "coupled")
    fault = FAULTS["draws-coupled"]
    for name, settings in (("a-s0", TINY["torus"]), ("b-s0", fault.settings_on("torus"))):
        run.one(run.Member("", TINY["torus"] | settings, 3), tmp_path / "named" / name, {}, "run")
    parts = {way: [history.load(tmp_path / way / arm).meta["init_parts"] for arm in ("a-s0", "b-s0")]
             for way in ("coupled", "named")}  # fmt: skip
    moved = {way: {name for name in a if a[name] != b[name]} for way, (a, b) in parts.items()}
    assert moved == {"coupled": {"w", "theta_mu"}, "named": {"theta_mu"}}
    said = {way: {f.slug for f in examine(tmp_path / way).main} for way in parts}
    assert "coupled-random-streams" in said["coupled"]
    assert "coupled-random-streams" not in said["named"]


def test_arms_of_one_seed_begin_alike_when_nothing_is_planted(tmp_path, tiny):
    plain, other = run.Member("", TINY["cartpole"], 3), run.Member("", TINY["cartpole"] | {"algo.lam": "0.8"}, 3)
    for i, member in enumerate((plain, other)):
        run.one(member, tmp_path / str(i), {}, "run")
    assert len({history.load(tmp_path / str(i)).meta["init"] for i in range(2)}) == 1


# ---- Hiding


OTHERS = [fault for fault in FAULTS.values() if fault.envs != catalogue.DREAMER]  # test_dreamer_faults.py has the rest


@pytest.mark.parametrize("fault", OTHERS, ids=lambda fault: fault.name)
@pytest.mark.some(6)
def test_no_byte_of_the_copy_names_the_fault(tmp_path, tiny, monkeypatch, fault: Fault):
    monkeypatch.setattr("relab.lab.faults.replacements.NAN_AT", 3)
    case = suite.Case(fault.name, fault.envs[0], 3)
    suite.make(tmp_path, case)
    copy = suite.blind(tmp_path, case)
    assert fault.name not in str(copy.relative_to(tmp_path))
    assert hide.leaks_in(copy, FAULTS) == []
    for path in copy.rglob("*"):  # once more, without the module's own search
        assert path.is_dir() or fault.name.encode() not in path.read_bytes().lower()


def test_a_copy_that_names_its_fault_is_refused(tmp_path, tiny):
    run.make(None, "cartpole", 3, tmp_path / "made")
    with (tmp_path / "made" / "events.jsonl").open("a") as events:
        events.write('{"step": 0, "axis": "agent_steps", "kind": "warning", "message": "Stale_Data here"}\n')
    with pytest.raises(hide.LeakError, match=r"events\.jsonl"):
        hide.hide(tmp_path / "made", tmp_path / "copy", "stale-data")
    assert not (tmp_path / "copy").exists()


def test_ids_and_names_of_a_copy_are_its_own(tmp_path, tiny):
    run.make(None, "cartpole", 3, tmp_path / "made")
    hide.hide(tmp_path / "made", tmp_path / "copy", None)
    a, b = (history.load(tmp_path / name).meta for name in ("made", "copy"))
    assert (b["name"], len(b["id"])) == ("copy", 12)
    assert a["id"] != b["id"]
    assert a["config_hash"] == b["config_hash"]


# ---- Scoring


def scored(first: list[str], beside: list[str] | None, fault: str | None = "gradient-clip-1e-6", seed: int = 0):
    return suite.Score(suite.Case(fault, "cartpole", seed), first, beside)


def test_a_cause_counts_only_among_the_first_three_of_each_look():
    planted = [scored(["gradient-always-clipped"], ["plateau"]), scored(["plateau"], None, seed=1)]
    summary = suite.summary(planted, [suite.Alarm("x", 3, 1, {"diverged": 1}, True), suite.Alarm("y", 1, 0, {}, False)])
    rates = (summary.alone, summary.beside, summary.healthy_runs, summary.healthy_folders)
    assert [(rate.hits, rate.n) for rate in rates] == [(1, 2), (0, 1), (1, 4), (1, 2)]
    assert (summary.alone.low, summary.alone.high) == pytest.approx((0.095, 0.905), abs=5e-4)  # Wilson, 1 of 2


def test_nothing_scored_is_not_measured():
    assert suite.summary([], []).alone.share is None


def test_cases_keep_to_the_environments_of_a_fault():
    cases = suite.cases(["cut-as-end", "stale-data"], ["cartpole", "pendulum"], [0, 1])
    assert [case.label for case in cases if case.seed == 0] == [
        "cut-as-end/pendulum-s0", "stale-data/cartpole-s0", "stale-data/pendulum-s0",
    ]  # fmt: skip
    assert len({case.number for case in cases}) == len(cases) == 6


def test_the_command_plants_hides_examines_and_keeps_the_matrix(tmp_path, tiny, capsys):
    words = [
        "faults",
        "--only",
        "gradient-clip-1e-6",
        "--envs",
        "cartpole",
        "--seeds",
        "3",
        "4",
        "--out",
        str(tmp_path),
    ]
    assert cli.main(words) == 0
    shown = capsys.readouterr()
    assert "6 of 6: gradient-clip-1e-6/cartpole-s4" in shown.err
    assert re.search(r"\| gradient-clip-1e-6 \| cartpole \| 2 of 2 \| 2 of 2 \|", shown.out)
    assert "healthy runs with a warning or an error: 0 of 4 (0%, 95 % interval 0% to 49%)" in shown.out
    assert (tmp_path / "faults.md").read_text() == shown.out
    assert cli.main([*words, "--json"]) == 0  # nothing is trained again
    again = capsys.readouterr()
    assert again.err == ""
    assert '"alone":{"hits":2,"n":2' in again.out


def test_a_case_that_broke_off_is_made_anew(tmp_path, tiny):
    case = suite.Case(None, "cartpole", 3)
    suite.make(tmp_path, case)
    kept = (suite.case_folder(tmp_path, case) / "meta.json").read_bytes()
    suite.make(tmp_path, case)
    assert (suite.case_folder(tmp_path, case) / "meta.json").read_bytes() == kept
    suite.case_folder(tmp_path, case).with_name("cartpole-s3.done").unlink()
    (suite.case_folder(tmp_path, case) / "meta.json").write_text("cut o")
    suite.make(tmp_path, case)
    assert history.load(suite.case_folder(tmp_path, case)).meta["status"] == "finished"


def test_healthy_folders_of_other_formats_are_counted(tmp_path):
    rows = "".join(f"{100 * i},{20 + i}\n" for i in range(20))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n" + rows)
    alarm = suite.alarms(tmp_path / "logs")
    assert (alarm.runs, alarm.alarmed, alarm.folder_alarmed) == (1, 0, False)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--only", "lr-times-99"], cli.UNREADABLE, "there is no fault 'lr-times-99'"),
        (["--envs", "chess"], cli.UNREADABLE, "there is no environment of the suite 'chess'"),
        (["--seeds", "1", "1"], cli.USAGE, "seeds must be given and differ"),
    ],
)
def test_what_is_not_there_is_said_before_anything_is_trained(tmp_path, capsys, words, code, said):
    assert cli.main(["faults", "--out", str(tmp_path / "out"), *words]) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_list_names_every_fault_and_what_counts(capsys):
    assert cli.main(["faults", "--list"]) == 0
    text = capsys.readouterr().out
    assert [name for name in FAULTS if name not in text] == []


def test_causes_are_rules_that_exist():
    named = {slug for fault in FAULTS.values() for slug in fault.causes}
    assert sorted(named - set(all_rules())) == []


def test_base_settings_are_settings(tmp_path):
    for env, settings in catalogue.BASE.items():
        cfg = run.layers.resolve([run.Layer("command line", settings)]).config
        assert isinstance(cfg, RunConfig)
        assert env.partition("-")[0] in cfg.env.name.lower()


def test_a_case_that_relab_refuses_is_said_and_the_others_are_scored(tmp_path, tiny, monkeypatch):
    """Where the fault leaves nothing to learn from, the suite goes on; a healthy case that fails is still an error."""
    made = run.make

    def refuses(name, *rest):
        if name == "stale-data":
            raise ConfigError("no row has a reward; use a better start")
        made(name, *rest)

    monkeypatch.setattr(run, "make", refuses)
    lines: list[str] = []
    scores = suite.run_suite(tmp_path, ["stale-data", "advantage-sign"], ["cartpole"], [0], 1, lines.append)
    assert [score.case.fault for score in scores] == [None, None, "advantage-sign"]
    assert "stale-data/cartpole-s0; not made: no row has a reward; use a better start" in lines
    assert lines[-1] == "not counted, for they could not be made: stale-data/cartpole-s0"
    monkeypatch.setattr(run, "make", lambda name, *rest: refuses("stale-data"))
    with pytest.raises(ConfigError):
        suite.run_suite(tmp_path / "again", ["stale-data"], ["cartpole"], [0], 1, lines.append)
