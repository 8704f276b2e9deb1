"""Missions in three public repositories, and one table: `python -m tests.repositories [NAME…]`.

Each is the source archive of a package index, made a git repository with one commit, a SPEC.md with two features and playbooks.
What a repository needs and this machine lacks is named, and that one is skipped. Exit 1 where a mission does not end DONE.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.mission import replies
from tests.missions import CHECKOUT, House, surroundings

HERE = Path(__file__).parent
PIP = (
    *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
    "--no-deps",
    "--no-binary",
    ":all:",
)
SETTINGS = (".npmrc", ".config/pip/pip.conf")  # of a person, which say where packages come from
LOCAL = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
HOOK = '#!/bin/sh\necho "$0 refuses every commit" >&2\nexit 1\n'
TITLES = ("repository", "runs", "setup", "checks", "sweep", "mission", "by hand")
LEGEND = """Seconds. setup: the runs before the sweep, without their checks: setup, and some tenths a run. checks: theirs.
sweep: two fresh clones with setup, and all checks in each. mission: from `init` to DONE. by hand: setup and the tests once, in
a clone with an empty HOME."""


@dataclass(frozen=True)
class Repository:
    """A package of an index at one version. `tests`: the command that runs its own tests; `submodule`: the folder that becomes
    one; `hooks`: git hooks that would refuse every commit; `lock`: a command that writes a lock file before the commit."""

    name: str
    archive: tuple[str, ...]
    tests: str
    needs: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    submodule: str = ""
    hooks: tuple[str, ...] = ()
    tag: str = ""
    lock: tuple[str, ...] = ()

    @property
    def playbooks(self) -> Path:
        """The folder of its playbooks."""
        return HERE / self.name / "playbooks"

    def playbook(self, name: str) -> str:
        """The text of one of its playbooks."""
        return (self.playbooks / name).read_text()

    @property
    def setup(self) -> str:
        """The setup of its plan."""
        plan = replies.find("plans", [self.playbook("planner.md")])
        assert plan
        return str(plan["setup"])


REPOSITORIES = (
    Repository(
        name="pluggy",
        archive=(*PIP, "pluggy==1.6.0"),
        tests=".venv/bin/python -m pytest -q",
        ignored=(".venv/",),
        hooks=("pre-commit", "commit-msg"),
        tag="1.6.0",  # setuptools-scm takes the version from it
    ),
    Repository(
        name="process-warning",
        archive=("npm", "pack", "--silent", "process-warning@5.0.0"),
        tests="node --test && npm run --silent test:jest && npm run --silent lint",
        needs=("node", "npm"),
        ignored=("node_modules/", "coverage/"),
        lock=(
            "npm",
            "install",
            "--package-lock-only",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--before=2026-06-01",
        ),
    ),
    Repository(
        name="xxhash",
        archive=(*PIP, "xxhash==3.5.0"),
        tests=".venv/bin/python -m unittest discover -q -s tests -t .",
        needs=("cc",),
        ignored=(".venv/", "build/", "*.egg-info/", "*.so", "__pycache__/"),
        submodule="deps/xxhash",
    ),
)


class Missing(Exception):
    """What this machine lacks for a repository; the text says what."""


def lacks(repository: Repository) -> str:
    """The first program or file that it needs and that is not here; "" if all are."""
    for program in ("git", *repository.needs):
        if not shutil.which(program):
            return f"{program} is not on the PATH"
    header = Path(sysconfig.get_path("include"), "Python.h")
    return (
        f"{header} is missing: its package is python3-dev" if "cc" in repository.needs and not header.exists() else ""
    )


def called(words: tuple[str, ...], folder: Path, env: Mapping[str, str], why: str) -> None:
    """Run a command; raises Missing with `why` and its last line if it fails."""
    done = subprocess.run(
        words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").split("\n")[-1]
        raise Missing(f"{why}: {last}")


def unpack(repository: Repository, folder: Path, target: Path) -> None:
    """Get the archive with the client of its index, and put what is in its one folder into `target`."""
    place = folder / "archive"
    place.mkdir()
    called(repository.archive, place, os.environ, f"no archive, perhaps no network ({repository.archive[-1]})")
    with tarfile.open(next(place.iterdir())) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (inner,) = (place / "unpacked").iterdir()
    inner.rename(target)


def lay(repository: Repository, house: House) -> None:
    """Make the project: one commit, its submodule and its hooks."""
    unpack(repository, house.folder, house.project)
    if repository.lock:
        called(repository.lock, house.project, os.environ, "no lock file, perhaps no network")
    shutil.copytree(HERE / repository.name, house.project, dirs_exist_ok=True)
    with (house.project / ".gitignore").open("a") as file:
        file.write("".join(f"{line}\n" for line in repository.ignored))
    house.git("init", "-q", "-b", "main", "--template=")
    house.git("config", "user.name", "p")
    house.git("config", "user.email", "p@localhost")
    if repository.submodule:
        vendored = House(house.folder, house.env, "vendored")
        (house.project / repository.submodule).rename(vendored.project)
        vendored.git("init", "-q", "-b", "main", "--template=")
        vendored.git("add", "-A")
        vendored.git("commit", "-qm", "vendored")
        house.git(
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            str(vendored.project),
            repository.submodule,
        )
    house.git("add", "-A")
    house.git("commit", "-qm", f"{repository.name}, as its archive has it")
    if repository.tag:
        house.git("tag", repository.tag)
    for name in repository.hooks:
        path = house.project / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HOOK)
        path.chmod(0o755)


def by_hand(repository: Repository, house: House) -> float:
    """The seconds that a person needs: setup and the tests once, in a clone, with an empty HOME."""
    clone, home = house.folder / "clone", house.folder / "hand"
    house.run(["git", "clone", "-q", "--recurse-submodules", str(house.project), str(clone)], env=LOCAL)
    give_settings(home)
    begun = time.monotonic()
    done = house.run(
        ["bash", "-euo", "pipefail", "-c", f"{repository.setup}\n{repository.tests}"], clone, {"HOME": str(home)}
    )
    if done.code:
        raise Missing(f"setup and tests fail without a mission too: {(done.err or done.out).strip()[-300:]}")
    return time.monotonic() - begun


def give_settings(home: Path) -> None:
    """Copy a person's settings of package indexes into a throw-away home."""
    for name in SETTINGS:
        if (Path.home() / name).is_file():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path.home() / name, home / name)


def play(repository: Repository, folder: Path) -> str:
    """Take the repository to DONE; the row of the table. Raises Missing, and RuntimeError where a mission ends otherwise."""
    if lack := lacks(repository):
        raise Missing(lack)
    house = House(folder, surroundings(folder), repository.name)
    lay(repository, house)
    give_settings(folder / "home")
    hand = by_hand(repository, house)
    begun = time.monotonic()
    words = [str(CHECKOUT / "run.sh")]
    for done in (house.run([*words, "init", "--quietly"]), house.run(words)):
        if done.code:
            raise RuntimeError(f"{repository.name}, in {folder}: {done}")
    whole = time.monotonic() - begun
    sweep = sum(row["seconds"] for row in house.ran() if row["sweep"])
    runs = [row for row in house.ran() if not row["sweep"]]
    checks = sum(receipt_seconds(house.state / "runs" / row["run"] / "receipts.jsonl") for row in runs)
    setup = sum(row["seconds"] for row in runs) - checks
    return line(repository.name, str(len(house.ran())), *(f"{one:.0f}" for one in (setup, checks, sweep, whole, hand)))


def receipt_seconds(path: Path) -> float:
    """The seconds of all checks of a run."""
    return sum(json.loads(row)["seconds"] for row in path.read_text().splitlines()) if path.exists() else 0.0


def line(first: str, *others: str) -> str:
    """A line of the table."""
    return f"{first:<16}" + "".join(f"{one:>9}" for one in others)


def main(names: list[str]) -> int:
    """Play the repositories of these names, or all; print what each is skipped for, and the table. Returns the exit code."""
    rows, faults = [line(*TITLES)], []
    for repository in (one for one in REPOSITORIES if not names or one.name in names):
        folder = Path(tempfile.mkdtemp(prefix=f"{repository.name}-"))
        try:
            rows.append(play(repository, folder))
        except Missing as lack:
            rows.append(f"{repository.name:<16} skipped: {lack}")
        except RuntimeError as fault:  # its folder stays, to be looked at
            faults.append(str(fault))
            continue
        shutil.rmtree(folder)
    sys.stdout.write("\n".join([*rows, LEGEND, *faults, ""]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
