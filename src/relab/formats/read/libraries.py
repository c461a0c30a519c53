"""Which library logged these names, and what do they mean there? For logs that any program may write (TensorBoard).

A library is told by a name that only it logs. Its own table counts before the common one: the same word has other
signs, scales and steps elsewhere. Each table was held against the code that writes it (version in brackets).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from relab.formats.read.source import FOREIGN, Names

STD = (FOREIGN + "action_std", 1.0)  # in units of the action: rules divide it by half the range, where that is known


@dataclass(frozen=True)
class Library:
    """What one library calls its metrics, and what their steps count."""

    name: str
    signs: frozenset[str]  # one of them tells the library
    names: Names
    beside: tuple[tuple[str, Names], ...] = ()  # (a name, what others mean where it is logged too)
    axes: tuple[tuple[str, str], ...] = ()  # (beginning of a name, what its steps count), the first that fits
    closed: tuple[str, ...] = ()  # groups of which only the names above have a meaning for relab
    clock: re.Pattern[str] | None = None  # names that repeat others, with seconds instead of steps
    algos: tuple[tuple[str, str], ...] = ()  # (a name, the algorithm that logs it)
    run_name: re.Pattern[str] | None = None  # of a run's folder, with a group `algo`


def _each(starts: Iterable[str], names: Names) -> Names:
    return {start + name: meaning for start in starts for name, meaning in names.items()}


def _means(names: Names) -> Names:
    """The same with /mean behind: what Tianshou calls the mean of several."""
    return {**names, **{f"{name}/mean": meaning for name, meaning in names.items()}}


# rsl_rl (2.3, 5.5): returns and lengths of the last 100 episodes; the value's loss has no factor 1/2; `Loss/entropy` is
# the entropy itself; all of it by learning iteration. With RND `Train/mean_reward` holds the curiosity's part as well.
RSL_RL = Library(
    "rsl_rl",
    frozenset({"Perf/total_fps", "Train/mean_reward/time"}),
    {
        "Train/mean_reward": ("return/mean_100", 1.0),
        "Train/mean_episode_length": ("return/length", 1.0),
        "Loss/value_function": ("value/loss", 0.5),
        "Loss/value": ("value/loss", 0.5),
        "Loss/surrogate": ("policy/loss", 1.0),
        "Loss/entropy": ("policy/entropy", 1.0),
        "Loss/learning_rate": ("optim/lr", 1.0),
        "Policy/mean_noise_std": STD,
        "Policy/mean_std": STD,
        "Perf/total_fps": ("time/sps", 1.0),
        "Perf/collection time": ("time/collect_s", 1.0),
        "Perf/collection_time": ("time/collect_s", 1.0),
        "Perf/learning_time": ("time/update_s", 1.0),
    },
    beside=(
        ("Rnd/mean_extrinsic_reward", {"Train/mean_reward": (FOREIGN + "Train/mean_reward", 1.0),
                                       "Rnd/mean_extrinsic_reward": ("return/mean_100", 1.0)}),
    ),
    axes=(("", "iteration"),),
    closed=("Loss/", "Perf/", "Train/", "Policy/"),
    clock=re.compile(r"Train/(mean_reward|mean_episode_length)/time"),
    algos=(("Loss/surrogate", "ppo"),),
)  # fmt: skip

# skrl (1.4, 2.1): a timestep moves all environments by one. The value's loss is without 1/2 and with value_loss_scale
# (1 unless set); `Entropy loss` is minus the entropy times a scale that is not logged, but SAC's is the temperature's.
SKRL = Library(
    "skrl",
    frozenset({"Reward / Total reward (mean)", "Reward / Instantaneous reward (mean)"}),
    {
        "Reward / Total reward (mean)": ("return/mean", 1.0),
        "Reward / Total reward (min)": ("return/min", 1.0),
        "Reward / Total reward (max)": ("return/max", 1.0),
        "Episode / Total timesteps (mean)": ("return/length", 1.0),
        "Reward / Instantaneous reward (mean)": ("data/reward_mean", 1.0),
        "Reward / Instantaneous reward (min)": ("data/reward_min", 1.0),
        "Reward / Instantaneous reward (max)": ("data/reward_max", 1.0),
        "Loss / Policy loss": ("policy/loss", 1.0),
        "Loss / Value loss": ("value/loss", 0.5),
        "Loss / Critic loss": ("value/critic_loss", 1.0),
        "Loss / Q-network loss": ("value/critic_loss", 1.0),
        "Policy / Standard deviation": STD,
        "Learning / Learning rate": ("optim/lr", 1.0),
        "Learning / Policy learning rate": ("optim/lr", 1.0),
        "Q-network / Q1 (mean)": ("value/q_mean", 1.0),
        "Target / Target (mean)": ("value/target_mean", 1.0),
        "Target / Target (min)": ("value/target_min", 1.0),
        "Target / Target (max)": ("value/target_max", 1.0),
        "Exploration / Exploration epsilon": ("policy/exploration", 1.0),
        "Coefficient / Entropy coefficient": ("optim/temperature", 1.0),
    },
    beside=(
        ("Loss / Critic loss", {"Loss / Policy loss": ("policy/actor_loss", 1.0)}),
        ("Coefficient / Entropy coefficient", {"Loss / Entropy loss": ("optim/temperature_loss", 1.0)}),
    ),
    axes=(("", "env_steps"),),
    run_name=re.compile(r"^\d\d-\d\d-\d\d_\d\d-\d\d-\d\d-\d+_(?P<algo>[A-Za-z0-9]+)$"),
)

# Tianshou (0.5, 1.1, 2.0): losses by gradient step up to 1, by training step (collect and update) from 2 on.
_ON_POLICY: Names = _means({
    "clip_loss": ("policy/loss", 1.0),
    "vf_loss": ("value/loss", 0.5),
    "ent_loss": ("policy/entropy", 1.0),
    "loss/clip": ("policy/loss", 1.0),
    "loss/vf": ("value/loss", 0.5),
    "loss/ent": ("policy/entropy", 1.0),
})  # fmt: skip
_OFF_POLICY: Names = {
    "actor_loss": ("policy/actor_loss", 1.0),
    "critic_loss": ("value/critic_loss", 1.0),
    "critic1_loss": ("value/critic_loss", 1.0),
    "loss/actor": ("policy/actor_loss", 1.0),
    "loss/critic": ("value/critic_loss", 1.0),
    "loss/critic1": ("value/critic_loss", 1.0),
    "alpha": ("optim/temperature", 1.0),
    "alpha_loss": ("optim/temperature_loss", 1.0),
    "loss/alpha": ("optim/temperature_loss", 1.0),
}
TIANSHOU = Library(
    "tianshou",
    frozenset({"update/gradient_step", "test/env_step"}),
    {
        **_each(("train/", "training/"), {
            "reward": ("return/mean", 1.0), "length": ("return/length", 1.0), "episode": ("return/episodes", 1.0),
            **{f"returns_stat/{part}": (f"return/{part}", 1.0) for part in ("mean", "std", "min", "max")},
            "lens_stat/mean": ("return/length", 1.0), "n_collected_episodes": ("return/episodes", 1.0),
        }),
        **_each(("test/",), {
            "reward": ("eval/return_det", 1.0), "reward_std": ("eval/std_det", 1.0), "length": ("eval/length_det", 1.0),
            "returns_stat/mean": ("eval/return_det", 1.0), "returns_stat/std": ("eval/std_det", 1.0),
            "lens_stat/mean": ("eval/length_det", 1.0), "n_collected_episodes": ("eval/episodes", 1.0),
        }),
        **_each(("update/",), {**_OFF_POLICY, **_ON_POLICY}),
    },
    beside=tuple((f"update/vf_loss{end}", {f"update/actor_loss{end}": ("policy/loss", 1.0)}) for end in ("", "/mean")),
    axes=(("update/", "updates"), ("save/gradient_step", "updates"), ("info/", "iteration"),
          ("save/epoch", "iteration"), ("", "env_steps")),
    closed=("train/", "training/", "test/", "update/", "info/", "save/"),
    algos=tuple((f"update/{name}", "ppo") for name in ("loss/clip", "clip_loss", "clip_loss/mean")),
)  # fmt: skip
TIANSHOU_2 = replace(TIANSHOU, signs=frozenset({"update/update_step", "training/env_step"}),
                     axes=(("update/", "iteration"), *TIANSHOU.axes[1:]))  # fmt: skip

# TorchRL's examples (0.14), by collected frames. PPO's `loss_critic` has a kind and a weight that are not logged, its
# `kl_approx` is the mean of minus the log-ratio.
TORCHRL = Library(
    "torchrl",
    frozenset({"train/loss_objective", "train/kl_approx", "train/ESS", "time/speed"}),
    {
        "train/reward": ("return/mean", 1.0),
        "train/episode_reward": ("return/mean", 1.0),
        "train/episode_length": ("return/length", 1.0),
        "eval/reward": ("eval/return_det", 1.0),
        "train/loss_objective": ("policy/loss", 1.0),
        "train/kl_approx": ("policy/kl_k1", 1.0),
        "train/clip_fraction": ("policy/clip_share", 1.0),
        "train/a_loss": ("policy/actor_loss", 1.0),
        "time/speed": ("time/sps", 1.0),
    },
    beside=(("train/loss_objective", {"train/loss_critic": (FOREIGN + "train/loss_critic", 1.0)}),),
    axes=(("", "env_steps"),),
)

# Sample Factory (2.1), by environment frames. The value's loss is without 1/2 and with value_loss_coeff (0.5 unless
# set, which is the 1/2); the norm of the gradient is taken after clipping; `train/value` is in normalised units.
SAMPLE_FACTORY = Library(
    "sample_factory",
    frozenset({"perf/_fps", "perf/_sample_throughput", "train/version_diff_avg"}),
    {
        "reward/reward": ("return/mean_100", 1.0),
        "reward/reward_min": ("return/min", 1.0),
        "reward/reward_max": ("return/max", 1.0),
        "len/len": ("return/length", 1.0),
        "perf/_fps": ("time/sps", 1.0),
        "train/lr": ("optim/lr", 1.0),
        "train/entropy": ("policy/entropy", 1.0),
        "train/policy_loss": ("policy/loss", 1.0),
        "train/value_loss": ("value/loss", 1.0),
        "train/kl_divergence": ("policy/kl", 1.0),
        "train/kl_divergence_max": ("policy/kl_max", 1.0),
        "train/fraction_clipped": ("policy/clip_share", 1.0),
        "train/ratio_max": ("policy/ratio_max", 1.0),
        "train/adv_mean": ("data/advantage_mean", 1.0),
        "train/adv_std": ("data/advantage_std", 1.0),
    },
    axes=(("", "env_steps"),),
    closed=("train/", "stats/", "perf/", "reward/", "len/", "policy_stats/"),
    algos=(("train/fraction_clipped", "appo"),),
)

# Dopamine (4.1): returns by iteration, losses by step of the agent in training; evaluations keep an epsilon of 0.001.
DOPAMINE = Library(
    "dopamine",
    frozenset({"Train/AverageReturns", "Train/AverageStepsPerSecond"}),
    {
        "Train/AverageReturns": ("return/mean", 1.0),
        "Train/NumEpisodes": ("return/episodes", 1.0),
        "Train/AverageStepsPerSecond": ("time/sps", 1.0),
        "Eval/AverageReturns": ("eval/return_det", 1.0),
        "Eval/NumEpisodes": ("eval/episodes", 1.0),
        "HuberLoss": ("value/critic_loss", 1.0),
    },
    axes=(("Train/", "iteration"), ("Eval/", "iteration"), ("", "env_steps")),
)

ALL = (RSL_RL, SKRL, TIANSHOU_2, TIANSHOU, SAMPLE_FACTORY, DOPAMINE, TORCHRL)


@dataclass(frozen=True)
class Dialect:
    """What the library of a log says about its names."""

    library: Library
    names: dict[str, tuple[str, float]] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    again: frozenset[str] = frozenset()  # names that repeat others against the clock


def dialect_of(tags: Iterable[str]) -> Dialect | None:
    """The library that logged these names, with what it means by them; None where no name tells."""
    tags = set(tags)
    library = next((each for each in ALL if each.signs & tags), None)
    if library is None:
        return None
    again = frozenset(tag for tag in tags if library.clock is not None and library.clock.fullmatch(tag))
    return Dialect(library, _names(library, tags), {tag: _axis(library, tag) for tag in tags}, again)


def _names(library: Library, tags: set[str]) -> dict[str, tuple[str, float]]:
    translated = {tag: (FOREIGN + _spread(tag), 1.0) for tag in tags if tag.startswith(library.closed)}
    translated |= library.names
    for sign, names in library.beside:
        translated |= names if sign in tags else {}
    return translated


def _spread(tag: str) -> str:
    """`loss/std` as `loss_std`: rules take a column that is called std for the policy's."""
    return f"{tag.removesuffix('/std')}_std" if tag.endswith("/std") else tag


def _axis(library: Library, tag: str) -> str:
    return next(axis for start, axis in library.axes if tag.startswith(start))


def algo_of(dialect: Dialect, run: str) -> str:
    """The algorithm, by what is logged or by the name of the run's folder; empty where neither tells.

    >>> skrl = Dialect(SKRL)
    >>> algo_of(skrl, "24-01-31_10-20-30-123456_PPO"), algo_of(skrl, "mine")
    ('ppo', '')
    """
    library = dialect.library
    match = library.run_name.match(run) if library.run_name is not None else None
    logged = (algo for name, algo in library.algos if name in dialect.axes)
    return match["algo"].lower() if match else next(logged, "")
