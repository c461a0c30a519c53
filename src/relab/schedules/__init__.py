"""When does a run move on? Gates, stages, queues and alerts as plain data, with lint() for bars that cannot work."""

from relab.schedules.alert import Alert
from relab.schedules.command import parse_command
from relab.schedules.gate import Condition, Decision, Gate, GateState, decide, parse_condition, replay
from relab.schedules.lint import Lint, lint
from relab.schedules.schedule import Claim, Schedule, from_mapping
from relab.schedules.stage import Plan, Stage, parse_curriculum, parse_queue

__all__ = [
    "Alert",
    "Claim",
    "Condition",
    "Decision",
    "Gate",
    "GateState",
    "Lint",
    "Plan",
    "Schedule",
    "Stage",
    "decide",
    "from_mapping",
    "lint",
    "parse_command",
    "parse_condition",
    "parse_curriculum",
    "parse_queue",
    "replay",
]
