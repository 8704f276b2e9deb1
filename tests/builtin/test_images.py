"""Images with a message."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from tests.builtin.simulating import Program

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def test_images_go_to_the_model_with_the_message(tmp_path: Path) -> None:
    """By their bytes, or by their path; they stay in the conversation."""
    (tmp_path / "a.png").write_bytes(PNG)
    with Program(tmp_path, "a picture", "as before") as program:
        program.call_sync("what is this?", images=[PNG, str(tmp_path / "a.png")])
        program.call_sync("sure?")
    assert program.simulated.requests[1].messages[0]["images"] == [["image/png", b64encode(PNG).decode()]] * 2


def test_what_no_model_takes_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    """A missing file, a text, and an image that is too large."""
    (tmp_path / "a.txt").write_text("text")
    with Program(tmp_path, "fine") as program:
        for image, why in (
            ("none.png", "no such file"),
            (str(tmp_path / "a.txt"), "is not a PNG"),
            (PNG * 200_000, "at most"),
        ):
            with pytest.raises(UsageFault, match=why):
                program.call_sync("look", images=[image])
        assert program.call_sync("hello").call == 1
