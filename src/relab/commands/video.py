"""relab video: look at what the policy does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from relab.commands import dry_run
from relab.commands.options import EnvChanges, OfCheckpoint
from relab.commands.parsing import parse
from relab.config.base import require, require_range

EXAMPLES = """
  relab video brave-otter                         the worst episode of the evaluation of the best checkpoint
  relab video brave-otter --episode best --mode sampled
  relab video brave-otter --episode 3 --out third.mp4
  relab video brave-otter --checkpoint all --seed 0    every kept checkpoint in the same world, to watch side by side
  relab video brave-otter --multi 40 --episode worst   a world of the multi-evaluation at iteration 40
  relab video brave-otter --curve                 how its curves grew, media/curve.gif
  relab video brave-otter --imagine               a world model's pictures beside the real ones: seen, and foreseen
  relab video brave-otter env.agents=48 --out school.gif    fresh seeds, in a larger school
"""


@dataclass(frozen=True)
class Video(OfCheckpoint):
    """Film one episode of a checkpoint's own evaluation (the seeds are in the record) into the run's media folder."""

    changes: EnvChanges = ()
    episode: str = "worst"
    """worst, best, median, or an index"""
    mode: Literal["det", "sampled"] = "det"
    """how the policy acts: its likeliest action each time, or drawn ones"""
    seed: int | None = None
    """of a world that is the same at every checkpoint and in every run, instead of an episode of an evaluation"""
    multi: int | None = None
    """iteration of a schedule's multi-evaluation whose world is filmed, instead of an episode of the usual one"""
    curve: bool = False
    """the curves of training as a growing film, instead of an episode"""
    imagine: bool = False
    """real pictures beside those of the world model, which looks, and which foresees (dreamer with env.pixels)"""
    worlds: int = 3
    """of --imagine: worlds that are shown, each a row"""
    looks: int = 10
    """of --imagine: steps that the model sees before it has to foresee"""
    ahead: int = 50
    """of --imagine: steps that it foresees"""
    out: Path | None = None
    """file to write (.mp4 or .gif; with --imagine also .png, a strip); default: media/ in the run folder"""
    fps: int = 30
    """frames per second"""


def main(words: Sequence[str]) -> int:
    args = parse(Video, "video", words, EXAMPLES)
    require_range("--fps", args.fps, 1)
    folder = args.folder()
    if args.dry_run:
        return dry_run.say(planned(args, folder))
    if args.curve:
        return film_curve(folder, args.out)
    if args.imagine:
        return film_dream(args, folder)
    if args.seed is not None:
        return film_seed(args, folder, args.seed)
    require(args.checkpoint != "all", "`--checkpoint all` films one world at every checkpoint: give its --seed")
    from relab.train import fresh

    if args.multi is not None:
        film = fresh.film_multi(folder, args.multi, args.episode, args.checkpoint, args.out, args.fps, args.trust)
        origin = "as recorded" if film["recorded"] else f"the policy of step {film['step']:,}, not the recorded one"
        lived = f"{film['final']:.0%} of {film['agents']} lived, {film['frames']} steps"
        which = f"{film['which']} of {film['n']} worlds of iteration {args.multi}, {origin}"
        print(f"{film['path']}: seed {film['seed']}, {lived} ({which})")
        return 0
    film = fresh.film(folder, args.episode, args.checkpoint, args.mode, args.out, args.fps, args.changes, args.trust)
    origin = "as recorded" if film["recorded"] else "fresh seeds"
    print(
        f"{film['path']}: seed {film['seed']}, return {film['return']:.4g}, {film['length']} steps,"
        f" ended by {film['end']} ({film['which']} of {film['n']} {args.mode} episodes, {origin})"
    )
    return 0


def planned(args: Video, folder: Path) -> list[str]:
    """What --dry-run says."""
    into = f"into {args.out or folder / 'media'}"
    if args.imagine:
        return [f"play {dry_run.checkpoint_of(folder, args.checkpoint)} and film what its world model draws {into}"]
    if args.curve:
        return [f"draw the curves of {folder.name} as a film {into}"]
    if args.seed is not None:
        where = "all checkpoints" if args.checkpoint == "all" else dry_run.checkpoint_of(folder, args.checkpoint)
        return [f"play {where} in the world of seed {args.seed} and film it {into}"]
    which = args.episode if not args.episode.isdigit() else f"number {args.episode}"
    what = f"{which} {args.mode} episode" if args.multi is None else f"{which} world of iteration {args.multi}"
    with_ = f" with {' '.join(args.changes)}" if args.changes else ""
    return [f"play {dry_run.checkpoint_of(folder, args.checkpoint)}{with_} and film the {what} {into}"]


def film_seed(args: Video, folder: Path, seed: int) -> int:
    """A film of each chosen checkpoint in one world."""
    from relab.train import films

    require_range("--seed", seed, 0)
    names = films.chosen(folder, args.checkpoint)
    require(args.out is None or len(names) == 1, "`--out` names one file, but --checkpoint all writes several")
    for name in names:
        film = films.film(folder, name, seed, args.mode, args.out, args.fps, args.changes, args.trust)
        print(f"{film['path']}: step {film['step']:,}, return {film['return']:.4g}, {film['length']} steps,"
              f" ended by {film['end']}")  # fmt: skip
    return 0


def film_dream(args: Video, folder: Path) -> int:
    from relab.train import dream_films

    film = dream_films.film(
        folder, args.checkpoint, args.out, args.fps, args.worlds, args.looks, args.ahead, args.trust
    )
    early = "" if film.learned else "; nothing had been learned by then, --checkpoint latest may be the one to film"
    print(f"{film.path}: {film.frames} steps of step {film.step:,}, {film.looks} of them seen; squared error of a pixel"
          f" after those: {film.error:.4g} foreseen, {film.seen:.4g} seen{early}")  # fmt: skip
    return 0


def film_curve(folder: Path, out: Path | None) -> int:
    from relab.record import history
    from relab.report import growing
    from relab.train.fresh import film_place

    film = growing.film(history.load(folder), out or film_place(folder, "curve.gif"))
    print(f"{film['path']}: {', '.join(film['metrics'])} in {film['frames']} frames")
    return 0
