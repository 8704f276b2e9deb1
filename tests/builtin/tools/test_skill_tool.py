"""load_skill: what the conversation was given, and no other."""

from __future__ import annotations

from harness.state.layout import Layout
from harness.workspace.skills import Skill
from harness.workspace.snapshot import WorkspaceSnapshot
from tests.builtin.tools.benches import Bench
from tests.workspace.workspaces import skill


def test_a_skill_and_its_files_are_read(bench: Bench) -> None:
    """As the command does, also where the skill is outside the project."""
    folder = bench.folder / "home/deploy"
    folder.mkdir(parents=True)
    (folder / "more.md").write_text("Beside it.\n")
    made = Skill(name="deploy", description="d", layer="home", path="SKILL.md", folder=str(folder), files=["more.md"],
                 text=skill("deploy", "Push it."))  # fmt: skip
    bench.own.workspace = WorkspaceSnapshot(
        user="", commit="", sections=[], memory=None, told=False, left_out=[], skills=[made], subagents=[], tools=None,
        waiting=[],
    )  # fmt: skip
    bench.own.home = Layout(str(bench.folder / "tree"))
    assert "Push it." in bench.said("load_skill", name="deploy")
    assert bench.said("load_skill", name="deploy", file="more.md") == "Beside it.\n"
    assert "There are: deploy" in bench.refused("load_skill", name="other")
    assert "has no file 'x'" in bench.refused("load_skill", name="deploy", file="x")
