"""Programs of users in a test: an agent with a simulated model, whose sessions are in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import Config, HarnessAgent, MemoryStore, SimulatedModel


class Program(HarnessAgent):
    """An agent in a folder whose model gives these answers. `simulated`: that model, with the requests that it got."""

    def __init__(self, folder: Path, *answers: Any, **more: Any) -> None:
        self.simulated = SimulatedModel(*answers)
        config = Config(**{name: more.pop(name) for name in Config.fields if name in more})
        more.setdefault("store", MemoryStore())
        super().__init__("helper", self.simulated, workspace=str(folder), config=config, **more)

    def results(self) -> list[str]:
        """The texts of the results of tools in the newest request."""
        return [one["text"] for one in self.simulated.requests[-1].messages if one["role"] == "tool"]
