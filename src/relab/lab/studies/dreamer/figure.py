"""How do our runs look beside the research log's? Returns over multiples of the updates that it took to solve CartPole.

    python -m relab.lab.studies.dreamer.figure docs/images/dreamer.png studies/dreamer/seeds/s*

draws the runs that `relab study dreamer` left in its folder. The log's numbers are facts of its tables (length of
evaluated episodes, one run each), typed off; nothing of it was run again for the figure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from relab.lab.studies.dreamer.steps import KEPT, SOLVED, of_run
from relab.record import history

LOG = {  # name -> (thousands of updates, episode length)
    "tuned_v2": ([7, 8, 21, 25, 35, 59], [500, 500, 500, 200, 100, 98]),
    "double_lr_detach_test": ([10, 15, 16, 20, 21, 25], [500, 500, 500, 500, 363, 157]),
    "large_model_256": ([9, 14, 17, 21, 23, 28, 30], [500, 500, 209, 129, 421, 486, 453]),
}
MOST = 6.0  # times as many updates: the log's longest run went on to 8.4


def main(target: Path, folders: list[Path]) -> None:
    figure_of([of_run(history.load(folder)) for folder in folders]).savefig(target, dpi=120)


def figure_of(runs: list[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    ours, theirs = figure.subplots(1, 2, sharey=True)
    for run in runs:
        if run["solved_at_update"]:
            times = [x / run["solved_at_update"] for x in run["updates"]]
            ours.plot(times, run["returns"], linewidth=1, label=f"seed {run['seed']}")
    for name, (thousands, lengths) in LOG.items():
        theirs.plot([x / thousands[0] for x in thousands], lengths, marker="o", markersize=3, linewidth=1, label=name)
    ours.set_title("relab: mean of 20 first episodes, deterministic")
    theirs.set_title("the original log: its tables, one run each")
    ours.set_ylabel("return = length of an episode")
    for axes in (ours, theirs):
        dress(axes)
    return figure


def dress(axes: Any) -> None:
    for level, style in ((SOLVED, "--"), (KEPT, ":")):
        axes.axhline(level, color="grey", linewidth=0.8, linestyle=style)
    axes.set(xlim=(0, MOST), ylim=(0, 520), xlabel="updates / updates until it was solved")
    axes.legend(loc="lower right", fontsize=8)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]])
