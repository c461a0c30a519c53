"""relab: a laboratory bench for reinforcement learning.

import relab
runs = relab.load("runs/")
relab.examine(runs)
runs.curves("eval/return_det").plot()
relab.compare(runs, by="algo.lr")
"""

import sys

if any(word == "relab" or word.startswith("relab.") for word in sys.orig_argv[1:3]) and "-m" in sys.orig_argv[1:2]:
    # `python -m relab.cli` puts the working folder first: a typing.py there would be imported in the next line
    sys.path[:] = [*sys.path[1:], sys.path[0]] if not sys.flags.safe_path else sys.path

import importlib
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "examine", "load"]
_API = "relab.api"  # imported when first used: `relab --help` must not wait for numpy


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(_API), name)
    raise AttributeError(f"module 'relab' has no attribute {name!r}; it has {', '.join(__all__)}")
