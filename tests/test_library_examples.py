"""The programs of examples/library do what their first lines say; they are short, and typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.modelserver import Reply, serving
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


ALL = """import os, runpy, sys
import pydantic_ai.models.openai
from harness import HarnessAgent
for path in sys.argv[1:]:
    name = os.path.basename(path).removesuffix(".py")
    pid = os.fork()
    if not pid:
        os.mkdir(name)
        os.chdir(name)
        for number, what in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"../{name}.{what}", os.O_WRONLY | os.O_CREAT, 0o600), number)
        sys.argv = [path, *(["what is in this folder?"] if name == "ask" else [])]
        runpy.run_path(path, run_name="__main__")
        sys.exit(0)
    with open(f"{name}.code", "w") as code:
        code.write(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
"""  # each program in a fork and a folder of its own: the imports of a vendor's client take 2 s


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what each program has printed, and its exit code, against a model server on loopback."""
    folder = tmp_path_factory.mktemp("programs")
    with serving(brain) as server:
        env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "MODEL": MODELS["chat"], "BASE_URL": address(server, "chat")}
        subprocess.run([sys.executable, "-c", ALL, *map(str, PROGRAMS)], cwd=folder, env=env, timeout=180, check=True)
    return folder


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.stem))
def test_a_program_does_what_it_says(ended: Path, path: Path) -> None:
    """At most 25 lines."""
    shown, code, said = ((ended / f"{path.stem}.{what}").read_text() for what in ("out", "code", "err"))
    assert code == "0", said
    lines = sorted if path.stem == "many_users" else list[str]  # two people at once
    assert lines(shown.splitlines()) == lines(SHOWN[path.stem].splitlines())
    assert len([line for line in path.read_text().splitlines() if line.strip()]) <= 25
