"""Scheduled starts of a mission by cron: its lines in the crontab, and one bounded log of the results."""
