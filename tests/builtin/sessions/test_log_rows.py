"""The rows of a session's log: no damage and no missing row is unseen."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.builtin.sessions import _log_rows, _session, log
from harness.builtin.sessions.keys import session_keys
from tests.agents.modelserver import Reply, serving
from tests.builtin.sessions.talking import SESSION, USER, home, said, store
from tests.builtin.talking import calling, steps

pytestmark = pytest.mark.on_disk


def lines(*rows: dict[str, Any]) -> list[bytes]:
    """The lines of these rows."""
    return [_log_rows.line_of(row, number) for number, row in enumerate(rows, 1)]


def test_a_row_that_was_changed_moved_removed_or_repeated_is_seen() -> None:
    """With the number of its line."""
    rows = lines(*({"put": "x", "value": number} for number in range(5)))
    assert _log_rows.last(b"".join(rows), "log", 0) == 5
    assert _log_rows.last(b"".join(rows[2:]), "log", None) == 5
    for wrong in (
        rows[1:],
        [rows[0], *rows[2:]],
        [rows[0], rows[2], rows[1]],
        [*rows[:3], rows[2]],
        [*rows[:2], b"\n", rows[2]],
        [*rows[:2], rows[2].replace(b'"value":2', b'"value":3')],
    ):
        with pytest.raises(BrokenFile, match=r"line [1234]"):
            _log_rows.last(b"".join(wrong), "log", 0)


def test_a_row_that_names_the_digest_of_the_one_before_it_is_read() -> None:
    """As earlier sessions have them; the new ones follow."""
    body = b'{"call":1,"row":1,"after":"00ff"'
    old = body + f',"sum":"{encoding.digest(body)[:32]}"}}\n'.encode()
    assert _log_rows.last(old + _log_rows.line_of({"ended": 1}, 2), "log", 0) == 2
    with pytest.raises(BrokenFile, match="line 1"):
        _log_rows.last(old.replace(b"00ff", b"00fe"), "log", 0)


def test_rows_stay_up_to_a_damage_and_again_from_the_next_part_on() -> None:
    """Numbered again; the others come back as they are."""
    made = lines(*({"part": number, "at": "x"} if number in (0, 5) else {"call": number} for number in range(8)))
    whole = b"".join(made)
    assert _log_rows.sound(whole) == (whole, b"")
    flipped = made[3].replace(b"3", b"4", 1)
    kept, lost = _log_rows.sound(b"".join([*made[:3], flipped, *made[4:]]))
    assert lost == flipped + made[4] and _log_rows.last(kept, "log", 0) == 6
    rows = [json.loads(line) for line in kept.splitlines()]
    assert [row.get("part", row.get("call")) for row in rows] == [0, 1, 2, 5, 6, 7]
    assert _log_rows.sound(b"".join(made[:4] + made[6:])) == (b"".join(made[:4]), b"".join(made[6:]))


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
        row = {"call": 2, "at": "then", "agent": "helper", "message": "lost?", "place": 2}
        more = _log_rows.line_of(row, part.rows + 1)
        torn = _log_rows.line_of({"put": "x", "value": {}}, part.rows + 2)
        with path.open("ab") as file:
            file.write(more + torn[:20])
        assert said(tmp_path, server, "more")[0].outcome == "ok"
    calls = log.whole(store(tmp_path), session_keys(USER, SESSION)).calls
    assert [(one.message, one.outcome) for one in calls.values()] == [
        ("hello", "ok"),
        ("lost?", "killed"),
        ("more", "ok"),
    ]
