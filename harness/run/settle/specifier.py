"""Specifier: the reply becomes SPEC.md if it ends in claims, and if no person has changed the file since the prompt."""

from __future__ import annotations

from harness.mission import mission
from harness.mission.open_run import OpenRun, Outcome
from harness.state import documents, files

CLAIMS, QUESTIONS = "Claims", "Questions"
NO_CLAIMS = f"its reply is not a SPEC.md: it has no list under a heading '## {CLAIMS}'"
EDITED = "SPEC.md was changed meanwhile, so it is left as it is; the other text is in {path}"


def settle(run: OpenRun) -> None:
    """Write SPEC.md."""
    outcome, text = run.outcome, _spec(run.outcome)
    if not text:
        outcome.ended, outcome.reason = "agent_error", NO_CLAIMS
    elif mission.asked_spec_text(run.layout) != outcome.prompt.spec:
        outcome.ended, outcome.reason = "conflict", EDITED.format(path=run.paths.reply)
    else:
        files.replace(run.layout.folders.asked_spec, f"{text.strip()}\n".encode())


def items(text: str, heading: str) -> list[str]:
    """The items of the list under a heading."""
    rows = "\n".join(documents.sections(text, heading)).split("\n")
    return [row[2:].strip() for row in rows if row[:2] in ("- ", "* ")]


def _spec(outcome: Outcome) -> str:
    """The first text with claims: the reply, a fenced block of the last message, or all of it from its first heading on."""
    last = "\n".join(outcome.messages[-1:])
    title = next((line for _, _, line in documents.headings(last)), 0)
    found = [str((outcome.reply or {}).get("spec", "")), *documents.fenced_blocks(last, "markdown")]
    return next((text for text in [*found, "\n".join(last.split("\n")[title:])] if items(text, CLAIMS)), "")
