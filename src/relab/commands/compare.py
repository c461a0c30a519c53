"""relab compare: which config is better, and can one tell yet?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from relab.commands.hinting import Hinting
from relab.commands.options import AsJson, RunsFolder
from relab.commands.parsing import parse
from relab.commands.progress import Progress
from relab.config.base import ConfigError, require
from relab.record import names

if TYPE_CHECKING:
    from relab.comparison.build import Result
    from relab.runs.together import Together

EXAMPLES = """
  relab compare runs/                              every config against the best, seeds as dots
  relab compare runs/ --by lr --smallest-effect 10
  relab compare runs/ --declare "wide>shipped"     said beforehand: tested, corrected by Holm
  relab compare experiments/clip                   an experiment's own question
  relab compare logs_sb3/ logs_cleanrl/ runs/      any formats in one call; --why tells what may be compared
  relab compare runs/ --at first_step_reaching --level 475
  relab compare runs/ --axis sim_steps             at equal cost: all steps of the simulator, re-rollouts too
  relab compare runs/ --markdown                   or --latex: the table for the paper
  relab compare runs/ --figure pdf                 the pictures for the paper
  relab report runs/                               the same as a page, with curves and findings
"""
USUAL = ("runs",)  # where runs are looked for if no path is named


@dataclass(frozen=True)
class Compare:
    """Which config is better, and can one tell yet? Runs grouped by config, one number a run, intervals.

    What was not declared is exploratory, and every command calls it so; under five seeds nothing gets a verdict.
    """

    paths: tyro.conf.Positional[tuple[str, ...]] = USUAL
    """runs or folders of runs, of any format"""
    by: str | None = None
    """config key whose values are compared, whatever else differs; or path, name (without its seed), settings"""
    metric: str | None = None
    """what is compared; default: evaluated return, else the return in training"""
    at: Literal["final", "mean_last_m", "first_step_reaching", "success_rate"] | None = None
    """how a run becomes one number; default: final, of training curves the mean of the last tenth"""
    level: float | None = None
    """level of first_step_reaching, and of the line on steps to a level"""
    last: int | None = None
    """m of mean_last_m"""
    axis: str | None = None
    """sim_steps (re-rollouts and evaluations too), env_steps, agent_steps, updates ...; default: the runs' own"""
    smallest_effect: float = 0.0
    """smallest difference that matters, in the metric's unit"""
    direction: Literal["higher", "lower"] | None = None
    """which is better; default: by the metric"""
    declare: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """'A>B': a comparison decided on before the runs, A said to be better; may be given several times"""
    reference: str | None = None
    """variant that the others are held against; default: the best that has five seeds, else the best"""
    leading: bool = False
    """what moved before the return fell, in runs that lost what they had learned"""
    per: str | None = None
    """kind of event (stage, gate ...) for a table of its parts"""
    why: bool = False
    """which facts the runs share, which differ, which are unknown"""
    latex: bool = False
    """print the table as LaTeX (booktabs)"""
    markdown: bool = False
    """print the table as Markdown"""
    figure: Literal["pdf", "svg", "png"] | None = None
    """write intervals, performance profile and probability of improvement as figures for a paper"""
    out: Path = Path()
    """folder of the figures; default: the current one"""
    json: AsJson = False
    verbose: Annotated[bool, tyro.conf.arg(aliases=["-v"])] = False
    """all variants, comparisons, areas, peaks and notes"""
    runs: RunsFolder = Path("runs")
    known: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    args = parse(Compare, "compare", words, EXAMPLES)
    require(0 <= args.smallest_effect < math.inf, f"--smallest-effect must be a finite number of at least 0, but is"
                                                  f" {args.smallest_effect}")  # fmt: skip
    require(args.latex + args.markdown + args.json <= 1, "give one of --latex, --markdown and --json")
    check_usual(args.paths)
    paths = [names.place(word, args.runs) for word in args.paths]
    if args.known.show_mapping:
        print("\n".join(args.known.shown(path) for path in paths))
        return 0
    print(output(args, paths), end="")
    return 0


def check_usual(paths: Sequence[str]) -> None:
    """Without a path, and without runs in the usual place, there is nothing that could be compared."""
    usual = Path(USUAL[0])
    if tuple(paths) == USUAL and not (usual.is_dir() and any(usual.iterdir())):
        state = "is empty" if usual.is_dir() else "does not exist"
        raise ConfigError(f"`relab compare` needs runs of two configs or more, but no path is named and the folder"
                            f" {usual} {state}; e.g. relab compare logs/a logs/b")  # fmt: skip


def output(args: Compare, paths: Sequence[Path]) -> str:
    from relab.comparison import render, tables

    comparison = result(args, paths)
    if args.figure:
        print(render.text(comparison, args.verbose))  # first: it stands also where there is nothing to draw
        return figures(args, comparison)
    if args.json:
        from relab.base.jsonl import encode

        return encode(tables.data(comparison)).decode()
    if args.why:
        return render.why(comparison) + "\n"
    if args.latex or args.markdown:
        return tables.latex(comparison) if args.latex else tables.markdown(comparison)
    return render.text(comparison, args.verbose) + "\n"


def figures(args: Compare, comparison: Result) -> str:
    """Write them, and say where they are."""
    from relab.report import comparison_page, paper

    drawn = comparison_page.figures(comparison)
    require(bool(drawn), "there is nothing to draw: no two configs that may be compared")
    assert args.figure is not None
    return "".join(f"  {path}\n" for path in paper.save(drawn, args.out, "compare", args.figure))


def result(args: Compare, paths: Sequence[Path]) -> Result:
    from relab.comparison.build import compare
    from relab.comparison.declared import below
    from relab.comparison.task import Options

    loaded = load(paths, args.known)
    options = Options(args.by, args.metric, args.at, args.level, args.last, args.smallest_effect, args.direction,
                      args.declare, args.leading, args.per, args.reference, args.axis)  # fmt: skip
    comparison = compare(loaded.runs, options, below(paths, loaded.runs), loaded.origins)
    comparison.unread = loaded.gone
    return comparison


def load(paths: Sequence[Path], known: Hinting) -> Together:
    """All runs below all paths, read with what the user knows besides, while a line says how far it is."""
    from relab.runs import together

    with Progress("reading run") as tell:
        read = together.below(paths, lambda path: known.load(path, tell, whole=False))
    known.check_mapping([run.history for run in read.runs])
    return read
