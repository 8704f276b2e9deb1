"""Subagents at work: each task has its own record, continues whether anybody waits for it or not, and ends with the
conversation that started it."""
