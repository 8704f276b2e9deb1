"""CLAUDE.md imports files of the project, each once, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.state.layout import Layout
from harness.workspace import _imports
from harness.workspace._reader import WorkspaceReader
from harness.workspace.disk_reader import DiskReader
from tests.missions import House
from tests.workspace.workspaces import person

TEXT = """# Rules

- @docs/a.md, and @docs/a.md again; mail to ann@example.org.
Not `see @docs/code.md`, nor ``no @docs/code.md `x` ``.

```
@docs/code.md
```
    @docs/code.md

@../outside.md @~/home.md @/etc/passwd @docs/gone.md @docs/link.md @docs/inside.md @linked/passwd @docs
"""


@pytest.fixture(params=["git", "disk"])
def house_of(request: pytest.FixtureRequest, house: House) -> tuple[House, bool]:
    """A project, and whether its commits count."""
    (house.project.parent / "outside.md").write_text("Out.\n")
    return house, request.param == "git"


def read(of: tuple[House, bool]) -> tuple[dict[str, str], list[str]]:
    """What CLAUDE.md brings, and what is left out."""
    house, committed = of
    left: list[str] = []
    if committed:
        return _imports.read(WorkspaceReader(house.layout, house.head(), "", ()), left), left
    return _imports.read(DiskReader(Layout(str(house.project)), "", "", (), {}), left), left


def test_a_file_of_the_project_is_read_once_and_any_other_is_left_out_with_a_line(house_of: tuple[House, bool]) -> None:
    """Missing ones, folders, links that lead out, also by a folder; code is no import."""
    house, _ = house_of
    (house.project / "docs").mkdir()
    (house.project / "docs/link.md").symlink_to(house.project.parent / "outside.md")
    (house.project / "docs/inside.md").symlink_to("b.md")
    (house.project / "linked").symlink_to("/etc")
    person(house, {"CLAUDE.md": TEXT, "docs/a.md": "A, @b.md\n", "docs/b.md": "B, @../CLAUDE.md @a.md\n",
                   "docs/code.md": "no\n"})  # fmt: skip
    found, left = read(house_of)
    assert [*found] == ["CLAUDE.md", "docs/a.md", "docs/inside.md", "docs/b.md"]
    assert found["docs/inside.md"] == found["docs/b.md"] == "B, @../CLAUDE.md @a.md\n"
    named = [line.split(" is not")[0].replace("CLAUDE.md: ", "") for line in left]
    assert named[:4] == ["@../outside.md", "@~/home.md", "@/etc/passwd", "@docs/gone.md"]
    assert "docs/link.md: the link leads to" in named[4] and named[5:] == ["@linked/passwd", "@docs"]


def test_imports_end_after_five_steps(house_of: tuple[House, bool]) -> None:
    """With a line for the first that is left out; a CLAUDE.md of imports alone has no text of its own."""
    house, _ = house_of
    chain = {f"{number}.md": f"{number} @{number + 1}.md\n" for number in range(1, 8)}
    person(house, {"CLAUDE.md": "@1.md\n", **chain})
    found, left = read(house_of)
    assert [*found] == ["CLAUDE.md", *(f"{number}.md" for number in range(1, 6))] and found["CLAUDE.md"] == ""
    assert left == ["5.md: @6.md is more than 5 imports away"]


def test_without_the_file_nothing_is_read(house_of: tuple[House, bool]) -> None:
    """And nothing is said."""
    assert read(house_of) == ({}, [])


def test_a_file_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """Such a one is no reason not to work."""
    (tmp_path / "CLAUDE.md").write_bytes(b"\xff")
    left: list[str] = []
    assert _imports.read(DiskReader(Layout(str(tmp_path)), "", "", (), {}), left) == {}
    assert len(left) == 1 and left[0].startswith("CLAUDE.md, line 1: not UTF-8")


def test_what_is_neither_written_like_a_path_nor_there_is_no_import(house_of: tuple[House, bool]) -> None:
    """A package or a person with an @ stays what it is: text, without a line."""
    house, _ = house_of
    text = "Types are in @types/node, by @ann and @org/team. See @LICENSE, @./gone, @a/gone.md.\n"
    person(house, {"CLAUDE.md": text, "LICENSE": "Free.\n"})
    assert read(house_of) == (
        {"CLAUDE.md": text, "LICENSE": "Free.\n"},
        [f"CLAUDE.md: @{name} is not a file of the project" for name in ("./gone", "a/gone.md")],
    )
    person(house, {"CLAUDE.md": "@types/node\n"})
    assert read(house_of) == ({"CLAUDE.md": "@types/node\n"}, [])
    person(house, {"CLAUDE.md": "@LICENSE\n"})
    assert read(house_of) == ({"CLAUDE.md": "", "LICENSE": "Free.\n"}, [])
