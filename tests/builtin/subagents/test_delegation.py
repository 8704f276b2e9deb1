"""The subagents of one conversation: which there are, whose tasks it sees, and what it is told after an interruption."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.builtin.subagents._delegation import Delegation
from harness.builtin.subagents._pool import DEEPEST
from harness.mission import tasks
from tests.builtin.subagents.workers import SCOUT, Answering, crewed


def test_a_wrong_call_is_told_what_there_is(tmp_path: Path) -> None:
    """Of agents, and of tasks."""
    with crewed(tmp_path) as squad:
        assert squad.agents() == "scout: Finds. (works in your folder)"
        assert squad.tasks() == "None yet."
        with pytest.raises(UsageFault, match=r"no subagent 'spy'. There are: scout\."):
            squad.spawn("spy", "x", background=False, seconds=1)
        with pytest.raises(UsageFault, match="The task is empty"):
            squad.spawn("scout", "  ", background=False, seconds=1)
        with pytest.raises(UsageFault, match="There are: none"):
            squad.output("scout-1", seconds=0)


def test_a_conversation_sees_its_own_tasks_alone(tmp_path: Path) -> None:
    """Not those of one below it."""
    with crewed(tmp_path) as squad:
        squad.spawn("scout", "x", background=False, seconds=9)
        below = Delegation(squad.pool, squad.session, [SCOUT], parent="scout-1", depth=1)
        below.session = type(squad.session)(squad.session.files)
        assert "scout-2 answered" in below.spawn("scout", "y", background=False, seconds=9).text
        assert squad.tasks() == "scout-1: ok"
        assert below.tasks() == "scout-2: ok"
        assert not Delegation(squad.pool, squad.session, [SCOUT], depth=DEEPEST).offered


def test_after_an_interruption_the_tasks_of_before_are_over(tmp_path: Path) -> None:
    """A conversation that goes on in another process knows them, and new ones have other names."""
    with crewed(tmp_path / "one") as squad:
        squad.spawn("scout", "x", background=False, seconds=9)
        state = {"tasks": {"scout-1": {"agent": "scout", "status": "running"}}}
    with crewed(tmp_path / "two") as later:
        later.session.state.update(state)
        assert later.tasks() == "scout-1: ended when the conversation was interrupted"
        for made in (later.output("scout-1", seconds=0), later.cancel("scout-1")):
            assert made.failed and "ended when the conversation was interrupted" in made.text
        assert later.send("scout-1", "x", background=False, seconds=0).failed
        assert "scout-2 answered" in later.spawn("scout", "y", background=False, seconds=9).text


def test_an_interruption_ends_what_is_waited_for(tmp_path: Path) -> None:
    """At once, and recorded so; what is in the background is not waited for, and goes on."""
    with crewed(tmp_path, Answering(seconds=60)) as squad:
        squad.spawn("scout", "x", background=True, seconds=0)
        threading.Timer(0.2, lambda: setattr(squad.session, "stopping", True)).start()
        said = squad.spawn("scout", "y", background=False, seconds=30)
        assert said.failed and "interrupted" in said.text
        squad.session.stopping = False
        assert squad.tasks().startswith("scout-1: running")
    assert {one.id: one.status for one in tasks.of_run(str(tmp_path / "tasks"))} == {
        "scout-1": "ended",
        "scout-2": "ended",
    }
