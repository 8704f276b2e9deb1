"""session_search, session_list and session_history: what was said in the sessions of this user, ranked and bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.base import ranking
from harness.base.record import Record
from harness.builtin.loop import message_text, turns
from harness.builtin.sessions import log
from harness.builtin.sessions import state as states
from harness.builtin.sessions.keys import SessionKeys, session_keys
from harness.builtin.tools.tool import READS, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import cut, failed, left_out
from harness.state import json_lines
from harness.stores import log as logs
from harness.stores.store import Store

MOST_HITS, DEFAULT_HITS = 50, 10
MOST_LISTED, DEFAULT_LISTED = 100, 20
MOST_MESSAGES, DEFAULT_MESSAGES = 100, 20
LONGEST = 500  # characters of a message that is shown


class RecalledMessage(Record):
    """A message of a session: its number from 1, its text, and its author (`user`, `assistant`, `tool`)."""

    session: str
    number: int
    text: str
    role: str = ""


def messages(store: Store, keys: SessionKeys, most: int | None = 10 * LONGEST) -> list[RecalledMessage]:
    """All messages of a session, oldest first, each text of about `most` characters (None: whole); what a summary repeats is
    there once. Raises BrokenFile."""
    found: list[RecalledMessage] = []
    skipping = [False]

    def each(row: dict[str, Any]) -> None:
        if "part" in row:
            skipping[0] = row["part"] > 1
        elif "call" in row or "turn" in row or "ended" in row:
            skipping[0] = False
        elif "put" in row and "role" in row["value"] and not skipping[0]:
            said = row["value"]
            text = message_text.shown(said, most) if most else message_text.said(said)
            found.append(RecalledMessage(session=keys.session, number=len(found) + 1, text=text, role=said["role"]))

    log.whole(store, keys, each)
    return found


def _searched(store: Store, keys: SessionKeys) -> Iterator[tuple[str, RecalledMessage]]:
    """The messages of person and agent; unreadable ones are skipped."""
    number = 0
    for _, line in json_lines.whole(logs.read(store, keys.log).data):
        if b'"role":' not in line:
            continue
        try:
            row = json_lines.value(line)
        except ValueError:  # a damaged row, which a search need not report
            continue
        said: Any = row.get("value") if isinstance(row, dict) else None
        if turns.is_message(said) and said["role"] in message_text.NAMES and message_text.said(said):
            number += 1
            text = message_text.shown(said, 10 * LONGEST)
            yield text, RecalledMessage(session=keys.session, number=number, text=text)


def search(store: Store, user: str, words: str, most: int) -> list[RecalledMessage]:
    """The messages of this user's sessions that fit the words best."""

    def lines() -> Iterator[tuple[str, RecalledMessage]]:
        for one in reversed(states.of_user(store, user)):
            yield from _searched(store, session_keys(one.user, one.session))

    return list({one.text: one for one in ranking.best(lines, words, 2 * most)}.values())[:most]


def tools(store: Store, keys: SessionKeys) -> list[Tool]:
    """The tools for a session; they see only the sessions of its user."""

    def found(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
        most = arguments.get("limit", DEFAULT_HITS)
        hits = search(store, keys.user, arguments["query"], most)
        rows = [f"{hit.session}: {cut(hit.text, LONGEST)}" for hit in hits]
        return ToolResult(text="\n".join(rows) or f"Nothing was said of: {arguments['query']}")

    def listed(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
        entries, most = states.of_user(store, keys.user), arguments.get("limit", DEFAULT_LISTED)
        rows = [
            f"{one.session}  {one.calls} calls, the last {one.newest['ended']}: {one.newest['words']}"
            for one in entries[:most]
        ]
        more = left_out(max(0, len(entries) - most), "sessions", "Give a larger limit.")
        return ToolResult(text=("\n".join(rows) or "This is the first session.") + more)

    def shown(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
        return history(store, keys, arguments)

    return [_tool(name, run) for name, run in zip(SCHEMAS, (found, listed, shown), strict=True)]


def history(store: Store, keys: SessionKeys, arguments: dict[str, Any]) -> ToolResult:
    """Messages of a session, the newest at the end."""
    name = arguments.get("session", keys.session)
    there = session_keys(keys.user, name)
    if store.get(there.state) is None:
        known = [one.session for one in states.of_user(store, keys.user)]
        return failed(f"There is no session {name}. There are: {', '.join(known[:10]) or 'none yet'}.")
    every, most = messages(store, there), arguments.get("limit", DEFAULT_MESSAGES)
    before = arguments.get("before", len(every) + 1)
    some = [one for one in every if one.number < before][-most:]
    rows = [f"{one.number}. {cut(one.text, LONGEST)}" for one in some]
    on = (
        f"\n\n[Of {len(every)} messages. Earlier ones: before={some[0].number}.]" if some and some[0].number > 1 else ""
    )
    return ToolResult(text=("\n".join(rows) or "There is nothing before that.") + on)


def _limit(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


SCHEMAS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "session_search": (
        "Search what was said in all sessions with this person: messages ranked by how well they fit the words.",
        {"query": {"type": "string", "description": "words"}, "limit": _limit(MOST_HITS)},
        ["query"],
    ),
    "session_list": ("The sessions with this person, the newest first.", {"limit": _limit(MOST_LISTED)}, []),
    "session_history": (
        "Messages of a session, by default the newest of this one; also those that a summary took the place of.",
        {
            "session": {"type": "string"},
            "before": {"type": "integer", "minimum": 1, "description": "number of a message"},
            "limit": _limit(MOST_MESSAGES),
        },
        [],
    ),
}


def _tool(name: str, run: Callable[[ToolSession, dict[str, Any]], ToolResult]) -> Tool:
    words, properties, required = SCHEMAS[name]
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return Tool(name=name, description=words, parameters=schema, effects=READS, run=run)
