"""The order that the child is started with: what the adapter writes is what it reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.agents import builtin
from harness.base.errors import UsageFault
from harness.builtin._order import parse
from harness.process.confine import Confinement, Glass
from tests.agents.agent_desk import desk, project, settings


def test_the_adapters_order_is_read_whole(tmp_path: Path) -> None:
    """The confinement of commands included."""
    made = project(tmp_path)
    known = Confinement(glass=Glass(writable=["/a"], hidden=["/b"], moved={"/c": "/d"}), tier="bubblewrap", holder=7)
    table: dict[str, Any] = {
        "temperature": 0.5,
        "max_steps": 9,
        "request_seconds": 3,
        "env": {"MY_KEY": "k", "PLAIN": "p"},
    }
    given = settings(made, **table).replace(model="google:gemini-2.5-pro", prices={"m": {"input": 1.0, "output": 2.0}})
    order = parse(builtin.argv(given, desk(made).replace(confinement=known, stable_bytes=5))[-1])
    assert order.glass() == known
    assert order.parameters == {"model": "google:gemini-2.5-pro", "temperature": 0.5}
    own = given.replace(table={**table, "base_url": "http://127.0.0.1:1/v1"})
    assert parse(builtin.argv(own, desk(made))[-1]).parameters["max_output_tokens"] == 8000
    assert (order.max_steps, order.request_seconds, order.stable_bytes) == (9, 3, 5)
    assert (order.hidden, order.key_env) == (["MY_KEY"], ["GOOGLE_API_KEY", "GEMINI_API_KEY"])
    assert (order.role, order.feature, order.prices) == ("worker", "F-001", {"m": {"input": 1.0, "output": 2.0}})


@pytest.mark.parametrize("text", ["", "{}", "no", '{"parameters": {}}'])
def test_anything_else_is_a_wrong_use(text: str) -> None:
    """A person who starts it by hand is told so, with exit code 64."""
    with pytest.raises(UsageFault, match="started by a run"):
        parse(text)
    done = subprocess.run([sys.executable, "-I", builtin.program(), text], capture_output=True, text=True, check=False)
    assert done.returncode == 64 and "Traceback" not in done.stderr
