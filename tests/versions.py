"""The suite on the Pythons of this machine: `python tests/versions.py` on each; with `newest`, DIFFERING on the newest alone.

The search covers the PATH and the versions that pyenv and uv keep. Each gets its own virtual environment, .venv-3.N.
`newest` does nothing if the Python that runs this is as new.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
OLDEST = 11
NAME = re.compile(r"python3(?:\.(\d+))?")
KEPT = (".pyenv/versions/*/bin", ".local/share/uv/python/*/bin")
PROBE = "import ctypes, ensurepip, sqlite3, ssl, sys, venv; print(*sys.version_info[:2])"
DIFFERING = (  # what may differ by version: annotations, forks, signals, files, SQLite, asyncio, TOML, messages of click
    *("tests/base", "tests/process", "tests/state", "tests/mission", "tests/builtin/tools", "tests/cli/test_help.py"),
    *("tests/filesystem/test_local.py", "tests/filesystem/test_root.py", "tests/filesystem/test_walk.py"),
    *("tests/stores/test_sqlite.py", "tests/cli/test_values.py", "tests/test_main.py", "tests/test_forked.py"),
)


def candidates() -> Iterator[Path]:
    """Files named like a Python 3.N >= 3.11, or 3 if no other is beside it; those on the PATH first."""
    folders = [Path(folder) for folder in os.get_exec_path() if folder]
    for pattern in KEPT:
        folders += sorted(Path.home().glob(pattern))
    for folder in dict.fromkeys(folders):
        named = {path: match[1] for path in folder.glob("python3*") if (match := NAME.fullmatch(path.name))}
        yield from sorted(path for path, minor in named.items() if int(minor or 0) >= OLDEST or len(named) == 1)


def minor_of(path: Path) -> int:
    """N of a Python 3.N that can make virtual environments; 0 for any other file, such as a version manager's empty shim."""
    try:
        done = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    words = done.stdout.split()
    return int(words[1]) if done.returncode == 0 and words[:1] == ["3"] else 0


def found() -> dict[int, Path]:
    """{N: the first Python 3.N}, oldest first."""
    pythons: dict[int, Path] = {}
    for path in candidates():
        if path.name not in {f"python3.{minor}" for minor in pythons} and (minor := minor_of(path)) >= OLDEST:
            pythons.setdefault(minor, path)
    return dict(sorted(pythons.items()))


def main(words: list[str]) -> int:
    """Run `make test` with each, and report which passed."""
    pythons = found()
    only = DIFFERING if words == ["newest"] else ()
    if only:
        pythons = {minor: path for minor, path in pythons.items() if minor == max(pythons) > sys.version_info[1]}
    told, worst = [], 0
    for minor, path in pythons.items():
        sys.stdout.write(f"Python 3.{minor}: {path}\n")
        sys.stdout.flush()
        argv = [
            "make",
            "--no-print-directory",
            "test",
            f"VENV=.venv-3.{minor}",
            f"PYTHON={path}",
            f"TESTS={' '.join(only)}",
        ]
        code = subprocess.run(argv, cwd=CHECKOUT, check=False).returncode
        told.append(f"3.{minor} {'failed' if code else 'passed'}")
        worst = worst or code
    sys.stdout.write(f"Python {', '.join(told)}\n" if told else "there is no newer Python here\n")
    return worst


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
