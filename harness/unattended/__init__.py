"""Scheduled starts of a mission by the machine: schedules, one bounded log of the results, and a readiness check."""
