"""The registry: which tools are offered where, what every call comes to, and how large an answer can be."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.base import tokens
from harness.base.encoding import digest
from harness.base.errors import LockBusy
from harness.builtin.tools import registry
from harness.builtin.tools.tool import READS, SUBAGENTS, Tool, ToolResult
from harness.state.layout import Layout
from harness.workspace.rules import ToolRules
from tests.builtin.tools.benches import Bench
from tests.missions import CHECKOUT

FILES = ["read_file", "write_file", "edit_file", "list_files", "glob_files", "grep_files"]
PLAN = ["plan_enter", "plan_write", "plan_exit"]
MEMORY = ["memory_search", "memory_get"]
VERBS = ["note", "issue", "check", "reply"]


def names(bench: Bench) -> list[str]:
    """The names of the tools that are offered."""
    return [tool.name for tool in registry.offered(bench.own)]


def test_a_tool_is_offered_where_it_can_work(tmp_path: Path) -> None:
    """Commands where there is a shell, memory in a mission, its verbs inside a run."""
    layout = Layout(str(tmp_path))
    there = [*FILES, "execute", "todo_write", *PLAN]
    assert names(Bench(tmp_path, shell=False)) == [*FILES, "todo_write", *PLAN]
    assert names(Bench(tmp_path)) == there
    assert names(Bench(tmp_path, layout=layout)) == [*there, *MEMORY]
    in_run = [*FILES, "execute", *MEMORY, *VERBS]  # a run has a plan, notes and nobody to accept a plan
    assert names(Bench(tmp_path, layout=layout, run_id="1-x")) == in_run


def test_a_tool_that_is_not_allowed_is_neither_offered_nor_carried_out(bench: Bench) -> None:
    """The rules decide about both."""
    bench.own.rules = ToolRules(allow=[["read_*", "todo_write"]])
    assert names(bench) == ["read_file", "todo_write"]
    found = registry.call(bench.own, "write_file", {"path": "a", "content": ""})
    assert found.failed and not (bench.tree / "a").exists()


def test_all_descriptions_together_cost_little() -> None:
    """Every request pays for them: at most 2,500 tokens by our own estimate, which is high, and 3,000 with subagents."""

    def cost(needs: str) -> int:
        wanted = [tool for tool in registry.TOOLS.values() if tool.needs != needs]
        named = [{name: getattr(tool, name) for name in ("name", "description", "parameters")} for tool in wanted]
        return tokens.estimated("\n".join(map(json.dumps, named)))

    assert cost(SUBAGENTS) <= 2500
    assert cost("") <= 3000


def test_an_unknown_tool_is_answered_with_the_nearest_one(bench: Bench) -> None:
    """As models call them elsewhere."""
    assert "Did you mean read_file?" in bench.refused("read", path="a")
    assert "Did you mean todo_write?" in bench.refused("write_todos")
    assert "There are: read_file, " in bench.refused("bash", command="ls")


def test_wrong_arguments_are_answered_not_raised(bench: Bench) -> None:
    """Whatever a model sends."""
    assert bench.refused("read_file", file="a") == (
        "There is no argument 'file'. There are: path, offset, limit, column. Call read_file again."
    )
    wrong: list[Any] = [None, 5, "", "{", [], {"path": {}}]
    for given in wrong:
        assert registry.call(bench.own, "read_file", given).failed


@pytest.mark.parametrize("fault", [LockBusy("Nobody answers."), OSError(28, "No space left on device")])
def test_what_the_machine_refuses_is_a_failure_that_the_model_reads(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """A full disk ends no conversation."""

    def refuse(*_: object) -> ToolResult:
        raise fault

    monkeypatch.setitem(registry.TOOLS, "list_files", registry.TOOLS["list_files"].replace(run=refuse))
    said = bench.refused("list_files")
    assert "Nobody answers." in said or "No space left on device" in said


def test_a_long_answer_is_kept_in_a_file_named_by_what_is_in_it(bench: Bench) -> None:
    """Head and tail are shown; the same answer again takes no more room; the file is the whole answer."""
    bench.write("wide.txt", "".join(f"{number:03d} {'x' * 400}\n" for number in range(300)))
    said = [bench.said("grep_files", pattern="x", path="wide.txt") for _ in range(2)]
    assert said[0] == said[1] and len(said[0]) < 9000
    assert said[0].startswith("wide.txt:1:000 x") and "matching lines left out." in said[0]
    (kept,) = bench.results.iterdir()
    data = kept.read_bytes()
    assert kept.name == f"{digest(data)[:16]}.txt" and f"results/{kept.name}" in said[0]
    assert data.decode().startswith(said[0][:4000]) and data.decode().endswith(said[0][-4000:])
    assert data.count(b"wide.txt:") == 200


def test_whoever_follows_the_hint_reads_the_middle_that_was_left_out(bench: Bench) -> None:
    """Also where the answer is one line."""
    said = bench.said("execute", command="head -c 200000 /dev/zero | tr '\\0' x; echo; echo end")
    path = re.findall(r"results/\w+\.txt", said)[0]
    assert "column=2001" in bench.said("read_file", path=path)
    row = bench.said("read_file", path=path, offset=2, column=150_000).split("\t", 1)[1].split("\n")[0]
    assert row == "x" * 50_000


def test_where_nothing_can_be_kept_the_answer_is_cut_and_says_so(bench: Bench) -> None:
    """It is bounded all the same."""
    bench.own.results = ""
    said = bench.said("execute", command="seq 1 100000")
    assert len(said) < 9000 and "could not be kept" in said


def test_an_answer_is_text_that_every_wire_takes(bench: Bench) -> None:
    """No NUL, and nothing that is no Unicode, such as half of a surrogate pair."""
    said = bench.said("execute", command=r"printf 'a\0b\xff\xed\xa0\x80'")
    assert "\0" not in said
    said.encode()
    assert "\\ud800" in bench.refused("read\ud800", path="a")
    bench.refused("read_file", path="\ud800").encode()


def test_descriptions_and_hints_name_only_tools_that_there_are(tmp_path: Path) -> None:
    """A hint at execute where nothing can be executed would cost a turn."""
    for tool in registry.TOOLS.values():
        text = json.dumps([tool.description, tool.parameters])
        named = set(re.findall(r"\b(?:read|write|edit|list|glob|grep|todo|memory|plan|load|agent|task)_[a-z]+", text))
        assert named <= {*registry.TOOLS}, tool.name
    plain = Bench(tmp_path, shell=False)
    plain.write("thing", b"\x7fELF\0\0")
    assert "execute" not in plain.said("read_file", path="thing")


# the page

PAGE = (CHECKOUT / "docs/tools.md").read_text()


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading."""
    body = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in body.split("\n") if row.startswith("| ")][
        1:
    ]


def test_the_page_has_every_tool_with_its_arguments() -> None:
    """docs/tools.md, in the order of the registry."""
    tools = []
    for tool in registry.TOOLS.values():
        needed = tool.parameters.get("required", [])
        more = [name for name in tool.parameters["properties"] if name not in needed]
        given = " ".join([*(f"`{name}`" for name in needed), "·", *(f"`{name}`" for name in more)])
        tools.append([f"`{tool.name}`", given, tool.effects, tool.needs])
    assert [row[:4] for row in table("The tools")] == tools


def test_the_page_has_every_limit_as_it_is() -> None:
    """Each with the name that it has in the code."""
    rows = table("Limits")
    assert len(rows) > 20
    for _, values, places in rows:
        for value, place in zip(values.split(", "), re.findall(r"`(\w+\.\w+)`", places), strict=True):
            module, name = place.split(".")
            assert float(value.replace(",", "")) == getattr(
                importlib.import_module(f"harness.builtin.tools.{module}"), name
            ), place


def test_the_examples_of_the_page_are_what_comes_of_the_calls(bench: Bench) -> None:
    """One after the other, as they stand; only seconds may differ."""
    file = PAGE.split("```python\n", 1)[1].split("```", 1)[0]
    bench.write("greet.py", file)
    examples = PAGE.split("## Examples", 1)[1].split("\n```\n")[2]
    for example in examples.removeprefix("> ").split("\n> "):
        head, _, expected = example.partition("\n")
        name, _, given = head.partition(" ")
        found = bench.call(name, **json.loads(given))
        text = f"{'! ' if found.failed else ''}{found.text}".rstrip("\n")
        assert timeless(text) == timeless(expected.rstrip("\n")), head


def timeless(text: str) -> str:
    """Without how long it took."""
    return re.sub(r"(after|for) [\d.]+ s$|(after|for) [\d.]+ s\.", "in its time", text, flags=re.MULTILINE)


def test_an_image_has_the_type_of_its_bytes_and_what_is_none_is_left_out(bench: Bench) -> None:
    """Whatever a server or a function says it is: vendors look."""
    png = b"\x89PNG\r\n\x1a\n" + bytes(9)
    images = [("image/jpeg", png), ("image/png", b"<svg/>"), ("image/png", b"")]
    look = Tool(name="look", description="d", parameters={}, effects=READS, foreign=True,
                run=lambda session, arguments: ToolResult(text="seen", images=images))  # fmt: skip
    bench.own.extra_tools = [look]
    found = registry.call(bench.own, "look", {})
    assert (found.text, found.images) == ("seen\n[left out: what no model takes as an image]", [("image/png", png)])
