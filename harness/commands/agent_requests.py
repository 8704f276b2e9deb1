"""The commands issue, reply and check. Inside a run they go through the run's inbox; people call them outside."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.base.errors import UsageFault
from harness.mission import contract, issues, mission
from harness.mission.check_environment import CheckEnvironment
from harness.mission.config import load as load_config
from harness.mission.receipts import Receipt
from harness.process import temporary
from harness.run.requests import verbs
from harness.state import files, journal, names
from harness.state.layout import Layout, command
from harness.state.state import Changes, State
from harness.workplace import confine, inbox, run_detection, workplace


def text_of(path: str) -> str:
    """The text of a file named on the command line; raises UsageFault if it is absent."""
    text = files.read_text(path)
    if text is None:
        raise UsageFault(f"There is no file {path}.")
    return text


def note(layout: Layout, run_id: str, tag: str, text: str) -> None:
    """Let the run append a note; raises RequestRefused if the run refuses it."""
    list(inbox.ask(layout, run_id, "note", tag, text))


def reply(layout: Layout, text: str, run_id: str = "") -> str:
    """Let the run check and keep a reply; raises RequestRefused if the run refuses it. `run_id`: the run, if known."""
    run_id = run_id or run_detection.run_id(layout)
    if not run_id:
        raise UsageFault("'reply' only works inside a run.")
    return "\n".join(inbox.ask(layout, run_id, "reply", text))


def answer(layout: Layout, run_id: str, messages: list[str], *, told: bool) -> str:
    """Let the run keep the reply in the messages of its agent, which has come to its end; returns why it should go on, "" if it
    should not. `told`: the agent knows. Raises RequestRefused if the run refuses the reply, or needs one."""
    return "\n".join(inbox.ask(layout, run_id, "answer", "told" if told else "", *messages))


def issue(layout: Layout, value: dict[str, str], run_id: str = "") -> str:
    """Append an issue; raises RequestRefused if it is invalid. `run_id`: the run, if known."""
    run_id = run_id or run_detection.run_id(layout)
    if run_id:
        return "\n".join(inbox.ask(layout, run_id, "issue", json.dumps(value)))
    return verbs.issue(layout, value, "person")


def close_issue(layout: Layout, issue_id: str, why: str) -> str:
    """Close an issue; only a person may. Raises UsageFault inside a run, and for an unknown issue."""
    run_detection.refuse(layout, "issue close")
    mission.check_format(layout)
    state, changes = State(layout), Changes()
    with state.lock("state"):  # from read to write, as when an issue is added
        journal.finish_journal(layout)
        found = {one.id: one for one in issues.load(layout)}
        if issue_id not in found:
            there = ", ".join(one.id for one in found.values() if one.state != "closed")
            raise UsageFault(f"There is no issue '{issue_id}'. Open issues: {there or 'none'}.")
        if found[issue_id].state == "closed":
            return f"{issue_id} is already closed."
        changes.append(names.ISSUES, issues.state_line(found[issue_id], "closed", "person", why))
        state.commit(changes, locked=True)
    return f"{issue_id} is closed."


def check(layout: Layout, name: str, run_id: str = "") -> Iterator[Receipt]:
    """Run the checks of a feature, a claim, or all, like the validator, with setup and services, without any effect on proofs.
    `run_id`: the run, if known."""
    run_id = run_id or run_detection.run_id(layout)
    if run_id:
        yield from (Receipt(**json.loads(line)) for line in inbox.ask(layout, run_id, "check", name))
        return
    made, at, settings = mission.load(layout), workplace.position(layout), load_config(layout)
    tag = temporary.of_process(f"{made.id}/check")
    home = confine.home_of_checks(layout.folders.top, workplace.folder_of(made.id, "project") + ".home", settings.home)
    place = CheckEnvironment(directory=layout.folders.project, head=at.head, tree=at.tree, tag=tag, home=home)
    place.checkout = layout.folders.top if layout.folders.prefix else ""
    yield from verbs.fired(layout, name, place.replace(seconds=settings.check_seconds, passed=settings.passed))


def unchecked(layout: Layout, name: str) -> str:
    """Why `check` ran nothing: there is no plan yet, or a person decides the claims."""
    claims = [claim.id for claim in verbs.asked_claims(layout, contract.load(layout), name)]
    if not claims:
        return f"There is nothing to check yet: no plan was accepted. See: {command('status')}"
    return f"There is nothing to run: a person decides {', '.join(claims[:5])} ({command('claim accept')} {claims[0]})"
