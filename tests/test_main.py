"""The `harness` program: which words are commands, which belong to run.sh, and which are neither."""

from __future__ import annotations

import subprocess
import sys

from tests.missions import CHECKOUT, House


def test_a_word_that_is_neither_command_nor_role_names_both_lists(house: House) -> None:
    """Exit code 64."""
    done = house.program("wroker")
    assert (done.code, done.out) == (64, "")
    assert (
        "There is no role and no command 'wroker'. Roles here: curator, planner, validator, worker. Commands: accept"
        in done.err
    )


def test_a_role_is_handed_to_run_sh(house: House) -> None:
    """`harness worker F-001` is `run.sh worker F-001`."""
    house.script("worker", {"run": "echo 1 > 1.txt"})
    done = house.program("worker", "F-001")
    assert (done.code, house.feature().status) == (0, "validating"), done


def test_without_a_word_the_loop_begins(house: House) -> None:
    """With --once it makes one decision."""
    house.script("worker", {"run": "echo 1 > 1.txt"})
    done = house.program("--once")
    assert (done.code, done.out.split("\n")[0]) == (0, "> NEXT worker F-001")
    (house.state / "STOP").touch()
    done = house.program()
    assert (done.code, done.out.split()[0]) == (9, "STOPPED")


def test_a_commands_name_wins_over_a_roles(house: House) -> None:
    """A role called `status` is never started by accident."""
    house.role_files("status")
    assert '"due"' in house.harness("status", "--json").out
    assert '"due"' in house.run([str(CHECKOUT / "run.sh"), "status", "--json"]).out
    assert house.ran() == []


def test_the_run_option_says_in_which_run_we_are(house: House) -> None:
    """It comes first, as in the prompt; a run that does not exist is a usage error."""
    note = 'run=$(ls .harness/runs); env -u HARNESS_INSIDE harness --run "$run" note hello'
    retry = 'code=0; harness --run "$run" feature retry F-002 2> /dev/null || code=$?; test $code = 64'
    house.work({"run": f"{note}; {retry}"})
    assert house.result()["outcome"] == "no_op"
    assert house.read("memory/raw.md").endswith("] worker F-001 - hello\n")
    done = house.harness("--run", "nothing", "next")
    assert (done.code, "There is no run 'nothing'" in done.err) == (64, True)


def test_python_can_start_it_as_a_module(house: House) -> None:
    """`python -m harness` from the checkout."""
    env = {**house.env, "HARNESS_PROJECT": str(house.project)}
    done = subprocess.run(
        [sys.executable, "-m", "harness", "next"], cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "NEXT worker F-001\n")


def test_a_file_of_the_project_is_never_imported_for_ours(house: House) -> None:
    """A project may have a click.py, a json.py or a harness/ of its own."""
    for name in ("click.py", "json.py", "harness/__init__.py", "rich.py"):
        house.write(name, "raise SystemExit('the wrong one')\n")
    assert house.program("next").out == "NEXT worker F-001\n"
    assert house.program("feature", "list").code == 0
    assert house.run([house.layout.shim, "next"]).out == "NEXT worker F-001\n"
    assert house.work({"say": "nothing"})["outcome"] == "no_op"
