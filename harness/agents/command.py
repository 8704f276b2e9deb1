"""Any program: the prompt on its stdin, its reply on stdout, what it tells meanwhile on stderr."""

from __future__ import annotations

import os

from harness import process
from harness.agents.base import Desk, Event, Failed, Finished, Settings, installed
from harness.agents.playbook import how
from harness.errors import BrokenFile, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Command:
    """`[agents.NAME] command = ["program", "argument"]`, with `env` added to its environment."""

    def __init__(self, settings: Settings) -> None:
        self.argv: list[str] = [*settings.table["command"], *settings.table.get("args", [])]
        self.environment: dict[str, str] = {key: str(value) for key, value in settings.table.get("env", {}).items()}
        if settings.table.get("format", "text") != "text":
            raise BrokenFile(settings.config_path, "'format' must be \"text\"", remedy="Leave it out.")
        if not self.argv:
            raise BrokenFile(settings.config_path, "'command' is empty", remedy="Name a program and its arguments.")
        program = os.path.join(settings.project, self.argv[0]) if "/" in self.argv[0] else self.argv[0]
        if not installed(program):
            raise Unavailable(
                f"The agent's program '{self.argv[0]}' is not installed. Install it, or mend {settings.config_path}."
            )

    def think(self, prompt: str, desk: Desk) -> Iterator[Event | Finished | Failed]:
        """Run the program once; a clean exit finishes, any other is the agent's fault."""
        env = {**desk.environment, **self.environment}
        said = bytearray()
        with process.Child(
            self.argv,
            cwd=desk.directory,
            env=env,
            stdin=desk.prompt_path,
            wall_seconds=desk.seconds,
            keep=desk.keep,
        ) as child:
            for stream, chunk in child.output():
                if stream == "stdout":
                    said += chunk
                kind = {"stdout": "tick", "stderr": "output"}.get(stream, "tick")
                yield Event(kind=kind, text=chunk.decode("utf-8", "replace") if kind == "output" else "")
            ended = child.ended
        reply = said.decode("utf-8", "replace")
        yield Event(kind="said", text=reply)
        if ended is None or ended.cause == "wall":
            yield Failed(outcome="wall", reason=f"{self.argv[0]} did not end in time")
        elif ended.exit != 0:
            yield Failed(outcome="agent_error", reason=f"{self.argv[0]} ended with {how(ended)}")
        else:
            yield Finished(reply=reply)
