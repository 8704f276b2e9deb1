"""Promises of tests/cores.py, which runs the suite: every test once, no fork beside a thread, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.missions import CHECKOUT
from tests.tiers import LONG, LONG_PATHS, ONCE, ONLY_IN_TORTURE

CORES = Path(__file__).with_name("cores.py")
SESSION = """import os, pytest
@pytest.fixture(scope="session")
def made():
    yield
    assert not os.path.exists("torn"), "each session fixture ends once"
"""
PLAIN = """import os
def test_one(made): os.close(os.open("{0}-one", os.O_CREAT | os.O_EXCL))
def test_two(): os.close(os.open("{0}-two", os.O_CREAT | os.O_EXCL))
"""
FORKS = "import os\ndef test_it():\n    pid = os.fork()\n    if not pid: os._exit(0)\n    os.waitpid(pid, 0)\n"
LEFT = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
BESIDE = f"{FORKS}def test_left():\n    {LEFT.replace(chr(10), chr(10) + '    ')}test_it()\n"
WHERE = """def test_it(tmp_path):
    mounts = [line.split() for line in open("/proc/self/mounts")] if os.path.exists("/proc/self/mounts") else []
    open("kind", "w").write(([kind for _, place, kind, *_ in mounts if str(tmp_path).startswith(place + "/")] or [""])[-1])
"""


def played(folder: Path, files: dict[str, str], *words: str) -> tuple[int, str]:
    """Run a small suite with `temporary` for its folders, by cores.py with these words, or by -c and a program; returns the exit
    code and the output."""
    (folder / "temporary").mkdir(exist_ok=True)
    for name, text in {"pytest.ini": "[pytest]\naddopts = -q\n", "conftest.py": SESSION, **files}.items():
        (folder / "suite" / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / "suite" / name).write_text(text)
    env = {**os.environ, "TMPDIR": str(folder / "temporary")}
    argv = [sys.executable, *words] if words[:1] == ("-c",) else [sys.executable, str(CORES), *words]
    done = subprocess.run(argv, cwd=folder / "suite", env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """A suite in which all is well, played once where Python is told to write no bytecode: folder, exit code, output."""
    folder = tmp_path_factory.mktemp("good")
    names = [f"{place}test_{number}" for place in ("", "a/", "b/") for number in (1, 2)]
    files = {f"{name}.py": PLAIN.format(name.replace("/", "-")) for name in names}
    files |= {
        "a/__init__.py": "",
        "b/__init__.py": "",
        "test_3.py": "import pytest\ndef test_it(): pytest.skip('so')\n",
    }
    files |= {"test_4.py": FORKS, "test_5.py": f"import os\n{WHERE}"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        return (folder, *played(folder, files))


def test_each_test_runs_once_and_the_last_line_adds_up(good: tuple[Path, int, str]) -> None:
    """Files in several folders, whichever process takes them; a fork from a process with one thread is allowed."""
    folder, code, said = good
    assert (code, said.splitlines()[-1]) == (0, "14 passed, 0 failed, 1 skipped"), said
    assert len(list(folder.glob("suite/*-one"))) == 6
    assert list(folder.glob("temporary/*")) == []


def test_what_fails_fails_the_run(tmp_path: Path) -> None:
    """With pytest's exit code; only the failed test's folder stays for inspection."""
    fails = "def test_it(tmp_path):\n    print('what it said')\n    assert not 'so'\ndef test_not(tmp_path): pass\n"
    code, said = played(tmp_path, {"test_1.py": PLAIN.format("x"), "test_2.py": fails})
    assert (code, said.splitlines()[-1]) == (1, "3 passed, 1 failed, 0 skipped"), said
    assert said.count("what it said\n") == 1, said
    assert [path.name for path in tmp_path.glob("temporary/**/test_*0")] == ["test_it0"]


def test_what_cannot_be_collected_fails_the_run(tmp_path: Path) -> None:
    """With pytest's exit code, and its words once."""
    code, said = played(tmp_path, {"test_3.py": "import no_such_module\n"})
    assert (code, said.count("E   ModuleNotFoundError")) == (pytest.ExitCode.INTERRUPTED, 1), said


def test_a_fork_beside_a_thread_fails_the_run(tmp_path: Path) -> None:
    """Also on a Python that does not warn of it; and beside a thread that an import has begun."""
    code, said = played(tmp_path, {"test_1.py": BESIDE, "other/test_2.py": LEFT + FORKS})
    assert code == 1
    assert said.count("FORKED BESIDE A THREAD") == 2, said
    assert "FORKED BESIDE A THREAD test_1.py::test_left" in said
    assert "FORKED BESIDE A THREAD other/test_2.py::test_it" in said


def test_a_process_that_ends_before_its_tests_fails_the_run(tmp_path: Path) -> None:
    """For example a forked child that returns into pytest and exits with 0."""
    code, said = played(tmp_path, {"test_1.py": "import os\ndef test_it(): os._exit(0)\n"})
    assert code == 1
    assert "1 of 1 batches ended before their tests" in said, said


def can_mount() -> bool:
    """Whether this user may mount something, in a namespace of their own."""
    words = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return not os.geteuid() and bool(shutil.which("unshare")) and not subprocess.run(words, check=False).returncode


@pytest.mark.skipif(not can_mount(), reason="only root can mount, and not everywhere")
def test_the_folders_of_the_tests_are_in_memory_which_nobody_else_sees(good: tuple[Path, int, str]) -> None:
    """A slow disk does not slow the suite down, and no mount is left."""
    assert (good[0] / "suite" / "kind").read_text() == "tmpfs"
    assert str(good[0]) not in Path("/proc/self/mounts").read_text()


def test_rewritten_tests_are_kept_for_the_next_time(good: tuple[Path, int, str]) -> None:
    """Also where Python is told to write no bytecode: rewriting all of ours takes 8 s."""
    assert len(list((good[0] / "suite" / "__pycache__").glob("test_1.*pytest*.pyc"))) == 1


def test_every_test_that_has_a_tier_is_there() -> None:
    """A name in the lists that no test has would mark nothing."""
    texts = "".join(path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py"))
    named = sorted(LONG | ONLY_IN_TORTURE)
    assert [name for name in named if f"def {name.partition('[')[0]}(" not in texts] == []
    assert not LONG & ONLY_IN_TORTURE
    assert [path for path in (*ONCE, *LONG_PATHS) if not list(CHECKOUT.glob(f"{path}*"))] == []


FAILS = """import os, pathlib, pytest
def times(name):
    with open(name, "a") as file: file.write("x")
    return len(pathlib.Path(name).read_text())
"""
LUCK = "def test_{0}(): assert times('{0}') {1}, 'the reason of {0}'\n"


def test_a_test_that_fails_once_and_then_three_times_not_is_flaky(tmp_path: Path) -> None:
    """The run passes; its last lines have the name and why it failed."""
    files = {"test_1.py": FAILS + LUCK.format("one", "> 1") + LUCK.format("two", "> 0")}
    code, said = played(tmp_path, files, "--again")
    assert (code, said.splitlines()[-1]) == (0, "1 passed, 0 failed, 0 skipped, 1 flaky"), said
    assert "flaky: test_1.py::test_one" in said.splitlines()[-4:]
    assert said.count("AssertionError: the reason of one") >= 2
    assert (tmp_path / "suite" / "one").read_text() == "xxxx"


@pytest.mark.parametrize(
    ("text", "tries"),
    [
        (LUCK.format("one", "in (2, 3, 5)"), 4),
        ("@pytest.mark.once\n" + LUCK.format("one", "> 1"), 1),
        ("".join(LUCK.format(name, "> 1") for name in ("one", "two", "three", "four")), 1),
    ],
    ids=["one more failure", "a test that never fails", "too many"],
)
def test_what_is_no_luck_fails_the_run(tmp_path: Path, text: str, tries: int) -> None:
    """One failure among the further times, the marker `once`, or more tests than bad luck explains."""
    code, said = played(tmp_path, {"test_1.py": FAILS + text}, "--again")
    assert code == 1, said
    assert "flaky: " not in said
    assert (tmp_path / "suite" / "one").read_text() == "x" * tries


def test_what_is_not_reached_in_time_is_named(tmp_path: Path) -> None:
    """Also the one under way, which gets the time to end what it has begun."""
    slow = "import time, pathlib\ndef test_it():\n    try: time.sleep(60)\n    finally: pathlib.Path('ended').touch()\n"
    program = (
        f"import sys; sys.path.insert(0, {str(CORES.parent)!r}); import cores; cores.run(*cores.divided([]), seconds=3)"
    )
    code, said = played(tmp_path, {"test_1.py": PLAIN.format("x"), "a/test_2.py": slow}, "-c", program)
    assert (code, said.splitlines()[-3]) == (0, "not reached: a/test_2.py"), said
    assert (tmp_path / "suite" / "ended").exists()
