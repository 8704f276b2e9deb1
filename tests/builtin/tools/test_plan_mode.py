"""Plan mode: its three tools, what a person says to the plan, and that it is kept with the conversation."""

from __future__ import annotations

from harness.builtin.tools._plan_mode import LONGEST
from harness.builtin.tools.tool import NO, YES
from tests.builtin.tools.benches import Bench


def test_a_plan_is_made_kept_and_carried_out(bench: Bench) -> None:
    """In this order; each tool says what is wrong elsewhere."""
    assert "not plan mode" in bench.refused("plan_write", content="x")
    assert "not plan mode" in bench.refused("plan_exit")
    bench.said("plan_enter")
    assert "already" in bench.refused("plan_enter")
    assert "no plan yet" in bench.refused("plan_exit")
    assert "from 1 to" in bench.refused("plan_write", content="x" * (LONGEST + 1))
    bench.said("plan_write", content="1. Look.\n2. Do.")
    assert "1. Look." in bench.said("plan_exit")
    bench.said("write_file", path="a", content="")


def test_it_goes_on_where_the_conversation_does(bench: Bench) -> None:
    """It is in the state that is saved with it."""
    bench.said("plan_enter")
    bench.said("plan_write", content="Mine.")
    later = bench.again()
    later.own.state = bench.own.state
    assert "plan mode" in later.refused("write_file", path="a", content="")
    assert "Mine." in later.said("plan_exit")


def test_a_person_who_is_there_decides_on_its_end(bench: Bench) -> None:
    """A no keeps plan mode."""
    answers = iter([NO, YES])
    bench.own.ask = lambda question: next(answers) if question.about == "Mine." else "?"
    bench.said("plan_enter")
    bench.said("plan_write", content="Mine.")
    assert "did not accept" in bench.refused("plan_exit")
    assert "plan mode" in bench.refused("write_file", path="a", content="")
    bench.said("plan_exit")
    bench.said("write_file", path="a", content="")
