"""The installed package: built as a wheel and put into an empty environment, it does all of what the checkout does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import homes
from tests.missions import CHECKOUT, Done
from tests.test_pages import follow

SKIPPED = "skipped: there is no Chromium here (apt install chromium), so only the page without its script was checked\n"


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `harness` as pipx installs it: an environment of its own, and a link to its program elsewhere."""
    folder = tmp_path_factory.mktemp("installed")
    homes.installed(folder / "venv", folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "harness").symlink_to(folder / "venv" / "bin" / "harness")
    return folder / "bin" / "harness"


def run(command: Path, folder: Path, *words: str, home: Path | None = None) -> Done:
    """One command in `folder`, as cron starts it: with an empty HOME, or that one, and nearly no environment."""
    env = {"HOME": str(home or folder.parent / "home"), "PATH": f"{sys.base_prefix}/bin:{os.defpath}"}
    done = subprocess.run([command, *words], cwd=folder, env=env, stdin=-3, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def example(command: Path, folder: Path, *name: str) -> Path:
    """An empty folder with the files of an example, beside an empty HOME."""
    project = folder / "example"
    project.mkdir()
    (folder / "home").mkdir()
    done = run(command, project, "init", "--example", *name)
    assert (done.code, "cost: nothing" in done.out) == (0, True), done
    return project


def test_it_brings_its_license(command: Path) -> None:
    """The text, and the field by which tools find it."""
    (about,) = command.resolve().parent.parent.glob("lib/*/site-packages/harness_missions-*.dist-info")
    assert (about / "licenses/LICENSE").read_bytes() == (CHECKOUT / "LICENSE").read_bytes()
    assert {"License-Expression: MIT", "License-File: LICENSE"} <= set((about / "METADATA").read_text().splitlines())


def test_the_example_goes_to_done(command: Path, tmp_path: Path) -> None:
    """Every role starts, and so does what an agent calls."""
    folder = example(command, tmp_path)
    done = run(command, folder)
    assert (done.code, done.err) == (0, ""), done
    assert "7 of 7 features passed" in done.out


def test_the_first_mission_of_the_pages_goes_as_it_is_written(command: Path, tmp_path: Path) -> None:
    """docs/first-mission.md, typed: a bug is fixed, whose first attempt is red; the repository's own tests are as they were, and
    pass beside new ones; then a mission of one's own. Doctor says that every role starts."""
    home = tmp_path / "home"
    said, folder = follow("docs/first-mission.md", home, command), home / "example"
    assert "2 of 2 features passed" in said and "VAL-FRACTION-001 is red" in said
    assert "proven    2 of 2 claims, by 4 checks\nissues    none\n" in said
    found = run(command, folder, "doctor", home=home)
    assert found.code == 0, found
    assert "ok    roles: curator, planner, specifier, teammate, validator, worker\n" in found.out
    before = (CHECKOUT / "examples/bug-fix/tests/test_duration.py").read_bytes()
    assert (folder / "tests/test_duration.py").read_bytes() == before
    tests = [sys.executable, "-m", "unittest", "discover", "-s", "tests"]
    assert left_of(home / "csv2md") == (["main"], [], False)
    assert "Ran 5 tests" in subprocess.run(tests, cwd=folder, capture_output=True, text=True, check=True).stderr


def left_of(project: Path) -> tuple[list[str], list[str], bool]:
    """What is there after cleaning up: refs but the branch that `init --new` began, folders of state, and `.harness`."""
    git = ["git", "-C", str(project)]
    refs, current = (
        subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.split()
        for words in (["for-each-ref", "--format=%(refname:lstrip=2)"], ["branch", "--show-current"])
    )
    state = [path.name for path in (project.parent / ".local/state/harness").glob("csv2md-*")]
    return [one for one in refs if one not in current], state, (project / ".harness").exists()


def test_a_web_service_is_checked_in_a_browser_where_there_is_one(command: Path, tmp_path: Path) -> None:
    """Otherwise the receipt of that check says what was skipped, and why."""
    folder = example(command, tmp_path, "short-links")
    done = run(command, folder)
    assert (done.code, "3 of 3 features passed" in done.out, "VAL-REFUSE-001 is red" in done.out) == (0, True, True), (
        done
    )
    assert "proven    6 of 6 claims, by 6 checks\nissues    none\n" in done.out
    rows = [json.loads(line) for path in folder.glob(".harness/runs/*/receipts.jsonl") for line in path.open()]
    said = {row["output"] for row in rows if row["claim"] == "VAL-PAGE-002" and row["exit"] == 0}
    browser = any(shutil.which(name, path=os.defpath) for name in ("chromium", "chromium-browser", "google-chrome"))
    assert said and (said == {SKIPPED}) == (not browser)


def test_one_sentence_is_a_mission(command: Path, tmp_path: Path) -> None:
    """`do` writes SPEC.md, plans, works and shows the diff; what it says to type is the command that was typed."""
    project = Path(shutil.copytree(CHECKOUT / "tests/csv2md", tmp_path / "csv2md"))
    (tmp_path / "home").mkdir()
    for words in ("init -q -b main", "add -A", "-c user.name=p -c user.email=p@localhost commit -q -m csv2md"):
        subprocess.run(["git", "-C", project, *words.split()], check=True)
    done = run(command, project, "do", "add a --json flag to csv2md", "--yes")
    assert (done.code, done.err) == (0, ""), done
    assert "1 of 1 features passed" in done.out and "   or: harness status; " in done.out
    assert '+    parser.add_argument("--json"' in done.out
