"""Single runs of a real model: a planner, a curator over twenty notes, and a conversation with one tool."""

from __future__ import annotations

import json

from tests.missions import House
from tests.model import playing
from tests.model.playing import begun, is_sound, laid, started

pytestmark = playing.real_model
NOTES = [f"{tag} {text}." for text in (
    "words.py reads standard input to its end", "The words are split at white space", "An empty input has no words",
    "Sorting by count alone leaves ties in the order of the input", "The exit code without words is one",
) for tag in ("Seen in the program:", "Again:", "A check says:", "In other words:")]  # fmt: skip


def test_a_planner(bare: House) -> None:
    """Its plan is taken or refused, with a reason, and what was asked can be rebuilt."""
    bare.project.mkdir()
    bare.write("SPEC.md", (playing.TASK / "SPEC.md").read_text())
    begun(
        bare,
        f'agent = "builtin"\n[limits]\nmax_runs = 1\n[roles.planner]\nminutes = {playing.MINUTES}\n{playing.BUILTIN}',
    )
    done = started(bare, "planner")
    is_sound(bare, done)
    planned = json.loads(bare.program("feature", "list", "--json").out)
    assert bool(planned) == (bare.ran()[-1]["outcome"] == "ok"), (done, planned)


def test_a_curator_over_twenty_notes(bare: House) -> None:
    """Every note is there afterwards: in the memory's first layer, or in its archive with what became of it."""
    bare.project.mkdir()
    laid(bare, f'[roles.curator]\nagent = "builtin"\nminutes = {playing.MINUTES}\n{playing.BUILTIN}')
    for text in NOTES:
        assert bare.program("note", "--tag", "CONTEXT", text).code == 0
    is_sound(bare, started(bare, "curator"))
    kept = bare.read("memory/raw.md") + bare.read("memory/archive.jsonl")
    assert [text for text in NOTES if text not in kept] == []


def test_a_conversation_with_one_tool(bare: House) -> None:
    """It answers or says why not; what it may not use it does not use, and each of its requests can be rebuilt."""
    bare.project.mkdir()
    bare.write("colours.txt", "The door is green, and the roof is red.\n")
    bare.write("tools.json", '{"allow": ["read_file"]}\n')
    bare.write("SPEC.md", "# A house\n\nIt has a door.\n")
    begun(bare, f'agent = "builtin"\n{playing.BUILTIN}')
    done = started(bare, "ask", "--json", "What colour has the door in the file colours.txt?")
    assert done.code in (0, 10) and (json.loads(done.out)["text"] or done.err), done
    assert playing.tracebacks(bare) == []
    assert bare.git("status", "--porcelain") == ""
    (log,) = bare.state.glob("sessions/**/log.jsonl")
    for number in range(1, playing.asked(log) + 1):
        assert (shown := bare.program("sessions", "show", "default", "--turn", str(number))).code == 0, shown
