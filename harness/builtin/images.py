"""Images that a person or a program gives with a message."""

from __future__ import annotations

from harness.base.errors import UsageFault
from harness.builtin.tools.read_files import LARGEST_IMAGE, media_type
from harness.state import files

IMAGE_KINDS = "a PNG, JPEG, GIF or WebP image"


def loaded(image: bytes | str) -> tuple[str, bytes]:
    """(media type, bytes) of an image, given as bytes or as a path. Raises UsageFault for one that no model takes."""
    name = image if isinstance(image, str) else "The image"
    data = files.read(image) if isinstance(image, str) else image
    if data is None:
        raise UsageFault(f"{name}: there is no such file.")
    if not (kind := media_type(data)):
        raise UsageFault(f"{name} is not {IMAGE_KINDS}.")
    if len(data) > LARGEST_IMAGE:
        raise UsageFault(f"{name} has {len(data):,} bytes; models take at most {LARGEST_IMAGE:,}. Make it smaller.")
    return kind, data
