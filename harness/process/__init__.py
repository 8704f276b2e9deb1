"""Runs a child process so that none of its descendants survives, however the run ends."""
