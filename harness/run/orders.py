"""What a person may ask: an order in orders.jsonl, applied by the mission's writer at once or between runs, once.

An order and what it changes land in one journal, so that a crash neither loses nor doubles it.
"""

from __future__ import annotations

import os

from harness.base import clock, schema
from harness.base.errors import HarnessError, UsageFault
from harness.base.record import Record
from harness.decision import rules, views
from harness.git import repository
from harness.integrity import inside, mission_lock
from harness.model import contract, contract_log, features, runs
from harness.model.contract_log import Entry
from harness.model.features import Feature
from harness.run import recover
from harness.store import files, journal, json_lines
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETTABLE = ("title", "description", "priority")
PATCH = "working-folder.patch"


class Applied(Record):
    """What became of an order: `state` is applied or refused, `said` what the person is told."""

    id: str
    at: str
    state: str
    said: str


class Order(Record):
    """One order: `verb` is a key of VERBS, `args` its words."""

    id: str
    at: str
    by: str
    verb: str
    args: list[str]


class Desk(Record):
    """What an order may change before it is written: features and the journal."""

    layout: Layout
    features: list[Feature]
    journal: journal.Journal
    at: str

    def feature(self, feature_id: str) -> Feature:
        """The feature; raises UsageFault where there is none."""
        return features.find(self.features, feature_id)


def pending(layout: Layout) -> list[Order]:
    """Orders that nobody has applied yet, oldest first."""
    waiting: dict[str, Order] = {}

    def take(row: Any) -> None:
        if "state" in row:
            waiting.pop(schema.record(Applied, row, "an order has").id, None)
        else:
            order = schema.record(Order, row, "an order has")
            waiting[order.id] = order

    data, remedy = files.read(layout.orders), "Remove that line."
    json_lines.parse(data, layout.orders, take, "the line is no order", remedy)
    return list(waiting.values())


def place(layout: Layout, verb: str, args: list[str]) -> str:
    """Put an order into the inbox and apply it where nothing runs; gives what became of it, in words.

    Raises what is wrong with the order; a wrong order is not kept.
    """
    inside.refuse(layout, verb)
    recover.recover_dead(layout)  # else the order would be carried out on what a dead run left, and make that ours
    VERBS[verb](_desk(layout), *args)
    made = Order(id=f"O-{os.urandom(4).hex()}", at=clock.stamp(clock.now()), by="person", verb=verb, args=args)
    changes = journal.Journal(layout)
    changes.append(layout.orders, files.dump_json(made.asdict()))
    changes.commit()
    lock = mission_lock.MissionLock(layout)
    if not lock.take():
        return f"noted; it is applied when the run that is under way ends ({lock.holder().get('run', 'unknown')})"
    try:
        applied = apply_pending(layout)
    finally:
        lock.release()
    return applied.get(made.id, "done")


def _desk(layout: Layout) -> Desk:
    found = features.load(layout)
    return Desk(layout=layout, features=found, journal=journal.Journal(layout), at=clock.stamp(clock.now()))


def apply_pending(layout: Layout) -> dict[str, str]:
    """Apply every order that waits, each in one journal; the caller holds the mission lock. {order: what became of it}."""
    done = {}
    for order in pending(layout):
        desk = _desk(layout)
        before = features.render(desk.features)
        try:
            done[order.id] = VERBS[order.verb](desk, *order.args)
            state = "applied"
        except HarnessError as fault:
            desk, state = _desk(layout), "refused"
            done[order.id] = str(fault)
        after = features.render(desk.features)
        if after != before:
            desk.journal.replace(layout.features, after)
        row = Applied(id=order.id, at=desk.at, state=state, said=done[order.id])
        desk.journal.append(layout.orders, files.dump_json(row.asdict()))
        desk.journal.commit()
    return done


def _set(desk: Desk, feature_id: str, key: str, value: str) -> str:
    feature = desk.feature(feature_id)
    if key not in SETTABLE:
        raise UsageFault(
            f"'{key}' cannot be set. What can: {', '.join(SETTABLE)}. For the status: feature retry, feature block."
        )
    if feature.status == "passed":
        raise UsageFault(f"{feature_id} has passed and is not changed any more.")
    if key == "priority" and not value.lstrip("-").isdigit():
        raise UsageFault(f"A priority is a whole number (1 comes first), not '{value}'.")
    setattr(feature, key, int(value) if key == "priority" else value)
    return f"{feature_id}: {key} is now {value}"


def _retry(desk: Desk, feature_id: str) -> str:
    feature = desk.feature(feature_id)
    features.move(feature, "retry")
    _anew(feature, desk.at, "retry")
    return f"{feature_id} is todo again, with all its tries"


def _anew(feature: Feature, at: str, why: str) -> None:
    feature.attempts, feature.replanned = 0, False
    feature.note(at, "person", "retry", text=why)


def _block(desk: Desk, feature_id: str, reason: str) -> str:
    feature = desk.feature(feature_id)
    features.move(feature, "block")
    feature.note(desk.at, "person", "person", text=reason)
    return f"{feature_id} is blocked until: {command('feature retry')} {feature_id}"


def _accept_claim(desk: Desk, claim_id: str, note: str) -> str:
    claim = contract.load(desk.layout).claim(claim_id)
    if not claim.manual:
        raise UsageFault(
            f"{claim_id} has checks: they decide, nobody else. Only a manual claim is accepted by a person."
        )
    head = repository.standing(desk.layout.project).head
    entry = Entry(verb=contract_log.ACCEPT, claim=claim_id, why=note, at=desk.at, by="person", commit=head)
    desk.journal.append(desk.layout.contract_log, contract_log.render([entry]))
    return f"{claim_id} is accepted at {head[:10]}"


def _answer(desk: Desk, text: str) -> str:
    """Archive the escalation, whatever it says, tell everybody the answer, and start the counts anew."""
    layout = desk.layout
    question = files.read_text(layout.escalation)
    kind = views.kind_of(question or "")
    if question is None and not _needy(desk) and rules.decide(views.gather(layout), clock.now()).word != "ESCALATE":
        raise UsageFault(f"Nothing is escalated. See: {command('next')}")
    named = kind if schema.NAME.match(kind) else "stuck"
    archived = os.path.join(layout.escalations, f"{clock.now()}-{named}.md")
    desk.journal.replace(archived, f"{question or ''}\n## Answer, {desk.at}\n\n{text}\n".encode())
    if question is not None:
        desk.journal.remove(layout.escalation)
    for feature in _needy(desk):
        features.move(feature, "retry")
        _anew(feature, desk.at, text)
    newest = next(runs.books(layout), None)
    row = runs.Answer(at=desk.at, by="person", text=text, after=newest.run if newest else "")
    desk.journal.append(layout.answers, files.dump_json(row.asdict()))
    return "answered; the counts start anew, and the next run reads it"


def _needy(desk: Desk) -> list[Feature]:
    """Features that wait for a person: blocked, or out of tries."""
    return [feature for feature in desk.features if feature.status == "blocked" or _spent(feature)]


def _spent(feature: Feature) -> bool:
    return feature.status in ("todo", "failing") and feature.tries_left <= 0


def _accept_file(desk: Desk, run_id: str, name: str) -> str:
    """Take a file that was refused in a run after all."""
    layout = desk.layout
    there = refused_files(layout, run_id)
    if name not in there:
        raise UsageFault(f"The run {run_id} has no refused '{name}'. It has: {', '.join(there) or 'nothing'}.")
    data = files.read(os.path.join(layout.run(run_id).refused, name)) or b""
    if name == PATCH:
        raise UsageFault(
            f"Apply it yourself, then commit: git apply {layout.relative(layout.run(run_id).refused)}/{PATCH}"
        )
    target = os.path.join(layout.state, name)
    if target not in layout.live():
        raise UsageFault(
            f"'{name}' cannot be taken back: only whole files of the live set can. Read it, and act on it by hand."
        )
    if target == layout.features:
        desk.features = features.parse(data, target)
    else:
        _check_format(layout, target, data)
        desk.journal.replace(target, data)
    return f"{name} is now as the run {run_id} left it"


def _check_format(layout: Layout, target: str, data: bytes) -> None:
    if target == layout.contract:
        contract.parse(files.decode(data, target), target)
    elif target.endswith(".json"):
        files.parse_json(data, target)
    else:
        files.decode(data, target)


def refused_files(layout: Layout, run_id: str) -> list[str]:
    """What was refused in a run, as paths below its refused/ folder."""
    top = layout.run(run_id).refused
    return sorted(
        os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names
    )


VERBS: dict[str, Any] = {
    "feature set": _set,
    "feature retry": _retry,
    "feature block": _block,
    "claim accept": _accept_claim,
    "escalation answer": _answer,
    "accept": _accept_file,
}
