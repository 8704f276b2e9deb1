"""Promises of harness/filesystem/_protection.py: what may be read only is known by its name, in any case, at any depth."""

from __future__ import annotations

import pytest

from harness.filesystem._protection import ProtectedNames


@pytest.mark.parametrize(
    "path", [".git", ".git/config", "a/.git/hooks/x", ".Git", "a/.HARNESS/x", ".ssh/config", "x/.aws/y"]
)
def test_these_folders_and_all_below_them_are_guarded(path: str) -> None:
    """Also a file of such a name, as a worktree has."""
    assert ProtectedNames().folder(path.split("/"))


@pytest.mark.parametrize("path", ["git", ".gitignore", ".github/x", ".harness-notes", "a.git", "ssh", ".env/x"])
def test_these_are_not(path: str) -> None:
    """Names that only look alike."""
    assert not ProtectedNames().folder(path.split("/"))


@pytest.mark.parametrize("name", [".env", "id_rsa", "ID_ED25519", "server.pem", "a.KEY", ".netrc", ".npmrc"])
def test_these_files_are_keys(name: str) -> None:
    """By name or by ending."""
    assert ProtectedNames().file(name)


@pytest.mark.parametrize("name", [".env.example", "id_rsa.pub", "keys.py", "pem", "environment", ".envrc"])
def test_these_files_are_none(name: str) -> None:
    """What a project has as its own."""
    assert not ProtectedNames().file(name)


def test_more_can_be_named() -> None:
    """A name counts anywhere, a path from the root; both with all below them."""
    guarded = ProtectedNames(["*.lock", "/docs/decisions/", "vendor"])
    for path in ("a.lock", "x/b.LOCK/c", "docs/decisions", "docs/decisions/1", "vendor", "x/vendor/y"):
        assert guarded.folder(path.split("/")), path
    for path in ("docs", "x/docs/decisions", "vendors", "lock"):
        assert not guarded.folder(path.split("/")), path
