"""What does a command say with --dry-run? What it would do and write, in one form; then it ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relab.base.places import printable

NOTHING = "nothing was run or written"


def say(would: Sequence[str], as_json: bool = False) -> int:
    """`would` are sentences without a subject, such as "film the worst episode into media/worst.mp4"."""
    if as_json:
        from relab.base.jsonl import encode

        print(encode({"dry_run": True, "would": list(would)}).decode(), end="")
        return 0
    print("\n".join(printable(f"would {line}") for line in would))
    print(NOTHING)
    return 0


def checkpoint_of(folder: Path, name: str) -> str:
    """`checkpoint best of brave-otter (step 4,096)`; what is not there is an error, as without --dry-run."""
    from relab.train import checkpoint

    step = checkpoint.step_of(checkpoint.locate(folder / "checkpoints", name).name)
    return f"checkpoint {name} of {folder.name} (step {step:,})"
