"""A person in place of an agent: their own program on their terminal, in the tree of a run."""

from __future__ import annotations

import os

from harness.agents.base import AgentSuccess, ExecutionContext, Settings, Thinking, installed
from harness.base import console
from harness.base.errors import Unavailable
from harness.process import spawn


class PersonAgent:
    """Starts the program with the person's own environment, not confined, and waits for its end, however it ends."""

    needs: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def __init__(self, settings: Settings) -> None:
        self.settings, self.program = settings, [str(word) for word in settings.table["program"]]
        if not installed(self.program[0]):
            raise Unavailable(f"There is no program '{self.program[0]}' on PATH.")

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Say where the person is, and give them the terminal."""
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # that is ours
        env["HARNESS_PROJECT"] = self.settings.project  # so that commands there are about this mission
        console.print_error(
            f"  {self.settings.feature}: you are in {context.directory}; its task is in {context.prompt_path}\n"
            "  What you leave when this program ends becomes a commit of yours, and is validated like any other."
        )
        code = spawn.attend(self.program, cwd=context.directory, env=env, keep=context.keep)
        killed = f", which ended with signal {-code}" if code < 0 else ""
        yield AgentSuccess(reply="", remark=f"by a person with {os.path.basename(self.program[0])}{killed}")
