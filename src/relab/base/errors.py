"""What can a user mend? Errors of these types are told in one line; any other is a fault of the code (faults.py)."""

from __future__ import annotations


class UserError(Exception):
    """What its reader can mend: the message states the condition, the values found and what to do."""

    exit_code = 2  # what was named cannot be read; 64 where the words themselves cannot be used


class NotFoundError(UserError, LookupError):
    """What somebody named is not there, or means more than one thing."""
