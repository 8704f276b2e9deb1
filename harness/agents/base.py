"""What every agent is: one verb, `think`, that yields what happens and ends in Finished or Failed."""

from __future__ import annotations

import os

from harness.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from harness.usage import Usage
else:
    Protocol = object


def installed(program: str) -> bool:
    """Whether a program can be started: a path, or a name on the PATH. (`shutil` costs 5 ms to import.)"""
    folders = [""] if "/" in program else os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = [os.path.join(folder, program) for folder in folders]
    return any(os.path.isfile(path) and os.access(path, os.X_OK) for path in paths)


class Settings(Record):
    """What an agent is made from: its table in config.toml, and for whom it thinks. `attempt` is 1-based."""

    project: str
    config_path: str
    role: str
    feature: str
    attempt: int
    table: dict[str, Any]


class Desk(Record):
    """Where an agent works: directory, the prompt as a file, time left in seconds, environment, writable folders,
    and lock descriptors that its guardian must hold."""

    directory: str
    prompt_path: str
    seconds: float
    environment: Mapping[str, str]
    writable: list[str]
    keep: list[int]


class Event(Record):
    """Something happened: `said` (a message of the agent), `did` (an action, in a few words), `output` (of a program
    it ran, or its stderr), `usage` (what this answer used so far, as the JSON of a Usage), or `tick` (nothing new; a chance
    to draw)."""

    kind: str
    text: str = ""


class Finished(Record):
    """The agent ended by itself. `reply` is its last message, `usage` what its vendor counted (None: unknown)."""

    reply: str
    usage: Usage | None = None


class Failed(Record):
    """The agent did not end well: `outcome` is one of runs.OUTCOMES, `reason` one sentence. `until`: when its vendor lets
    somebody in again, in unix seconds; 0 where it does not say."""

    outcome: str
    reason: str
    usage: Usage | None = None
    until: int = 0


class Agent(Protocol):
    """Who thinks."""

    def think(self, prompt: str, desk: Desk) -> Iterator[Event | Finished | Failed]:
        """Work on the prompt at the desk; the last item is Finished or Failed. Closing the iterator ends everything."""
