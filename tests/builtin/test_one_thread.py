"""The child has one thread, so a command that it forks for inherits no lock of another."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from harness.builtin import _one_thread
from harness.builtin.tools.tool import READS, Tool, ToolResult, ToolSession
from tests.builtin.talking import WIRES, Bench, address, calling, serving, steps

NOTHING = {"type": "object", "properties": {}}


def test_what_libraries_give_to_a_thread_is_done_in_this_one() -> None:
    """A name is resolved, a call is carried out, and its fault arrives."""

    async def looked() -> tuple[threading.Thread, int]:
        _one_thread.keep()
        loop = asyncio.get_running_loop()
        assert await loop.getaddrinfo("localhost", 80)
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(threading.current_thread), threading.active_count()

    before = threading.active_count()  # other tests leave some
    assert asyncio.run(looked()) == (threading.current_thread(), before)


@pytest.mark.parametrize("wire", WIRES)
def test_a_command_is_a_fork_of_a_process_with_one_thread(tmp_path: Path, wire: str) -> None:
    """Whatever the vendor's client does; also where the address is a name."""
    found, before = list[list[threading.Thread]](), threading.enumerate()

    def counted(session: ToolSession, arguments: dict[str, object]) -> ToolResult:
        found.append([one for one in threading.enumerate() if one not in before])
        return ToolResult(text="counted")

    tool = Tool(name="count", description="Counts.", parameters=NOTHING, effects=READS, run=counted)
    bench = Bench(tmp_path, wire=wire, more=[tool])
    with serving(steps("true", calling("count", {}), "true", calling("count", {}))) as server:
        assert bench.talk(address(server, wire).replace("127.0.0.1", "localhost")).end.outcome == "ok"
    assert found == [[], []]
