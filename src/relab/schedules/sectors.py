"""Which way did the danger head? Eight directions of 45 degrees, each centred on the one it is named after."""

from __future__ import annotations

SECTORS = ("E", "NE", "N", "NW", "W", "SW", "S", "SE")


def sector(heading: float) -> str:
    """The direction that a heading is nearest to: NE is 22.5 to 67.5 degrees, counted from E against the clock.

    >>> [sector(h) for h in (0, 22.4, 22.5, 90, 112.4, 359)]
    ['E', 'E', 'NE', 'N', 'N', 'E']
    """
    return SECTORS[int(((heading + 22.5) % 360) // 45)]
