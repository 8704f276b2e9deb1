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
from tests.memory.curating import SERVER, Mission


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


def test_what_more_runs_noted_is_shown_first_then_the_newest(mission: Mission, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lesson that holds and has to leave is in the record once, with the reason; one that is replaced is not."""
    monkeypatch.setattr(pages, "SUMMARY_LINES", 5)
    for text in ("the exporter needs LANG=C", "ask Ann before a release", "installs use pnpm"):
        mission.note("TRICK", text)
    mission.fold()
    assert mission.lines(pages.LESSONS, "summary") == ["- ask Ann before a release", "- installs use pnpm"]
    mission.note("TRICK", "the exporter needs LANG=C", "F-002")
    for text in ("installs use npm instead of pnpm", "call bob"):
        mission.note("TRICK", text)
    for _ in range(2):
        mission.fold(rows=[])
        assert mission.lines(pages.LESSONS, "summary") == ["- the exporter needs LANG=C", "- call bob"]
        mission.note("-", "wip")
    assert mission.changes() == [("superseded", "installs use pnpm"), ("demoted", "ask Ann before a release")]
    (why,) = {row["why"] for row in mission.rows() if row.get("change") == "demoted"}
    assert why == "other lines of summary.md are worth more"


def test_both_bounds_hold_whatever_is_noted(mission: Mission) -> None:
    """40 lines and 800 tokens, in English, code and Chinese; short lines and long ones."""
    dice = random.Random(4)
    for part in range(6 if TORTURE else 2):
        for number in range(60):
            word = dice.choice(["数据库迁移", "client_max_body_size=10m", "the parser loses its last line", "x9"])
            text = f"{part}w{number} " + " ".join(f"{word}{dice.randrange(9)}" for _ in range(dice.randrange(1, 12)))
            mission.line(text[:900], dice.choice(["TRICK", "AVOID", "DECISION", "CONTEXT"]))
        mission.fold()
        assert mission.summary.count("\n") <= pages.SUMMARY_LINES
        assert tokens.estimated(mission.summary) <= pages.SUMMARY_TOKENS
        assert all(len(line) < 256 for line in mission.summary.split("\n"))
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


def test_look_alikes_are_all_shown_together_with_their_dates(mission: Mission) -> None:
    """The newest first; they differ in a word and a number, and others came between them."""
    kinds = ("parser", "printer", "router", "mailer", "ledger", "search", "upload", "export")
    lines = [f"the {kind} part needs forge --seal {7311 + 579 * number}" for number, kind in enumerate(kinds)]
    for number, line in enumerate(lines):
        mission.line(line, feature=f"F-{number:03}")
        mission.line(("ask Ann before a release", "call bob")[number % 2], feature=f"F-{number:03}")
    mission.fold()
    dated = [f"- [2026-04-24] {line}" for line in lines[::-1]]
    assert mission.lines(pages.LESSONS, "summary") == [*dated, "- ask Ann before a release", "- call bob"]
