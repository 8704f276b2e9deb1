"""Promises of tests/bash32.py: what it says where there is no bash 3.2 to be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import bash32


def test_without_a_source_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the words of git, and what else would serve; exit 69, which CI takes for a reason to go on."""
    monkeypatch.setattr(bash32, "BASH", tmp_path / "bash")
    monkeypatch.setenv("BASH32_SOURCE", str(tmp_path / "nothing.git"))
    assert bash32.main([]) == bash32.NOT_BUILT
    said = capsys.readouterr().out
    assert f"{tmp_path}/nothing.git: fatal: " in said
    assert "make test-bash32 BASH32_SOURCE=" in said


def test_a_source_that_does_not_compile_is_shown(tmp_path: Path) -> None:
    """The end of what was said."""
    (tmp_path / "configure").write_text("echo no acceptable cc found; exit 1\n")
    assert bash32.build(tmp_path) == "no acceptable cc found"
