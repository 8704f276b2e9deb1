"""Compares a played-back mission with its records, up to the first difference. Ignores times and commit ids: a recorded
commit is mapped to its counterpart in the copy."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base import encoding, faults
from harness.base.errors import HarnessError
from harness.base.record import Record
from harness.decision import rules, views
from harness.decision.rules import Decision
from harness.git import repository
from harness.mission import features, receipts, runs
from harness.mission.receipts import Receipt
from harness.replay._records import RecordedRun, Records, left_by
from harness.replay._replica import Replica
from harness.replay.rebuild import CHANGED
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import workplace

SHOWN_DIGITS = 12  # digits shown of a tree
TEXTS = (names.CONTRACT, names.SPEC, names.SUMMARY, names.MEMORY)
UNRECORDED = ("STOPPED", "PAUSED", "CHECKPOINT")  # due because of files that a person creates; not recorded


class Difference(Record):
    """The first difference, and its run; "" if it concerns the whole mission."""

    run: str
    what: str
    expected: str
    got: str


def at_open(past: RecordedRun, replica: Replica) -> Difference | None:
    """Compare the tree at the start of the run; maps its recorded commit to that of the copy."""
    context = past.context
    assert context is not None
    here = runs.context(replica.layout, past.run)
    if here.tree != context.tree:
        return Difference(run=past.run, what="the tree it opened on", expected=context.tree, got=here.tree)
    replica.commits[context.head] = here.head
    return None


def after_run(records: Records, past: RecordedRun, replica: Replica) -> Difference | None:
    """Compare the decisions and results of a run. A difference mentions if the files of the run were changed later."""
    found = next(_each(records, past, replica), None)
    changed = past.result.seal != runs.seal(records.where.run(past.run))
    if found and changed:
        return found.replace(what=f"{found.what} ({CHANGED})")
    if changed:
        return Difference(run=past.run, what="its record", expected="as it was closed", got=CHANGED)
    return found


def _each(records: Records, past: RecordedRun, replica: Replica) -> Iterator[Difference]:
    """The differences, causes before effects."""
    try:
        here = runs.result(replica.layout, past.run)
    except HarnessError as fault:
        here, said = None, str(fault)
    else:
        said = "it did not settle"
    if here is None:
        yield Difference(run=past.run, what="its end", expected=past.result.outcome, got=said)
        return
    if past.head not in ("", past.result.head):
        yield Difference(run=past.run, what="its commit", expected=past.head, got=f"{past.result.head} in its result")
    killed = past.result.outcome == "killed"
    for what, expected, got in [
        *([] if killed else _exits(records.where, replica.layout, past.run)),
        ("its outcome", past.result.outcome, here.outcome),
        ("its verdict", past.result.verdict, here.verdict),
        ("whether its plan was accepted", str(past.result.accepted), str(here.accepted)),
        ("its commit", _shown(records.tree(past.result.commit)), _shown(repository.tree_of(replica.top, here.commit))),
        ("the claims that it proved", str(past.result.newly_green), str(here.newly_green)),
    ]:
        if expected != got:
            reason = (
                f" ({faults.first(here.reason, 200)})" if what in ("its outcome", "its verdict") and here.reason else ""
            )
            yield Difference(run=past.run, what=what, expected=expected or "none", got=(got or "none") + reason)
    if past.result.commit:
        replica.commits[past.result.commit] = here.commit
        replica.followed = past.result.commit
    yield from _files(records, past, replica)


def _shown(tree: str) -> str:
    return f"tree {tree[:SHOWN_DIGITS]}" if tree else ""


def _exits(where: Layout, here: Layout, run: str) -> Iterator[tuple[str, str, str]]:
    """Compare the exit codes of each check, and which checks ran."""
    known, now = (_fired(receipts.of_run(layout, run)) for layout in (where, here))
    for key in dict.fromkeys([*known, *now]):
        claim, phase, command = key
        expected, got = (", ".join(found.get(key, ["not run"])) for found in (known, now))
        yield f"the exit of a check of {claim} ({phase}): {faults.first(command, 60)}", expected, got


def _fired(found: list[Receipt]) -> dict[tuple[str, str, str], list[str]]:
    made: dict[tuple[str, str, str], list[str]] = {}
    for receipt in found:
        code = "out of time" if receipt.exit is None else str(receipt.exit)
        made.setdefault((receipt.claim, receipt.phase, receipt.command), []).append(code)
    return made


def _files(records: Records, past: RecordedRun, replica: Replica) -> Iterator[Difference]:
    """Compare queue, contract, accepted spec and memory after the run had settled."""
    here, _ = left_by(State(replica.layout), past.run)
    if not past.after:
        replica.missing.append(f"{past.run}: its snapshot; queue and memory after it are not compared")
        return
    for name in (names.FEATURES, *TEXTS):
        row, own = past.after.get(name), here.get(name)
        if row == own:
            continue
        old, new = records.object(row[0]) if row else b"", replica.object(own[0]) if own else b""
        if old is None:
            replica.missing.append(f"{past.run}: {name} after it")
            continue
        if name == names.FEATURES:
            yield from _queue(past.run, old, new or b"", _overlapping(records, past))
        else:
            yield from _texts(past.run, name, old, new or b"", replica)


def _texts(run: str, name: str, old: bytes, new: bytes, replica: Replica) -> Iterator[Difference]:
    for one, other in replica.commits.items():
        for size in (len(one), SHOWN_DIGITS, 10):
            old = old.replace(one[:size].encode(), other[:size].encode())
    if encoding.plain(old) != encoding.plain(new):
        lines = [text.decode("utf-8", "replace").split("\n") for text in (old, new)]
        number = next((at for at, (a, b) in enumerate(zip(*lines, strict=False)) if a != b), min(map(len, lines)))
        expected, got = (found[number] if number < len(found) else "the end" for found in lines)
        yield Difference(run=run, what=f"line {number + 1} of {name}", expected=expected, got=got)


def _overlapping(records: Records, past: RecordedRun) -> set[str]:
    """The features of runs that were open when this one settled: a run claims its feature before it records the status, so the
    recorded status may be either."""
    at = next(number for number, one in enumerate(records.runs) if one.run == past.run)
    return {one.result.feature for one in records.runs[at + 1 :] if one.behind <= at}


def _queue(run: str, old: bytes, new: bytes, open_ones: set[str]) -> Iterator[Difference]:
    """Compare status and attempts of each feature; ignores the status of `open_ones`."""
    known, now = (
        {one.id: _standing(one.replace(status="open") if one.id in open_ones else one) for one in rows}
        for rows in (features.parse(data, names.FEATURES) for data in (old, new))
    )
    for feature in dict.fromkeys([*known, *now]):
        if known.get(feature) != now.get(feature):
            expected, got = known.get(feature, "not in the queue"), now.get(feature, "not in the queue")
            yield Difference(run=run, what=f"{feature} in the queue", expected=expected, got=got)


def _standing(feature: features.Feature) -> str:
    tries = f"{feature.attempts} tries" + (", replanned" if feature.replanned else "")
    return f"{feature.status}, {tries}, priority {feature.priority}: {feature.title} ({', '.join(feature.claims)})"


def due_at_end(records: Records) -> Decision | None:
    """The present decision of the mission; None for an archived mission, or while a run is unsettled."""
    if records.where is not records.layout or records.unsettled():
        return None
    return rules.decide(views.gather(records.layout), records.runs[-1].result.ended)


def at_end(records: Records, replica: Replica, due: Decision | None) -> Difference | None:
    """Compare the final tree, the present state, and the decision `due`."""
    return next(_last(records, replica, due), None)


def _last(records: Records, replica: Replica, due: Decision | None) -> Iterator[Difference]:
    expected, got = _shown(records.tree(replica.recorded_tip())), _shown(workplace.position(replica.layout).tree)
    if expected != got:
        yield Difference(run="", what="the final tree", expected=expected or "none", got=got)
    unsettled = records.unsettled()
    replica.missing += [f"{run}: how it ended; it is not settled" for run in unsettled]
    for name in (names.FEATURES, *TEXTS):
        old, new = (State(layout).data(name) or b"" for layout in (records.where, replica.layout))
        if name == names.FEATURES and unsettled:  # their status may have changed since
            yield from _queue("", old, new, set(unsettled.values()))
        else:
            yield from _texts("", name, old, new, replica)
    if due is None or due.word in UNRECORDED:
        replica.missing += [f"what is due at the end: a person's file says {due.line}"] if due else []
        return
    replica.configure(records.state.data(names.CONFIG))
    here = rules.decide(views.gather(replica.layout), records.runs[-1].result.ended)
    if due.line != here.line and "WAIT" not in (due.word, here.word):
        yield Difference(run="", what="what is due at the end", expected=due.line, got=here.line)
