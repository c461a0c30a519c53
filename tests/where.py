"""Where do tests find what does not lie beside them?"""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FIXTURES = TESTS / "formats" / "read" / "fixtures"  # logs of other tools
HISTORIES = TESTS / "health" / "histories"  # relab's own runs, sick and healthy
