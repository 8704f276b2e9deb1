"""Any program as an agent: the prompt on its stdin; its reply on stdout, or events in a vendor's shape (`format`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.agents._answer_state import AnswerState
from harness.agents.base import LOOP, AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings, Thinking, how
from harness.agents.clis import ABOUT, CLIS, EDITS
from harness.agents.program import Cli, CliFacts, ProgramAgent
from harness.base.errors import BrokenFile
from harness.process.supervise import ChildEnd


def _no_words(settings: Settings, context: ExecutionContext) -> list[str]:
    return []


def _no_events(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    return iter(())


def _at_exit(answer: AnswerState, ended: ChildEnd) -> AgentSuccess | AgentFailure:
    """A clean exit is success, and so is a text before closed output; any other exit is a failure of the agent."""
    if ended.exit == 0 or ended.cause != "exit":
        return AgentSuccess(reply=answer.said, late=ended.cause != "exit")
    return answer.failed("agent_error", f"it {how(ended)}: {answer.last_words}".removesuffix(": "))


TEXT = Cli("", _no_words, _no_events, at_exit=_at_exit, text=True)


def _format(name: str, path: str) -> tuple[Cli, CliFacts]:
    """The adapter of a format, and its program's needs; vendors' adapters are imported on demand."""
    if name in ("text", EDITS):
        return TEXT, CliFacts()

    shapes = [known for known in CLIS if known != LOOP]
    if name not in shapes:
        known = ", ".join(("text", EDITS, *shapes))
        raise BrokenFile(path, f"'format' must be one of {known}", remedy="Omit it for text.")
    return CLIS[name], ABOUT[name].replace(login="")  # the program may be another one


class Command(ProgramAgent):
    """`[agents.NAME] command = ["program", "argument"]`: the user gives the whole command line."""

    def __init__(self, name: str, settings: Settings) -> None:
        shape, about = _format(settings.table.get("format", "text"), settings.config_path)
        if not settings.table["command"]:
            raise BrokenFile(settings.config_path, "'command' is empty", remedy="Name a program and its arguments.")
        super().__init__(name, shape, settings, argv=list(settings.table["command"]), about=about)

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Run the program once; a program without events has no startup timeout."""
        if self.cli.text:
            context = context.replace(startup_seconds=0.0)
        return super().think(prompt, context)
