"""Runs a child process so that no descendant of it survives, however the run ends."""
