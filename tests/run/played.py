"""A mission played to its end without run.sh: the same decisions and runs, each in a fork, at a quarter of the price."""

from __future__ import annotations

import os

from tests.missions import House
from tests.planned import due

MOST_RUNS = 20


def to_done(house: House) -> str:
    """Play the mission until it is DONE; returns what a person would read."""
    line, said = to_its_end(house)
    assert line == "DONE", said
    return said


def to_its_end(house: House) -> tuple[str, str]:
    """Start what is due until no run is, as run.sh does; returns the last decision, and what a person would read."""
    begun = house.harness("init", "--quietly")
    assert begun.code == 0, begun
    said = begun.out + begun.err
    for _ in range(MOST_RUNS):
        line = due(house)
        if not line.startswith("NEXT "):
            return line, said
        done = house.role(*line.split(" ")[1:], HARNESS_LOOP=str(os.getpid()))
        assert done.code == 0, done
        said += done.out + done.err
    raise AssertionError(f"it does not end:\n{said}")
