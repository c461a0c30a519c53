"""Which faults are planted into numbers that relab itself does not log? Into copies of committed healthy runs.

Each function edits the copy of one healthy run as its docstring says; some need several runs beside each other.
make_histories.py calls them when the tests start.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from planted_dreams import DREAMS

Copy = Callable[[str, str], "Editable"]  # (healthy run, name below the fault's folder) -> its files


class Editable:
    """The rows of a copied run; saved by make()."""

    def __init__(self, path: Path):
        self.path = path
        self.rows = {p.name: [json.loads(line) for line in p.read_text().splitlines()] for p in path.glob("*.jsonl")}
        self.meta = json.loads((path / "meta.json").read_text())
        self.config = (path / "config.yaml").read_text()

    @property
    def metrics(self) -> list[dict]:
        return self.rows["metrics.jsonl"]

    def add(self, **columns: Callable[[int], float]) -> None:
        """New columns under foreign/, by the number of the row."""
        for i, row in enumerate(self.metrics):
            row |= {f"foreign/{name}": float(f"{value(i):.6g}") for name, value in columns.items()}

    def put(self, **columns: Callable[[int], float]) -> None:
        """Metrics of relab's own names, with __ for the slash, by the number of the row."""
        for i, row in enumerate(self.metrics):
            row |= {name.replace("__", "/"): float(f"{value(i):.6g}") for name, value in columns.items()}

    def stretch(self, times: int) -> None:
        """Each row several times, at steps of its own, without the columns that make a history large."""
        gone = ("step", "optim/", "data/", "value/target")
        rows = [(row["step"], {k: v for k, v in row.items() if not k.startswith(gone)}) for row in self.metrics]
        self.rows["metrics.jsonl"] = [{"step": times * step + k, **row} for step, row in rows for k in range(times)]

    def change(self, key: str, value: Callable[[int, float], float]) -> None:
        """A column's values by number of the row and value; rows without it stay."""
        held = [row for row in self.metrics if key in row]
        for i, row in enumerate(held):
            row[key] = value(i, row[key])

    def save(self) -> None:
        for name, rows in self.rows.items():
            text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
            (self.path / name).write_text(text)
        (self.path / "meta.json").write_text(json.dumps(self.meta) + "\n")
        (self.path / "config.yaml").write_text(self.config)


def frozen(copy: Copy) -> None:
    """A critic whose steps are 1e-5 of its size; w is drawn with 0.1 * sqrt(2048)."""
    run = copy("cartpole", "")
    run.add(w_norm=lambda i: 4.5304 - 4e-5 * i, delta_w_norm=lambda i: 6e-5 + 1e-6 * (i % 3))
    run.config += "foreign:\n  w_init_scale: 0.1\n  feature_dim: 2048\n"


def rate_runs_out(copy: Copy) -> None:
    """A schedule that counts steps as if they were updates: the rate is 0 from the third row on."""
    copy("cartpole", "").change("optim/lr", lambda i, x: x if i < 2 else 0.0)


def cut_short(copy: Copy) -> None:
    """A wrapper ends every episode after 12 steps; the task itself lasts 500."""
    run = copy("cartpole", "")
    run.put(return__length=lambda i: 12.0 if i else 11.0, return__mean=lambda i: 12.0 if i else 11.0)
    for row in run.rows["evals.jsonl"]:
        for episode in row["episodes"]:
            episode |= {"return": 12.0, "length": 12}


def halfway(copy: Copy) -> None:
    """It learns to stand for 60 steps of 500 and stays there, with as many steps as others need for all of them."""
    run = copy("cartpole", "")
    for row in run.rows["evals.jsonl"]:
        for i, episode in enumerate(row["episodes"]):
            episode |= {"return": 55.0 + i % 8, "length": 55 + i % 8} if row["step"] else {}


def entropy_negated(copy: Copy) -> None:
    """Minus the entropy of two actions is logged."""
    copy("cartpole", "").put(policy__entropy=lambda i: 0.03 * i - math.log(2))


def success_turned(copy: Copy) -> None:
    """The success of an episode is that it failed."""
    run = copy("cartpole", "")
    run.put(return__success=lambda i: 0.9 - 0.07 * i + 0.01 * (i % 2), return__mean=lambda i: 20.0 + 30 * i + i % 3)


def sum_not_reset(copy: Copy) -> None:
    """The sum of rewards is not set back at an end: ten episodes are counted as one."""
    copy("cartpole", "").change("return/mean", lambda i, x: 10 * x)


def no_episode_ends(copy: Copy) -> None:
    """A task without a time limit: updates are logged, and not one return."""
    run = copy("cartpole", "")
    run.rows["evals.jsonl"] = []
    for row in run.metrics:
        for key in [key for key in row if key.startswith(("return/", "eval/"))]:
            del row[key]


def never_paid(copy: Copy) -> None:
    """A reward that is never paid, in every row."""
    run = copy("cartpole", "")
    run.stretch(3)
    run.put(return__mean=lambda i: 0.0)


def wide(copy: Copy) -> None:
    """Seven of ten rows leave the clip range in every update, twice as many as in any healthy run; KL is as usual."""
    copy("cartpole", "").change("policy/clip_share", lambda i, x: 0.36 if i % 2 else 0.7)


def capped(copy: Copy) -> None:
    """A solver that stops at 2000 of 2000 iterations; its flag is written as text."""
    run = copy("cartpole", "")
    rows = [{"step": row["step"], "probe": "fixed_point", "value": 0.03, "converged": "False", "num_iters": 2000}
            for row in run.metrics]  # fmt: skip
    run.rows["probes.jsonl"] = rows
    run.config += "foreign:\n  probes.fixed_point.max_iters: 2000\n"


def pinned(copy: Copy) -> None:
    """A dynamics loss under its free bits: exactly 1 in all rows; there are two for each row of the original."""
    run = copy("cartpole", "")
    kept = ("axis", "return/mean", "value/mean", "policy/kl", "policy/clip_share", "optim/lr")
    first = [(row["step"], {key: row[key] for key in kept if key in row}) for row in run.metrics]
    run.rows["metrics.jsonl"] = [{"step": step - 1 + k, **row} for step, row in first for k in (0, 1)]
    run.add(dyn_loss=lambda i: 1.0, recon_loss=lambda i: 2.0 / (1 + i))
    run.config += "foreign:\n  free_nats: 1.0\n"


def ceiling(copy: Copy) -> None:
    """A categorical critic that ends at 20, where the rewards allow 50."""
    run = copy("cartpole", "")
    run.change("value/mean", lambda i, x: 20 * (1 - math.exp(-1.0 - i)))
    run.config += "foreign:\n  v_max: 20.0\n"


def unread(copy: Copy) -> None:
    """80 power iterations were asked for under a name that nobody reads; the probe shows 20."""
    run = copy("cartpole", "")
    run.rows["probes.jsonl"] = [{"step": row["step"], "probe": "stability", "value": 0.99, "power_iters": 20}
                                for row in run.metrics]  # fmt: skip
    run.config += "foreign:\n  stability.power_iters: 20\n  stability.n_power_iters: 80\n"


def ratio(copy: Copy) -> None:
    """The second estimate of the loss lacks a factor of two, and has noise of its own."""
    run = copy("cartpole", "")
    run.add(td_loss=lambda i: 3 + math.sin(i), td_loss_from_q=lambda i: (3 + math.sin(i)) / 2 * (1 + 0.05 * (-1) ** i))


def alias(copy: Copy) -> None:
    """What is called mean_reward is a score."""
    run = copy("pendulum", "")
    run.add(mean_reward=lambda i: 7.0 + 0.1 * (i % 2), score=lambda i: 7.0 + 0.1 * (i % 2))


def misquoted(copy: Copy) -> None:
    """The speed at the end is that of an evaluation."""
    run = copy("cartpole", "")
    rows = run.rows["timing.jsonl"]
    for row in rows:
        row |= {"time/elapsed_s": row["step"] / 1000, "time/sps_mean": 1000.0}
    rows[-1]["time/sps_mean"] = 2600.0


def axes(copy: Copy) -> None:
    """Another writer counts iterations."""
    run = copy("cartpole", "")
    run.metrics.extend({"step": i, "axis": "iteration", "foreign/tail_share": 0.1 * i} for i in range(1, 8))


def label(copy: Copy) -> None:
    """The folder is called lr0.01, the config says something else."""
    copy("cartpole", "lr0.01_s0")


def inert(copy: Copy) -> None:
    """Three values of a setting that nothing depends on; the returns differ by a thousandth."""
    for k, value in enumerate((0.1, 0.2, 0.4)):
        run = copy("pendulum", f"clip-{value}")
        run.config = run.config.replace("clip: 0.2", f"clip: {value}")
        run.meta |= {"config_hash": f"{k:012d}", "id": f"{k:012d}"}
        for row in run.rows["evals.jsonl"]:
            for episode in row["episodes"]:
                episode["return"] = float(f"{episode['return'] * (1 + 0.001 * k):.5g}")


def coupled(copy: Copy) -> None:
    """Without an offset one draw less is made, and the critic begins elsewhere."""
    for k, (offset, norm) in enumerate(((0.0, 4.5817), (0.1, 4.5304), (0.2, 4.5304))):
        run = copy("pendulum", f"offset-{offset}")
        run.config += f"foreign:\n  mu_offset: {offset}\n"
        run.meta |= {"config_hash": f"{k:012d}", "id": f"{k:012d}"}
        run.metrics.insert(0, {"step": 0, "axis": "agent_steps", "foreign/w_norm": norm})
        for row in run.rows["evals.jsonl"]:
            for episode in row["episodes"]:
                episode["return"] *= 1 + 0.2 * k


def arm(copy: Copy, k: int, name: str, **settings: tuple[str, str]) -> Editable:
    """A copy of one run with settings replaced: key -> (as it is, as it shall be); its returns rise with k."""
    run = copy("pendulum", name)
    for old, new in settings.values():
        assert old in run.config
        run.config = run.config.replace(old, new)
    run.meta |= {"config_hash": f"{k:012d}", "id": f"{k:012d}"}
    for row in run.rows["evals.jsonl"]:
        for episode in row["episodes"]:
            episode["return"] = float(f"{episode['return'] * (1 + 0.1 * k):.5g}")
    return run


def behind(copy: Copy) -> None:
    """With the narrower clip the run stays where it was after its first evaluations, far behind the other arm."""
    arm(copy, 0, "plain")
    run = arm(copy, 1, "narrow", clip=("clip: 0.2", "clip: 0.1"))
    for i, row in enumerate(run.rows["evals.jsonl"]):
        for k, episode in enumerate(row["episodes"]):
            episode["return"] = -900.0 + 10 * ((i + k) % 7)


def together(copy: Copy) -> None:
    """The arm with the narrower clip has another lambda as well."""
    arm(copy, 0, "plain")
    arm(copy, 1, "narrow", clip=("clip: 0.2", "clip: 0.1"), lam=("lam: 0.95", "lam: 0.8"))


def holes(copy: Copy) -> None:
    """Two clips by three lambdas, and one of the six was never run."""
    for k, (clip, lam) in enumerate([(0.1, 0.9), (0.1, 0.95), (0.1, 0.99), (0.3, 0.9), (0.3, 0.95)]):
        arm(copy, k, f"clip-{clip}-lam-{lam}", clip=("clip: 0.2", f"clip: {clip}"), lam=("lam: 0.95", f"lam: {lam}"))


def costly(copy: Copy) -> None:
    """Two of a hundred planned runs took forty minutes each."""
    names = ["clip0p1_s0", "clip0p3_s0", *(f"clip0p{k}_s0" for k in range(1000, 1098))]
    for k, (name, clip) in enumerate(zip(names, (0.1, 0.3))):
        run = arm(copy, k, name, clip=("clip: 0.2", f"clip: {clip}"))
        for i, row in enumerate(run.rows["timing.jsonl"], 1):
            row["time/elapsed_s"] = 2418.0 * i / len(run.rows["timing.jsonl"])
        (run.path.parent / "trials.json").write_text(json.dumps({"planned": names}) + "\n")


# ---- Marks of the program itself


def marked(copy: Copy, name: str = "cartpole-3") -> Editable:
    return copy(name, "")


def wrong_sign(copy: Copy) -> None:
    """The advantages' sign is turned."""
    marked(copy).change("data/advantage_td", lambda i, x: -0.4 - 0.01 * i)


def beyond(copy: Copy) -> None:
    """The successor of a terminated state is the next episode's first."""
    marked(copy).change("value/after_end", lambda i, x: 20.0 + i)


def one(copy: Copy) -> None:
    """The old log-probability is the new one."""
    run = marked(copy)
    for key in ("policy/kl", "policy/kl_k1", "policy/kl_max", "policy/clip_share"):
        run.change(key, lambda i, x: 0.0)


def unlearned(copy: Copy) -> None:
    """The value loss after the epochs is the one before."""
    run = marked(copy)
    for row in run.metrics:
        row["value/loss"] = (row["data/advantage_mean"] ** 2 + row["data/advantage_std"] ** 2) / 2


def rewards(copy: Copy) -> None:
    """A thousand per step where the environment gives one."""
    marked(copy).change("data/reward_max", lambda i, x: 1000 * x)


def inputs(copy: Copy) -> None:
    """One number of each observation in other units."""
    marked(copy).change("data/obs_max", lambda i, x: 1e5 * x)


def stale(copy: Copy) -> None:
    """The policy of some iterations ago acts."""
    marked(copy).change("policy/kl_start", lambda i, x: 0.01 + 0.001 * i)


def forgotten(copy: Copy) -> None:
    """Adam's count starts anew in the seventh row."""
    marked(copy).change("optim/adam_steps", lambda i, x: x if i < 6 else 32.0 * (i - 5))


def same_seeds(copy: Copy) -> None:
    """Evaluations use the seeds of the training worlds."""
    from relab.base.streams import world_seeds

    run = marked(copy)
    for row in run.rows["evals.jsonl"]:
        for episode, seed in zip(row["episodes"], world_seeds(run.meta["seed"], "env", len(row["episodes"]))):
            episode["seed"] = int(seed)


def twice(copy: Copy) -> None:
    """One run under two seeds."""
    for seed in (3, 4):
        run = copy("cartpole-3", f"seed-{seed}")
        run.meta |= {"seed": seed, "id": f"{seed:012d}"}
        run.config = run.config.replace("seed: 7", f"seed: {seed}")


def tries(copy: Copy) -> None:
    """One config and seed, and another result from the start."""
    for number in (1, 2):
        run = copy("cartpole-3", f"try-{number}")
        run.meta |= {"id": f"{number:012d}"}
        run.change("return/mean", lambda i, x, share=0.6 * number: share * x)


# ---- Replay methods: real runs of another library


def never_ends(copy: Copy) -> None:
    """The share of random actions stays above 60 %."""
    copy("dqn-cartpole", "").change("policy/exploration", lambda i, x: 0.6 + 0.4 * x)


def left_behind(copy: Copy) -> None:
    """The network that acts in training stays as it was, while the one that is evaluated learns."""
    run = copy("relab-dqn", "")
    for name in ("return/mean", "return/length", "return/max"):
        run.change(name, lambda i, x: 9.0 + i % 3)


def behind_training(copy: Copy) -> None:
    """Training learns, and the likeliest actions are still worth what a random policy earns."""
    run = copy("cartpole", "")
    for row in run.rows["evals.jsonl"]:
        for k, episode in enumerate(row["episodes"]):
            episode["return"] = 20.0 + k % 5


def other_rewards(copy: Copy) -> None:
    """Rewards reach the learner a hundred times too large."""
    copy("relab-sac", "").change("data/reward_mean", lambda i, x: 100 * x)


def all_random(copy: Copy) -> None:
    """Exploration does not fall."""
    copy("relab-dqn", "").change("policy/exploration", lambda i, x: 1.0)


def still(copy: Copy) -> None:
    """Targets are five rewards and what an untrained network says of the rest."""
    run = copy("relab-dqn", "")
    run.change("value/q_mean", lambda i, x: 4.7 + 0.01 * i)
    run.change("value/target_mean", lambda i, x: 4.75 + 0.01 * i)
    run.change("value/target_max", lambda i, x: 5.2)


def hot(copy: Copy) -> None:
    """The temperature grows by half in every row, and the returns fall with it."""
    run = copy("sac-pendulum", "")
    run.change("optim/temperature", lambda i, x: 0.1 * 1.6**i)
    for row in run.rows["evals.jsonl"][-3:]:
        for episode in row["episodes"]:
            episode["return"] = -1200.0


def stuck(copy: Copy) -> None:
    """The temperature's optimiser does nothing."""
    copy("sac-pendulum", "").change("optim/temperature", lambda i, x: 0.2)


def believing(copy: Copy) -> None:
    """The critic expects a thousand where every reward is negative."""
    copy("sac-pendulum", "").change("policy/actor_loss", lambda i, x: x - 200.0 * i)


def no_target(copy: Copy) -> None:
    """The target network is the critic."""
    run = copy("sac-pendulum", "")
    run.config = run.config.replace("tau: 0.005", "tau: 1.0")


def catching_up(copy: Copy) -> None:
    """After the middle, five updates are made where one was made before."""
    copy("sac-pendulum", "").change("data/updates", lambda i, x: x if i < 9 else x + 6 * (x - 5000))


def endless(copy: Copy) -> None:
    """Rewards are not discounted."""
    run = copy("sac-pendulum", "")
    run.config = run.config.replace("gamma: 0.99", "gamma: 1.0")


def too_random(copy: Copy) -> None:
    """Five nats are asked of one action in [-2, 2]."""
    run = copy("sac-pendulum", "")
    run.config = run.config.replace("target_entropy: -1.0", "target_entropy: 5.0")


# ---- AWR and IQL: real runs of benchmarks/peers/offline_runs.py


def any_weights(copy: Copy) -> None:
    """The weights of standardised advantages at beta 1 have a mean of 1.64."""
    copy("awr-cartpole", "").change("policy/weight_mean", lambda i, x: 1.62 + 0.03 * (i % 3))


def one_sided(copy: Copy) -> None:
    """The baseline lies above nearly all actions."""
    copy("awr-cartpole", "").change("data/advantage_positive", lambda i, x: 0.04)


def lifted(copy: Copy) -> None:
    """V has lost touch with Q."""
    copy("iql-cartpole", "").change("data/advantage_mean", lambda i, x: -3.0 - i)


def others_actions(copy: Copy) -> None:
    """The batch was drawn by another policy."""
    copy("awr-cartpole", "").put(data__behaviour_gap=lambda i: 1.2)


def mean_for_expectile(copy: Copy) -> None:
    """V is the mean of Q, where the settings say 0.8."""
    copy("iql-cartpole", "").put(value__expectile=lambda i: 0.5)


def worse_than_a_mean(copy: Copy) -> None:
    """A critic that was fitted alone; in held-out worlds it errs by more than the returns vary."""
    run = copy("iql-cartpole", "")
    run.config = run.config.replace("  name: iql\n", "  name: critic\n")
    run.put(value__explained_variance=lambda i: -0.4, value__val_loss=lambda i: 0.1 + 0.01 * i,
            data__held_out_episodes=lambda i: 9)  # fmt: skip


def rolled_by_chance(copy: Copy) -> None:
    """Two samples a state: nothing of the advantages' variance is signal, and two halves agree in nothing."""
    run = copy("awr-cartpole", "")
    run.config = run.config.replace("  name: awr\n", "  name: finetune\n  advantage: rerollout\n  update: awr\n")
    run.put(data__advantage_snr=lambda i: 0.0, data__advantage_rank=lambda i: 0.02 * (-1) ** i)


def copies_for_free(copy: Copy) -> None:
    """256 states are run again 2 x 4 times in each row, and no step of it is counted."""
    run = copy("awr-cartpole", "")
    run.config = run.config.replace("  name: awr\n", "  name: awr\n  advantage: rerollout\n  mc_samples: 4\n")
    run.put(data__transitions=lambda i: 256, data__env_steps=lambda i: 256 * (i + 1),
            data__sim_steps=lambda i: 300 * (i + 1), data__eval_steps=lambda i: 44 * (i + 1))  # fmt: skip


def believed(copy: Copy) -> None:
    """Q grows beyond the dataset's best return."""
    copy("iql-cartpole", "").change("value/q_mean", lambda i, x: 100.0 * (i + 1))


def sparse(copy: Copy) -> None:
    """One row in two hundred has a reward."""
    copy("iql-cartpole", "").change("data/reward_nonzero", lambda i, x: 0.005)


def leaving(copy: Copy) -> None:
    """The data's actions become less likely in every row, and nothing is gained by it."""
    run = copy("awr-cartpole", "")
    run.change("policy/data_logprob", lambda i, x: x - 0.3 * i)
    run.change("eval/return_det", lambda i, x: 20.0 + i % 2)


def swinging(copy: Copy) -> None:
    """Every second evaluation is a third of the one before."""
    run = copy("awr-cartpole", "")
    run.change("eval/return_det", lambda i, x: 450.0 if i % 2 else 150.0)
    run.change("eval/std_det", lambda i, x: 20.0)


def by_steps(copy: Copy) -> None:
    """Evaluations run for 6,400 steps, however many episodes these are."""
    run = copy("awr-cartpole", "")
    run.change("eval/length_det", lambda i, x: 50.0 - 3 * i)
    run.change("eval/episodes", lambda i, x: round(6400 / (50.0 - 3 * i)))


def counted_again(copy: Copy) -> None:
    """The settings say 8 episodes, and every evaluation holds more."""
    run = copy("cartpole", "")
    run.config = run.config.replace("  episodes: 20\n", "  episodes: 8\n")


def ratios(copy: Copy) -> Editable:
    """A run of a method that corrects for who acted."""
    run = copy("cartpole", "")
    run.config = run.config.replace("name: ppo", "name: tracking_ac")
    return run


def heavy(copy: Copy) -> None:
    """The mean squared ratio grows to 40."""
    ratios(copy).add(rho2_mean=lambda i: 1 + 4.0 * i)


def off_one(copy: Copy) -> None:
    """Log-probabilities of clipped actions: the mean ratio is 0.7."""
    ratios(copy).add(rho_mean=lambda i: 0.7, rho2_mean=lambda i: 1.3)


def at_clip(copy: Copy) -> None:
    """The largest ratio is the clip in every batch."""
    run = ratios(copy)
    run.add(rho_max=lambda i: 10.0)
    run.config += "foreign:\n  rho_clip: 10.0\n"


# ---- World models: a real run of sheeprl


def drifting(copy: Copy) -> None:
    """In the last fifth the loss doubles."""
    run = copy("dreamer-cartpole", "")
    run.stretch(2)
    n = len(run.metrics)
    run.put(model__loss=lambda i: (4.0 if i >= 0.8 * n else 2.0) + 0.01 * (i % 2))


def at_floor(copy: Copy) -> None:
    """A reward of 1 between bins at 0.63 and 0.79 (symlog): the entropy of its target is 0.67."""
    copy("dreamer-cartpole", "").change("model/reward_loss", lambda i, x: 0.70 - 0.001 * i)


def dreaming(copy: Copy) -> None:
    """The return rises and falls; what is dreamed rises on."""
    run = copy("dreamer-cartpole", "")
    n = len(run.metrics)
    run.put(model__imag_return=lambda i: 10.0 + 5 * i + (i % 2), return__mean=lambda i: 100.0 - 20 * abs(i - n // 2))


def ending(copy: Copy) -> None:
    """A dreamed step goes on with a probability of 0.3."""
    run = copy("dreamer-cartpole", "")
    run.put(model__imag_continue=lambda i: 0.3, return__length=lambda i: 100.0)


def asleep(copy: Copy) -> None:
    """Units fall asleep, two in a hundred with every row."""
    copy("cartpole", "").put(optim__dormant_share=lambda i: 0.02 + 0.05 * i)


def flattening(copy: Copy) -> None:
    """The rank falls from 60 to 5, and the return does not rise."""
    run = copy("cartpole", "")
    run.put(optim__effective_rank=lambda i: 60.0 - 5 * i)
    for row in run.rows["evals.jsonl"]:
        for k, episode in enumerate(row["episodes"]):
            episode["return"] = 20.0 + k % 5


def padded(copy: Copy) -> None:
    """Episodes of 24 steps in sequences of 64."""
    copy("cartpole", "").put(data__padding=lambda i: 0.63)


def blocking(copy: Copy) -> None:
    """The bar of the focus mode lies below the noise."""
    run = copy("dreamer-cartpole", "")
    run.stretch(2)
    run.add(wm_focus_active=lambda i: 1.0)


def anew(copy: Copy) -> None:
    """A trained model is loaded, the actor is not."""
    run = copy("dreamer-cartpole", "")
    run.meta["resumed"] = True
    run.config = run.config.replace("foreign:\n", "foreign:\n  reset_ac: true\n", 1)


# ---- Settings and units


def beyond_one(copy: Copy) -> None:
    """A lambda of 1.5."""
    run = copy("cartpole", "")
    run.config = re.sub(r"(?m)^  lam: .*$", "  lam: 1.5", run.config)


def paid_for_certainty(copy: Copy) -> None:
    """The bonus enters with the wrong sign: what is left of the gradient is twice the bonus."""
    run = copy("pendulum", "")
    run.change("policy/entropy_push", lambda i, x: 0.52 + 0.01 * (i % 3))
    run.change("policy/entropy", lambda i, x: 1.0 - 0.2 * i)
    run.change("optim/ent_coef", lambda i, x: 0.5)


def followed(copy: Copy) -> None:
    """The gradient runs through the targets, and a fifth of it is left."""
    run = marked(copy)
    for row in run.metrics:
        row["value/bias_slope"] = -0.2 * row["data/advantage_mean"]


def left_over(copy: Copy) -> None:
    """Minibatches of 100 rows."""
    run = copy("a2c-acrobot", "")
    run.config = re.sub(r"(?m)^algo:$", "algo:\n  steps: 5", re.sub(r"(?m)^  steps: .*\n", "", run.config))
    run.config += "batch_size: 33\n"


def starved(copy: Copy) -> None:
    """target_kl ends the updates after one of ten epochs."""
    run = marked(copy)
    run.config = re.sub(r"(?m)^  epochs: .*$", "  epochs: 10", run.config)
    run.change("optim/epochs", lambda i, x: 1.0)


def at_bound(copy: Copy) -> None:
    """The rate that follows the KL stands at 1e-5, and the task is not solved."""
    run = marked(copy)
    run.change("optim/lr", lambda i, x: 1e-5)
    for row in run.rows["evals.jsonl"]:
        for k, episode in enumerate(row["episodes"]):
            episode["return"] = 20.0 + k % 5


def other_units(copy: Copy) -> None:
    """From the middle on, values are written as they are, and not in symlog."""
    copy("cartpole", "").change("value/mean", lambda i, x: 5.0 + 0.01 * i if i < 6 else 150.0 + i)


def shorter(copy: Copy) -> None:
    """Training cuts at 224 steps."""
    copy("cartpole", "").change("return/length", lambda i, x: min(x, 224.0) if i < 2 else 224.0)


def rounded(copy: Copy) -> None:
    """Three digits of a KL."""
    run = copy("cartpole", "")
    run.stretch(2)
    run.put(policy__kl=lambda i: 0.001 * (i % 4) if i < 9 else 0.0)


def busy(copy: Copy) -> None:
    """Five other programs from the fourth row on, on two cores."""
    rows = copy("cartpole", "").rows["timing.jsonl"]
    for i, row in enumerate(rows):
        row["time/load"] = 1.0 if i < 3 else 6.0


def misplaced(copy: Copy) -> None:
    """Two rows whose steps the reader of a log could not place; the numbers of the others are as they were."""
    copy("cartpole", "").meta["steps_left_out"] = {"points": 2, "steps": [10**12, -1]}


def thousands(copy: Copy) -> None:
    """Steps in thousands: the reader of a log met an episode that was longer than all steps."""
    copy("cartpole", "").meta["steps_doubtful"] = "by step 3 episodes of 60 steps were over"


PLANTED: dict[str, Callable[[Copy], None]] = {
    "steps-out-of-place": misplaced, "step-unit-doubtful": thousands,
    "no-returns": no_episode_ends, "returns-all-alike": never_paid, "outside-healthy-runs": wide,
    "below-known-level": halfway, "entropy-sign-turned": entropy_negated,
    "learning-rate-zero": rate_runs_out, "episodes-cut-short": cut_short, "success-against-return": success_turned,
    "return-against-length": sum_not_reset,
    "metric-frozen-at-init": frozen, "probe-hit-cap": capped, "loss-pinned": pinned, "support-ceiling": ceiling,
    "unknown-config-key": unread, "constant-ratio": ratio, "name-is-not-definition": alias,
    "throughput-misquoted": misquoted, "mixed-step-axes": axes, "label-mismatch": label, "inert-axis": inert,
    "plateau": behind, "confounded-arms": together, "incomplete-cells": holes, "sweep-cost": costly,
    "busy-machine": busy, "coupled-random-streams": coupled, "exploration-never-ends": never_ends,
    "advantage-misaligned": wrong_sign, "value-beyond-end": beyond, "ratio-always-one": one, "critic-frozen": unlearned,
    "reward-out-of-scale": rewards, "observation-out-of-scale": inputs, "stale-data": stale,
    "resume-lost-state": forgotten, "evaluation-on-training-seeds": same_seeds, "duplicated-seeds": twice,
    "same-seed-differs": tries,
    "temperature-runaway": hot, "temperature-stuck": stuck, "q-overestimation": believing,
    "no-target-network": no_target, "replay-ratio-jump": catching_up,
    "discount-out-of-range": endless, "target-entropy-unreachable": too_random, "weights-say-nothing": any_weights,
    "batch-of-another-policy": others_actions, "expectile-not-as-set": mean_for_expectile,
    "rerollouts-left-out": copies_for_free, "critic-no-better-than-constant": worse_than_a_mean,
    "advantages-all-noise": rolled_by_chance,
    "advantage-one-sided": one_sided, "value-above-q": lifted, "value-above-dataset": believed,
    "reward-hardly-there": sparse, "policy-left-the-data": leaving, "evaluations-swing": swinging,
    "evaluation-length-biased": by_steps, "episodes-counted-beyond-first": counted_again,
    "ratios-degenerate": heavy, "ratios-off-one": off_one,
    "ratio-clip-biases": at_clip, "model-drifts": drifting, "reward-loss-at-floor": at_floor,
    "dream-up-return-down": dreaming, "dreams-end-at-once": ending, "dormant-units": asleep, "rank-falls": flattening,
    "padding-waste": padded, "switch-stuck": blocking, "resumed-with-new-actor": anew,
    "setting-out-of-range": beyond_one, "entropy-punished": paid_for_certainty, "targets-not-detached": followed,
    "batch-not-divisible": left_over, "epochs-cut-short": starved, "adaptive-rate-at-bound": at_bound,
    "evaluations-behind-training": behind_training,
    "training-apart-from-evaluation": left_behind, "rewards-not-those-of-returns": other_rewards,
    "exploration-off-schedule": all_random, "targets-stand-still": still,
    "unit-change": other_units, "horizons-differ": shorter, "lost-to-rounding": rounded, **DREAMS,
}  # fmt: skip


def make(slug: str, root: Path) -> None:
    """faulty/SLUG anew, out of the healthy runs below root."""
    target = root / "faulty" / slug
    shutil.rmtree(target, ignore_errors=True)
    made: list[Editable] = []

    def copy(healthy: str, name: str) -> Editable:
        folder = target / name if name else target
        shutil.copytree(root / "healthy" / healthy, folder)
        made.append(Editable(folder))
        made[-1].meta["name"] = folder.name
        return made[-1]

    PLANTED[slug](copy)
    for each in made:
        each.save()
