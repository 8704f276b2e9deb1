"""What a worker leaves behind: its tree becomes one commit, or, where it was cut short, a commit to continue from."""

from __future__ import annotations

from harness.git import repository
from harness.model import features, runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.model.open_run import Run

SUBJECT_CHARS = 72


def settle(run: Run) -> None:
    """Commit what changed; the feature goes on to validation, where checks decide, or is blocked by what it names."""
    assert run.feature is not None
    reply = run.reply or {}
    blocked = reply.get("status") == "blocked"
    changed = run.tree != run.context.tree
    if changed:
        title = " ".join(run.feature.title.split())
        subject = f"wip({run.feature.id}): blocked" if blocked else f"{run.feature.id}: {title}"
        commit(run, subject, reply.get("summary", ""), "blocked" if blocked else "implemented")
    elif not blocked:
        run.outcome = "no_op"
    features.move(run.feature, "blocked" if blocked else "implemented")
    if blocked:
        _note_block(run, reply.get("reason", ""), reply.get("needs", []), reply.get("disputes", []))
    features.unblock(run.features, run.at, run.id)
    run.save()


def _note_block(run: Run, reason: str, needs: list[str], disputes: list[str]) -> None:
    assert run.feature is not None
    named = {"needs": {"features": needs}} if needs else {}
    named |= {"dispute": {"claims": disputes}} if disputes else {}
    for kind, names in (named or {"reason": {}}).items():
        run.feature.note(run.at, run.id, kind, text=reason, **names)
    run.reason = f"blocked, needs {', '.join(needs)}: {reason}" if needs else f"blocked: {reason}"


def commit(run: Run, subject: str, summary: str, outcome: str) -> None:
    """Everything the run changed as one commit on the mission's branch, with the agent's own messages and our trailers;
    `outcome`: implemented, blocked or cut."""
    head, branch = run.context.head, run.context.branch
    now = repository.standing(run.layout.project)
    own = repository.messages_between(run.layout.project, head, now.head) if now.head != head else []
    parts = [subject[:SUBJECT_CHARS], summary.strip(), *(message.strip() for message in own)]
    parts.append(f"Harness-Run: {run.id}\nHarness-Outcome: {outcome}")
    at = now.head if now.branch == branch else None
    message = "\n\n".join(part for part in parts if part) + "\n"
    run.commit = repository.commit(
        run.layout.project, tree=run.tree, parent=head, branch=branch, message=message, at=at
    )


def cut_short(run: Run) -> None:
    """A worker's run that did not end well: keep its tree as a wip commit and put the feature back.

    It costs an attempt where the agent is to blame; where time ran out with a changed tree, not for the first
    FREE_CUTS times; never for limits, auth, kills.
    """
    assert run.feature is not None
    changed = run.tree != run.context.tree
    if changed:
        commit(run, f"wip({run.feature.id}): {run.outcome}", run.reason, "cut")
        repository.set_ref(run.layout.project, f"refs/harness/partial/{run.id}", run.commit)
    spared = run.outcome in runs.CUT and changed and run.feature.cuts(since=("replanned", "retry")) < features.FREE_CUTS
    if run.outcome not in runs.FREE_OF_BLAME and not spared:
        features.judged(run.feature, run.at, run.id)
    text = f"{run.outcome}: {run.reason}" if run.reason else run.outcome
    if changed and run.outcome in runs.CUT:
        run.feature.note(run.at, run.id, "cut", text=text, run=run.id)
    else:
        run.feature.note(run.at, run.id, "reason", text=text)
    features.move(run.feature, "back to failing" if run.context.before == "failing" else "back to todo")
    run.save()
