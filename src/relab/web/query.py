"""Which runs does an address ask for, and how are they shown? The words of `relab runs`, in a URL that can be sent.

lr=3e-4 outcome>400 'age<7d'      comparisons, as `relab runs` takes them
tag:baseline state:running        and is:starred, is:archived, finding:entropy-collapse
cartpole brave                    plain words: in the name, environment, algorithm, tags or note
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from relab.config.base import require
from relab.runs.listing import STATES, Filter, ListedRun, Query, parse_filter

VALUES = ("last", "best", "at")
SHOWN, MOST_SHOWN = 100, 5000
LONGEST = 2000  # characters of a filter
SORTS = ("age", "name", "outcome", "steps", "n", "env", "algo", "state")


@dataclass(frozen=True)
class Choice:
    """What an address says."""

    q: str = ""
    sort: str = "age"
    value: str = "last"  # last, best, or at a step
    step: int | None = None
    columns: tuple[str, ...] = ()  # settings; none: those that vary
    top: int = SHOWN
    filters: tuple[Filter, ...] = ()
    words: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    starred: bool = False
    archived: bool = False

    @property
    def query(self) -> Query:
        """As the index is choice; plain words and findings are looked for afterwards."""
        state = self.states[0] if self.states else None
        return Query(None, self.filters, self.tags, state, self.starred, self.archived)

    def holds(self, run: ListedRun) -> bool:
        """Whether a run holds all plain words, letters of either case being the same."""
        text = f"{run.name}\n{run.env}\n{run.algo}\n{' '.join(run.tags)}\n{run.note}".casefold()
        return all(word in text for word in self.words)

    def url(self, path: str = "/runs", **changes: object) -> str:
        """The address of the same with some things changed; what is as usual is left out."""
        fields = {"q": self.q, "sort": self.sort, "value": self.value, "step": self.step,
                  "cols": ",".join(self.columns), "top": self.top} | changes  # fmt: skip
        usual = {"q": "", "sort": "age", "value": "last", "step": None, "cols": "", "top": SHOWN}
        query = urlencode({key: value for key, value in fields.items() if value != usual.get(key)})
        return f"{path}?{query}" if query else path


def parse(params: Mapping[str, str]) -> Choice:
    """ConfigError where the address asks for what there is not."""
    text = params.get("q", "")[:LONGEST]
    value, step = params.get("value", "last"), params.get("step", "")
    require(value in VALUES, f"`value` must be one of {', '.join(VALUES)}, but is {value!r:.40}")
    require(not step or (step.isdecimal() and len(step) < 16), f"`step` must be a whole number, but is {step!r:.40}")
    top = params.get("top", str(SHOWN))
    require(top.isdecimal() and len(top) < 8, f"`top` must be a whole number, but is {top!r:.40}")
    columns = tuple(key for key in params.get("cols", "").split(",") if key)[:30]
    plain = Choice(text, params.get("sort", "age")[:100], value, int(step) if step else None, columns,
                  min(max(int(top), 1), MOST_SHOWN))  # fmt: skip
    return worded(plain, split(text))


def split(text: str) -> list[str]:
    """Words, with quotes around those that hold a blank; a quote that is still open is a letter."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


@dataclass
class _Words:
    filters: list[Filter] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    tag: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    finding: list[str] = field(default_factory=list)
    is_: list[str] = field(default_factory=list)


def worded(choice: Choice, words: Sequence[str]) -> Choice:
    sorted_ = _Words()
    for word in words:
        kind, colon, rest = word.partition(":")
        comparison = parse_filter(word)
        if colon and rest and kind in ("tag", "state", "finding", "is"):
            getattr(sorted_, "is_" if kind == "is" else kind).append(rest)
        elif comparison is not None:
            sorted_.filters.append(comparison)
        else:
            sorted_.words.append(word.casefold())
    wrong = [state for state in sorted_.state if state not in STATES]
    require(not wrong, f"`state:` must be one of {', '.join(STATES)}, but is {wrong[:1]}")
    unknown = [word for word in sorted_.is_ if word not in ("starred", "archived")]
    require(not unknown, f"`is:` must be starred or archived, but is {unknown[:1]}")
    return replace(choice, filters=tuple(sorted_.filters), words=tuple(sorted_.words), tags=tuple(sorted_.tag),
                   states=tuple(sorted_.state), findings=tuple(sorted_.finding), starred="starred" in sorted_.is_,
                   archived="archived" in sorted_.is_)  # fmt: skip
