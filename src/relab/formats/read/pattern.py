"""Which runs belong together, by their names? A pattern such as ppo_{lr}_s{seed} takes a name apart.

{seed} is the seed, {_} anything that does not matter, every other {field} a setting. What is left after the seed and
{_} are taken out names the group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from relab.config.base import ConfigError, require
from relab.formats.read import cleanrl
from relab.record.history import History
from relab.record.state import NAMED

PART = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Pattern:
    """A pattern over run names; it must fit whole parts of the path that a name is."""

    text: str
    regex: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Errors say what a pattern needs."""
        require(text.count("{seed}") == 1, f"a group's pattern needs one {{seed}}, as in 'name_s{{seed}}',"
                f" but is {text!r}")  # fmt: skip
        literal, *rest = PART.split(text)
        whole, fields = re.escape(literal), set[str]()
        for field, after in zip(rest[::2], rest[1::2], strict=True):
            whole += _group(field, fields, text) + re.escape(after)
        if "{" in PART.sub("", text) or "}" in PART.sub("", text):
            raise ConfigError(f"a bracket of the pattern {text!r} is not closed; fields are written {{so}}")
        return cls(text, re.compile(rf"(?:^|(?<=/)){whole}(?=$|/)"))

    def fits(self, name: str) -> bool:
        return self.regex.search(name) is not None

    def apply(self, history: History, name: str) -> bool:
        """Seed, settings and group of a run whose name fits; others stay as they are."""
        match = self.regex.search(name)
        if match is None:
            return False
        fields = {key: cleanrl.typed(value) for key, value in match.groupdict().items() if not key.startswith("_")}
        seed = int(match["seed"])
        foreign = history.config.get("foreign")
        settings = dict(foreign) if isinstance(foreign, dict) else {}
        settings |= {key: value for key, value in fields.items() if key != "seed"}
        history.config = {**history.config, "seed": seed, **({"foreign": settings} if settings else {})}
        history.meta |= {"seed": seed, "config_hash": NAMED + rest_of(name, match)}
        return True


def _group(field: str, fields: set[str], text: str) -> str:
    if field == "_":
        fields.add(f"_{len(fields)}")
        return f"(?P<_{len(fields)}>[^/]*?)"
    good = field.isidentifier() and field.isascii() and not field.startswith("_") and field not in fields
    require(good, f"fields of {text!r} must be different plain words, or {{_}} for what does not matter,"
            f" but there is {{{field}}}")  # fmt: skip
    fields.add(field)
    return r"(?P<seed>[0-9]{1,18})" if field == "seed" else rf"(?P<{field}>[^/]+?)"


def rest_of(name: str, match: re.Match[str]) -> str:
    """The name with a mark instead of the seed and of what does not matter."""
    spans = [(match.span(key), key) for key in match.groupdict() if key == "seed" or key.startswith("_")]
    for (begin, end), key in sorted(spans, reverse=True):
        name = name[:begin] + ("{seed}" if key == "seed" else "{_}") + name[end:]
    return name
