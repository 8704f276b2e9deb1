"""What another user can run: a copy of this checkout and of the packages it needs, for theirs may stand in a private folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from tests.helpers import passable
from tests.missions import CHECKOUT

BECOME = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
ID = 65534


class OtherUser:
    """Runs our programs as nobody. `home` is a checkout, `python` an interpreter with the packages of pyproject.toml."""

    def __init__(self, folder: Path, base: str) -> None:
        self.home = folder / "checkout"
        for name in ("harness", "roles", "examples", "tests/confinement"):
            shutil.copytree(CHECKOUT / name, self.home / name)
        for name in ("run.sh", "tests/__init__.py"):
            shutil.copy(CHECKOUT / name, self.home / name)
        subprocess.run([base, "-m", "venv", "--without-pip", str(self.home / ".venv")], check=True)
        self.python = str(self.home / ".venv" / "bin" / "python")
        [packages] = (self.home / ".venv").glob("lib/python*/site-packages")
        copy_packages(packages)
        passable(folder)

    def words(self, *words: str) -> list[str]:
        """A command of `harness` as nobody."""
        return [*BECOME, self.python, "-P", str(self.home / "harness" / "__main__.py"), *words]

    def runs(self, program: str, *words: str) -> None:
        """Run a Python program as nobody; raises CalledProcessError where it fails."""
        env = {**os.environ, "PYTHONPATH": str(self.home)}
        subprocess.run([*BECOME, self.python, "-P", "-c", program, *words], env=env, check=True)

    @property
    def env(self) -> Mapping[str, str]:
        """What leads a program of ours to the copy."""
        return {"HARNESS_HOME": str(self.home), "HARNESS_PYTHON": self.python, "PYTHONPATH": str(self.home)}


def interpreter() -> str:
    """A Python of this version that nobody can run; "" where there is none, or we may not become nobody."""
    name = f"python3.{sys.version_info.minor}"
    for python in (os.path.realpath(sys.executable), f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        words = [*BECOME, "sh", "-c", '"$0" -c ""', python]  # the shell has lost the rights that setpriv starts it with
        if os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return python
    return ""


def give(folder: Path) -> None:
    """The folder and all below it are nobody's, who can reach it."""
    passable(folder)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, ID, ID, follow_symlinks=False)


def copy_packages(there: Path) -> None:
    """Put what pyproject.toml requires, as it is installed here, into a folder of packages: there may be no network."""
    for source, name in _files(tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, there / name)  # its compiled form names its time


def _files(required: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """The installed files of these packages and of all that they require: where each is, and its name in the environment."""
    waiting, seen = [re.match(r"[\w.-]+", one) for one in required], set[str]()
    while waiting:
        found = waiting.pop()
        if found is None or found[0] in seen:
            continue
        seen.add(found[0])
        package = metadata.distribution(found[0])
        waiting += [re.match(r"[\w.-]+", one) for one in package.requires or () if "extra ==" not in one]
        for path in package.files or ():
            if ".." not in path.parts and os.path.exists(path.locate()):  # its compiled form may be gone
                yield Path(str(path.locate())), str(path)
