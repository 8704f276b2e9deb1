"""Each name is there once, and the layout makes it a path."""

from __future__ import annotations

from harness.state import names
from harness.state.layout import Layout


def test_names_are_below_the_state_and_different() -> None:
    """No name leads out of the folder, and no two are the same."""
    found = [value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)]
    assert len(found) == len(set(found))
    assert all(not value.startswith(("/", "..")) for value in found)


def test_the_layout_has_the_same_files() -> None:
    """Managed and append-only files by path are those by name."""
    layout = Layout("/m")
    assert [path.removeprefix("/m/.harness/") for path in layout.managed()] == list(names.MANAGED)
    assert [path.removeprefix("/m/.harness/") for path in layout.append_only()] == list(names.APPEND_ONLY)
    assert layout.run("7-worker").result == f"/m/.harness/{names.of_run('7-worker', names.RESULT)}"
