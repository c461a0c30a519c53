"""What has no fixed shape? An object of a JSON or YAML file, the settings of any program, the state of an algorithm.

All else that goes from one part of relab to another is a class with named fields.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]  # one object of a file, or one row of a log, as it was read or will be written
Settings = dict[str, Any]  # a config's keys, dotted or nested, and their values
Tree = dict[str, Any]  # a state, nested: arrays and plain values under the names that a checkpoint keeps them by
