"""Every command as a person types it: its output, its exit code, and that it never ends in a traceback."""

from __future__ import annotations

import ast
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import click
import pytest

from harness.cli import commands
from harness.model import mission
from tests.missions import CHECKOUT, PROGRAM, House, heard

SOURCE = ast.parse(Path(commands.__file__).read_text())


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command below a group, as its words."""
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found += leaves(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


LEAVES = leaves(commands.cli)


def test_a_command_is_at_most_twenty_lines() -> None:
    """Parse, call one function of a lower package, echo."""
    lengths = {
        node.name: (node.end_lineno or 0) - node.lineno for node in SOURCE.body if isinstance(node, ast.FunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > 20} == {}


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_helps(words: tuple[str, ...]) -> None:
    """One sentence about its purpose."""
    from click.testing import CliRunner

    done = CliRunner().invoke(commands.cli, [*words, "--help"])
    assert done.exit_code == 0
    assert done.output.startswith("Usage: ")
    assert len(done.output.split("\n\n")[1].strip()) > 10


def test_init_starts_a_mission_and_says_where(unbegun: House) -> None:
    """The second call reports the existing mission; with --quietly it then prints nothing."""
    done = unbegun.harness("init")
    made = mission.load(unbegun.layout)
    assert done.code == 0
    assert done.out.startswith(f"Started the mission {made.id}, working on the branch {made.branch}.\n")
    assert unbegun.harness("init").out.startswith(f"There is the mission {made.id}")
    assert unbegun.harness("init", "--quietly").out == ""


def keyboard() -> None:
    """For `preexec_fn`: standard input becomes this process's controlling terminal, whose Ctrl-C is a signal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    heard()


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_whoever_leaves_the_questions_of_init_is_told_where_things_stand(unbegun: House, key: bytes) -> None:
    """With either key: the mission has started, nothing is chosen, and init says how to be asked again; exit code 130."""
    program = unbegun.folder / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    leader, follower = pty.openpty()
    command = [sys.executable, "-P", str(PROGRAM), "init"]
    env = {**unbegun.env, "PATH": f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    done = subprocess.Popen(
        command,
        cwd=unbegun.project,
        env=env,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        preexec_fn=keyboard,
    )
    os.close(follower)
    said = b""
    while b"Which agent works here?" not in said:
        said += os.read(leader, 65536)
    with suppress(OSError):  # how Linux reports that the other end is closed
        while done.poll() is None or select.select([leader], [], [], 0)[0]:
            if select.select([leader], [], [], 0.3)[0]:
                said += os.read(leader, 65536)
            else:
                os.write(leader, key)  # again: a key is lost while the line editor takes over the terminal
    os.close(leader)
    assert done.wait(20) == 130
    assert b"The mission is started, and nothing else was written. run.sh init asks again." in said
    assert not Path(unbegun.layout.config).exists()


NEED_A_MISSION = [
    *(
        "status",
        "feature list",
        "feature show F-1",
        "check",
        "runs list",
        "runs show x",
        "log",
        "memory show",
        "issue x",
        "issue list",
        "issue close I-001",
    ),
    *("feature retry F-1", "escalation answer x", "claim accept VAL-1", "accept x y", "doctor --fix", "ending DONE"),
]


def test_without_a_mission_every_command_says_so(unbegun: House) -> None:
    """One paragraph, code 64, and no new folder."""
    for words in NEED_A_MISSION:
        done = unbegun.harness(*words.split())
        assert (done.code, done.err.count("\n")) == (64, 1), (words, done)
    assert not unbegun.state.exists()


def test_checks_show_their_receipts_and_10_where_one_is_red(house: House) -> None:
    """Green ones take one line; red ones show their output."""
    house.write("1.txt")
    done = house.harness("check", "F-001")
    assert (done.code, done.out.split()[:2]) == (0, ["green", "VAL-1"])
    path = Path(house.layout.contract)
    path.write_text(path.read_text().replace("test -f 2.txt", "echo what a pity; exit 3"))
    done = house.harness("check")
    assert done.code == 10
    assert "red (exit 3)" in done.out
    assert "    what a pity\n" in done.out


def test_where_nothing_is_fired_check_says_why_and_is_not_green(house: House) -> None:
    """No check, no green, as with `verify`: a script must not take silence for success."""
    done = house.harness("check", "VAL-LOOK")
    said = "There is nothing to run: a person decides VAL-LOOK (run.sh claim accept VAL-LOOK)\n"
    assert (done.code, done.out) == (10, said)
    house.lay()
    Path(house.layout.contract).unlink()
    done = house.harness("check")
    assert (done.code, done.out) == (10, "There is nothing to check yet: no plan has landed. See: run.sh status\n")


def test_issues_and_replies_have_their_doors(house: House) -> None:
    """A wrong severity ends with 64, as does a reply outside a run."""
    assert house.harness("issue", "slow", "--severity", "major", "--suggested-fix", "cache").out == "I-001 is noted.\n"
    assert house.harness("next").out == "NEXT worker F-001\n"
    assert house.harness("issue", "slow", "--severity", "huge").code == 64
    assert "is for the inside of a run" in house.harness("reply", "SPEC.md").err


def test_a_severity_that_is_none_is_64(house: House) -> None:
    """Nothing is written, and the message has those that are."""
    done = house.harness("issue", "it crashes", "--severity", "huge")
    assert (done.code, "'critical', 'major', 'minor', 'nit'" in done.err) == (64, True), done
    assert "it crashes" not in house.harness("issue", "list").out


def test_issues_are_listed_and_closed_a_line_each(house: House) -> None:
    """`list` and `close` are never titles, whatever follows them; a title may follow its options."""
    assert house.harness("issue", "list").out == "No issue is known.\n"
    house.harness("issue", "it is slow\nand more", "--severity", "major")
    house.harness("issue", "--severity", "nit", "the list is long")
    assert house.harness("issue", "list", "--severity", "major").code == 64
    assert house.harness("issue", "close", "I-001", "--why", "not so").out == "I-001 is closed.\n"
    done = house.harness("issue", "list")
    assert (done.code, done.out.split("\n")) == (
        0,
        ["I-001  closed   major     it is slow and more", "I-002  open     nit       the list is long", ""],
    )


@pytest.mark.parametrize("words", [["issue", ""], ["issue", "--severity", "major"], ["issue", "close"], ["issue"]])
def test_an_issue_without_words_is_64(house: House, words: list[str]) -> None:
    """And nothing is noted."""
    done = house.harness(*words)
    assert (done.code, done.out) == (64, "")
    assert not Path(house.layout.issues).exists()


@pytest.mark.parametrize(
    "words",
    [["feature", "nonsense"], ["status", "--nonsense"], ["feature", "show"], ["memory", "show", "x"]],
    ids=" ".join,
)
def test_wrong_usage_is_64_with_the_usage(house: House, words: list[str]) -> None:
    """In click's words."""
    done = house.harness(*words)
    assert (done.code, "Usage: harness" in done.err) == (64, True)


def test_doctor_says_what_it_fixed_and_10_where_something_is_bad(house: House) -> None:
    """One line each."""
    Path(house.layout.features).write_text("{")
    done = house.harness("doctor")
    assert done.code == 10
    assert [line[:6] for line in done.out.split("\n") if "features.json" in line] == ["bad   "]
    house.lay()
    with open(house.layout.raw, "w") as file:
        file.write("[2026-04-24T10:05:12Z] person - - torn")
    done = house.harness("doctor", "--fix")
    assert done.out.startswith("fixed  closed the torn last line of memory/raw.md\n")


def test_the_ending_is_for_run_sh_and_hidden(house: House) -> None:
    """At most ten lines; not in the help."""
    done = house.harness("ending", "STOPPED")
    assert done.code == 0
    assert done.out.count("\n") <= 10
    assert "ending" not in house.harness("--help").out


def test_commands_work_through_run_sh(house: House) -> None:
    """`run.sh COMMAND` is `harness COMMAND`."""
    assert house.run([str(CHECKOUT / "run.sh"), "feature", "list"]).out == house.harness("feature", "list").out
