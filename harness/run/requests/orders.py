"""A person's orders in orders.jsonl: each is applied exactly once, immediately or between runs.

An order and its changes are one journal, so that a crash neither loses nor repeats it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from harness.base import clock, encoding, schema
from harness.base.errors import HarnessError, UsageFault
from harness.decision import doubts, rules, views
from harness.mission import contract, contract_log, features, lease, order_log, runs
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.mission.order_log import Order, OrderContext, OrderResult, OrderWaits
from harness.proof import index
from harness.run import reconcile, recover
from harness.run.requests import _person_orders, claim_orders
from harness.state import names
from harness.state.layout import Layout, command
from harness.state.state import Changes, State
from harness.workplace import mission_lock, run_detection, workplace

SETTABLE = ("title", "description", "priority")
RETRY_ANSWERS = ("stuck", "stalled", "plan")  # escalations about features


def place(layout: Layout, verb: str, args: list[str]) -> str:
    """Write an order, and apply it unless a run works on its subject; returns the result in words. Raises the fault of
    an invalid order, which is not kept, or kept as refused if it became invalid meanwhile."""
    run_detection.refuse(layout, verb)
    recover.recover_dead(layout)  # first: an order must not build on the state of a dead run
    with suppress(OrderWaits):
        VERBS[verb](_context(layout), *args)
    with mission_lock.take(layout):
        made = Order(id=f"O-{os.urandom(4).hex()}", at=clock.stamp(clock.now()), by="person", verb=verb, args=args)
        State(layout).append(names.ORDERS, encoding.dump_json(made.asdict()))
        refused: dict[str, HarnessError] = {}
        done = apply_pending(layout, refused).get(made.id, "done")
    if made.id in refused:
        raise refused[made.id]
    return done


def _context(layout: Layout) -> OrderContext:
    found = features.load(layout)
    busy = {one.feature: one.run for one in lease.alive(layout) if lease.feature(one.feature) in one.claims}
    return OrderContext(layout=layout, features=found, changes=Changes(), at=clock.stamp(clock.now()), busy=busy)


def apply_pending(layout: Layout, refused: dict[str, HarnessError] | None = None) -> dict[str, str]:
    """Apply all pending orders, each in one commit, except those about the work of a live run; the caller holds the
    mission lock. Returns {order: result in words}; adds faults to `refused`."""
    done = {}
    for order in order_log.pending(layout):
        context = _context(layout)
        before = features.render(context.features)
        try:
            done[order.id] = VERBS[order.verb](context, *order.args)
            state = "applied"
        except OrderWaits as waits:
            done[order.id] = str(waits)
            continue
        except HarnessError as fault:
            context, state = _context(layout), "refused"
            done[order.id] = str(fault)
            if refused is not None:
                refused[order.id] = fault
        after = features.render(context.features)
        if after != before:
            context.changes.put(names.FEATURES, after)
        row = OrderResult(id=order.id, at=context.at, state=state, said=done[order.id])
        context.changes.append(names.ORDERS, encoding.dump_json(row.asdict()))
        State(layout).commit(context.changes)
    return done


def _set(context: OrderContext, feature_id: str, key: str, value: str) -> str:
    feature = features.find(context.features, feature_id)
    if key not in SETTABLE:
        raise UsageFault(
            f"'{key}' cannot be set. What can: {', '.join(SETTABLE)}. For the status: feature retry, feature block."
        )
    if feature.status == "passed":
        raise UsageFault(f"{feature_id} has passed and is not changed any more.")
    if key == "priority" and not value.lstrip("-").isdigit():
        raise UsageFault(f"A priority is a whole number (1 comes first), not '{value}'.")
    setattr(feature, key, int(value) if key == "priority" else value)
    feature.note(context.at, "person", "set", key=key)
    return f"{feature_id}: {key} is now {value}"


def _retry(context: OrderContext, feature_id: str, why: str = "retry") -> str:
    features.restart(context.free(feature_id), "retry", context.at, why)
    said = f"{feature_id} is todo again, with all its tries"
    question = State(context.layout).text(names.ESCALATION)
    if question is None:
        return said
    if not _settles(context, views.kind_of(question)):
        return f"{said}; what else a person is asked: {command('escalation')}"
    answered(context, question, f"{command('feature retry')} {feature_id}")
    return f"{said}; that answers the escalation, and the counts start again"


def _settles(context: OrderContext, kind: str) -> bool:
    """Whether a retry resolves the escalation: with reset counts no escalation is due, nor, if no plan was accepted, a
    plan."""
    if kind not in RETRY_ANSWERS:
        return False
    view = views.gather(context.layout, context.features)
    newest = view.newest[0].run if view.newest else ""
    totals = view.totals.replace(since_green=0, rejected=0)
    due = rules.decide(view.replace(escalation="", totals=totals, set_aside={}, answered=newest), clock.now())
    return due.word != "ESCALATE" and not (kind == "plan" and due.what == view.roles["plans"])


def _block(context: OrderContext, feature_id: str, reason: str) -> str:
    feature = context.free(feature_id)
    features.move(feature, "block")
    feature.note(context.at, "person", "person", text=reason)
    return f"{feature_id} is blocked until: {command('feature retry')} {feature_id}"


def _accept_claim(context: OrderContext, claim_id: str, note: str) -> str:
    known = index.proofs(context.layout)
    if known.contract.claim(claim_id).id in known.proven:
        raise UsageFault(f"{claim_id} is proven by its checks. A person accepts what they do not prove.")
    head = workplace.position(context.layout).head
    entry = ContractChange(
        verb=contract_log.ACCEPT, claim=claim_id, why=note, at=context.at, by=contract_log.PERSON, commit=head
    )
    context.changes.append(names.CONTRACT_LOG, contract_log.render([entry]))
    _close_proof(context, [entry], f"{claim_id} is accepted. {note}".rstrip())
    return f"{claim_id} is accepted at {head[:10]}"


def _adopt(context: OrderContext) -> str:
    """Add the missing entries to the log, so that its replay gives the present contract."""
    known, log = contract.load(context.layout), contract_log.load(context.layout)
    missing = contract_log.missing(log, known, "taken as it is") or contract_log.begun(log, known)
    if not missing:
        raise UsageFault("The contract is what its log says. There is nothing to take.")
    entries = [entry.replace(at=context.at, by=contract_log.PERSON) for entry in missing]
    context.changes.append(names.CONTRACT_LOG, contract_log.render(entries))
    taken = ", ".join(entry.block or entry.claim for entry in entries)
    _close_proof(context, entries, f"The contract is taken as it is: {taken}")
    return f"the contract is taken as it is: {taken}"


def _close_proof(context: OrderContext, entries: list[ContractChange], text: str) -> None:
    """Archive the proof escalation with this answer, if the log with these entries leaves nothing open."""
    layout, question = context.layout, State(context.layout).text(names.ESCALATION)
    if question is None or views.kind_of(question) != rules.PROOF:
        return
    if not doubts.find(layout, runs.answered(layout), entries):
        _archive(context, question, text)


def _answer(context: OrderContext, text: str) -> str:
    """Archive the escalation, record the answer for the next runs, and restart the counts."""
    layout, state = context.layout, State(context.layout)
    question = state.text(names.ESCALATION)
    waiting = [one for one in context.features if _needs_person(one) and one.id not in context.busy]
    if question is None and not waiting and rules.decide(views.gather(layout), clock.now()).word != "ESCALATE":
        raise UsageFault(f"Nothing is escalated. See: {command('next')}")
    for feature in waiting:
        features.restart(feature, "retry", context.at, text)
    answered(context, question, text)
    return "answered; the counts start again, and the next run reads it"


def _archive(context: OrderContext, question: str | None, text: str) -> None:
    """Move the escalation to the answered ones."""
    kind = views.kind_of(question or "")
    named = kind if schema.is_name(kind) else "stuck"
    archived = f"{names.ESCALATIONS}/{clock.now()}-{named}.md"
    context.changes.put(archived, f"{question or ''}\n## Answer, {context.at}\n\n{text}\n".encode())
    if question is not None:
        context.changes.remove(names.ESCALATION)


def answered(context: OrderContext, question: str | None, text: str) -> None:
    """Archive the escalation, and record the answer, which resets the counts."""
    _archive(context, question, text)
    newest = next(runs.finished(context.layout), None)
    row = runs.EscalationAnswer(at=context.at, by="person", text=text, after=newest.run if newest else "")
    context.changes.append(names.ANSWERS, encoding.dump_json(row.asdict()))


def _needs_person(feature: Feature) -> bool:
    return feature.status == "blocked" or (feature.status in ("todo", "failing") and feature.tries_left <= 0)


def _accept_file(context: OrderContext, run_id: str, name: str) -> str:
    """Accept a file that a run refused."""
    layout = context.layout
    there = refused_files(layout, run_id)
    if name not in there:
        raise UsageFault(f"The run {run_id} has no refused '{name}'. It has: {', '.join(there) or 'nothing'}.")
    state = State(layout)
    data = state.data(names.of_run(run_id, f"{names.REFUSED}/{name}")) or b""
    if name == reconcile.PATCH:
        path = f"{layout.folders.relative(layout.run(run_id).refused)}/{name}"
        raise UsageFault(f"Apply it yourself, then commit: git apply {path}")
    if name not in names.MANAGED:
        raise UsageFault(
            f"'{name}' cannot be taken back: only whole files of the live set can. Read it, and act on it by hand."
        )
    if name == names.FEATURES:
        for busy in context.busy.values():
            raise OrderWaits(busy)
        context.features = features.parse(data, state.path(name))
        return f"{name} is now as the run {run_id} left it"
    if name == names.CONTRACT:
        contract.parse(encoding.decode(data, state.path(name)), state.path(name))
    elif name.endswith(".json"):
        encoding.parse_json(data, state.path(name))
    else:
        encoding.decode(data, state.path(name))
    context.changes.put(name, data)
    return f"{name} is now as the run {run_id} left it"


def refused_files(layout: Layout, run_id: str) -> list[str]:
    """The files that a run refused, as paths below its refused/ folder."""
    top = layout.run(run_id).refused
    found = (os.path.join(folder, name) for folder, _, left in os.walk(top) for name in left)
    return sorted(os.path.relpath(path, top) for path in found)


VERBS: dict[str, Callable[..., str]] = {
    "feature set": _set,
    "feature retry": _retry,
    "feature block": _block,
    "claim accept": _accept_claim,
    "claim adopt": _adopt,
    "claim set": claim_orders.set_claim,
    "claim drop": claim_orders.drop_claim,
    "escalation answer": _answer,
    "accept": _accept_file,
    "checkpoint grant": lambda context, *args: _person_orders.answer(context, args[0], "granted", *args[1:]),
    "checkpoint deny": lambda context, *args: _person_orders.answer(context, args[0], "denied", *args[1:]),
    "feature want": _person_orders.want,
    "feature add": _person_orders.add,
}
