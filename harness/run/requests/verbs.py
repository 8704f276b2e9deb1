"""An agent's requests during its run: note, issue, reply, check, and its last answer. The inbox executes them unconfined."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from harness.base import clock, encoding, errors, redaction, schema
from harness.base.errors import HarnessError, RequestRefused, UsageFault
from harness.git import dotgit, repository
from harness.mission import contract, features, issues, mission, open_run, replies, runs
from harness.mission.check_environment import CheckEnvironment
from harness.mission.open_run import OpenRun, Verbs
from harness.mission.receipts import Receipt
from harness.proof import check_runs, services
from harness.run import prompt
from harness.run.settle import planner, worker
from harness.state import documents, journal, names
from harness.state.files import PRIVATE
from harness.state.layout import Layout
from harness.state.state import Changes, State

MAX_FAULT_CHARS = 20_000  # characters of a stored refusal
NOTHING_DONE = (
    "You changed nothing in your tree, and at its commit these checks are red:\n\n{red}\nMake them green, or reply with the "
    "status blocked and the reason."
)
HOW = "{fault}: call `reply`, or end your answer with the JSON in a block that begins with ```json harness."
MAX_REQUEST_CHARS = 1024 * 1024  # characters of a recorded request


def of(run: OpenRun) -> Verbs:
    """{verb: function of a request's texts}; each yields texts for the agent's screen."""
    verbs: Verbs = {"note": note, "issue": report, "reply": reply, "check": check, **run.verbs}
    made = {verb: partial(recorded, run, verb, carry_out) for verb, carry_out in verbs.items()}
    return {**made, "answer": partial(answer, run)}


def recorded(run: OpenRun, verb: str, carry_out: Callable[..., Iterable[str]], *arguments: str) -> Iterator[str]:
    """Execute a verb, and record it with its exit code, so that the run can be replayed."""
    code = errors.DONE
    try:
        yield from carry_out(run, *arguments)
    except HarnessError as fault:
        code = fault.code
        raise
    finally:
        record(run, verb, arguments, code)


def record(run: OpenRun, verb: str, arguments: Iterable[str], code: int) -> None:
    """Record a request that was executed, with its exit code."""
    said = [redaction.received(text[:MAX_REQUEST_CHARS]) for text in arguments]
    row = {"at": clock.stamp(clock.now()), "verb": verb, "arguments": said, "code": code}
    state, name = State(run.layout), names.of_run(run.id, names.ASKED)
    with state.lock_of(name):  # agents may ask in parallel
        state.add(name, encoding.dump_json(row))


def note(run: OpenRun, tag: str, text: str) -> Iterable[str]:
    """One entry for raw.md, durable on return; raises UsageFault for a malformed one, and behind the bound of the run."""
    open_run.add_notes(run.layout, run.context, [(tag, text)])
    return ()


def reply(run: OpenRun, text: str) -> Iterable[str]:
    """Check a reply while the agent can still correct it, and keep it. Raises RequestRefused with every fault, which becomes the
    run's reason if no better one follows."""
    state, fault_name = State(run.layout), names.of_run(run.id, names.REPLY_FAULT)
    try:
        value = _checked(run, text)
    except RequestRefused as fault:
        said = str(fault)[:MAX_FAULT_CHARS].encode("utf-8", "replace")
        state.put(fault_name, said, mode=PRIVATE)
        raise
    body = encoding.dump_json(value).decode()
    kept = documents.fenced(body, "json harness").encode()
    state.put(names.of_run(run.id, names.REPLY), kept, mode=PRIVATE)
    state.remove(fault_name)
    return ["The reply is good and kept; a later one replaces it."]


def _checked(run: OpenRun, text: str) -> dict[str, Any]:
    """The reply in a text, as its role's settle would take it; raises RequestRefused with every fault."""
    blocks = documents.fenced_blocks(text, "json harness")
    value = replies.parse(run.capability, blocks[-1] if blocks else text)
    if run.role.plans:
        place, path, spec = run.place(), run.paths.receipts, run.outcome.prompt.spec
        planner.red_first(run.layout, planner.examined(run.layout, value, place, spec), place, path, run.role.name)
    if unmet := worker.unknown(run.outcome, value):
        raise RequestRefused(
            f"The reply is not accepted: {', '.join(unmet)} is no other feature and no claim of the plan."
        )
    return value


def answer(run: OpenRun, told: str, *messages: str) -> Iterable[str]:
    """Keep the reply in the messages of an agent that has come to its end, unless it kept one itself. Raises RequestRefused for a
    refused reply, and for a missing one of a role that needs it. Unless `told`, keeps nothing where nothing was done about
    red checks, and yields that."""
    kept = State(run.layout).text(names.of_run(run.id, names.REPLY))
    value = replies.find(run.capability, [*messages] if kept is None else [kept])
    if value is None and run.capability in replies.AS_JSON and (alone := replies.alone(messages[-1])):
        value = replies.parse(run.capability, alone)
    if value is None and run.role.plans:
        raise RequestRefused(HOW.format(fault=planner.NO_REPLY))
    if not told and (value or {}).get("status") != "blocked" and (red := _untouched(run)):
        shown = prompt.cut("\n".join(red), prompt.RECEIPT_CHARS, run.layout.path(names.RUNS))
        return [NOTHING_DONE.format(red=documents.fenced(shown))]
    if kept is None and value is not None:
        list(recorded(run, "reply", reply, encoding.compact(value)))
    return []


def _untouched(run: OpenRun) -> list[str]:
    """The red receipts of the feature's last validation at the commit of a run that has changed nothing; [] for any other."""
    context, place = run.context, run.checkout
    if run.capability != "commits" or run.machine:  # there the tree is the machine's
        return []
    found = runs.last_receipts(run.layout, context.feature)
    red = [prompt.receipt_text(one) for one in found if not one.green and one.head == context.head]
    if not red or dotgit.commit(place) != context.head:
        return []
    changed = {*repository.dirty(place), *repository.untracked(place)} - context.untracked.keys()
    return [] if changed else red


def report(run: OpenRun, value: str) -> Iterable[str]:
    """Append an issue, given as JSON; raises RequestRefused if it is invalid."""
    return [issue(run.layout, json.loads(value), run.id)]


def issue(layout: Layout, value: dict[str, str], by: str) -> str:
    """Append an issue of a run or of a `person`; raises RequestRefused if it is invalid. Returns a line for the screen."""
    mission.check_format(layout)
    value = redaction.received_value(value)
    faults = schema.faults(value, "the issue", issues.IssueReport)
    if faults:
        raise RequestRefused("The issue is not accepted: " + "; ".join(faults))
    state, changes = State(layout), Changes()
    with state.lock("state"):  # from counting to writing, so that no two get one number
        journal.finish_journal(layout)
        made = issues.new(issues.load(layout), [value], by)
        changes.append(names.ISSUES, issues.render(made))
        state.commit(changes, locked=True)
    return f"{made[0].id} is noted." if made else "That issue is known already."


def check(run: OpenRun, name: str) -> Iterator[str]:
    """The receipts of a feature's checks, of a claim's, or of all, a line of JSON each; nothing counts."""
    for receipt in fired(run.layout, name, run.place()):
        yield json.dumps(receipt.asdict())


def fired(layout: Layout, name: str, place: CheckEnvironment) -> Iterator[Receipt]:
    """Run the checks as the validator will, with setup and services; raises RequestRefused where the setup is red."""
    known = contract.load(layout)
    claims = asked_claims(layout, known, name)
    if fault := check_runs.setup_fault(known, place):
        raise RequestRefused(fault)
    with services.RunningServices(known.services, place) as up:
        yield from check_runs.fire_all(claims, "after", up)


def asked_claims(layout: Layout, known: contract.Contract, name: str) -> list[contract.Claim]:
    """The claims of a feature, the claim with this id, or all without a name; raises UsageFault for an unknown name."""
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
