"""The chain of a session's log: no row is changed, removed or added unseen."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.builtin.sessions import _chain, _session, log
from harness.builtin.sessions._chain import START, Link
from harness.builtin.sessions.keys import session_keys
from tests.agents.modelserver import Reply, serving
from tests.builtin.sessions.talking import SESSION, USER, home, said, store
from tests.builtin.talking import calling, steps

pytestmark = pytest.mark.on_disk


def lines(count: int) -> tuple[bytes, Link]:
    """A chain of so many rows."""
    made, link = b"", START
    for number in range(count):
        line, link = _chain.linked({"put": "x", "value": number}, link)
        made += line
    return made, link


def test_a_row_that_was_changed_moved_removed_or_repeated_is_seen() -> None:
    """With the number of its line."""
    data, _ = lines(5)
    rows = data.splitlines(keepends=True)
    assert [link.number for link in _chain.links(data, "log", START)] == [1, 2, 3, 4, 5]
    for wrong in (
        rows[1:],
        [rows[0], *rows[2:]],
        [rows[0], rows[2], rows[1]],
        [*rows[:3], rows[2]],
        [*rows[:2], b"\n", rows[2]],
    ):
        with pytest.raises(BrokenFile, match=r"line [1234]"):
            _chain.links(b"".join(wrong), "log", START)


def test_rows_stay_up_to_a_damage_and_again_from_the_next_part_on() -> None:
    """As one chain; the others come back as they are."""
    made, before = [], START
    for number in range(8):
        row = {"part": number, "at": "x"} if number in (0, 5) else {"call": number}
        line, before = _chain.linked(row, before)
        made.append(line)
    whole = b"".join(made)
    assert _chain.sound(whole) == (whole, b"")
    flipped = made[3].replace(b"3", b"4", 1)
    kept, lost = _chain.sound(b"".join([*made[:3], flipped, *made[4:]]))
    assert lost == flipped + made[4] and len(_chain.links(kept, "log", START)) == 6
    rows = [json.loads(line) for line in kept.splitlines()]
    assert [row.get("part", row.get("call")) for row in rows] == [0, 1, 2, 5, 6, 7]
    assert _chain.sound(b"".join(made[:4] + made[6:])) == (b"".join(made[:4]), b"".join(made[6:]))


def test_no_cut_and_no_flipped_bit_of_a_session_is_accepted_silently(tmp_path: Path) -> None:
    """At 50 random places each of the log's bytes is cut off from there, and of 220 one bit is another."""
    with serving(steps(calling("todo_write", {"todos": [{"content": "a", "status": "pending"}]}))) as server:
        said(tmp_path, server, "plan it", "go on", "and on")
    known, of, path = store(tmp_path), session_keys(USER, SESSION), home(tmp_path) / "log.jsonl"
    data, chosen = path.read_bytes(), random.Random(34)
    damaged = [data[: chosen.randrange(len(data))] for _ in range(50)]
    for _ in range(220):
        at = chosen.randrange(len(data))
        damaged.append(data[:at] + bytes([data[at] ^ 1 << chosen.randrange(8)]) + data[at + 1 :])
    for one in damaged:
        path.write_bytes(one)
        for read in (lambda: _session.load(known, of, ""), lambda: log.whole(known, of)):
            with pytest.raises(BrokenFile):
                read()
        assert path.read_bytes() == one
    path.write_bytes(data)
    assert len(log.whole(known, of).calls) == 3


def test_what_a_crash_left_behind_the_acknowledged_rows_goes_on(tmp_path: Path) -> None:
    """Whole rows count, a torn one goes."""
    with serving(lambda _: Reply("an answer")) as server:
        said(tmp_path, server, "hello")
        path = home(tmp_path) / "log.jsonl"
        part = log.whole(store(tmp_path), session_keys(USER, SESSION))
        more, link = _chain.linked(
            {"call": 2, "at": "then", "agent": "helper", "message": "lost?", "place": 2}, part.link
        )
        torn, _ = _chain.linked({"put": "x", "value": {}}, link)
        with path.open("ab") as file:
            file.write(more + torn[:20])
        assert said(tmp_path, server, "more")[0].outcome == "ok"
    calls = log.whole(store(tmp_path), session_keys(USER, SESSION)).calls
    assert [(one.message, one.outcome) for one in calls.values()] == [
        ("hello", "ok"),
        ("lost?", "killed"),
        ("more", "ok"),
    ]
