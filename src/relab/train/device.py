"""Which device does a run compute on? All that depends on cpu, cuda or mps is asked here."""

from __future__ import annotations

from relab.config.base import require


def check(device: str) -> None:
    """Is the device there? Asked before a run folder is made."""
    import torch

    kind, _, number = device.partition(":")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    require(there[kind], f"`device={device}` must be usable by torch, but {kind} is not available here; try cpu")
    count = torch.cuda.device_count() if number else 0
    require(not number or int(number) < count, f"`device={device}` must be one of this machine's {count}"
            f" (cuda:0 to cuda:{count - 1})")  # fmt: skip


def check_ranks(device: str, ranks: int) -> None:
    """Several ranks on `cuda` have a GPU each."""
    if device != "cuda" or ranks == 1:
        return
    import torch

    count = torch.cuda.device_count()
    require(ranks <= count, f"`ranks={ranks}` on device=cuda needs as many GPUs, but there are {count}; name one"
            " (device=cuda:0) to share it, or use fewer ranks")  # fmt: skip


def of_rank(device: str, rank: int) -> str:
    """`cuda` is a GPU of its own for each rank; a device that is named is shared.

    >>> of_rank("cuda", 1), of_rank("cuda:0", 1), of_rank("cpu", 1)
    ('cuda:1', 'cuda:0', 'cpu')
    """
    return f"cuda:{rank}" if device == "cuda" else device


def is_cpu(device: str) -> bool:
    """Whether relab's own kernels can compute there; elsewhere torch does."""
    return device == "cpu"


def memory_mb(device: str) -> dict[str, float]:
    """Memory that torch holds on a GPU, as a row of metrics; nothing for runs without one."""
    if not device.startswith("cuda"):
        return {}
    import torch

    return {"time/gpu_mb": torch.cuda.max_memory_allocated() / 2**20}
