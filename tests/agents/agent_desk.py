"""A desk in a throw-away folder, and an agent's run at it, for the tests of agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harness.agents import Agent, Desk, Settings
from harness.agents.base import Event, Failed, Finished
from harness.record import Record


class Heard(Record):
    """All that an agent did: the texts of its events by kind, in order, and how it ended."""

    said: list[str]
    did: list[str]
    output: str
    usages: list[str] = []
    end: Finished | Failed

    @property
    def reply(self) -> str:
        """What it replied; it has to have finished."""
        assert isinstance(self.end, Finished), self.end
        return self.end.reply

    @property
    def failure(self) -> tuple[str, str]:
        """(outcome, reason); it has to have failed."""
        assert isinstance(self.end, Failed), self.end
        return self.end.outcome, self.end.reason


def settings(project: Path, role: str = "worker", feature: str = "F-001", attempt: int = 1, **table: Any) -> Settings:
    """For whom an agent thinks; the rest is its table in config.toml."""
    path = ".harness/config.toml"
    return Settings(
        project=str(project), config_path=path, role=role, feature=feature, attempt=attempt, table=dict(table)
    )


def desk(folder: Path, prompt: str = "", seconds: float = 20.0, **environment: str) -> Desk:
    """A desk in `folder`; the prompt lies beside it."""
    path = folder.parent / "prompt.md"
    path.write_text(prompt, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment}
    return Desk(
        directory=str(folder), prompt_path=str(path), seconds=seconds, environment=env, writable=[str(folder)], keep=[]
    )


def listen(agent: Agent, at: Desk, prompt: str = "") -> Heard:
    """Let the agent think to its end, which must be the last thing that comes, and the only one of its kind."""
    found = list(agent.think(prompt, at))
    *events, end = found
    assert isinstance(end, Finished | Failed)
    texts: dict[str, list[str]] = {"said": [], "did": [], "output": [], "tick": [], "raw": [], "usage": []}
    for event in events:
        assert isinstance(event, Event)
        texts[event.kind].append(event.text)
    output = "".join(texts["output"])
    return Heard(said=texts["said"], did=texts["did"], output=output, usages=texts["usage"], end=end)


def project(folder: Path) -> Path:
    """A project's folder, its name with a space in it."""
    made = folder / "my project"
    made.mkdir()
    return made
