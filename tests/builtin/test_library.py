"""The public names, as a program sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.builtin import library
from tests.missions import CHECKOUT

PROGRAM = """
from collections.abc import AsyncIterator
from harness import Config, Event, HarnessAgent, Limits, Reply, SimulatedModel, TextEvent

def add(one: int, two: int) -> int:
    return one + two

agent = HarnessAgent("helper", SimulatedModel("hi"), tools=[add], config=Config(limits=Limits(tokens=5)))
reply: Reply = agent.call_sync("hello", output=list[int], session_id="s")

async def pieces() -> AsyncIterator[str]:
    async for event in agent.stream("hello"):
        if isinstance(event, TextEvent):
            yield event.text

reveal_type(agent)
agent.call_sync(5, sesion_id="s")
"""


def test_all_public_names_are_there_and_no_other() -> None:
    """`from harness import …` gives what library lists."""
    assert [getattr(harness, name) for name in library.__all__] == [getattr(library, name) for name in library.__all__]
    with pytest.raises(AttributeError):
        getattr(harness, "Missing")  # noqa: B009 - that it raises is the test
    assert (CHECKOUT / "harness/py.typed").exists()


def test_a_type_checker_sees_the_types_of_a_program(tmp_path: Path) -> None:
    """mypy --strict finds what is wrong with it, and nothing else."""
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path),
        "program.py",
    ]
    made = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, env={"MYPYPATH": str(CHECKOUT)}
    )
    found = [line.split(": ", 1)[1] for line in made.stdout.splitlines() if line.startswith("program.py")]
    assert found[0] == 'note: Revealed type is "harness.builtin.sessions.agent.HarnessAgent"', made.stdout
    wrong = [line for line in found if line.startswith("error: ")]
    assert len(wrong) == 2 and "sesion_id" in wrong[0] and '"int"; expected "str"' in wrong[1]
