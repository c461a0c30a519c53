"""Measurements, each run as `python -m benchmarks.NAME`; results are committed in benchmarks/results."""
