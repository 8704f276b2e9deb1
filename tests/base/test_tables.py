"""Tables of rules beside a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base import passwords, tables

RULES = [name for name in tables.sections(passwords.PATH) if not name.startswith(tables.PART)]


def test_a_rule_has_its_parts_in_place(tmp_path: Path) -> None:
    """Parts within parts, too; a comment and an empty line are no rule."""
    path = tmp_path / "rules.txt"
    path.write_text("# a comment\n= part pet\ncat\n<dog>\n\n= part dog\nhound\n= rule\nmy <pet>\n")
    assert tables.sources(str(path), "rule") == ["my (?:cat|hound)"]
    assert tables.pattern(str(path), "rule").search("See MY HOUND")


@pytest.mark.parametrize("name", RULES)
def test_every_rule_of_passwords_is_a_pattern_without_an_open_part(name: str) -> None:
    """A part that no section defines would stand in the pattern as it is written."""
    parts = {key.removeprefix(tables.PART) for key in tables.sections(passwords.PATH) if key.startswith(tables.PART)}
    assert not [part for part in parts if f"<{part}>" in tables.pattern(passwords.PATH, name).pattern]
