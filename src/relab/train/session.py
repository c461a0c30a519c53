"""How does a run start, and how does it go on where it stood? Around the loop: record, environment, state, checkpoint.

`start` makes a record and trains; `resume` puts the last complete checkpoint into the run, cuts the record back to it
and trains on. What fails before a run stands leaves nothing behind, or the record as it was.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relab.base import interrupts, processes
from relab.base.documents import Document, Settings, Tree
from relab.base.enclosed import subfolder
from relab.base.interrupts import stops_say
from relab.config import layers, registry, stretch
from relab.config.base import ConfigError
from relab.config.run import RunConfig
from relab.record.provenance import usable_cores
from relab.record.run_folder import DETERMINISTIC, Record, clear_begun
from relab.schedules.sources import check_record
from relab.train import checkpoint, device, weights
from relab.train.baseline import random_baseline
from relab.train.conformity import check_policy, check_state
from relab.train.contract import ContractError, Setup, clock_of
from relab.train.device import is_cpu
from relab.train.evaluation import Evaluator, point_to_best, read_progress
from relab.train.kernels import jit
from relab.train.loop import WITH, Companion, Ending, Trainer, failures_recorded
from relab.train.profile import Profile
from relab.train.replay import Data, DataError
from relab.train.screen import Screen, Silent
from relab.train.weights import Inherited

COMPANIONS = {  # setting of the run -> "module:make", called with config, environment and whether the run is new
    "probes": "relab.train.probes.companion:make",
    "schedule": "relab.train.steering:make",
}


ALBUM = "relab.train.dream_films:Album"  # keeps a world model's pictures where `record.pictures` asks for them
COMPLETE = "nothing to do, the run is complete"


class ExitError(Exception):
    """Code of the environment or the algorithm asked the whole program to end, which no part of a run may do."""


@contextlib.contextmanager
def exits_are_errors() -> Iterator[None]:
    """An environment that calls sys.exit() would end the whole program, with code 0 as if all had gone well."""
    try:
        yield
    except SystemExit as error:
        raise ExitError(f"the run failed: its environment or its algorithm raised {error!r}, which would have ended the"
                        " whole program; let it raise another error") from error  # fmt: skip


LATER = ("updates", "episodes", "rerun_steps")  # of `counts`: which not every algorithm, or relab, used to count


def make_env(cfg: RunConfig) -> Any:
    return registry.env_class(cfg.env.name)(cfg.env)


def start(
    cfg: RunConfig,
    folder: Path,
    provenance: dict[str, str],
    meta: Document,
    screen: Screen | None = None,
    env: Any = None,
    inherited: Inherited | None = None,
    profile: int = 0,
) -> Ending:
    """Train a new run in an empty folder until it ends. `meta`: command, commit, machine and such, as far as known.

    `env` and `inherited`: what the caller has made already, to see that it can be made. `profile`: iterations to trace.
    """
    trust = registry.trust_word(cfg.env.name, cfg.algo.name)
    with exits_are_errors(), stops_say(lambda: what_is_left(folder, trust)):
        env = env or make_env(cfg)
        inherited = inherited or inherited_by(cfg, env, folder.parent)
        trainer = begin(cfg, folder, provenance, meta, screen or Silent(), env, inherited)
        trainer.profile = Profile(profile)
        return trainer.run()


def is_deterministic(cfg: RunConfig) -> bool:
    """Does the same config and seed give the same bytes on this machine? Settings of an algorithm may say no."""
    return is_cpu(cfg.device) and bool(getattr(cfg.algo, "is_repeatable", lambda: True)())


def begin(
    cfg: RunConfig,
    folder: Path,
    provenance: dict[str, str],
    meta: Document,
    screen: Screen,
    env: Any,
    inherited: Inherited | None = None,
) -> Trainer:
    """A run before its first step, with its record."""
    spec = env.spec.to_dict() | {"random": random_baseline(env, layers.to_dict(cfg)["env"])}
    facts = {"seed": cfg.seed, "threads": cfg.threads, "spec": spec, "deterministic": is_deterministic(cfg)}
    facts["axis"] = clock_of(registry.algo_module(cfg.algo.name), cfg.algo.name)
    facts["owner"] = processes.myself()  # by which a reader on this machine sees that it was killed
    facts["load"] = {"one_minute": os.getloadavg()[0], "cores": usable_cores()}
    record = Record.create(folder, layers.to_dict(cfg), provenance, facts | meta | descent(meta, inherited))
    try:
        with failures_recorded(record):
            record.append_event("start", 0, pid=os.getpid())
            screen.start(head_facts(cfg, record))
            if stretched := stretch.against_shipped(layers.flatten(cfg), provenance):
                screen.note(f"  another length than the preset's: {stretched}")
            trainer = prepare(cfg, record, env, screen)
            if inherited is not None:
                begin_with(trainer, inherited)
            note_beginning(trainer)
            mirror(trainer)
    except (ConfigError, ContractError):
        shutil.rmtree(folder)  # which was made above; settings that cannot work leave no run behind
        raise
    return trainer


# ---- The weights of another run


def inherited_by(cfg: RunConfig, env: Any, runs: Path, kept: Tree | None = None) -> Inherited | None:
    """What a run takes over by `start_from`; ConfigError where that is nothing. `runs`: where names are looked up.

    `kept`: what the run's record says that it started from; another checkpoint would make it another run.
    """
    algo = registry.algo_module(cfg.algo.name)
    borrowed = getattr(algo, "borrowed", lambda cfg: ())(cfg.algo)  # optional in the contract
    if cfg.start_from is None:
        weights.require_borrowed(borrowed, borrowed)
        return None
    source = weights.find(cfg.start_from, runs, kept)
    jit.set_threads(cfg.threads)
    state = check_state(algo.init(setup_of(cfg, env, runs)), cfg.algo.name, clock_of(algo, cfg.algo.name))
    inherited = weights.fitting(source, state.to_tree(), cfg.start_parts or (), env.spec.env)
    if whole := getattr(algo, "WHOLE", False):  # optional in the contract
        weights.require_whole(inherited, () if whole is True else whole, env.spec.env)
    weights.require_borrowed(borrowed, inherited.fresh)
    return inherited


def descent(meta: Document, inherited: Inherited | None) -> Document:
    """For meta.json: the run whose weights it begins with, which is its parent unless another was named."""
    if inherited is None:
        return {}
    source = inherited.source
    parent = {} if meta.get("parent") else {"parent": source.run, "parent_id": source.id}
    return parent | {"started_from": inherited.facts()}


def begin_with(trainer: Trainer, inherited: Inherited) -> None:
    """Put the weights in and keep them at once: from here on the run needs the other one no more."""
    with trainer.usage.timed("start_s"):
        weights.put(trainer.algo, trainer.state, inherited)
    with trainer.usage.timed("save_s"):
        trainer.save()
    then = getattr(trainer.algo, "begins", lambda cfg: "")(trainer.cfg.algo)  # optional in the contract
    trainer.screen.note(f"  {inherited.line()}{f'; then {then}' if then else ''}")


# ---- Going on


def resume(folder: Path, screen: Screen | None = None, trust: bool = False) -> Ending:
    """Go on from the last complete checkpoint, to the same bytes that an uninterrupted run would have written.

    `trust`: code that the record names may be imported, and files be opened.
    """
    with exits_are_errors(), stops_say(lambda: what_is_left(folder, " --trust" * trust)):
        record = Record.open(folder, repair=False)
        if record.meta["status"] == "finished":
            record.close()
            step = int(record.meta.get("step", 0))
            return Ending(folder, "finished", COMPLETE, step)
        with stops_say(lambda: interrupts.go_on(folder, " --trust" * trust, interrupts.AS_IT_WAS)):
            trainer = go_on(record, screen or Silent(), trust)
        return trainer.run()


def go_on(record: Record, screen: Screen, trust: bool) -> Trainer:
    """A run where it stood. Whatever fails before that, the attempt leaves the record as it was."""
    try:
        cfg = layers.from_record(record.folder, trust)
        fresh = checkpoint.last(record.folder / "checkpoints") is None
        if fresh and cfg.schedule is not None and not trust:
            check_record(cfg.schedule, os.fspath(record.folder))
        if fresh and cfg.start_from is not None and not trust:
            weights.check_record(cfg.start_from, os.fspath(record.folder), record.folder.parent)
        trainer = prepare(cfg, record, make_env(cfg), screen, fresh=fresh)
        kept = record.meta.get("started_from")
        inherited = inherited_by(cfg, trainer.env, record.folder.parent, kept) if fresh else None
        name, lengths = stand(trainer)
    except BaseException:
        record.close()
        raise
    with failures_recorded(record, lambda: trainer.step):
        record.repair()
        step = cut_back(trainer, name, lengths)
        if inherited is not None:
            begin_with(trainer, inherited)
        if step == 0:
            note_beginning(trainer)  # a run that was killed early may not have come to it
        mirror(trainer)
        record.update_meta(status="running", why=None, owner=processes.myself(), axis=trainer.clock)
        record.append_event("resume", step, pid=os.getpid())
        screen.start(head_facts(cfg, record))
        screen.note(f"  resumed at step {step:,}: {what_stands(trainer, name)}")
    return trainer


STREAMS = ("draw", "noise", "rng", "shuffle")  # of a checkpoint's tree: states of random streams
STANDS = {"params": "weights", "slow": "slow copies", "acting": "acting weights", "adam": "optimiser"}


def what_stands(trainer: Trainer, name: str | None) -> str:
    """What is as it was, and what is not."""
    if name is None:
        return "it had no checkpoint yet, so that it begins anew"
    keys = [key for key in trainer.state.to_tree() if key not in (*STREAMS, "counts")]
    parts = [STANDS.get(key, key.replace("_", " ")) for key in keys]
    parts += ["random streams"] * (len(keys) < len(trainer.state.to_tree()) - 1) + list(trainer.companions)
    reset = getattr(trainer.algo, "resets", lambda cfg: "")(trainer.cfg.algo)  # optional in the contract
    return f"restored {', '.join(parts)}; reset {reset or 'nothing'}"


def mirror(trainer: Trainer) -> None:
    """Whoever else is to hear of every row, as the settings say."""
    record, settings = trainer.record, trainer.cfg.record
    if settings is not None and settings.pictures:
        trainer.album = registry.load(ALBUM)(trainer)
    if settings is not None and settings.tensorboard:
        from relab.formats.write.live_board import LiveBoard

        def lost(why: str) -> None:
            record.append_event("warning", trainer.step, message=why)

        config = layers.to_dict(trainer.cfg)
        record.mirror = LiveBoard(record.folder, config, record.meta.get("created"), trainer.step, lost)


def what_is_left(folder: Path, trust: str = "") -> str:
    """For whoever pressed Ctrl-C; what has not become a run is cleared away."""
    clear_begun(folder)
    return interrupts.go_on(folder, trust) if (folder / "meta.json").exists() else interrupts.NO_RUN


def note_beginning(trainer: Trainer) -> None:
    """Fingerprints of the weights before any learning: runs that begin alike have the same."""
    params = trainer.state.to_tree()["params"]
    parts = {name: checkpoint.fingerprint({name: each}) for name, each in params.items()}
    trainer.record.update_meta(init=checkpoint.fingerprint(params), init_parts=parts)


def stand(trainer: Trainer) -> tuple[str | None, dict[str, int]]:
    """Put the last checkpoint into the trainer -> its name and the lengths of the record's files then; writes nothing.

    Where there is none yet the run begins anew.
    """
    root = trainer.folder / "checkpoints"
    name = checkpoint.last(root)
    lengths = dict.fromkeys(DETERMINISTIC, 0) if name is None else take(trainer, root, name)
    trainer.record.check_cuts(lengths)
    return name, lengths


def cut_back(trainer: Trainer, name: str | None, lengths: dict[str, int]) -> int:
    """Make the record that of the checkpoint (None: of a run that has none yet); returns the step."""
    root = trainer.folder / "checkpoints"
    step = -1  # before the first checkpoint, which is that of step 0
    if name is not None:
        step = trainer.step
        checkpoint.point(root, "latest", name, step)
        point_to_best(root, trainer.progress)
    checkpoint.clean(root, step)
    trainer.record.truncate(lengths)
    trainer.data.cut()
    trainer.began_step = max(step, 0)
    return trainer.began_step


def take(trainer: Trainer, root: Path, name: str) -> dict[str, int]:
    """Put a checkpoint into the trainer -> lengths of the record's files at that step."""
    tree, progress = checkpoint.load(root, name)
    with checkpoint.taking(root / name):
        lengths = progress.pop("lengths")
        checkpoint.check_like(lengths, dict.fromkeys(DETERMINISTIC, 0), "lengths.")
        restore_data(trainer, root, name, progress)
        for companion_name, companion in trainer.companions.items():
            companion.load(tree.pop(WITH + companion_name))
        tree["counts"] = dict.fromkeys(LATER, 0) | tree["counts"]
        checkpoint.check_like(tree, checkpoint.split(trainer.state.to_tree())[1])
        trainer.state.load(tree)
        trainer.progress = read_progress(progress)
        if name != f"step-{trainer.step:012d}":
            raise ValueError(f"its `counts` are those of step {trainer.step}")
    return lengths


def restore_data(trainer: Trainer, root: Path, name: str, progress: Document) -> None:
    """The rows of a checkpoint; where they were damaged, the error says from where the run can still go on."""
    data = trainer.data
    try:
        data.restore(progress.pop("data", {}), progress.pop("data_sums", None))
    except DataError as error:
        raise checkpoint.CheckpointError(f"{trainer.folder} cannot go on from step {checkpoint.step_of(name)}: {error};"
                                         f" {without(data, root, name)}") from error  # fmt: skip


def without(data: Data, root: Path, name: str) -> str:
    """What to do where the rows of a checkpoint are damaged: those of an earlier one may lie before the damage."""
    names = [each for each in checkpoint.steps(root) if checkpoint.step_of(each) <= checkpoint.step_of(name)]
    for each in reversed(names[:-1]):
        with contextlib.suppress(Exception):  # as damaged, or more
            progress = checkpoint.read_progress(root, each)
            data.restore(progress["data"], progress.get("data_sums"))
            later = ", ".join(names[names.index(each) + 1 :])
            return f"move {later} away, and `relab resume` goes on from step {checkpoint.step_of(each)}"
    return (f"put the file back from a copy; or begin another run with its weights: `relab train --parent"
            f" {root.parent} start_from={root.parent}`")  # fmt: skip


def possible(cfg: RunConfig, runs: Path = Path("runs")) -> tuple[Any, Inherited | None]:
    """Environment and inherited weights, once all is seen to fit; nothing is measured, written or left behind."""
    device.check(cfg.device)
    device.check_ranks(cfg.device, getattr(cfg.algo, "ranks", 1))
    env = make_env(cfg)
    check_agent(cfg, env, runs)
    companions_of(cfg, env)
    return env, inherited_by(cfg, env, runs)


def check_agent(cfg: RunConfig, env: Any, runs: Path = Path("runs")) -> None:
    """ConfigError where the algorithm cannot act in the environment; asked before anything is measured."""
    algo = registry.algo_module(cfg.algo.name)
    clock_of(algo, cfg.algo.name)
    agent = algo.make_agent(cfg.algo, env.spec, cfg.seed, cfg.device, cfg.threads)
    check_policy(agent, cfg.algo.name)
    if cfg.record is not None and cfg.record.pictures:
        registry.load(ALBUM).check(cfg, env, agent)
    getattr(algo, "check", lambda setup: None)(setup_of(cfg, env, runs))  # optional in the contract


def check_start(cfg: RunConfig) -> None:
    """ConfigError where an algorithm that begins with a policy is given none: a fresh one acts at random."""
    needed = getattr(cfg.algo, "NEEDS_START", "")  # optional in the contract
    shelf = sorted(path.parent.name for path in weights.SHELF.glob("*/meta.json"))
    layers.require(not needed or cfg.start_from is not None, f"`start_from` must name {needed}, but is null for"
                   f" {cfg.env.name}; give start_from=RUN (or RUN@best, RUN@STEP), a run of `relab train ppo"
                   f" env={cfg.env.name}`, say; relab itself brings policies for {', '.join(shelf)}")  # fmt: skip


def prepare(cfg: RunConfig, record: Record, env: Any, screen: Screen, fresh: bool = True) -> Trainer:
    """Import the algorithm (and with it torch), lay out the state.

    `fresh`: no checkpoint follows.
    """
    algo = registry.algo_module(cfg.algo.name)
    clock = clock_of(algo, cfg.algo.name)
    jit.set_threads(cfg.threads)
    if note := getattr(algo, "first_time", str)():
        screen.note(f"  {note}")
    companions = companions_of(cfg, env, fresh)  # first: a schedule sets the stage that the worlds begin in
    data = Data(record.folder)
    state = check_state(algo.init(setup_of(cfg, env, record.folder.parent, data)), cfg.algo.name, clock)
    subfolder(record.folder, "checkpoints")
    apart = make_env(cfg) if cfg.schedule is not None else env  # a schedule changes the environment of training
    return Trainer(cfg, record, env, algo, state, screen, Evaluator(cfg, apart), clock, data, companions)


def setup_of(cfg: RunConfig, env: Any, runs: Path = Path("runs"), data: Data | None = None) -> Setup:
    return Setup(env, cfg.algo, cfg.seed, cfg.total_steps, cfg.device, cfg.threads, runs, data or Data())


def companions_of(cfg: RunConfig, env: Any, fresh: bool = True) -> dict[str, Companion]:
    makers = {name: make for name, make in COMPANIONS.items() if getattr(cfg, name, None) is not None}
    return {name: registry.load(make)(cfg, env, fresh) for name, make in makers.items()}


def derived(cfg: RunConfig) -> Settings:
    """The numbers that follow from the config, without those that say the same thing again per world."""
    numbers = {name: value for name, value in layers.derived(cfg).items() if value is not None}
    short = {name.rpartition(".")[2]: value for name, value in reversed(numbers.items())}  # the run's own win
    if clock_of(registry.algo_module(cfg.algo.name), cfg.algo.name) != "agent_steps":
        short.pop("iterations", None)  # total_steps does not count the rows of a batch
    same = ("actors", short["agents"]), ("agents", 1)  # the run's `agents` are the environment's actors
    return {name: short[name] for name in reversed(short) if (name, short[name]) not in same}


def head_facts(cfg: RunConfig, record: Record) -> Document:
    meta = record.meta
    facts = {
        "name": record.folder.name,
        "id": meta["id"],
        "folder": str(record.folder),
        "algo": cfg.algo.name,
        "env": cfg.env.name,
    }
    facts |= {"seed": cfg.seed, "config_hash": meta["config_hash"], "derived": derived(cfg)}
    return facts | {"random": meta["spec"].get("random")}
