"""An execution context in a throw-away folder, and an agent's run in it, for the tests of agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess
from harness.agents.registry import Agent, ExecutionContext, Settings, make
from harness.base.record import Record


class Observed(Record):
    """Record of an agent's run: the texts of its events by kind, in order, and its end."""

    said: list[str]
    did: list[str]
    output: str
    usages: list[str] = []
    end: AgentSuccess | AgentFailure

    @property
    def reply(self) -> str:
        """Its reply; it must have finished."""
        assert isinstance(self.end, AgentSuccess), self.end
        return self.end.reply

    @property
    def failure(self) -> tuple[str, str]:
        """(outcome, reason); it must have failed."""
        assert isinstance(self.end, AgentFailure), self.end
        return self.end.outcome, self.end.reason


def settings(project: Path, role: str = "worker", feature: str = "F-001", attempt: int = 1, **table: Any) -> Settings:
    """The settings of an agent; `table` is its table in config.toml."""
    path = ".harness/config.toml"
    return Settings(
        project=str(project), config_path=path, role=role, feature=feature, attempt=attempt, table=dict(table)
    )


def desk(folder: Path, prompt: str = "", seconds: float = 60.0, **environment: str) -> ExecutionContext:
    """An execution context in `folder`, with the prompt next to it."""
    path = folder.parent / "prompt.md"
    path.write_text(prompt, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment}
    return ExecutionContext(directory=str(folder), prompt_path=str(path), seconds=seconds, environment=env, keep=[])


def listen(agent: Agent, at: ExecutionContext, prompt: str = "") -> Observed:
    """Run the agent to its end, which must be the last item and the only one of its kind."""
    found = list(agent.think(prompt, at))
    *events, end = found
    assert isinstance(end, AgentSuccess | AgentFailure)
    texts: dict[str, list[str]] = {
        name: [] for name in ("said", "saying", "did", "result", "output", "tick", "raw", "usage")
    }
    for event in events:
        assert isinstance(event, AgentEvent)
        texts[{"waits": "output", "whole": "said"}.get(event.kind, event.kind)].append(event.text)
    output = "".join(texts["output"])
    return Observed(said=texts["said"], did=texts["did"], output=output, usages=texts["usage"], end=end)


def project(folder: Path) -> Path:
    """A project's folder; its name contains a space."""
    made = folder / "my project"
    made.mkdir()
    return made


TRANSCRIPTS = Path(__file__).resolve().parent / "transcripts"
REPEATER = """#!/bin/bash
# Prints the recording of a real program for any prompt, and keeps its command line and input.
printf '%s\\n' "$@" > '{copies}/argv'
cat > '{copies}/stdin'
env -0 > '{copies}/environment'
cat "$(sed -n '/system-prompt-file/{{n;p}}' '{copies}/argv')" > '{copies}/stable' 2>/dev/null
cat '{transcript}'
exit {code}
"""


class Repeated(Record):
    """The run of an adapter whose program repeats a recorded transcript, and the command line of that program."""

    observed: Observed
    argv: list[str]
    stdin: str
    stable: str
    environment: dict[str, str]


def repeat(folder: Path, name: str, recorded: str, code: int = 0, prompt: str = "Do it.", **given: Any) -> Repeated:
    """Run the adapter `name` with a program that repeats `<program>-<version>/<case>`; `given` goes into Settings."""
    program, copies = folder / f"{name}-program", folder / "copies"
    copies.mkdir()
    program.write_text(REPEATER.format(copies=copies, transcript=TRANSCRIPTS / recorded, code=code))
    program.chmod(0o755)
    made = project(folder)
    table = {"path": str(program), **given.pop("table", {})}
    asked = settings(made, **table).replace(**{"trust": "workspace", **given})
    at = desk(made, prompt, HOME=str(folder)).replace(stable_bytes=prompt.find("|") + 1)
    observed = listen(make(name, asked), at, prompt)
    pairs = (row.partition("=") for row in (copies / "environment").read_text().split("\0") if row)
    return Repeated(
        observed=observed,
        argv=(copies / "argv").read_text().split("\n")[:-1],
        stdin=(copies / "stdin").read_text(),
        stable=(copies / "stable").read_text(),
        environment={key: value for key, _, value in pairs},
    )


def counted(observed: Observed) -> tuple[int | None, ...]:
    """(input, cache_read, cache_write, output, reasoning) of the usage."""
    used = observed.end.usage
    assert used is not None
    return used.input, used.cache_read, used.cache_write, used.output, used.reasoning
