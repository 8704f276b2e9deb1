"""Tools of servers that are too many for a request: found, loaded, and what is said of those that are not."""

from __future__ import annotations

import pytest

from harness.builtin.tools import registry
from harness.builtin.tools._find_tools import KEY, MOST_LISTED, MOST_OFFERED
from harness.builtin.tools.tool import RUNS, Tool, ToolResult
from harness.workspace.rules import ToolRules
from tests.builtin.tools.benches import Bench


def served(name: str, about: str = "It does a thing.") -> Tool:
    """A tool of a server."""
    return Tool(name=name, description=about, parameters={"type": "object", "properties": {}}, effects=RUNS,
                run=lambda bench, given: ToolResult(text=f"{name} ran"), foreign=True, server="own")  # fmt: skip


def names(bench: Bench) -> list[str]:
    """The offered tools of servers, and find_tools."""
    return [tool.name for tool in registry.offered(bench.own) if tool.server or tool.name == "find_tools"]


@pytest.fixture
def many(bench: Bench) -> Bench:
    """A session with too many tools."""
    bench.own.extra_tools = [
        *(served(f"x_{number}") for number in range(MOST_OFFERED)),
        served("maps_route", "Finds a way by car."),
    ]
    return bench


def test_as_many_as_a_request_takes_are_offered_as_they_are(many: Bench) -> None:
    """Those count that the rules permit."""
    assert names(many) == ["find_tools"]
    many.own.rules = ToolRules(deny=["x_0"])
    assert names(many) == [tool.name for tool in many.own.extra_tools[1:]]
    assert "There is no tool 'find_tools'" in many.refused("find_tools", query="car")


def test_what_matches_is_listed_and_what_is_loaded_can_be_called(many: Bench) -> None:
    """One line each, the best first; the loaded ones last, in the order of loading."""
    assert "find_tools, load: [maps_route]" in many.refused("maps_route")
    assert many.said("find_tools", query="way by car") == "1 tool of 65:\n- maps_route: Finds a way by car."
    listed = many.said("find_tools").split("\n")
    assert len(listed) == MOST_LISTED + 3 and listed[-1].startswith(f"[{65 - MOST_LISTED} more tools left out.")
    assert "None of 65 tools matches" in many.said("find_tools", query="hovercraft")
    many.said("find_tools", load=["maps_route"])
    many.said("find_tools", load=["x_7", "x_7"])
    assert names(many) == ["find_tools", "maps_route", "x_7"] and many.said("maps_route") == "maps_route ran"
    assert "There is no tool y" in many.refused("find_tools", load=["x_1", "y"])
    assert many.own.state[KEY] == ["maps_route", "x_7"]


def test_no_more_are_loaded_than_a_request_takes(many: Bench) -> None:
    """The first ones make room."""
    many.said("find_tools", load=["maps_route"])
    said = many.said("find_tools", load=[f"x_{number}" for number in range(MOST_OFFERED)])
    assert len(names(many)) == 1 + MOST_OFFERED and "maps_route" not in said
    assert "is not loaded" in many.refused("maps_route")


def test_rules_hold_for_what_it_finds(many: Bench) -> None:
    """An allow-list need not name it; a denied tool is nowhere; and find_tools itself can be denied."""
    many.own.rules = ToolRules(allow=[["x_*", "maps_*", "y"]], ask=["maps_route"])
    many.said("find_tools", load=["maps_route"])
    assert "needs the permission of a person" in many.refused("maps_route")
    many.own.rules = ToolRules(deny=["maps_*", "find_tools"])
    assert "maps_route" not in many.refused("find_tools", query="way by car")
    many.own.extra_tools.append(served("x_more"))
    assert names(many) == [] and "not permitted" in many.refused("find_tools")
