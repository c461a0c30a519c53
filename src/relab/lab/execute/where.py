"""Where are runs to be run, and with what? `--on local | ray[:address] | slurm`, or `execute:` in the file.

execute: {on: slurm, cores: 2, memory_mb: 4000, minutes: 30, pack: 10, at_once: 50, partition: short}
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.near import hint
from relab.config.base import require
from relab.config.coerce import coerce

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLAIN = re.compile(r"[\w.,:+@%/-]+")
HOST = re.compile(r"auto|[\w.\[\]:-]+:\d+")
CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\x85]")
OWN = ("--array -a --requeue --no-requeue --output -o --error -e --ntasks -n --job-name -J --open-mode --signal --wrap"
       " --parsable --wait -W --time -t").split()  # fmt: skip
MOST = 1e6  # cores or minutes of anything there is
ENGINES = ("local", "ray", "slurm")
OF_SLURM = ("partition", "account", "lines", "modules")  # what the other engines have no use for


@dataclass(frozen=True)
class Where:
    """The engine, what one run takes there, and what an engine needs to know besides."""

    on: str = "local"  # local, ray, ray:ADDRESS or slurm
    cores: int = 1  # of one run
    memory_mb: float | None = None  # of one run; None: not asked for
    gpus: float = 0.0  # of one run
    minutes: float | None = None  # of one job: then it checkpoints and is put into the line again; None: no limit
    pack: int = 1  # runs of one job, one after the other: for short ones
    at_once: int | None = None  # runs that are given to the engine at a time; None: as many as it has room for
    partition: str | None = None  # of Slurm
    account: str | None = None  # of Slurm
    lines: tuple[str, ...] = ()  # more #SBATCH lines: "--constraint=avx512"
    modules: tuple[str, ...] = ()  # `module load` of these before relab is called
    venv: str | None = None  # environment that is activated before relab is called
    env: dict[str, str] = field(default_factory=dict)  # variables that are set for the runs
    shared: bool = True  # the machines see the folder of the runs; else it travels there and back (Ray)
    scratch: str | None = None  # without a shared folder: where a machine works; None: its temporary folder
    files: tuple[
        str, ...
    ] = ()  # without a shared folder: programs and folders that go along, from where relab is called

    @property
    def engine(self) -> str:
        return self.on.partition(":")[0]

    @property
    def address(self) -> str | None:
        return self.on.partition(":")[2] or None

    @property
    def here(self) -> bool:
        return self.engine == "local"

    def to_dict(self) -> Document:
        """What was said; what was left out is left out."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v != getattr(HERE, k)}


HERE = Where()


def of(values: Any, on: str | None = None, at_once: int | None = None) -> Where:
    """`execute` of a file, with what the command line says (`--on`, `--workers`); mistakes are errors with the key."""
    table: Any = {"on": values} if isinstance(values, str) else values or {}
    require(isinstance(table, Mapping), f"`execute` must be an engine or a table of settings, but is {table!r:.80}")
    known, types = {each.name for each in fields(Where)}, typing.get_type_hints(Where)
    for key in table:
        near = hint(str(key), sorted(known), "; the nearest known one is `{}`")
        require(key in known, f"unknown key `execute.{key}`{near}")
    lists = {key: _texts(key, value) for key, value in table.items() if key in ("lines", "modules", "files")}
    env = _variables(table.get("env"))
    plain = {k: coerce(v, types[k], f"execute.{k}") for k, v in table.items() if k not in (*lists, "env")}
    where = Where(**{**plain, **lists, **({"env": env} if env else {})})
    where = replace(where, on=on or where.on, at_once=at_once or where.at_once)
    return checked(where)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    fits = value is None or isinstance(value, (str, list, tuple))
    require(fits, f"`execute.{key}` must be a text or a list of texts, but is {value!r:.80}")
    return (value,) if isinstance(value, str) else tuple(map(str, value or ()))


def _variables(table: Any) -> dict[str, str]:
    """Their names stand in a script of the shell: what is none could be a command."""
    require(
        table is None or isinstance(table, Mapping), f"`execute.env` must be a table of variables, but is {table!r:.80}"
    )
    env = {str(k): str(v) for k, v in (table or {}).items()}
    odd = [key for key in env if not VARIABLE.fullmatch(key)]
    require(not odd, f"a variable of `execute.env` must be named by letters, digits and _, but one is {odd[:1]!r:.80}")
    return env


def _plain(where: Where) -> None:
    """Lines of a script hold nothing that begins another line, and no option that relab sets itself."""
    for key in ("partition", "account", "venv", "scratch", "modules"):
        values = getattr(where, key) or ()
        odd = [v for v in ((values,) if isinstance(values, str) else values) if CONTROL.search(v)]
        require(not odd, f"`execute.{key}` must be one line of text, but got {odd[:1]!r:.80}")
    for key in ("partition", "account"):
        value = getattr(where, key)
        fits = value is None or PLAIN.fullmatch(value)
        require(bool(fits), f"`execute.{key}` must be a name without blanks, but is {value!r:.80}")
    own = [line for line in where.lines if re.split(r"[=\s]", line)[0] in OWN]
    require(
        not own, f"`execute.lines` must not hold options that relab sets itself ({', '.join(OWN)}), but got {own[:1]}"
    )


def checked(where: Where) -> Where:
    """What an engine has no use for is an error; not for runs that stay here: the same file goes elsewhere too."""
    names = " or ".join((*ENGINES[:1], "ray[:address]", *ENGINES[2:]))
    require(where.engine in ENGINES, f"`--on` must be {names}, but is {where.on!r}")
    require(where.address is None or where.engine == "ray", f"only Ray has an address, but `--on` is {where.on!r}")
    fits = where.on == where.engine or HOST.fullmatch(where.address or "") is not None
    require(fits, f"`--on ray:ADDRESS` needs the address of a head as host:port, or auto, but is {where.on!r}")
    for key in ("cores", "pack", "at_once"):
        value = getattr(where, key)
        require(value is None or value >= 1, f"`execute.{key}` must be at least 1, but is {value}")
        require(value is None or value <= MOST, f"`execute.{key}` must be at most {MOST:,.0f}, but is {value}")
    for key in ("memory_mb", "minutes"):
        value = getattr(where, key)
        require(value is None or 0 < value <= MOST**2, f"`execute.{key}` must be above 0 and finite, but is {value}")
    require(0 <= where.gpus <= MOST, f"`execute.gpus` must be from 0 to {MOST:,.0f}, but is {where.gpus}")
    _plain(where)
    odd = [key for key in OF_SLURM if getattr(where, key)]
    fits = where.engine in ("slurm", "local") or not odd
    require(fits, f"`execute.{odd[0] if odd else ''}` is for Slurm, but the runs go to"
                                                f" {where.engine}")  # fmt: skip
    require(where.shared or where.engine in ("ray", "local"), "`execute.shared: false` is for Ray, but the runs go to"
            f" {where.engine}; Slurm's jobs and their submitter need a folder that all machines see")  # fmt: skip
    lost = [key for key in ("scratch", "files") if getattr(where, key) and where.shared]
    require(not lost, f"`execute.{lost[0] if lost else ''}` goes with `shared: false`")
    odd = [
        name for name in where.files if Path(name).is_absolute() or ".." in Path(name).parts or not Path(name).exists()
    ]
    require(
        not odd, f"`execute.files` must be files or folders below {Path.cwd()}, but {odd[0] if odd else ''!r} is none"
    )
    broken = [line for line in where.lines if CONTROL.search(line) or not line.startswith("-")]
    require(not broken, f"`execute.lines` are options of sbatch such as --constraint=avx512, but got {broken[:1]}")
    return where
