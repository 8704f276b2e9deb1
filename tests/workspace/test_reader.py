"""Texts of a workspace: in the version that counts, from the layers outside, and never one that is too large or not text."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.workspace._reader import MAX_BYTES, WorkspaceReader
from tests.missions import House
from tests.workspace.workspaces import person, skill


def reader(house: House, user: str = "", *more: str) -> WorkspaceReader:
    """What is read at HEAD."""
    return WorkspaceReader(house.layout, house.head(), user, more)


def test_what_is_not_committed_is_not_read(house: House) -> None:
    """Nor what lies beside a skill as a link, nor hidden or unfinished ones of a person's own."""
    person(house, {"skills/x/SKILL.md": skill("x"), "skills/x/a.md": "a\n"})
    (house.project / "skills/x/link").symlink_to("/etc/passwd")
    person(house, {})
    house.write("AGENTS.md", "Not yet.\n")
    home = Path(house.env["HOME"], ".config/harness/skills")
    for name in (".hidden", "_draft", "empty"):
        (home / name).mkdir(parents=True)
    (home / ".hidden/SKILL.md").write_text("nonsense")
    [found] = reader(house).skills()
    assert (found.path, found.beside) == ("skills/x/SKILL.md", ["a.md"])
    assert reader(house).text("AGENTS.md") is None


def test_a_person_s_own_come_first_and_are_shadowed_later(house: House) -> None:
    """In the order of the layers, with the files beside them."""
    home = Path(house.env["HOME"], ".config/harness")
    (home / "skills/x/scripts").mkdir(parents=True)
    (home / "subagents").mkdir()
    (home / "skills/x/SKILL.md").write_text(skill("x"))
    (home / "skills/x/scripts/go.sh").write_text("go\n")
    for name in ("one.md", "README.md", "notes.txt"):
        (home / "subagents" / name).write_text("---\ndescription: d\n---\nDo.\n")
    person(
        house,
        {"skills/x/SKILL.md": skill("x"), "users/al/skills/x/SKILL.md": skill("x"), "subagents/README.md": "no\n"},
    )
    found = reader(house, "al").skills()
    assert [(one.layer, one.name) for one in found] == [("home", "x"), ("project", "x"), ("user", "x")]
    assert found[0].beside == ["scripts/go.sh"]
    assert [(one.layer, one.name) for one in reader(house, "al").subagents()] == [("home", "one")]


def test_what_is_too_large_or_no_text_is_named(house: House) -> None:
    """With its path, and the line of an invalid byte."""
    person(house, {"AGENTS.md": "x" * (MAX_BYTES + 1)})
    with pytest.raises(BrokenFile, match=r"AGENTS.md: 1048577 bytes"):
        reader(house).text("AGENTS.md")
    (house.project / "AGENTS.md").write_bytes(b"one\n\xff\n")
    person(house, {})
    with pytest.raises(BrokenFile, match=r"AGENTS.md, line 2: not UTF-8"):
        reader(house).text("AGENTS.md")


def test_a_project_in_a_folder_of_a_repository_has_its_own(bare: House) -> None:
    """What stands at the top of the repository is not that project's."""
    bare.repository()
    house = House(bare.folder, bare.env, "my project/api")
    house.project.mkdir()
    house.write("SPEC.md")
    bare.write("AGENTS.md", "of the top\n")
    house.write("AGENTS.md", "of the part\n")
    bare.git("add", "-A")
    bare.git("commit", "-qm", "two")
    house.begin()
    assert reader(house).text("AGENTS.md") == "of the part\n"
