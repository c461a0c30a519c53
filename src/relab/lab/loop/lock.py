"""Is the evaluator still the one that the loop began with? Its code, its seeds and its settings, each by its hash.

Kept in lock.json when the loop begins, looked at before and after every run. A rule that only says "do not touch the
evaluation" is a wish; whoever may write files, a program that proposes changes for instance, can change what measures
them. A run that was made while anything of it was other does not count, and the loop goes no further.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import importlib.metadata
import importlib.util
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

from relab.base.documents import Document
from relab.base.enclosed import own
from relab.base.errors import UserError
from relab.base.jsonl import encode, read_json, write_atomic
from relab.base.streams import seed_for
from relab.config import layers, registry
from relab.config.base import require
from relab.lab.loop import imported
from relab.lab.loop.plan import Loop, resolved
from relab.lab.loop.seal import genuine, sealed

FILE = "lock.json"
SCHEMA = 2  # 1 named files by the folder that they lie in, so that a loop which was moved looked like another
# Modules that make a number of a run: who plays the episodes, who counts them, who takes the number.
JUDGES = ("relab.train.rollout", "relab.train.acting", "relab.train.envs.base", "relab.record.evaluations",
          "relab.comparison.outcomes", "relab.lab.loop.judge", "relab.lab.loop.deciding", "relab.lab.loop.seal",
          "relab.stats.keeping", "relab.stats.compare_means")  # fmt: skip
STATED = ("metric", "at", "last", "level", "direction", "smallest_effect", "range", "budget", "hidden", "proposals",
          "error")  # fmt: skip


class TamperedError(UserError):
    """The evaluator is not what it was."""


def evaluator(plan: Loop) -> dict[str, str]:
    """Part -> hash."""
    parts = _code(files(plan))
    parts |= {f"code {name}": version for name, version in _packages(plan).items()}
    base = layers.flatten(resolved(plan))
    kept = {key: value for key, value in base.items() if key.startswith(("eval.", "env.")) or key == "total_steps"}
    stated = {key: getattr(plan, key) for key in STATED}
    words = {"evaluate": list(plan.evaluate), "decides": plan.decides}
    seeds = [hidden_seed(plan), plan.hidden]
    return parts | {"settings": _text({**stated, **words, **kept}), "hidden seeds": _text(seeds)}


def hidden_seed(plan: Loop) -> int:
    """What the deciding evaluation draws its episodes from; no training run and no proposal is told."""
    return seed_for(plan.hidden_seed, "hidden") % 2**31


def _code(paths: Sequence[Path]) -> dict[str, str]:
    """Each file by its hash; those of one name together."""
    parts: dict[str, str] = {}
    for path in paths:
        name, mine = f"code {_name(path)}", _file(path)
        parts[name] = _text([parts[name], mine]) if name in parts else mine
    return parts


def _name(path: Path) -> str:
    """Its way from the working folder, which may be moved with all that is in it; elsewhere its folder and its name."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else f"{path.parent.name}/{path.name}"


def files(plan: Loop) -> list[Path]:
    """The files that an evaluation is made of, and the modules beside them that they import."""
    named = programs(plan)
    beside = [path for program in named for path in imported.beside(program)]
    return list(dict.fromkeys([*named, *beside, *_shadowing(plan)]))


def _shadowing(plan: Loop) -> list[Path]:
    """What lies where Python looks first and has a standard module's name: imported in the place of it, by modules of
    the standard library too. Relab's own evaluation is started so that nothing is looked for there."""
    if not plan.command:
        return []
    words = [*plan.command, *plan.evaluate]
    scripts = [Path(word).resolve().parent for word in [*words, *plan.evaluator] if Path(word).is_file()
               and Path(word).suffix == ".py"]  # fmt: skip
    here = [Path.cwd()] if {"-m", "-c"} & set(words) else []
    return [path for folder in dict.fromkeys([*scripts, *here]) for path in imported.of_standard_names(folder)]


def programs(plan: Loop) -> list[Path]:
    """Of relab's runs the modules that play and count; of a foreign program the files that its commands name."""
    for name in plan.evaluator:
        require(Path(name).is_file(), f"`evaluator` must name files, but {name!r:.80} is none: it would not be locked")
    if plan.command:
        words = [*plan.command, *plan.evaluate, *plan.evaluator]
        scripts = [path.resolve() for word in words if (path := Path(word)).is_file() and _script(path)]
        return list(dict.fromkeys([*scripts, *_by_name(plan.command), *_by_name(plan.evaluate)]))
    named = [Path(name).resolve() for name in plan.evaluator]
    return [*(path for name in (*JUDGES, *_env_module(plan)) for path in _sources(name)), *named]


def _by_name(words: Sequence[str]) -> list[Path]:
    """What `python -m package.module` runs, where it lies below the working folder."""
    names = [after for word, after in itertools.pairwise(words) if word == "-m"]
    return [path.resolve() for name in names for path in imported.files_of(Path.cwd(), (*name.split("."), "__main__"))]


def _sources(module: str) -> list[Path]:
    """The file of a module, or all those of a package; nothing is imported but the packages above it."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        return []
    path = Path(spec.origin)
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]


def _script(path: Path) -> bool:
    """An interpreter is not read byte by byte: it is no part of the evaluation that anybody edits."""
    return path.suffix != "" or path.stat().st_size < 1_000_000


def _env_module(plan: Loop) -> list[str]:
    name = str(layers.flatten(resolved(plan)).get("env.name"))
    ours = registry.builtin_envs().get(name)
    module = ours[1].partition(":")[0] if ours else registry.named_code("env", name)
    return [module] if module and not name.startswith(registry.GYM) else []


def _packages(plan: Loop) -> dict[str, str]:
    """Environments of Gymnasium are code of a package: its version stands for it."""
    name = "" if plan.command else str(layers.flatten(resolved(plan)).get("env.name"))
    return {"gymnasium": importlib.metadata.version("gymnasium")} if name.startswith("gym:") else {}


def _file(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError:
        return "missing"


def _text(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


# ---- Kept and checked


def keep(plan: Loop, folder: Path, begun: bool = False, anew: bool = False) -> Document:
    """What the loop began with: written once, and never again but `anew`, where it is gone or an earlier relab's."""
    path = own(folder, FILE)
    there = path.is_file()
    if not there and begun and not anew:
        raise TamperedError(
            f"{path} must be there, as this loop has begun, but is gone: what the evaluator was is not known without"
            " it; put it back from a backup, or begin another loop with --name. Or look through the loop's files and"
            " call it with --accept, which locks the evaluator as it is now"
        )
    if not there or (anew and read_json(folder, FILE).get("schema") != SCHEMA):
        body: Document = {"schema": SCHEMA, "evaluator": evaluator(plan)}
        write_atomic(path, encode(sealed(body, hidden_seed(plan)), indent=True))
    return read_json(folder, FILE)


def forget_bytecode(plan: Loop) -> None:
    """Compiled copies of the evaluator's files go: Python takes one for its source by time and size alone, so that a
    forged one would decide in the place of a file that is as it was."""
    for path in files(plan):
        for copy in (path.parent / "__pycache__").glob(f"{glob.escape(path.stem)}.*.pyc"):
            with contextlib.suppress(OSError):  # an installed package that may not be written to
                copy.unlink(missing_ok=True)


def changed(plan: Loop, folder: Path) -> list[str]:
    """The parts that are other than they were."""
    body = read_json(folder, FILE)
    if not genuine(body, hidden_seed(plan)):
        return [f"{FILE} itself, which was not written by this loop"]
    before = body.get("evaluator") or {}
    now = evaluator(plan)
    return [f"{part} ({before.get(part, 'none')} -> {now.get(part, 'none')})" for part in {**before, **now}
            if before.get(part) != now.get(part)]  # fmt: skip


def digest(folder: Path) -> str:
    """Of the lock as a whole, for the journal, whose seals nobody can make who merely knows the hidden seed."""
    return _text(read_json(folder, FILE))


def check(plan: Loop, folder: Path, journal_says: str = "") -> None:
    """`journal_says`: the digest of the lock that the loop began with; empty for a loop of an earlier relab."""
    if not own(folder, FILE).is_file():
        keep(plan, folder, begun=True)
    if journal_says and digest(folder) != journal_says:
        raise TamperedError(
            f"{folder / FILE} must be the one that the loop began with ({journal_says}), but is another"
            f" ({digest(folder)}): put it back from a backup, or begin another loop with --name. Or look through the"
            " loop's files and call it with --accept, which takes it as it stands"
        )
    schema = read_json(folder, FILE).get("schema")
    if schema != SCHEMA:
        raise TamperedError(
            f"{folder / FILE} must have schema {SCHEMA}, but has {schema}: another relab began this loop; go on with"
            " that one, or look through the loop's files and call it with --accept, which locks the evaluator anew"
        )
    other = changed(plan, folder)
    if other:
        raise TamperedError(
            f"the evaluator must stay as it was when the loop began, but is other: {', '.join(other[:4])}; put it back"
            " (what ran meanwhile is run again), or begin another loop with --name"
        )
