"""The order of the child: one JSON object on its command line, made by the adapter in `harness/agents`."""

from __future__ import annotations

import json

from harness.base.errors import UsageFault
from harness.base.record import Json, Record
from harness.process.confine import Confinement, Glass


class ChildOrder(Record):
    """`parameters` are those of each request; `key_env`: the variables that may hold the key; `hidden`: more variables that no
    tool gets. `directory`: where the tools work; `project` and `state`: the mission's folders; `run`, `role`, `feature`: for
    whom. `stable_bytes`: as in the context of an agent. What is left of the caps is None without one. `turn`: only make this
    request of that run, or of its subagent `task`, once more (0: no); `send`: whether it goes out."""

    parameters: dict[str, Json]
    key_env: list[str]
    directory: str
    state: str
    run: str
    project: str = ""
    role: str = ""
    feature: str = ""
    stable_bytes: int = 0
    max_steps: int = 200
    request_seconds: float = 600.0
    cost_left: float | None = None
    tokens_left: int | None = None
    prices: dict[str, dict[str, float]] = {}
    confinement: dict[str, Json] | None = None
    hidden: list[str] = []
    turn: int = 0
    task: str = ""
    send: bool = True

    def glass(self) -> Confinement | None:
        """The confinement of the tools; None for none."""
        if self.confinement is None:
            return None
        return Confinement(**{**self.confinement, "glass": Glass(**self.confinement["glass"])})


def parse(text: str) -> ChildOrder:
    """The order in a text; raises UsageFault."""
    try:
        return ChildOrder(**json.loads(text))
    except (ValueError, TypeError) as fault:
        raise UsageFault(
            f"The built-in agent is started by a run of the harness, with one JSON object: {fault}"
        ) from None
