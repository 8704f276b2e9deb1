"""Promises of harness/filesystem/transfer.py: whole files, and many, over any filesystem; the contract tries it over each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.base.encoding import digest
from harness.filesystem import transfer
from harness.filesystem.local import Local
from tests.filesystem.contract import content, kind


class WithoutDigest(Local):
    """A filesystem that does not say the digest of what it reads."""

    def read(self, *given: Any, **more: Any) -> Any:
        """Without it."""
        return content(super().read(*given, **more)).replace(digest="")


def test_a_whole_file_has_its_digest_also_where_the_filesystem_does_not_say_it(tmp_path: Path) -> None:
    """So a caller can compare and set."""
    (tmp_path / "f").write_bytes(b"a\nb")
    for files in (Local(str(tmp_path)), WithoutDigest(str(tmp_path))):
        found = content(transfer.read_whole(files, "f"))
        assert (found.data, found.digest) == (b"a\nb", digest(b"a\nb"))


def test_a_file_beyond_the_limit_is_a_fault_and_not_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with a single long line, too; one of exactly the limit is whole."""
    monkeypatch.setattr(transfer, "MAX_WHOLE_BYTES", 10)
    for name, data in (("lines", b"1234\n5678\n9"), ("line", b"12345678901"), ("fits", b"1234567890")):
        (tmp_path / name).write_bytes(data)
    found = transfer.download(Local(str(tmp_path)), ["lines", "line", "fits"])
    assert (kind(found["lines"]), kind(found["line"]), found["fits"]) == ("too_large", "too_large", b"1234567890")


def test_a_path_exists_where_its_links_lead_to_something(tmp_path: Path) -> None:
    """Beneath the root."""
    (tmp_path / "root").mkdir()
    for name, target in (("here", "."), ("gone", "nowhere"), ("out", "..")):
        (tmp_path / "root" / name).symlink_to(target)
    files = Local(str(tmp_path / "root"))
    assert [transfer.exists(files, name) for name in ("here", "gone", "out")] == [True, False, False]
