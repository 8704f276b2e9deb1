"""In-run commands of an agent: reply, report an issue, try a check. A person closes issues."""

from __future__ import annotations

from harness.base import schema
from harness.base.errors import Refused, UsageFault
from harness.git import repository
from harness.integrity import inside
from harness.model import contract, features, issues, mission, open_run, replies, roles
from harness.model.check_environment import CheckEnvironment
from harness.model.config import load as load_config
from harness.model.receipts import Receipt
from harness.process import supervise
from harness.proof import fire, services
from harness.settle import planner
from harness.store import documents, files, journal
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def text_of(path: str) -> str:
    """The text of a file named on the command line; UsageFault if it is absent."""
    text = files.read_text(path)
    if text is None:
        raise UsageFault(f"There is no file {path}.")
    return text


def reply(layout: Layout, text: str) -> str:
    """Check a reply while its agent still runs, and keep it; raises Refused with every fault."""
    run_id = inside.run_id(layout)
    if not run_id:
        raise UsageFault("'reply' is for the inside of a run.")
    context = open_run.live_context(layout, run_id)
    blocks = documents.fenced_blocks(text, "json harness")
    role = roles.load(layout, context.role)
    value = replies.parse(role.capability, blocks[-1] if blocks else text)
    if role.plans:
        tag = f"{mission.load(layout).id}/{run_id}"
        place = open_run.place_of(layout, context, tag, load_config(layout), [])
        planner.red_first(layout, planner.examined(layout, value), place, layout.run(run_id).receipts, role.name)
    body = files.dump_json(value).decode()
    files.replace(layout.run(run_id).reply, documents.fenced(body, "json harness").encode(), files.PRIVATE)
    return "The reply is good and kept; a later one replaces it."


def issue(layout: Layout, value: dict[str, str]) -> str:
    """Append an issue; raises Refused if it is invalid."""
    mission.check_format(layout)
    faults = schema.faults(value, "the issue", issues.Given)
    if faults:
        raise Refused("The issue is not accepted: " + "; ".join(faults))
    with files.Lock(layout.state_lock):  # from counting to writing, so that no two get one number
        journal.finish_journal(layout)
        made = issues.new(issues.load(layout), [value], inside.run_id(layout) or "person")
        changes = journal.Journal(layout)
        changes.append(layout.issues, issues.render(made))
        changes.commit(locked=True)
    return f"{made[0].id} is noted." if made else "That issue is known already."


def close_issue(layout: Layout, issue_id: str, why: str) -> str:
    """Close an issue; only a person may. Raises UsageFault inside a run, and for an unknown issue."""
    inside.refuse(layout, "issue close")
    mission.check_format(layout)
    with files.Lock(layout.state_lock):  # from looking to writing, as where one is added
        journal.finish_journal(layout)
        found = {one.id: one for one in issues.load(layout)}
        if issue_id not in found:
            there = ", ".join(one.id for one in found.values() if one.state != "closed")
            raise UsageFault(f"There is no issue '{issue_id}'. Not closed yet: {there or 'none'}.")
        if found[issue_id].state == "closed":
            return f"{issue_id} is closed already."
        changes = journal.Journal(layout)
        changes.append(layout.issues, issues.state_line(found[issue_id], "closed", "person", why))
        changes.commit(locked=True)
    return f"{issue_id} is closed."


def check(layout: Layout, name: str) -> Iterator[Receipt]:
    """Run the checks of a feature, a claim, or all, as the validator will, with setup and services; nothing counts."""
    tag = supervise.tagged_ancestor() or f"{mission.load(layout).id}/check"
    known, settings = contract.load(layout), load_config(layout)
    at = repository.position(layout.project)
    place = CheckEnvironment(directory=layout.project, head=at.head, tree=at.tree, tag=tag)
    place = place.replace(seconds=settings.check_seconds, passed=settings.passed)
    claims = _asked(layout, known, name)
    fault = fire.setup_fault(known, place)
    if fault:
        raise Refused(fault)
    with services.Running(known.services, place) as up:
        yield from fire.fire_all(claims, "after", up)


def unchecked(layout: Layout, name: str) -> str:
    """Why `check` fired nothing: no plan yet, or a person decides."""
    claims = [claim.id for claim in _asked(layout, contract.load(layout), name)]
    if not claims:
        return f"There is nothing to check yet: no plan has landed. See: {command('status')}"
    return f"There is nothing to run: a person decides {', '.join(claims[:5])} ({command('claim accept')} {claims[0]})"


def _asked(layout: Layout, known: contract.Contract, name: str) -> list[contract.Claim]:
    if not name:
        return known.claims
    found = features.load(layout)
    ids = next((feature.claims for feature in found if feature.id == name), None)
    if ids is not None:
        return known.of(ids)
    if not any(claim.id == name for claim in known.claims):
        there = ", ".join([feature.id for feature in found][:10] + [claim.id for claim in known.claims][:10])
        raise UsageFault(f"There is no feature and no claim '{name}'. There are: {there or 'none yet'}.")
    return [known.claim(name)]
