"""The `harness` program: which words are commands, which belong to run.sh, and which are neither."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.run import starting
from harness.state import names
from tests.missions import CHECKOUT, PROGRAM, House
from tests.planned import accept_all, lay


def test_a_word_that_is_neither_command_nor_role_names_both_lists(house: House) -> None:
    """Exit code 64."""
    done = house.program("wroker")
    assert (done.code, done.out) == (64, "")
    assert (
        "There is no role and no command 'wroker'. Did you mean 'worker'? "
        "Roles here: curator, planner, specifier, teammate, validator, worker. Commands: accept" in done.err
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
    house.write(".gitignore", "sub\n")
    house.git("add", ".gitignore")
    house.git("commit", "-qm", "ignored")
    done = house.program("--for", "25m")
    assert (done.code, done.out.split()[:1]) == (9, ["STOPPED"]), done
    done = house.run([str(CHECKOUT / "run.sh"), "--lanes", "2"], where=house.write("sub/file").parent)
    assert (done.code, done.out.split()[:1]) == (9, ["STOPPED"]), done


def test_a_role_of_the_missions_own_comes_before_a_command(house: House) -> None:
    """A role called `status` is started; a run that asks for `status` means the command."""
    house.role_files("status")
    assert '"due"' in house.harness("status", "--json", HARNESS_LOOP="1").out
    assert house.ran() == []
    house.script("status", {"answer": {"outcome": "no_op", "summary": "nothing"}})
    done = house.program("status")
    assert '"due"' not in done.out and [one["role"] for one in house.ran()] == ["status"], done


def test_the_run_option_says_in_which_run_we_are(house: House) -> None:
    """It comes first, as in the prompt; a run that does not exist is a usage error."""
    note = 'run=$(ls "${PATH%%/bin:*}/runs"); env -u HARNESS_INSIDE harness --run "$run" note hello'
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
    assert house.run([house.layout.path(names.SHIM), "next"]).out == "NEXT worker F-001\n"
    assert house.work({"say": "nothing"})["outcome"] == "no_op"


def test_a_folder_may_come_first(house: House) -> None:
    """As with git: -C DIR is as if it was started there; commands in messages have it too."""
    sub = house.write("a/b/file").parent
    done = house.program("-C", str(sub), "-C", "..", "feature", "list")
    assert (done.code, done.out) == (0, house.harness("feature", "list").out)
    done = house.run(
        [sys.executable, "-P", str(PROGRAM), "-C", "my project", "feature", "show", "F-9"], where=house.folder
    )
    assert done.code == 64
    done = house.run([sys.executable, "-P", str(PROGRAM), "-C", "my project", "log", "nothing"], where=house.folder)
    assert done.err.endswith("See: run.sh -C 'my project' runs list\n")
    done = house.program("-C", "nowhere", "status")
    assert (done.code, "There is no folder 'nowhere'" in done.err) == (64, True)


def test_a_subfolder_finds_its_mission(house: House) -> None:
    """Upwards to the nearest one, but not beyond the top of a repository, nor past a SPEC.md."""
    deep = house.write("a/b/file").parent
    words = [sys.executable, "-P", str(PROGRAM), "feature", "list"]
    assert house.run(words, where=deep).out == house.harness("feature", "list").out
    (deep / "SPEC.md").write_text("# Another\n")
    done = house.run(words, where=deep)
    assert (done.code, f"There is no mission in {deep}" in done.err) == (64, True)
    (deep / "SPEC.md").unlink()
    house.run(["git", "init", "-q", "."], where=deep)
    assert f"There is no mission in {deep}" in house.run(words, where=deep).err


def test_the_home_folder_is_the_last_that_is_searched(house: House) -> None:
    """What lies above it is not a person's own."""
    deep = house.write("a/b/file").parent
    words = [sys.executable, "-P", str(PROGRAM), "feature", "list"]
    assert house.run(words, where=deep, env={"HOME": str(deep.parent)}).code == 64
    assert house.run(words, where=deep, env={"HOME": str(house.project)}).code == 0


def test_the_version_is_said(house: House) -> None:
    """Without a mission, too."""
    done = house.run([sys.executable, "-P", str(PROGRAM), "--version"], where=house.folder)
    assert (done.code, done.out) == (0, f"harness {starting.version()}\n")


def test_in_a_checkout_the_remedy_of_doctor_works_as_printed(unbegun: House) -> None:
    """There, no command `harness` is on the PATH: the remedy names run.sh by its path."""
    unbegun.env.pop("HARNESS_CALLED")
    done = unbegun.run([sys.executable, "-P", "-m", "harness", "doctor"])
    remedy = next(line for line in done.out.splitlines() if line.startswith("bad   mission:")).rpartition("or: ")[2]
    assert unbegun.run(["bash", "-c", remedy]).code == 0
    assert unbegun.state.exists()
    unbegun.begin()
    unbegun.script("worker", {"run": "harness help feature >said"})
    assert unbegun.role("worker").code == 0
    assert "harness feature" in unbegun.git("show", f"{unbegun.result()['commit']}:said")


ODD_LOCALE = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
}  # as of one that is not UTF-8, on any machine
COMMANDS = (("log",), ("status",), ("nö",), ("note", "--tag", "TRICK", "ü €"), ("steer", "ü \udcff"))


def test_in_any_locale_names_and_texts_are_what_they_are(bare: House) -> None:
    """A project, files, a check and an agent's work with names that are not ASCII, or not UTF-8."""
    house = House(bare.folder, {**bare.env, **ODD_LOCALE}, "prøject")
    house.repository(commit=False)
    house.write("bad\udcff.txt")
    house.write("gü.txt")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "begin ü")
    house.begin()
    known = Contract(claims=[Claim(id="VAL-1", text="Ü", checks=[Check(run="test -f gü.txt -a -f ö.txt; cat b*")])])
    lay(house, [Feature(id="F-001", title="Ü", claims=["VAL-1"])], known)
    accept_all(house)
    house.script("worker", {"run": "echo 1 > ö.txt; echo 2 > $'more\\xff'; harness note --tag TRICK 'ü is a file'"})
    for role in ("worker", "validator"):
        done = house.run(house.words(role, "F-001"))
        assert done.code == 0, done
    assert house.feature().status == "passed"
    found = house.git("ls-tree", "--name-only", house.result()["head"]).split("\n")
    assert {r'"\303\266.txt"', r'"more\377"', r'"bad\377.txt"'} <= {*found}
    assert "ü is a file" in house.read("memory/raw.md")


def test_no_output_fails_on_its_encoding(house: House) -> None:
    """What it lacks is escaped; standard input is UTF-8."""
    house.script("worker", {"run": "echo 1 > 1.txt", "say": "€ ö"})
    house.role("worker", "F-001")
    words, env = [sys.executable, "-P", str(PROGRAM)], {**house.env, "PYTHONIOENCODING": "ascii:strict"}
    for command in COMMANDS:
        done = subprocess.run([*words, *command], cwd=house.project, env=env, capture_output=True, check=False)
        assert done.returncode in (0, 64) and b"a bug" not in done.stderr, (command, done)
    with house.write("check", "test -f 2.txt # ü €").open() as piped:
        claim = [*words, "claim", "set", "VAL-2", "--file", "-"]
        subprocess.run(claim, cwd=house.project, env=env, stdin=piped, capture_output=True, check=True)
    assert "test -f 2.txt # ü €" in house.read(names.CONTRACT)


@pytest.mark.parametrize("command", ["log", "next"])
def test_a_reader_that_has_read_enough_is_no_fault(house: House, command: str) -> None:
    """Such as `head -1`, with SIGPIPE ignored too, as below nohup."""
    house.script("worker", {"run": "echo 1 > 1.txt"})
    house.role("worker", "F-001")
    program = f"exec '{sys.executable}' -P '{PROGRAM}' {command}"
    done = house.run(["bash", "-o", "pipefail", "-c", f"trap '' PIPE; (sleep 0.01; {program}) | true"])
    assert (done.code, done.err) == (0, "")
