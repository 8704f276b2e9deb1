"""summary.md: bare lines, three headings, both bounds, and the same bytes when it is derived again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.base import tokens
from harness.memory import pages
from harness.state import files, names
from tests.crash import TORTURE
from tests.helpers import put
from tests.memory.curating import SERVER, SERVER_TOO, Mission


@pytest.fixture
def mission(tmp_path: Path) -> Mission:
    """A mission without notes."""
    return Mission(tmp_path)


def test_the_summary_has_bare_lines_under_three_headings_and_a_pointer(mission: Mission) -> None:
    """No date, no feature, no count; the first heading says what more there is."""
    mission.note("TRICK", SERVER)
    mission.note("DECISION", "plain files only")
    mission.note("AVOID", "deleting the cache")
    mission.note("CONTEXT", "there is one user: an editor of the local paper")
    mission.fold()
    assert mission.summary == (
        "## Lessons · more in MEMORY.md: Decisions 1, Context 1, Lessons 2\n"
        f"- {SERVER}\n- there is one user: an editor of the local paper\n"
        "## Decisions (current)\n- plain files only\n## Avoid\n- deleting the cache\n"
    )


def test_where_there_is_no_room_for_all_a_line_that_tells_something_new_goes_first(mission: Mission) -> None:
    """Two lessons that share a word of the mission's own may be one: the second has to be worth more. What differs in a value is
    another lesson."""
    alike = ["quuxd answers nothing while its port is taken", "wait for the lock before you start quuxd"]
    apart = ["the redis for sessions listens on port 6379", "the redis for jobs listens on port 6380"]
    for number in range(60):
        for voice in ("a", "b"):
            mission.line(f"step{number} of job{number} needs flag --n{number}", feature=f"F-{number:03}{voice}")
        for text in (alike + apart)[number : number + 1]:
            for voice in ("c", "d") if text == alike[1] else ("c", "d", "e"):
                mission.line(text, feature=f"F-{number:03}{voice}")
    mission.line(alike[0], feature="F-900")
    mission.fold()
    shown = mission.lines(pages.LESSONS, "summary")
    assert shown[0] == f"- {alike[0]}"
    assert all(f"- {text}" in shown[:4] for text in apart)
    assert f"- {alike[1]}" not in shown
    assert all(text in mission.memory for text in alike + apart)


def test_both_bounds_hold_whatever_is_noted(mission: Mission) -> None:
    """40 lines and 800 tokens, in English, code and Chinese; short lines and long ones."""
    dice = random.Random(4)
    for part in range(6 if TORTURE else 2):
        for number in range(60):
            word = dice.choice(["数据库迁移", "client_max_body_size=10m", "the parser loses its last line", "x9"])
            text = f"{part}w{number} " + " ".join(f"{word}{dice.randrange(999)}" for _ in range(dice.randrange(1, 12)))
            mission.line(text[:900], dice.choice(["TRICK", "AVOID", "DECISION", "CONTEXT"]))
        mission.fold()
        assert mission.summary.count("\n") <= pages.SUMMARY_LINES
        assert tokens.estimated(mission.summary) <= pages.SUMMARY_TOKENS
        assert all(len(line) < 250 for line in mission.summary.split("\n"))
        assert min(len(mission.lines(title, "summary")) for title in pages.SUMMARY_TITLES) >= 2


def test_deriving_twice_gives_the_same_bytes(mission: Mission, tmp_path: Path) -> None:
    """Also after the curator saw nothing new of worth, and in another mission with the same notes."""
    other = Mission(tmp_path, "m-2", str(tmp_path / "other"))
    for number in range(90):
        for one in (mission, other):
            one.line(
                f"lesson{number} needs flag --n{number} for step{number % 7}",
                ("TRICK", "AVOID", "DECISION")[number % 3],
            )
    for one in (mission, other):
        one.fold()
    assert mission.summary == other.summary
    before = mission.summary
    mission.note("-", "wip")
    mission.fold()
    assert mission.summary == before


def test_the_newest_decision_is_the_current_one(mission: Mission) -> None:
    """In one compaction, and over several."""
    for rows in (50, 100, 20):
        mission.note("DECISION", f"API pages have {rows} rows")
        if rows != 50:
            mission.fold()
    assert mission.lines(pages.CURRENT, "summary") == ["- API pages have 20 rows"]


def test_what_more_runs_noted_comes_first_and_near_doubles_once(mission: Mission) -> None:
    """Worth is evidence; a lesson in two wordings is one line."""
    mission.note("TRICK", "run make gen before the build")
    for number in range(3):
        mission.note("TRICK", (SERVER, SERVER_TOO)[number % 2], f"F-00{number}")
    mission.fold()
    assert mission.lines(pages.LESSONS, "summary") == [f"- {SERVER}", "- run make gen before the build"]


def test_a_summary_that_is_gone_comes_back(mission: Mission) -> None:
    """It is derived: deleting the whole page forgets nothing."""
    mission.note("TRICK", SERVER)
    mission.fold()
    before = mission.summary
    put(mission.layout.path(names.SUMMARY), "")
    mission.note("-", "wip")
    mission.fold()
    assert mission.summary == before
    assert files.read(mission.layout.path(names.SUMMARY))


def test_notes_of_one_frame_about_several_things_are_all_shown(mission: Mission) -> None:
    """They differ in a word and a number; with few other lines on the page, they still are lessons of their own."""
    kinds = ("parser", "printer", "router", "mailer", "ledger", "search", "upload", "export")
    lines = [f"the {kind} part needs forge --seal {7311 + 579 * number}" for number, kind in enumerate(kinds)]
    for number, line in enumerate(lines):
        mission.line(line, feature=f"F-{number:03}")
        mission.line(f"set CACHE_{number}=/tmp/c{number} before make step{number}", feature=f"F-{number:03}")
    mission.fold()
    assert {f"- {line}" for line in lines} <= set(mission.summary.split("\n"))
