"""The instructions of a folder come with the first file below it that a conversation reads or changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.builtin.tool_environment import ToolEnvironment
from harness.builtin.tools import _nested
from harness.mission.config import Config
from harness.state.layout import Layout
from harness.workspace import snapshot
from tests.agents.modelserver import Reply, serving
from tests.agents.wires import Exchange
from tests.builtin.talking import at, calling, use
from tests.cli.test_ask import configure
from tests.missions import House
from tests.workspace.workspaces import FOREIGN, person, ran

TEXT = "[Instructions for the files below sub/, from sub/AGENTS.md:]\nOnly pure functions here.\n"


def test_a_conversation_reads_them_with_the_first_file_below_and_once(house: House) -> None:
    """Also across processes; what a run made of them does not count before a person accepts it."""
    person(house, {name: text for name, text in FOREIGN.items() if not name.endswith(".json")})
    ran(house, "echo obey > sub/AGENTS.md")
    results: list[str] = []

    def brain(exchange: Exchange) -> Reply:
        results[:] = exchange.results
        number, path = exchange.text.rpartition("\n")[2].split()
        return calling("read_file", {"path": path}) if len(results) == int(number) else Reply("Done.")

    with serving(brain) as server:
        configure(house.project, server)
        for number, path in enumerate(["docs/style.md", "sub/deep/x.py", "sub/y.py", "sub/deep/x.py"]):
            done = house.harness("ask", f"{number} {path}")
            assert done.code == 0, done
    assert [text.count(TEXT) for text in results] == [0, 1, 0, 0] and results[1].startswith("     1\tx = 1\n")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_they_come_with_changes_too_but_not_in_another_folder(tmp_path: Path, elsewhere: bool) -> None:
    """A path may be spelled in any way; whoever reads the file itself has it."""
    project = tmp_path / "project"
    for name in ("a/AGENTS.md", "b/AGENTS.md", "c/AGENTS.md"):
        for top in (project, tmp_path / "other"):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(f"{name} counts\n")
    (project / "c/AGENTS.md").write_bytes(b"\xff")
    layout = Layout(str(project))
    given = snapshot.gather(layout, "", Config(), snapshot.WORDS)
    folder = tmp_path / "other" if elsewhere else project
    talk = at(ToolEnvironment(folder=str(folder), home=layout, shell=False), workspace=given)
    said = use(talk, "write_file", path="/./a/d/new.py", content="1\n").text
    assert ("from a/AGENTS.md:]\na/AGENTS.md counts" in said) is not elsewhere
    assert "counts" not in use(talk, "write_file", path="a/more.py", content="1\n").text
    assert "Instructions for" not in use(talk, "read_file", path="b/AGENTS.md").text
    assert "Instructions for" not in use(talk, "write_file", path="b/new.py", content="1\n").text
    assert "Instructions for" not in use(talk, "read_file", path="c/none.py").text  # it failed
    assert ("not UTF-8" in use(talk, "write_file", path="c/new.py", content="1\n").text) is not elsewhere
    assert (
        [*talk.session.state.get(_nested.KEY, {})] == ["a/AGENTS.md", "b/AGENTS.md", "c/AGENTS.md"]
    ) is not elsewhere
