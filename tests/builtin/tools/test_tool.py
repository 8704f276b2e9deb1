"""What a tool is: each says what it may leave behind, so that others can decide who may use it."""

from __future__ import annotations

import re
from pathlib import Path

from harness.builtin.tools import registry
from harness.builtin.tools.tool import READS, RUNS, WRITES, Live, ToolSession
from harness.filesystem.local import Local


def test_each_tool_says_what_it_may_leave_behind_and_what_it_needs() -> None:
    """Its name is what models call."""
    for name, tool in registry.TOOLS.items():
        assert tool.name == name and re.fullmatch(r"[a-z_]{3,30}", name)
        assert tool.effects in (READS, WRITES, RUNS)
        assert tool.needs in registry.HAS
        assert tool.about in (*tool.parameters["properties"], "")
        assert tool.description.endswith(".")


def test_sessions_of_tools_share_nothing(tmp_path: Path) -> None:
    """Two conversations at once in one process see nothing of each other; closing ends what is alive at its own only."""
    ended = []

    class Alive(Live):
        def close(self) -> None:
            ended.append(self)

    one, two = (ToolSession(Local(str(tmp_path))) for _ in range(2))
    registry.call(one, "todo_write", {"todos": [{"content": "mine", "status": "pending"}]})
    one.live["x"] = Alive()
    assert (two.state, two.live) == ({}, {})
    two.close()
    assert ended == []
    one.close()
    assert ended == [one.live["x"]]
