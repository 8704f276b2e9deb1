"""A brain that takes a whole small mission to DONE: it reads its role from the prompt and works by shell calls alone.

One feature, one claim: greeting.txt holds GREETING. The planner replies with a plan, the worker writes the file, notes a
trick and replies, validator and curator have nothing to report. A client without a shell tool gets the reply in the text.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

from tests.agents.modelserver import Reply, shell_call
from tests.agents.wires import Exchange, Json

GREETING = "hello from the agent"
SPEC = f"# A greeting\n\n## Greeting\n\nThe file greeting.txt holds the line `{GREETING}`.\n"
TRICK = "printf writes the greeting without a shell's own echo"
RUN = re.compile(r"^- Run ID: (?P<id>\d+-(?P<role>[a-z]+)\S*)\s*$", re.M)
COMMAND = re.compile(r"^- Harness command: (?P<words>.+ --run \S+)\s*$", re.M)
PLAN: Json = {
    "features": [
        {
            "id": "F-001",
            "title": "A greeting",
            "description": "greeting.txt at the top of the project",
            "claims": ["VAL-GREET-001"],
            "spec_refs": ["Greeting"],
        }
    ],
    "contract": [
        {
            "id": "VAL-GREET-001",
            "claim": "greeting.txt holds the greeting",
            "checks": [f'grep -qx "{GREETING}" greeting.txt'],
        }
    ],
}
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # how mini-swe-agent learns that a task is done
WRITE = f"printf '%s\\n' '{GREETING}' > greeting.txt"
REPLIES: dict[str, Json] = {
    "planner": PLAN,
    "worker": {"status": "implemented", "summary": "wrote greeting.txt"},
    "validator": {},
    "curator": {},
}


def brain(exchange: Exchange) -> Reply | None:
    """The next step of the role in the prompt; None without a prompt of the harness in it."""
    found = list(RUN.finditer(exchange.text))
    commands = list(COMMAND.finditer(exchange.text))
    if not found or not commands or found[-1]["role"] not in REPLIES:
        return None
    role = found[-1]["role"]
    if shell_call("true", exchange.tools) is None:
        return without_tools(role, exchange)
    harness = commands[-1]["words"]  # as it stands there: a shell must take it
    steps = STEPS[role](harness)
    steps += [SUBMIT] if SUBMIT in exchange.text else []
    done = len(exchange.results)
    if done < len(steps):
        return Reply(f"Step {done + 1} as {role}.", steps[done])
    return Reply(f"Done as {role}.")


def reply(harness: str, value: Json) -> str:
    """Shell that replies with a JSON object."""
    return f"{harness} reply - <<'EOF_REPLY'\n{json.dumps(value)}\nEOF_REPLY"


def work(harness: str) -> list[str]:
    """Write the file and note a trick; then reply."""
    note = f"{harness} note --tag TRICK {shlex.quote(TRICK)}"
    return [f"{WRITE} && {note}", reply(harness, REPLIES["worker"])]


STEPS: dict[str, Callable[[str], list[str]]] = {
    "planner": lambda harness: [reply(harness, PLAN)],
    "worker": work,
    "validator": lambda harness: [reply(harness, {})],
    "curator": lambda harness: [reply(harness, {})],
}


def without_tools(role: str, exchange: Exchange) -> Reply:
    """Everything in the last message: the reply as a block, the note in it, the file in the client's edit format."""
    value = dict(REPLIES[role])
    edit = ""
    if role == "worker":
        value["notes"] = [{"tag": "TRICK", "text": TRICK}]
        edit = f"greeting.txt\n```\n{GREETING}\n```\n\n" if edits_whole_files(exchange.text) else ""
        edit = edit or f"greeting.txt\n```\n<<<<<<< SEARCH\n=======\n{GREETING}\n>>>>>>> REPLACE\n```\n\n"
    return Reply(f"{edit}```json harness\n{json.dumps(value, indent=1)}\n```\n")


def edits_whole_files(text: str) -> bool:
    """Whether the client asks for whole files instead of search and replace blocks."""
    return "SEARCH/REPLACE" not in text
