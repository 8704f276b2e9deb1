"""A real cron daemon executes a schedule from the user's crontab: HARNESS_TORTURE=1, as root, without other crontabs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.missions import House, until

DAEMON = next((path for path in ("/usr/sbin/cron", "/usr/sbin/crond") if os.path.exists(path)), "")
TORTURING = pytest.mark.skipif(
    os.environ.get("HARNESS_TORTURE") != "1", reason="two minutes of cron's own time: HARNESS_TORTURE=1 runs it"
)
ABLE = pytest.mark.skipif(
    not DAEMON or not shutil.which("crontab") or os.geteuid() != 0, reason="needs root, a cron daemon and crontab"
)


@pytest.fixture
def daemon(house: House) -> Iterator[subprocess.Popen[bytes]]:
    """A cron daemon in the foreground, with a crontab that has one line of a person; what there was before comes back."""
    before = subprocess.run(["crontab", "-l"], capture_output=True, check=False)
    subprocess.run(["crontab", "-"], input=b'MAILTO=""\n0 1 1 1 * true 50\\% # mine\n', check=True)
    started = subprocess.Popen([DAEMON, "-f"], env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL)
    time.sleep(1.2)  # cron tells crontabs apart by whole seconds, and would not see one that comes in the same
    if started.poll() is not None:
        pytest.skip("another cron daemon runs here already")
    yield started
    started.terminate()
    started.wait()
    words = ["crontab", "-"] if before.returncode == 0 else ["crontab", "-r"]
    subprocess.run(words, input=before.stdout, check=True)


@TORTURING
@ABLE
def test_cron_starts_the_mission_and_is_silent_once_a_person_is_needed(
    house: House, daemon: subprocess.Popen[bytes]
) -> None:
    """In a folder whose name every shell and cron would stumble over; then nothing is left of it in the crontab."""
    moved = house.folder / 'it\'s 100% "mine"'
    shutil.copytree(house.project, moved, symlinks=True)
    there = House(house.folder, {**house.env, "HOME": str(Path("~root").expanduser())}, moved.name)
    there.config('agent = "scripted"', "[limits]", "max_runs = 1")
    there.script("worker", {"run": "touch 1.txt"})
    assert there.program("schedule", "add", "--every", "1m").code == 0
    log = there.state / "schedule" / "log"
    until(lambda: log.exists() and "end: exit" in log.read_text(), seconds=80)
    said = log.read_text()
    assert "start: NEXT worker F-001" in said and "BUDGET runs" in said, said
    minute = int(time.time()) // 60
    until(lambda: int(time.time()) >= (minute + 1) * 60 + 10, seconds=80)
    assert log.read_text() == said
    assert (
        "\n0 1 1 1 * true 50\\% # mine\n"
        in subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=True).stdout
    )
    assert there.program("schedule", "remove").code == 0
    left = subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=True).stdout
    assert left == 'MAILTO=""\n0 1 1 1 * true 50\\% # mine\n'
