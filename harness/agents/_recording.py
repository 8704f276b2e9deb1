"""An agent that replays a past run of an agent from its recording, offline, without a model.

A recording is a JSON file, found like a playbook in the folder of `[agents.recorded] path`, or named by HARNESS_RECORDING
when a whole mission is replayed and this agent replaces every other. `<name>.patch` next to it, as of `git diff --binary`,
has the agent's changes. All keys are optional: `outcome`, `reason`, `until`: the end, ok by default; `asked`: [[verb,
…texts]], its requests to the run (note, issue, reply, check); `said`: its messages, the last one is its reply; `usage`: a
Usage; `agents`: the agents tried, in turn (absent: the configured ones); `waits`: {agent: unix seconds} of rate-limited ones.
"""

from __future__ import annotations

import os
import shlex
from typing import Any

from harness.agents._playbook import cut_by, find, shell
from harness.agents.base import (
    PLAYED_BACK,
    AgentEvent,
    AgentFailure,
    AgentSuccess,
    ExecutionContext,
    Settings,
    Thinking,
    how,
)
from harness.base import encoding
from harness.base.errors import BrokenFile, Unavailable
from harness.mission.usage import Usage
from harness.process import temporary
from harness.state import files

PATCH = ".patch"
ENDED = ("ok", "no_op", "timeout_after_result", "conflict")  # the agent itself had finished


class RecordedAgent:
    """Repeats the recorded changes, requests, messages and end."""

    needs: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def __init__(self, name: str, settings: Settings, *, optional: bool = True) -> None:
        """`optional`: the recording may be missing if no agent was asked in that run."""
        folder = os.path.join(settings.project, str(settings.table.get("path", "recordings")))
        self.name, self.path = name, os.environ.get(PLAYED_BACK) or find(folder, settings, ".json")
        found = files.read_json(self.path)
        if not isinstance(found, dict):
            raise BrokenFile(self.path, "not the recording of a run", line=1, remedy="See docs/agents.md.")
        self.recording: dict[str, Any] = found
        self.asked: list[str] | None = found.get("agents")
        left_out = PLAYED_BACK in os.environ and self.asked is not None and name not in self.asked
        if left_out and (self.asked or optional):
            raise Unavailable(f"{name} was not asked in the recorded run.")

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Play the recording; it does not read the prompt."""
        if self.name in (self.asked or [])[:-1]:
            yield self._refused()
            return
        used = Usage(**self.recording["usage"]) if self.recording.get("usage") else None
        room = temporary.create("recorded") if "TMPDIR" not in context.environment else context.environment["TMPDIR"]
        yield AgentEvent(kind="did", text=f"plays {os.path.basename(self.path)}")
        ended = yield from shell(self._script(room), context, context.seconds)
        if ended.exit != 0:
            outcome = cut_by(ended)
            yield AgentFailure(outcome=outcome, reason=f"the recording could not be repeated: {how(ended)}", usage=used)
            return
        if used:
            yield AgentEvent(kind="usage", text=encoding.dump_json(used.asdict()).decode().rstrip("\n"))
        said = self.recording.get("said", [])
        for text in said:
            yield AgentEvent(kind="said", text=text)
        yield self._end(said[-1] if said else "", used)

    def _refused(self) -> AgentFailure:
        """The end of an agent that could not answer, so that the next one was asked."""
        until = self.recording.get("waits", {}).get(self.name)
        return AgentFailure(outcome="limit" if until else "auth", reason="as recorded", until=until or 0)

    def _end(self, reply: str, used: Usage | None) -> AgentSuccess | AgentFailure:
        outcome = self.recording.get("outcome", "ok")
        if outcome in ENDED:
            return AgentSuccess(reply=reply, usage=used, late=outcome == "timeout_after_result")
        reason = self.recording.get("reason", "as recorded")
        return AgentFailure(outcome=outcome, reason=reason, usage=used, until=self.recording.get("until", 0))

    def _script(self, room: str) -> str:
        """The shell commands of the recording; writes their input files into the folder `room`."""
        lines: list[str] = []
        if patch := files.read(self.path.removesuffix(".json") + PATCH):
            path = os.path.join(room, "recorded.patch")
            files.replace_quickly(path, patch)
            lines.append(f'git -C "$(git rev-parse --show-toplevel)" apply --whitespace=nowarn {shlex.quote(path)}')
        for number, (verb, *texts) in enumerate(self.recording.get("asked", [])):
            lines.append(_request(os.path.join(room, f"recorded-{number}.md"), verb, texts))
        return "\n".join(lines)


def _request(path: str, verb: str, texts: list[str]) -> str:
    """A request to the run as a shell command that ignores failure."""
    if verb == "reply":
        files.replace_quickly(path, texts[0].encode())
        words = [path]
    elif verb == "note":
        words = ["--tag", texts[0], "--", texts[1]]
    elif verb == "issue":
        value = encoding.parse_json(texts[0].encode(), path)
        given = {key: text for key, text in value.items() if key != "title" and text}
        options = [word for key, text in given.items() for word in (f"--{key.replace('_', '-')}", str(text))]
        words = [*options, "--", str(value["title"])]
    else:
        words = [text for text in texts if text]
    return f"harness {verb} {shlex.join(words)} </dev/null || true"
