"""The record of a subagent's task: kept beside its turns, sealed with the run, and read back in order."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.mission import runs, tasks
from harness.mission.tasks import Task
from harness.state.layout import Layout

MADE = Task(
    id="scout-1", agent="scout", parent="", depth=1, mode="shared", folder="/x", model="m", asked=["Find it."],
    at="2026-01-01T00:00:00Z",
)  # fmt: skip


def _keep(folder: str, task: Task) -> None:
    path = Path(tasks.path_of(folder, task.id))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tasks.dumped(task))


def test_records_come_back_in_the_order_of_their_beginning(tmp_path: Path) -> None:
    """Ten after nine."""
    folder = str(tmp_path / "tasks")
    assert tasks.of_run(folder) == []
    made = [MADE.replace(id=f"scout-{number}") for number in (10, 9, 1)]
    for one in made:
        _keep(folder, one)
    assert tasks.of_run(folder) == made[::-1]


def test_a_text_of_any_length_is_kept_cut(tmp_path: Path) -> None:
    """The whole is in the turns."""
    _keep(str(tmp_path), MADE.replace(asked=["x" * 2 * tasks.MAX_TEXT_CHARS]))
    assert len(tasks.of_run(str(tmp_path))[0].asked[0]) == tasks.MAX_TEXT_CHARS


@pytest.mark.parametrize("text", ["{}", "[]", '{"id": 5}', "{"])
def test_a_record_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    """Never is it taken for no task."""
    _keep(str(tmp_path), MADE)
    Path(tasks.path_of(str(tmp_path), MADE.id)).write_text(text)
    with pytest.raises(BrokenFile, match=r"task\.json"):
        tasks.of_run(str(tmp_path))


def test_the_run_digest_covers_the_records_and_not_the_turns(tmp_path: Path) -> None:
    """A run without subagents has the digest that it had in older versions; the turns go with `gc`."""
    run = Layout(str(tmp_path)).run("1-worker")
    Path(run.folder).mkdir(parents=True)
    before = runs.seal(run)
    Path(run.tasks).mkdir()
    assert runs.seal(run) == before
    _keep(run.tasks, MADE)
    sealed = runs.seal(run)
    assert sealed != before
    (Path(run.tasks) / MADE.id / "turns.jsonl").write_text("{}\n")
    assert runs.seal(run) == sealed
    _keep(run.tasks, MADE.replace(reply="Mine."))
    assert runs.seal(run) != sealed


def test_what_a_kill_left_at_work_has_ended_with_its_run(tmp_path: Path) -> None:
    """Nothing else changes; a file that is no record does not stop the run's end."""
    folder = str(tmp_path)
    _keep(folder, MADE)
    _keep(folder, MADE.replace(id="scout-2", status="ok", reply="Mine."))
    _keep(folder, MADE.replace(id="scout-3"))
    Path(tasks.path_of(folder, "scout-3")).write_text("{")
    tasks.end_all(folder)
    assert Path(tasks.path_of(folder, "scout-3")).read_text() == "{"
    shutil.rmtree(tmp_path / "scout-3")
    one, two = tasks.of_run(folder)
    assert (one.status, one.reason, bool(one.ended)) == ("ended", "its run was cut off", True)
    assert two == MADE.replace(id="scout-2", status="ok", reply="Mine.")
