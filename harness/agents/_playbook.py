"""The embedded agent without model and network: executes a Markdown runbook from the project's playbooks/ folder."""

from __future__ import annotations

import os
from collections.abc import Generator

from harness.agents.base import (
    LIMITS,
    AgentEvent,
    AgentFailure,
    AgentSuccess,
    ExecutionContext,
    Settings,
    Thinking,
    how,
)
from harness.base import encoding
from harness.base.errors import Unavailable
from harness.process import supervise
from harness.state import documents, files


def names(settings: Settings, ending: str) -> list[str]:
    """The file names for a run, the most specific first."""
    role, feature = settings.role, settings.feature
    special = [f"{role}-{feature}.{settings.attempt}{ending}", f"{role}-{feature}{ending}"] if feature else []
    return [*special, role + ending]


def find(folder: str, settings: Settings, ending: str) -> str:
    """The path for the run; raises Unavailable with all paths that were tried."""
    paths = [os.path.join(folder, name) for name in names(settings, ending)]
    for path in paths:
        held = settings.held.get(os.path.relpath(path, settings.project), b"")
        if held or (held is not None and os.path.exists(path)):
            return path
    where = " or ".join(os.path.relpath(path, settings.project) for path in paths)
    raise Unavailable(f"There is no playbook for this run: write {where}, or configure another agent.")


def text_of(path: str, settings: Settings) -> str:
    """The file that `find` found, as a person has it."""
    held = settings.held.get(name := os.path.relpath(path, settings.project))
    return (files.read_text(path) or "") if held is None else encoding.decode(held, name)


def split(text: str) -> tuple[list[tuple[int, str]], str]:
    """The ```sh blocks as (1-based line, command), and the rest of the text, which is the reply."""
    found: list[tuple[int, str]] = []
    rest: list[str] = []
    fence, shell, start = "", False, 0
    block: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        mark = documents.fence_mark(line)
        if not fence and mark and mark[0] not in line[len(mark) :]:
            fence, shell, start, block = mark, line[len(mark) :].strip() == "sh", number + 1, [line]
        elif fence and mark and mark.startswith(fence) and line.strip() == mark:
            found += [(start, "\n".join(block[1:]))] if shell else []
            rest += [] if shell else [*block, line]
            fence = ""
        else:
            (block if fence else rest).append(line)
    rest += block if fence else []  # an unclosed fence is not a block
    return found, "\n".join(rest)


class Playbook:
    """Runs the ```sh blocks in order and stops at the first failure; the rest of the file is the reply."""

    needs: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def __init__(self, settings: Settings) -> None:
        self.path = find(os.path.join(settings.project, "playbooks"), settings, ".md")
        self.name = os.path.relpath(self.path, settings.project)
        self.text = text_of(self.path, settings)

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Run the playbook; it does not read the prompt."""
        blocks, reply = split(self.text)
        name, left = self.name, context.seconds
        for line, command in blocks:
            yield AgentEvent(kind="did", text=f"{name}:{line} {command.strip().split(chr(10))[0][:60]}")
            ended = yield from shell(command, context, left)
            left -= ended.seconds
            if ended.exit != 0:
                yield AgentFailure(outcome=cut_by(ended), reason=f"{name}:{line} {how(ended)}")
                return
        yield AgentEvent(kind="said", text=reply)
        yield AgentSuccess(reply=reply)


def cut_by(ended: supervise.ChildEnd) -> str:
    """The outcome of a failed block: the limit that ended it, else agent_error."""
    return ended.cause if ended.cause in LIMITS else "agent_error"


def shell(command: str, context: ExecutionContext, seconds: float) -> Generator[AgentEvent, None, supervise.ChildEnd]:
    """Run one block with bash in the working folder; yields its output, returns how it ended."""
    argv = ["bash", "-euo", "pipefail", "-c", command]
    with supervise.Child(
        argv,
        cwd=context.directory,
        env=context.environment,
        wall_seconds=max(seconds, 0.1),
        keep=context.keep,
        merge=True,
        timeouts=context.replace(startup_seconds=0.0).timeouts(),
        confine=context.confinement,
    ) as child:
        for stream, chunk in child.output():
            yield (
                AgentEvent(kind="output", text=chunk.decode("utf-8", "replace")) if stream else AgentEvent(kind="tick")
            )
        assert child.ended is not None
        return child.ended
