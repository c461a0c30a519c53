"""relab explain: what a word means, be it a rule, a metric, an environment or a config key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from relab.commands.options import AsJson
from relab.commands.parsing import parse

EXAMPLES = """
  relab explain update-too-large
  relab explain policy/kl
  relab explain policy/kl my-run           # where its KL lies among healthy runs
  relab explain eval/return_det my-run     # first, last, best: no healthy range is known
  relab explain ent_coef
  relab explain CartPole-v1
  relab explain gae
"""


@dataclass(frozen=True)
class Explain:
    """What a word means: a rule, metric, event, axis, environment, algorithm, config key or word of the field."""

    word: tyro.conf.Positional[str]
    """the word"""
    run: tyro.conf.Positional[str | None] = None
    """a run, of any tool, by its path or name: what it has of the metric, and where that lies among healthy runs"""
    json: AsJson = False


def main(words: Sequence[str]) -> int:
    args = parse(Explain, "explain", words, EXAMPLES)
    from relab.health.words import meanings

    texts = meanings(args.word, args.run)
    if args.json:
        from relab.base.jsonl import encode

        row = {"schema": 1, "word": args.word, "run": args.run, "meanings": texts}
        print(encode(row).decode(), end="")
    else:
        print("\n\n".join(texts))
    return 0
