"""`export`: what comes out replays where nothing else of the mission is."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.crash import sampled
from tests.missions import House, listing


@pytest.fixture
def ran(house: House) -> tuple[House, str]:
    """A mission with a run that committed something."""
    return house, house.work({"run": "echo made > 1.txt"}, {"say": "hello"})["run"]


def elsewhere(house: House, folder: Path, run_id: str, sent: str, fetch: str) -> None:
    """Without the project: the run replays in the folder, and its commits come out of the bundle as the command says."""
    shutil.move(house.project, house.folder / "gone")
    words = ["-C", str(folder)]
    house.project = house.folder
    refused = house.program(*words, "replay", run_id)
    accept = re.findall("workspace accept [0-9a-f]+", refused.err)
    assert refused.code == 69 and house.program(*words, *accept[0].split()).code == 0
    done = house.program(*words, "replay", run_id)
    assert (done.code, "byte for byte" in done.out) == (0, True), done
    assert house.program(*words, "replay", "--all").code == 0
    assert house.program(*words, "runs", "show", run_id, "--prompt").out == sent
    assert house.program(*words, "search", "hello", "--in", "runs").out.count(run_id) >= 1
    house.project = folder
    fetched = house.run(["bash", "-c", fetch])
    assert fetched.code == 0, fetched
    commit = json.loads((folder / ".harness/runs" / run_id / "result.json").read_text())["commit"]
    assert house.git("show", f"{commit}:1.txt") == "made"


FORMS = itertools.product((False, True), ("out", "out.tar", "out.tar.gz"))


# each form is in one of these rows, of one run or of all; HARNESS_TORTURE=1 runs all
@pytest.mark.parametrize(("whole", "name"), sampled(FORMS, lambda row: row[0] == (row[1] == "out.tar")))
def test_an_export_replays_on_another_machine(ran: tuple[House, str], name: str, whole: bool) -> None:
    """A folder or a tar, of one run or of all; the mission stays as it was, refs included."""
    house, run_id = ran
    sent, target = house.prompt(run_id), house.folder / name
    before = listing(house.state, "locks", "cache"), house.git("for-each-ref")
    done = house.program("export", *(["--all"] if whole else [run_id]), "--to", str(target))
    assert (done.code, str(target) in done.out) == (0, True), done
    assert (listing(house.state, "locks", "cache"), house.git("for-each-ref")) == before
    folder = target
    if name != "out":
        folder = house.folder / "unpacked"
        with tarfile.open(target) as tar:
            tar.extractall(folder, filter="data")
    assert (folder / ".harness/features.json").exists() is whole
    assert not {"locks", "cache", "git-config", ".git"} & set(os.listdir(folder / ".harness"))
    elsewhere(house, folder, run_id, sent, done.out.split("the commits: ")[1])


def test_a_place_that_exists_and_a_run_that_is_not_whole_write_nothing(ran: tuple[House, str]) -> None:
    """64 and 65; nothing is left behind, and nothing that was there is touched."""
    house, run_id = ran
    target = house.folder / "out"
    target.mkdir()
    assert house.program("export", run_id, "--to", str(target)).code == 64
    assert os.listdir(target) == []
    target.rmdir()
    Path(house.layout.run(run_id).prompt).write_text("forged\n")
    for name in ("out", "out.tar"):
        assert house.program("export", run_id, "--to", str(house.folder / name)).code == 65
        assert not os.path.lexists(house.folder / name)


@pytest.mark.parametrize("words", [["F-001"], ["--all"]])
@pytest.mark.parametrize("name", ["out", "out.tar"])
def test_after_a_fault_in_the_middle_nothing_is_left(ran: tuple[House, str], words: list[str], name: str) -> None:
    """A git that fails when the rest is written: neither a half folder, nor a tar, nor a temporary one."""
    house, _ = ran
    os.rename(house.project / ".git", house.folder / "git")
    done = house.program("export", *words, "--to", str(house.folder / name))
    assert (done.code != 0, "Traceback" in done.err) == (True, False)
    assert not os.path.lexists(house.folder / name)
    assert [one for one in os.listdir(house.folder / "temporary") if "export" in one] == []


@pytest.mark.parametrize("words", [[], ["F-001"], ["--all"], ["F-001", "--all", "--to", "x"], ["nothing", "--to", "x"]])
def test_it_says_what_and_where_to(ran: tuple[House, str], words: list[str]) -> None:
    """64 for half of it."""
    assert ran[0].harness("export", *words).code == 64


def test_an_agent_cannot_export(house: House) -> None:
    """64 inside a run, whatever it may read."""
    house.work({"run": "harness export --all --to out > said 2>&1 || echo $? >> said"})
    assert house.git("show", "HEAD:said").endswith("\n64")


@pytest.mark.parametrize("words", [["export", "--to", "out"], ["gc"]])
def test_refs_that_a_killed_export_left_go_with_the_next_one(ran: tuple[House, str], words: list[str]) -> None:
    """Or with gc; they are in no bundle."""
    house, run_id = ran
    house.git("update-ref", "refs/harness/export/other-run/made", "HEAD")
    done = house.program(*words, *([run_id] if words[0] == "export" else []))
    assert done.code == 0, done
    assert house.git("for-each-ref", "refs/harness/export") == ""
    if words[0] == "export":
        assert "other-run" not in house.git("bundle", "list-heads", "out/repository.bundle")
