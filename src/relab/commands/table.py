"""Which commands are there, what does each do in a few words, and which function is it?"""

from __future__ import annotations

COMMANDS = {
    "train": "one run: train ppo env=cartpole seed=0",
    "resume": "continue an interrupted run under the same name",
    "capture": "run any program and keep its numbers as a run",
    "eval": "judge a checkpoint on fresh episodes",
    "video": "film an episode: the worst, the best, the median",
    "experiment": "A against B over seeds, ends in an answer",
    "sweep": "many configs, seeds inside, cost asked first",
    "loop": "propose, run, judge, keep what is more than luck, again",
    "queue": "waiting and running: add, work, pause, cancel, retry",
    "examine": "what went wrong, since when, with the numbers",
    "compare": "which config is better, and can one tell yet",
    "explain": "any rule, metric, environment, config key",
    "report": "one offline HTML and Markdown page about a run or a folder",
    "convert": "write runs of any tool in another tool's format",
    "note": "write or renew the entry of a run or an experiment in a log",
    "gate": "can a schedule's gates work, what would other bars decide",
    "faults": "plant known faults, count how often the examiner names them",
    "probe": "measure a checkpoint: fixed point, stability, distributions",
    "study": "a studied system: its runs, measured beside known answers",
    "coverage": "how often intervals hold and answers err, by simulation",
    "next": "propose the next run, as a change of settings with its reasons",
    "diff": "config keys that differ between two runs, biggest change first",
    "runs": "list, find, name, tag, archive, delete runs; disk use",
    "serve": "the dashboard: runs, curves, findings, comparisons in a browser",
    "watch": "one run while it trains: rows, evaluations, findings, in the terminal",
    "completion": "a script that completes commands and settings in the shell",
    "mcp": "the same answers for programs: Model Context Protocol",
    "doctor": "check install, cores, threads, GPU, folders, formats and runs here",
}


def function_of(name: str) -> str:
    """Imported when called, so that help is instant and reading never loads torch."""
    return f"relab.commands.{name}:main"
