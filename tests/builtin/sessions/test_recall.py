"""session_search, session_list, session_history: what was said earlier, to this user alone."""

from __future__ import annotations

from pathlib import Path

from harness.builtin.sessions import recall
from harness.builtin.sessions._compaction import Compact
from harness.builtin.sessions.keys import session_keys
from harness.builtin.tools.tool import ToolResult
from tests.agents.modelserver import Reply, serving
from tests.builtin.sessions.talking import USER, said, store
from tests.builtin.talking import bodies, calling, steps


def called(folder: Path, name: str, **arguments: object) -> ToolResult:
    """The result of a tool in the session `s` of alice."""
    tools = {tool.name: tool for tool in recall.tools(store(folder), session_keys(USER, "s"))}
    return tools[name].run(None, arguments)  # type: ignore[arg-type]  # they need no workbench


def test_what_was_said_is_found_in_all_sessions_of_the_user_and_in_no_other(tmp_path: Path) -> None:
    """Ranked: the message with more of the words first; 's of another user never."""
    with serving(lambda _: Reply("I see.")) as server:
        said(tmp_path, server, "the heron stands in the river", "nothing of that", session="birds")
        said(tmp_path, server, "a river", session="s")
        said(tmp_path, server, "the heron of bob in his river", user="bob")
    found = called(tmp_path, "session_search", query="heron river").text.split("\n")
    assert found == ["birds: Person: the heron stands in the river", "s: Person: a river"]
    assert called(tmp_path, "session_search", query="pelican").text == "Nothing was said of: pelican"
    listed = called(tmp_path, "session_list").text
    assert [line.split("  ")[0] for line in listed.split("\n")] == ["s", "birds"] or (
        "birds" in listed and "bob" not in listed
    )


def test_a_history_is_read_backwards_by_number_also_behind_a_summary(tmp_path: Path) -> None:
    """What a summary took the place of is there once, with the rest."""
    with serving(lambda exchange: Reply("Short." if "Sum it up" in exchange.text else "I see.")) as server:
        said(
            tmp_path,
            server,
            *[f"message {number} " + "word " * 120 for number in range(5)],
            compact=Compact(messages=7, keep_tokens=60),
        )
    newest = called(tmp_path, "session_history", limit=3).text
    assert newest.split("\n")[0].startswith("8. Agent: I see.") and "before=8" in newest
    older = called(tmp_path, "session_history", before=3).text
    assert older.startswith("1. Person: message 0") and "3." not in older
    assert called(tmp_path, "session_history", session="other").failed
    assert len(recall.messages(store(tmp_path), session_keys(USER, "s"))) == 10


def test_a_model_may_call_them(tmp_path: Path) -> None:
    """They are among the tools of every session."""
    with serving(steps(calling("session_list", {}), calling("session_search", {"query": "hello"}))) as server:
        said(tmp_path, server, "hello")
        results = [one["content"] for one in bodies(server)[-1]["messages"] if one["role"] == "tool"]
    assert results[0].startswith("s  0 calls") and results[0].endswith("hello") and results[1] == "s: Person: hello"
