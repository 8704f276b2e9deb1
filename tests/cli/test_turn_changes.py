"""What the file tools changed in a turn, and how it is put back."""

from __future__ import annotations

from pathlib import Path

from harness.builtin.tools.tool import ToolResult
from harness.cli._turn_changes import TurnChanges

OK = ToolResult(text="")


def changed(changes: TurnChanges, folder: Path, name: str, text: str, tool: str = "write_file") -> None:
    """A call of a tool that writes this."""
    hooks = changes.hooks
    assert hooks.before_tool and hooks.after_tool
    assert hooks.before_tool(tool, {"path": name}) is None
    (folder / name).write_text(text)
    hooks.after_tool(tool, {"path": name}, OK)


def test_undo_puts_back_what_is_as_the_turn_left_it(tmp_path: Path) -> None:
    """A new file goes, a changed one is as before the turn, what a person changed since stays; once."""
    for name in ("old.txt", "mine.txt"):
        (tmp_path / name).write_text("one\n")
    (tmp_path / "old.txt").chmod(0o750)
    changes = TurnChanges(str(tmp_path))
    changed(changes, tmp_path, "new.txt", "new\n")
    changed(changes, tmp_path, "old.txt", "two\n")
    changed(changes, tmp_path, "old.txt", "three\n", "edit_file")
    changed(changes, tmp_path, "mine.txt", "two\n")
    assert "-one\n+three" in changes.diff() and "--- /dev/null\n+++ new.txt" in changes.diff()
    (tmp_path / "mine.txt").write_text("mine\n")
    assert changes.undo() == ["new.txt is removed again.", "old.txt is as it was.",
                              "mine.txt has changed since and is left as it is."]  # fmt: skip
    assert not (tmp_path / "new.txt").exists() and (tmp_path / "mine.txt").read_text() == "mine\n"
    assert (tmp_path / "old.txt").read_text() == "one\n" and (tmp_path / "old.txt").stat().st_mode & 0o777 == 0o750
    assert changes.undo() == [] and changes.diff() == ""


def test_a_path_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """Nor a call that changed nothing."""
    inside = tmp_path / "in"
    inside.mkdir()
    changes = TurnChanges(str(inside))
    changed(changes, inside, "../out.txt", "x")
    assert changes.hooks.before_tool and changes.hooks.before_tool("write_file", {"path": "a"}) is None
    assert changes.undo() == [] and (tmp_path / "out.txt").exists()
