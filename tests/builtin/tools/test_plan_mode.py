"""Plan mode: its three tools, what a person says to the plan, and that it is kept with the conversation."""

from __future__ import annotations

from harness.builtin.tools._plan_mode import LONGEST
from harness.builtin.tools.tool import NO, YES, Question
from harness.workspace.rules import ToolRules
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


def test_the_plan_is_a_file_that_the_person_is_shown_and_its_path_is_in_the_state(bench: Bench) -> None:
    """A later plan takes its place; other content there is not overwritten unseen."""
    asked: list[str] = []

    def yes(question: Question) -> str:
        asked.append(question.about)
        return YES

    bench.own.plans, bench.own.ask = "notes/plans", yes
    for text in ("First.", "Second."):
        bench.said("plan_enter")
        bench.said("plan_write", content=text)
        assert "notes/plans/PLAN.md" in bench.said("plan_exit")
        assert bench.said("read_file", path="notes/plans/PLAN.md").endswith(f"{text}")
        assert text in asked[-1] and "notes/plans/PLAN.md" in asked[-1]
        assert bench.own.state["plan"] == {"active": False, "text": text, "path": "notes/plans/PLAN.md"}
    bench.write("notes/plans/PLAN.md", "A person's own.\n")
    bench.said("plan_enter")
    bench.said("plan_write", content="Third.")
    assert "Read it again" in bench.refused("plan_exit") and len(asked) == 2
    bench.said("read_file", path="notes/plans/PLAN.md")
    bench.said("plan_exit")


def test_where_no_file_may_be_written_the_plan_says_so(bench: Bench) -> None:
    """Rules hold for the plan's file, too, and plan mode ends."""
    bench.own.plans, bench.own.rules = "plans", ToolRules(deny=["write_file"])
    bench.said("plan_enter")
    bench.said("plan_write", content="Mine.")
    assert "in no file" in bench.said("plan_exit")
    assert "path" not in bench.own.state["plan"] and not (bench.tree / "plans").exists()
