"""What a program reads and changes of sessions between their calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from harness import AgentState, Store
from harness.base.errors import BrokenFile, UsageFault
from harness.builtin.sessions.upkeep import Sessions
from harness.stores.store import Key
from tests.builtin.sessions.talking import store
from tests.builtin.simulating import Program


def texts(program: Program, session: str = "default") -> list[str]:
    """What was said in a session."""
    return [one.text for one in program.sessions.messages(session)]


def test_messages_are_whole_and_of_both_sides(tmp_path: Path) -> None:
    """The default session of the default user; a long text is not cut."""
    long = "word " * 2000
    with Program(tmp_path, "first", "second", store=store(tmp_path)) as program:
        program.call_sync(long)
        program.call_sync("and?")
        found = program.sessions.messages()
    assert [(one.role, one.text) for one in found] == [
        ("user", long), ("assistant", "first"), ("user", "and?"), ("assistant", "second")]  # fmt: skip
    assert [one.session for one in program.sessions.all()] == ["default"]


def test_a_fork_goes_on_by_itself_and_a_renamed_session_as_before(tmp_path: Path) -> None:
    """Both know what was said; another session is not overwritten."""
    with Program(tmp_path, "one", "two", "three", "four", store=store(tmp_path)) as program:
        program.call_sync("a")
        program.sessions.fork("copy")
        program.call_sync("b", session_id="copy")
        program.sessions.rename("main")
        program.call_sync("c", session_id="main")
        assert texts(program, "copy") == ["a", "one", "b", "two"] and texts(program, "main") == [
            "a",
            "one",
            "c",
            "three",
        ]
        with pytest.raises(UsageFault, match="already"):
            program.sessions.rename("copy", "main")
        with pytest.raises(UsageFault, match="There is no session default"):
            program.sessions.messages()
        program.call_sync("new")
    assert [one["text"] for one in program.simulated.requests[-1].messages] == ["new"]


class Killed(BaseException):
    """The end of the process."""


class BreakingStore:
    """A store whose process is killed before the write with this number."""

    def __init__(self, store: Store, at: int) -> None:
        self.store, self.left = store, at
        self.get, self.list, self.describe = store.get, store.list, store.describe

    def _step(self, key: Key) -> None:
        if key[-1] == "gate.json":  # a dead process holds no place
            return
        self.left -= 1
        if self.left < 0:
            raise Killed

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """See Store."""
        self._step(key)
        return self.store.put(key, data, expect)

    def delete(self, key: Key, expect: str) -> None:
        """See Store."""
        self._step(key)
        self.store.delete(key, expect)


@pytest.mark.parametrize("verb", ["fork", "rename", "delete"])
def test_a_kill_at_any_write_loses_nothing_and_the_change_can_be_made_again(tmp_path: Path, verb: str) -> None:
    """The session is whole under the old id or the new one; the same command finishes the change, or `delete` does."""
    kept, killed = store(tmp_path), True
    number = 0
    while killed:
        number, name, new = number + 1, f"s{number}", f"s{number}-new"
        with Program(tmp_path, "one", store=kept) as program:
            program.call_sync("a", session_id=name)
            words = [name] if verb == "delete" else [new, name]
            try:
                getattr(Sessions(BreakingStore(kept, number - 1), ""), verb)(*words)
                killed = False
            except Killed:
                try:
                    getattr(program.sessions, verb)(*words)
                except (BrokenFile, UsageFault):
                    program.sessions.delete(name)
            there = {one.session for one in program.sessions.all() if one.session in (name, new)}
            assert there == {"delete": set(), "rename": {new}, "fork": {name, new}}[verb]
            assert all(texts(program, one) == ["a", "one"] for one in there)
            left = [key for key in kept.list(("default", name)) if key[-1] != "gate.json"]
            assert not left or verb == "fork"
    assert number > 2


def test_a_program_appends_messages_and_sets_the_summary(tmp_path: Path) -> None:
    """Between calls, and before the first; the model sees them, the log keeps all."""
    with Program(tmp_path, "yes", "so it is", store=store(tmp_path)) as program:
        program.sessions.append("My name is Ann.")
        program.sessions.append("Noted.", role="assistant")
        program.call_sync("who am I?")
        program.sessions.set_summary("They are Ann.")
        program.call_sync("sure?")
        assert texts(program)[:3] == ["My name is Ann.", "Noted.", "who am I?"] and len(texts(program)) >= 6
        assert program.sessions.state().summary == "They are Ann."
    first, second = program.simulated.requests
    assert [one["role"] for one in first.messages] == ["user", "assistant", "user"]
    assert len(second.messages) == 2 and "They are Ann." in second.messages[0]["text"]
    with pytest.raises(UsageFault):
        program.sessions.append("x", role="system")


def test_a_state_is_json_and_back(tmp_path: Path) -> None:
    """What is no state says so."""
    with Program(tmp_path, "hi", store=store(tmp_path)) as program:
        program.call_sync("hello")
        state = program.sessions.state()
        exported = program.sessions.export()
    assert AgentState.from_json(state.to_json()).asdict() == state.asdict()
    assert [one["text"] for one in exported["messages"]] == ["hello", "hi"] and exported["state"]["calls"] == 1
    for wrong in ("[]", "{}", "no", json.dumps({**json.loads(state.to_json()), "calls": -1})):
        with pytest.raises(BrokenFile):
            AgentState.from_json(wrong)


def test_a_change_waits_for_the_calls_of_the_session_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    """One message more after the call that runs; then nothing of it is left but the user's memory."""
    kept = store(tmp_path)

    async def played() -> list[str]:
        async with Program(tmp_path, "one", store=kept) as program:
            call = asyncio.ensure_future(program.call("a", session_id="s"))
            await asyncio.sleep(0)
            await asyncio.to_thread(program.sessions.append, "b", "s")
            await call
            found = texts(program, "s")
            await asyncio.to_thread(program.sessions.delete, "s")
            return found

    assert asyncio.run(played()) == ["a", "one", "b"]
    assert [key for key in kept.list(()) if key[1] == "s"] == []


def test_compaction_can_be_asked_for(tmp_path: Path) -> None:
    """The older part becomes a summary at once; there must be something to compact."""

    async def played() -> tuple[list[bool], int]:
        answers = ["one " * 400, "two " * 400, "three " * 400, "the summary", "four"]
        async with Program(tmp_path, *answers, store=store(tmp_path)) as program:
            done = [await program.compact()]
            for message in "abc":
                await program.call(message)
            done.append(await program.compact())
            await program.call("d")
            return done, len(program.simulated.requests[-1].messages)

    done, messages = asyncio.run(played())
    assert done == [False, True] and messages < 7
