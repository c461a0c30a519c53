"""What did the episodes of an iteration earn? The return/* and env/* metrics, for any algorithm."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from relab.record.spec import Channel, Spec
from relab.train.contract import Counts
from relab.train.envs.base import Episodes

CUT = ("time_limit", "truncated")  # ends by time: the limit's, and what a Gymnasium environment cuts by itself
LAST = 100  # episodes behind return/mean_100


def recent_returns() -> deque[float]:
    return deque(maxlen=LAST)


def channel_value(channel: Channel, values: np.ndarray) -> float | None:
    """An iteration's number of a channel; None for a quantile of nothing."""
    if channel.quantile is None:
        return float(values.mean())
    above = values[values > 0]
    return float(np.quantile(above, channel.quantile)) if len(above) else None


def episode_metrics(ended: Sequence[Episodes], spec: Spec, counts: Counts, recent: deque[float]) -> dict[str, float]:
    """Of the episodes of one iteration, which are counted and join the recent ones; empty where none ended."""
    if not ended:
        return {}
    ret, length = (np.concatenate([getattr(e, k) for e in ended]) for k in ("ret", "length"))
    counts.episodes += len(ret)
    recent.extend(ret.tolist())
    metrics = {"return/mean": ret.mean(), "return/min": ret.min(), "return/max": ret.max(),
             "return/length": length.mean(), "return/std": ret.std(), "return/mean_100": np.mean(recent),
             "return/episodes": len(ret)}  # fmt: skip
    cuts = [code for code, name in enumerate(spec.ends) if name in CUT]
    metrics["return/timeout"] = np.isin(np.concatenate([e.end for e in ended]), cuts).mean()
    if ended[0].success is not None:
        metrics["return/success"] = np.concatenate([e.success for e in ended if e.success is not None]).mean()
    info = np.concatenate([e.info for e in ended], axis=1)
    metrics |= {
        f"env/{ch.metric}": x for k, ch in enumerate(spec.channels) if (x := channel_value(ch, info[k])) is not None
    }
    return {name: float(x) for name, x in metrics.items()}
