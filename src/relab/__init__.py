"""relab: a laboratory bench for reinforcement learning.

import relab
runs = relab.load("runs/")
relab.examine(runs)
runs.curves("eval/return_det").plot()
relab.compare(runs, by="algo.lr")
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # `python -m relab.cli` puts the working folder first: a typing.py there would be imported in the next line
    sys.path.append(sys.path.pop(0))

import importlib
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "examine", "load"]
_API = "relab.api"  # imported when first used: `relab --help` must not wait for numpy


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(_API), name)
    raise AttributeError(f"module 'relab' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "importlib", "sys", "_API"})
