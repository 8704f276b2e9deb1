"""SPEC.md: what a person asks for. It is theirs, in their folder; `spec.md` in the state is the copy that was planned from."""

from __future__ import annotations

from harness.store import files, names
from harness.store.layout import Layout
from harness.store.state import State


def asked(layout: Layout) -> bytes | None:
    """The person's SPEC.md; None where it is absent."""
    return files.read(layout.asked_spec)


def asked_text(layout: Layout) -> str | None:
    """The person's SPEC.md as text; None where it is absent, BrokenFile where it is no UTF-8."""
    return files.read_text(layout.asked_spec)


def changed(layout: Layout) -> bool:
    """Whether the person's SPEC.md differs from the accepted copy; an absent or empty one asks for nothing."""
    found = asked(layout)
    return bool(found and found.strip()) and found != State(layout).data(names.SPEC)
