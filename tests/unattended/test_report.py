"""What `schedule add`, `list` and `remove` say."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.base import clock
from harness.unattended import _crontab
from tests.missions import House
from tests.unattended.crontabs import Crontab


def test_adding_says_what_to_look_at_and_what_would_stop_it_tonight(
    crontab: Crontab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that can be pasted; a login that ends, and a machine without cron, as far as they are seen."""
    house = crontab.house
    done = house.harness("schedule", "add", "--every", "30m")
    assert done.out.startswith("Scheduled my-project-") and "run.sh schedule log" in done.out
    assert "warning: login" not in done.out
    place = Path(house.env["HOME"]) / ".gemini"
    place.mkdir(parents=True)
    (place / "oauth_creds.json").write_text(json.dumps({"expiry_date": (clock.now() + 3600) * 1000}))
    house.config('agent = "scripted"', "[roles.worker]", 'agent = "gemini"')
    monkeypatch.setenv("GEMINI_API_KEY", "k")  # of this shell alone: cron does not pass it
    monkeypatch.setattr(_crontab, "DAEMONS", ())
    done = house.program("schedule", "add", "--lanes", "3")
    assert ", each for 25m, 3 lanes.\n" in done.out and "warning: login: that of gemini ends at " in done.out
    assert os.path.isdir("/proc/self") == ("warning: no cron daemon runs here" in done.out)
    monkeypatch.setattr(_crontab, "DAEMONS", (Path(f"/proc/{os.getpid()}/comm").read_text().strip(),))
    assert "cron daemon" not in house.program("schedule", "add").out


def test_the_list_of_all_missions_with_their_faults(crontab: Crontab) -> None:
    """One whose folder is gone says how to remove it, and `remove ID` does."""
    house = crontab.house
    assert house.harness("schedule", "list").out.startswith("Nothing is scheduled.")
    house.harness("schedule", "add", "--cron", "0 22 * * *", "--cron", "30 2 * * *", "--lanes", "2")
    row = json.loads(house.harness("schedule", "list", "--json").out)[0]
    assert (row["times"], row["lanes"], row["for"], row["here"], row["fault"]) == (
        ["0 22 * * *", "30 2 * * *"],
        2,
        "25m",
        True,
        "",
    )
    assert "2 lanes" in house.harness("schedule", "list").out
    crontab.file.write_text(crontab.text.replace("30 2 * * *", "30 2 31 2 *"))  # by hand; cron takes it
    assert "30 2 31 2 *" in house.harness("schedule", "list").out
    shutil.rmtree(house.state)
    assert f"or run.sh schedule remove {row['id']}" in house.harness("schedule", "list").out
    assert house.harness("schedule", "remove", row["id"]).out == f"Removed {row['id']}.\n"
    assert crontab.text == ""


def test_removing_what_is_not_there(crontab: Crontab) -> None:
    """No fault for this folder; an unknown id is one, with the known ids."""
    house = crontab.house
    assert house.harness("schedule", "remove").out.startswith("There was no schedule my-project-")
    done = house.harness("schedule", "remove", "other-123456")
    assert done.code == 64 and "There: none" in done.err, done


def test_a_mission_that_was_moved_or_copied_is_scheduled_anew(crontab: Crontab) -> None:
    """`list` says that its lines are another folder's; `add` replaces those of a folder that is gone, and no others."""
    house = crontab.house
    assert house.harness("schedule", "add", "--every", "30m").code == 0
    shutil.copytree(house.project, house.folder / "copy", symlinks=True)
    copy = House(house.folder, house.env, "copy")
    shown = copy.program("schedule", "list")
    assert f"{house.project}\n" in shown.out
    assert f"{copy.project}\n  fault: it is not in your crontab; run again: " in shown.out
    assert copy.program("schedule", "add", "--every", "10m").code == 0
    assert crontab.text.count(" schedule start ") == 2
    house.project.rename(house.folder / "moved")
    moved = House(house.folder, house.env, "moved")
    assert moved.program("schedule", "add", "--every", "30m").code == 0
    assert crontab.text.count(" schedule start ") == 2
    assert str(house.project) not in crontab.text
    assert "fault" not in moved.program("schedule", "list").out
