"""Which library logged these names, and what do they mean there? For logs that any program may write (TensorBoard).

A library is told by a name that only it logs. Its own table counts before the common one: the same word has other
signs, scales and steps elsewhere. Each table was held against the code that writes it (version in brackets).
`foreign/action_std` is in units of the action: rules divide it by half the range, where that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from relab.formats.read.source import FOREIGN, Names, name_table


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
    name_table("""
        return/mean_100    | Train/mean_reward
        return/length      | Train/mean_episode_length
        value/loss * 0.5   | Loss/value_function, Loss/value
        policy/loss        | Loss/surrogate
        policy/entropy     | Loss/entropy
        optim/lr           | Loss/learning_rate
        foreign/action_std | Policy/mean_noise_std, Policy/mean_std
        time/sps           | Perf/total_fps
        time/collect_s     | Perf/collection time, Perf/collection_time
        time/update_s      | Perf/learning_time
    """),
    beside=(
        ("Rnd/mean_extrinsic_reward", name_table("""
            foreign/Train/mean_reward | Train/mean_reward
            return/mean_100           | Rnd/mean_extrinsic_reward
        """)),
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
    name_table("""
        return/mean        | Reward / Total reward (mean)
        return/min         | Reward / Total reward (min)
        return/max         | Reward / Total reward (max)
        return/length      | Episode / Total timesteps (mean)
        data/reward_mean   | Reward / Instantaneous reward (mean)
        data/reward_min    | Reward / Instantaneous reward (min)
        data/reward_max    | Reward / Instantaneous reward (max)
        policy/loss        | Loss / Policy loss
        value/loss * 0.5   | Loss / Value loss
        value/critic_loss  | Loss / Critic loss, Loss / Q-network loss
        foreign/action_std | Policy / Standard deviation
        optim/lr           | Learning / Learning rate, Learning / Policy learning rate
        value/q_mean       | Q-network / Q1 (mean)
        value/target_mean  | Target / Target (mean)
        value/target_min   | Target / Target (min)
        value/target_max   | Target / Target (max)
        policy/exploration | Exploration / Exploration epsilon
        optim/temperature  | Coefficient / Entropy coefficient
    """),
    beside=(
        ("Loss / Critic loss", {"Loss / Policy loss": ("policy/actor_loss", 1.0)}),
        ("Coefficient / Entropy coefficient", {"Loss / Entropy loss": ("optim/temperature_loss", 1.0)}),
    ),
    axes=(("", "env_steps"),),
    run_name=re.compile(r"^\d\d-\d\d-\d\d_\d\d-\d\d-\d\d-\d+_(?P<algo>[A-Za-z0-9]+)$"),
)

# Tianshou (0.5, 1.1, 2.0): losses by gradient step up to 1, by training step (collect and update) from 2 on.
_ON_POLICY: Names = _means(
    name_table("""
    policy/loss      | clip_loss, loss/clip
    value/loss * 0.5 | vf_loss, loss/vf
    policy/entropy   | ent_loss, loss/ent
""")
)
_OFF_POLICY: Names = name_table("""
    policy/actor_loss      | actor_loss, loss/actor
    value/critic_loss      | critic_loss, critic1_loss, loss/critic, loss/critic1
    optim/temperature      | alpha
    optim/temperature_loss | alpha_loss, loss/alpha
""")
_PLAYED: Names = name_table("""
    return/mean     | reward, returns_stat/mean
    return/std      | returns_stat/std
    return/min      | returns_stat/min
    return/max      | returns_stat/max
    return/length   | length, lens_stat/mean
    return/episodes | episode, n_collected_episodes
""")
_TESTED: Names = name_table("""
    eval/return_det | reward, returns_stat/mean
    eval/std_det    | reward_std, returns_stat/std
    eval/length_det | length, lens_stat/mean
    eval/episodes   | n_collected_episodes
""")
TIANSHOU = Library(
    "tianshou",
    frozenset({"update/gradient_step", "test/env_step"}),
    {
        **_each(("train/", "training/"), _PLAYED),
        **_each(("test/",), _TESTED),
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
    name_table("""
        return/mean       | train/reward, train/episode_reward
        return/length     | train/episode_length
        eval/return_det   | eval/reward
        policy/loss       | train/loss_objective
        policy/kl_k1      | train/kl_approx
        policy/clip_share | train/clip_fraction
        policy/actor_loss | train/a_loss
        time/sps          | time/speed
    """),
    beside=(("train/loss_objective", {"train/loss_critic": (FOREIGN + "train/loss_critic", 1.0)}),),
    axes=(("", "env_steps"),),
)

# Sample Factory (2.1), by environment frames. The value's loss is without 1/2 and with value_loss_coeff (0.5 unless
# set, which is the 1/2); the norm of the gradient is taken after clipping; `train/value` is in normalised units.
SAMPLE_FACTORY = Library(
    "sample_factory",
    frozenset({"perf/_fps", "perf/_sample_throughput", "train/version_diff_avg"}),
    name_table("""
        return/mean_100     | reward/reward
        return/min          | reward/reward_min
        return/max          | reward/reward_max
        return/length       | len/len
        time/sps            | perf/_fps
        optim/lr            | train/lr
        policy/entropy      | train/entropy
        policy/loss         | train/policy_loss
        value/loss          | train/value_loss
        policy/kl           | train/kl_divergence
        policy/kl_max       | train/kl_divergence_max
        policy/clip_share   | train/fraction_clipped
        policy/ratio_max    | train/ratio_max
        data/advantage_mean | train/adv_mean
        data/advantage_std  | train/adv_std
    """),
    axes=(("", "env_steps"),),
    closed=("train/", "stats/", "perf/", "reward/", "len/", "policy_stats/"),
    algos=(("train/fraction_clipped", "appo"),),
)

# Dopamine (4.1): returns by iteration, losses by step of the agent in training; evaluations keep an epsilon of 0.001.
DOPAMINE = Library(
    "dopamine",
    frozenset({"Train/AverageReturns", "Train/AverageStepsPerSecond"}),
    name_table("""
        return/mean       | Train/AverageReturns
        return/episodes   | Train/NumEpisodes
        time/sps          | Train/AverageStepsPerSecond
        eval/return_det   | Eval/AverageReturns
        eval/episodes     | Eval/NumEpisodes
        value/critic_loss | HuberLoss
    """),
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
