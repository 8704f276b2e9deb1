"""Teammate: answers in a thread of a team, which then takes the files that it changed."""

from harness.run import leave, main

if __name__ == "__main__":
    raise SystemExit(leave(main("teammate", lambda run: None)))
