"""`watch`, `report` and `diff` as a person calls them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from harness.mission import mission
from tests.missions import PROGRAM, House, differences, listing
from tests.report import many

DIFF = [sys.executable, "-P", str(PROGRAM), "diff"]


@pytest.mark.parametrize("words", [("watch",), ("watch", "--once")])
def test_without_a_terminal_the_live_view_is_printed_once(house: House, words: tuple[str, ...]) -> None:
    """Plain text, then it ends with 0; also where there is no mission yet."""
    many.mission(house.layout, 8)
    done = house.program(*words)
    assert (done.code, done.err) == (0, "")
    assert mission.load(house.layout).id in done.out
    assert "\x1b" not in done.out
    assert "receipts green VAL-8" in done.out


def test_a_terminal_without_our_signs_shows_the_words(house: House) -> None:
    """An old encoding is no fault."""
    many.mission(house.layout, 8)
    done = house.run([sys.executable, "-P", str(PROGRAM), "watch"], env={"PYTHONIOENCODING": "ascii"})
    assert (done.code, done.err) == (0, "")
    assert "receipts green VAL-8" in done.out


def test_a_folder_without_a_mission_is_no_fault_of_the_live_view(unbegun: House) -> None:
    """It may begin later; a page, however, has nothing to show."""
    done = unbegun.harness("watch")
    assert (done.code, "There is no mission in" in done.out) == (0, True)
    done = unbegun.harness("report")
    assert (done.code, "There is no mission in" in done.err) == (64, True)


def test_a_page_says_where_it_is(house: House) -> None:
    """Its path, its runs and its size."""
    many.mission(house.layout, 8)
    done = house.harness("report")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(".harness/report.html: 8 runs, ")


def test_an_unknown_mission_is_refused_with_those_that_are_there(house: House) -> None:
    """64, and nothing is written."""
    done = house.harness("report", "other")
    assert (done.code, mission.load(house.layout).id in done.err) == (64, True)
    assert not (house.state / "report.html").exists()


def test_a_diff_goes_to_git_exactly_and_to_a_terminal_in_colour(house: House) -> None:
    """In a pipe it can be undone by `git apply -R`; a pager gets colours, and no sequence of the work itself."""
    house.work({"run": "printf 'one\\033]0;t\\007\\n' >1.txt; printf '\\377\\n' >latin.txt"})
    patch = house.folder / "patch"
    patch.write_bytes(subprocess.check_output([*DIFF, "F-001"], cwd=house.project, env=house.env))
    house.git("apply", "-R", str(patch))
    assert not (house.project / "1.txt").exists()
    leader, follower = pty.openpty()
    env = {**house.env, "TERM": "xterm", "PAGER": "sed 's/^/| /'"}
    subprocess.run(DIFF, cwd=house.project, env=env, stdin=follower, stdout=follower, check=True)
    shown = os.read(leader, 100_000).decode()
    assert [text in shown for text in ("| \x1b[32m+one\\x1b]0;t\\x07\x1b[0m", "\x1b]")] == [True, False]
    assert house.program("diff", "F-001", "--stat").out.split("\n")[1].split() == ["1.txt", "|", "1", "+"]


def test_an_archived_mission_is_shown_by_its_id(house: House) -> None:
    """By `status`, `log`, `why`, `runs` and `report`; its folder stays as it is but for its page."""
    house.script("validator", {"say": "looked"})
    house.work({"run": "touch 1.txt"}, {"say": "built"})
    old, run = mission.load(house.layout).id, house.result()["run"]
    assert house.harness("init", "--abandon", "--quietly").code == 0
    before = listing(house.state / "archive")
    shown = {
        ("status", old): "0 of 2 features passed",
        ("log", old): "built",
        ("log", f"{old}/F-001"): f"== {run}",
        ("why", f"{old}/F-001"): "VAL-1: Part 1 works",
        ("runs", "list", old): run,
        ("runs", "show", f"{old}/{run}"): "outcome      ok",
        ("runs", "show", f"{old}/F-001"): "outcome      ok",
        ("runs", "show", f"{old}/F-001", "--prompt"): "# Your task",
        ("report", old): f".harness/archive/{old}/report.html: 1 runs",
    }
    for words, text in shown.items():
        done = house.harness(*words)
        assert (done.code, text in done.out) == (0, True), (words, done)
    assert json.loads(house.harness("status", old, "--json").out)["due"] == "ARCHIVED"
    assert differences(before, listing(house.state / "archive")) == [f"{old}/report.html"]
    assert house.harness("log").err == "harness: Nothing has run yet.\n"
    assert house.harness("status", "other").code == 64
    assert house.harness("log", "../x").code == 64


def test_the_ending_is_for_run_sh_and_hidden(house: House) -> None:
    """At most ten lines; not in the help."""
    done = house.harness("ending", "STOPPED")
    assert done.code == 0
    assert done.out.count("\n") <= 10
    assert "ending" not in house.harness("--help").out
