"""Starts a feature over: after tries that proved nothing new, the next one begins in the tree before them.

Nothing is rewound: a commit on top has the old tree, and what was tried stays in the history, each commit under its ref. Only
commits of the feature's workers are undone so; if there is another one since, the next try goes on from where it is.
"""

from __future__ import annotations

from itertools import dropwhile, islice

from harness.base import encoding, faults
from harness.git import refs, repository
from harness.git.repository import Position
from harness.mission import contract, receipts, runs
from harness.mission.features import OVER, Feature
from harness.mission.lease import Terms
from harness.mission.mission import Mission
from harness.mission.runs import RunResult
from harness.state.layout import Layout
from harness.workplace import workplace
from harness.workplace.workplace import Tree

FRUITLESS = 2  # tries in a row that proved nothing new, after which the next one starts over; 99: never
FAULT_CHARS = 200
EARLIER = "Earlier tries, of which nothing is left in your tree: do it another way"


def begin(layout: Layout, made: Mission, feature: Feature, tree: Tree, terms: Terms) -> None:
    """If it is due and possible, move the mission's position, and that of the tree, to the feature's old tree, and note that
    the run starts over. Requires the mission lock."""
    judged = {note["by"] for note in feature.since("retry", OVER) if note["kind"] == "judged"}
    row = _fruitless(layout, feature) if len(judged) >= FRUITLESS and not tree.conflicts else []
    if (tries := sum(one.run in judged for one in row)) < FRUITLESS or not (old := _before(layout, row, tree.position)):
        return
    if old.tree != tree.position.tree:
        text = f"start over({feature.id})\n\nHarness-Run: {terms.run}\nHarness-Outcome: over\n"
        commit = repository.commit_tree(layout.folders.top, old.tree, [tree.position.head], text)
        if not refs.swap(layout.folders.top, f"refs/harness/{made.id}/tip", commit, tree.position.head):
            return
        tree.position = tree.position.replace(head=commit, tree=old.tree)
        tree.unlanded = workplace.land(layout, made, commit)
    told = f"starts over at {old.head[:10]}, for the last {tries} tries proved nothing new"
    feature.note(terms.since, terms.run, OVER, text=told)
    tree.notes.append(f"{feature.id} {told}")


def _fruitless(layout: Layout, feature: Feature, before: str = "") -> list[RunResult]:
    """The newest runs of the feature in which no check turned green, in a row, newest first; only those `before` this run, and
    since a check of it was replaced."""
    known = {(claim.id, check.run) for claim in contract.load(layout).of(feature.claims) for check in claim.checks}
    mine = (one for one in runs.finished(layout) if one.feature == feature.id)
    row: list[RunResult] = []
    judged, green = (
        0,
        set[tuple[str, str]](),
    )  # how many runs the last validation has behind it, and what was green in it
    for one in islice(dropwhile(lambda one: one.run != before, mine), 1, None) if before else mine:
        if one.verdict:
            fired = {(it.claim, it.command): it.green for it in receipts.of_run(layout, one.run) if it.phase == "after"}
            now = {check for check in fired if fired[check]}
            if not fired.keys() <= known:
                break
            if green - now:
                return row[:judged]
            judged, green = len(row), now
        if one.verdict == "green":
            return row
        row.append(one)
    return row[:judged] if green else row


def _before(layout: Layout, row: list[RunResult], now: Position) -> Position | None:
    """The commit before the first one of these runs; None without one, or if others committed since. 3 git calls."""
    top, commits = layout.folders.top, [one.commit for one in row if one.commit]
    old = refs.position_of(top, commits[-1] + "^") if commits else None
    if old is None or not refs.is_ancestor(top, old.head, now.head):
        return None
    own = {one.commit for one in row if one.trigger != runs.ENTERED}
    since = repository.run(top, "log", "--format=%H %T", f"{old.head}..{now.head}", "--").decode().splitlines()
    pairs = (line.split(" ") for line in since)  # a commit with the old tree undid the others
    return old if all(commit in own or tree == old.tree for commit, tree in pairs) else None


def undone(layout: Layout, feature: Feature | None, run: str) -> list[RunResult]:
    """The runs whose work the feature was without when it last started over, as this run sees it; oldest first."""
    if not feature or not (notes := feature.started_over()):
        return []
    return _fruitless(layout, feature, "" if notes[-1]["by"] == run else notes[-1]["by"])[::-1]


def finding(layout: Layout, role: str, tries: list[RunResult]) -> list[tuple[str, str]]:
    """Two lines for each of these tries of a role, with a title: what it changed, and how it ended."""
    found: list[str] = []
    for one in tries:
        ended = f"  ended {one.said}: {faults.first(one.reason, FAULT_CHARS)}".removesuffix(": ")
        if one.role == role:
            changed = repository.changed(layout.folders.top, one.commit + "^", one.commit) if one.commit else []
            files = encoding.few([path for _, path in changed]) or "nothing"
            found += [f"try {len(found) // 2 + 1} changed {files}", ended]
        elif one.verdict and found:
            found[-1] = ended
    return [(EARLIER, "\n".join(found))] if found else []
