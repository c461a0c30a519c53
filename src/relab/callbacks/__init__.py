"""How does training elsewhere keep a record, and how is its user warned while it trains?

    model.learn(100_000, callback=SB3Callback("runs/mine"))         Stable-Baselines3
    writer = watch(writer, "runs/mine", args, algo="ppo")           CleanRL: what the writer gets, relab gets
    with Watch("runs/mine", {"lr": 3e-4}) as log: log.log(step, **numbers)

All three write a run folder (docs/record.md) and ask relab's rules about it every `every` steps. What they find is told
once, on stderr, and stands in events.jsonl. Looking waits where it would take more than SHARE of the training's time.
Whatever goes wrong here once training has begun (a full disk, a fault of relab) is told, and training goes on; only
what a user's own `tell` raises ends it.
Programs that have a copy of logger.py and no relab use its sb3_callback: a plainer record, and no warnings.
"""

from __future__ import annotations

from typing import Any

from relab.callbacks.watching import Watch, warning
from relab.callbacks.writer import Watched, watch

__all__ = ["SB3Callback", "Watch", "Watched", "warning", "watch"]


def __getattr__(name: str) -> Any:
    """SB3Callback is made when it is first asked for: nobody else waits for torch."""
    if name == "SB3Callback":
        from relab.callbacks.sb3 import sb3_callback

        return sb3_callback()
    raise AttributeError(f"module 'relab.callbacks' has no attribute {name!r}; it has SB3Callback, Watch and watch")
