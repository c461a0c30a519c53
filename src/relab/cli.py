"""Which command was typed? Looks the name up and hands the rest of the line to relab.commands.NAME."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Sequence

from relab.base import terminal
from relab.base.near import hint
from relab.commands.table import COMMANDS, function_of

GROUPS = {
    "Read": ("examine", "compare", "report", "note", "diff", "runs", "explain", "serve"),
    "Run": ("train", "resume", "experiment", "sweep", "next", "loop", "queue"),
    "More": ("convert", "doctor"),
}
REST = (  # told by `relab help --all`
    "study",
    "eval",
    "video",
    "gate",
    "capture",
    "watch",
    "coverage",
    "faults",
    "probe",
    "completion",
    "mcp",
)
EXAMPLES = """\
Examples
  relab examine runs/                            what went wrong, since when; any tool's logs, nothing written there
  relab train ppo env=cartpole seed=0            train; the run folder appears under runs/
  relab train ppo env=gym:Acrobot-v1 lr=1e-3     any Gymnasium id; any config key as key=value
  relab resume brave-otter                       go on after Ctrl-C, kill or power cut
  relab eval brave-otter --checkpoint best       100 fresh episodes, with an interval
"""
USAGE, UNREADABLE, INTERRUPTED = 64, 2, 130  # exit codes
TRAIN = ("torch", "numba", "llvmlite", "gymnasium", "safetensors", "imageio_ffmpeg")  # what the extra `train` brings
EXTRAS = {**dict.fromkeys(TRAIN, "train"), **dict.fromkeys(("mcp", "anyio", "pydantic"), "mcp")}


def main(argv: Sequence[str] | None = None) -> int:
    if argv is None:
        working_folder_last()
        quiet_numbers()
    words = list(sys.argv[1:] if argv is None else argv)
    with terminal.streams(as_json="--json" in words):
        return shown(words)


def shown(words: list[str]) -> int:
    """Run the command and see that what it printed has arrived; a key or a full pipe is no traceback."""
    code = 0
    try:
        code = dispatch(words)
        sys.stdout.flush()
    except terminal.UnreadError:  # `relab ... | head`: nobody reads on, which is no error
        return code
    except terminal.OutputError as error:
        return fail(str(error), UNREADABLE)
    except KeyboardInterrupt as stop:
        return fail(str(stop) or "interrupted", INTERRUPTED)
    return code


def working_folder_last() -> None:
    """A queue.py or random.py in the working folder must not stand in for the standard library's.

    `python -m` and an empty part of PYTHONPATH put the folder in front. At the end it is still searched.
    """
    by_accident = "" in os.environ.get("PYTHONPATH", "-").split(os.pathsep) or __name__ == "__main__"
    try:
        here: tuple[str, ...] = ("", os.getcwd()) if by_accident else ("",)
    except FileNotFoundError:  # the folder was deleted
        here = ("",)
    moved = [path for path in sys.path if path in here]
    sys.path[:] = [path for path in sys.path if path not in here] + moved[:1]


def quiet_numbers() -> None:
    """What numpy thinks of an overflow in a stranger's log is nothing that its reader could act on; `-W` shows it."""
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", category=RuntimeWarning)


def dispatch(words: list[str]) -> int:
    if words[:1] == ["help"] and words[1:2] and words[1] in COMMANDS:  # relab help queue add
        return call(words[1], [*words[2:], "--help"])
    if words[:1] == ["help"] and words[1:2] and not words[1].startswith("-"):
        words = words[1:]  # no command of that name: the nearest is told
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text(every="--all" in words))
        return 0
    if words[0] in ("--version", "-V"):
        from relab import __version__

        print(f"relab {__version__}")
        return 0
    if words[0] not in COMMANDS:
        return fail(
            f"there is no command {words[0]!r}{hint(words[0], COMMANDS, '; the nearest is {!r}')};"
            " `relab --help` lists all",
            USAGE,
        )
    return call(words[0], words[1:])


def call(name: str, words: list[str]) -> int:
    """Run one command. What a user can mend is told in one line, with the exit code that says what kind it is.

    Whatever else is raised is a fault of relab or of a plug-in: a traceback, and whom to send it to.
    """
    from relab.base import blame
    from relab.base.errors import UserError
    from relab.config.registry import UntrustedError, load

    try:
        return load(function_of(name))(words)
    except SystemExit as stop:
        return exit_code(name, stop)
    except UntrustedError as error:
        again = shlex.join(["relab", name, *words, "--trust"])
        return fail(f"{error}; look at it first, then: {again}", error.exit_code)
    except UserError as error:
        return fail(str(error), error.exit_code)
    except terminal.OutputError:
        raise
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            return blame.tell(error)
        return fail(f"`relab {name}` needs {missing}: pip install 'relab[{EXTRAS[missing]}]'", USAGE)
    except (OSError, MemoryError) as error:
        if blame.of_plugin(error):
            return blame.tell(error)
        if isinstance(error, OSError):
            return fail(why(error), UNREADABLE)
        return fail(f"`relab {name}` needs more memory than there is ({error}); make `algo.envs`, `algo.steps`,"
                    " `algo.replay`, `algo.hidden` or the number of episodes smaller", 1)  # fmt: skip
    except Exception as error:
        return blame.tell(error)


def exit_code(name: str, stop: SystemExit) -> int:
    """Of a parser that has said all, or of foreign code (an environment, say) that must not pass for success."""
    from relab.commands.parsing import Answered

    if isinstance(stop, Answered):
        return USAGE if stop.code == 2 else int(stop.code or 0)
    return fail(f"`relab {name}` was ended by code that it ran, which raised {stop!r}; let it raise an error", 1)


def why(error: OSError) -> str:
    """What the system refused, in a sentence; of a full disk also what to do."""
    from relab.base.errors import refusal
    from relab.base.jsonl import DiskFullError, disk_error

    if isinstance(error, DiskFullError):
        return str(error)
    return str(disk_error(error, error.filename or "a file") or refusal(error))


def fail(text: str, code: int) -> int:
    aside = text.replace("\n", "\n  ")  # a name in it may hold a line break, and must not pass for a line of relab's
    print(f"relab: {aside}", file=sys.stderr)
    return code


def help_text(every: bool = False) -> str:
    lines = [
        "relab: a laboratory bench for reinforcement learning",
        "",
        "relab COMMAND --help shows a command's options with examples.",
        "",
    ]
    for group, names in (GROUPS | ({"Also": REST} if every else {})).items():
        lines += [f"{group if i == 0 else '':5}{name:11}{COMMANDS[name]}" for i, name in enumerate(names)]
    rest = [] if every else [f"     (relab help --all: {', '.join(REST)})"]
    return "\n".join([*lines, *rest, "", EXAMPLES.rstrip()])


if __name__ == "__main__":
    sys.exit(main())
