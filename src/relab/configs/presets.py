"""Which settings does relab ship for an algorithm on an environment? Above the defaults, below everything else."""

from __future__ import annotations

from typing import Any

# (algorithm, environment with version) -> nested settings, as they would stand in a YAML file.
PRESETS: dict[tuple[str, str], dict[str, Any]] = {
    ("ppo", "cartpole-v1"): {},
    ("ppo", "pendulum-v1"): {},
    ("ppo", "gym:Acrobot-v1"): {},
}
