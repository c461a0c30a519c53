"""relab train: one run, from a config to a run folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from relab.advise import proposal, tried
from relab.advise.proposal import Loaded
from relab.advise.tried import Tried
from relab.base.documents import Document, Settings
from relab.base.interrupts import NO_RUN, stops_say
from relab.base.jsonl import RecordError
from relab.base.places import printable
from relab.commands.options import ProgressAsJson, Quiet, RunsFolder
from relab.commands.parsing import parse, renamed, vacant
from relab.config import layers as config
from relab.config import lineage
from relab.config.layers import Layer
from relab.config.run import RunConfig
from relab.record import names, provenance
from relab.record.run_folder import read_meta
from relab.train import screen

if TYPE_CHECKING:
    from relab.train.loop import Ending

EXAMPLES = """
  relab train ppo env=cartpole seed=0
  relab train ppo env=cartpole eval.stop_at=475       stop once 20 evaluation episodes average 475
  relab train ppo env=pendulum lr=1e-3 total_steps=300_000 --name warm-up
  relab train dqn env=gym:Acrobot-v1                  any Gymnasium environment
  relab train sac env=pendulum
  relab train sac env=pendulum start_from=brave-otter@best   begin with another run's weights
  relab train ppo env=mypackage.envs:Maze             your own (docs/environments.md)
  relab train my_config.yaml seed=3 --json            settings from a file, progress as JSON lines
  relab train dreamer env=cartpole --profile 2        trace two iterations with torch's profiler, into RUN/profile
  relab train lr=1e-3 --parent brave-otter            its settings, with another learning rate
  relab train runs/brave-otter/next_config.yaml       what `relab next --write` proposed
"""
EXIT = {"finished": 0, "failed": 1, "interrupted": 130}


@dataclass(frozen=True)
class Train:
    """One run: one config, one seed. Settings are key=value words; docs/config.md lists every key."""

    words: tyro.conf.Positional[tuple[str, ...]]
    """algorithm, config files (*.yaml) and settings (key=value), in any order"""
    runs: RunsFolder = Path("runs")
    name: str | None = None
    """name of the run folder; default: date-adjective-animal"""
    intent: str | None = None
    """what this run is for, kept in its record"""
    parent: str | None = None
    """run (name, part of it, id, folder) whose settings this one starts from; kept in its record"""
    trust: bool = False
    """run code that a parent, a proposal or a run's config.yaml names (env or algo as package.module:Name)"""
    root: Path = Path("experiments")
    """folder that holds the experiments: whether the change to the parent was answered no before"""
    profile: int = 0
    """iterations to trace with torch's profiler, the first ones after something was learned; into RUN/profile"""
    json: ProgressAsJson = False
    quiet: Quiet = False
    dry_run: bool = False
    """print the resolved config with the source of each value, and do not train"""


def main(words: Sequence[str]) -> int:
    args = parse(Train, "train", renamed(words, "--print-config", "--dry-run"), EXAMPLES)
    origin = origin_of(args.words, args.parent, args.runs, args.trust)
    stack = layers(args.words, origin, args.trust)
    resolved = config.resolve(stack)
    check_files(resolved.config, stack)
    config.require(args.profile >= 0, f"`--profile` must be at least 0 iterations, but is {args.profile}")
    if args.dry_run:
        possible(resolved.config, args)
        print_config(resolved)
        return 0
    again = tried_before(origin, resolved, args.root)
    tell(again, args)
    facts = {"command": shlex.join(["relab", "train", *words]), **origin.facts(args.intent)}
    facts |= {"tried": [one.to_dict() for one in again.earlier]} if again.earlier else {}
    with stops_say(lambda: NO_RUN):
        return exit_code(begin(resolved, facts, args), args.quiet)


def exit_code(ended: Ending, quiet: bool) -> int:
    """Of a run; one that failed unseen says why."""
    if quiet and ended.status == "failed":
        print(printable(f"relab: the run failed: {ended.why} ({ended.folder})"), file=sys.stderr)
    return EXIT[ended.status]


def begin(resolved: config.Resolved, facts: Document, args: Train) -> Ending:
    pending = provenance.start()  # git answers while numba and torch are loaded
    from relab.train.kernels import ahead

    ahead.start_early(resolved.config)
    from relab.train import session

    try:
        env, inherited = possible(resolved.config, args)
    finally:
        facts |= pending.collect()
    id_, folder = claim(args.runs, args.name)
    shown = screen.choose(args.json, args.quiet)
    facts = {"id": id_, **facts}
    return session.start(
        resolved.config, folder, resolved.provenance, facts, shown, env, inherited, profile=args.profile
    )


def possible(cfg: RunConfig, args: Train) -> tuple[Any, Any]:
    """Environment and inherited weights, once all is seen to fit; before there is a folder, so that what cannot run
    leaves nothing behind."""
    from relab.train import session

    if args.name is not None:
        vacant(args.runs, args.name)
    session.check_start(cfg)
    return session.possible(cfg, args.runs)


@dataclass(frozen=True)
class Origin:
    """What a run starts from besides its words: nothing, a parent, or a proposal for one."""

    parent: Path | None = None
    parent_layer: Layer | None = None
    file: str = ""  # the word that is a proposal
    proposal: Loaded | None = None

    def facts(self, intent: str | None) -> Document:
        """For meta.json; the prediction is kept to be held against the outcome."""
        facts: dict[str, Any] = {"parent": self.parent and self.parent.resolve().name, "intent": intent}
        facts |= {"parent_id": id_} if self.parent and (id_ := id_of(self.parent)) else {}
        if self.proposal is None:
            return facts
        said = (
            f"{intent or self.proposal.rationale} [{proposal.diff_text(self.proposal.diff)}]"  # names the keys, always
        )
        kept = {"diff": self.proposal.diff, "predicted": self.proposal.predicted, "rationale": self.proposal.rationale}
        kept |= {"resume_from": self.proposal.resume_from} if self.proposal.resume_from else {}
        return facts | {"intent": said, "proposal": kept}


def id_of(folder: Path) -> str:
    """The parent is found again by it, wherever the two lie; empty for a folder that is no record."""
    try:
        return str(read_meta(folder).get("id") or "")
    except (RecordError, OSError):
        return ""


def origin_of(words: Sequence[str], parent: str | None, runs: Path, trust: bool = False) -> Origin:
    """The parent that --parent or a proposal among the files names."""
    files = [word for word in config_files(words) if proposal.is_proposal(word)]
    config.require(len(files) <= 1, f"one proposal can be run at a time, but got {', '.join(files)}")
    config.require(
        not (files and parent), f"{', '.join(files)} names its parent itself; leave --parent {parent} out, or the file"
    )
    if files:
        loaded = proposal.load(files[0], runs, trust)
        return Origin(loaded.parent, loaded.layers[0], files[0], loaded)
    if parent is None:
        return Origin()
    folder = names.find(parent, runs)
    return Origin(folder, config.record_layer(folder, trust=trust))


# ---- Not twice


@dataclass(frozen=True)
class Again:
    """What the run changes against its parent, and the earlier tries of it that did not end in a yes."""

    change: Mapping[str, Mapping[str, Any]]
    earlier: list[Tried]
    settings: Settings


def tried_before(origin: Origin, resolved: config.Resolved, root: Path) -> Again:
    if origin.parent_layer is None:
        return Again({}, [], {})
    from relab.notebook.log import earlier

    before, after = origin.parent_layer.values, config.to_dict(resolved.config)
    change = lineage.changes(before, after)
    hits = tried.matching(change, tried.subject(before), earlier(root)) if change else []
    return Again(change, [one for one in hits if one.verdict != tried.YES], config.flatten(after))


def tell(again: Again, args: Train) -> None:
    """It is said before anything is computed, and forbids nothing."""
    if not again.earlier or args.quiet:
        return
    if args.json:
        row = {"change": again.change, "tried": [one.to_dict() for one in again.earlier]}
        screen.JsonLines().write("tried", row)
    else:
        screen.say("\n".join(map(printable, tried.lines(again.change, again.earlier, again.settings))) + "\n")


def config_files(words: Sequence[str]) -> list[str]:
    return [word for word in words if word.endswith((".yaml", ".yml")) and ("=" not in word or Path(word).is_file())]


def layers(words: Sequence[str], origin: Origin | None = None, trust: bool = False) -> list[Layer]:
    """Config layers from the command line's words: the parent, files in order, then the algorithm and the settings."""
    files, origin = config_files(words), origin or Origin()
    settings = [word for word in words if "=" in word and word not in files]
    bare = [word for word in words if word not in files and word not in settings]
    config.require(
        len(bare) <= 1, f"one algorithm is expected, but got {', '.join(bare)}; settings are given as key=value"
    )
    typed = config.parse_overrides([*(f"algo={word}" for word in bare), *settings])
    below = [origin.parent_layer] if origin.parent_layer is not None else []
    from_files = [
        origin.proposal.layers[1] if origin.proposal and path == origin.file else config.file_layer(path, trust=trust)
        for path in files
    ]
    return [*below, *from_files, Layer("command line", typed)]


def check_files(cfg: RunConfig, stack: Sequence[Layer]) -> None:
    """A parent, a proposal or a run's config.yaml opens no file outside of the current folder, unless it is trusted."""
    from relab.schedules import sources

    typed = "\n".join(text for layer in stack if layer.trusted for text in sources.texts(layer.values))
    sent = [layer for layer in stack if not layer.trusted]
    plans = [layer.name for layer in sent if "schedule" in str(layer.values)]
    if plans and cfg.schedule is not None:
        sources.check_record(cfg.schedule, plans[0], typed)
    starts = [layer.name for layer in sent if layer.values.get("start_from") is not None]
    if starts and cfg.start_from is not None:
        from relab.train import weights

        weights.check_record(cfg.start_from, starts[0], Path.cwd(), typed)


def claim(runs: Path, name: str | None) -> tuple[str, Path]:
    """A new empty folder for the run, under the given name or one made up."""
    if name is None:
        return names.claim(runs)
    folder = vacant(runs, name)
    folder.mkdir(parents=True)
    return names.new_id(), folder


def print_config(resolved: config.Resolved) -> None:
    flat = config.flatten(resolved.config)
    width = max(map(len, flat))
    for key, value in flat.items():
        print(f"{key:{width}}  {value!s:24}  {resolved.provenance.get(key, '')}")
    for key, value in config.derived(resolved.config).items():
        if value is None:
            continue
        print(f"{key:{width}}  {value!s:24}  derived")
