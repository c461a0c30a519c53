"""How does a variant become a foreign program's command line? Words with {placeholders}; never a shell.

    command: python my_ppo.py --clip {clip} --seed {seed} --logdir {run}

{seed} and {run} (the folder to write into) are always there, {budget} where it is given, and every key of base and of
the variants. A value fills a part of one word, spaces and all; a list fills a word of its own with as many words as it
has, none included. {{ and }} stand for the braces themselves.
"""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relab.config.base import require

if TYPE_CHECKING:
    from relab.lab.experiment.question import Experiment

COMMANDS = ("command", "resume_command")
ALWAYS = ("seed", "run")
RESERVED = (*ALWAYS, "budget")


def split(value: Any, key: str) -> tuple[str, ...]:
    """A command's words, from a line as one would type it or from a list."""
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            require(False, f"`{key}` must be a line that can be split into words, but {error} in {value!r}")
    words = tuple(str(word) for word in value) if isinstance(value, (list, tuple)) else ()
    require(bool(words), f"`{key}` must be a line of text or a list of words, but got {value!r}")
    return words


def join(words: Sequence[str]) -> str:
    """The line that `split` turns into these words; braces of placeholders need no quotes."""
    return " ".join(word if _bare(word) else shlex.quote(word) for word in words)


def _bare(word: str) -> bool:
    plain = word.replace("{", "").replace("}", "")
    return plain == shlex.quote(plain) or (plain == "" and word != "")


def names_in(word: str, key: str = "command") -> list[str]:
    """The placeholders of a word."""
    return [name for _, name in _parts(word, key) if name is not None]


def _parts(word: str, key: str) -> list[tuple[str, str | None]]:
    try:
        parts = list(string.Formatter().parse(word))
    except ValueError as error:
        require(False, f"`{key}`: {error} in {word!r}; a brace that is none of a placeholder is written {{{{ or }}}}")
    for _, name, spec, conversion in parts:
        plain = name is None or (name != "" and not spec and not conversion)
        require(plain, f"`{key}`: {word!r} must hold plain placeholders such as {{seed}}, without ! and :;"
                       " a brace of the program's own is written {{ or }}")  # fmt: skip
    return [(text, name) for text, name, _, _ in parts]


def fill(words: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """The command line of one run.

    >>> fill(["train", "--lr={lr}", "{flags}", "{{x}}"], {"lr": 0.1, "flags": ["-a", "-b"]})
    ['train', '--lr=0.1', '-a', '-b', '{x}']
    """
    filled: list[str] = []
    for word in words:
        parts = _parts(word, "command")
        if len(parts) == 1 and parts[0][0] == "" and isinstance(values.get(str(parts[0][1])), (list, tuple)):
            filled += [text_of(item, word) for item in values[str(parts[0][1])]]
        else:
            filled.append("".join(text + (text_of(values[name], name) if name else "") for text, name in parts))
    return filled


def text_of(value: Any, name: str) -> str:
    """true and false as in YAML; nothing and nested values have no text."""
    known = isinstance(value, (str, int, float, bool))
    require(known, f"{{{name}}} must be a number or text, or a list for a word of its own, but is {value!r}")
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- What cannot be filled


def check(e: Experiment) -> None:
    """Every placeholder has a value in every variant, and every value a placeholder."""
    for where, settings in {"base": e.base, **{f"variant {name}": v for name, v in e.variants.items()}}.items():
        taken = [key for key in settings if key in RESERVED]
        require(not taken, f"{where} sets `{taken[0] if taken else ''}`, which relab fills in by itself; rename it")
    used = [name for word in e.command for name in names_in(word)]
    for name in ALWAYS:
        why = "all seeds would be the same run" if name == "seed" else "relab could not find what it writes"
        require(name in used, f"`command` needs {{{name}}}: without it {why}")
    for variant in e.variants:
        known = (*ALWAYS, *e.settings(variant))
        _check_known(used, known, variant, "command")
        _check_known([n for w in e.resume_command for n in names_in(w, "resume_command")], known, variant,
                     "resume_command")  # fmt: skip
        unused = [key for key in known if key not in used]
        require(not unused, f"`{unused[0] if unused else ''}` of variant {variant} is not used by the command:"
                            f" write {{{unused[0] if unused else ''}}} where it belongs, or take it out")  # fmt: skip
        fill(e.command, {**e.settings(variant), "seed": 0, "run": "run"})


def _check_known(used: list[str], known: Sequence[str], variant: str, key: str) -> None:
    unknown = [name for name in used if name not in known]
    require(not unknown, f"`{key}` has {{{unknown[0] if unknown else ''}}}, for which variant {variant} has no value;"
                         f" known are {', '.join('{' + name + '}' for name in known)}; a brace of the program's own is"
                         " written {{ or }}")  # fmt: skip
