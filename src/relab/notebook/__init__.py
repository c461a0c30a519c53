"""A log in which people and relab write side by side: entry.py (what an entry says), fence.py (where it stands)."""
