"""Promises of tests/fast.py: what is near to a change, and in which order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import fast

FILES = {
    "harness/a/_b.py": "",
    "harness/a/c.py": "from harness.a import _b\n",
    "roles/worker.py": "",
    "tests/helper.py": "",
    "tests/a/test_b.py": "from harness.a import c\n",
    "tests/a/test_c.py": "from harness.a.c import name\n",
    "tests/a/test_else.py": "import harness.a._b\nfrom tests.helper import it\n",
    "tests/roles/test_worker.py": "from tests import helper\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small project whose files are committed."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    commit(tmp_path, "everything")
    return tmp_path


def commit(folder: Path, text: str) -> None:
    """Commit all."""
    words = ("-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", text)
    for one in (("init", "--quiet"), ("add", "--all"), words):
        subprocess.run(["git", *one], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("module", "near"),
    [
        ("harness/a/_b.py", ["tests/a/test_b.py", "tests/a/test_else.py"]),
        ("harness/a/c.py", ["tests/a/test_c.py", "tests/a/test_b.py"]),
        ("roles/worker.py", ["tests/roles/test_worker.py"]),
        ("tests/helper.py", ["tests/a/test_else.py", "tests/roles/test_worker.py"]),
        ("tests/a/test_c.py", ["tests/a/test_c.py"]),
    ],
)
def test_the_mirror_comes_first_and_then_what_imports_it(checkout: Path, module: str, near: list[str]) -> None:
    """By either form of an import."""
    (checkout / module).write_text(f"{FILES[module]}# changed\n")
    assert fast.nearest(checkout, fast.changed(checkout)) == near


def test_new_files_count_and_without_a_change_the_last_commit(checkout: Path) -> None:
    """A file that is gone is no change that a test is near to."""
    (checkout / "harness/a/d.py").write_text("")
    (checkout / "README.md").write_text("")
    (checkout / "harness/a/c.py").unlink()
    assert fast.changed(checkout) == [Path("harness/a/d.py")]
    commit(checkout, "more")
    assert fast.changed(checkout) == [Path("harness/a/d.py")]
