"""Settles a worker's run: its tree becomes one commit, or, if the run was cut short, a commit to continue from."""

from __future__ import annotations

import textwrap
from typing import Any

from harness.base import encoding, redaction
from harness.git import dotgit, refs, repository
from harness.mission import features, runs
from harness.mission.features import Feature
from harness.mission.open_run import OpenRun, Outcome, StartedRun
from harness.mission.order_log import Order
from harness.state import names
from harness.workplace import workplace
from harness.workplace.recovery import recovery_plan

SUBJECT_CHARS = 72
INDENT = "    "
NAMED = ("needs", "disputes")
SHORT = 12  # characters of a commit in a note


def settle(run: OpenRun) -> None:
    """Commit the changes; the feature moves to validation, or is blocked for the reason in the reply."""
    outcome = run.outcome
    reply = outcome.reply or {}
    blocked = reply.get("status") == "blocked" and not merges_with(outcome)
    feature = _still_ours(run, outcome)
    if feature is None:
        return
    if outcome.work.tree == run.context.tree:
        outcome.ended = outcome.ended if blocked else "no_op"
    else:
        subject = f"wip({feature.id}): blocked" if blocked else f"{feature.id}: {' '.join(feature.title.split())}"
        commit(run, outcome, subject, reply.get("summary", ""), "blocked" if blocked else "implemented")
    if outcome.landing.clashes:
        _give_back(run, outcome, feature)
        return
    if run.entered:
        _take_entered(run, outcome, feature)
        return
    features.move(feature, "blocked" if blocked else "implemented")
    if blocked:
        why = "; ".join(filter(None, [reply.get("reason", ""), outcome.answer.not_passed]))
        needs, disputes = ([one for one in reply.get(key, []) if one not in unknown(outcome, reply)] for key in NAMED)
        _note_block(run, outcome, why, needs, disputes)
    if outcome.ended == "no_op":
        outcome.take_not_passed()
    outcome.reason = "; ".join(filter(None, [outcome.reason, _outside(run, outcome)]))
    features.unblock(outcome.features, outcome.at, run.id)
    outcome.save()


def unknown(outcome: Outcome, reply: dict[str, Any]) -> list[str]:
    """The ids of a reply that the feature cannot wait for: not of another feature, or of a claim."""
    others = {one.id for one in outcome.features if outcome.feature is None or one.id != outcome.feature.id}
    claims = {one.id for one in outcome.contract.claims}
    return [
        one
        for key, known in zip(NAMED, (others, claims), strict=True)
        for one in reply.get(key, [])
        if one not in known
    ]


def _take_entered(run: StartedRun, outcome: Outcome, feature: Feature) -> None:
    """Validate what a person left, with all attempts. If that is nothing, the feature stays as it was; only a proof makes it
    pass, also again."""
    before = run.context.before
    if outcome.ended == "no_op":
        features.move(feature, "implemented" if before in ("passed", "validating") else f"back to {before}")
    else:
        features.restart(feature, "implemented", outcome.at, "a person worked on it")
    outcome.save()


def _outside(run: StartedRun, outcome: Outcome) -> str:
    """The run's changes in the repository outside the project folder, in words. 0 git calls at the top of a repository."""
    below = run.layout.folders.prefix
    changed = repository.changed(run.checkout, run.context.tree, outcome.work.tree) if below else []
    found = [path for _, path in changed if not path.startswith(below)]
    return f"changed outside {below}: {encoding.few(found)}" if found else ""


def _still_ours(run: StartedRun, outcome: Outcome) -> Feature | None:
    """The feature of the run if it is still in progress. If it was moved or dropped meanwhile, that stands, and the
    work is kept under a ref."""
    feature = outcome.feature
    if feature is not None and feature.status == "in_progress":
        return feature
    outcome.reason = f"{run.context.feature} was {'moved on' if feature else 'dropped from the plan'} meanwhile"
    if outcome.work.tree != run.context.tree:
        commit(run, outcome, f"wip({run.context.feature}): not wanted", outcome.reason, "cut", lands=False)
        outcome.reason += _kept(run)
    return None


def _kept(run: StartedRun) -> str:
    return f"; its work is kept: git show --stat {partial(run)}"


def partial(run: StartedRun) -> str:
    """The ref of a run's unfinished work."""
    return refs.PARTIAL + run.id


def _give_back(run: StartedRun, outcome: Outcome, feature: Feature) -> None:
    """Return a feature whose work conflicts with what landed meanwhile: no attempt is charged, and the next worker sees
    both sides."""
    paths = ", ".join(outcome.landing.clashes)
    outcome.ended, outcome.reason = "conflict", f"what landed meanwhile conflicts with its work in {paths}{_kept(run)}"
    feature.note(outcome.at, run.id, "reason", text=outcome.reason)
    features.move(feature, recovery_plan.back(run.context.before == "failing"))
    outcome.save()


def _note_block(run: StartedRun, outcome: Outcome, reason: str, needs: list[str], disputes: list[str]) -> None:
    feature = outcome.feature
    assert feature is not None
    had_these = needs and needs in [note.get("features") for note in feature.notes]
    if had_these or (disputes and feature.replanned):  # else it could repeat forever
        features.judged(feature, outcome.at, run.id)
    named = {"needs": {"features": needs}} if needs else {}
    named |= {"dispute": {"claims": disputes}} if disputes else {}
    for kind, about in (named or {"reason": {}}).items():
        feature.note(outcome.at, run.id, kind, text=reason, **about)
    outcome.reason = f"blocked, needs {', '.join(needs)}: {reason}" if needs else f"blocked: {reason}"


def commit(run: StartedRun, outcome: Outcome, subject: str, summary: str, work: str, *, lands: bool = True) -> None:
    """Commit all changes of the run on the mission's position, with the agent's summary and the harness's trailers;
    `work` is implemented, blocked or cut. It is merged with what others landed since the run opened; on a conflict, or
    with `lands` False, the work is only kept under a ref."""
    if outcome.landing.commit:
        return  # a repeated settle
    head, left = run.context.head, dotgit.commit(run.checkout)
    own = repository.messages_between(run.checkout, head, left) if left != head else []
    own = [redaction.received(message) for message in own]
    # indented, so that an agent's line is neither a trailer nor the end of the message
    parts = [subject[:SUBJECT_CHARS], *(textwrap.indent(said.strip(), INDENT) for said in (summary, *own))]
    parts.append(f"Harness-Run: {run.id}\nHarness-Outcome: {work}")
    message = "\n\n".join(part for part in parts if part) + "\n"
    asked = work == "implemented" and merges_with(outcome)
    changed = repository.changed(run.checkout, run.context.tree, outcome.work.tree) if asked else []
    joins = outcome.landing if asked and {*outcome.landing.conflicts} <= {path for _, path in changed} else None
    made = workplace.commit(run, outcome.work.tree, message, lands=lands, cut=work in runs.UNFINISHED, joins=joins)
    outcome.landing.commit, outcome.landing.clashes = made.landed, made.clashes
    if not made.landed:
        refs.set_one(run.layout.folders.top, partial(run), made.kept)


def merges_with(outcome: Outcome) -> str:
    """The person's commit that the worker of this feature is asked to merge with its work; "" for none."""
    theirs, note = outcome.landing.theirs, outcome.feature.last_note("retry") if outcome.feature else None
    return theirs if theirs and note and theirs[:SHORT] in note["text"] else ""


def hand_conflict(run: StartedRun, outcome: Outcome) -> None:
    """Order that a passed feature which conflicts with a person's commit is worked on again; once, whatever comes of it."""
    theirs, paths = outcome.landing.theirs, outcome.landing.conflicts
    notes = [note.get("text", "") for feature in outcome.features for note in feature.notes]
    if not theirs or any(theirs[:SHORT] in text for text in notes):
        return
    words = ("log", "--format=%H", f"{theirs}..{run.context.head}", "--", *paths)
    commits = repository.run(run.layout.folders.top, *words).decode().split()
    last = next((one.feature for one in runs.finished(run.layout) if one.commit in commits), "")
    if last in features.passed(outcome.features):
        why = f"a person's commit {theirs[:SHORT]} conflicts with its work in {encoding.few(paths)}"
        made = Order(id=f"O-{run.id}", at=outcome.at, by=run.id, verb="feature retry", args=[last, why])
        outcome.changes.append(names.ORDERS, encoding.dump_json(made.asdict()))


def cut_short(run: StartedRun, outcome: Outcome) -> None:
    """Keep the tree of an interrupted run as a wip commit, and put the feature back.

    It costs an attempt if the agent is to blame; the first FREE_CUTS timeouts with a changed tree are free. Limits, missing
    logins and kills never cost one.
    """
    feature = _still_ours(run, outcome)
    if feature is None:
        return
    changed = outcome.work.tree != run.context.tree
    if changed:
        commit(run, outcome, f"wip({feature.id}): {outcome.ended}", outcome.reason, "cut")
    cut = changed and not outcome.landing.clashes and outcome.ended in runs.CUT
    spared = cut and feature.cuts(since=("replanned", "retry")) < features.FREE_CUTS
    if outcome.ended not in runs.FREE_OF_BLAME and not spared:
        features.judged(feature, outcome.at, run.id)
    why = f"{outcome.ended}: {outcome.reason}" if outcome.reason else outcome.ended
    why += f"; it conflicts with what landed meanwhile{_kept(run)}" if outcome.landing.clashes else ""
    feature.note(outcome.at, run.id, "cut" if cut else "reason", text=why, **({"run": run.id} if cut else {}))
    features.move(feature, recovery_plan.back(run.context.before == "failing"))
    outcome.save()
