"""The verbs of a mission in a conversation: a person is asked about each call, and what it does is theirs."""

from __future__ import annotations

import json
from pathlib import Path

from harness.builtin.tools import registry
from harness.builtin.tools.tool import ToolResult, ToolSession
from harness.cli import _mission_verbs
from harness.commands import steering
from harness.filesystem.local import Local
from harness.mission import issues
from harness.state import names
from tests.agents.modelserver import Reply, serving
from tests.agents.wires import Exchange
from tests.builtin.talking import calling
from tests.cli.test_ask import Screen, configure
from tests.missions import House

VERBS = ["note", "issue", "steer", "checkpoint_grant", "checkpoint_deny", "feature_retry", "escalation_answer"]


def call(house: House, name: str, /, **given: object) -> ToolResult:
    """A call of a verb."""
    bench = ToolSession(Local(str(house.project)), layout=house.layout)
    bench.extra_tools = _mission_verbs.tools(house.layout)
    return registry.call(bench, name, given)


def test_each_verb_does_what_its_command_does(house: House) -> None:
    """As the person, by name where the record has one."""
    (house.state / "checkpoints").mkdir()
    for name in ("look", "see"):
        (house.state / f"checkpoints/{name}.md").touch()
    house.harness("feature", "block", "F-001")
    assert call(house, "note", text="use make", tag="TRICK").text == "Noted."
    assert "is noted" in call(house, "issue", title="it is slow").text
    assert "Every next run" in call(house, "steer", text="be brief").text
    assert not call(house, "checkpoint_grant", name="look", note="fine").failed
    assert not call(house, "checkpoint_deny", name="see", note="too big").failed
    assert "answered" in call(house, "escalation_answer", text="go on").text
    assert not call(house, "feature_retry", feature="F-001").failed
    assert "person" in house.read(names.RAW) and "TRICK: use make" in house.read(names.RAW)
    assert [(one.title, one.severity, one.by) for one in issues.load(house.layout)] == [
        ("it is slow", "minor", "person")
    ]
    assert steering.steering(house.layout) == "be brief\n"
    orders = [row for line in house.read("orders.jsonl").split("\n") if line and "verb" in (row := json.loads(line))]
    assert [(row["verb"], row["args"], row["by"]) for row in orders[1:]] == [
        ("checkpoint grant", ["look", "fine", steering.who()], "person"),
        ("checkpoint deny", ["see", "too big", steering.who()], "person"),
        ("escalation answer", ["go on"], "person"),
        ("feature retry", ["F-001"], "person"),
    ]


def test_a_fault_is_a_failed_result_with_its_words(house: House) -> None:
    """As the command says them."""
    assert "F-999" in call(house, "feature_retry", feature="F-999").text
    assert call(house, "escalation_answer", text="yes").text.startswith("Nothing is escalated")
    assert call(house, "note", text=" ").failed


def test_without_a_mission_there_is_none(unbegun: House) -> None:
    """No verb is offered."""
    assert _mission_verbs.tools(unbegun.layout) == []


def test_ask_offers_them_and_asks_a_person_first(house: House) -> None:
    """Whoever says no keeps the mission as it is; without a person nothing is permitted."""
    seen = []

    def steers(exchange: Exchange) -> Reply:
        seen.append([name for name in exchange.tools if name in VERBS])
        last = exchange.text.rpartition("\n")[2]
        return Reply("So.") if exchange.turns % 2 else calling("steer", {"text": f"be {last}"})

    with serving(steers) as server:
        configure(house.project, server)
        assert house.harness("ask", "bold").code == 0
        assert sorted(seen[0]) == sorted(VERBS) and not steering.steering(house.layout)
        screen = Screen("ask", "--session", "two", folder=house.project, home=Path(house.env["HOME"]))
        for asked, answer in (("kind", "y"), ("rude", "n")):
            screen.until("> ")
            screen.types(f"{asked}\n")
            screen.until(f'steer: {{"text":"be {asked}"}}')
            screen.until("permit it? ")
            screen.types(f"{answer}\n")
            screen.until("So.")
            assert steering.steering(house.layout) == "be kind\n"
        screen.until("> ")
        screen.types("\x04")
        assert screen.code() == 0
