"""The single commands of a line: no operator hides one from a rule, and quotes do."""

from __future__ import annotations

import pytest

from harness.builtin.tools._command_parts import parts


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("git push", ["git push"]),
        ("  git   push  ", ["git push"]),
        ("A=1 B='x' git push", ["git push"]),
        ("cd x && git push", ["cd x && git push", "cd x", "git push"]),
        ("a;b|c&d\ne", ["a;b|c&d\ne", "a", "b", "c", "d", "e"]),
        ("(git push)", ["git push"]),
        ("echo $(git push)", ["echo $(git push)", "echo", "git push"]),
        ("echo `git push`", ["echo `git push`", "echo", "git push"]),
        ("echo 'a; git push'", ["echo 'a; git push'"]),
        ('echo "a; b"', ['echo "a; b"']),
        (r"echo a\;b", [r"echo a\;b"]),
    ],
)
def test_a_line_has_these_commands(line: str, found: list[str]) -> None:
    """First the whole, where it has several."""
    assert parts(line) == found


def test_a_substitution_in_double_quotes_is_a_command_too() -> None:
    """It is carried out there."""
    assert any(part.startswith("git push") for part in parts('echo "on $(git push origin)"'))
    assert any(part.startswith("git push") for part in parts('echo "on `git push`"'))
