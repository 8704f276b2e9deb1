"""What is known before a start may spend anything."""

from __future__ import annotations

import json
import time

import pytest

from harness.base.errors import HarnessError
from harness.unattended import _preflight
from harness.unattended.schedule_log import StartMemory
from tests.missions import House


def faults(house: House) -> list[str]:
    """The faults of a start whose worker is due, but for the disk of this machine."""
    return [line for line in _preflight.faults(house.layout, "worker", StartMemory()) if not line.startswith("disk: ")]


def test_one_agent_of_a_list_is_enough(house: House) -> None:
    """The next one answers where the first is missing; without any, each says why."""
    tables = ("[agents.a]", 'command = ["no-such-a"]', "[agents.b]", 'command = ["sh"]')
    house.config('agent = ["a", "b"]', *tables)
    assert faults(house) == []
    house.config('agent = ["a"]', *tables)
    assert len(faults(house)) == 1 and "no-such-a" in faults(house)[0]


def test_an_embedded_agent_can_always_be_started(house: House) -> None:
    """A missing script of one role is that role's business."""
    assert faults(house) == []


def test_a_login_that_has_ended_is_a_fault_only_where_nothing_else_answers(house: House) -> None:
    """Nor where a key is set; a refresh token renews it."""
    (house.folder / "home/.claude").mkdir()
    path = house.folder / "home/.claude/.credentials.json"
    tables = ('trust = "workspace"', "[agents.b]", 'command = ["sh"]', "[agents.claude]", 'path = "/bin/sh"')
    path.write_text(json.dumps({"claudeAiOauth": {"expiresAt": int(time.time() - 60) * 1000}}))
    house.config('agent = ["claude"]', *tables)
    assert len(faults(house)) == 1 and faults(house)[0].startswith("login: that of claude ended at ")
    house.config('agent = ["claude", "b"]', *tables)
    assert faults(house) == []
    house.config('agent = ["claude"]', *tables, 'env = { ANTHROPIC_API_KEY = "k" }')
    assert faults(house) == []
    path.write_text(json.dumps({"claudeAiOauth": {"expiresAt": 1000, "refreshToken": "r"}}))
    house.config('agent = ["claude"]', *tables)
    assert faults(house) == []


def test_no_trust_is_a_fault(house: House) -> None:
    """No run could start."""
    house.config('agent = ["claude"]', "[agents.claude]", 'path = "/bin/sh"')
    assert len(faults(house)) == 1 and "trust" in faults(house)[0]


def test_a_disk_without_room(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for each file system, with how much is left and where."""
    monkeypatch.setattr(_preflight, "MIN_FREE_MIB", 10**9)
    found = _preflight.disk(house.layout)
    assert found and all("MiB, less than 1000000000 left at /" in line for line in found)


def test_a_role_that_is_gone_is_no_refusal(house: House) -> None:
    """A mission without any run has none either."""
    assert _preflight.refusal(house.layout) == ""
    with pytest.raises(HarnessError):
        _preflight.faults(house.layout, "no-such-role", StartMemory())
