"""A session that was damaged: it goes on with what could be read, and nothing of the rest is thrown away."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.builtin.sessions import _session
from harness.builtin.sessions.keys import session_keys
from harness.builtin.sessions.repair import Repair, repair
from tests.agents.modelserver import Server, serving
from tests.builtin.sessions.talking import SESSION, USER, echo, home, log_of, said, state_of, store, texts
from tests.builtin.talking import bodies, calling, steps
from tests.crash import stops

OF = session_keys(USER, SESSION)

pytestmark = pytest.mark.on_disk


def talked(folder: Path, server: Server) -> bytes:
    """A session with four calls; returns its log."""
    said(folder, server, "one", "two", "three", "four")
    return (home(folder) / "log.jsonl").read_bytes()


def goes_on(folder: Path, server: Server) -> None:
    """Another call is answered, and all of the log can be read."""
    assert said(folder, server, "and now")[0].outcome == "ok"
    assert log_of(folder).calls


def test_a_sound_session_stays_as_it_is(tmp_path: Path) -> None:
    """To the byte."""
    with serving(echo) as server:
        talked(tmp_path, server)
        before = {path: path.read_bytes() for path in home(tmp_path).glob("*.json*") if path.name != "gate.json"}
        done = repair(store(tmp_path), OF)
        assert done == Repair(rows=state_of(tmp_path).rows)
        assert all(path.read_bytes() == data for path, data in before.items())


def test_what_was_said_before_a_damage_stays_and_the_rest_is_kept_aside(tmp_path: Path) -> None:
    """Wherever a bit flips or the log is cut: the session goes on, and no byte is lost but by the damage itself."""
    with serving(echo) as server:
        data, path, chosen = talked(tmp_path, server), home(tmp_path) / "log.jsonl", random.Random(5)
        state, rounds = (home(tmp_path) / "state.json").read_bytes(), 12
        for number in range(rounds):
            at = chosen.randrange(len(data))
            bad = data[:at] if number % 3 == 0 else data[:at] + bytes([data[at] ^ 1 << number % 8]) + data[at + 1 :]
            path.write_bytes(bad)
            (home(tmp_path) / "state.json").write_bytes(state)
            with pytest.raises(BrokenFile, match="sessions repair"):
                _session.load(store(tmp_path), OF, "helper")
            whole = data[: data.rfind(b"\n", 0, at) + 1]
            if b'"text":"one"' not in whole:  # nothing says what is lost, but the state says whose it is
                assert repair(store(tmp_path), OF).fault
                continue
            done = repair(store(tmp_path), OF)
            assert path.read_bytes().startswith(whole) and (done.lost > 0) == (len(bad) > len(whole))
            assert done.rows + done.missing == data.count(b"\n")
            assert not done.lost or bad.endswith(Path(done.aside).read_bytes())
            goes_on(tmp_path, server)
            assert texts(tmp_path)[0] == "one"


@pytest.mark.parametrize("text", [None, b"", b"{", b'{"format": 2}'])
def test_a_state_that_is_lost_or_torn_is_made_again_from_the_log(tmp_path: Path, text: bytes | None) -> None:
    """With what lists of sessions show, and what was used; also where the row of the gate is torn."""
    with serving(echo) as server:
        talked(tmp_path, server)
        before = state_of(tmp_path)
        path = home(tmp_path) / "state.json"
        path.unlink() if text is None else path.write_bytes(text)
        (home(tmp_path) / "gate.json").write_bytes(b"{")
        done = repair(store(tmp_path), OF)
        assert (done.lost, done.missing, done.rows) == (0, 0, before.rows)
        same = ("user", "session", "agent", "calls", "turns", "rows", "used")
        after = state_of(tmp_path)
        assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
        assert {**after.newest, "ended": ""} == {**before.newest, "ended": ""}
        goes_on(tmp_path, server)


def test_a_tool_call_whose_result_is_lost_has_one_in_the_next_request(tmp_path: Path) -> None:
    """Vendors refuse a request with a call that has no result."""
    with serving(steps(calling("todo_write", {"todos": [{"content": "a", "status": "pending"}]}))) as server:
        said(tmp_path, server, "plan it")
        path = home(tmp_path) / "log.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"role":"tool"', b'"role":"tuul"', 1))
        assert repair(store(tmp_path), OF).lost
        goes_on(tmp_path, server)
        results = [one["content"] for one in bodies(server)[-1]["messages"] if one["role"] == "tool"]
    assert len(results) == 1 and "the process ended" in results[0]
    assert [one.outcome for one in log_of(tmp_path).calls.values()] == ["killed", "ok"]


@pytest.mark.parametrize("number", [1, 99])
def test_a_session_of_another_format_is_refused_and_not_repaired(tmp_path: Path, number: int) -> None:
    """Older or newer: this harness would misread its rows."""
    with serving(echo) as server:
        talked(tmp_path, server)
        path = home(tmp_path) / "state.json"
        path.write_bytes(path.read_bytes().replace(b'"format":2', b'"format":%d' % number))
        before = {one: one.read_bytes() for one in home(tmp_path).glob("*.jsonl")}
        for refused in (lambda: said(tmp_path, server, "more"), lambda: repair(store(tmp_path), OF)):
            with pytest.raises(BrokenFile, match=f"it has format {number}, and this harness reads format 2"):
                refused()
        assert before == {one: one.read_bytes() for one in home(tmp_path).glob("*.jsonl")}


def test_a_log_that_is_gone_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    """It has forgotten what was said, and says how many rows are lost."""
    with serving(echo) as server:
        talked(tmp_path, server)
        rows = state_of(tmp_path).rows
        (home(tmp_path) / "log.jsonl").unlink()
        assert repair(store(tmp_path), OF).missing == rows
        goes_on(tmp_path, server)
    with pytest.raises(UsageFault, match="no session none"):
        repair(store(tmp_path), session_keys(USER, "none"))


def test_a_repair_that_is_stopped_at_any_call_is_finished_by_another(tmp_path: Path) -> None:
    """What was lost is aside, once or twice; the session goes on."""
    with serving(echo) as server:
        bad = talked(tmp_path, server).replace(b"three", b"thr33", 1)
        state = (home(tmp_path) / "state.json").read_bytes()

        def damaged_and_repaired() -> None:
            (home(tmp_path) / "log.jsonl").write_bytes(bad)
            (home(tmp_path) / "state.json").write_bytes(state)
            repair(store(tmp_path), OF)

        for number in stops(damaged_and_repaired):
            repair(store(tmp_path), OF)
            aside = [path.read_bytes() for path in (home(tmp_path) / "damaged").glob("*.jsonl")]
            assert b"thr33" in b"".join(aside) or number < 4
            goes_on(tmp_path, server)
        assert number > 4
