"""The commands `team`, `goal` and `task`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.modelserver import Reply, serving
from tests.agents.wires import Exchange
from tests.builtin.talking import calling
from tests.cli.test_ask import configure
from tests.cli.test_values import contracted
from tests.missions import House


@pytest.fixture
def team(house: House, tmp_path: Path) -> House:
    """A folder of the tenant `acme`, with the agent `scribe`, the users `ann` and `bob`, the space `sales` and the thread
    `deal`."""
    config = house.state / "config.toml"
    config.write_text(f'{config.read_text()}\n[team]\ndatabase = "sqlite://{tmp_path}/team.db"\ntenant = "acme"\n')
    said(house, "team init", database=f"sqlite://{tmp_path}/team.db is ready for the tenant acme")
    for words in ("agent scribe", "space sales", "user ann", "user bob"):
        said(house, f"team add {words}")
    for who in ("ann", "scribe"):
        said(house, f"team grant {who} sales write")
    said(house, "team add thread deal --agent scribe --space sales --user ann")
    return house


def said(house: House, words: str, **wanted: str) -> str:
    """What a command prints, which ends well."""
    done = house.harness(*words.split())
    assert done.code == 0, done.err
    assert all(one in done.out for one in wanted.values()), done.out
    return done.out


def value(house: House, words: str) -> Any:
    """What it prints as JSON."""
    return json.loads(said(house, f"{words} --json"))


def test_a_goal_goes_from_its_first_task_to_its_acceptance(team: House) -> None:
    """Lines that a person reads; a key makes a verb happen once."""
    assert said(team, "goal add deal Sign --review task --accepts bob --by ann") == "G-1 Sign: open\n"
    assert said(team, "task add G-1 DocuSign --by agent/scribe") == "T-2 DocuSign: todo\n"
    done = "task done T-2 signed --by agent/scribe --key k"
    assert said(team, done) == "T-2 DocuSign: review\n"
    assert said(team, done) == "T-2 DocuSign: review (already done)\n"
    assert said(team, "task accept T-2 --by bob") == "T-2 DocuSign: done\n"
    assert said(team, "goal done G-1 --by ann") == "G-1 Sign: done\n"
    assert said(team, "goal list deal") == "G-1 Sign: done\n" and said(team, "task list deal") == "T-2 DocuSign: done\n"


def test_what_a_team_has_is_shown(team: House) -> None:
    """A line each."""
    shown = said(team, "team show")
    assert [line.split(":")[0] for line in shown.split("\n")] == [
        *("agent scribe", "space sales", "user ann", "user bob", "user ann", "agent scribe", "")
    ]
    assert said(team, "team threads") == "deal: scribe in sales for ann\n"
    assert said(team, "team revoke ann sales she-left") == "user ann: no access to sales\n"
    assert said(team, "team archive sales") == "sales is archived\n"


def test_keys_of_json_are_those_of_the_contract_page(team: House) -> None:
    """Of each command that it names."""
    said(team, "goal add deal Sign --by ann")
    said(team, "task add G-1 DocuSign --by ann")
    rows = {words: keys for words, keys in contracted().items() if words.split()[0] in ("team", "goal", "task")}
    assert rows.pop("team run THREAD MESSAGE")  # test_team_turn.py
    assert len(rows) == 6
    for words, keys in rows.items():
        called = words.replace("THREAD", "deal").replace("TASK", "T-2 --by ann")
        found = value(team, called)
        assert sorted(found[0] if isinstance(found, list) else found) == keys, words


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ("team show --tenant globex", 64, "There is no tenant 'globex'"),
        ("team add space ../x", 64, "is not a valid name of a space"),
        ("team grant eve sales read", 64, "no user or agent 'eve'"),
        ("task done T-9 --by ann", 64, "There is no task 'T-9'"),
        ("goal drop G-1 --by ann", 64, "Say why"),
        ("goal add deal X --by bob", 10, "user/bob may not change the thread 'deal'"),
        ("goal add deal X --by eve", 64, "no user or agent 'eve'"),
        ("goal add deal X --by e\udcffe", 64, "is not UTF-8"),
        ("goal list de\nal", 64, "There is no thread 'de\\nal'"),
    ],
)
def test_bad_input_is_one_line_with_its_code(team: House, words: str, code: int, why: str) -> None:
    """Nothing is changed."""
    done = team.harness(*words.split(" "))
    assert (done.code, done.err.count("\n")) == (code, 1) and why in done.err
    assert value(team, "goal list deal") == []


def test_without_a_database_or_its_tables_the_remedy_is_named(house: House, tmp_path: Path) -> None:
    """In one line each."""
    done = house.harness("team", "show")
    assert done.code == 64 and '[team] database = "' in done.err
    config = house.state / "config.toml"
    config.write_text(f'{config.read_text()}\n[team]\ndatabase = "sqlite://{tmp_path}/new.db"\ntenant = "acme"\n')
    done = house.harness("team", "threads")
    assert done.code == 65 and "Run: run.sh team init" in done.err


def team_brain(exchange: Exchange) -> Reply:
    """Writes a file of the space, ends a task, then answers."""
    steps = [
        ("write_file", {"path": "Space/docs/price.md", "content": "12\n"}),
        ("execute", {"command": "harness task done T-2 signed"}),
    ]
    number = len(exchange.results)
    return calling(*steps[number]) if number < len(steps) else Reply(exchange.results[-1])


def test_a_turn_of_the_built_in_agent(team: House, tmp_path: Path) -> None:
    """It changes a file of the space and a task, and what became of the file is a line."""
    pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")
    assert "[team] files" in team.harness("team", "run", "deal", "hello").err
    said(team, "goal add deal Sign --by ann")
    said(team, "task add G-1 DocuSign --by ann")
    with serving(team_brain) as server:
        text = (team.state / "config.toml").read_text()
        team_table = text[text.index("[team]") :] + f'files = "file://{tmp_path}/sources"\n'
        configure(team.project, server, f'trust = "workspace"\n{team_table}')
        out = said(team, "team run deal hello")
        assert out.endswith("  accepted     Space/docs/price.md\n")
        assert said(team, "task list deal") == "T-2 DocuSign: done\n"
    assert [path.read_text().split("\n", 1)[1] for path in (tmp_path / "sources").rglob("price.md")] == ["12\n"]
