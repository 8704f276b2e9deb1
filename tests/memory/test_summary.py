"""summary.md: bare lines, three headings, both bounds, and the same bytes when it is derived again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.memory import pages, tokens
from harness.store import files
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


def test_lessons_that_share_rare_words_have_one_line_where_there_is_no_room_for_all(mission: Mission) -> None:
    """With the evidence of all of them, in the words of the best; what differs in a value is another lesson."""
    one = ["playwright hangs at startup while port 3000 is taken", "close whatever holds port 3000 before playwright"]
    apart = ["the redis for sessions listens on port 6379", "the redis for jobs listens on port 6380"]
    for number in range(60):
        feature = f"F-{number:03}"
        mission.line(f"step{number} of job{number} needs flag --n{number}", feature=feature)
        mission.line(f"step{number} of job{number} needs flag --n{number}", feature=feature + "b")
        if number < 4:
            mission.line((one + apart)[number], feature=feature + "c")
            mission.line((one + apart)[number], feature=feature + "d")
    mission.line(one[0], feature="F-900")
    mission.fold()
    assert [text for text in one if text in mission.summary] == one[:1]
    assert all(text in mission.memory for text in one)
    assert mission.lines(pages.LESSONS, "summary")[0] == f"- {one[0]}"


def test_both_bounds_hold_whatever_is_noted(mission: Mission) -> None:
    """40 lines and 800 tokens, in English, code and Chinese; short lines and long ones."""
    dice = random.Random(4)
    for part in range(6):
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
    put(mission.layout.summary, "")
    mission.note("-", "wip")
    mission.fold()
    assert mission.summary == before
    assert files.read(mission.layout.summary)
