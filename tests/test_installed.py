"""The installed package: built as a wheel and put into an empty environment, it does all of what the checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.missions import CHECKOUT, Done
from tests.other_user import copy_packages

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `harness` as pipx installs it: an environment of its own, and a link to its program elsewhere."""
    folder = tmp_path_factory.mktemp("installed")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    built = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(CHECKOUT)]
    subprocess.run([*PIP, *built], check=True)
    [wheel] = folder.glob("*.whl")
    subprocess.run([*PIP, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)], check=True)
    [packages] = (folder / "venv").glob("lib/python*/site-packages")
    copy_packages(packages)
    (folder / "bin").mkdir()
    (folder / "bin" / "harness").symlink_to(folder / "venv" / "bin" / "harness")
    return folder / "bin" / "harness"


def run(command: Path, folder: Path, *words: str) -> Done:
    """One command in `folder`, as cron starts it: with an empty HOME, and nearly no environment."""
    env = {"HOME": str(folder.parent / "home"), "PATH": f"{sys.base_prefix}/bin:{os.defpath}"}
    done = subprocess.run([command, *words], cwd=folder, env=env, stdin=-3, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_example_goes_to_done(command: Path, tmp_path: Path) -> None:
    """Every role starts, and so does what an agent calls; doctor says the same before."""
    folder = tmp_path / "example"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    assert run(command, folder, "init", "--example").code == 0
    found = run(command, folder, "doctor")
    assert (found.code, "ok    roles: curator, planner, validator, worker\n" in found.out) == (0, True), found
    done = run(command, folder)
    assert (done.code, done.err) == (0, ""), done
    assert "7 of 7 features passed" in done.out
