"""What a shell is offered after each word, and click's completion scripts, in real shells."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from harness.cli import _completion
from tests.missions import CHECKOUT, House

RUN_SH = str(CHECKOUT / "run.sh")
ASK = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_harness_completion "$1"
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
    assert (done.code, all(name in done.err for name in _completion.SHELLS)) == (64, True)


def offered(house: House, words: str, instruction: str = "bash_complete", **more: str) -> list[str]:
    """The candidates for the last word; a trailing blank asks for a new one."""
    env = {"COMP_WORDS": f"run.sh {words}", "COMP_CWORD": str(len(words.split()) + (words[-1:] in ("", " ")))}
    done = house.program(**env, _HARNESS_COMPLETE=instruction, **more)
    assert (done.code, done.err) == (0, ""), done
    return [line.partition(",")[2] for line in done.out.split("\n") if line]


@pytest.mark.parametrize("words", ["feature show ", "feature retry ", "worker "])
def test_features_are_offered_where_one_is_asked_for(house: House, words: str) -> None:
    """To commands and roles."""
    assert offered(house, words) == ["F-001", "F-002"]


def test_each_argument_gets_what_it_may_be(house: House) -> None:
    """Runs, claims, issues, layers."""
    run_id = house.work({"run": "touch 1.txt"})["run"]
    house.harness("issue", "slow")
    assert offered(house, "runs show ") == ["F-001", "F-002", run_id]
    assert offered(house, "accept 1") == [run_id]
    assert offered(house, "why VAL-") == ["VAL-1", "VAL-2", "VAL-LOOK"]
    assert offered(house, "claim accept VAL-L") == ["VAL-LOOK"]
    assert offered(house, "issue close ") == ["I-001"]
    assert offered(house, "memory show s") == ["summary"]
    assert offered(house, "identity ") == ["forget", "list", "why"]
    assert "worker" in offered(house, "identity list ")
    assert house.role("curator").code == 0
    assert offered(house, "memory diff ") == [house.result()["run"]]
    assert {"F-001", "worker", run_id} <= set(offered(house, "log "))


def test_each_candidate_comes_once(house: House) -> None:
    """A role with a command's name, too."""
    house.role_files("status")
    assert offered(house, "stat") == ["status"]
    for words in ("", "log ", "feature "):
        found = offered(house, words)
        assert len(found) == len(set(found)) > 0


def test_a_role_of_ones_own_is_offered_with_what_it_does(house: House) -> None:
    """As fish shows it."""
    house.role_files("documenter")
    env = {"COMP_WORDS": "run.sh docu", "COMP_CWORD": "docu", "_HARNESS_COMPLETE": "fish_complete"}
    assert house.run([RUN_SH], env=env).out == "plain,documenter\thelps\n"


def test_the_mission_in_the_folder_that_was_named_counts(house: House) -> None:
    """With -C, and from a subfolder."""
    env = {"COMP_WORDS": f"run.sh -C '{house.project}' feature show ", "COMP_CWORD": "5"}
    done = house.run([RUN_SH], where=house.folder, env={**env, "_HARNESS_COMPLETE": "bash_complete"})
    assert done.out == "plain,F-001\nplain,F-002\n"
    deep = house.write("a/b/file").parent
    env = {"COMP_WORDS": "run.sh feature show ", "COMP_CWORD": "3", "_HARNESS_COMPLETE": "bash_complete"}
    assert house.run([RUN_SH], where=deep, env=env).out == "plain,F-001\nplain,F-002\n"


def test_without_a_mission_there_are_no_ids_and_no_noise(unbegun: House) -> None:
    """A command line that is being typed stays clean; nothing is started."""
    assert offered(unbegun, "feature show ") == []
    assert "status" in offered(unbegun, "")
    assert not unbegun.state.exists()
