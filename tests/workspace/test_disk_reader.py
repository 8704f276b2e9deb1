"""A workspace in a folder without git."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.mission.config import Config
from harness.state.layout import Layout
from harness.workspace import disk_reader, snapshot


def test_what_is_on_disk_counts_with_its_skills_and_their_files(tmp_path: Path) -> None:
    """Nothing waits for anybody; hidden files and folders that are links are left out."""
    for name, text in {
        "AGENTS.md": "Say please.\n",
        "knowledge/KNOWLEDGE.md": "Herons.\n",
        "knowledge/deep/more.md": "More.\n",
        "knowledge/.hidden.md": "No.\n",
        "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: how to\n---\nSo.\n",
        "skills/deploy/run.sh": "true\n",
        "tools.json": '{"deny": ["execute"]}',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "knowledge/out").symlink_to("/etc")
    layout = Layout(str(tmp_path))
    waits = snapshot.gather(layout, "", Config(), snapshot.WORDS, user="")
    assert waits.skills == [] and waits.grants.rows == ["skill deploy: run.sh"]
    waits.grants.accept(layout)
    found = snapshot.gather(layout, "", Config(), snapshot.WORDS, user="")
    assert [one.kind for one in found.sections] == ["instructions", "skills", "knowledge", "knowledge"]
    assert "deep/more.md" in found.sections[3].text and "hidden" not in found.sections[3].text
    assert found.tools is not None and found.tools.deny == ["execute"] and found.waiting == []
    assert snapshot.body(layout, found, "deploy").endswith("- run.sh\n")
    assert snapshot.resource(layout, found, "deploy", "run.sh") == "true\n"


def test_a_link_leads_to_a_file_of_the_folder_or_is_refused(tmp_path: Path) -> None:
    """One that leads out is no way to read other files."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/rules.md").write_text("Rules.\n")
    (tmp_path / "AGENTS.md").symlink_to("docs/rules.md")
    layout = Layout(str(tmp_path))
    assert snapshot.gather(layout, "", Config(), snapshot.WORDS).sections[0].text == "Rules.\n"
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").symlink_to("/etc/passwd")
    with pytest.raises(BrokenFile, match="not a file of the folder"):
        snapshot.gather(layout, "", Config(), snapshot.WORDS)


def test_a_stamp_changes_with_any_file_and_with_nothing_else(tmp_path: Path) -> None:
    """Looking is no change."""
    folder = tmp_path / "skills/deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("a")
    first = disk_reader.stamp([str(tmp_path / "skills"), str(tmp_path / "none")])
    assert disk_reader.stamp([str(tmp_path / "skills"), str(tmp_path / "none")]) == first
    (folder / "more.md").write_text("b")
    assert disk_reader.stamp([str(tmp_path / "skills")]) != first


def test_files_of_folders_are_found_without_git(tmp_path: Path) -> None:
    """Those near the top first; none in hidden or linked folders, nor in what a package manager put there."""
    for name in ("b/c/AGENTS.md", "d/AGENTS.md", ".hidden/AGENTS.md", "node_modules/x/AGENTS.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "linked").symlink_to("d")
    found = snapshot.gather(Layout(str(tmp_path)), "", Config(), snapshot.WORDS)
    assert found.nested == ["d/AGENTS.md", "b/c/AGENTS.md"]
    assert snapshot.nested_text(Layout(str(tmp_path)), found, "d/AGENTS.md", 100) == "d/AGENTS.md\n"


def test_a_linked_folder_above_a_place_leads_nowhere_else(tmp_path: Path) -> None:
    """`.agents` as a link out of the folder is named, and nothing behind it is read; one within the folder is."""
    for top in ("elsewhere", "project/shared"):
        (tmp_path / top / "skills/x").mkdir(parents=True)
        (tmp_path / top / "skills/x/SKILL.md").write_text("---\nname: x\ndescription: d\n---\nSo.\n")
    layout = Layout(str(tmp_path / "project"))
    for target, names in (("../elsewhere", []), ("shared", ["x"])):
        (tmp_path / "project/.agents").symlink_to(target)
        found = snapshot.gather(layout, "", Config(), snapshot.WORDS)
        assert [one.name for one in found.skills] == names
        assert bool(snapshot.unused(layout, "", Config())) == (not names)
        (tmp_path / "project/.agents").unlink()
