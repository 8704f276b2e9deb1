"""Functions of a program as tools of its agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness import CallContext, SimulatedCall, ToolResult, ToolRules
from harness.base.errors import UsageFault
from tests.builtin.simulating import Program

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")


def weather(city: str, days: int = 1) -> dict[str, object]:
    """The weather of a city.

    Args:
        city: its name
        days: how many
    """
    if city == "Atlantis":
        raise KeyError(city)
    return {"city": city, "days": days, "for": CallContext.current().attributes.get("tenant")}


async def slowly(text: str) -> str:
    """Say it later."""
    await asyncio.sleep(0.01)
    return text


def test_a_function_is_a_tool_with_the_schema_of_its_annotations_and_docstring(tmp_path: Path) -> None:
    """Sync and async; what it returns is JSON, a text as it is; the context of the call is there."""
    with Program(
        tmp_path,
        [
            SimulatedCall(name="weather", arguments={"city": "Ulm"}),
            SimulatedCall(name="slowly", arguments={"text": "hi"}),
        ],
        "done",
        tools=[weather, slowly],
    ) as program:
        assert program.call_sync("go", attributes={"tenant": "t1"}).text == "done"
        offered = {one["name"]: one for one in program.simulated.requests[0].tools}
    assert program.results() == ['{"city":"Ulm","days":1,"for":"t1"}', "hi"]
    schema = offered["weather"]["parameters"]
    assert schema["properties"]["city"] == {"type": "string", "description": "its name"} and schema["required"] == [
        "city"
    ]
    assert offered["weather"]["description"] == "The weather of a city."


def test_an_exception_is_a_failed_result_and_so_are_unfit_arguments(tmp_path: Path) -> None:
    """The session goes on, and the model reads why."""
    calls = [SimulatedCall(name="weather", arguments={"city": "Atlantis"}),
             SimulatedCall(name="weather", arguments={"city": 1, "days": "many"})]  # fmt: skip
    with Program(tmp_path, calls, "sorry", "still here", tools=[weather]) as program:
        assert program.call_sync("go").text == "sorry"
        assert program.call_sync("and now?").text == "still here"
    failed = [one for one in program.simulated.requests[1].messages if one["role"] == "tool"]
    assert all(one["failed"] for one in failed) and len(failed) == 2
    assert "KeyError: 'Atlantis'" in failed[0]["text"] and "days" in failed[1]["text"]


def test_rules_hold_for_a_function_as_for_any_tool(tmp_path: Path) -> None:
    """A denied one is not offered; a result of its own kind stays."""

    def picture() -> ToolResult:
        """A picture."""
        return ToolResult(text="look", images=[("image/png", b"\x89PNG\r\n\x1a\n")])

    with Program(
        tmp_path, SimulatedCall(name="picture"), "seen", tools=[weather, picture], rules=ToolRules(deny=["weather"])
    ) as program:
        program.call_sync("go")
        request = program.simulated.requests[1]
    assert "weather" not in [one["name"] for one in request.tools]
    assert request.messages[-1]["images"] == [["image/png", "iVBORw0KGgo="]]


def test_a_name_that_is_taken_and_a_function_without_annotations_are_refused(tmp_path: Path) -> None:
    """When the agent is made, not when it works."""

    def read_file(path: str) -> str:
        return path

    class Strange:
        pass

    def odd(one: Strange) -> str:
        return ""

    with pytest.raises(UsageFault, match="two tools with the name read_file"):
        Program(tmp_path, tools=[read_file])
    with pytest.raises(UsageFault, match="The function odd cannot be a tool"):
        Program(tmp_path, tools=[odd])


def test_an_async_tool_ends_with_the_call_that_is_interrupted(tmp_path: Path) -> None:
    """It is cancelled, and its result says so."""
    begun, cancelled = asyncio.Event(), []

    async def forever() -> str:
        """Never ends."""
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return ""

    async def played() -> str:
        async with Program(tmp_path, SimulatedCall(name="forever"), tools=[forever]) as program:
            work = asyncio.ensure_future(program.call("go"))
            await begun.wait()
            assert program.interrupt() == 1
            return (await work).outcome

    assert asyncio.run(played()) == "interrupted" and cancelled == [True]
