"""What does a log not say of the environment it names? Facts of common environments from the table of levels."""

from __future__ import annotations

from relab.record import levels
from relab.record.history import History


def add_facts(history: History) -> History:
    """Fill meta.spec from what is known of the environment; what the log says itself stays."""
    spec = history.meta.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    facts = levels.facts(str(spec.get("env"))) if history.source != "relab" else {}
    if facts:
        said = {key: value for key, value in spec.items() if value is not None}
        history.meta["spec"] = facts | said | {"facts": "relab's table of levels"}
    return history
