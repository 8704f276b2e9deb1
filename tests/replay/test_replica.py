"""The copy in which a mission is played back: nothing leads out of it, and nothing of it is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.base import clock
from harness.git import repository
from harness.replay._records import Records
from harness.replay._replica import Replica, variables
from harness.state import names
from harness.state.layout import identity_folder, state_home
from tests.missions import House


def replica(house: House, monkeypatch: pytest.MonkeyPatch, config: bytes | None = None) -> Replica:
    """A copy of the mission in the folder, whose variables this process has from now on."""
    folder = house.folder / ("copy" if config is None else "other")
    folder.mkdir()
    kept = variables(str(folder), house.layout, os.environ)
    for name in os.environ.keys() - kept.keys():
        monkeypatch.delenv(name)
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    return Replica(Records(house.layout, house.layout), str(folder), config)


def test_everything_that_the_process_of_a_copy_reaches_is_below_one_folder(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Project, state, trees, identity and clock."""
    house.git("remote", "add", "origin", "https://example.invalid/x.git")
    house.work({"say": "hello"})
    with replica(house, monkeypatch) as copy:
        folder = copy.folder
        places = (
            copy.layout.folders.project,
            copy.layout.state,
            state_home(),
            identity_folder(),
            os.environ[clock.RECORDED],
        )
        assert all(place.startswith(folder + "/") for place in places)
        assert not Path(copy.top, ".git/config").read_text().count("remote")
        assert b"example.invalid" not in Path(copy.layout.path(names.GIT_RECORD)).read_bytes()
        assert Path(copy.layout.folders.asked_spec).read_text() == house.read("spec.md")
        assert clock.now() == clock.seconds_of(copy.mission.created)


def test_a_person_s_commits_are_copied_onto_those_of_the_copy(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge of theirs keeps its author, its message and its tree; what holds no commit of a run stays as it is."""
    house.git("switch", "-q", "-c", "side", "main")
    house.write("side.txt")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "aside")
    side = house.head()
    house.git("switch", "-q", "-")
    made = house.work({"run": "echo 1 > 1.txt"})["commit"]
    house.git("merge", "-q", "-m", "both", "side")
    merged = house.head()
    with replica(house, monkeypatch) as copy:
        assert copy.here(side) == side
        own = repository.commit_tree(copy.top, house.git("rev-parse", f"{made}^{{tree}}"), [copy.followed], "again\n")
        copy.commits[made] = own
        here = copy.here(merged)
        words = ("show", "-s", "--format=%an %ae %ad %s %T", merged)
        assert here != merged
        assert repository.run(copy.top, *words[:-1], here).decode().rstrip("\n") == house.git(*words)
        assert repository.run(copy.top, "show", "-s", "--format=%P", here).decode().split() == [own, side]
    assert house.git("cat-file", "-t", here, check=False) == ""  # it was written there


def test_the_configuration_and_edits_by_hand_are_as_each_run_found_them(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded config.toml, and the queue that a person had edited; a given configuration replaces all."""
    house.base = ("curate_after = 11",)
    house.config('agent = "scripted"')
    house.work({"say": "one"})
    house.base = ("curate_after = 12",)
    house.config('agent = "scripted"')
    house.work({"say": "two"}, feature="F-002")
    with replica(house, monkeypatch) as copy:
        for past, number in zip(copy.records.runs, (11, 12), strict=True):
            copy.edits(past, copy.records.runs[past.behind - 1] if past.behind else None)
            assert copy.configure_as(past)
            assert f"curate_after = {number}" in Path(copy.layout.path(names.CONFIG)).read_text()
        assert '"id":"F-001"' in Path(copy.layout.path(names.FEATURES)).read_text()
        assert copy.missing == []
    with replica(house, monkeypatch, b"[limits]\n") as copy:
        assert copy.configure_as(copy.records.runs[0])
        assert Path(copy.layout.path(names.CONFIG)).read_bytes() == b"[limits]\n"
