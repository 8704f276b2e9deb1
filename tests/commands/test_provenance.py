"""How a line of memory is found by its words."""

from __future__ import annotations

import pytest

from harness.base.errors import UsageFault
from harness.commands.provenance import MemoryLine, plain, select


@pytest.mark.parametrize(
    "line",
    [
        "run `make` first",
        "- run `make` first",
        "- [2026-04-24] run `make` first (F-001, F-002 · 3x)",
        "- [2026-04-24] Avoid: run `make` first (1x)",
        "- [2026-04-24] run `make` first (missions: m-1 · 2x)",
        "- [2026-04-24] run `make` first (superseded by entry 7) (1x)",
        "  - run `make`   first (pinned)",
        "- Failed: run `make` first…",
    ],
)
def test_date_counts_and_marks_are_no_words(line: str) -> None:
    """A person copies a line from any page."""
    assert plain(line) == "run `make` first"


def test_the_whole_line_goes_before_its_beginning_and_a_page_before_what_left_it() -> None:
    """Else a short line could not be named."""
    short, long, gone = (
        MemoryLine(text="use make", lesson=1),
        MemoryLine(text="use make -j2", lesson=2),
        MemoryLine(text="use npm", lesson=3),
    )
    assert select("Use make", [short, long], [gone]) == [short]
    assert select("use make -", [short, long], [gone]) == [long]
    assert select("use n", [short, long], [gone]) == [gone]
    with pytest.raises(UsageFault, match="Several lines begin with 'use': 'use make' or 'use make -j2'"):
        select("use", [short, long], [gone])
    with pytest.raises(UsageFault, match="Give the line"):
        select("- ", [short])
