"""Sessions whose rows have the digest of the row before are read, searched, replayed and repaired, and go on."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.builtin.sessions import log, recall, rule_changes, state, turn_replay
from harness.builtin.sessions.keys import SessionKeys, session_keys
from harness.builtin.sessions.repair import repair
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileContent, Filesystem
from harness.memory import user_memory
from harness.state.layout import Layout
from harness.stores import log as logs
from harness.stores.disk import DiskStore
from harness.stores.store import Store, StoreKey
from harness.stores.urls import open_store
from harness.workspace import grants
from tests.agents.modelserver import Reply, serving
from tests.builtin.sessions.talking import disk, said
from tests.builtin.talking import bodies

ARCHIVE = Path(__file__).parent / "s3/sessions.tar.gz"
OF, CUT, BOB = session_keys("alice", "s"), session_keys("alice", "cut"), session_keys("Bob", "../odd ID")
OUTCOMES = {OF: ["ok"] * 7, CUT: ["ok", "interrupted", "killed"], BOB: ["ok"]}
ALL = pytest.mark.parametrize("keys", [OF, CUT, BOB], ids=["s", "cut", "bob"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the golden sessions."""
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(tmp_path, filter="data")
    grants.of_state(layout := Layout(str(tmp_path))).accept(layout)
    return tmp_path


@pytest.fixture(params=["disk", "sqlite"])
def known(request: pytest.FixtureRequest, folder: Path) -> Store:
    """Where the sessions are."""
    return disk(folder) if request.param == "disk" else open_store(f"sqlite://{folder}/sessions.db")


def state_of(known: Store, keys: SessionKeys = OF) -> state.AgentState:
    """The state of a session."""
    found, _ = state.load(known, keys)
    assert found is not None
    return found


def flip(known: Store, keys: SessionKeys, before: bytes, after: bytes) -> int:
    """Change the first of these bytes in the log; returns the number of the line."""
    data = logs.read(known, keys.log).data
    for key in (keys.log, *known.list(keys.log)):
        value = known.get(key)
        if value is not None and before in value.data:
            known.put(key, value.data.replace(before, after, 1), value.version)
            break
    return data.count(b"\n", 0, data.index(before)) + 1


@ALL
def test_what_only_reads_shows_all_of_a_session_and_changes_nothing(known: Store, keys: SessionKeys) -> None:
    """Calls, messages, the state, the list."""
    before = logs.read(known, keys.log).data, known.get(keys.state)
    assert [one.outcome for one in log.whole(known, keys).calls.values()] == OUTCOMES[keys]
    assert (state_of(known, keys).user, state_of(known, keys).rows > 0) == (keys.user, True)
    assert {one.role for one in recall.messages(known, keys)} >= {"user", "assistant"}
    assert {(one.user, one.session) for one in state.of_user(known)} == {(one.user, one.session) for one in OUTCOMES}
    assert before == (logs.read(known, keys.log).data, known.get(keys.state))


def test_a_search_finds_what_was_said_to_this_user(known: Store) -> None:
    """Also what a summary replaced."""
    found = recall.search(known, "alice", "message river", 20)
    assert {f"Person: message {number} about the river" for number in range(6)} <= {one.text for one in found}
    assert not recall.search(known, "alice", "another", 20)


@ALL
def test_every_request_is_made_again_byte_for_byte(known: Store, keys: SessionKeys) -> None:
    """Those of a call that was cut off, too."""
    numbers = [*log.whole(known, keys).turns.turns]
    assert numbers == [*range(1, len(numbers) + 1)] and numbers
    for number in numbers:
        seen, again = turn_replay.turn(known, keys, number)
        assert again is not None and (again.equal or again.by != seen.by)  # another library may make other bytes


def test_a_session_goes_on_with_all_that_it_had(known: Store, folder: Path) -> None:
    """Summary, todo list, rule, memory and file; the rows that were there stay as they are."""
    old, rows = state_of(known), logs.read(known, OF.log).data
    with serving(lambda _: Reply("answer")) as server:
        replies = said(folder, server, "and now", store=known) + said(folder, server, "and then", store=known)
        sent = bodies(server)[-1]["messages"]
    assert [(one.outcome, one.call) for one in replies] == [("ok", 8), ("ok", 9)]
    assert "The person draws herons." in sent[0]["content"] and "The person wants a heron." in sent[1]["content"]
    assert [one["content"] for one in sent[-3:]] == ["and now", "answer", "and then"]
    new = state_of(known)
    same = ("user", "session", "agent", "created", "compactions", "summary", "kept")
    assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
    assert new.kept["todo"] == [{"content": "draw the heron", "status": "in_progress"}]
    assert rule_changes.known(known, OF)["allow"] == ["write_file(heron.txt)"]
    assert logs.read(known, OF.log).data.startswith(rows) and len(log.whole(known, OF).calls) == 9
    memory = user_memory.texts(StoreKey(known, OF.memory))
    assert "The person likes herons. (replaced" in str(memory)  # in its archive
    files: Filesystem = KeyValueFiles(known, OF.files)
    if isinstance(known, DiskStore):
        files = Local(known.path(OF.files))
    heron = files.read("heron.txt")
    assert isinstance(heron, FileContent) and heron.data == b"grey\n"
    assert not repair(known, OF).fault


def test_a_call_that_was_killed_is_closed_and_the_session_goes_on(known: Store, folder: Path) -> None:
    """The model reads that its tool may have done something."""
    with serving(lambda _: Reply("answer")) as server:
        (reply,) = said(folder, server, "and now", session="cut", store=known)
        (result,) = [one["content"] for one in bodies(server)[0]["messages"] if one["role"] == "tool"]
    assert (reply.outcome, reply.call) == ("ok", 4) and "the process ended" in result
    assert [one.outcome for one in log.whole(known, CUT).calls.values()] == [*OUTCOMES[CUT], "ok"]


@ALL
def test_a_session_without_damage_is_not_changed_by_a_repair(known: Store, keys: SessionKeys) -> None:
    """To the byte."""
    before = logs.read(known, keys.log).data, known.get(keys.state)
    done = repair(known, keys)
    assert (done.fault, done.lost, done.missing) == ("", 0, 0)
    assert before == (logs.read(known, keys.log).data, known.get(keys.state))


def test_a_damaged_session_is_named_with_its_line_and_repaired(known: Store, folder: Path) -> None:
    """What was said before the damage and after the compaction behind it stays; the rest is kept beside it."""
    line = flip(known, OF, b"message 1 about", b"message 7 about")
    with pytest.raises(BrokenFile) as raised:
        log.whole(known, OF)
    assert raised.value.line == line
    done = repair(known, OF)
    assert f"line {line}" in done.fault and done.lost > 0 and done.missing > 0
    assert any(
        b"message 7 about" in value.data for key in known.list((*OF.top, "damaged")) if (value := known.get(key))
    )
    with serving(lambda _: Reply("answer")) as server:
        assert said(folder, server, "and now", store=known)[0].outcome == "ok"
        sent = bodies(server)[0]["messages"]
    assert "The person wants a heron." in sent[1]["content"] and sent[-3]["content"] == "message 5 about the river"
    texts = [one.text for one in recall.messages(known, OF)]
    assert "Person: use your tools" in texts and "Person: and now" in texts and not repair(known, OF).fault
