"""relab completion: a script that lets the shell complete commands, options, settings and words.

The script holds all words itself, so that a tab starts no Python. It is written from the same classes and registry that
the commands read; write it anew after an update.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tyro

from relab.commands.parsing import options_of, parse

EXAMPLES = """
  relab completion bash > ~/.local/share/bash-completion/completions/relab
  relab completion zsh >> ~/.zshrc
  relab completion fish > ~/.config/fish/completions/relab.fish
"""


@dataclass(frozen=True)
class Completion:
    """Print the script that completes relab's commands, options and settings in a shell."""

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]]
    """bash, zsh or fish"""


def main(words: Sequence[str]) -> int:
    args = parse(Completion, "completion", words, EXAMPLES)
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](), end="")
    return 0


# ---- Words


def options() -> dict[str, list[str]]:
    """Command -> its options."""
    from relab.commands.table import COMMANDS, function_of
    from relab.config.registry import load

    return {name: options_of(load(function_of(name))) for name in COMMANDS}


def settings() -> list[str]:
    """What `relab train` takes: algorithms, and keys with their sign."""
    from relab.config import registry
    from relab.config.run import Eval, RunConfig, Save

    sections: list[tuple[str, Any]] = [("", RunConfig), ("eval.", Eval), ("save.", Save)]
    sections += [("", registry.algo_config_class(name)) for name in registry.algo_names()]
    keys = {prefix + item.name for prefix, cls in sections for item in dataclasses.fields(cls)}
    return [*registry.algo_names(), *sorted(f"{key}=" for key in keys - {"name", "algo", "eval", "save"})]


def environments() -> list[str]:
    from relab.config import registry

    return sorted({short for name in registry.env_names() for short in (name, name.rpartition("-v")[0])})


def explained() -> list[str]:
    from relab.health.words import all_words

    return sorted({name for name, _ in all_words() if " " not in name})


# ---- Scripts

BASH = """\
# relab's completion for bash; written by `relab completion bash`
_relab() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "@COMMANDS@ help" -- "$cur")); return
    fi
    if [ "$command" = help ]; then
        COMPREPLY=($(compgen -W "@COMMANDS@" -- "$cur")); return
    fi
    if [[ $cur == -* ]]; then
        case $command in
@OPTIONS@
        esac
        COMPREPLY=($(compgen -W "$words --help" -- "$cur")); return
    fi
    case $command in
        explain) COMPREPLY=($(compgen -W "@EXPLAINED@" -- "$cur")); return ;;
        completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$cur")); return ;;
        train)
            [ "$cur" = "=" ] && { prev="="; cur=; }
            if [ "$prev" = "=" ] && [[ "${COMP_WORDS[*]}" == *env* ]]; then
                COMPREPLY=($(compgen -W "@ENVIRONMENTS@" -- "$cur")); return
            fi
            COMPREPLY=($(compgen -W "@SETTINGS@" -- "$cur"))
            if [ ${#COMPREPLY[@]} -eq 1 ] && [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
            [ ${#COMPREPLY[@]} -gt 0 ] && return ;;
    esac
    COMPREPLY=($(compgen -f -- "$cur"))
}
complete -o filenames -F _relab relab
"""


def bash() -> str:
    cases = "\n".join(f'            {name}) words="{" ".join(each)}" ;;' for name, each in options().items())
    parts = {"COMMANDS": " ".join(options()), "OPTIONS": cases, "EXPLAINED": " ".join(explained()),
             "ENVIRONMENTS": " ".join(environments()), "SETTINGS": " ".join(settings())}  # fmt: skip
    script = BASH
    for mark, text in parts.items():
        script = script.replace(f"@{mark}@", text)
    return script


def zsh() -> str:
    return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash()


def fish() -> str:
    return "\n".join(["# relab's completion for fish; written by `relab completion fish`", *_fish_lines()]) + "\n"


def _fish_lines() -> Iterator[str]:
    from relab.commands.table import COMMANDS

    for name, summary in COMMANDS.items():
        about = summary.replace("'", "\\'")
        yield f"complete -c relab -f -n __fish_use_subcommand -a {name} -d '{about}'"
    for name, each in options().items():
        for option in each:
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            yield f"complete -c relab -n '__fish_seen_subcommand_from {name}' {kind}"
    values = [*settings(), *(f"env={name}" for name in environments())]
    for name, words in (("train", values), ("explain", explained()), ("completion", ["bash", "zsh", "fish"])):
        yield f"complete -c relab -n '__fish_seen_subcommand_from {name}' -a '{' '.join(words)}'"
