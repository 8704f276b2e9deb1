"""From one format to the next: each step whole or not at all, and invalid content is named. See tests/formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.state import files, journal, migrations, names
from harness.state.layout import Layout
from tests.crash import contents
from tests.helpers import mission, put

NOTE = {"at": "t", "by": "r", "kind": "judged", "text": "", "ids": []}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An empty mission of format 1."""
    made = mission(tmp_path)
    put(made.path(names.FORMAT), "1\n")
    return made


def queue(*notes: object) -> str:
    """features.json of format 1, with a second feature that has these notes."""
    rows = [{"id": name, "colour": "kept", "notes": told} for name, told in (("F-1", []), ("F-2", list(notes)))]
    return '{"features":[\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n"


def migrated(layout: Layout) -> list[Any]:
    """The notes of the second feature after the migration."""
    migrations.migrate(layout)
    return list(files.read_json(layout.path(names.FEATURES))["features"][1]["notes"])  # type: ignore[index]  # it is there


@pytest.mark.parametrize(
    ("text", "number", "is_due"),
    [
        *(("1\n", 1, True), ("1", 1, True), ("2\n", 2, False), ("9\n", 9, False), ("", 0, False), ("one", 0, False)),
        *(("1.0", 0, False), ("-1", 0, False), ("1" * 5000, 0, False)),
    ],
)
def test_only_an_older_format_is_migrated(layout: Layout, text: str, number: int, is_due: bool) -> None:
    """An unknown format stays unchanged; reading it reports that."""
    put(layout.path(names.FORMAT), text)
    assert (migrations.number(layout), migrations.is_due(layout)) == (number, is_due)
    migrations.migrate(layout)
    assert files.read_text(layout.path(names.FORMAT)) == ("2\n" if is_due else text)


def test_where_there_is_no_mission_nothing_is_migrated(tmp_path: Path) -> None:
    """The same for a folder at the file's path."""
    layout = mission(tmp_path)
    assert migrations.number(layout) == 0
    Path(layout.path(names.FORMAT)).mkdir()
    assert migrations.number(layout) == 0


def test_every_older_format_has_its_step() -> None:
    """From the first to the one before the current."""
    assert sorted(migrations.STEPS) == list(range(1, migrations.FORMAT))


@pytest.mark.parametrize(
    ("note", "becomes"),
    [
        (NOTE, {}),
        ({**NOTE, "kind": "needs", "text": "x", "ids": ["F-1"]}, {"text": "x", "features": ["F-1"]}),
        ({**NOTE, "kind": "dispute", "text": "x", "ids": ["VAL-1"]}, {"text": "x", "claims": ["VAL-1"]}),
        ({**NOTE, "kind": "cut", "text": "wall", "ids": ["7-worker"]}, {"text": "wall", "run": "7-worker"}),
        ({**NOTE, "kind": "cut", "text": "wall"}, {"text": "wall", "run": "r"}),
        ({**NOTE, "kind": "reason", "text": "x", "ids": ["7-worker"]}, {"text": "x"}),
        ({**NOTE, "kind": "retry", "text": "x", "own": 5}, {"text": "x"}),
    ],
)
def test_a_note_takes_what_its_kind_carries(layout: Layout, note: dict[str, Any], becomes: dict[str, Any]) -> None:
    """`at`, `by` and `kind` stay; a feature keeps every other field."""
    put(layout.path(names.FEATURES), queue(note))
    assert migrated(layout) == [{"at": "t", "by": "r", "kind": note["kind"], **becomes}]
    assert b'"colour":"kept"' in (files.read(layout.path(names.FEATURES)) or b"")


@pytest.mark.parametrize("note", [5, None, {}, {"kind": "cut"}, {**NOTE, "kind": "other"}, {**NOTE, "kind": []}])
def test_a_note_that_format_1_did_not_have_is_named_and_nothing_is_written(layout: Layout, note: object) -> None:
    """The message has the file, the line and the remedy: no unknown note is dropped."""
    put(layout.path(names.FEATURES), queue(note))
    before = contents(layout.state)
    with pytest.raises(
        BrokenFile, match=r"features\.json, line 3: the line is not a feature of format 1\. Correct that feature"
    ):
        migrations.migrate(layout)
    assert contents(layout.state) == before


@pytest.mark.parametrize("text", ["[]", "5", '{"features":5}', "{}"])
def test_a_queue_that_is_none_is_named(layout: Layout, text: str) -> None:
    """With the expected content."""
    put(layout.path(names.FEATURES), text)
    with pytest.raises(BrokenFile, match=r"features\.json, line 1: not an object"):
        migrations.migrate(layout)


def test_answers_leave_the_run_log_and_every_other_line_stays_as_it_is(layout: Layout) -> None:
    """Byte for byte, also a line that does not parse; a role may be called person."""
    lines = ['{"run": "1-worker", "role":"worker"}', "not ours", '{"run":"2-person","role":"person"}']
    said = '{"run":"-","role":"person","at":"now","reason":"go on"}'
    put(layout.path(names.RUN_LOG), "\n".join([said, *lines, said, ""]))
    migrations.migrate(layout)
    assert files.read_text(layout.path(names.RUN_LOG)) == "\n".join([*lines, ""])
    rows = [json.loads(line) for line in (files.read_text(layout.path(names.ANSWERS)) or "").split("\n")[:-1]]
    assert [row["after"] for row in rows] == ["", "2-person"]
    assert rows[0] == {"at": "now", "by": "person", "text": "go on", "after": ""}


@pytest.mark.parametrize(("torn", "kept"), [('{"run":"3-worker"}', '{"run":"3-worker"}\n'), ('{"run":"3-', "")])
def test_a_torn_last_line_of_the_run_log_is_closed_or_cut_off(layout: Layout, torn: str, kept: str) -> None:
    """Closed if only its newline is missing."""
    put(layout.path(names.RUN_LOG), '{"run":"1-worker"}\n' + torn)
    migrations.migrate(layout)
    assert files.read_text(layout.path(names.RUN_LOG)) == '{"run":"1-worker"}\n' + kept


def test_the_ledger_knows_what_was_migrated_and_the_cache_is_made_again(layout: Layout) -> None:
    """Recovery sees no tampering, and nothing from the old cache counts."""
    put(layout.path(names.FEATURES), queue(NOTE))
    put(layout.cache + "/proofs.json", "old")
    migrations.migrate(layout)
    assert journal.read_ledger(layout) == journal.adopt(layout)
    assert files.names(layout.cache) == []
