"""Differences as people read them."""

from __future__ import annotations

from harness.builtin.tools.text_diff import diff


def test_a_difference_names_what_is_new_gone_binary_and_too_long() -> None:
    """A unified diff; nothing for the same content."""
    assert diff("a", b"x\n", b"x\n") == ""
    assert diff("a", b"x\ny\n", b"x\nz\n").splitlines() == ["--- a", "+++ a", "@@ -1,2 +1,2 @@", " x", "-y", "+z"]
    assert diff("a", None, b"x\n").startswith("--- /dev/null\n+++ a") and diff("a", b"x\n", None).startswith(
        "--- a\n+++ /dev/null"
    )
    assert diff("a", b"\0", b"\0\1") == "a: binary, 1 bytes before and 2 after"
    long = diff("a", None, b"x\n" * 1000).splitlines()
    assert len(long) == 201 and long[-1] == "… 803 lines more"
