"""The known programs: one table, short adapters, and their caveats before they start."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.agents import registry
from harness.agents.clis import ABOUT, CLIS
from harness.base.errors import Unavailable
from tests.agents.agent_desk import settings

FOLDER = Path(registry.__file__).parent


def test_one_table_has_them_all() -> None:
    """Their names, their command lines, and what is known of them."""
    assert set(registry.KNOWN_CLIS) == CLIS.keys() == ABOUT.keys()


@pytest.mark.parametrize("name", ["text", *CLIS])
def test_each_shape_of_events_serves_any_program(name: str, tmp_path: Path) -> None:
    """By `format`."""
    registry.make("mine", settings(tmp_path, command=["true"], format=name))


@pytest.mark.parametrize("name", CLIS)
def test_an_adapter_is_short(name: str) -> None:
    """Its command line and its events; the rest is shared."""
    assert len((FOLDER / f"{name}.py").read_text().split("\n")) - 1 <= 80


@pytest.mark.parametrize("name", CLIS)
def test_a_program_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    """Before the run starts."""
    with pytest.raises(Unavailable, match="is not installed"):
        registry.make(name, settings(tmp_path, path=str(tmp_path / "missing")).replace(trust="full"))


def test_the_caveats_of_a_program_are_listed_for_each_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No sandbox, a sandbox with missing requirements, and a program that refuses root."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert CLIS["claude"].caveats("workspace") == [
        "no sandbox without bwrap and socat: its commands may write anywhere"
    ]
    assert CLIS["gemini"].caveats("workspace") == ["no sandbox: its commands may write anywhere"]
    assert CLIS["codex"].caveats("workspace") == []
    assert CLIS["gemini"].caveats("full") == []
