"""Promises of harness/team/turn.py: a turn from the database and the sources to both again, on each engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import LockBusy, UsageFault
from harness.stores.memory import MemoryStore
from harness.team import directory, status
from harness.team.database import Attribution, Team
from harness.team.turn import TurnResult, TurnTask, run_turn
from tests.crash import TORTURE
from tests.team.conftest import ME
from tests.team.workspaces import read, write

ANN = Attribution(who="ann")
ENGINES = ["sqlite", *(["postgresql"] if TORTURE else [])]  # where a turn is the same on each
on_one = pytest.mark.parametrize("empty", ENGINES, indirect=True)


@pytest.fixture
def store() -> MemoryStore:
    """The sources of the thread `deal`."""
    made = MemoryStore()
    write(made, "agents/scribe/AGENTS.md", "# Scribe\n")
    write(made, "spaces/sales/docs/price.md", "10\n")
    return made


class Talk:
    """A thread with its folder on a machine."""

    def __init__(self, team: Team, store: MemoryStore, root: Path) -> None:
        self.team, self.store, self.root, self.prompts = team, store, root, list[str]()

    def turn(self, act: Callable[[Path, list[Callable[..., Any]]], object], message: str = "hello") -> TurnResult:
        """A turn whose agent does this."""

        def answer(task: TurnTask) -> str:
            self.prompts.append(task.prompt)
            act(Path(task.folder), task.tools)
            return "done"

        return run_turn(self.team, self.store, "acme", "deal", str(self.root), message, answer)

    @property
    def folder(self) -> Path:
        """The folder of the thread."""
        (found,) = self.root.iterdir()
        return found


@pytest.fixture
def talk(team: Team, store: MemoryStore, tmp_path: Path) -> Talk:
    """That thread."""
    return Talk(team, store, tmp_path / "deal")


def test_a_turn_changes_sources_and_status(talk: Talk) -> None:
    """Files by reconcile, status by verbs: the projections are those of now, within the turn and after it."""
    with talk.team.transaction("acme") as tx:
        status.add_goal(tx, "deal", "Sign", status.ReviewPolicy(), ANN)
        status.add_task(tx, "G-1", "DocuSign", ANN)

    def act(at: Path, tools: list[Callable[..., Any]]) -> None:
        assert (at / "AGENTS.md").read_text() == "# Scribe\n"
        assert "DocuSign: todo" in (at / "PROGRESS.md").read_text()
        verb = next(one for one in tools if one.__name__ == "task_status")
        assert verb("T-2", "done", "signed")["status"] == "done"
        assert "DocuSign: done" in (at / "PROGRESS.md").read_text()
        (at / "Space/docs/price.md").write_text("12\n")

    made = talk.turn(act)
    assert {one.path: one.outcome for one in made.files} == {"Space/docs/price.md": "accepted"}
    assert read(talk.store, "spaces/sales/docs/price.md") == "12\n"
    assert talk.turn(lambda at, tools: None).files == []
    assert "DocuSign: done" in (read(talk.store, "threads/deal/PROGRESS.md") or "")


@on_one
def test_what_was_not_taken_is_in_the_next_prompt_and_not_in_the_one_after(talk: Talk) -> None:
    """With the reason, also of an edited projection, which changes no row."""

    def act(at: Path, tools: list[Callable[..., Any]]) -> None:
        (at / "GOAL.md").chmod(0o644)
        (at / "GOAL.md").write_text("all done\n")

    assert [one.outcome for one in talk.turn(act).files] == ["refused"]
    for _ in range(2):
        talk.turn(lambda at, tools: None, "go on")
    assert talk.prompts[1].startswith("go on\n\nThe sources did not accept")
    assert "- GOAL.md: refused. It is rendered from the database" in talk.prompts[1]
    assert talk.prompts[2] == "go on"


def test_a_grant_that_is_taken_back_during_a_turn_holds_at_once(talk: Talk) -> None:
    """The change is refused and kept, and the space is not there in the next turn."""

    def act(at: Path, tools: list[Callable[..., Any]]) -> None:
        (at / "Space/docs/price.md").write_text("12\n")
        with talk.team.transaction("acme") as tx:
            directory.grant(tx, "ann", "sales", "", ME)

    (one,) = talk.turn(act).files
    assert (one.outcome, read(talk.store, "spaces/sales/docs/price.md")) == ("refused", "10\n")
    talk.turn(lambda at, tools: None)
    assert not (talk.folder / "workspace/Space").exists()


class Killed(BaseException):
    """Ends a turn where it is raised."""


@on_one
@pytest.mark.parametrize("at_put", range(4))
def test_a_turn_that_is_killed_in_its_finalize_is_ended_by_the_next(talk: Talk, at_put: int) -> None:
    """Once, whatever was written by then."""
    real, count = talk.store.put, [0]

    def put(key: tuple[str, ...], data: bytes, expect: str) -> str:
        count[0] += 1
        if count[0] == at_put + 1:
            raise Killed
        return real(key, data, expect)

    def act(at: Path, tools: list[Callable[..., Any]]) -> None:
        (at / "Space/docs/price.md").write_text("12\n")
        (at / "DECISIONS.md").write_text("- 12\n")
        talk.store.put = put  # type: ignore[method-assign]  # a store that ends the process

    with pytest.raises(Killed):
        talk.turn(act)
    talk.store.put = real  # type: ignore[method-assign]  # as it was
    made = talk.turn(lambda at, tools: None)
    assert (len(made.continued), made.files) == (1, [])
    assert read(talk.store, "spaces/sales/docs/price.md") == "12\n"
    assert read(talk.store, "threads/deal/DECISIONS.md") == "- 12\n"
    assert talk.turn(lambda at, tools: None).continued == []


@on_one
def test_a_late_turn_writes_nothing_more(talk: Talk, tmp_path: Path) -> None:
    """One on another machine has the thread since; in one folder only one turn runs."""
    other = Talk(talk.team, talk.store, tmp_path / "other")

    def act(at: Path, tools: list[Callable[..., Any]]) -> None:
        (at / "Space/docs/price.md").write_text("12\n")
        with pytest.raises(LockBusy, match="is running here"):
            talk.turn(lambda at, tools: None)
        other.turn(lambda at, tools: (at / "Space/docs/price.md").write_text("14\n"))

    with pytest.raises(LockBusy, match="a later turn has the thread"):
        talk.turn(act)
    assert read(talk.store, "spaces/sales/docs/price.md") == "14\n"
    talk.turn(lambda at, tools: None)
    assert (talk.folder / "refused/unfinished/Space/docs/price.md").read_text() == "12\n"


@on_one
def test_what_is_unknown_or_archived_is_refused_before_anything(talk: Talk) -> None:
    """By one line, and no folder is made."""
    with pytest.raises(UsageFault, match="tenant 'none'"):
        run_turn(talk.team, talk.store, "none", "deal", str(talk.root), "hello", lambda _: "")
    with talk.team.transaction("acme") as tx:
        directory.archive(tx, "sales", ME)
    with pytest.raises(UsageFault, match="is archived"):
        talk.turn(lambda at, tools: None)
    assert not talk.root.exists()


@on_one
def test_what_a_finalize_was_about_to_write_is_kept_where_another_machine_ended_it(talk: Talk, tmp_path: Path) -> None:
    """It is set aside in its own folder, not taken for content of a source."""
    other = Talk(talk.team, talk.store, tmp_path / "other")
    real = talk.store.put

    def put(key: tuple[str, ...], data: bytes, expect: str) -> str:
        raise Killed

    def act(at: Path, tools: list[Callable[..., Any]]) -> None:
        (at / "Space/docs/new.md").write_text("new\n")
        talk.store.put = put  # type: ignore[method-assign]  # a store that ends the process

    with pytest.raises(Killed):
        talk.turn(act)
    talk.store.put = real  # type: ignore[method-assign]  # as it was
    assert len(other.turn(lambda at, tools: None).continued) == 1
    talk.turn(lambda at, tools: None)
    assert (talk.folder / "refused/unfinished/Space/docs/new.md").read_text() == "new\n"
