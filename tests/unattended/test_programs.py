"""Which programs a check calls."""

from __future__ import annotations

import pytest

from harness.unattended import _programs


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("pytest -q", ["pytest"]),
        ("A=1 B='2' npm test | grep ok && ! curl x; jq .", ["npm", "grep", "curl", "jq"]),
        ("if node x; then cargo y; fi", ["if", "node", "cargo"]),
        ('x=$(git log)\ntest "$x"', ["git", "test"]),
        ('./run.sh\n"$TOOL" x', []),
        ("exec /usr/bin/env python3 x", ["python3"]),
        ("python3.11 -m x >out", ["python3.11"]),
    ],
)
def test_words_at_the_place_of_a_command(text: str, names: list[str]) -> None:
    """Words of the shell among them do no harm: no PATH has them."""
    assert set(names) <= set(_programs.called([text]))
    if not names:
        assert _programs.called([text]) == []


def test_a_path_has_what_can_be_started() -> None:
    """A folder or a plain file is no program."""
    assert (
        _programs.on("/nowhere:/bin:/usr/bin", "sh")
        and not _programs.on("/bin:/usr", "bin")
        and not _programs.on("", "sh")
    )
