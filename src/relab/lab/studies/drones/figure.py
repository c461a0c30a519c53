"""How did the swarms learn? Every evaluation of every seed, over steps.

    python -m relab.lab.studies.drones.figure docs/images/drones_curves.png studies/drones

draws what `relab study drones` left in its folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from relab.base.jsonl import decode

PANELS = {  # course -> (numbers drawn, what they are, the bar)
    "hover_race": ("performance", "performance, mean of hover and race", 0.90),
    "hover_race_long": ("performance", "performance, mean of hover and race", 0.90),
    "pick_place": ("score", "score of an episode", 535.0),
    "pick_place_long": ("score", "score of an episode", 535.0),
}


def main(target: Path, root: Path) -> None:
    figure_of({name: decode((root / f"{name}.json").read_bytes())["found"]["runs"] for name in PANELS
               if (root / f"{name}.json").is_file()}).savefig(target, dpi=120)  # fmt: skip


def figure_of(courses: dict[str, list[dict[str, Any]]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(courses), 3.6), layout="constrained")
    axes = figure.subplots(1, len(courses), squeeze=False)[0]
    for panel, (name, runs) in zip(axes, courses.items()):
        key, label, bar = PANELS[name]
        for run in runs:
            steps = [step / 1e6 for step in run["curve"]["steps"]]
            panel.plot(steps, run["curve"][key], linewidth=1, label=f"seed {run['seed']}")
        panel.axhline(bar, color="grey", linewidth=0.8, linestyle="--")
        panel.set(xlabel="million agent-steps", ylabel=label, title=name.replace("_", " "))
        panel.legend(loc="lower right", fontsize=8)
    return figure


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
