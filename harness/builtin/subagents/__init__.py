"""Subagents at work: each task has a record of its own, goes on whether anybody waits or not, and ends with who started it."""
