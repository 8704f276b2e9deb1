"""Unknown names are found when a loop starts and by doctor, not when a role starts and others have cost money."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.commands.setup import config_check
from harness.state import names
from tests.missions import CHECKOUT, House

RUN_SH = str(CHECKOUT / "run.sh")
KNOWN = "Known here: playbook, scripted, recorded, claude, codex, gemini, opencode, builtin"
MINE = ("[agents.mine]", 'command = ["true"]')


def told(house: House, *lines: str) -> list[str]:
    """The invalid names in this configuration, without the file's path."""
    house.config(*lines)
    faults = config_check.unknown(house.layout)
    assert {fault.path for fault in faults} <= {house.layout.path(names.CONFIG)}
    return [str(fault).removeprefix(f"{house.layout.path(names.CONFIG)}, ") for fault in faults]


def test_a_table_of_a_role_that_is_none_here_is_an_error(house: House) -> None:
    """Nothing would use the table, and the intended role would run without it."""
    (fault,) = told(house, 'agent = "scripted"', "[roles.woker]", 'model = "x"')
    assert (
        fault
        == "line 2: there is no role 'woker'. The roles here are: curator, planner, specifier, teammate, validator, worker."
    )


def test_a_role_of_ones_own_counts(house: House) -> None:
    """Both files in .harness/roles define one."""
    house.role_files("documenter")
    assert told(house, 'agent = "scripted"', "[roles.documenter]", "minutes = 5") == []


@pytest.mark.parametrize(
    ("lines", "place", "name"),
    [
        (['agent = "claud"'], "line 1: ", "claud"),
        (["check_seconds = 5", 'agent = ["codex", "claud"]'], "line 2: ", "claud"),
        (
            ['agent = "scripted"', "[roles.worker]", "minutes = 5", 'agent = "claud"'],
            "line 4: [roles.worker]: ",
            "claud",
        ),
        (['agent = "mine"', "[agents.mine]", 'model = "x"'], "line 1: ", "mine"),
    ],
)
def test_an_agent_that_does_not_exist_is_an_error(house: House, lines: list[str], place: str, name: str) -> None:
    """In any list, with the line and the existing agents; a table without a command defines none."""
    (fault,) = told(house, *lines)
    assert fault.startswith(
        f"{place}there is no agent '{name}'. {KNOWN}. For any other program add a table: [agents.{name}]"
    )


def test_agents_with_a_command_of_their_own_exist(house: House) -> None:
    """The message also lists them among the known agents."""
    assert told(house, 'agent = ["scripted", "mine"]', *MINE) == []
    (fault,) = told(house, 'agent = ["mine", "mien"]', *MINE)
    assert f"{KNOWN}, mine." in fault


def test_an_agent_in_the_front_matter_of_a_role_is_looked_for_too(house: House) -> None:
    """In the role's file, with its line; a table in config.toml overrides it."""
    house.role_files("documenter")
    path = Path(house.layout.path(names.ROLES)) / "documenter.md"
    path.write_text(path.read_text().replace("reads:", "agent: claud\nreads:"))
    with pytest.raises(BrokenFile, match=r"documenter\.md, line 4: there is no agent 'claud'"):
        config_check.require(house.layout)
    house.config('agent = "scripted"', "[roles.documenter]", 'agent = "scripted"')
    assert config_check.require(house.layout) == []


def test_a_table_that_no_list_names_is_a_warning(house: House) -> None:
    """A person may keep it for later; tables of known agents cause no warning."""
    house.config('agent = "scripted"', "[agents.codex]", 'model = "x"', "[agents.codx]", 'model = "x"')
    place = "(.harness/config.toml, line 4)"
    assert config_check.require(house.layout) == [f"no list of agents names 'codx', so its table has no effect {place}"]
    house.config('agent = "scripted"', "[roles.planner]", 'agent = ["scripted", "mine"]', *MINE)
    assert config_check.require(house.layout) == []


def test_a_checkpoint_before_a_feature_that_nobody_planned_is_a_warning(house: House) -> None:
    """Else a person trusts in a question that never comes; before there is a plan it may still come."""
    gate = ("[[checkpoint]]", 'name = "look"', 'when = "before-feature:F-{}"')
    for number, said in (("001", []), ("999", ["the checkpoint 'look' has no effect: the plan has no feature F-999"])):
        house.config('agent = "scripted"', *(line.format(number) for line in gate))
        assert [line.partition(" (")[0] for line in config_check.unused(house.layout)] == said
    house.lay()
    assert config_check.unused(house.layout) == []


def test_without_a_configuration_there_is_nothing_to_say(house: House) -> None:
    """An absent file is valid."""
    Path(house.layout.path(names.CONFIG)).unlink()
    assert config_check.require(house.layout) == []


# where a person sees it


def test_a_loop_does_not_start_with_a_name_that_is_nobody(house: House) -> None:
    """Exit 65 before the first decision, although the first role's agent exists."""
    house.script("worker", {"run": "touch 1.txt"})
    house.config('agent = "scripted"', "[roles.validator]", 'agent = "claud"')
    for words in ([], ["--once"]):
        done = house.run([RUN_SH, *words])
        assert (done.code, done.out) == (65, ""), done
        assert "config.toml, line 3: [roles.validator]: there is no agent 'claud'" in done.err
    assert house.ran() == []


def test_a_loop_starts_with_a_warning(house: House) -> None:
    """In its first lines, once per start."""
    house.config('agent = "scripted"', *MINE)
    (house.state / "STOP").touch()
    done = house.run([RUN_SH])
    assert done.code == 9
    assert done.out.startswith("warning: no list of agents names 'mine', so its table has no effect (")


def test_doctor_names_all_of_them_a_line_each(house: House) -> None:
    """Each once; exit code 10 if one is an error."""
    house.config('agent = ["scripted", "claud"]', "[roles.woker]", "minutes = 5", *MINE)
    done = house.harness("doctor")
    rows = [line.split(": ", 1) for line in done.out.split("\n") if "names:" in line]
    assert done.code == 10
    assert [row[0] for row in rows] == ["bad   names", "bad   names", "warn  names"]
    assert done.out.count("claud'") == 1
    assert "ok    agents: scripted" in done.out
    house.config('agent = "scripted"', *MINE)
    assert house.harness("doctor").code == 0
    assert "warn  names: no list of agents names 'mine'" in house.harness("doctor", "agents").out
