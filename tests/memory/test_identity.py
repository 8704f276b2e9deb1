"""Identity across missions: evidence counts once, a person's words stay, and foreign changes are noticed."""

from __future__ import annotations

import functools
import os
import random
import re
import shutil
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.memory import identity
from harness.memory.curation.growth import Evidence, Graduation
from harness.state import files
from tests import crash
from tests.helpers import nasty

TODAY = "2026-04-24"


def told(seq: int, text: str, mission: str = "a-1", tag: str = "TRICK") -> Evidence:
    """One occurrence of a worker's note."""
    return Evidence(
        mission=mission, feature="F-001", run="r", seq=seq, role="worker", at=TODAY + "T00:00:00Z", tag=tag, text=text
    )


def up(text: str, role: str = "worker", tag: str = "TRICK") -> Graduation:
    """A note that graduates."""
    return Graduation(role=role, text=text, tag=tag, missions=["a-1"], count=1)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """An identity folder that does not exist yet."""
    return str(tmp_path / "identity")


def teach(folder: str, count: int, mission: str = "a-1") -> None:
    """Graduate `count` notes."""
    notes = [f"word{n} is number {n}" for n in range(count)]
    identity.record(
        folder, [told(n, text, mission) for n, text in enumerate(notes)], [up(text) for text in notes], TODAY
    )


# ---- reading and writing


def test_an_identity_has_its_documented_form(folder: str) -> None:
    """A heading, and dated items with their missions and number of occurrences."""
    said = [told(4, "run setup first", "a-1"), told(9, "run setup first", "b-2"), told(11, "run setup first", "b-2")]
    assert identity.record(folder, said, [up("run setup first")], TODAY) == ["evidence.jsonl", "worker.md"]
    assert identity.text(folder, "worker") == ("# worker\n- [2026-04-24] run setup first (missions: a-1, b-2 · 3x)\n")
    assert identity.texts(folder) == {"worker": identity.text(folder, "worker")}
    assert identity.text(folder, "planner") == ""


def test_nothing_is_counted_twice(folder: str) -> None:
    """Recording again, whole or in part, changes no byte."""
    said = [told(n, "run setup first") for n in range(3)]
    identity.record(folder, said, [up("run setup first")], TODAY)
    before = {name: files.read(os.path.join(folder, name)) for name in files.names(folder)}
    assert identity.record(folder, said, [up("run setup first")], "2026-05-01") == []
    assert identity.record(folder, said[1:], [], "2026-05-01") == []
    assert {name: files.read(os.path.join(folder, name)) for name in files.names(folder)} == before


def test_a_number_that_a_restored_mission_gives_again_is_new_evidence(folder: str) -> None:
    """The mission was put back behind entry 4, and went on: its second entry 4 is of another time."""
    identity.record(folder, [told(4, "run setup first")], [], TODAY)
    again = told(4, "the linter needs node").replace(at="2026-05-02T10:00:00Z")
    assert identity.record(folder, [again], [], TODAY) == ["evidence.jsonl"]
    assert [one.text for one in identity.evidence(folder)] == ["run setup first", "the linter needs node"]


def test_one_mission_does_not_fill_what_all_missions_read(folder: str) -> None:
    """A loop that notes one failure all night leaves a bounded file; other missions have room all the same."""
    for start in (0, 9000):
        said = [told(start + number, f"word{number % 9}", "a-1", "FAIL") for number in range(9000)]
        identity.record(folder, said, [], TODAY)
    identity.record(folder, [told(1, "run setup first", "b-2")], [], TODAY)
    known = identity.evidence(folder)
    assert len(known) == identity.MAX_EVIDENCE + 1
    assert (known[0].seq, known[-2].seq, known[-1].mission) == (0, identity.MAX_EVIDENCE - 1, "b-2")


def test_the_same_in_other_words_raises_the_count(folder: str) -> None:
    """One item, both missions; only what graduates in other words is an item of its own."""
    identity.record(
        folder,
        [told(1, "stop the dev server before you run e2e tests: they also need port 3000")],
        [up("stop the dev server before you run e2e tests: they also need port 3000")],
        TODAY,
    )
    other = "The dev server must be stopped before running the e2e tests, both bind port 3000"
    first = up("Stop the dev server before you run e2e tests: they also need port 3000.")
    identity.record(folder, [told(1, other, "b-2")], [first], "2026-05-01")
    (item,) = identity.parse(identity.text(folder, "worker")).items("")
    assert (item.where, item.count, item.date) == (["a-1", "b-2"], 2, "2026-05-01")
    assert item.text.startswith("stop the dev server")
    identity.record(folder, [], [up(other)], "2026-05-01")
    items = identity.parse(identity.text(folder, "worker")).items("")
    assert [(one.text, one.count) for one in items] == [(item.text, 2), (other, 2)]


def test_a_failure_becomes_something_to_avoid_and_apart_from_tricks(folder: str) -> None:
    """The same words as a trick and as a failure are two items."""
    said = [told(1, "run setup first"), told(2, "run setup first", tag="FAIL")]
    identity.record(folder, said, [up("run setup first"), up("run setup first", tag="FAIL")], TODAY)
    items = identity.parse(identity.text(folder, "worker")).items("")
    assert [(item.text, item.count) for item in items] == [("run setup first", 1), ("Avoid: run setup first", 1)]


def test_an_identity_keeps_sixty_lines_and_its_strongest_items(folder: str) -> None:
    """The least frequent items go first, the oldest of them before newer ones; their evidence stays."""
    teach(folder, 59)
    teach(folder, 10, "b-2")
    teach(folder, 100, "c-3")
    text = identity.text(folder, "worker")
    assert text.count("\n") == 60
    assert [f"word{n} is number {n} (missions: a-1, b-2, c-3 · 3x)" in text for n in range(10)] == [True] * 10
    assert len(identity.evidence(folder)) == 169


def test_what_a_person_wrote_stays_word_for_word(folder: str) -> None:
    """Lines, headings, and a raised count; where they alone are over the bound, nothing is added."""
    os.makedirs(folder)
    own = "# worker\nI am careful.\n- [2026-01-01] word1 is number 1 (9x)\n\n## Mine\n- a list\n"
    Path(folder, "worker.md").write_text(own)
    teach(folder, 300)
    text = identity.text(folder, "worker")
    for line in ("I am careful.", "- [2026-04-24] word1 is number 1 (missions: a-1 · 9x)", "## Mine", "- a list"):
        assert text.split("\n").count(line) == 1
    Path(folder, "worker.md").write_text("mine\n" * 61)
    identity.record(folder, [told(7, "new", "d-4")], [up("new")], TODAY)
    assert identity.text(folder, "worker") == "mine\n" * 61


def test_an_identity_is_rendered_as_it_was_read() -> None:
    """Byte for byte."""
    dice = random.Random(1)
    for _ in range(300):
        text = "".join(nasty(dice).replace("\r", "") + "\n- [2026-04-24] x (missions: a, b · 2x)\n" for _ in range(4))
        assert identity.render(identity.parse(text)) == text


# ---- evidence


def test_evidence_comes_back_as_written(folder: str) -> None:
    """Any text, in order."""
    dice = random.Random(4)
    said = [told(n, nasty(dice)) for n in range(100)]
    identity.record(folder, said, [], TODAY)
    assert identity.evidence(folder) == said
    assert identity.evidence(folder + "/absent") == []


def test_a_torn_or_doubled_line_of_evidence_counts_at_most_once(folder: str) -> None:
    """A power cut elsewhere must not stop a mission; the next record does not join a torn line."""
    identity.record(folder, [told(1, "a")], [], TODAY)
    path = os.path.join(folder, "evidence.jsonl")
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole + whole + whole[:20])
    assert identity.evidence(folder) == [told(1, "a")]
    identity.record(folder, [told(2, "b")], [], TODAY)
    assert identity.evidence(folder) == [told(1, "a"), told(2, "b")]


@pytest.mark.parametrize("line", [b"{}", b"[]", b"no", b'{"mission":"a"}', b"\xff"])
def test_a_broken_line_of_evidence_is_named(folder: str, line: bytes) -> None:
    """With file and number."""
    identity.record(folder, [told(1, "a")], [], TODAY)
    with open(os.path.join(folder, "evidence.jsonl"), "ab") as file:
        file.write(line + b"\n")
    with pytest.raises(BrokenFile, match=r"evidence\.jsonl, line 2"):
        identity.evidence(folder)


def test_every_file_of_the_folder_is_on_the_page_of_files(folder: str) -> None:
    """Also those that exist only while a mission writes, or after a crash."""
    page = (Path(__file__).parents[2] / "docs/layout.md").read_text().split("## Identity\n")[1]
    told = set(re.findall(r"^\| `([^`]+)` \|", page, re.M))
    seen: set[str] = set()

    def work() -> None:
        teach(folder, 2)
        identity.forget(folder, "worker", "word1 is number 1")

    for _ in crash.stops(work):
        seen |= {name for name in files.names(folder) if not name.endswith(".tmp")}
    assert {name if name != "worker.md" else "<role>.md" for name in seen} == told


# ---- several missions, crashes, and others who write


def test_missions_that_write_at_once_lose_nothing(folder: str) -> None:
    """Four processes, one folder."""

    def mission(name: str) -> None:
        for number in range(12):
            identity.record(folder, [told(number, f"word{number}", name)], [up(f"word{number}")], TODAY)

    children = [crash.start(functools.partial(mission, name)) for name in ("a", "b", "c", "d")]
    assert [crash.end(pid) for pid in children] == [0] * 4
    assert len(identity.evidence(folder)) == 48
    items = identity.parse(identity.text(folder, "worker")).items("")
    assert sorted(item.count for item in items) == [4] * 12
    assert identity.forgotten(folder) == []


def test_a_crash_anywhere_is_repaired_by_recording_again(folder: str) -> None:
    """And no line of ours counts as deleted."""
    texts = ["run setup first", "close the parser behind the last line", "psql reads PGHOST"]
    said, ups = [told(n, text) for n, text in enumerate(texts)], [up(text) for text in texts]
    teach(folder, 2, "z-9")
    for _ in crash.stops(lambda: identity.record(folder, said, ups, TODAY)):
        assert identity.forgotten(folder) == []
        assert len(identity.evidence(folder)) in (2, 5)
        identity.record(folder, said, ups, TODAY)
        assert len(identity.evidence(folder)) == 5
        items = {item.text: item.count for item in identity.parse(identity.text(folder, "worker")).items("")}
        assert [items[text] for text in texts] == [1, 1, 1]
        assert identity.forgotten(folder) == []
        for name in files.names(folder):
            os.unlink(os.path.join(folder, name))
        teach(folder, 2, "z-9")


def test_a_kill_before_any_step_neither_forgets_a_line_nor_brings_one_back(folder: str, tmp_path: Path) -> None:
    """Of a record that adds lines and drops others for room, and of a command that forgets one; then a person deletes a line."""
    texts = [f"step{n} comes before part{n}" for n in range(9)]
    said = [told(n, texts[n // 2], "b-2") for n in range(18)]  # twice each, so that older lines leave
    ups = [up(one) for one in texts]

    def grow() -> None:
        identity.record(folder, said, ups, TODAY)

    def forget() -> None:
        identity.forget(folder, "worker", "word58 is number 58")

    for work, forgets in ((grow, set[str]()), (forget, {"word58 is number 58"})):
        shutil.rmtree(folder, ignore_errors=True)
        teach(folder, 59)
        shutil.copytree(folder, tmp_path / work.__name__)
        for _ in crash.stops(work):
            assert {text for _, text in identity.forgotten(folder)} <= forgets
            work()
            assert {text for _, text in identity.forgotten(folder)} == forgets
            items = {item.text for item in identity.parse(identity.text(folder, "worker")).items("")}
            assert not items & forgets and len(items) >= 58
            assert forgets or items > set(texts)
            path = Path(folder, "worker.md")
            own = sorted(items)[0]
            path.write_text("".join(line for line in path.read_text().splitlines(True) if own not in line))
            identity.record(folder, said, [*ups, up(own)], TODAY)
            assert own not in identity.text(folder, "worker")
            assert ("worker", own) in identity.forgotten(folder)
            shutil.rmtree(folder)
            shutil.copytree(tmp_path / work.__name__, folder)


def test_a_line_that_a_person_deletes_beside_a_look_alike_is_forgotten(folder: str) -> None:
    """The look-alike is a line of ours, not the deleted one in a person's words."""
    one, other = "clear the build cache before the release tests", "before the release tests clear the build cache"
    identity.record(folder, [told(0, one), told(1, other)], [up(one), up(other)], TODAY)
    path = Path(folder, "worker.md")
    path.write_text("".join(line for line in path.read_text().splitlines(True) if other not in line))
    assert identity.forgotten(folder) == [("worker", other)]


def test_a_line_that_a_person_deletes_is_forgotten_and_another_mission_brings_none_back(folder: str) -> None:
    """Only that one: what a person made a line of their own is there, and so is what another mission wrote since."""
    teach(folder, 4)
    path = Path(folder, "worker.md")
    lines = path.read_text().splitlines(True)
    path.write_text("".join([lines[0], lines[1], "- Word2 is number 2.\n", lines[4]]))
    for _ in range(2):
        assert identity.forgotten(folder) == [("worker", "word1 is number 1")]
        identity.record(folder, [told(9, "run setup first", "b-2")], [up("run setup first")], TODAY)


@pytest.mark.parametrize("left", [None, "", "\n"])
def test_an_identity_that_is_gone_or_empty_forgets_nothing(folder: str, left: str | None) -> None:
    """Nor does one that leaves lines for others."""
    teach(folder, 3)
    path = Path(folder, "worker.md")
    path.unlink() if left is None else path.write_text(left)
    teach(folder, 90, "b-2")
    assert identity.forgotten(folder) == []


def test_only_a_plain_name_makes_an_identity() -> None:
    """An agent's line in the name of ../../x opens no file there."""
    assert identity.is_role("worker")
    assert [identity.is_role(name) for name in ("../x", "", "a b", "README", "readme", ".hidden", "x" * 65)] == [
        False
    ] * 7


def test_temporary_files_of_a_write_that_was_cut_short_are_removed(folder: str) -> None:
    """Those of a live process stay."""
    os.makedirs(folder, exist_ok=True)
    gone = crash.start(lambda: None)
    crash.end(gone)
    for pid in (gone, os.getpid()):
        files.replace(f"{folder}/worker.md.{pid}.tmp", b"half")
    identity.clear(folder)
    assert [name for name in files.names(folder) if name.endswith(".tmp")] == [f"worker.md.{os.getpid()}.tmp"]
