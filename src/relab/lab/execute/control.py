"""How is an entry of a queue cancelled, paused, resumed, tried again or forgotten, while workers go on?

What waits is moved at once. What runs belongs to its worker, which is asked; where that worker is dead, its process is
ended here, by its id.
"""

from __future__ import annotations

from collections.abc import Sequence

from relab.base import processes
from relab.config.base import require
from relab.lab.execute.queue import ASKS, Item, Queue
from relab.lab.execute.worker import Worker


def cancel(queue: Queue, word: str) -> tuple[Item, str]:
    """(the entry, its new state, or that its worker was asked)"""
    return _change(queue, word, "cancel", ("waiting", "paused", "running"))


def pause(queue: Queue, word: str) -> tuple[Item, str]:
    return _change(queue, word, "pause", ("waiting", "running"))


def _change(queue: Queue, word: str, what: str, states: Sequence[str]) -> tuple[Item, str]:
    item = queue.find(word, states)
    while item.state != "running":
        if queue.move(item, ASKS[what]) is not None:
            return item, ASKS[what]
        item = queue.find(item.id, states)  # claimed, or moved by somebody else, a moment ago
    queue.ask(item, what)
    if processes.is_alive(item.name.worker) is not False:
        return item, "asked to end; a run writes a checkpoint first"
    for each in processes.orphans():
        if each.job == item.name.attempt:
            processes.end(each)
    Worker(queue).recover(grace_s=0.0)
    return item, queue.find(item.id).state


def resume(queue: Queue, word: str) -> tuple[Item, str]:
    item = queue.find(word, ("paused",))
    moved = queue.move(item, "waiting")
    require(moved is not None, f"{item.id[:8]} was moved by somebody else; look again")
    return item, "waiting"


def retry(queue: Queue, word: str) -> tuple[Item, str]:
    """Another try of what failed or was cancelled, behind those of its priority that came before it."""
    item = queue.find(word, ("failed", "cancelled"))
    queue.answered(item.id)
    moved = queue.again(item)
    require(moved is not None, f"{item.id[:8]} was moved by somebody else; look again")
    return item, "waiting"


def clear(queue: Queue, states: Sequence[str]) -> list[Item]:
    """Forget what has ended, with its log; runs that it made stay."""
    items = list(queue.items(states))
    for item in items:
        queue.forget(item)
    return items
