"""Runs of any tool as histories: one file per format, found by find.py; the contract is in source.py."""
