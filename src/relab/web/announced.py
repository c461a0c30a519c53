"""Which findings were announced already? Each once, and again only when it has become worse.

A rule whose case is weak comes and goes while a run trains; a bell that rings each time would soon be switched off.
"""

from __future__ import annotations

from relab.web.cards import RANK


class Announced:
    """The worst severity under which each rule was announced, for each run."""

    def __init__(self) -> None:
        self._rank: dict[tuple[str, str], int] = {}

    def is_news(self, where: str, slug: str, severity: str | None) -> bool:
        """Whether to announce it; from now on it was."""
        rank, key = RANK.get(severity or "info", len(RANK)), (where, slug)
        if rank >= self._rank.get(key, len(RANK) + 1):
            return False
        self._rank[key] = rank
        return True
