"""Functions of a program as tools: the schema comes from annotations and docstring, an exception becomes a failed result."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable, Iterable
from concurrent import futures
from typing import Any

import pydantic
from pydantic_ai import Tool as TheirTool
from pydantic_core import to_json

from harness.base.errors import UsageFault
from harness.builtin.hooks import guarded
from harness.builtin.tools import registry
from harness.builtin.tools.tool import RUNS, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed

POLL_SECONDS = 0.1  # between two looks whether the call shall end


def tools_of(functions: Iterable[Callable[..., Any] | Tool]) -> list[Tool]:
    """A tool for each function, sync or async; a Tool stays as it is. Raises UsageFault for a taken name, and for a function
    whose parameters have no schema."""
    made = [one if isinstance(one, Tool) else _tool(one) for one in functions]
    names = [*registry.TOOLS, *(one.name for one in made)]
    if taken := [name for name in names if names.count(name) > 1]:
        raise UsageFault(f"There are two tools with the name {taken[0]}. Give the function another name.")
    return made


def _tool(function: Callable[..., Any]) -> Tool:
    try:
        with warnings.catch_warnings(
            action="ignore", category=UserWarning
        ):  # of returned types, whose schema is not used
            known = TheirTool(function, takes_ctx=False, include_return_schema=False).tool_def
        checked = pydantic.validate_call(function)
    except (pydantic.errors.PydanticUserError, NameError, TypeError) as fault:
        name = getattr(function, "__name__", repr(function))
        raise UsageFault(f"The function {name} cannot be a tool: {fault}. Annotate its parameters.") from fault

    def run(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
        try:
            found = guarded(known.name, lambda: _value(session, checked, arguments))
        except pydantic.ValidationError as fault:
            return failed(f"{fault}. Call {known.name} again with other arguments.")
        text = found if isinstance(found, str) else to_json(found, fallback=str).decode()
        return found if isinstance(found, ToolResult) else ToolResult(text=text)

    schema = {"properties": {}, **known.parameters_json_schema, "type": "object"}
    words = known.description or known.name.replace("_", " ")
    return Tool(name=known.name, description=words, parameters=schema, effects=RUNS, run=run, foreign=True)


def _value(session: ToolSession, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """The result of the function; a coroutine runs on the event loop of the program, until it returns or the call must end."""
    made = function(**arguments)
    if not inspect.isawaitable(made):
        return made
    assert session.loop is not None, "a conversation of a program has a loop"
    work = asyncio.run_coroutine_threadsafe(_awaited(made), session.loop)
    while not futures.wait([work], POLL_SECONDS).done:
        if session.stopping:
            work.cancel()
            raise InterruptedError("the conversation was interrupted")
    return work.result()


async def _awaited(made: Any) -> Any:
    return await made
