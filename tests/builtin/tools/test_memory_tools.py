"""memory_search and memory_get: what a mission remembers is found by some of its words, best first, and read on by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.builtin.tools import _memory_tools
from harness.state import names, raw
from harness.stores.memory import MemoryStore
from harness.stores.store import StoreKey
from tests.builtin.tools.benches import Bench
from tests.missions import House

PAGE = (
    "# Memory\n\n## Tricks\n\n- [2026-04-01] run the tests with `make quick`\n- [2026-04-02] parser: UTF-8 for gemüse\n"
)


@pytest.fixture
def remembering_bench(house: House, tmp_path: Path) -> Bench:
    """A mission with a page of memory, an archive, notes and an identity."""
    (house.state / "memory").mkdir(exist_ok=True)
    Path(house.layout.path(names.MEMORY)).write_text(PAGE)
    note = raw.render("2026-03-01T10:00:00Z", "worker", "F-001", "AVOID", "never edit the lock file by hand")
    Path(house.layout.path(names.ARCHIVE)).write_text(
        json.dumps({"entry": note.rstrip("\n"), "run": "1-worker-F-001"}) + "\n"
    )
    raw.append(house.layout, "worker", "F-002", [("TRICK", "データベースは再起動が必要")])
    house.identity.mkdir(exist_ok=True)
    (house.identity / "worker.md").write_text("- [2026-01-01] the lock file is generated: edit its source\n")
    return Bench(tmp_path, layout=house.layout)


def test_lines_are_found_by_some_of_their_words_best_first(remembering_bench: Bench) -> None:
    """In memory, archive, notes and identities; small letters or not, and without blanks between words."""
    said = remembering_bench.said("memory_search", query="how do I edit the LOCK file quickly").split("\n")
    assert {row.split(":")[0] for row in said[:2]} == {"memory/archive.jsonl", "identity/worker.md"}
    assert "never edit the lock file by hand" in "\n".join(said[:2])
    assert remembering_bench.said("memory_search", query="データベース").startswith("memory/raw.md:1: ")
    assert "gemüse" in remembering_bench.said("memory_search", query="GEMÜSE")
    assert remembering_bench.said("memory_search", query="xyzzy") == "Nothing is remembered of: xyzzy"


def test_what_was_found_can_be_read_on_where_it_stands(remembering_bench: Bench) -> None:
    """Each file that a search names, by the line that it names; a note of the archive as it was written."""
    for row in remembering_bench.said("memory_search", query="lock file tests データベース UTF-8", limit=50).split(
        "\n"
    ):
        file, line, text = row.split(":", 2)
        got = remembering_bench.said("memory_get", file=file, offset=int(line), limit=1)
        assert got.split("\n")[0] == f"{line:>6}\t{text.strip()}"


def test_an_answer_is_bounded_and_says_how_to_go_on(house: House, remembering_bench: Bench) -> None:
    """Hits by number and length; lines by page."""
    lines = [f"- [2026-04-01] lesson {number} about the parser {'x' * 2000}" for number in range(300)]
    Path(house.layout.path(names.MEMORY)).write_text("\n".join(lines) + "\n")
    said = remembering_bench.said("memory_search", query="parser")
    assert said.count("\nmemory/MEMORY.md:") == _memory_tools.DEFAULT_HITS - 1
    assert "[More lines left out." in said and len(said) < 6000
    page = remembering_bench.said("memory_get", file="memory/MEMORY.md", limit=200)
    assert page.endswith("[Lines 1-200 of 300. Go on with offset=201.]")
    assert remembering_bench.said("memory_get", file="memory/MEMORY.md", offset=251).count("\n") == 49
    assert "there is no line 301" in remembering_bench.refused("memory_get", file="memory/MEMORY.md", offset=301)


def test_nothing_but_memory_can_be_read_so(remembering_bench: Bench) -> None:
    """Neither other state nor other folders; the answer names what there is."""
    for file in ("config.toml", "../config.toml", "memory/../config.toml", "/etc/passwd", "identity/../../x"):
        said = remembering_bench.refused("memory_get", file=file)
        assert "There is no memory file" in said and "memory/MEMORY.md" in said
    assert remembering_bench.said("memory_get", file="MEMORY.md").startswith("     1\t# Memory\n")


def test_no_answer_names_a_folder_of_the_machine(house: House, remembering_bench: Bench) -> None:
    """A prompt that is the same on every machine can be cached, and rebuilt."""
    said = remembering_bench.said("memory_search", query="lock file")
    assert str(house.folder) not in said + remembering_bench.refused("memory_get", file="x")


def test_what_was_kept_of_a_user_is_found_and_read_with_and_without_a_mission(
    remembering_bench: Bench, bench: Bench
) -> None:
    """All of it: lines of today, and those that others took the place of."""
    for one in (remembering_bench, bench):
        one.own.memory = StoreKey(MemoryStore(), ("alice", "_memory.md"))
        for text in (
            "Her project is on Python 3.12.",
            "Her project is on Python 3.13 instead of 3.12.",
            "She likes tea.",
        ):
            one.said("memory_save", text=text)
        said = one.said("memory_search", query="project python").split("\n")
        assert {row.split(":")[0] for row in said} == {"_memory.md", "_memory_archive.md"}
        for row in said:
            file, number, text = row.split(":", 2)
            assert one.said("memory_get", file=file, offset=int(number), limit=1).split("\n")[0].endswith(text.strip())
    assert "memory/MEMORY.md" in remembering_bench.said("memory_search", query="tests make quick")
    assert "There are: _memory.md, _memory_archive.md." in bench.refused("memory_get", file="memory/MEMORY.md")
    assert "no tool" in bench.again().refused("memory_search", query="tea")
