"""One module defines every path of a mission, absolute and distinct."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.state import layout, names
from harness.state.layout import Layout, command


def test_all_paths_are_absolute_distinct_and_below_the_state() -> None:
    """The state may be outside the project."""
    for place, state in ((Layout("/p"), "/p/.harness"), (Layout("/p", "/elsewhere"), "/elsewhere")):
        keys = {key for name, key in vars(names).items() if name.isupper() and isinstance(key, str)}
        paths = [place.path(key) for key in keys]
        assert place.state == state
        assert all(path.startswith(state + "/") and os.path.normpath(path) == path for path in paths)
        assert len(set(paths)) == len(paths)


def test_a_relative_project_is_where_we_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later changes of folder do not move it."""
    monkeypatch.chdir(tmp_path)
    assert Layout(".").folders.project == str(tmp_path)
    assert Layout("..", "state").state == str(tmp_path / "state")


def test_a_file_is_live_or_grown_never_both() -> None:
    """Managed files are replaced whole, append-only files only grow; raw.md is open to every writer and neither."""
    place = Layout("/p")
    assert not set(place.managed()) & set(place.append_only())
    assert place.path(names.RAW) not in (*place.managed(), *place.append_only())


def test_locks_lie_together() -> None:
    """A run's lock is outside its folder: an open run is found by its lock alone."""
    place = Layout("/p")
    locks = {
        place.path(names.MISSION_LOCK),
        place.path(names.STATE_LOCK),
        place.path(names.LOOP_LOCK),
        place.run("r").lock,
    }
    assert len(locks) == 4
    assert {os.path.dirname(lock) for lock in locks} == {place.path(names.LOCKS)}


def test_a_runs_files_lie_in_its_folder() -> None:
    """And in no other run's folder."""
    run = Layout("/p").run("1-worker-F")
    assert run.folder == "/p/.harness/runs/1-worker-F"
    others = [path for name, path in vars(run).items() if name not in ("folder", "lock")]
    assert all(os.path.dirname(path) == run.folder for path in others)


@pytest.mark.parametrize(("path", "read"), [("/p/a/b", "a/b"), ("/px/a", "/px/a"), ("/elsewhere", "/elsewhere")])
def test_people_read_paths_from_the_working_folder(path: str, read: str) -> None:
    """If they are below it."""
    assert Layout("/p").folders.relative(path) == read


def test_home_and_identity_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables take precedence; an installed package keeps identity in the user's data folder."""
    monkeypatch.setenv("HARNESS_HOME", "/h")
    monkeypatch.delenv("HARNESS_IDENTITY", raising=False)
    assert (layout.home(), layout.identity_folder()) == ("/h", "/h/identity")
    monkeypatch.setenv("HARNESS_IDENTITY", "/i")
    assert layout.identity_folder() == "/i"
    monkeypatch.delenv("HARNESS_IDENTITY")
    monkeypatch.setenv("HARNESS_HOME", "/site-packages/harness/home")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert layout.identity_folder() == "/data/harness/identity"


def test_without_a_variable_home_is_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder with run.sh and roles/."""
    monkeypatch.delenv("HARNESS_HOME", raising=False)
    assert layout.home() == str(Path(__file__).resolve().parents[2])


def test_identity_files_lie_side_by_side() -> None:
    """One per role."""
    assert layout.identity_file("/i", "worker") == "/i/worker.md"


@pytest.mark.parametrize(
    ("called", "said"),
    [
        (None, "harness status"),
        ("./run.sh", "./run.sh status"),
        ("/home/me/harness/run.sh", "~/harness/run.sh status"),
        ("/opt/harness-1.0/run.sh", "/opt/harness-1.0/run.sh status"),
        ("/home/me/my tools/it's/run.sh", """'/home/me/my tools/it'"'"'s/run.sh' status"""),
    ],
)
def test_a_command_is_told_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch, called: str | None, said: str) -> None:
    """As run.sh was started, shortened below the home folder, quoted if necessary."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("HARNESS_CALLED", raising=False)
    if called:
        monkeypatch.setenv("HARNESS_CALLED", called)
    assert command("status") == said
