"""An agent that follows a JSONL file: for tests, in place of mocks.

`[agents.scripted] path = "scripts"`: the folder is searched like playbooks, for names ending in .jsonl. A line is one
of {"say": text}, {"run": shell}, {"sleep": seconds}, {"usage": {…}} (keys of a Usage, cumulative), {"fail": outcome,
"reason": text, "until": unix seconds}.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from harness.agents._playbook import cut_by, find, shell, text_of
from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings, Thinking, how
from harness.base import encoding
from harness.mission.usage import Usage, reported


class ScriptedAgent:
    """Follows the lines of its script in order."""

    needs: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def __init__(self, settings: Settings) -> None:
        folder = os.path.join(settings.project, str(settings.table.get("path", "scripts")))
        self.path = find(folder, settings, ".jsonl")
        self.text = text_of(self.path, settings)

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Yield what the script says; the last text is the reply."""
        said = ""
        usage: Usage | None = None
        for line in self.text.split("\n"):
            step: dict[str, Any] = json.loads(line or "{}")
            if "fail" in step:
                reason = step.get("reason", "scripted")
                yield AgentFailure(outcome=step["fail"], reason=reason, usage=usage, until=step.get("until", 0))
                return
            if "run" in step:
                yield AgentEvent(kind="did", text=step["run"].strip().split("\n")[0][:60])
                ended = yield from shell(step["run"], context, context.seconds)
                if ended.exit != 0:
                    yield AgentFailure(outcome=cut_by(ended), reason=f"the scripted command {how(ended)}", usage=usage)
                    return
            said = step.get("say", said)
            if "usage" in step:
                usage = reported(**{"agent": "scripted", **step["usage"]})
                yield AgentEvent(kind="usage", text=encoding.dump_json(usage.asdict()).decode().rstrip("\n"))
            time.sleep(step.get("sleep", 0))
            if "say" in step:
                yield AgentEvent(kind="said", text=said)
        yield AgentSuccess(reply=said, usage=usage)
