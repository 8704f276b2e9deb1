"""The timer of systemd and the agent of launchd in docs/unattended.md start a mission as they stand there."""

from __future__ import annotations

import configparser
import plistlib
import shlex
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.missions import CHECKOUT, House

PAGE = (CHECKOUT / "docs/unattended.md").read_text().split("### systemd and launchd start it")[1].split("\n## ")[0]


def block(first: str, house: House) -> str:
    """The block of the page that has this word, with the folders of this test."""
    blocks = [part for part in PAGE.split("\n\n") if part.startswith("    ") and first in part]
    text = "\n\n".join(textwrap.dedent(part) for part in blocks)
    return text.replace("/home/me/harness", str(CHECKOUT)).replace("/home/me/my-project", str(house.project))


def systemd(house: House) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of the service."""
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their capitals
    found.read_string(block("[Service]", house))
    service = found["Service"]
    return shlex.split(service["ExecStart"]), dict(one.split("=", 1) for one in shlex.split(service["Environment"]))


def launchd(house: House) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of the agent."""
    found = plistlib.loads(block("<plist", house).encode())
    assert found["StartInterval"] == 1800 and found["StandardOutPath"] == found["StandardErrorPath"]
    return found["ProgramArguments"], found["EnvironmentVariables"]


@pytest.mark.parametrize("recipe", [systemd, launchd])
def test_a_recipe_starts_the_mission(house: House, recipe: Callable[[House], tuple[list[str], dict[str, str]]]) -> None:
    """Here one that a person has paused, which run.sh ends with 9."""
    (house.folder / "plain").symlink_to(house.project)
    house.harness("pause")
    words, env = recipe(House(house.folder, house.env, "plain"))
    env |= {name: value for name, value in house.env.items() if name == "HOME" or name.startswith("XDG_")}
    done = subprocess.run(words, cwd="/", env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 9 and "PAUSED" in done.stdout, done


def test_systemd_takes_the_units(house: House, tmp_path: Path) -> None:
    """Both, without a warning."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze")
    for name in ("Service", "Timer"):
        text = block(f"[{name}]", house).replace(str(house.project), "/srv")
        (tmp_path / f"my-project.{name.lower()}").write_text(text)
    words = ["systemd-analyze", "verify", *map(str, tmp_path.glob("my-project.*"))]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done
