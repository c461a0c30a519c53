"""Runs of any tool, written as another tool would have written them; none of those tools is needed."""
