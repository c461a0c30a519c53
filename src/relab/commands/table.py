"""Which commands are there, what does each do in a few words, and which function is it?"""

from __future__ import annotations

# name -> (summary, module:function); imported when called, so that help is instant and reading never loads torch
COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("one run: train ppo env=cartpole seed=0", "relab.commands.train:main"),
    "resume": ("continue an interrupted run under the same name", "relab.commands.resume:main"),
    "capture": ("run any program and keep its numbers as a run", "relab.commands.capture:main"),
    "eval": ("judge a checkpoint on fresh episodes", "relab.commands.eval:main"),
    "video": ("film an episode: the worst, the best, the median", "relab.commands.video:main"),
    "experiment": ("A against B over seeds, ends in an answer", "relab.commands.experiment:main"),
    "sweep": ("many configs, seeds inside, cost asked first", "relab.commands.sweep:main"),
    "queue": ("waiting and running: add, work, pause, cancel, retry", "relab.commands.queue:main"),
    "examine": ("what went wrong, since when, with the numbers", "relab.commands.examine:main"),
    "compare": ("which config is better, and can one tell yet", "relab.commands.compare:main"),
    "explain": ("any rule, metric, environment, config key", "relab.commands.explain:main"),
    "report": ("one offline HTML and Markdown page about a run or a folder", "relab.commands.report:main"),
    "convert": ("write runs of any tool in another tool's format", "relab.commands.convert:main"),
    "note": ("write or renew the entry of a run or an experiment in a log", "relab.commands.note:main"),
    "gate": ("can a schedule's gates work, what would other bars decide", "relab.commands.gate:main"),
    "faults": ("plant known faults, count how often the examiner names them", "relab.commands.faults:main"),
    "probe": ("measure a checkpoint: fixed point, stability, distributions", "relab.commands.probe:main"),
    "study": ("a studied system: its runs, measured beside known answers", "relab.commands.study:main"),
    "coverage": ("how often intervals hold and answers err, by simulation", "relab.commands.coverage:main"),
    "next": ("propose the next run, as a change of settings with its reasons", "relab.commands.next:main"),
    "diff": ("config keys that differ between two runs, biggest change first", "relab.commands.diff:main"),
    "runs": ("list, find, name, tag, archive, delete runs; disk use", "relab.commands.runs:main"),
    "completion": ("a script that completes commands and settings in the shell", "relab.commands.completion:main"),
    "doctor": ("check install, cores, threads, GPU, folders, formats and runs here", "relab.commands.doctor:main"),
}
