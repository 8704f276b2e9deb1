"""The programs of examples/library do what their first lines say; they are short, and typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.modelserver import Reply, Server, serving
from tests.agents.wires import Exchange
from tests.builtin.talking import MODELS, address, calling
from tests.missions import CHECKOUT

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")

PROGRAMS = sorted((CHECKOUT / "examples/library").glob("*.py"))
SHOWN = {
    "ask": "You asked: what is in this folder?\n",
    "many_users": "ann of red: list_files\nann: You have: mine.txt\nbob of red: list_files\nbob: You have: mine.txt\n",
    "offline_test": "passed\n",
    "own_tools": "There are 3.\n",
    "streaming": "[list_files]\nYou have: mine.txt\n(ok, 100 tokens)\n",
    "typed_answer": "grey heron: 4\n",
}


def brain(exchange: Exchange) -> Reply:
    """A model that does what the programs ask for."""
    if "How many apples" in exchange.text:
        return (
            Reply(f"There are {exchange.results[-1]}.") if exchange.results else calling("stock", {"fruit": "apples"})
        )
    if "How many eggs" in exchange.text:
        return Reply('{"name": "grey heron", "eggs": 4}')
    if "Which files" in exchange.text:
        return Reply("You have: mine.txt") if exchange.results else calling("list_files", {})
    return Reply(f"You asked: {exchange.text.rpartition(chr(10))[2]}")


def run(path: Path, folder: Path, server: Server) -> str:
    """What the program prints."""
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "MODEL": MODELS["chat"], "BASE_URL": address(server, "chat")}
    words = [sys.executable, str(path), *(["what is in this folder?"] if path.stem == "ask" else [])]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.stem))
def test_a_program_does_what_it_says(tmp_path: Path, path: Path) -> None:
    """Against a model server on loopback; at most 25 lines."""
    with serving(brain) as server:
        shown = run(path, tmp_path, server)
    lines = sorted if path.stem == "many_users" else list[str]  # two people at once
    assert lines(shown.splitlines()) == lines(SHOWN[path.stem].splitlines())
    assert len([line for line in path.read_text().splitlines() if line.strip()]) <= 25


def test_the_programs_are_typed() -> None:
    """mypy --strict, as for ours."""
    words = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *map(str, PROGRAMS)]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
