"""What of a conversation's calls is permitted: by rules, by a person, in plan mode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.builtin.tools import registry
from harness.builtin.tools.tool import ALWAYS, NO, RUNS, YES, Question, Tool, ToolResult
from harness.workspace.rules import ToolRules
from tests.builtin.tools.benches import Bench


def test_a_denied_call_is_not_carried_out_and_says_the_rule(bench: Bench) -> None:
    """By path; other calls of the tool are."""
    bench.own.rules = ToolRules(deny=["write_file(docs/**)", "grep_files"])
    assert "by the rule write_file(docs/**)" in bench.refused("write_file", path="docs/a.md", content="x")
    assert "by the rule write_file(docs/**)" in bench.refused("write_file", path="./x/../docs/a.md", content="x")
    assert "by the rule write_file(docs/**)" in bench.refused(
        "write_file", path=bench.absolute("docs/a.md"), content="x"
    )
    bench.said("write_file", path="other.md", content="x")
    assert "not permitted" in bench.refused("grep_files", pattern="x")
    assert "grep_files" not in [tool.name for tool in registry.offered(bench.own)]
    assert not (bench.tree / "docs").exists()


def test_a_denied_command_is_not_carried_out_in_any_part(bench: Bench) -> None:
    """Others are."""
    bench.own.rules = ToolRules(deny=["execute(git push*)"])
    assert "by the rule execute(git push*)" in bench.refused("execute", command="cd . && git push origin")
    assert "out" in bench.said("execute", command="echo out")


def test_a_link_does_not_lead_around_a_rule(bench: Bench) -> None:
    """The path counts as it is written, and as it is; also where the last parts are not there yet, and whatever class the
    filesystem is of."""
    (bench.tree / "docs").mkdir()
    os.symlink("docs", bench.tree / "papers")
    bench.own.rules = ToolRules(deny=["write_file(docs/**)"])
    assert "not permitted" in bench.refused("write_file", path="papers/a.md", content="x")
    assert "by the rule write_file(docs/**)" in bench.refused("write_file", path="papers/new/a.md", content="x")
    assert "not permitted" in bench.refused("write_file", path=bench.absolute("papers/new/a.md"), content="x")
    bench.said("write_file", path="other.md", content="x")
    assert list((bench.tree / "docs").iterdir()) == []
    bench.own.rules = ToolRules(allow=[["write_file(papers/**)"]])
    assert "not permitted" in bench.refused("write_file", path="papers/a.md", content="x")


def test_a_command_in_the_background_is_followed_as_it_was_begun(bench: Bench) -> None:
    """Its handle stands for its command."""
    bench.own.rules = ToolRules(allow=[["execute(sleep *)"]])
    bench.said("execute", command="sleep 30", background=True)
    assert "running" in bench.said("execute", handle="job-1", timeout=0)
    bench.own.rules = ToolRules(allow=[["execute(echo *)"]])
    assert "not permitted" in bench.refused("execute", handle="job-1")


def test_a_question_is_a_no_where_nobody_is_there(bench: Bench) -> None:
    """With words that say so."""
    bench.own.rules = ToolRules(ask=["execute(git push*)"])
    assert "nobody is here to give it" in bench.refused("execute", command="git push")
    bench.said("execute", command="true")


def test_a_person_is_asked_once_and_the_answer_counts(bench: Bench) -> None:
    """No; yes, for this time; yes, always, which the session keeps, for this call alone."""
    asked: list[Question] = []
    answers = [NO, YES, ALWAYS, NO]

    def ask(question: Question) -> str:
        asked.append(question)
        return answers[len(asked) - 1]

    bench.own.rules, bench.own.ask = ToolRules(ask=["execute(echo*)"]), ask
    assert "did not permit" in bench.refused("execute", command="echo a")
    bench.said("execute", command="echo a")
    bench.said("execute", command="echo a")
    bench.said("execute", command="echo a")
    assert "did not permit" in bench.refused("execute", command="echo b")
    assert [(one.tool, one.about, one.rule) for one in asked[:1]] == [("execute", "echo a", "execute(echo*)")]
    assert bench.own.state["permissions"] == {"allow": ["execute(echo a)"]}


def test_the_rules_of_a_session_add_to_those_of_the_workspace(bench: Bench) -> None:
    """They can deny more, and never permit what is denied."""
    bench.own.rules = ToolRules(deny=["write_file"])
    bench.own.state["permissions"] = {"deny": ["execute(rm*)"], "allow": ["write_file", "execute"]}
    assert "not permitted" in bench.refused("write_file", path="a", content="")
    assert "not permitted" in bench.refused("execute", command="rm -r x")


def test_tools_from_outside_are_ruled_by_their_arguments(bench: Bench) -> None:
    """As JSON; they are offered behind our own, and cannot take the place of one."""
    own = Tool(
        name="maps_find", description="Finds.", parameters={"type": "object", "properties": {}}, effects=RUNS,
        run=lambda _, given: ToolResult(text=f"found {given['city']}"), foreign=True,
    )  # fmt: skip
    bench.own.extra_tools = [own, own.replace(name="read_file")]
    bench.own.rules = ToolRules(deny=["maps_find(*Berlin*)"])
    assert bench.said("maps_find", city="Paris") == "found Paris"
    assert "not permitted" in bench.refused("maps_find", city="Berlin")
    assert [tool.name for tool in registry.offered(bench.own)][-1] == "maps_find"
    assert "There is no" in bench.refused("read_file", path="a", city="Paris") + bench.refused("read_file", path="a")


@pytest.mark.parametrize("above", [False, True])
def test_in_plan_mode_only_what_reads_is_carried_out(tmp_path: Path, above: bool) -> None:
    """In one's own, or in that of whoever started the conversation."""
    bench = Bench(tmp_path)
    if above:
        bench.own.reads_only = lambda: True
    else:
        bench.said("plan_enter")
    for name, given in (("execute", {"command": "touch a"}), ("write_file", {"path": "a", "content": ""})):
        assert "only reading is possible" in bench.refused(name, **given)
    bench.said("list_files")
    bench.said("todo_write", todos=[])
    assert list(bench.tree.iterdir()) == []
