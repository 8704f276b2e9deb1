"""Every command as a person types it: its output, its exit code, and that it never ends in a traceback."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest

from harness.cli import _commands, _init, _inspection, main
from harness.state import names
from tests.missions import CHECKOUT, House

SOURCES = [ast.parse(Path(str(one.__file__)).read_text()) for one in (_init, _commands, _inspection)]
APPLICATION = click.Context(main.cli)


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command below a group, as its words."""
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(APPLICATION):
        command = group.get_command(APPLICATION, name)
        found += leaves(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


LEAVES = leaves(main.cli)


def test_a_command_is_at_most_twenty_lines() -> None:
    """Parse, call one function of a lower package, echo."""
    functions = [node for source in SOURCES for node in source.body if isinstance(node, ast.FunctionDef)]
    shown = [one for one in functions if any("command(" in ast.unparse(row) for row in one.decorator_list)]
    lengths = {one.name: (one.end_lineno or 0) - one.lineno for one in shown}
    assert len(lengths) > 15
    assert {name: length for name, length in lengths.items() if length > 20} == {}


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_helps(words: tuple[str, ...]) -> None:
    """One sentence about its purpose."""
    from click.testing import CliRunner

    done = CliRunner().invoke(main.cli, [*words, "--help"])
    assert done.exit_code == 0
    assert done.output.startswith("Usage: ")
    assert len(done.output.split("\n\n")[1].strip()) > 10


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
    path = Path(house.layout.path(names.CONTRACT))
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
    Path(house.layout.path(names.CONTRACT)).unlink()
    done = house.harness("check")
    assert (done.code, done.out) == (10, "There is nothing to check yet: no plan was accepted. See: run.sh status\n")


def test_issues_and_replies_have_their_doors(house: House) -> None:
    """A wrong severity ends with 64, as does a reply outside a run."""
    assert house.harness("issue", "slow", "--severity", "major", "--suggested-fix", "cache").out == "I-001 is noted.\n"
    assert house.harness("next").out == "NEXT worker F-001\n"
    assert house.harness("issue", "slow", "--severity", "huge").code == 64
    assert "only works inside a run" in house.harness("reply", "SPEC.md").err


def test_a_severity_that_is_none_is_64(house: House) -> None:
    """Nothing is written, and the message has those that are."""
    done = house.harness("issue", "it crashes", "--severity", "huge")
    assert (done.code, "'critical', 'major', 'minor', 'nit'" in done.err) == (64, True), done
    assert "it crashes" not in house.harness("issue", "list").out


def test_issues_are_listed_and_closed_a_line_each(house: House) -> None:
    """`list` and `close` are never titles, whatever follows them; a title may follow its options."""
    assert house.harness("issue", "list").out == "There are no issues.\n"
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
    assert not Path(house.layout.path(names.ISSUES)).exists()


@pytest.mark.parametrize(
    "words",
    [["feature", "nonsense"], ["status", "--nonsense"], ["feature", "show"], ["memory", "show", "x"]],
    ids=" ".join,
)
def test_wrong_usage_is_64_with_the_usage(house: House, words: list[str]) -> None:
    """In click's words."""
    done = house.harness(*words)
    assert (done.code, "Usage: harness" in done.err) == (64, True)


def test_commands_work_through_run_sh(house: House) -> None:
    """`run.sh COMMAND` is `harness COMMAND`."""
    assert house.run([str(CHECKOUT / "run.sh"), "feature", "list"]).out == house.harness("feature", "list").out
