"""Answers: a fault of the filesystem becomes one or two sentences with a remedy."""

from __future__ import annotations

import pytest

from harness.builtin.tools import tool_results
from harness.filesystem.protocol import FAULTS, FileFault
from tests.builtin.tools.benches import Bench


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_a_failure_in_whole_sentences(bench: Bench, kind: str) -> None:
    """The filesystem's sentence, and what to do."""
    found = tool_results.fault(bench.own, FileFault(kind=kind, path="a/b.txt", text=f"a/b.txt: {FAULTS[kind]}"))
    assert found.failed
    assert found.text.startswith(f"a/b.txt: {FAULTS[kind]}.")
    assert found.text.endswith((".", "?"))


def test_what_is_left_out_is_told_with_its_number() -> None:
    """Or that there is more, where nobody counted; nothing where nothing is."""
    assert tool_results.left_out(0, "files", "Narrow it.") == ""
    assert tool_results.left_out(1234, "files", "Narrow it.") == "\n\n[1,234 more files left out. Narrow it.]"
    assert tool_results.left_out(-1, "files", "Narrow it.") == "\n\n[More files left out. Narrow it.]"


def test_numbers_are_put_as_people_read_them() -> None:
    """One and many."""
    assert (tool_results.counted(1, "line"), tool_results.counted(2000, "entry", "entries")) == (
        "1 line",
        "2,000 entries",
    )
