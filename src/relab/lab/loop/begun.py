"""Which runs has the loop begun itself? What lies in the place of any other was put there, and does not count.

loops/NAME/begun.json    their names, sealed with the loop's key; written before a run starts
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from relab.base.enclosed import listed, own
from relab.base.jsonl import encode, read_json, write_atomic
from relab.lab.loop.keys import Key
from relab.lab.loop.seal import ForgedError, genuine, sealed

FILE = "begun.json"


def write(folder: Path, key: Key, names: Iterable[str]) -> None:
    write_atomic(own(folder, FILE), encode(sealed({"schema": 1, "runs": sorted(names)}, key), indent=True))


def read(folder: Path, key: Key) -> set[str]:
    body = read_json(folder, FILE) if own(folder, FILE).is_file() else {}
    if not genuine(body, key):
        fault = "was not written by it" if body else "is gone"
        raise ForgedError(
            f"{folder / FILE} must name the runs that this loop has begun, but {fault}: put it back from a backup, or"
            " look through the runs and call the loop with --accept, which takes all of them as they stand"
        )
    return set(body["runs"])


def vouch(folder: Path, key: Key) -> None:
    """Take all runs that there are as begun: somebody has looked through them."""
    write(folder, key, {path.name for path in listed(folder, "runs")})


def places(name: str) -> tuple[str, ...]:
    """What lies beside a run's own folder and says what became of it."""
    return (f"state/{name}.json", f"state/{name}.code", f"stopped/{name}.json", f"hidden/{name}.json")


def there(folder: Path, name: str) -> bool:
    return any(own(folder, each).exists() for each in (f"runs/{name}", *places(name)[:2]))
