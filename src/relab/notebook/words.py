"""How is it said in English, how in Chinese? Sentences with placeholders: a file a language, the same keys in each."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from relab.config import layers
from relab.config.base import require

FOLDER = Path(__file__).parent / "lang"
LANGUAGES = ("en", "zh")


class Words:
    """The sentences of one language: say("family.new", family=..., why=...)."""

    def __init__(self, code: str, sentences: dict[str, str]):
        self.code, self.sentences = code, sentences

    def say(self, key: str, /, **values: Any) -> str:
        """A sentence with its placeholders filled; what is filled in is never read as a sentence itself."""
        return self.sentences[key].format(**values)

    def list(self, items: list[str]) -> str:
        return self.sentences["list"].join(items)


@functools.lru_cache(maxsize=len(LANGUAGES))
def words(code: str) -> Words:
    require(code in LANGUAGES, f"`--lang` must be one of {', '.join(LANGUAGES)}, but got {code!r}")
    texts = layers.flatten(layers.parse_yaml((FOLDER / f"{code}.yaml").read_text(encoding="utf-8")))
    return Words(code, {key: str(text) for key, text in texts.items()})
