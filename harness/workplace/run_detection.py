"""Detects whether this process is inside a run of the mission, where only note, issue, reply, check and reads are allowed."""

from __future__ import annotations

import errno
import os

from harness.base.errors import UsageFault
from harness.mission import mission
from harness.process import tree
from harness.state import names
from harness.state.layout import Layout

INSIDE = "HARNESS_INSIDE"


def run_id(layout: Layout) -> str:
    """The id of the run that contains this process, by the variable or by the tag of an ancestor; "" outside a run."""
    named = os.environ.get(INSIDE, "")
    tag = tree.tagged_ancestor() or ""
    owner, _, name = tag.partition("/")
    if tag and mission.exists(layout) and owner == mission.load(layout).id:
        return named or name
    return named if os.path.isdir(layout.run(named or "-").folder) else ""


def refuse(layout: Layout, what: str) -> None:
    """Raise UsageFault inside a run, where `what` is not allowed."""
    found = run_id(layout)
    if found:
        raise UsageFault(
            f"'{what}' is not for the inside of a run ({found}): only note, issue, reply, check and reads are."
        )
    if _read_only(layout):
        raise UsageFault(f"'{what}' cannot be done here: {layout.state} is read-only, as it is inside a run.")


def _read_only(layout: Layout) -> bool:
    """Whether the mission's state is read-only for this process."""
    try:
        os.close(os.open(layout.path(names.STATE_LOCK), os.O_WRONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return os.path.isdir(layout.state) and not os.access(layout.state, os.W_OK)
    except OSError as fault:
        return fault.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
    return False
