"""Entries in a table."""

from __future__ import annotations

from pathlib import Path

from harness.stores._sqlite import SqliteEngine


def test_a_prefix_is_a_space_of_its_own_in_one_table(tmp_path: Path) -> None:
    """`a/` is not the beginning of `a0/` or `a-/`, and none sees another's names."""
    engines = []
    for prefix in ("a/", "a0/", "a-/", "b/"):
        engines.append(SqliteEngine(str(tmp_path / "store.db")))
        engines[-1].prefix = prefix
        assert engines[-1].change("x/k", prefix.encode(), "", "0" * 16)
    for engine in engines:
        assert engine.names("", "", 0) == engine.names("x/", "", 0) == ["x/k"] and engine.names("", "x/k", 0) == []
        assert engine.read(["x/k", "k"]) == [(engine.prefix.encode(), "0" * 16), None]
