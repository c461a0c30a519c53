"""What is a saved policy worth, and what does it look like? Fresh evaluations and films of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relab import checkpoint, config, registry, rollout, stats
from relab.configs.run import Run
from relab.jsonl import RecordError, read_jsonl
from relab.record import append_event_to
from relab.streams import world_seeds


def load_agent(folder: Path, name: str) -> tuple[Run, Any, Any, int]:
    """(config, environment, agent, step) of a run's checkpoint."""
    from relab.train import make_env, set_threads

    cfg = config.from_dict(config.read_yaml(folder / "config.yaml"))
    tree, _ = checkpoint.load(folder / "checkpoints", name)
    env, algo = make_env(cfg), registry.algo_module(cfg.algo.name)
    set_threads(cfg)
    agent = algo.make_agent(cfg.algo, env.spec, cfg.seed, cfg.device)
    algo.load_agent(agent, tree)
    return cfg, env, agent, int(tree["counts"]["agent_steps"])


def fresh(folder: Path, name: str, episodes: int, seed: int) -> dict[str, Any]:
    """Evaluate on seeds that training and its evaluations never saw; the result is kept as an event of the run."""
    cfg, env, agent, step = load_agent(folder, name)
    seeds = world_seeds(cfg.seed, f"fresh/{seed}/{step}", episodes)
    found = rollout.evaluate(env, agent, seeds)
    modes = {mode: describe(found, mode) for mode in found.episodes}
    append_event_to(folder, "evaluation", step, checkpoint=name, seed=seed, modes=modes)
    result = {"run": folder.name, "step": step, "checkpoint": name, "worlds": episodes, "modes": modes}
    return result | {"selected": selection(folder, name, modes), "episodes": found.episodes}


def describe(found: rollout.Evaluation, mode: str) -> dict[str, Any]:
    """Mean with interval (agents that share a world are one sample), spread, and success where it is known."""
    returns = np.array([e["return"] for e in found.played(mode)])
    mid, low, high, n, _ = stats.mean_interval(found.world_means(mode))
    success = [e["success"] for e in found.played(mode)]
    known = success and success[0] is not None
    spread = {"sd": returns.std(ddof=1) if len(returns) > 1 else np.nan, "min": returns.min(), "max": returns.max()}
    numbers = {"mean": mid, "low": low, "high": high, **spread}
    return {k: float(x) for k, x in numbers.items()} | {"n": n, "success": float(np.mean(success)) if known else None}


def selection(folder: Path, name: str, modes: dict[str, Any]) -> str | None:
    """`best` was chosen for a high evaluation, so that number is too high on average: say by how much it was."""
    pointer = checkpoint.read_pointer(folder / "checkpoints", "best")
    if name != "best" or pointer is None:
        return None
    mode = pointer["metric"].removeprefix("eval/return_")
    now = modes[mode]
    return (
        f"chosen as best for {pointer['metric']} = {pointer['value']:.4g} (n = {pointer['n']});"
        f" on fresh episodes it is {now['mean']:.4g} (n = {now['n']})"
    )


def film(folder: Path, which: str, name: str, mode: str, out: Path | None, fps: int) -> dict[str, Any]:
    """One episode as mp4 or gif. The whole evaluation runs again, so the episode is the recorded one to the bit."""
    config.require(mode in ("det", "sampled"), f"`--mode` must be det or sampled, but got {mode!r}")
    cfg, env, agent, step = load_agent(folder, name)
    if not env.spec.renders:
        raise config.ConfigError(
            f"{env.spec.env} cannot be filmed: it does not render (no `render`, spec.renders is false)"
        )
    recorded = recorded_returns(folder, step, mode)
    seeds = world_seeds(cfg.seed, f"eval/{step}" if recorded else f"fresh/0/{step}", cfg.eval.episodes)
    again = rollout.evaluate(env, agent, seeds)
    row = choose(again.returns(mode), which)
    world = row // env.spec.agents + (len(seeds) if mode == "sampled" else 0)
    frames: list[np.ndarray] = []

    def keep(worlds: Any, waiting: np.ndarray) -> None:
        if waiting[world].any():
            frames.append(worlds.render(world))

    episode = rollout.evaluate(env, agent, seeds, frames=keep).episodes[mode][row]
    path = out or folder / "media" / f"step-{step:012d}-{mode}-{which}.mp4"
    write_frames(path, frames, fps)
    same = bool(recorded) and bool(np.isclose(recorded[row], episode["return"]))
    return episode | {
        "path": str(path),
        "n": len(again.episodes[mode]),
        "which": which,
        "recorded": same,
        "frames": len(frames),
    }


def recorded_returns(folder: Path, step: int, mode: str) -> list[float]:
    rows, _ = read_jsonl(folder / "evals.jsonl")
    return next(
        ([e["return"] for e in row["episodes"]] for row in rows if row["step"] == step and row["mode"] == mode), []
    )


def choose(returns: np.ndarray, which: str) -> int:
    """The row of an episode by rank or index; episodes without a return (cut by the step cap) have no rank."""
    ended = np.flatnonzero(np.isfinite(returns))
    order = ended[np.argsort(returns[ended], kind="stable")]
    named = {"worst": 0, "median": len(order) // 2, "best": len(order) - 1}
    if which in named and len(order):
        return int(order[named[which]])
    ok = which.isdecimal() and int(which) < len(returns)
    config.require(ok, f"`--episode` must be worst, best, median or 0..{len(returns) - 1}, but got {which!r}")
    return int(which)


def write_frames(path: Path, frames: list[Any], fps: int) -> None:
    import imageio.v2 as imageio

    if not frames:
        raise RecordError("the episode has no frames: it ended before its first step")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        imageio.mimsave(path, frames, duration=1000 / fps)
        return
    even = [
        frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2] for frame in frames
    ]  # the codec wants even sizes
    imageio.mimsave(path, even, fps=fps, macro_block_size=2)


def probe(folder: Path, name: str, asked: str, settings: dict[str, str]) -> list[dict[str, Any]]:
    """What a probe says about a checkpoint: its rows, as training would have written them."""
    from relab import probes
    from relab.configs.probes import Probes
    from relab.probes.round import Round
    from relab.train import make_env, set_threads

    own = config.from_dict(config.read_yaml(folder / "config.yaml"))
    cfg = config.replace(own, settings) if settings else own
    strange = [each.key for each in config.diff(own, cfg) if not each.key.startswith("probes")]
    config.require(not strange, f"only settings of `probes` can be changed here, but got {', '.join(strange)}")
    tree, _ = checkpoint.load(folder / "checkpoints", name)
    env, algo = make_env(cfg), registry.algo_module(cfg.algo.name)
    set_threads(cfg)
    state = algo.init(env, cfg.algo, cfg.seed, cfg.total_steps, cfg.device, cfg.threads)
    state.load({key: value for key, value in tree.items() if not key.startswith("with_")})
    at = Round(env, state, cfg.probes or Probes())
    return [found.row(at.step, at.iteration) for found in registry.load(probes.PROBES[asked][0])(at)]
