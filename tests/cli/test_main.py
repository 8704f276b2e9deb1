"""One list of commands for run.sh, the program and click, each with its help."""

from __future__ import annotations

import re
import sys

import pytest

from harness.cli.main import COMMANDS, MODULES
from harness.cli.quick import QUICK
from tests.missions import CHECKOUT, PROGRAM, House


def test_run_sh_the_program_and_click_know_the_same_commands() -> None:
    """A command missing from one of the lists would be taken for a role."""
    found = re.search(r"^commands='(.*)'$", (CHECKOUT / "run.sh").read_text(), re.MULTILINE)
    assert found is not None
    assert (
        found[1].split() == list(COMMANDS) == sorted({name for names in MODULES.values() for name in names} | {*QUICK})
    )


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_lists_the_commands(house: House, word: str) -> None:
    """With and without a mission."""
    done = house.run([sys.executable, "-P", str(PROGRAM), word], where=house.folder)
    assert done.code == 0
    rows = [line for line in done.out.split("Mission:")[1].split("\n") if line.startswith("  ")]
    assert {row.split()[0] for row in rows} >= {*COMMANDS} - {"ending", "hold", "machine"}


@pytest.mark.parametrize("command", sorted(set(QUICK) - {"hold"}))
def test_quick_doors_help_as_the_others_do(house: House, command: str) -> None:
    """Although click does not serve them."""
    done = house.harness(command, "--help")
    assert (done.code, done.out.split("\n")[0].startswith(f"Usage: harness {command}")) == (0, True)
