"""A past request: its parts, what is new, and what a person who asks for one that is not there is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.builtin import turn_replay
from tests.builtin.talking import RUN, Bench, serving, steps


def test_a_request_is_explained_part_by_part(tmp_path: Path) -> None:
    """Tools, system, messages; what the request before had, and what a prompt cache can serve."""
    bench = Bench(tmp_path)
    with serving(steps("echo a", "echo b")) as server:
        bench.talk(f"{server.url}/v1")
        sizes = [len(one.body) for one in server.seen]
    known = turn_replay.seen(bench.layout, RUN, 3)
    assert [one.what for one in known.sections] == ["tools", "system", "user", *["assistant", "tool"] * 2]
    assert [one.new for one in known.sections] == [False] * 5 + [True] * 2
    assert (known.turns, known.bytes) == (3, sizes[2])
    assert known.cacheable == sum(one.bytes for one in turn_replay.seen(bench.layout, RUN, 2).sections)
    assert "execute" in known.sections[0].first and "echo b" in known.sections[5].first
    assert known.answer is not None and known.answer["said"] == ["Done."]


def test_a_turn_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    """With those that are."""
    bench = Bench(tmp_path)
    with pytest.raises(UsageFault, match="has no turns"):
        turn_replay.seen(bench.layout, RUN, 1)
    with serving(steps()) as server:
        bench.talk(f"{server.url}/v1")
    with pytest.raises(UsageFault, match="turns 1 to 1, and no turn 2"):
        turn_replay.seen(bench.layout, RUN, 2)
