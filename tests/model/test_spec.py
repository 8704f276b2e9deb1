"""What a person asks for is read from their file, and compared with what was planned from."""

from __future__ import annotations

import pytest

from harness.base.errors import BrokenFile
from harness.model import spec
from tests.missions import SPEC, House


def test_it_is_theirs_or_absent(house: House) -> None:
    """Bytes as they are; text with a fault that names the line."""
    assert spec.asked(house.layout) == SPEC.encode()
    assert not spec.changed(house.layout)
    (house.project / "SPEC.md").write_bytes(b"# A\n\xff\n")
    assert spec.changed(house.layout)
    with pytest.raises(BrokenFile, match="line 2"):
        spec.asked_text(house.layout)
    (house.project / "SPEC.md").unlink()
    assert (spec.asked(house.layout), spec.asked_text(house.layout), spec.changed(house.layout)) == (None, None, False)
