"""A person who enters the tree of a feature, with their own program on their terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time

import pytest

from tests.missions import CHECKOUT, House, until

RUN_SH = str(CHECKOUT / "run.sh")
AUTHOR = "p <p@localhost>"


@pytest.fixture
def mine(house: House) -> House:
    """A mission whose person has a name, and a shell."""
    house.git("config", "user.name", "p")
    house.git("config", "user.email", "p@localhost")
    house.env["SHELL"] = "/bin/sh"
    return house


def entered(house: House, script: str, *words: str, code: int = 0) -> str:
    """What is printed while a person types this into their shell."""
    done = subprocess.run(
        [RUN_SH, "enter", *(words or ("F-001",))],
        cwd=house.project,
        env=house.env,
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done
    return done.stdout + done.stderr


def test_what_a_person_leaves_is_their_commit_and_validated_like_any_other(mine: House) -> None:
    """Their own environment and commands, new files, commits of their own; the attempts begin anew; it plays back."""
    mine.env["MINE"] = "passes"
    said = entered(mine, "echo $MINE >1.txt; git add 1.txt; git commit -qm 'by hand'; run.sh status >seen; exit 3")
    assert ["F-001: you are in " in said, "by a person with sh" in said] == [True, True]
    commit = mine.result()["commit"]
    assert mine.git("show", "-s", "--format=%an <%ae>|%s", commit) == f"{AUTHOR}|F-001: Part one"
    assert "    by hand" in mine.git("show", "-s", "--format=%B", commit)
    assert mine.git("show", f"{commit}:1.txt") == "passes"
    assert (mine.project / "1.txt").exists(), "it has landed"
    assert (mine.feature().status, mine.feature().attempts) == ("validating", 0)
    assert mine.role("validator", "F-001").code == 0
    assert (mine.feature().status, mine.result()["verdict"]) == ("passed", "green")
    entered(mine, "rm 1.txt")
    assert mine.role("validator", "F-001").code == 10
    assert mine.feature().status == "failing"
    assert mine.ran()[0]["totals"]["seconds"] == 0, "no cap on time counts a person's"
    assert mine.program("replay", "--mission").code == 0


@pytest.mark.parametrize("status", ["todo", "failing", "passed", "blocked", "validating"])
def test_a_feature_is_as_it_was_if_nothing_was_left(mine: House, status: str) -> None:
    """Whatever its status; only one that had passed is proven again. A look around changes no file."""
    feature = mine.feature().replace(status=status, attempts=2)
    mine.lay(feature, mine.feature("F-002"))
    entered(mine, "ls >/dev/null")
    assert mine.feature() == feature.replace(status={"passed": "validating"}.get(status, status))
    assert (mine.result()["outcome"], mine.result()["commit"]) == ("no_op", "")


def test_a_feature_that_a_run_or_a_person_holds_is_busy(mine: House) -> None:
    """75 with who; an unknown one is 64, an unknown program 69, before anything opens."""
    script = f"{RUN_SH} enter F-001 </dev/null; echo code $?; {RUN_SH} worker F-001; echo code $?"
    said = entered(mine, script)
    assert said.count("Another run holds feature F-001: run ") == 2
    assert said.count("code 75") == 2
    before = len(mine.ran())
    assert "There is no feature 'F-9'" in entered(mine, "", "F-9", code=64)
    assert "There is no program 'nosuch'" in entered(mine, "", "F-001", "--with", "nosuch -x", code=69)
    assert len(mine.ran()) == before
    assert mine.feature().status == "todo"


def test_nothing_is_lost_when_the_program_is_killed(mine: House) -> None:
    """Its commit is theirs."""
    said = entered(mine, "echo mine >1.txt; kill -9 $$")
    assert "by a person with sh, which ended with signal 9" in said
    assert mine.git("show", "-s", "--format=%an", mine.result()["commit"]) == "p"
    assert mine.feature().status == "validating"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_lost_when_the_harness_ends_before_the_program(mine: House, number: int) -> None:
    """A terminal that closes ends both. After a kill the feature is busy until the program has ended; the next start keeps
    the work for the next run."""
    begun, go = mine.folder / "begun", mine.folder / "go"
    script = f"echo mine >1.txt; touch '{begun}'; until [ -e '{go}' ]; do sleep 0.05; done"
    mine.env["PATH"] += os.pathsep + str(mine.folder)
    (mine.folder / "waits").write_text(f"#!/bin/sh\n{script}\n")
    (mine.folder / "waits").chmod(0o755)
    run = subprocess.Popen([RUN_SH, "enter", "F-001", "--with", "waits"], cwd=mine.project, env=mine.env)
    until(begun.exists)
    run.send_signal(number)
    run.wait()
    if number == signal.SIGKILL:
        assert "Another run holds feature F-001" in entered(mine, "", code=75)
        go.touch()
        until(lambda: mine.program("init", "--quietly").code == 0 and mine.feature().status == "todo")
    assert mine.git("show", f"{mine.result()['commit']}:1.txt") == "mine"
    assert mine.git("show", "-s", "--format=%an|%s", mine.result()["commit"]).endswith("|wip(F-001): killed")
    assert mine.feature().status == "todo"


def test_ctrl_c_is_for_the_program_alone(mine: House) -> None:
    """On a terminal, of which a program takes it as it likes."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(mine.project)
        os.execve(
            RUN_SH,
            [RUN_SH, "enter", "F-001", "--with", "sh -c 'trap \"echo caught >1.txt\" INT; echo go; read x'"],
            mine.env,
        )
    text = b""
    while b"go" not in text:
        text += os.read(fd, 1024)
    os.write(fd, b"\x03")
    time.sleep(0.3)
    os.write(fd, b"\n")
    until(lambda: mine.feature().status == "validating")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert mine.git("show", f"{mine.result()['commit']}:1.txt") == "caught"
