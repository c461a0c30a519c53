"""What is wrong with an engine? Not installed, does not answer, or refuses: told in one line, before anything runs."""

from __future__ import annotations

from relab.base.errors import UserError


class EngineError(UserError):
    """An engine that is not installed, does not answer, or refuses."""

    exit_code = 2
