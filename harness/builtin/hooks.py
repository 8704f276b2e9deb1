"""Hooks: functions of a program that run before and after its calls, and before and after each call of a tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harness.base.errors import NEGATIVE, HarnessError
from harness.base.record import Record
from harness.builtin.events import Reply
from harness.builtin.tools.tool import ToolResult

T = TypeVar("T")


class ProgramFault(HarnessError):
    """A tool or a hook of a program raised an exception, which is the cause of this one."""

    code = NEGATIVE


class Hooks(Record, frozen=True):
    """What runs around calls, each in the thread of what it is about; `CallContext.current()` says whose call it is.

    `before_call` gets the message and returns the one to send, or None for the same; what it raises refuses the call.
    `after_call` gets the reply. `before_tool` gets the tool's name and arguments, and returns why the call is refused, or None;
    `after_tool` gets the result as well, and returns another one, or None. What the two raise is a failed result of the
    tool."""

    before_call: Callable[[str], str | None] | None = None
    after_call: Callable[[Reply], None] | None = None
    before_tool: Callable[[str, dict[str, Any]], str | None] | None = None
    after_tool: Callable[[str, dict[str, Any], ToolResult], ToolResult | None] | None = None

    def around_tool(self, name: str, arguments: dict[str, Any], run: Callable[[], ToolResult]) -> ToolResult:
        """Carry out the call of a tool, with what comes before and after it. Raises ProgramFault."""
        before = self.before_tool
        if before and (refusal := guarded("before_tool", lambda: before(name, arguments))):
            return ToolResult(text=refusal, failed=True)
        result = run()
        if self.after_tool is None:
            return result
        after = self.after_tool
        return guarded("after_tool", lambda: after(name, arguments, result)) or result


def guarded(what: str, run: Callable[[], T]) -> T:
    """Run code of a program; raises ProgramFault for an exception of it."""
    try:
        return run()
    except HarnessError:
        raise
    except Exception as fault:
        raise ProgramFault(f"{what} failed: {type(fault).__name__}: {fault}") from fault
