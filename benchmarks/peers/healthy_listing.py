"""Which runs were made, and how did they end? The list that healthy_runs.py and fault_runs.py keep; light to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUTCOMES = "outcomes.jsonl"


def outcomes(out: Path) -> list[dict[str, Any]]:
    path = out / OUTCOMES
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
