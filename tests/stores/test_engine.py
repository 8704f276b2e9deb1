"""A store over an engine: what a lost reply or a refusal becomes."""

from __future__ import annotations

import pytest

from harness.base.errors import BrokenFile
from harness.stores._engine import packed, unpacked


def test_an_entry_is_its_last_tokens_and_its_data() -> None:
    """The newest first, at most eight; what is none is said so."""
    value = b""
    for number in range(20):
        value = packed(f"{number:016x}", unpacked(value, "k")[0] if value else "", b"data\n")
    history, data = unpacked(value, "k")
    assert data == b"data\n" and [int(history[at : at + 16], 16) for at in range(0, 128, 16)] == [*range(19, 11, -1)]
    for broken in (b"", b"data\n", value[:128], value.replace(b"0", b"\xff")):
        with pytest.raises(BrokenFile, match="k: "):
            unpacked(broken, "k")
