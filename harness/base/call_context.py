"""The context of a call of a conversation: who talks with whom, and attributes that a program gives it and that are never stored.

Whatever works for the call finds it here: tools, hooks, stores and filesystems, in whichever thread or task.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from harness.base.record import Record


class CallContext(Record, frozen=True):
    """The ids of user, session and agent, and the `attributes` of the program. Outside a call the ids are ""."""

    user: str = ""
    session: str = ""
    agent: str = ""
    attributes: Mapping[str, object] = {}

    @staticmethod
    def current() -> CallContext:
        """The context of the call that this code works for."""
        return _current.get()

    @property
    def metadata(self) -> dict[str, Any]:
        """What goes to other programs with a request: the ids, and the attributes that are JSON."""
        return {**self.asdict(), "attributes": {name: one for name, one in self.attributes.items() if _is_json(one)}}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """What runs inside works for a call with this context."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


OUTSIDE = CallContext()
_current: ContextVar[CallContext] = ContextVar("call", default=OUTSIDE)
