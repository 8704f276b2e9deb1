"""A `crontab` program that keeps its file in a test's folder, and cron's way to carry out one of its lines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import forked
from tests.missions import Done, House

PROGRAM = """#!/bin/sh
file='{file}'
case $1 in
-l) [ -e "$file" ] || {{ echo "no crontab for me" >&2; exit 1; }}; cat "$file" ;;
-) [ ! -e "$file.refused" ] || {{ echo "errors in crontab file, can't install." >&2; exit 1; }}
  cat >"$file.new"; mv "$file.new" "$file" ;;
*) exit 64 ;;
esac
"""


class Crontab:
    """A user's crontab in a folder; its program is first on the PATH of the test and of its house."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, house: House) -> None:
        self.file, self.house = folder / "crontab.txt", house
        place = folder / "programs"
        place.mkdir()
        (place / "crontab").write_text(PROGRAM.format(file=self.file))
        (place / "crontab").chmod(0o755)
        house.env["PATH"] = f"{place}{os.pathsep}{house.env['PATH']}"
        patch.setenv("PATH", house.env["PATH"])

    @property
    def text(self) -> str:
        """What it has."""
        return self.file.read_text() if self.file.exists() else ""

    @property
    def line(self) -> str:
        """The command of the only line of ours, as cron gives it to the shell."""
        ours = [line for line in self.text.split("\n") if " schedule start " in line]
        assert len(ours) == 1, self.text
        return ours[0].split(" ", 5)[5].replace("\\%", "%")

    def fires(self, *, line: str = "") -> Done:
        """Carry out our line as cron does: its shell, its environment, the home folder, no terminal."""
        env = {"HOME": self.house.env["HOME"], "LOGNAME": "me", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            ["/bin/sh", "-c", line or self.line],
            cwd=env["HOME"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=forked.SECONDS,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def starts(self) -> Done:
        """What our line starts, in a fork of this process: quicker, with the environment of the house."""
        return self.house.program("schedule", "start", self.line.split(" ")[-1])

    def log(self) -> list[str]:
        """The lines of the mission's log, without their times."""
        path = self.house.state / "schedule" / "log"
        return [line[21:] for line in path.read_text().split("\n") if line] if path.exists() else []
