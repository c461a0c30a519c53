"""Does fine-tuning do what it says? Estimators against known values, re-rollouts, fixed data, starts, same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from relab import cli
from relab.base.jsonl import read_jsonl
from relab.base.streams import world_seeds
from relab.config import layers
from relab.config.base import ConfigError
from relab.config.finetune import FineTune
from relab.train import checkpoint, session, telling
from relab.train.algos import finetune
from relab.train.algos.finetune import equations, estimates, gathering, rerollout
from relab.train.check_algo import check_algo
from relab.train.contract import DivergedError, Setup, Stopwatch
from relab.train.envs.base import Worlds
from relab.train.envs.ladder import Both, Discount
from relab.train.envs.pendulum import Pendulum
from relab.train.screen import Silent
from small_runs import fingerprint, resolve, run

SMALL = {"algo": "finetune", "env": "ladder-both", "total_steps": "6", "algo__envs": "8", "algo__steps": "8",
         "algo__hidden": "[16]", "algo__epochs": "2", "algo__minibatches": "2", "eval__every": "3", "save__every": "1",
         "eval__episodes": "4"}  # fmt: skip
AGAIN = {"algo__advantage": "rerollout", "algo__update": "awr", "algo__mc_samples": "2", "algo__slots": "16"}
FIXED = {"algo__data": "fixed", "algo__update": "awr"}
WAYS = [
    {**AGAIN, "env": "pendulum", "algo__antithetic": "true", "algo__cut": "4"},
    {}, {"algo__advantage": "mc", "algo__update": "awr"}, AGAIN, {**AGAIN, "algo__update": "ppo", "algo__states": "20"},
    {**FIXED, "algo__advantage": "gae", "algo__warmup": "1"}, {**FIXED, **AGAIN, "algo__follow": "start"},
    {**FIXED, "algo__advantage": "iql", "algo__fit_epochs": "3", "algo__n_step": "2"},
]  # fmt: skip


def state_of(env: Any, **settings: Any) -> finetune.State:
    cfg = FineTune(envs=16, steps=4, minibatches=2, hidden=(8,), **settings)
    return finetune.init(Setup(env, cfg, 3, 10))


def gathered(s: finetune.State) -> gathering.Gathered:
    p = s.ppo
    return gathering.gather(p.worlds, p.agent, p.traj, p.cursor, keep_worlds=True)


# ---- The ladder


def test_reruns_know_the_value_of_two_steps_and_of_one() -> None:
    """`discount` pays 1 at its end: from the first state gamma, from the second 1, with any action and without."""
    s = state_of(Discount(), advantage="rerollout", mc_samples=2)
    batch = gathered(s)
    made = estimates.by_rerollout(s, batch)
    v = np.where(batch.obs[..., 0] == 0, 0.8, 1.0)
    np.testing.assert_allclose(made.adv_TB, 0.0, atol=1e-7)
    assert made.facts["value/v_mean"] == pytest.approx(v.mean())
    assert made.facts["value/q_std"] == pytest.approx(v.std())


@pytest.mark.parametrize("common", [True, False])
def test_rerolled_advantages_are_unbiased_within_their_noise(common: bool) -> None:
    """`both` pays +-1 for the right action; a fresh policy takes it about half of the time: A = r - E r."""
    s = state_of(Both(), advantage="rerollout", mc_samples=64, common_noise=common)
    batch = gathered(s)
    made = estimates.by_rerollout(s, batch)
    p_right = np.exp(right_logp(s, batch.obs))
    true = batch.reward - (2 * p_right - 1)
    error = (made.adv_TB - true).reshape(-1)
    per_row = 2 * np.sqrt(p_right * (1 - p_right) / 64)  # the deviation of a mean of 64 draws of +-1
    assert np.abs(error).max() < 5 * per_row.max()
    assert abs(error.mean()) < 4 * per_row.mean() / len(error) ** 0.5
    assert made.facts["data/advantage_noise"] == pytest.approx(per_row.mean(), rel=0.1)


def right_logp(s: finetune.State, obs_TBD: np.ndarray) -> np.ndarray:
    out = s.ppo.agent.run("actor", obs_TBD.reshape(-1, 1))
    logp = out - np.log(np.exp(out).sum(1, keepdims=True))
    right = (obs_TBD.reshape(-1) > 0).astype(int)
    return logp[np.arange(len(right)), right].reshape(obs_TBD.shape[:2])


@pytest.mark.parametrize("way", ["gae", "mc"])
def test_returns_against_a_critic_of_known_values(way: str) -> None:
    """With the critic at 0 the advantage of `discount` is its return: gamma, or with lambda what it bootstraps."""
    s = state_of(Discount(), advantage=way, lam=0.5)
    s.ppo.agent.params.flat.zero_()
    batch = gathered(s)
    made = estimates.by_critic(s, batch)
    second, cut = batch.obs[:-1, :, 0] == 1, batch.obs[:-1, :, 0] == 0
    np.testing.assert_allclose(made.adv_TB[:-1][second], 1.0)
    np.testing.assert_allclose(made.adv_TB[:-1][cut], 0.8 * (0.5 if way == "gae" else 1.0))


def test_iql_finds_the_better_action_in_data() -> None:
    s = state_of(Both(), data="fixed", update="awr", advantage="iql", fit_epochs=150, patience=150, fit_lr=0.01)
    batch = gathered(s)
    made = estimates.by_iql(s, batch)
    assert equations.spearman(made.adv_TB.reshape(-1), batch.reward.reshape(-1)) > 0.7


@pytest.mark.parametrize("update", ["ppo", "awr"])
def test_rerollouts_teach_the_right_action(update: str) -> None:
    s = state_of(Both(), advantage="rerollout", update=update, mc_samples=4, lr=0.01, epochs=10)
    for _ in range(8):
        row = finetune.iterate(s, Stopwatch())
    assert row["return/mean"] > 0.9


# ---- Re-rollouts


def test_slots_change_nothing_but_the_speed() -> None:
    env = Pendulum()
    worlds = Worlds(env, 6)
    worlds.reset(world_seeds(0, "env", 6))
    s = finetune.init(Setup(env, FineTune(envs=6, steps=4, minibatches=2, hidden=(8,)), 3, 10))
    action = np.linspace(-2, 2, 6, dtype=np.float32)[:, None]
    totals = []
    for slots in (3, 36):
        again = rerollout.reruns(Worlds(env, slots), s.ppo.agent, worlds.snapshot(), action, 3, 0.9, 7,
                                 rerollout.Ways(), np.random.default_rng(0))  # fmt: skip
        totals.append(np.stack([again.q_SN, again.v_SN]))
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-5)  # a network's last bit depends on the number of rows
    assert again.cut == 1.0


def test_a_copy_with_its_own_draw_is_one_without() -> None:
    """The action that the policy would have drawn by itself changes nothing: Q and V are then the same bytes."""
    env = Pendulum()
    worlds = Worlds(env, 4)
    worlds.reset(world_seeds(0, "env", 4))
    s = finetune.init(Setup(env, FineTune(envs=4, steps=4, minibatches=2, hidden=(8,)), 3, 10))
    copies = rerollout.plan(4, 1, rerollout.Ways(), np.random.default_rng(5))
    streams = copies.noise_J[copies.with_action_J].copy()
    drawn = s.ppo.agent.act(worlds.obs.reshape(4, -1), np.zeros((4, 0), np.float32), streams).action
    again = rerollout.reruns(Worlds(env, 8), s.ppo.agent, worlds.snapshot(), s.ppo.agent.to_env(drawn), 1, 0.9, 6,
                             rerollout.Ways(), np.random.default_rng(5))  # fmt: skip
    np.testing.assert_array_equal(again.q_SN, again.v_SN)


def test_of_two_antithetic_copies_the_second_has_the_noise_of_the_first_with_the_other_sign() -> None:
    env = Pendulum()
    worlds, agent = Worlds(env, 3), state_of(env).ppo.agent
    worlds.reset(world_seeds(0, "env", 3))
    copies = rerollout.plan(3, 4, rerollout.Ways(antithetic=True), np.random.default_rng(5))
    slots = rerollout.Slots(Worlds(env, 24), worlds.snapshot(), copies)
    obs, none = slots.worlds.obs.reshape(24, -1), np.zeros((24, 0), np.float32)
    mean = agent.act(obs, none, slots.noise_N.copy(), 24).action
    drawn = agent.act(obs, none, slots.noise_N).action
    noise = (slots.mirror(agent, drawn) - mean).reshape(3, 2, 2, 2)  # state, with and without, pair, member
    np.testing.assert_allclose(noise[..., 0], -noise[..., 1], atol=1e-6)
    np.testing.assert_allclose(noise[:, 0], noise[:, 1], atol=1e-6)  # common random numbers hold as well
    assert len(np.unique(np.abs(noise).round(4))) == 6
    assert len(set(copies.world_J)) == 12, "a world's own noise is not mirrored, and not shared by a pair"


def test_antithetic_copies_are_unbiased_and_less_noisy_where_the_noise_counts_linearly() -> None:
    """Half an action away from upright, what a push earns over two steps is nearly linear in the noise."""
    env = Pendulum()
    worlds, s = Worlds(env, 8), state_of(env)
    worlds.reset(world_seeds(0, "env", 8))
    action = np.zeros((8, 1), np.float32)
    noise, means = [], []
    for antithetic in (False, True):
        ways = rerollout.Ways(False, antithetic)
        again = rerollout.reruns(Worlds(env, 64), s.ppo.agent, worlds.snapshot(), action, 64, 0.9, 4, ways,
                                 np.random.default_rng(1))  # fmt: skip
        noise.append(equations.certainty(again.q_SN, again.v_SN, *ways).noise)
        means.append(again.v_SN.mean(1))
    assert noise[1] < 0.5 * noise[0]
    np.testing.assert_allclose(means[0], means[1], atol=5 * noise[0])


def test_how_far_re_rollouts_are_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    s = state_of(Both(), advantage="rerollout", mc_samples=2, slots=16)
    s.tell = lambda *words: told.append(words)
    estimates.by_rerollout(s, gathered(s))
    assert {(what, total) for what, _, total in told} == {("re-rollouts", 256)}
    assert [done for _, done, _ in told] == list(range(16, 257, 16))


def test_the_screen_says_how_far_an_iteration_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parts(Silent):
        def part(self, row: Mapping[str, Any]) -> None:
            rows.append(row)

    rows: list[Mapping[str, Any]] = []
    monkeypatch.setattr(telling, "QUICK_S", 0.0)
    monkeypatch.setattr(telling, "PART_EVERY_S", 1e-9)
    run(tmp_path / "a", Parts(), **SMALL, **AGAIN)
    assert {(row["step"], row["total_steps"], row["what"], row["of"]) for row in rows} == {
        (step, 6, "re-rollouts", 256) for step in range(6)}  # fmt: skip
    assert all(0 < row["done"] <= 256 and row["eta_s"] >= 0 for row in rows)


def test_every_step_of_a_world_is_counted(tmp_path: Path) -> None:
    run(tmp_path / "a", **SMALL, **AGAIN)
    last = read_jsonl(tmp_path / "a" / "metrics.jsonl")[0][-1]
    assert last["data/env_steps"] == 6 * 64
    assert last["data/rerun_steps"] >= 6 * 64 * 4  # copies of one step each
    assert last["data/sim_steps"] == last["data/env_steps"] + last["data/rerun_steps"] + last["data/eval_steps"]


# ---- What standardised advantages can tell


@pytest.mark.parametrize("update", ["ppo", "awr"])
def test_scale_and_mean_of_standardised_advantages_cannot_matter(update: str, tmp_path: Path) -> None:
    """Twenty times the rewards, and a constant on every advantage: the same policy, to rounding."""
    flats = []
    for scale, shift in ((1.0, 0.0), (16.0, 0.0), (1.0, 8.0)):
        s = state_of(Both(), advantage="rerollout", update=update, mc_samples=4, reward_scale=scale)
        for _ in range(3):
            s.batch = gathered(s)
            made = estimates.estimate(s, s.batch)
            finetune.learn(s, replace(made, adv_TB=made.adv_TB + shift))
        flats.append(s.ppo.agent.params.flat.numpy().copy())
    np.testing.assert_allclose(flats[1], flats[0], atol=2e-5)
    np.testing.assert_allclose(flats[2], flats[0], atol=2e-4)


# ---- Bytes


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_resumed_in_the_middle_it_has_the_same_bytes(way: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between two steps of a re-rollout, or of an update where there is none."""
    settings = {**SMALL, **WAYS[way]}
    run(tmp_path / "whole", **settings)
    calls, real = iter(range(1000)), finetune.learn

    def killed(*args: Any) -> Any:
        if next(calls) == 3:
            raise SystemError("killed")
        return real(*args)

    target = (rerollout.Slots, "step") if settings.get("algo__advantage") == "rerollout" else (finetune, "learn")
    real = getattr(*target)
    with monkeypatch.context() as patch:
        patch.setattr(*target, killed)
        with pytest.raises(SystemError):
            run(tmp_path / "parts", **settings)
    assert session.resume(tmp_path / "parts").status == "finished"
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


def test_it_keeps_the_contract_with_reruns_on_fixed_data() -> None:
    typed = {key.replace("__", "."): value for key, value in {**SMALL, **FIXED, **AGAIN}.items()}
    check_algo(typed | {"total_steps": "8"})


# ---- Fixed data


def test_another_run_takes_a_fixed_batch_over(tmp_path: Path) -> None:
    first, second = ({**SMALL, **FIXED, **AGAIN} for _ in range(2))
    run(tmp_path / "first", **first)
    run(tmp_path / "second", **second, algo__fixed_from="first", seed="9")
    rows = [(tmp_path / name / "data" / "fixed" / "00000000.rows").read_bytes() for name in ("first", "second")]
    assert rows[0] == rows[1]
    last = read_jsonl(tmp_path / "second" / "metrics.jsonl")[0][-1]
    assert last["data/env_steps"] == 0
    rows = read_jsonl(tmp_path / "second" / "metrics.jsonl")[0]
    assert rows[0]["data/env_steps_taken_over"] == 8 * 8, "another run has paid for it"
    assert rows[0]["data/rerun_steps"] == 8 * 8 + 8 * 8 * 2 * 2, "episodes of `both` have one step"
    with pytest.raises(ConfigError, match="must be as large as this run's"):
        run(tmp_path / "third", **{**second, "algo__envs": "4"}, algo__fixed_from="first")


def flipped(content: bytes) -> bytes:
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


@pytest.mark.parametrize(
    ("file", "damage", "words"),
    [
        ("00000000.rows", flipped, "00000000.rows of .* was changed since"),
        ("00000000.rows", lambda content: b"", r"first \(finished\) ended before it had one"),
        ("fields.json", lambda content: b"{", "cannot be read: JSONDecodeError"),
        ("fields.json", lambda content: b"{}", "cannot be read: KeyError"),
        ("fields.json", lambda content: content.replace(b"<f4", b"|O"), "cannot be read"),
    ],
)
def test_a_batch_that_is_not_as_its_run_wrote_it_is_refused(tmp_path: Path, file: str, damage: Any, words: str) -> None:
    run(tmp_path / "first", **{**SMALL, **FIXED, "algo__advantage": "mc", "total_steps": "1"})
    place = tmp_path / "first" / "data" / "fixed" / file
    place.write_bytes(damage(place.read_bytes()))
    with pytest.raises(ConfigError, match=words):
        run(tmp_path / "b", **{**SMALL, **FIXED, "algo__advantage": "mc", "algo__fixed_from": "first"})


def test_numbers_that_no_world_gives_are_refused() -> None:
    rows = {name: np.zeros((2, 3), np.float32) for name in gathering.COLUMNS}
    rows["logp"][0, 0] = np.nan
    with pytest.raises(ConfigError, match="finite numbers, but its logp do not"):
        gathering.check_numbers(Path("a"), rows)


def test_a_fit_of_iql_that_diverges_is_no_fit() -> None:
    """Its least held-out error was infinite, untrained networks were kept, and the policy learned from them."""
    s = state_of(Both(), data="fixed", update="awr", advantage="iql", fit_epochs=3, fit_lr=0.9)
    s.cfg = replace(s.cfg, fit_lr=1e30)
    with pytest.raises(DivergedError, match=r"the fit of Q and V diverged: .*lower `fit_lr` \(now 1e\+30\)"):
        estimates.by_iql(s, gathered(s))


def test_a_warmup_that_never_ends_is_refused() -> None:
    cfg = FineTune(envs=16, steps=4, minibatches=2, hidden=(8,), warmup=10)
    with pytest.raises(ConfigError, match="the policy must learn after `warmup`, but that is 10 of 10 iterations"):
        finetune.check(Setup(Both(), cfg, 3, 10))


def test_copies_are_counted_and_idle_slots_are_not() -> None:
    """5 states x 2 x 2 copies of one step each, in 16 slots: 20 steps, though 16 + 16 worlds were stepped."""
    s = state_of(Both(), advantage="rerollout", mc_samples=2, states=5, slots=16)
    estimates.by_rerollout(s, gathered(s))
    assert (s.counts.rerun_steps, s.rerun_worlds.sim_steps) == (20, 32)  # type: ignore[union-attr]


@pytest.mark.parametrize("algo", ["finetune", "critic"])
def test_without_a_policy_to_begin_with_it_is_refused(
    algo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", algo, "env=cartpole"]) == 64
    said = " ".join(capsys.readouterr().err.split())
    assert "`start_from` must name the policy" in said
    assert "relab itself brings policies for pickcube, pickcube-gantry" in said
    assert not (tmp_path / "runs").exists()
    made = layers.resolve([layers.Layer("command line", {"algo": algo, "env": "cartpole"})]).config
    assert made.total_steps <= 30, "iterations"


# ---- Starts


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"log_std": -2.0}, "log_std is set to -2, the critic begins anew"),
        ({"critic": "start"}, "log_std stays as it was left, the critic is that of the start"),
        ({"critic_from": "runs/v"}, "log_std stays as it was left, the critic is that of runs/v"),
        ({"advantage": "rerollout"}, "log_std stays as it was left, there is no critic"),
    ],
)
def test_the_start_line_says_what_becomes_of_its_weights(settings: dict[str, Any], said: str) -> None:
    assert finetune.begins(FineTune(**settings)) == said


def test_critic_and_noise_of_the_start(tmp_path: Path) -> None:
    base = {"env": "pendulum", "total_steps": "256", "algo__hidden": "[8]"}
    run(tmp_path / "start", algo="ppo", **base)
    weights = checkpoint.load(tmp_path / "start" / "checkpoints", "latest")[0]["params"]
    small = {**SMALL, "env": "pendulum", "algo__hidden": "[8]", "total_steps": "1", "start_from": "start"}
    for name, critic, kept in (("reset", {}, False), ("same", {"algo__critic": "start"}, True),
                               ("other", {"algo__critic_from": "start"}, True)):  # fmt: skip
        run(tmp_path / name, **small, **critic, algo__log_std="-1.5")
        begun = checkpoint.load(tmp_path / name / "checkpoints", "0")[0]["params"]
        np.testing.assert_array_equal(begun["actor/0/weight"], weights["actor/0/weight"])
        assert np.array_equal(begun["critic/0/weight"], weights["critic/0/weight"]) == kept
        assert (begun["log_std"] == -1.5).all()


def test_a_critic_of_its_own_size_and_a_warm_up_that_leaves_the_policy(tmp_path: Path) -> None:
    run(tmp_path / "big", **{**SMALL, "total_steps": "2"}, algo__critic_hidden="[32,32]", algo__warmup="2")
    before, after = (checkpoint.load(tmp_path / "big" / "checkpoints", step)[0]["params"] for step in ("0", "2"))
    assert before["critic/1/weight"].shape == (32, 32)
    assert not np.array_equal(before["critic/1/weight"], after["critic/1/weight"])
    for name in before:
        if name.startswith("actor"):
            np.testing.assert_array_equal(before[name], after[name])


def test_a_solved_start_is_refused_unless_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    from relab.train.algos.finetune import starting

    env = Both()
    env.spec = replace(env.spec, outcome="success")
    s = state_of(env)
    won = [{"success": True}] * 100
    played = SimpleNamespace(sim_steps=7, episodes={"det": won})
    monkeypatch.setattr(starting.rollout, "evaluate", lambda *args, **more: played)
    with pytest.raises(ConfigError, match=r"at most 95% .* in 100% of 100.*solved_start=true"):
        finetune.follow_weights(s)
    finetune.follow_weights(replace(s, cfg=replace(s.cfg, solved_start=True)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"advantage": "iql"}, "use data=fixed"),
        ({"data": "fixed"}, "use update=awr"),
        ({"data_from": ("a",)}, "use advantage=iql"),
        ({"advantage": "rerollout", "critic_from": "a"}, "which has none"),
        ({"states": 8}, "use advantage=rerollout"),
        ({"fixed_from": "a"}, "use data=fixed"),
        ({"advantage": "rerollout", "warmup": 2}, "use warmup=0"),
        ({"rnn": "gru", "steps": 16, "bptt": 16}, "without a recurrent layer"),
        ({"update": "awr", "lr_schedule": "adaptive_kl", "target_kl": 0.1}, "constant or linear"),
        ({"expectile": 1.0}, "expectile"),
        ({"advantage": "rerollout", "antithetic": True, "mc_samples": 3}, "use an even number"),
        ({"antithetic": True}, "use advantage=rerollout"),
        ({"beta": 0.5, "cap": 5.0}, r"AWR alone read `beta`, `cap`, but .* leave them out, or use update=awr"),
        ({"cut": 10}, "re-rollouts alone read `cut`, but .* use advantage=rerollout"),
        ({"expectile": 0.8}, "IQL alone read `expectile`, but .* use advantage=iql"),
        ({"critic": "start", "critic_from": "a"}, "two critics to begin with"),
        ({"update": "awr", "cap": 0.5}, r"an average action weighs exp\(0\) = 1, but got cap = 0.5"),
        ({"update": "awr", "cap": 1e38}, "cap"),
        ({"reward_scale": 1e300}, "reward_scale"),
        ({"log_std": 100.0, "log_std_max": 200.0}, "log_std"),
        ({"epochs": 10**9}, "epochs"),
        ({"advantage": "rerollout", "mc_samples": 10**9}, "at most 50,000,000 copies, but .* 5,000,000,000,000; use"),
        ({"data": "fixed", "update": "awr", "advantage": "iql", "data_episodes": 10**9}, "data_episodes"),
        ({"data": "fixed", "update": "awr", "advantage": "iql", "fit_lr": 1e30}, "fit_lr"),
    ],
)
def test_what_makes_no_sense_together_is_refused_with_the_remedy(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        FineTune(**{"minibatches": 5, **settings}).check()


def test_a_policy_of_another_environment_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "other", algo="ppo", env="cartpole", total_steps="128")
    with pytest.raises(ConfigError, match=r"`follow` must be a policy for ladder-both-v1, but other was trained for"):
        run(tmp_path / "a", **{**SMALL, **AGAIN, "algo__follow": "other"})
    with pytest.raises(ConfigError, match="`follow` must name a run"):
        run(tmp_path / "b", **{**SMALL, **AGAIN, "algo__follow": "nobody"})


class Restless(Both):
    """Pays by a die that is no part of its state."""

    def step(self, state: Any, alive: np.ndarray, action: np.ndarray, out: Any) -> None:
        super().step(state, alive, action, out)
        out.reward[:] += np.random.default_rng().normal(size=out.reward.shape)


def test_worlds_that_cannot_be_put_back_are_not_run_again() -> None:
    for env in (Both(), Discount(), Pendulum()):
        rerollout.check_snapshots(env)
    with pytest.raises(
        ConfigError, match=r"two copies of one state of ladder-both-v1 went different ways.*advantage=gae"
    ):
        finetune.check(Setup(Restless(), FineTune(advantage="rerollout"), 0, 10))


def test_data_without_a_reward_are_no_data_for_iql() -> None:
    s = state_of(Both(), data="fixed", update="awr", advantage="iql", fit_epochs=1)
    batch = gathered(s)
    batch.reward[:] = 0
    with pytest.raises(ConfigError, match="none of the 64 rows that Q and V are fitted to has one"):
        estimates.by_iql(s, batch)


def test_a_critic_and_a_batch_of_another_environment_are_refused(tmp_path: Path) -> None:
    run(tmp_path / "other", **{**SMALL, **FIXED, "env": "ladder-discount", "algo__advantage": "gae"})
    with pytest.raises(
        ConfigError, match=r"`critic_from` must be a critic for ladder-both-v1, but other was trained for"
    ):
        run(tmp_path / "a", **{**SMALL, "algo__critic_from": "other"})
    with pytest.raises(ConfigError, match=r"`fixed_from` must be a batch of ladder-both-v1, but other was trained for"):
        run(tmp_path / "b", **{**SMALL, **FIXED, "algo__advantage": "gae", "algo__fixed_from": "other"})


def test_antithetic_choices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the actions of ladder-both-v1 are not drawn so; leave it out"):
        run(tmp_path / "a", **{**SMALL, **AGAIN, "algo__antithetic": "true"})


def test_fixed_data_say_what_they_hold(tmp_path: Path) -> None:
    run(tmp_path / "a", **{**SMALL, **FIXED, **AGAIN})
    said = json.loads((tmp_path / "a" / "data" / "fixed" / "fields.json").read_text())
    assert {f["name"] for f in said["fields"]} >= {"obs", "action", "logp", "reward", "next_obs", "world.state.seen"}


def test_environments_of_gymnasium_are_run_again_by_their_actions(tmp_path: Path) -> None:
    """Their snapshot is a seed and the actions since; with the policy's own draw a copy earns what was earned."""
    settings = {**SMALL, **AGAIN, "env": "gym:CartPole-v1", "total_steps": "2", "algo__states": "12", "algo__cut": "5"}
    run(tmp_path / "a", **settings)
    last = read_jsonl(tmp_path / "a" / "metrics.jsonl")[0][-1]
    assert last["value/v_mean"] == pytest.approx(1 + 0.8 + 0.64 + 0.512 + 0.4096, abs=0.4)  # nobody falls at once
    with pytest.raises(ConfigError, match="use data=online"):
        session.check_agent(resolve(**{**settings, **FIXED}).config, session.make_env(resolve(**settings).config))


def test_a_fixed_batch_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    """`value` has one action: with it and without it a copy earns the same."""
    with pytest.raises(ConfigError, match=r"all 64 advantages are 0, with a reward in 100\.00% of its rows"):
        run(tmp_path / "a", **{**SMALL, **FIXED, **AGAIN, "env": "ladder-value"})
