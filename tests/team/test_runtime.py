"""Promises of harness/team/_runtime.py; what turns do with it is in test_compose.py and test_reconcile.py."""

from __future__ import annotations

from pathlib import Path

from harness.team._manifest import Manifest
from harness.team._runtime import IRREGULAR, RuntimeFolder


def test_a_write_leads_nowhere_else(tmp_path: Path) -> None:
    """A link or a file where a folder belongs, and a folder where a file belongs, are set aside with what is in them."""
    runtime, outside = RuntimeFolder(str(tmp_path / "thread")), tmp_path / "outside"
    runtime.begin_hydration()
    outside.mkdir()
    at = Path(runtime.workspace)
    (at / "link").symlink_to(outside)
    (at / "file").write_text("a file\n")
    (at / "folder/.git").mkdir(parents=True)
    (at / "folder/.git/config").write_text("kept\n")
    (at / "empty").mkdir()
    for path in ("link/x", "file/x", "folder", "empty"):
        runtime.write(path, b"new\n", writable=False)
    assert [(at / path).read_text() for path in ("link/x", "file/x", "folder", "empty")] == ["new\n"] * 4
    assert [*outside.iterdir()] == []
    kept = tmp_path / "thread/refused/obstacles"
    assert (kept / "folder/.git/config").read_text() == "kept\n"
    assert ((kept / "file").read_text(), (kept / "link").is_symlink(), (kept / "empty").exists()) == (
        "a file\n",
        True,
        False,
    )


def test_what_is_no_file_is_irregular(tmp_path: Path) -> None:
    """Links are not followed, and their targets not measured."""
    runtime = RuntimeFolder(str(tmp_path))
    runtime.begin_hydration()
    runtime.write("a/b", b"12", writable=True)
    (Path(runtime.workspace) / "link").symlink_to("a")
    assert runtime.sizes() == {"a/b": 2, "link": IRREGULAR}
    runtime.remove("a/b")
    assert not (Path(runtime.workspace) / "a").exists()


def test_kept_content_is_what_its_digest_says_or_none(tmp_path: Path) -> None:
    """Until a manifest does not name it."""
    runtime = RuntimeFolder(str(tmp_path))
    runtime.begin_hydration()
    runtime.keep_base(b"base\n")
    (path,) = (tmp_path / "base").iterdir()
    assert runtime.base_content(path.name) == b"base\n"
    path.write_bytes(b"cut")
    assert runtime.base_content(path.name) is None
    runtime.end_hydration(Manifest(tenant="acme", entries={}))
    assert not path.exists()
    assert runtime.manifest() == Manifest(tenant="acme", entries={})
    runtime.begin_hydration()
    assert runtime.manifest() is None
