"""A brain that takes the todo example to DONE: what its playbooks say, as shell calls, and their replies as the last message."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.agents import _playbook
from tests.agents.modelserver import Reply
from tests.agents.small_mission import COMMAND
from tests.agents.wires import Call, Exchange
from tests.missions import CHECKOUT

EXAMPLE = CHECKOUT / "examples/todo"
WORKSPACE = CHECKOUT / "examples/todo-workspace"
SUBAGENT = "Another agent started you, as its subagent reader"
USES = [  # of its workspace, by the first worker of F-001
    Call("load_skill", {"name": "careful-files"}),
    Call("load_skill", {"name": "unit-tests"}),
    Call("agent_spawn", {"agent": "reader", "task": "What does SPEC.md demand of `add`?"}),
    Call("time_get_current_time", {"timezone": "Etc/UTC"}),
    Call("execute", {"command": "git push"}),
]
VERB = re.compile(r"^( *)harness (?=note|reply|issue|check)", re.M)
RUN = re.compile(r"^- Run ID: (?P<id>\d+-(?P<role>[a-z]+)-?(?P<feature>F-\d+)?\S*)\s*$", re.M)
NOTHING = {"worker": {"status": "implemented", "summary": "done"}}


def brain() -> Callable[[Exchange], Reply | None]:
    """A new one; it counts the attempts of each feature by the runs that it sees."""
    seen: dict[str, list[str]] = {}

    def answer(exchange: Exchange) -> Reply | None:
        found = list(RUN.finditer(exchange.text))
        if not found:
            return None
        run, role, feature = found[-1]["id"], found[-1]["role"], found[-1]["feature"] or ""
        runs = seen.setdefault(feature, [])
        if role == "worker" and run not in runs:
            runs.append(run)
        blocks, reply = _steps(role, feature, len(runs))
        done, command = len(exchange.results), list(COMMAND.finditer(exchange.text))[-1]["words"]
        blocks = [
            VERB.sub(lambda verb: f"{verb[1]}{command} ", block) for block in blocks
        ]  # a login shell knows no other
        return Reply("", blocks[done]) if done < len(blocks) else Reply(reply)

    return answer


def _steps(role: str, feature: str, attempt: int) -> tuple[list[str], str]:
    """The commands and the reply of a run; of one without a playbook nothing but a reply."""
    for name in (f"{role}-{feature}.{attempt}.md", f"{role}-{feature}.md", f"{role}.md"):
        path = EXAMPLE / "playbooks" / name
        if (feature or name == f"{role}.md") and path.exists():
            blocks, reply = _playbook.split(path.read_text())
            return [text for _, text in blocks], reply
    return [], f"```json harness\n{json.dumps(NOTHING.get(role, {}))}\n```\n"


def in_workspace() -> Callable[[Exchange], Reply | None]:
    """The same with a workspace, which the first worker of F-001 uses before its work."""
    plain = brain()

    def answer(exchange: Exchange) -> Reply | None:
        if SUBAGENT in exchange.text:
            asked = Call("grep_files", {"pattern": "`add ", "path": "SPEC.md"})
            return Reply("", call=asked) if not exchange.turns else Reply(exchange.results[-1])
        found = list(RUN.finditer(exchange.text))
        if not found or (found[-1]["role"], found[-1]["feature"]) != ("worker", "F-001"):
            return plain(exchange)
        done = len(exchange.results)
        if done < len(USES):
            return Reply("", call=USES[done])
        return plain(replace(exchange, results=exchange.results[len(USES) :]))

    return answer


def lay(project: Path, workspace: Path | None = None) -> None:
    """The example without its playbooks: an agent has the spec alone, and perhaps a workspace."""
    if workspace:
        shutil.copytree(workspace, project, dirs_exist_ok=True)
    project.mkdir(exist_ok=True)
    (project / "SPEC.md").write_text((EXAMPLE / "SPEC.md").read_text())
