"""`do` and `spec`: one command from a sentence to the diff, and a dialogue that ends in SPEC.md."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.state import names
from tests.missions import PROGRAM, House
from tests.planned import reply

TEXT = "# One\n\n## Claims\n\n- 1.txt exists\n"
ASKS = "# One\n\n## Questions\n\n- Which name? Suggested: 1.txt\n\n## Claims\n\n- it exists\n"
PLAN = reply(
    features=[{"id": "F-001", "title": "One", "claims": ["VAL-1"]}],
    contract=[{"id": "VAL-1", "claim": "1.txt exists", "checks": ["test -f 1.txt"]}],
)


@pytest.fixture
def wanting(unbegun: House) -> House:
    """A repository without SPEC.md and mission, with agents that build 1.txt."""
    (unbegun.project / "SPEC.md").unlink()
    unbegun.git("commit", "-qam", "no spec")
    Path(unbegun.layout.path(names.CONFIG)).parent.mkdir()
    unbegun.config('agent = "scripted"')
    unbegun.script("specifier", {"say": TEXT})
    unbegun.script("planner", PLAN)
    unbegun.script("worker", {"run": "echo built > 1.txt"}, {"say": "done"})
    unbegun.script("validator", {"say": "none"})
    return unbegun


def typed(house: House, answers: str, *words: str) -> tuple[int, str]:
    """A command on a terminal with these answers: its exit code and standard output."""
    ours, theirs = pty.openpty()
    command: list[Any] = [sys.executable, "-P", PROGRAM, *words]
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=house.project, env=house.env, stdin=theirs, **piped) as done:
        os.close(theirs)
        os.write(ours, answers.encode())
        out, _ = done.communicate(timeout=120)
    os.close(ours)
    return done.returncode, out


def test_a_sentence_is_built_to_the_end_in_one_command(wanting: House) -> None:
    """Specified, planned, built, validated; the diff comes last. The words were in the specifier's prompt."""
    done = wanting.program("do", "--yes", "make", "one")
    assert done.code == 0, done
    assert done.out.index("- 1.txt exists") < done.out.index("> NEXT planner") < done.out.index("DONE ")
    assert "+built" in done.out[done.out.index("merge  ") :]
    assert "make one" in wanting.prompt(wanting.ran()[0]["run"])
    assert "REASON=nobody answers" in wanting.prompt(wanting.ran()[0]["run"])


def test_nothing_is_built_before_enter(wanting: House) -> None:
    """No leaves SPEC.md, with 9; the same words again and Enter go on."""
    code, out = typed(wanting, "n\n", "do", "make one")
    assert (code, "NEXT" in out, wanting.ran()[0]["role"]) == (9, False, "specifier"), out
    (wanting.project / "SPEC.md").write_text("make one\n")
    wanting.script("planner", {"fail": "auth", "reason": "no key"})
    code, out = typed(wanting, "\n", "do", "make one")
    assert (code, "> NEXT planner" in out) == (69, True), out


def test_where_nobody_can_look_or_something_is_in_the_way_nothing_is_written(wanting: House) -> None:
    """64 each, with what to do."""
    done = wanting.program("do", "make one")
    assert (done.code, "Add --yes" in done.err, (wanting.project / "SPEC.md").exists()) == (64, True, False)
    for words in (("do", "--yes"), ("do", "--yes", "--issue", "x", "words"), ("spec", "make one")):
        assert wanting.program(*words).code == 64
    assert wanting.ran() == []


def test_a_mission_with_a_plan_goes_on(house: House) -> None:
    """It is left as it is, and the fault says how to go on."""
    (house.project / "SPEC.md").unlink()
    done = house.program("do", "--yes", "more")
    assert (done.code, "has a plan already. To go on with it: run.sh" in done.err) == (64, True), done
    assert not (house.project / "SPEC.md").exists()


def test_a_dialogue_goes_on_until_nothing_is_unclear(wanting: House) -> None:
    """The answer is in the next prompt; a dialogue that was left goes on with `spec` alone."""
    first, then = wanting.scripts / "specifier.jsonl", wanting.scripts / "then.jsonl"
    then.write_text(first.read_text())
    swap = {"run": f"cp '{then}' '{first}'"}
    wanting.base = ('confine = "off"',)
    wanting.config('agent = "scripted"')
    wanting.script("specifier", swap, {"say": ASKS})
    code, out = typed(wanting, "one.txt\n", "spec", "make one")
    assert (code, "Which name?" in out, (wanting.project / "SPEC.md").read_text()) == (0, True, TEXT), out
    assert "  Answer: one.txt" in wanting.prompt()
    (wanting.project / "SPEC.md").write_text(ASKS)
    code, out = typed(wanting, "two.txt\n", "spec")
    assert (code, "  Answer: two.txt" in wanting.prompt(), len(wanting.ran())) == (0, True, 3), out
