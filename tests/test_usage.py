"""One normal form for what vendors count: nothing twice, and unknown is not nothing."""

from __future__ import annotations

from harness.usage import Usage, plus


def test_what_nobody_told_is_not_nothing() -> None:
    """None stays None until somebody tells a number."""
    assert Usage().tokens is None
    assert Usage(input=0).tokens == 0
    assert plus(None, None) is None
    assert (plus(None, 2), plus(2, None), plus(2, 3)) == (2, 2, 5)


def test_reasoning_is_a_part_of_the_output_and_counted_once() -> None:
    """All tokens are input, cache and output together."""
    assert Usage(input=1, cache_read=10, cache_write=100, output=1000, reasoning=900).tokens == 1111
