"""Where there is no cron: what is printed, systemd and launchd read as it is meant."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from harness.base import clock
from harness.base.errors import UsageFault
from harness.unattended import _crontab as tab
from harness.unattended import _times, recipes
from harness.unattended.schedules import Schedule
from tests.missions import House
from tests.unattended.crontabs import Crontab

WORDS = ["/bin/bash", "/h/run.sh", "-C", '/my "100%" $HOME', "schedule", "start", "a-1"]
SYSTEMD = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


def made(place: str, *times: str) -> Schedule:
    """A schedule."""
    return Schedule(id="a-1", times=[*times], goes_on="25m", place=place, environment={}, added="")


@SYSTEMD
@pytest.mark.parametrize("text", ["*/30 * * * *", "0 22,23 * * 1-5", "15 3 13 * 5", "* * * * *", "0 0 */2 * *"])
def test_systemd_takes_the_times(text: str) -> None:
    """Each OnCalendar, by its own parser."""
    whens = [line for line in recipes.recipe(made("systemd", text), WORDS) if line.startswith("OnCalendar=")]
    assert len(whens) == (2 if text == "15 3 13 * 5" else 1)
    now, nexts = int(time.time()), []
    for one in whens:
        words = ["systemd-analyze", "calendar", f"--base-time=@{now}", one[11:]]
        done = subprocess.run(
            words, env={**os.environ, "TZ": "UTC", "LC_ALL": "C"}, capture_output=True, text=True, check=False
        )
        found = re.search(r"Next elapse: \w+ (\S+) (\S+) UTC", done.stdout)
        assert found, done
        nexts.append(f"{found[1]}T{found[2]}Z")
    later = range(now - now % 60 + 60, now + 400 * 86400, 60)
    assert clock.seconds_of(min(nexts)) == next(at for at in later if _times.parse(text).falls_on(time.gmtime(at)))


def test_systemd_gets_the_words_by_its_own_escapes() -> None:
    """`%` and `$` mean something to it."""
    line = next(line for line in recipes.recipe(made("systemd", "* * * * *"), WORDS) if line.startswith("ExecStart="))
    assert '"/my \\"100%%\\" $$HOME"' in line


@SYSTEMD
def test_systemd_verifies_the_unit(tmp_path: Path) -> None:
    """As a file, by systemd-analyze."""
    words = ["/bin/sh", "/h/run.sh", "-C", '/my "100%" $HOME', "schedule", "start", "a-1"]
    lines = recipes.recipe(made("systemd", "*/30 * * * *"), words)
    split = lines.index("")
    for name, part in (("service", lines[1:split]), ("timer", lines[split + 2 : lines.index("", split + 1)])):
        (tmp_path / f"harness-a-1.{name}").write_text("\n".join(part) + "\n")
    both = [str(tmp_path / f"harness-a-1.{name}") for name in ("service", "timer")]
    done = subprocess.run(["systemd-analyze", "verify", "--user", *both], capture_output=True, text=True, check=False)
    assert "harness-a-1" not in done.stderr, done.stderr


def test_launchd_gets_a_list_of_intervals() -> None:
    """One for each combination, without what takes every value; either of day and weekday is two."""
    lines = recipes.recipe(made("launchd", "*/30 22 13 * 5"), WORDS)
    found = plistlib.loads("\n".join(lines[1 : lines.index("")]).encode())
    assert found["ProgramArguments"] == WORDS
    wanted = [{"Minute": minute, "Hour": 22, **day} for day in ({"Day": 13}, {"Weekday": 5}) for minute in (0, 30)]
    assert found["StartCalendarInterval"] == wanted
    with pytest.raises(UsageFault, match="entry for each time"):
        recipes.recipe(made("launchd", "*/2 1-20 * * *"), WORDS)


@pytest.mark.parametrize("place", ["systemd", "launchd", "cron"])
def test_printing_keeps_the_settings_and_leaves_the_crontab_alone(crontab: Crontab, place: str) -> None:
    """So that the start that a person installs finds them; remove says what is left to end."""
    house: House = crontab.house
    done = house.harness("schedule", "add", "--every", "30m", "--print", place)
    assert done.code == 0 and "schedule" in done.out and not crontab.file.exists(), done
    assert (house.state / "schedule" / "schedule.json").exists()
    if place == "cron":
        assert len(tab.entries(done.out.split("\n", 1)[1])) == 1
    else:
        removed = house.harness("schedule", "remove")
        assert {"systemd": "systemctl --user disable", "launchd": "launchctl bootout"}[place] in removed.out, removed
