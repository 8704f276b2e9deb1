"""[land] of config.toml: placeholders are filled once, and unknown ones are named with their line."""

from __future__ import annotations

import pytest

from harness.base.errors import BrokenFile
from harness.mission import config


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('subject = "feat: {titel}"', "'subject' must be one line, with {title} and {feature}"),
        ('subject = ""', "'subject' must be one line"),
        ('trailers = ["Run: {run}"]', "'trailers' must be a list of 'Key: value' lines"),
        ('trailers = ["no trailer"]', "'trailers' must be a list of 'Key: value' lines"),
        ('sign = "yes"', "'sign'"),
    ],
)
def test_what_it_does_not_know_is_named_with_its_line(line: str, fault: str) -> None:
    """A misspelt placeholder never reaches a commit."""
    with pytest.raises(BrokenFile) as caught:
        config.parse(f"[land]\n\n{line}\n", "c.toml")
    assert str(caught.value).startswith("c.toml, line 3: ") and fault in str(caught.value)


def test_a_title_with_braces_is_not_filled_again() -> None:
    """Only the template's own placeholders count."""
    table = config.LandTable(**config.parse('[land]\nsubject = "{feature}: {title}"\n', "c.toml").land)
    assert table.filled(table.subject, title="use {feature}", feature="F-001") == "F-001: use {feature}"
