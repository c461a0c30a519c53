"""How are a command's words read? tyro makes options from a dataclass; the docstring and examples become --help."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from relab.base import terminal
from relab.base.contexts import holding
from relab.commands.word_order import in_order
from relab.config.base import require
from relab.record import names

T = TypeVar("T")
_listing: ContextVar[list[str] | None] = ContextVar("listing", default=None)  # options, where only these are wanted
SILENT = ("None", "False", "", "''")  # defaults that say nothing: not set, off, none


class Answered(SystemExit):
    """The parser has printed help, or what is wrong with the words; any other SystemExit is not relab's own."""


def vacant(root: Path, name: str) -> Path:
    """The folder of a new run or experiment of that name; it is not there yet, and lies nowhere else than in `root`."""
    folder = named(root, name)
    then = "delete it (it holds no run yet)" if names.is_unborn(folder) else "resume it"
    require(not folder.exists(), f"`--name` must be new, but {folder} exists; {then}, or choose another name")
    return folder


def named(root: Path, name: str) -> Path:
    wrong = names.flaw(name)
    require(not wrong, f"`--name` cannot be used: {wrong}; the folder that it lies in is another option")
    return root / name


def parse(args: type[T], name: str, words: Sequence[str], examples: str) -> T:
    """The dataclass filled from `words`; prints help or what is wrong and raises Answered."""
    import tyro

    if (listing := _listing.get()) is not None:
        listing += _options(args)
        raise Answered(0)
    plainly(args)
    _check_choices(args, words)
    config: tuple[Any, ...] = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
    text = f"{_paragraphs(args.__doc__ or '')}\n\nExamples:\n{examples.strip(chr(10)).rstrip()}"
    try:
        with terminal.as_is():  # its colours
            return tyro.cli(args, prog=f"relab {name}", description=text, args=in_order(args, words), config=config)
    except SystemExit as stop:
        raise Answered(stop.code) from None


def _check_choices(args: Any, words: Sequence[str]) -> None:
    """The value of an option that takes one of some words: tyro's message would offer 'None', in an order by chance."""
    known = _choices(args)
    ended = list(words).index("--") if "--" in words else len(words)
    for word, after in zip(words[:ended], [*words[1:ended], ""]):
        option, sign, value = word.partition("=")
        got, choices = value if sign else after, known.get(option.replace("_", "-"), ())
        require(not choices or not got or got in choices, f"`{option}` must be one of {', '.join(choices)},"
                f" but got {got!r:.80}")  # fmt: skip


def _choices(args: Any) -> dict[str, tuple[str, ...]]:
    hints, choices = get_type_hints(args), dict[str, tuple[str, ...]]()
    for item in dataclasses.fields(args):
        kinds = [each for each in (hints[item.name], *get_args(hints[item.name])) if get_origin(each) is Literal]
        if dataclasses.is_dataclass(hints[item.name]):
            choices |= _choices(hints[item.name])
        elif kinds:
            choices["--" + item.name.replace("_", "-")] = tuple(map(str, get_args(kinds[0])))
    return choices


def _paragraphs(docstring: str) -> str:
    """A line each, which the terminal breaks: tyro joins lines of the source, but none that begins with a bracket."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(docstring).split("\n\n"))


def options_of(command: Callable[[Sequence[str]], int]) -> list[str]:
    """The options that a command reads, without calling it."""
    options: list[str] = []
    with holding(_listing, options), contextlib.suppress(Answered):
        command([])
    return options


def _options(args: Any) -> list[str]:
    import tyro

    hints, options = get_type_hints(args, include_extras=True), list[str]()
    for item in dataclasses.fields(args):
        kind = hints[item.name]
        if dataclasses.is_dataclass(kind):
            options += _options(kind)
        elif tyro.conf.Positional not in get_args(kind)[1:]:
            options.append("--" + item.name.replace("_", "-"))
    return options


def renamed(words: Sequence[str], before: str, now: str) -> list[str]:
    """An option's earlier name still works."""
    return [now if word == before else word for word in words]


def plainly(cls: Any) -> None:
    """Let --help say what a person would: no `{None}|STR`, no `[STR [STR ...]]`, no default that means nothing."""
    import tyro

    if cls.__dict__.get("_plain_help"):
        return
    hints = get_type_hints(cls, include_extras=True)
    for item in dataclasses.fields(cls):
        kind = hints[item.name]
        if dataclasses.is_dataclass(kind):
            plainly(kind)
            continue
        place = _place(item, kind)
        shown = tyro.conf.arg(help_behavior_hint=_default, metavar=place or None)
        cls.__annotations__[item.name] = Annotated[kind, shown]
    cls._plain_help = True


def _default(label: str) -> str:
    return "" if label in SILENT else f"(default: {label})"


def _place(item: dataclasses.Field[Any], kind: Any) -> str:
    """How a value is shown: a word without an option's name as PATH, or [PATH ...] for `paths`; those of an option as
    INT ...; empty for what tyro shows well."""
    import tyro

    bare, *markers = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    many = get_origin(bare) in (tuple, list)
    if tyro.conf.Positional not in markers:
        return f"{get_args(bare)[0].__name__.upper()} ..." if many and not markers else ""
    name = item.name.upper().removesuffix("S" if many else "") + " ..." * many
    needed = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    return name if needed else f"[{name}]"
