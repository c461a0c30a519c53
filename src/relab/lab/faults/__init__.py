"""Planted faults: what is wrong on purpose, so that one can measure whether the examiner finds it (docs/faults.md)."""
