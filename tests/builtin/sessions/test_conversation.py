"""The conversation of a session, left so that a request can follow."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.builtin.sessions._conversation import STOPPED, SessionHistory
from harness.builtin.sessions.log import LogWriter
from harness.stores.disk import DiskStore
from tests.builtin import talking  # noqa: F401 - it skips without the packages

ANSWER: dict[str, Any] = {
    "role": "assistant",
    "parts": [
        {"part_kind": "tool-call", "tool_name": "execute", "args": "{}", "tool_call_id": "one"},
        {"part_kind": "tool-call", "tool_name": "execute", "args": "{}", "tool_call_id": "two"},
    ],
}


class Model:
    """What knows the calls of an answer."""

    parameters: dict[str, Any] = {}

    def calls(self, message: dict[str, Any]) -> Any:
        """As the wire does."""
        from harness.builtin.loop.exchange import Call

        return [Call(id=one["tool_call_id"], name=one["tool_name"], arguments={}) for one in message["parts"]]


@pytest.mark.on_disk
def test_every_call_has_a_result_and_what_was_said_stays(tmp_path: Path) -> None:
    """Of a call that had begun nobody knows the end; of one that had not it is known."""
    talk = SessionHistory(LogWriter(DiskStore(str(tmp_path)), ("u", "s", "log"), 0, 0))
    talk.start_part(1, {"calls": 0, "turns": 0}, [{"role": "user", "text": "do it"}])
    talk._keep(ANSWER, "digest")
    talk.begins(Model().calls(ANSWER)[0])
    talk.partial += ["I was ", "saying"]
    talk.close(Model(), STOPPED, "[stop]")  # type: ignore[arg-type]  # it asks nothing
    assert [one["role"] for one in talk.messages] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    begun, not_begun = talk.messages[2:4]
    assert begun["text"].startswith("Nobody knows how it ended: a person interrupted")
    assert not_begun["text"] == "It was not carried out: a person interrupted before it began."
    assert talk.messages[4]["parts"][0]["content"] == "I was saying" and talk.partial == []
    asyncio.run(talk.durable())
