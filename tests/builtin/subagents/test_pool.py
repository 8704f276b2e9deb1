"""The crew: how many work at once, what becomes of messages and faults, and the end of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.builtin.subagents._pool import MOST_RUNNING
from harness.mission import tasks
from tests.builtin.subagents.workers import Answering, crewed


def test_only_so_many_work_at_once(tmp_path: Path) -> None:
    """One more is refused, with who is at work; once one has ended there is room."""
    with crewed(tmp_path, Answering(seconds=60)) as squad:
        for _ in range(MOST_RUNNING):
            squad.spawn("scout", "x", background=True, seconds=0)
        with pytest.raises(UsageFault, match="8 subagents are at work: scout-1, "):
            squad.spawn("scout", "x", background=True, seconds=0)
        squad.cancel("scout-3")
        assert "scout-9" in squad.spawn("scout", "x", background=True, seconds=0).text
    assert [one.status for one in tasks.of_run(str(tmp_path / "tasks"))].count("ended") == MOST_RUNNING


def test_a_message_to_one_at_work_is_taken_when_it_answers(tmp_path: Path) -> None:
    """In order; the last answer is the one."""
    with crewed(tmp_path, Answering(seconds=0.2)) as squad:
        squad.spawn("scout", "one", background=True, seconds=0)
        assert "once it has answered" in squad.send("scout-1", "two", background=False, seconds=9).text
        squad.send("scout-1", "three", background=False, seconds=9)
        assert squad.output("scout-1", seconds=9).text == "scout-1 answered:\n\nTHREE"
    assert tasks.of_run(str(tmp_path / "tasks"))[0].asked == ["one", "two", "three"]


def test_a_fault_of_its_work_is_its_end_and_nobody_else_s(tmp_path: Path) -> None:
    """It is told with the reason."""

    def broken(message: str) -> str:
        raise ValueError("no such thing") if message == "bad" else KeyError

    worker = Answering(lambda message: broken(message) if message == "bad" else "fine")
    with crewed(tmp_path, worker) as squad:
        made = squad.spawn("scout", "bad", background=False, seconds=9)
        assert made.failed and "ValueError: no such thing" in made.text
        assert squad.spawn("scout", "good", background=False, seconds=9).text.endswith("fine")
    assert worker.closed == ["scout-1", "scout-2"]


def test_one_that_is_ended_before_it_begins_has_ended(tmp_path: Path) -> None:
    """However early."""
    with crewed(tmp_path, Answering(seconds=60)) as squad:
        for number in range(1, 21):
            squad.spawn("scout", "x", background=True, seconds=0)
            squad.cancel(f"scout-{number}")
    assert {one.status for one in tasks.of_run(str(tmp_path / "tasks"))} == {"cancelled"}
