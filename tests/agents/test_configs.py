"""Reading a CLI's own configuration: names of servers, in TOML and in JSON with comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.agents._configs import config_names
from tests.agents.agent_desk import desk, project, settings

TEXTS = {
    "plain.json": '{"mcp": {"one": {}, "two": {}}}',
    "comments.jsonc": '{// "mcp": 1\n "mcp": {"one": {"url": "http://x//y"}, /* "no": {}, */ "two": {},},}',
    "some.toml": '[mcp.one]\ncommand = "x"\n[mcp."two"]\n',
}


@pytest.mark.parametrize("name", TEXTS)
def test_names_are_found_in_every_form(tmp_path: Path, name: str) -> None:
    """In file order; a file below a variable's folder, or below the working folder."""
    here = project(tmp_path)
    (here / name).write_text(TEXTS[name])
    assert config_names(settings(here), desk(here), [name], "mcp") == ["one", "two"]
    at = desk(here, CONFIG_HOME=str(here))
    assert config_names(settings(here), at, [f"$CONFIG_HOME/{name}", name], "mcp") == ["one", "two"]


def test_a_missing_or_malformed_file_has_none(tmp_path: Path) -> None:
    """The CLI could not read it either."""
    here = project(tmp_path)
    for name, text in {"a.json": "{", "b.json": "[1]", "c.toml": "= 1", "d.json": "", "e.json": '{"mcp": [1]}'}.items():
        (here / name).write_text(text)
        assert config_names(settings(here), desk(here), [name], "mcp") == []
    assert config_names(settings(here), desk(here), ["$UNSET/x.json", "missing.toml"], "mcp") == []
