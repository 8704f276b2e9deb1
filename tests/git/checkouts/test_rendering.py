"""git reads back from our configuration file what we wrote into it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.git.checkouts import _rendering


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.bare", "false"),
        ("remote.origin.url", "file:///a b"),
        ("url.git@host:.insteadof", "https://host/"),
        ("filter.we\"ird\\one.clean", "sed 's/\"//' ; # no comment"),
        ("alias.two", "first\nsecond\ttab"),
    ],
)  # fmt: skip
def test_git_reads_the_value_that_was_written(tmp_path: Path, key: str, value: str) -> None:
    """Quotes, backslashes, line ends and comment signs survive."""
    config = tmp_path / "config"
    config.write_text(_rendering.rendered([[key, value]]))
    read = subprocess.run(
        ["git", "config", "-z", "--file", config, "--get", key], capture_output=True, text=True, check=True
    )
    assert read.stdout == value + "\0"


def test_a_key_without_a_value_is_true(tmp_path: Path) -> None:
    """A switch of git is written as one."""
    config = tmp_path / "config"
    config.write_text(_rendering.rendered([["core.bare", None]]))
    read = subprocess.run(
        ["git", "config", "--bool", "--file", config, "core.bare"], capture_output=True, text=True, check=True
    )
    assert read.stdout == "true\n"
