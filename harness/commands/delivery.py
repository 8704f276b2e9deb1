"""`land`: the mission's work as a new branch with one commit for each feature, and as a pull request.

Only git objects and refs are written: no file of a working folder changes.
"""

from __future__ import annotations

import subprocess
from itertools import groupby
from shutil import which

from harness.base import clock, encoding, schema
from harness.base.encoding import shell_word
from harness.base.errors import NeedsPerson, UsageFault
from harness.base.record import Record
from harness.commands import _commits
from harness.decision import overview, views
from harness.git import contents, landing, merges, refs, repository
from harness.git.repository import BRANCHES
from harness.mission import config, mission, runs
from harness.mission.config import LandTable
from harness.mission.mission import Mission
from harness.proof import index
from harness.proof.index import ClaimStatus
from harness.state import json_lines, names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import run_detection, workplace

FIELDS = "%H%x00%P%x00%T%x00%an%x00%ae%x00%aI%x00%B"
AUTHOR = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")


class LandedBranch(Record):
    """A line of landings.jsonl. `base`: the commit of `onto` below the branch; `was`: the mission's commit, which `ref` keeps;
    `commits`: {old id: new id}."""

    at: str
    branch: str
    onto: str
    base: str
    was: str
    ref: str
    commits: dict[str, str]


class _Step(Record):
    """A commit as a change of its first parent: the trees before and after; `owner`: its feature, else its own id."""

    commit: str
    parent: str
    before: str
    tree: str
    author: dict[str, str]
    message: str
    owner: str


def load(layout: Layout) -> list[LandedBranch]:
    """The branches that `land` made, oldest first; raises BrokenFile."""
    path, data = layout.path(names.LANDINGS), State(layout).data(names.LANDINGS)
    none, remedy = "the line is not a landed branch", "Remove that line."
    return json_lines.parse(
        data, path, lambda row: schema.record(LandedBranch, row, "a landed branch has"), none, remedy
    )


def land(where: Layout, onto: str, name: str, *, squash: bool, force: bool, hooks: bool = False) -> LandedBranch:
    """Create the branch `name` (`land/MISSION`) with the mission's work on top of `onto`, by default the branch that it began
    from. `hooks`: the repository's commit-msg hook reads each message. Raises UsageFault or NeedsPerson, with nothing changed,
    if work would be missing, for conflicts, and if git cannot sign or the hook refuses."""
    run_detection.refuse(where, "land")
    table = LandTable(**config.load(where).land)
    tip, made, project = workplace.position(where).head, mission.load(where), where.folders.top
    name, onto = name or f"land/{made.id}", onto or _began_from(project, made)
    if not force:
        _require_whole(where, made, tip)
    refs.require_free(project, name)
    if landing.tip(project, name):
        raise UsageFault(f"The branch {name} exists. Choose another name: {command('land')} --as NAME")
    if (below := refs.position_of(project, onto)) is None:
        raise UsageFault(f"There is no branch and no commit '{onto}'. See: git branch")
    steps = _steps(where, tip, below.head, made.base_commit)
    if not steps:
        raise UsageFault(f"{onto} has all work of {made.id} already. To see it: git log {shell_word(onto)}")
    whole = _whole(project, made, onto, below.head, tip)
    parts = [steps]
    for parts in [] if squash else _ways(steps):
        if (trees := _trees(project, below.tree, parts))[-1:] == [whole]:
            break
    else:
        parts, trees = [steps], [whole]
    commits, at, tree = dict[str, str](), below.head, below.tree
    for part, after in zip(parts, trees, strict=True):
        if after != tree:
            text, author = _message(where, part, table), part[-1].author
            at = _commits.make(project, after, at, text, author, sign=table.sign, hooks=hooks)
        tree, commits = after, commits | {one.commit: at for one in part}
    kept = f"refs/harness/{made.id}/before/{name}"
    refs.move(project, (BRANCHES + name, at, "0" * len(at)), (kept, tip), why="harness: land")
    State(where).put(names.PULL_REQUEST, _request(where, name, steps).encode())
    row = {"at": clock.stamp(clock.now()), "branch": name, "onto": onto, "base": below.head, "was": tip, "ref": kept}
    State(where).append(names.LANDINGS, encoding.dump_json({**row, "commits": commits}))
    return LandedBranch(**row, commits=commits)


def _require_whole(where: Layout, made: Mission, tip: str) -> None:
    """Raise a fault if the mission is not done, or has not taken work of a person."""
    project, anyway = where.folders.top, f"or land without: {command('land')} --force"
    if why := overview.unfinished(where):
        raise UsageFault(f"The mission {made.id} is not DONE: {why}. Go on: {command()}, {anyway}")
    for one in (made.branch, made.branch + landing.HELD):
        if (at := landing.tip(project, one)) and not refs.is_ancestor(project, at, tip):
            raise NeedsPerson(f"{one} has commits that the mission has not taken. Take them: {command()}, {anyway}")


def _began_from(project: str, made: Mission) -> str:
    """The default branch if the mission's base is on it, else that base."""
    name = repository.default_branch(project) or ""
    there = name not in ("", made.branch) and landing.tip(project, name)
    return name if there and refs.is_ancestor(project, made.base_commit, there) else made.base_commit[:12]


def _whole(project: str, made: Mission, onto: str, below: str, tip: str) -> str:
    """The tree of all the mission's work on top of `below`; raises NeedsPerson with the files that conflict."""
    if not refs.is_ancestor(project, made.base_commit, below):  # only the mission's part of the history
        below = repository.commit_tree(project, repository.tree_of(project, below), [made.base_commit], "")
    found = merges.tree_of(project, below, tip)
    if found.conflicts:
        settle = f"git switch {shell_word(made.branch)} && git merge {shell_word(onto)}, then {command()} and {command('land')}"
        raise NeedsPerson(f"{onto} and the mission both changed {encoding.few(found.conflicts)}. Settle it: {settle}")
    return found.tree


def _steps(where: Layout, tip: str, *without: str) -> list[_Step]:
    """The first-parent history of `tip`, oldest first, up to what the commits `without` contain. A merge is one step, with
    the messages of what it merged."""
    project, owned = where.folders.top, {one.run: one.feature for one in runs.finished(where)}
    words = ("log", "--first-parent", "--reverse", "-z", f"--format={FIELDS}", tip, *(f"^{one}" for one in without))
    fields = repository.run(project, *words, "--").decode("utf-8", "replace").split("\0")[:-1]
    found: list[_Step] = []
    for at in range(0, len(fields), 7):
        commit, parents, tree, *author, message = fields[at : at + 7]
        parent, *merged = parents.split(" ")
        before = found[-1].tree if found else repository.tree_of(project, parent)
        owner = owned.get(message.rpartition(contents.TRAILER)[2].partition("\n")[0].strip()) or commit
        if merged:
            message = "\n\n".join(repository.messages_between(project, parent, commit)[:-1])
        by, step = dict(zip(AUTHOR, author, strict=True)), {"commit": commit, "parent": parent, "before": before}
        found.append(_Step(**step, tree=tree, author=by, message=message, owner=owner))
    return found


def _ways(steps: list[_Step]) -> list[list[list[_Step]]]:
    """The steps of each new commit: one for each feature, placed where its last step was; or, where these conflict in that
    order, one for each row of steps of a feature."""
    by_owner = dict[str, list[_Step]]()
    for one in steps:
        by_owner[one.owner] = [*by_owner.pop(one.owner, []), one]
    return [[*by_owner.values()], [list(row) for _, row in groupby(steps, lambda one: one.owner)]]


def _trees(project: str, tree: str, parts: list[list[_Step]]) -> list[str]:
    """The tree after each part, on top of `tree`; fewer trees if a part conflicts."""
    found: list[str] = []
    for part in parts:
        for one in part:
            if tree == one.before:
                tree = one.tree
            else:
                ours = repository.commit_tree(project, tree, [one.parent], "")
                tree = merges.tree_of(project, ours, one.commit).tree
            if not tree:
                return found
        found.append(tree)
    return found


def _message(where: Layout, part: list[_Step], table: LandTable | None = None) -> str:
    """The message of a commit with these steps: features and claims; a person's own commit keeps its message. Without a
    `table`, the text of a pull request, with receipts: runs and commits that only this machine has."""
    known, owners = index.proofs(where), {one.owner for one in part}
    found = [one for one in known.shown(views.queue(where)) if one.id in owners]
    if not found:
        return part[-1].message
    status, blocks = {one.claim: one for one in known.statuses}, list[str]()
    for one in found:
        claims = (
            f"- {claim.id}: {claim.text}{_receipts(status[claim.id], brief=bool(table))}"
            for claim in known.contract.of(one.claims)
        )
        open_ = "" if one.status == "passed" else f"Not finished: {one.status} after {one.attempts} tries."
        head = f"{one.id} {one.title}" if len(found) > 1 else ""
        blocks.append("\n\n".join(filter(None, [head, one.description.strip(), open_, "\n".join(claims)])))
    title = found[0].title if len(found) == 1 else _title(where)
    people = dict.fromkeys(" <".join([*one.author.values()][:2]) + ">" for one in part[::-1])
    title, ids = " ".join(title.split()), ", ".join(one.id for one in found)
    trailers = [f"Harness-Feature: {one.id}" for one in found]
    if table:
        trailers = [table.filled(one, title=title, feature=ids) for one in table.trailers]
        title = table.filled(table.subject, title=title, feature=ids)
    trailers += [f"Co-authored-by: {one}" for one in [*people][1:]]
    return "\n\n".join(filter(None, [title, *blocks, "\n".join(trailers)])) + "\n"


def _title(where: Layout) -> str:
    """The first line of the accepted SPEC.md."""
    lines = (State(where).text(names.SPEC) or "").split("\n")
    return next((line.strip("# ") for line in lines if line.strip("# ")), mission.read(where).id)


def _receipts(status: ClaimStatus, *, brief: bool) -> str:
    word = ", ".join([status.word, *status.marks])
    if brief:
        return f" ({word})"
    rows = (("red", status.red), ("green", status.green))
    places = [f"{word} at {place[1][:10]} in {place[0]}, {place[2]}" for word, place in rows if place]
    return "\n  " + ": ".join(filter(None, [word, "; ".join(places)]))


def _request(where: Layout, name: str, steps: list[_Step]) -> str:
    """The text of a pull request: the work, its receipts, and the contract with which anybody can verify it."""
    again = f"In a clone, by hand as below; with the mission's folder: `{command('verify')} --at {shell_word(name)}`."
    contract = (State(where).text(names.CONTRACT) or "").partition("\n")[2].strip()
    return f"# {_message(where, steps)}\n## How to verify\n\n{again}\n\n{contract}\n"


def lines(where: Layout, made: LandedBranch) -> list[str]:
    """The new branch, for a person: its commits, where the old commit is kept, and the next commands."""
    log = repository.log_lines(where.folders.top, made.base, made.branch)[::-1]
    new, is_commit = shell_word(made.branch), not landing.tip(where.folders.top, made.onto)
    edited = repository.dirty(where.folders.top) if workplace.on_branch(where, mission.load(where)) else []
    return [
        f"{made.branch}: {len(log)} commit{'s' * (len(log) != 1)} on {made.onto}",
        *(f"  {line}" for line in log),
        *([f"without   your uncommitted edits of {encoding.few(edited)}"] if edited else []),
        f"kept      {made.was[:12]}, by {made.ref}; old and new ids: {where.shown(names.LANDINGS)}",
        f"look      git log -p {made.base[:12]}..{new}",
        f"merge     git switch {new if is_commit else f'{shell_word(made.onto)} && git merge --ff-only {new}'}",
        f"text      {where.shown(names.PULL_REQUEST)}, for a pull request",
    ]


def request(where: Layout, made: LandedBranch) -> str:
    """Push the branch and open a pull request, if `gh` is installed; returns a line with the commands, or what was opened.
    Raises NeedsPerson, with the commands, if one fails."""
    base = ["--base", made.onto] if landing.tip(where.folders.top, made.onto) else []
    text = ["--title", _title(where), "--body-file", where.path(names.PULL_REQUEST)]
    steps = [["git", "push", "-u", "origin", made.branch], ["gh", "pr", "create", "--head", made.branch, *base, *text]]
    shown, said = " && ".join(" ".join(map(shell_word, words)) for words in steps), ""
    if which("gh") is None:
        return f"open      {shown}"
    for words in steps:
        done = subprocess.run(words, cwd=where.folders.top, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise NeedsPerson(f"{' '.join(words[:3])} failed (exit {done.returncode}). Fix that, then: {shown}")
        said = done.stdout.strip()
    return f"opened    {said}"
