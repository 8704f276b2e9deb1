"""The completion scripts, in real shells."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from harness.cli import completion
from tests.missions import CHECKOUT, House

RUN_SH = str(CHECKOUT / "run.sh")
ASK = """
source "$1"; shift
COMP_WORDS=("$(printf %q "$1")" "${@:2}") COMP_CWORD=$(($# - 1))
_harness_complete "$1" "${!#}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(house: House, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    script = house.folder / "completion.bash"
    script.write_text(house.harness("completion", "bash").out)
    done = house.run(["bash", "-c", ASK, "bash", str(script), RUN_SH, *words])
    assert (done.code, done.err) == (0, ""), done
    return [line for line in done.out.split("\n") if line]


def test_bash_offers_commands_and_roles_each_once(house: House) -> None:
    """Through the program that was typed: this copy of run.sh, which starts nothing."""
    found = bash(house, "")
    assert {"status", "log", "worker", "planner"} <= set(found)
    assert len(found) == len(set(found))
    assert bash(house, "stat") == ["status"]
    assert house.ran() == []


def test_bash_offers_folders_where_one_is_asked_for(house: House) -> None:
    """By its own means."""
    house.write("sub/file")
    assert bash(house, "-C", "su") == ["sub"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_another_shell_reads_its_script(house: House, shell: str) -> None:
    """Where it is installed."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = house.folder / "script"
    script.write_text(house.harness("completion", shell).out)
    subprocess.run([program, "-n", str(script)], env=house.env, check=True)


def test_an_unknown_shell_gets_the_list(house: House) -> None:
    """Exit code 64."""
    done = house.harness("completion", "tcsh")
    assert (done.code, all(name in done.err for name in completion.SCRIPTS)) == (64, True)
