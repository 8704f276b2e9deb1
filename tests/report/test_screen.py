"""The lines of the live view: they fit every terminal, and nothing in them steers it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.base import clock
from harness.mission.features import Feature
from harness.mission.transcript import parse
from harness.report import screen
from harness.report.glance import Glance, Lane, Watcher
from harness.state import files, names
from tests.missions import House
from tests.report import many

HOSTILE = "a\x1b]0;title\x07\x1b[2J\u202eb 漢字漢字 🎉 \t tab " + "long " * 60


def a_lane(number: int = 1, text: str = HOSTILE) -> Lane:
    """A run under way that has said this, many times."""
    row = parse(files.dump_json({"at": 1.0, "kind": "said", "text": text}))
    assert row is not None
    feature = f"F-{number:03}"
    return Lane(
        run="1-w",
        role="worker",
        feature=feature,
        tree=f"tree-{number}",
        pid=1,
        since=clock.stamp(time.time() - 75),
        rows=[row] * 40,
    )


def busy(house: House, lanes: int = 1) -> Glance:
    """A glance with something of everything."""
    many.mission(house.layout, 40)
    house.harness("note", "--tag", "TRICK", "use make")
    found = Watcher(str(house.project)).look()
    found.lanes = [a_lane(number) for number in range(1, lanes + 1)]
    found.features += [Feature(id="F-999", title=HOSTILE, claims=["VAL-1"])]
    return found


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (20, 6), (1, 1), (200, 60), (500, 200)])
@pytest.mark.parametrize("lanes", [0, 1, 3, 8])
def test_no_line_is_wider_and_no_more_are_there_than_fit(house: House, size: tuple[int, int], lanes: int) -> None:
    """In cells, as Chinese and emoji count; hostile text is made visible."""
    found = screen.lines(busy(house, lanes), *size, keys=True)
    assert len(found) <= size[1]
    assert max(line.cell_len for line in found) <= size[0]
    assert not [line for line in found if set("\x1b\x07\u202e\n\t") & set(line.plain)]


def test_eighty_by_twenty_four_has_something_of_everything(house: House) -> None:
    """One lane with its last lines, the queue, receipts, runs, memory, spending."""
    text = "\n".join(line.plain for line in screen.lines(busy(house), 80, 24, keys=True))
    for words in (
        "tree-1 worker F-001",
        "1:1",
        "says a",
        "next     F-0",
        "receipts ",
        "runs     ",
        "memory   ",
        "TRICK: use make",
    ):
        assert words in text, text
    assert "runs 40 of 200 (20 %)" in text
    assert "cost " in text
    assert text.endswith("q quits")


def test_each_of_three_lanes_has_its_last_line_and_more_are_counted(house: House) -> None:
    """Also where the terminal is small."""
    found = busy(house, 8)
    text = "\n".join(line.plain for line in screen.lines(found, 80, 16))
    assert "more runs under way" in text
    found.lanes = found.lanes[:3]
    lines = [line.plain for line in screen.lines(found, 80, 24, keys=True)]
    heads = [at for at, line in enumerate(lines) if line.startswith("tree-")]
    assert len(heads) == 3
    assert all("says" in lines[at + 1] for at in heads)


def test_the_newest_line_of_a_transcript_is_the_last_one(house: House) -> None:
    """Of a long text the end is shown."""
    found = busy(house)
    found.lanes = [a_lane(text="\n".join(f"line {at}" for at in range(100)))]
    lines = [line.plain.strip() for line in screen.lines(found, 80, 24)]
    assert "says line 99" in lines
    assert lines[lines.index("says line 99") + 1].startswith("next")


def test_a_mission_that_is_not_there_fits_too(tmp_path: Path) -> None:
    """And says so."""
    assert "There is no mission" in "\n".join(screen.plain(Watcher(str(tmp_path)).look()))


def test_what_cannot_be_read_is_on_the_screen(house: House) -> None:
    """With the file."""
    Path(house.layout.path(names.FEATURES)).write_text("{")
    assert [
        line
        for line in screen.plain(Watcher(str(house.project)).look())
        if "not read" in line and "features.json" in line
    ]


def test_a_receipt_is_shown_with_its_notes(house: House) -> None:
    """On its row, a green one's too."""
    found = busy(house)
    found.receipts[0].notes = ["only in the folder: a", "odd"]
    text = "\n".join(line.plain for line in screen.lines(found, 250, 60))
    assert " s only in the folder: a; odd\n" in text
