"""What should be run next? Findings and answers -> one proposal, or why there is none: propose() in propose.py."""

from relab.advise.propose import propose

__all__ = ["propose"]
