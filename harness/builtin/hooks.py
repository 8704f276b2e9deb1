"""Hooks: functions of a program that run before and after its calls and its tool calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harness.base.errors import NEGATIVE, HarnessError
from harness.base.record import Json, Record
from harness.builtin.events import Reply
from harness.builtin.tools.tool import ToolResult

T = TypeVar("T")


class ProgramFault(HarnessError):
    """A tool or a hook of a program raised an exception, which is the cause of this one."""

    code = NEGATIVE


class Hooks(Record, frozen=True):
    """Functions around calls, each run in the thread of its call; `CallContext.current()` says whose call it is.

    `before_call` receives the message and returns the one to send, or None to keep it; an exception refuses the call.
    `after_call` receives the reply. `before_tool` receives the tool's name and arguments and returns why the call is refused, or
    None; `after_tool` also receives the result and returns another one, or None. An exception of these two is a failed result."""

    before_call: Callable[[str], str | None] | None = None
    after_call: Callable[[Reply], None] | None = None
    before_tool: Callable[[str, dict[str, Json]], str | None] | None = None
    after_tool: Callable[[str, dict[str, Json], ToolResult], ToolResult | None] | None = None

    def around_tool(self, name: str, arguments: dict[str, Any], run: Callable[[], ToolResult]) -> ToolResult:
        """Carry out a tool call with the hooks before and after it. Raises ProgramFault."""
        before = self.before_tool
        if before and (refusal := guarded("before_tool", lambda: before(name, arguments))):
            return ToolResult(text=refusal, failed=True)
        result = run()
        if self.after_tool is None:
            return result
        after = self.after_tool
        return guarded("after_tool", lambda: after(name, arguments, result)) or result


def guarded(what: str, run: Callable[[], T]) -> T:
    """Run code of a program; raises ProgramFault for its exceptions."""
    try:
        return run()
    except HarnessError:
        raise
    except Exception as fault:
        raise ProgramFault(f"{what} failed: {type(fault).__name__}: {fault}") from fault
