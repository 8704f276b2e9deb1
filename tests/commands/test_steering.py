"""Halting, going on and steering: what is written, and what is said about what happens next."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.commands import steering
from harness.mission import lease
from harness.state import names
from harness.state.layout import Layout
from harness.workplace import mission_lock
from tests.missions import House, until


def test_the_file_says_who_and_when(house: House) -> None:
    """In one line; a second halt leaves the first as it was."""
    steering.halt(house.layout, "pause", "two\nlines")
    first = house.read("PAUSE")
    assert re.fullmatch(r"pause by \S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: two lines\n", first)
    assert steering.halt(house.layout, "pause", "").startswith("Paused already (pause by ")
    assert house.read("PAUSE") == first


def test_resume_takes_both_back(house: House) -> None:
    """Also a file that a person made by hand; without one it says so."""
    (house.state / "STOP").touch()
    steering.halt(house.layout, "pause", "")
    assert steering.resume(house.layout).startswith("Removed PAUSE (pause by ")
    assert [(house.state / name).exists() for name in ("PAUSE", "STOP")] == [False, False]
    assert steering.resume(house.layout) == "The mission is neither paused nor stopped. Start it: run.sh."


def test_a_halt_that_is_no_text_is_taken_back(house: House) -> None:
    """Whatever wrote it: the mission waits because of the file, so a person can remove it."""
    (house.state / "PAUSE").write_bytes(b"\xff\xfe\n")
    assert steering.halt(house.layout, "pause", "").startswith("Paused already (")
    assert steering.resume(house.layout).startswith("Removed PAUSE (")
    assert not (house.state / "PAUSE").exists()


def test_a_run_under_way_goes_on_to_its_end(house: House) -> None:
    """The loop ends behind it, or goes on where a person said so meanwhile."""
    house.script("worker", {"run": "touch begun; until test -e go; do sleep 0.05; done; touch 1.txt"})
    loop = house.loop()
    until(lambda: (house.tree / "begun").exists())
    assert mission_lock.looping(house.layout)
    assert re.search(
        r"The run under way \(\d+-worker-F-001\) continues to its end", steering.halt(house.layout, "stop", "")
    )
    assert steering.resume(house.layout).endswith("run.sh continues the mission.")
    steering.halt(house.layout, "stop", "")
    (house.tree / "go").touch()
    out, _ = loop.communicate(timeout=180)
    assert (loop.returncode, house.feature().status) == (9, "validating"), out
    assert not mission_lock.looping(house.layout)


def test_several_runs_under_way_are_spoken_of_as_such(unconfined: House) -> None:
    """As lanes have them."""
    for n in (1, 2):
        unconfined.script(f"worker-F-00{n}", {"run": "until test -e go; do sleep 0.05; done"})
        unconfined.begin_role("worker", f"F-00{n}")
        until(lambda n=n: len(lease.alive(unconfined.layout)) == n)  # type: ignore[misc]  # a default of the loop's number
    said = steering.halt(unconfined.layout, "pause", "")
    assert re.search(
        r"The runs under way \(\S+-F-001, \S+-F-002\) continue to their ends, then nothing starts", said
    ), said


def test_what_a_person_wrote_into_the_file_stays(house: House) -> None:
    """With or without a newline at its end."""
    Path(house.layout.path(names.STEER)).write_text("mine")
    steering.steer(house.layout, " more\nlines ")
    assert steering.steering(house.layout) == "mine\nmore\n  lines\n"
    with pytest.raises(UsageFault, match="Give a note for the next runs"):
        steering.steer(house.layout, "  ")


def test_what_was_said_in_several_lines_is_taken_back_as_one(house: House) -> None:
    """With its empty lines; what was said beside it stays."""
    steering.steer(house.layout, "first")
    steering.steer(house.layout, "use these:\n- one\n\n- two")
    steering.steer(house.layout, "last")
    assert [text.split("\n")[0] for _, text in steering.listed(house.layout)] == ["first", "use these:", "last"]
    steering.unsay(house.layout, 2)
    assert steering.steering(house.layout) == "first\nlast\n"


def test_without_a_mission_there_is_nothing_to_steer(unbegun: House) -> None:
    """And none is made."""
    layout = Layout(str(unbegun.project))
    calls: list[Callable[[], object]] = [
        lambda: steering.halt(layout, "pause", ""),
        lambda: steering.resume(layout),
        lambda: steering.steer(layout, "x"),
        lambda: steering.steering(layout),
    ]
    for call in calls:
        with pytest.raises(UsageFault, match="There is no mission"):
            call()
    assert not unbegun.state.exists()
