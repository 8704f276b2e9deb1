"""Help: commands in groups, a line each, and the roles; and what an unknown word may have meant."""

from __future__ import annotations

import re

import click
import pytest

from harness.cli import help
from harness.cli.main import cli
from harness.mission import roles
from tests.missions import CHECKOUT, House

RUN_SH = str(CHECKOUT / "run.sh")


def test_every_command_stands_in_one_group() -> None:
    """In the order in which a person meets them."""
    listed = [name for group in help.GROUPS.values() for name in group]
    assert sorted(listed) == sorted(cli.shown(click.Context(cli)))


@pytest.mark.parametrize("words", [("help",), ("--help",), ("-h",)])
def test_a_line_for_each_command_and_role(house: House, words: tuple[str, ...]) -> None:
    """Under the names of the groups."""
    house.role_files("documenter")
    text = house.run([RUN_SH, *words]).out
    rows = text.split("\nMission:\n")[1].split("\n")
    assert [row[:-1] for row in rows if row.endswith(":")] == [*[*help.GROUPS][1:], "Roles, for one run by hand"]
    names = [row.split()[0] for row in rows if re.match("  [a-z]", row)]
    assert sorted(names) == sorted([*roles.known(house.layout), *(n for group in help.GROUPS.values() for n in group)])


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("words", ["help", "sessions --help", "runs --help", "help worker"])
def test_help_fits_the_terminal_and_cuts_nothing(house: House, words: str, columns: int) -> None:
    """Whole sentences, also of the subcommands and the header of run.sh."""
    done = house.harness(*words.split(), COLUMNS=str(columns))
    text = done.out
    assert (done.code, max(map(len, text.split("\n"))) <= columns) == (0, True), text
    assert ("…" in text, "..." in text.replace("[ARGS]...", "")) == (False, False)
    if words == "help":
        found = ["".join(one.get_short_help_str(10**6).split()) for one in cli.shown(click.Context(cli)).values()]
        assert [line for line in found if line not in "".join(text.split())] == []


def test_help_is_there_without_a_mission(bare: House) -> None:
    """Whoever looks at what there is needs none."""
    assert "\nMission:\n" in bare.run([RUN_SH, "help"], where=bare.folder).out


def test_a_command_is_explained_both_ways(house: House) -> None:
    """`help feature set` is `feature set --help`."""
    assert house.harness("help", "feature", "set").out.split() == house.harness("feature", "set", "--help").out.split()
    done = house.harness("help", "feature", "st")
    assert (done.code, "There is no role and no command 'feature st'" in done.err) == (64, True)


@pytest.mark.parametrize("words", [("worker", "--help"), ("worker", "-h"), ("help", "worker")])
def test_a_role_is_explained(house: House, words: tuple[str, ...]) -> None:
    """What it does and takes, from its file; nothing runs."""
    done = house.run([RUN_SH, *words])
    assert done.code == 0, done
    assert done.out.startswith("Usage: run.sh worker [FEATURE]\n\n  builds exactly one feature\n\n  You build exactly")
    assert "Time limits: 60 minutes" in done.out
    assert house.ran() == []
    assert house.program(*words).out == done.out


def test_a_role_of_ones_own_is_explained_too(house: House) -> None:
    """Its file is in the mission."""
    house.role_files("documenter")
    out = house.run([RUN_SH, "documenter", "--help"]).out
    assert "  helps\n" in out
    assert "Its text: .harness/roles/documenter.md" in out


def test_a_role_with_a_broken_file_does_not_hide_the_others(house: House) -> None:
    """The help says what is wrong with it."""
    house.role_files("documenter")
    (house.state / "roles" / "documenter.md").write_text("no front matter\n")
    out = house.harness("help").out
    assert "documenter  (cannot be read: " in out
    assert "worker      builds" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("staus",), "Did you mean 'status'"),
        (("plannr",), "Did you mean 'planner'"),
        (("feature", "shw"), "Did you mean 'show'?"),
        (("runs", "lst"), "Did you mean 'list'?"),
    ],
)
def test_a_slip_gets_the_nearest_word(house: House, words: tuple[str, ...], said: str) -> None:
    """Commands, their parts, and roles; exit code 64."""
    for done in (house.run([RUN_SH, *words]), house.program(*words)):
        assert (done.code, said in done.err) == (64, True), done


def test_what_is_like_nothing_gets_no_guess(house: House) -> None:
    """Only the lists."""
    assert "Did you mean" not in house.harness("xyzzyqqq").err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("statsu", "'status'"),
        ("worcker F-1", "'worker'"),
        ("help worcker", "'worker'"),
        ("runs lst", "'list'"),
        ("status --jsn", "'--json'"),
        ("--lane 3", "'--lanes'"),
        ("--hlep", "'--help'"),
        ("worker --agian", "'--again'"),
        ("init --agent cluade", "'claude'"),
        ("log F-2", "'F-1'"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_one_that_was_meant(house: House, words: str, meant: str) -> None:
    """Commands, roles, options, agents and features; nothing runs."""
    done = house.role(*words.split()) if words.startswith("worker ") else house.program(*words.split())
    assert (done.code, f"Did you mean {meant}" in done.err) == (64, True), done
    assert house.ran() == []


@pytest.mark.parametrize(
    ("lines", "meant"),
    [
        (('agnt = "scripted"',), "'agent'"),
        (("[limits]", "max_cost_us = 3"), "'max_cost_usd'"),
        (("[roles.wroker]", "minutes = 3"), "'worker'"),
        (("[roles.worker]", 'agent = "cluade"'), "'claude'"),
    ],
)
def test_a_misspelt_key_of_the_configuration_too(house: House, lines: tuple[str, ...], meant: str) -> None:
    """And a role or an agent in it: the loop does not start."""
    house.config(*lines)
    done = house.program("init", "--quietly")
    assert (done.code, f"Did you mean {meant}" in done.err) == (65, True), done
