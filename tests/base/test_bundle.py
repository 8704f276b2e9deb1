"""The bundle of compiled modules: launches use it, and it never hides a change of the code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base import bundle

HOME = Path(__file__).resolve().parent.parent.parent
NAME = Path(bundle.PATH).name
SHOW = """
import sys
sys.path.insert(0, sys.argv[1])
from harness.base import bundle
bundle.use()
from harness.base import clock
print(type(clock.__loader__).__name__, clock.__spec__.origin, getattr(clock, "PLANTED", "as it was"))
bundle.keep()
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, without compiled files."""
    made = tmp_path / "harness"
    shutil.copytree(HOME / "harness", made, ignore=shutil.ignore_patterns("__pycache__"))
    return made


def load(copy: Path, **more: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more
    words = [sys.executable, "-P", "-c", SHOW, str(copy.parent)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_second_process_loads_from_the_bundle(copy: Path) -> None:
    assert load(copy) == f"SourceFileLoader {copy}/base/clock.py as it was"
    assert load(copy) == f"_Loader {copy}/base/clock.py as it was"


def test_a_changed_module_is_loaded_as_it_is_now_and_its_neighbours_stay(copy: Path) -> None:
    load(copy)
    before = (copy / "__pycache__" / NAME).read_bytes()
    with open(copy / "base/clock.py", "a") as file:
        file.write("PLANTED = 'changed'\n")
    assert load(copy) == f"SourceFileLoader {copy}/base/clock.py changed"
    assert (copy / "__pycache__" / NAME).read_bytes() != before
    assert load(copy) == f"_Loader {copy}/base/clock.py changed"


def test_a_copy_of_the_folder_has_the_code_that_is_in_it(copy: Path, tmp_path: Path) -> None:
    """The file that was copied with it has the code of the first folder, which is still there."""
    load(copy)
    second = tmp_path / "second" / "harness"
    shutil.copytree(copy, second)
    with open(second / "base/clock.py", "a") as file:
        file.write("PLANTED = 'changed'\n")
    assert load(second) == f"SourceFileLoader {second}/base/clock.py changed"
    assert load(second) == f"_Loader {second}/base/clock.py changed"
    assert load(copy) == f"_Loader {copy}/base/clock.py as it was"


@pytest.mark.parametrize("torn", [b"", b"x", b"\0" * 8, b"\xff" * 40, None])
def test_a_torn_bundle_counts_as_absent(copy: Path, torn: bytes | None) -> None:
    load(copy)
    path = copy / "__pycache__" / NAME
    path.write_bytes(path.read_bytes()[:2000] if torn is None else torn)
    assert load(copy).startswith("SourceFileLoader")
    assert load(copy).startswith("_Loader")


def test_where_nothing_may_be_written_nothing_is(copy: Path) -> None:
    assert load(copy, PYTHONDONTWRITEBYTECODE="1").startswith("SourceFileLoader")
    assert not (copy / "__pycache__" / NAME).exists()
    (copy / "__pycache__").mkdir(exist_ok=True)
    (copy / "__pycache__" / NAME).mkdir()
    assert load(copy).startswith("SourceFileLoader")
    assert not list((copy / "__pycache__").glob(f"{NAME}.*"))


def test_every_command_and_every_role_uses_it(copy: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HARNESS", "PYTHONDONT"))}
    for words in (["harness/__main__.py", "next"], ["roles/worker.py"]):
        if words[0].startswith("roles"):
            shutil.copytree(HOME / "roles", tmp_path / "roles")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        script = [sys.executable, "-P", str(tmp_path / words[0]), *words[1:]]
        subprocess.run(script, cwd=elsewhere, env=env, capture_output=True, check=False)
        path = copy / "__pycache__" / NAME
        assert path.exists(), words
        path.unlink()


LATE = """
import sys
sys.path.insert(0, sys.argv[1])
from harness.base import bundle, clock
bundle.use()
assert "site" not in sys.modules
import click
try:
    import no_such_package
except ModuleNotFoundError as fault:
    print(click.__name__, fault)
"""


def test_a_start_without_site_finds_installed_packages_once_one_is_needed(copy: Path) -> None:
    done = subprocess.run([sys.executable, "-SP", "-c", LATE, str(copy.parent)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("click No module named 'no_such_package'\n", "")


HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from harness.base import bundle
bundle.use()
held = bundle.hold(["harness.base.clock"])
with open(bundle.HOME + "/base/clock.py", "a") as file:
    file.write("PLANTED = globals().get('PLANTED', 0) + 1\\n")
from harness.base import clock
print(held, clock.PLANTED)
bundle.keep()
"""


def hold(copy: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", HOLD, str(copy.parent)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_what_is_held_is_loaded_as_it_was_then(copy: Path) -> None:
    """Though its source has changed since; the next process sees the change, and holds nothing that is old."""
    assert hold(copy) == "False 1", "it is not in the file yet"
    load(copy)
    assert hold(copy) == "True 1"
    assert hold(copy) == "False 3", "its source is not what the file has"
    load(copy)
    assert hold(copy) == "True 3"


def test_a_module_that_is_gone_does_not_keep_others_from_being_held(copy: Path) -> None:
    """It goes from the file at the end of the process that noticed."""
    planted = copy / "base" / "planted.py"
    planted.write_text("")
    words = [sys.executable, "-P", "-c", SHOW.replace("import clock", "import clock, planted"), str(copy.parent)]
    subprocess.run(words, check=True, capture_output=True)
    planted.unlink()
    assert hold(copy).startswith("False")
    load(copy)
    assert hold(copy).startswith("True")
