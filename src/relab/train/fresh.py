"""What is a saved policy worth, and what does it look like? Fresh evaluations and films of checkpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relab import stats
from relab.base import limits
from relab.base.documents import Document
from relab.base.enclosed import inside, own, subfolder
from relab.base.jsonl import read_jsonl
from relab.base.media import Film
from relab.base.streams import world_seeds
from relab.config import layers, registry
from relab.config.run import RunConfig
from relab.record.run_folder import append_event_to
from relab.record.spec import Spec
from relab.train import checkpoint, rollout
from relab.train.captions import Filming
from relab.train.contract import clock_of
from relab.train.kernels import jit


def load_agent(
    folder: Path, name: str, changes: Sequence[str] = (), trust: bool = False
) -> tuple[RunConfig, Any, Any, int]:
    """(config, environment, agent, step) of a run's checkpoint; `changes` are env.key=value words.

    `trust`: code that the record names may be imported.
    """
    from relab.train.session import make_env

    cfg = changed(layers.from_record(folder, trust), changes)
    tree, _ = checkpoint.load(folder / "checkpoints", name)
    env, algo = make_env(cfg), registry.algo_module(cfg.algo.name)
    jit.set_threads(cfg.threads)
    agent = algo.make_agent(cfg.algo, env.spec, cfg.seed, cfg.device)
    with checkpoint.taking(checkpoint.locate(folder / "checkpoints", name)):
        algo.load_agent(agent, tree)
        return cfg, env, agent, int(tree["counts"][clock_of(algo, cfg.algo.name)])


def changed(cfg: RunConfig, words: Sequence[str]) -> RunConfig:
    """The config with another environment's parameters; what the policy sees and does must stay the same."""
    wrong = [word for word in words if not word.startswith("env.")]
    layers.require(
        not wrong, f"only parameters of the environment (env.key=value) can be changed here, but got {wrong}"
    )
    if not words:
        return cfg
    new = layers.replace(cfg, layers.parse_overrides(words))
    before, after = (registry.env_class(each.env.name)(each.env).spec for each in (cfg, new))
    same = (before.seen, before.action) == (after.seen, after.action)
    layers.require(same, f"the policy sees {before.seen} and acts by {before.action}, but with"
                         f" {' '.join(words)} there are {after.seen} and {after.action}")  # fmt: skip
    return new


def fresh(
    folder: Path, name: str, episodes: int, seed: int, changes: Sequence[str] = (), trust: bool = False
) -> Document:
    """Evaluate on seeds that training and its evaluations never saw; the result is kept as an event of the run."""
    layers.require_range("--episodes", episodes, 1, limits.EPISODES)
    cfg, env, agent, step = load_agent(folder, name, changes, trust)
    seeds = world_seeds(cfg.seed, f"fresh/{seed}/{step}", episodes)
    batch = rollout.evaluate(env, agent, seeds)
    modes = {mode: describe(batch, mode) for mode in batch.episodes}
    said = {"changes": list(changes)} if changes else {}
    append_event_to(folder, "evaluation", step, checkpoint=name, seed=seed, modes=modes, **said)
    result = {"run": folder.name, "step": step, "checkpoint": name, "worlds": episodes, "modes": modes}
    return result | said | {"selected": selection(folder, name, modes), "episodes": batch.episodes}


def describe(batch: rollout.PlayedEpisodes, mode: str) -> Document:
    """Mean with interval (agents that share a world are one sample), spread, and success; None what is not known."""
    returns = np.array([e["return"] for e in batch.played(mode)])
    mid, low, high, n, _ = stats.mean_interval(batch.world_means(mode))
    success = [e["success"] for e in batch.played(mode)]
    known = success and success[0] is not None
    spread = {"sd": returns.std(ddof=1) if len(returns) > 1 else None, "min": returns.min(), "max": returns.max()}
    ends = {"low": low, "high": high} if n > 1 else {"low": None, "high": None}
    numbers = {k: None if x is None else float(x) for k, x in {"mean": mid, **ends, **spread}.items()}
    return numbers | {"n": n, "success": float(np.mean(success)) if known else None}


def selection(folder: Path, name: str, modes: Document) -> str | None:
    """`best` was chosen for a high evaluation, so that number is too high on average: say by how much it was."""
    pointer = checkpoint.read_pointer(folder / "checkpoints", "best")
    if name != "best" or pointer is None:
        return None
    try:
        _, outcome, mode = re.split("[/_]", pointer["metric"])
        value, now = f"{pointer['value']:.4g} (n = {pointer['n']})", modes[mode]
        level = now["success" if outcome == "success" else "mean"]
    except (LookupError, TypeError, ValueError, AttributeError):
        return "best.json does not say for which number it was chosen"
    return f"chosen as best for {pointer['metric']} = {value}; on fresh episodes it is {level:.4g} (n = {now['n']})"


def film(
    folder: Path,
    which: str,
    name: str,
    mode: str,
    out: Path | None,
    fps: int,
    changes: Sequence[str] = (),
    trust: bool = False,
) -> Document:
    """One episode as mp4 or gif. The whole evaluation runs again, so the episode is the recorded one to the bit."""
    layers.require(mode in ("det", "sampled"), f"`--mode` must be det or sampled, but got {mode!r}")
    cfg, env, agent, step = load_agent(folder, name, changes, trust)
    require_render(env.spec)
    recorded = [] if changes else recorded_returns(folder, step, mode)
    seeds = world_seeds(cfg.seed, f"eval/{step}" if recorded else f"fresh/0/{step}", cfg.eval.episodes)
    again = rollout.evaluate(env, agent, seeds)
    row = choose(ranks(again, mode, env.spec.outcome), which)
    world = row // env.spec.agents + (len(seeds) if mode == "sampled" else 0)
    path = out or film_place(folder, f"step-{step:012d}-{mode}-{which}.mp4")
    with Film(path, fps) as reel:
        first = row - row % env.spec.agents
        filming = Filming(reel, world, f"{which}, seed {again.episodes[mode][row]['seed']}")
        played = rollout.evaluate(env, agent, seeds, frames=filming).episodes[mode]
        filming.rest(played[first : first + env.spec.agents])
    episode = played[row]
    same = bool(recorded) and bool(np.isclose(recorded[row], episode["return"]))
    return episode | {
        "path": str(path),
        "n": len(again.episodes[mode]),
        "which": which,
        "recorded": same,
        "frames": reel.frames,
    }


def require_render(spec: Spec) -> None:
    layers.require(spec.renders, f"{spec.env} cannot be filmed: it does not render (no `render`, spec.renders is"
                   " false)")  # fmt: skip


def film_place(folder: Path, name: str) -> Path:
    """A film in the run's own folder `media`, never through a link."""
    return own(subfolder(folder, "media"), name)


def film_multi(
    folder: Path, iteration: int, which: str, name: str, out: Path | None, fps: int, trust: bool = False
) -> Document:
    """One world of a schedule's multi-evaluation, all its agents; `best` is the checkpoint nearest to it in steps."""
    from relab.train.steering import judge_of

    rows, _ = read_jsonl(inside(folder, "probes.jsonl"))
    played = [row for row in rows if row.get("probe") == "multi_eval" and row.get("iteration") == iteration]
    layers.require(bool(played), f"{folder.name} has no multi-evaluation at iteration {iteration}")
    name = nearest_checkpoint(folder, played[-1]["step"]) if name == "best" else name
    cfg, env, agent, step = load_agent(folder, name, trust=trust)
    judge = judge_of(cfg, env)
    require_render(judge.env.spec)
    row, _ = judge.play(agent, iteration)
    world = choose_world(row["episodes"], which)
    path = out or film_place(folder, f"step-{step:012d}-multi-{iteration}-{which}.mp4")
    with Film(path, fps) as reel:
        judge.play(agent, iteration, Filming(reel, world, f"{which} world of iteration {iteration}"))
    same = played[-1]["episodes"][world] == row["episodes"][world]
    film = {"path": str(path), "n": len(row["episodes"]), "which": which, "recorded": same, "frames": reel.frames}
    return row["episodes"][world] | film | {"world": world, "step": step}


def nearest_checkpoint(folder: Path, step: int) -> str:
    """The checkpoint whose step is nearest; `latest` where there is none, which then says so."""
    names = checkpoint.steps(folder / "checkpoints")
    return min(names, key=lambda name: abs(int(name.removeprefix("step-")) - step), default="latest")


def choose_world(episodes: list[Document], which: str) -> int:
    """An index, or a rank by the share that lived to the end; the first of equals by earliest first death."""
    order = sorted(range(len(episodes)), key=lambda i: (episodes[i]["final"], episodes[i]["first_death"] or np.inf))
    named = {"worst": order[0], "median": order[len(order) // 2], "best": order[-1]}
    ok = which in named or (which.isdecimal() and int(which) < len(order))
    layers.require(ok, f"`--episode` must be worst, best, median or 0..{len(order) - 1}, but got {which!r}")
    return named[which] if which in named else int(which)


def recorded_returns(folder: Path, step: int, mode: str) -> list[float]:
    rows, _ = read_jsonl(inside(folder, "evals.jsonl"))
    return next(
        ([e["return"] for e in row["episodes"]] for row in rows if row["step"] == step and row["mode"] == mode), []
    )


def ranks(played: rollout.PlayedEpisodes, mode: str, outcome: str) -> np.ndarray:
    """What worst, median and best go by: the return, or success and then how soon."""
    if outcome == "return":
        return played.returns(mode)
    return np.array([1.0 / (1 + e["length"]) if e["success"] else -1.0 / (1 + e["length"])
                     for e in played.episodes[mode]])  # fmt: skip


def choose(returns: np.ndarray, which: str) -> int:
    """The row of an episode by rank or index; episodes without a return (cut by the step cap) have no rank."""
    ended = np.flatnonzero(np.isfinite(returns))
    order = ended[np.argsort(returns[ended], kind="stable")]
    named = {"worst": 0, "median": len(order) // 2, "best": len(order) - 1}
    if which in named and len(order):
        return int(order[named[which]])
    ok = which.isdecimal() and int(which) < len(returns)
    layers.require(ok, f"`--episode` must be worst, best, median or 0..{len(returns) - 1}, but got {which!r}")
    return int(which)


def probes_of(folder: Path, trust: bool = False) -> list[str]:
    """The probes that a run can be asked for; its agent is made, to see whether it says what a state is worth."""
    from relab.train import probes
    from relab.train.session import make_env

    cfg = layers.from_record(folder, trust)
    agent = registry.algo_module(cfg.algo.name).make_agent(cfg.algo, make_env(cfg).spec, cfg.seed, cfg.device)
    return probes.for_agent(probes.of(cfg.algo.name), cfg.algo, agent)


def probe(folder: Path, name: str, which: str, settings: dict[str, str], trust: bool = False) -> list[Document]:
    """What a probe says about a checkpoint: its rows, as training would have written them."""
    from relab.train import probes
    from relab.train.session import make_env, setup_of

    recorded = layers.from_record(folder, trust)
    cfg = layers.replace(recorded, settings) if settings else recorded
    strange = [each.key for each in layers.diff(recorded, cfg) if not each.key.startswith("probes")]
    layers.require(not strange, f"only settings of `probes` can be changed here, but got {', '.join(strange)}")
    tree, _ = checkpoint.load(folder / "checkpoints", name)
    env, algo = make_env(cfg), registry.algo_module(cfg.algo.name)
    jit.set_threads(cfg.threads)
    state = algo.init(setup_of(cfg, env, folder.parent))
    state.load({key: value for key, value in tree.items() if not key.startswith("with_")})
    can = probes.for_agent([which], cfg.algo, state.agent)
    layers.require(bool(can), f"the probe {which} is made for {probes.VALUES}, which {cfg.algo.name} is not")
    step = int(getattr(state.counts, clock_of(algo, cfg.algo.name)))
    at = probes.round_class(cfg.algo.name).of(cfg, env, state, step)
    return [result.row(at.step, at.iteration) for result in registry.load(probes.PROBES[which][0])(at)]
