"""memory_search and memory_get: what was kept of the user and what the mission remembers, ranked, and read on by line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from harness.builtin.tools.tool import MEMORY, READS, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import cut, failed, left_out
from harness.memory import user_memory
from harness.replay import query, search
from harness.replay.search import Hit
from harness.state import files, json_lines, names, raw
from harness.state.layout import identity_folder
from harness.state.state import State

MOST_HITS, DEFAULT_HITS = 50, 10
LONGEST_HIT = 500  # characters
MOST_LINES, DEFAULT_LINES = 200, 50
IDENTITY = "identity/"
OF_MISSION = (names.MEMORY, names.SUMMARY, names.RAW, names.ARCHIVE)


def _memory_search(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    words, most = arguments["query"].split(), arguments.get("limit", DEFAULT_HITS)
    found = search.ranked(lambda: _remembered(session), query.query(words, False), most + 1)
    if not found:
        return ToolResult(text=f"Nothing is remembered of: {arguments['query']}")
    rows = [f"{_shown_name(hit.file)}:{hit.line}: {cut(hit.text, LONGEST_HIT)}" for hit in found[:most]]
    more = left_out(-1 if len(found) > most else 0, "lines", "Give more words, or a larger limit.")
    return ToolResult(text="\n".join(rows) + more)


def _memory_get(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    name, first = arguments["file"], max(1, arguments.get("offset", 1))
    known = _known(session)
    alone = [one for one in known if os.path.basename(one) == name]
    name = alone[0] if len(alone) == 1 else name
    if name not in known:
        return failed(f"There is no memory file {name}. There are: {', '.join(known) or 'none yet'}.")
    last = first + arguments.get("limit", DEFAULT_LINES) - 1
    rows, total = [], 0
    for total, line in enumerate(known[name], start=1):
        if first <= total <= last:
            rows.append(f"{total:>6}\t{cut(line, LONGEST_HIT)}")
    if not rows:
        return failed(f"{name} has {total} lines; there is no line {first}. Give a smaller offset.")
    on = f"\n\n[Lines {first}-{last} of {total}. Go on with offset={last + 1}.]" if total > last else ""
    return ToolResult(text="\n".join(rows) + on)


def _remembered(session: ToolSession) -> Iterator[Hit]:
    """Every line of memory, the user's last."""
    if session.layout is not None:
        yield from search.remembered(session.layout, search.REMEMBERED, search.Filter())
    for name, lines in _of_user(session).items():
        for number, line in enumerate(lines, start=1):
            yield Hit(place="memory", file=name, line=number, text=line)


def _of_user(session: ToolSession) -> dict[str, list[str]]:
    """{name: lines} of what was kept of the user."""
    found = user_memory.texts(session.memory) if session.memory else {}
    return {name: text.removesuffix("\n").split("\n") for name, text in found.items()}


def _known(session: ToolSession) -> dict[str, Iterable[str]]:
    """{name: lines} of the files of memory that there are."""
    own: dict[str, Iterable[str]] = {**_of_user(session)}
    if session.layout is None:
        return own
    state, folder = State(session.layout), identity_folder()
    paths = {name: state.path(name) for name in OF_MISSION if state.exists(name)}
    pages = [name for name in files.names(folder) if name.endswith(".md") and name != "README.md"]
    paths |= {IDENTITY + name: os.path.join(folder, name) for name in pages}
    return own | {name: _lines(name, path) for name, path in paths.items()}


def _lines(name: str, path: str) -> Iterator[str]:
    return (_text(name, line) for line, _ in raw.lines(path))


def _shown_name(file: str) -> str:
    """A file without the machine's folders."""
    return IDENTITY + os.path.basename(file) if os.path.isabs(file) else file


def _text(name: str, line: bytes) -> str:
    """A line; of a row of the archive the note in it."""
    if name == names.ARCHIVE:
        try:
            value = json_lines.value(line)
        except ValueError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("entry"), str):
            return str(value["entry"])
    return line.decode("utf-8", "replace").rstrip("\r\n")


SEARCH_TOOL = Tool(
    name="memory_search",
    description=(
        "Search what was kept of this person, and what the mission and its roles learned (memory, summary, notes,"
        " archives, identities): lines ranked by how well they fit the words, as file:line: text."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "words"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS},
        },
        "required": ["query"],
    },
    effects=READS,
    run=_memory_search,
    needs=MEMORY,
)
GET_TOOL = Tool(
    name="memory_get",
    description=f"Lines of a memory file that memory_search named, up to {MOST_LINES}.",
    parameters={
        "type": "object",
        "properties": {
            "file": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0, "description": "first line"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LINES},
        },
        "required": ["file"],
    },
    effects=READS,
    run=_memory_get,
    needs=MEMORY,
)
