"""Sessions of format 1 are read, and go on in the newest format with all that they had."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from harness.builtin.sessions import _session, log, recall, state
from harness.builtin.sessions.keys import session_keys
from harness.builtin.sessions.repair import repair
from harness.state.layout import Layout
from harness.workspace import grants
from tests.agents.modelserver import Reply, serving
from tests.builtin.sessions.talking import home, log_of, said, state_of, store, texts
from tests.builtin.talking import bodies
from tests.crash import stops

ARCHIVE = Path(__file__).parent / "s1/sessions.tar.gz"
OF = session_keys("alice", "s")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the golden sessions."""
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(tmp_path, filter="data")
    grants.of_state(layout := Layout(str(tmp_path))).accept(layout)
    return tmp_path


def test_what_only_reads_shows_all_of_a_session_and_changes_nothing(folder: Path) -> None:
    """Calls, what was said, the list."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    known = store(folder)
    calls = log.whole(known, OF).calls
    assert [one.outcome for one in calls.values()] == ["ok"] * 7 and calls[1].message == "first: note the heron"
    assert any("message 5 about the river" in one.text for one in recall.messages(known, OF))
    assert log.whole(known, session_keys("Bob", "../odd ID")).calls[1].message == "of another"
    assert [(one.session, one.newest["outcome"]) for one in state.of_user(known, "alice")] == [("s", "unknown")]
    assert len(state.of_user(known)) == 2
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_session_goes_on_with_all_that_it_had(folder: Path) -> None:
    """Summary, todo list, rule, memory and file; its log is a chain, and the next request has what the one before had."""
    old, said_before = state_of(folder), texts(folder)
    with serving(lambda _: Reply("answer")) as server:
        (reply,) = said(folder, server, "and now")
        assert (reply.outcome, reply.call) == ("ok", 8)
        sent = bodies(server)[0]["messages"]
    assert (
        "The person likes herons." in sent[0]["content"]
        and "A summary: the person wants a heron." in sent[1]["content"]
    )
    assert sent[-2]["content"] == "Done, and said ä." and sent[-1]["content"] == "and now"
    new = state_of(folder)
    same = ("user", "session", "agent", "created", "compactions", "summary", "kept")
    assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
    assert new.format == state.FORMAT and new.rows and len(log_of(folder).calls) == 8
    assert texts(folder) == [*said_before, "and now"]
    assert (folder / ".harness/sessions/alice/_files/heron.txt").read_text() == "grey\n"
    assert state.of_user(store(folder))[0].newest["words"] == "and now"
    assert not repair(store(folder), OF).fault


def test_an_upgrade_that_is_stopped_at_any_call_is_finished_by_the_next(folder: Path) -> None:
    """The log is of format 1 or 2, the state too, and every pair of them is read."""
    files = {name: (home(folder) / name).read_bytes() for name in ("log.jsonl", "state.json")}
    calls = log_of(folder).calls

    def again() -> None:
        for name, data in files.items():
            (home(folder) / name).write_bytes(data)
        _session.load(store(folder), OF, "helper")

    for number in stops(again):
        assert len(log_of(folder).calls) == len(calls)
        one = _session.load(store(folder), OF, "helper")
        assert one.talk.turn == 10 and one.state.format == state.FORMAT and number
    assert number > 3


@pytest.mark.parametrize("at", [0.3, 0.9])
def test_a_damaged_session_of_format_1_is_named_and_repaired(folder: Path, at: float) -> None:
    """Up to the damage."""
    path = home(folder) / "log.jsonl"
    data = path.read_bytes()
    place = data.index(b'"text":', int(len(data) * at)) + 9
    path.write_bytes(data[:place] + b"~" + data[place + 1 :])
    done = repair(store(folder), OF)
    assert "line" in done.fault and done.lost > 0
    with serving(lambda _: Reply("answer")) as server:
        assert said(folder, server, "and now")[0].outcome == "ok"
