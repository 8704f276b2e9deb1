"""What people write and delete on the pages of memory counts, and is kept word for word."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.memory import pages
from harness.memory.edits import PINNED
from harness.state import files, names
from tests.helpers import put
from tests.memory.curating import SERVER, SERVER_TOO, Mission

OTHER = "run make gen before the build, else protobuf files are missing"


@pytest.fixture
def mission(tmp_path: Path) -> Mission:
    """A mission with two lessons on its pages."""
    made = Mission(tmp_path)
    made.note("TRICK", SERVER)
    made.note("TRICK", OTHER)
    made.fold()
    return made


def again(mission: Mission) -> None:
    """A note about something else, and a compaction."""
    mission.note("TRICK", f"psql number{mission.run} needs PGHOST in the environment of job{mission.run}")
    mission.fold()


def test_a_line_that_a_person_wrote_stays_word_for_word(mission: Mission) -> None:
    """Anywhere on the page, whatever it looks like, after many compactions."""
    own = ["Ask Ann  about billing.", "* by hand", "- [2026-01-01] looks like an item (F-1 · 2x)", "\tindented"]
    mission.edit("memory", "## Lessons\n", "## Lessons\n" + "\n".join(own) + "\n")
    mission.edit("memory", "## Decisions\n", "# Ours\n\n## Decisions\n")
    put(mission.layout.path(names.MEMORY), mission.memory + "\n## Numbers\n- [2026-01-01] 12 (1x)\n")
    for _ in range(4):
        again(mission)
    assert mission.memory.startswith("# Ours\n")
    assert mission.lines("Numbers") == ["- [2026-01-01] 12 (1x)"]
    assert [line for line in mission.lines("Lessons") if line in own] == own


def test_a_line_of_the_curator_that_a_person_changed_is_the_persons(mission: Mission) -> None:
    """It stays as changed, and the curator does not write its own again beside it."""
    (line,) = (one for one in mission.lines("Lessons") if SERVER in one)
    mission.edit("memory", line, "- stop the dev server before e2e tests, or they fail on port 3000!")
    again(mission)
    mission.note("TRICK", SERVER_TOO, "F-009")
    mission.fold()
    assert [one for one in mission.lines("Lessons") if "server" in one] == [
        "- stop the dev server before e2e tests, or they fail on port 3000!"
    ]


@pytest.mark.parametrize("page", ["memory", "summary"])
def test_a_line_that_a_person_deleted_is_forgotten(mission: Mission, page: str) -> None:
    """For good, on both pages, also when a worker notes it again in other words; a person's note brings it back."""
    line = next(one for one in mission.lines("Lessons", page) if SERVER in one)
    mission.edit(page, line + "\n", "")
    again(mission)
    assert ("forgotten", SERVER) in mission.changes()
    for number, text in enumerate((SERVER, SERVER_TOO)):
        mission.note("TRICK", text, f"F-10{number}")
        mission.fold()
        assert "server" not in mission.memory + mission.summary
        assert mission.dispositions()[-1] == "dropped"
    files.remove(mission.layout.path(names.LESSONS))
    mission.note("TRICK", SERVER, "F-110")
    mission.fold()
    assert "server" not in mission.memory + mission.summary
    mission.note("TRICK", SERVER, "-", "person")
    mission.fold()
    assert SERVER in mission.memory
    assert SERVER in mission.summary


def test_a_persons_note_that_looks_like_a_deleted_line_keeps_its_words(mission: Mission) -> None:
    """It may say the opposite; the deleted line stays away."""
    mission.note("TRICK", "stop using the shared cache in the pipeline")
    mission.fold()
    line = next(one for one in mission.lines("Lessons") if "shared cache" in one)
    mission.edit("memory", line + "\n", "")
    again(mission)
    mission.note("TRICK", "use the shared cache in the pipeline", "-", "person")
    mission.fold()
    assert "stop using" not in mission.memory + mission.summary
    assert "use the shared cache in the pipeline" in mission.memory


@pytest.mark.parametrize("title", pages.SUMMARY_TITLES)
def test_a_line_added_to_the_summary_moves_to_memory_as_pinned(mission: Mission, title: str) -> None:
    """And stays on the summary, under its heading, however little room there is; once."""
    mission.add(title, "- always ask Ann before a release")
    for number in range(120):
        mission.note("TRICK", f"lesson{number} needs flag --n{number} for step{number}", f"F-{number}")
    for _ in range(3):
        again(mission)
        assert mission.memory.count("always ask Ann before a release" + PINNED) == 1
        assert mission.lines(title, "summary")[0] == "- always ask Ann before a release"
        assert mission.summary.count("always ask Ann") == 1


OWN = ["Ask Ann first.", "- own line", "```", "## Lessons", "```"]


@pytest.mark.parametrize("heading", ["", "## Mine\n"])
@pytest.mark.parametrize("lost", [False, True])
def test_what_a_person_adds_to_the_summary_elsewhere_moves_to_memory_too(
    mission: Mission, heading: str, lost: bool
) -> None:
    """A section of their own, and lines above the first heading: word for word, on both pages from then on; once."""
    own = heading + "".join(line + "\n" for line in OWN)
    put(mission.layout.path(names.SUMMARY), own + mission.summary if not heading else mission.summary + own)
    for _ in range(3):
        again(mission)
        assert mission.lines(heading[3:-1]) == [line + PINNED for line in OWN]
        assert mission.lines(heading[3:-1], "summary") == OWN
        assert mission.summary.startswith(own) if not heading else mission.summary.endswith(own)
        assert mission.memory.count(SERVER) == mission.summary.count(SERVER) == 1
        if lost:
            files.remove(mission.layout.path(names.LESSONS))


@pytest.mark.parametrize("heading", ["", "## Mine\n"])
def test_what_a_person_added_elsewhere_is_deleted_like_any_pinned_line(mission: Mission, heading: str) -> None:
    """From the summary: MEMORY.md keeps it without the mark. From MEMORY.md: it is gone, and an empty heading with it."""
    put(mission.layout.path(names.SUMMARY), f"{heading}own line\nand one\n{mission.summary}")
    again(mission)
    mission.edit("summary", "own line\n", "")
    again(mission)
    assert mission.lines(heading[3:-1]) == ["own line", f"and one{PINNED}"]
    assert mission.lines(heading[3:-1], "summary") == ["and one"]
    mission.edit("memory", f"and one{PINNED}\n", "")
    again(mission)
    assert "and one" not in mission.memory + mission.summary
    assert "Mine" not in mission.summary


def test_a_section_of_the_summary_that_is_one_of_memory_moves_there(mission: Mission) -> None:
    """Its lines are pinned in that section, and are on the summary under the heading for it."""
    put(mission.layout.path(names.SUMMARY), f"{mission.summary}## decisions\nuse tabs\n")
    for _ in range(2):
        again(mission)
        assert mission.lines("Decisions") == [f"- use tabs{PINNED}"]
        assert mission.lines(pages.CURRENT, "summary") == ["- use tabs"]
        assert "## decisions" not in mission.summary


def test_a_pinned_line_that_is_deleted_is_gone(mission: Mission) -> None:
    """From MEMORY.md, where it is; then the summary has it no more."""
    mission.add("Lessons", "- always ask Ann")
    again(mission)
    mission.edit("memory", f"- always ask Ann{PINNED}\n", "")
    again(mission)
    assert "always ask Ann" not in mission.memory + mission.summary


@pytest.mark.parametrize("title", pages.SUMMARY_TITLES)
def test_a_pinned_line_that_is_deleted_from_the_summary_stays_away(mission: Mission, title: str) -> None:
    """MEMORY.md keeps it without the mark, and where a person adds it again it is pinned again."""
    mission.add(title, "- always ask Ann")
    again(mission)
    assert mission.memory.count(f"always ask Ann{PINNED}\n") == 1
    mission.edit("summary", "- always ask Ann\n", "")
    for _ in range(2):
        again(mission)
        assert "always ask Ann" not in mission.summary
        assert mission.memory.count("always ask Ann\n") == 1
    mission.add(title, "- always ask Ann")
    again(mission)
    assert mission.summary.count("- always ask Ann\n") == 1
    assert mission.memory.count("always ask Ann") == mission.memory.count(f"always ask Ann{PINNED}\n") == 1


@pytest.mark.parametrize(("page", "title"), [("memory", "Lessons"), ("summary", "Avoid")])
def test_a_heading_that_is_there_twice_is_named_with_its_line(mission: Mission, page: str, title: str) -> None:
    """Nothing is folded until a person made one of both."""
    mission.edit(page, f"## {title}\n", f"## {title}\n\n## {title}\n")
    before = files.read(mission.layout.path(names.ARCHIVE))
    mission.note("TRICK", "another")
    path = mission.layout.path(names.MEMORY) if page == "memory" else mission.layout.path(names.SUMMARY)
    wanted = [
        number for number, line in enumerate((files.read_text(path) or "").split("\n"), 1) if line == f"## {title}"
    ][1]
    with pytest.raises(BrokenFile, match="twice") as caught:
        mission.fold()
    assert caught.value.line == wanted
    assert files.read(mission.layout.path(names.ARCHIVE)) == before


def test_a_heading_in_a_code_fence_is_not_there_twice(mission: Mission) -> None:
    """An example in a section of one's own stays as it is, and the curator writes into its own section."""
    own = "## How to\n```\n## Lessons\n- like this\n```\n"
    put(mission.layout.path(names.MEMORY), f"{own}\n{mission.memory}")
    again(mission)
    assert mission.memory.startswith(own)
    assert [SERVER in line for line in mission.lines("Lessons")] == [True, False, False]


def test_hand_lines_over_a_bound_all_stay_and_the_curator_adds_nothing(mission: Mission) -> None:
    """On both pages; every entry still is in the archive, and comes to the pages once there is room."""
    put(mission.layout.path(names.MEMORY), "".join(f"mine {number}\n" for number in range(230)))
    put(mission.layout.path(names.SUMMARY), "".join(f"own {number}\n" for number in range(45)))
    again(mission)
    assert [line for line in mission.memory.split("\n") if line.startswith("mine")] == [f"mine {n}" for n in range(230)]
    assert [line for line in mission.summary.split("\n") if line.startswith("own")] == [f"own {n}" for n in range(45)]
    assert "- " not in mission.memory + mission.summary
    assert mission.dispositions()[-1] == "dropped"


HARMLESS: dict[str, Callable[[str], str]] = {
    "a byte order mark": lambda text: "\ufeff" + text,
    "headings in small letters": lambda text: re.sub("(?m)^## .*", lambda found: found[0].lower(), text),
    "no headings": lambda text: re.sub("(?m)^## .*\n", "", text),
    "a heading above the lines": lambda text: text.replace("## Lessons", "## Of mine\n\n## Lessons").replace(
        "\n- ", "\n## My own section\n- ", 1
    ),
    "trailing blanks": lambda text: text.replace("\n", " \t\n"),
    "another order": lambda text: "\n".join(sorted(text.split("\n"))),
}


@pytest.mark.parametrize("how", HARMLESS)
@pytest.mark.parametrize("page", ["memory", "summary"])
def test_a_lesson_whose_line_still_stands_is_not_forgotten(mission: Mission, page: str, how: str) -> None:
    """Whatever a person did around it: it goes back to its section, once, and headings are not made twice."""
    mission.note("DECISION", "plain files only")
    mission.note("AVOID", "deleting the cache of npm")
    mission.add("Avoid", "- always ask Ann")
    mission.fold()
    path, text = (
        (mission.layout.path(names.MEMORY), mission.memory)
        if page == "memory"
        else (mission.layout.path(names.SUMMARY), mission.summary)
    )
    put(path, HARMLESS[how](text))
    again(mission)
    assert mission.changes() == []
    for one, heading in ((SERVER, "Lessons"), (OTHER, "Lessons"), ("plain files only", "Decisions")):
        assert mission.memory.count(one) == mission.summary.count(one) == 1
        assert any(one in line for line in mission.lines(heading))
    assert mission.memory.count(f"always ask Ann{PINNED}") == mission.summary.count("always ask Ann\n") == 1
    for title, text in product(("## decisions", "## lessons"), (mission.memory, mission.summary)):
        assert text.lower().count(title) == 1


def test_a_copy_of_a_line_that_is_in_its_place_is_the_persons(mission: Mission) -> None:
    """In a section of their own it stays, word for word."""
    (line,) = (one for one in mission.lines("Lessons") if SERVER in one)
    put(mission.layout.path(names.MEMORY), f"{mission.memory}\n## To do\n{line}\n")
    again(mission)
    assert mission.lines("To do") == [line]
    assert mission.changes() == [("left", SERVER)]


def test_hand_lines_that_fill_memory_leave_the_summary_as_it_is(mission: Mission) -> None:
    """It has bounds of its own: its lessons stay, a new one comes, and the archive says where that is."""
    put(mission.layout.path(names.MEMORY), mission.memory + "".join(f"mine {number}\n" for number in range(250)))
    before = mission.lines("Lessons", "summary")
    mission.note("TRICK", "psql needs PGHOST in its environment")
    mission.fold()
    assert SERVER not in mission.memory
    assert {*mission.lines("Lessons", "summary")} == {*before, "- psql needs PGHOST in its environment"}
    (row,) = (row for row in mission.rows() if row.get("seq") == 2)
    assert (row["disposition"], row["target"]) == ("promoted", "summary.md#Lessons")
    assert mission.summary.startswith("## Lessons\n")
    put(mission.layout.path(names.MEMORY), "mine\n")
    mission.fold()
    assert mission.memory.count(SERVER) == mission.summary.count(SERVER) == 1
    assert "forgotten" not in dict(mission.changes())


def test_a_page_saved_with_crlf_is_still_understood(mission: Mission) -> None:
    """The curator's lines are still its own."""
    for path, text in (
        (mission.layout.path(names.MEMORY), mission.memory),
        (mission.layout.path(names.SUMMARY), mission.summary),
    ):
        put(path, text.replace("\n", "\r\n"))
    again(mission)
    assert mission.memory.count(SERVER) == mission.summary.count(SERVER) == 1
    assert mission.changes() == []


def test_edits_are_taken_without_a_note(mission: Mission) -> None:
    """A deleted line leaves both pages at once, an added one moves; then there is nothing to do again, byte for byte."""
    line = next(one for one in mission.lines("Lessons") if SERVER in one)
    mission.edit("memory", line + "\n", "")
    mission.add("Lessons", "- always ask Ann")
    archived, generation = mission.dispositions(), pages.curated(mission.layout).generation
    assert mission.fold().archived == []
    assert SERVER not in mission.memory + mission.summary
    assert mission.memory.count(f"- always ask Ann{PINNED}\n") == mission.summary.count("- always ask Ann\n") == 1
    assert (mission.changes(), mission.dispositions()) == ([("forgotten", SERVER)], archived)
    assert pages.curated(mission.layout).generation == generation + 1
    before = mission.bytes()
    mission.fold()
    assert mission.bytes() == before
    mission.note("TRICK", SERVER)
    mission.fold()
    assert mission.dispositions() == [*archived, "dropped"]


def test_what_a_persons_line_says_is_archived_with_that_reason(mission: Mission) -> None:
    """A new note, and a curator's lesson that a person repeats; no message reports a lack of room."""
    put(mission.layout.path(names.MEMORY), mission.memory + "- the exporter needs LANG=C\n")
    mission.note("TRICK", "the exporter needs LANG=C")
    mission.add("Lessons", f"- {SERVER}!")
    mission.fold()
    rows = [(row.get("change", row.get("disposition")), row["why"]) for row in mission.rows() if row.get("why")]
    said = [("dropped", "a person's line says it"), ("left", "a person's line says it")]
    assert sorted(row for row in rows if row[0] != "demoted") == said
    assert mission.memory.count("LANG=C") == mission.memory.count(SERVER) == mission.summary.count(SERVER) == 1
