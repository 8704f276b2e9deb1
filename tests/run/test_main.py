"""What starts a role's script: `python -m harness.run SCRIPT`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.state import names
from tests.missions import CHECKOUT, House

RUN_SH = str(CHECKOUT / "run.sh")


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("from harness.run import mane", "ImportError: cannot import name 'mane'"),
        ("def settle(run:", "SyntaxError: '(' was never closed (helper.py, line 1)"),
    ],
)
def test_a_role_that_cannot_start_ends_with_70_and_one_line(house: House, script: str, fault: str) -> None:
    """By run.sh, too; doctor says so before."""
    house.role_files("helper")
    path = Path(house.layout.path(names.ROLES)) / "helper.py"
    path.write_text(script + "\n")
    done = house.run([RUN_SH, "helper"])
    assert (done.code, done.out, done.err.count("\n")) == (70, "", 1), done
    assert done.err.startswith(f"harness: {path} cannot start: {fault}")
    found = house.harness("doctor")
    assert found.code == 10
    assert f"bad   the role helper does not start: harness: {path} cannot start: {fault}" in found.out


def test_a_dry_start_does_nothing_else(unbegun: House) -> None:
    """No mission begins; the ordinary doctor starts each role that way."""
    started = [unbegun.run([RUN_SH, "planner", "--dry"])]
    started += [unbegun.role(role, "--dry") for role in ("worker", "validator", "curator")]
    assert [(done.code, done.out, done.err) for done in started] == [(0, "", "")] * 4
    assert not unbegun.state.exists()


def test_a_script_gets_its_words_and_its_exit_code_counts(house: House) -> None:
    """As if it were started by its path."""
    path = house.write("role.py", "import sys\nprint(__file__, __name__, sys.argv)\nsys.exit(7)\n")
    done = house.run([sys.executable, "-P", "-m", "harness.run", str(path), "F-001"])
    assert (done.code, done.out) == (7, f"{path} __main__ ['{path}', 'F-001']\n")
