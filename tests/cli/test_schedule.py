"""The command `schedule`: its words, its folder, its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.missions import House
from tests.unattended.crontabs import Crontab


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, house: House) -> Crontab:
    """The crontab of a mission's user."""
    return Crontab(tmp_path, monkeypatch, house)


def test_the_folder_may_be_named_before_and_behind(crontab: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-C DIR schedule add`, and `schedule add -C DIR` from elsewhere."""
    house = crontab.house
    folder = str(house.project)
    elsewhere = House(house.folder, house.env, "elsewhere")
    elsewhere.project.mkdir()
    for words in (
        ["-C", folder, "schedule", "add", "--every", "2h"],
        ["schedule", "add", "-C", folder, "--every", "2h"],
    ):
        assert elsewhere.program(*words).code == 0
        assert f"-C '{folder}' schedule start" in crontab.text and crontab.text.count("schedule start") == 1
    assert elsewhere.program("schedule", "remove", "-C", folder).out.startswith("Removed my-project-")


def test_its_log_before_and_after_the_first_start(crontab: Crontab) -> None:
    """Local times for people, unix seconds as JSON; the last lines only."""
    house = crontab.house
    assert house.harness("schedule", "log").out.startswith("There is no log of scheduled starts yet")
    assert house.harness("schedule", "run-now").code == 64
    (house.state / "schedule").mkdir()
    (house.state / "schedule/log").write_text("2026-11-22T21:30:00Z one\n2026-11-22T21:30:01Z \x1b[2Jtwo\ntorn")
    assert [row["text"] for row in json.loads(house.harness("schedule", "log", "--json").out)] == [
        "one",
        "\x1b[2Jtwo",
        "torn",
    ]
    shown = house.harness("schedule", "log", "-n", "2").out
    assert "one" not in shown and "\\x1b[2Jtwo" in shown and shown.count("\n") == 2


def test_it_stands_in_the_help(house: House) -> None:
    """With its words; the one that the crontab calls is hidden."""
    assert "schedule" in house.harness("help").out
    shown = house.harness("schedule", "--help").out
    assert (
        all(f"\n  {word} " in shown for word in ("add", "list", "remove", "run-now", "log"))
        and "\n  start " not in shown
    )
