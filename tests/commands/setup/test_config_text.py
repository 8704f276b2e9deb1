"""The first config.toml: every setting, commented out, and true."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise

import pytest

from harness.base.record import Record
from harness.commands.setup import _config_text
from harness.mission import config
from harness.mission.config import Config

TEXT = _config_text.commented("worker")
SETTING = re.compile(r"^#(?! )", re.M)


def test_it_changes_nothing() -> None:
    """As if there were no file."""
    assert config.parse(TEXT, "c") == Config()


def test_with_every_line_uncommented_it_sets_every_key_to_its_default() -> None:
    """Or to an example, if there is no default: no key is missing or invalid."""
    whole = tomllib.loads(SETTING.sub("", TEXT))
    config.parse(SETTING.sub("", TEXT), "c")
    tables: dict[str, type[Record]] = {"limits": config.LimitsTable, "env": config.EnvTable}
    named: dict[str, type[Record]] = {
        "roles": config.RoleTable,
        "agents": config.AgentTable,
        "prices": config.PriceTable,
    }
    shapes: list[tuple[dict[str, object], type[Record]]] = [
        (whole, config.TopTable),
        *((whole[name], shape) for name, shape in tables.items()),
    ]
    shapes += [(next(iter(whole[name].values())), shape) for name, shape in named.items()]
    for values, shape in shapes:
        assert [key for key in shape.fields if key not in values] == []
        for key in shape.fields:
            default = getattr(shape, key, None)
            assert default in (None, "", [], {}, 0) or values[key] == default, key


def test_each_setting_says_what_it_does() -> None:
    """In a separate line, which fits a screen; no line describes a removed setting."""
    lines = TEXT.split("\n")
    for before, line in pairwise(lines):
        assert len(line) <= 130
        if SETTING.match(line) and " = " in line:
            assert re.match(r"# \S", before), line
    tables: dict[str, type[Record]] = dict(config.TABLES)
    known = {f"{kind}.{key}" for kind, shape in tables.items() for key in shape.fields} | set(config.TopTable.fields)
    known |= {f"machines.{key}" for key in config.MachinesTable.fields}
    assert set(_config_text.ABOUT) == known
    assert set(_config_text.EXAMPLES) <= known


def test_every_single_setting_may_be_uncommented_alone() -> None:
    """Those of a table that is commented out with their table."""
    lines = TEXT.split("\n")
    for number, line in enumerate(lines):
        if not SETTING.match(line) or " = " not in line or "[prices" in TEXT[: TEXT.index(line)]:
            continue
        head = max((at for at in range(number) if lines[at].lstrip("#").startswith("[")), default=number)
        text = "\n".join(row[1:] if at in (number, head) and row[:1] == "#" else row for at, row in enumerate(lines))
        assert config.parse(text, "c") is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT, None),
        ("", "[limits]\nmax_cost_usd = 5.0\n"),
        ("check_seconds = 9\n", "check_seconds = 9\n\n[limits]\nmax_cost_usd = 5.0\n"),
        ("[limits] # mine\nmax_runs = 3\n", "[limits] # mine\nmax_cost_usd = 5.0\nmax_runs = 3\n"),
        ("[roles.worker]\nminutes = 9", "[roles.worker]\nminutes = 9\n\n[limits]\nmax_cost_usd = 5.0\n"),
    ],
)
def test_a_setting_goes_into_its_table(before: str, after: str | None) -> None:
    """In place of its commented line, else at the start of the table, which is created if needed."""
    text = _config_text.put(before, "limits.max_cost_usd", 5.0)
    assert config.parse(text, "c") == config.parse(before, "c").replace(max_cost_usd=5.0)
    assert after is None or text == after
    assert text.count("max_cost_usd = ") == 1
