"""What a call reports, as typed values."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from harness import CallEvent, EndEvent, Event, ResultEvent, SimulatedCall, TextEvent
from harness.builtin.events import BY_TYPE
from tests.builtin.simulating import Program
from tests.missions import CHECKOUT


def test_a_result_has_the_id_of_its_call_and_the_last_event_the_reply(tmp_path: Path) -> None:
    """Two calls of one tool at once are told apart."""
    calls = [SimulatedCall(name="list_files"), SimulatedCall(name="list_files")]

    async def streamed() -> list[Event]:
        async with Program(tmp_path, calls, "well done") as program:
            return [event async for event in program.stream("go")]

    found = asyncio.run(streamed())
    called = [one.id for one in found if isinstance(one, CallEvent)]
    assert len(set(called)) == 2 and called == [one.id for one in found if isinstance(one, ResultEvent)]
    assert "".join(one.text for one in found if isinstance(one, TextEvent)) == "well done"
    assert isinstance(found[-1], EndEvent) and found[-1].reply.text == "well done"


def test_the_page_has_every_event_with_its_fields() -> None:
    """docs/sessions.md: one table."""
    text = (CHECKOUT / "docs/sessions.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+Event)` \| ([^|]*) \|", text, re.M))
    fields = {one.__name__: [name for name in one.fields if name != "type"] for one in (*BY_TYPE.values(), EndEvent)}
    assert {name: re.findall(r"`(\w+)`", row) for name, row in rows.items()} == fields
