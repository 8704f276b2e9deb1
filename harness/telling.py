"""What doors show: the status, and the ten lines with which run.sh ends. Plain values and text, no colour."""

from __future__ import annotations

import json
import time

from harness import contract, decide, files, git, issues, memory, mission, raw, runs, views
from harness.contract import Claim
from harness.features import TRIES, TRIES_REPLANNED, Feature
from harness.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MANY = 10**9


def status(layout: Layout) -> dict[str, Any]:
    """The mission at a glance, as plain JSON: see docs/contract.md for the keys."""
    view = views.gather(layout)
    made = mission.load(layout)
    decision = decide.decide(view, int(time.time()))
    known = contract.load(layout)
    folds = memory.parse_curated(files.read(layout.curated), layout.curated)
    last = _last_outcomes(layout, {feature.id for feature in view.features})
    return {
        "mission": made.id,
        "branch": made.branch,
        "due": decision.line,
        "why": why(view, decision),
        "under_way": [name for name in runs.open_runs(layout) if not runs.is_dead(layout, name)],
        "features": [_row(feature, known.of(feature.claims), last.get(feature.id, "")) for feature in view.features],
        "manual": [claim.id for claim in known.claims if claim.manual and claim.id not in accepted(layout)],
        "issues": [issue.asdict() for issue in issues.load(layout) if issue.state != "closed"],
        "uncurated": raw.uncurated(layout, folds.first_seq, folds.folded, MANY),
        "totals": view.totals.asdict(),
        "limits": view.limits.asdict(),
    }


def _row(feature: Feature, claims: list[Claim], last: str) -> dict[str, Any]:
    tries = TRIES_REPLANNED if feature.replanned else TRIES
    return {
        "id": feature.id,
        "title": feature.title,
        "status": feature.status,
        "attempts": feature.attempts,
        "tries": tries,
        "claims": len(claims),
        "proven": sum(not claim.manual for claim in claims) if feature.status == "passed" else 0,
        "depends_on": feature.depends_on,
        "last": last,
        "waits": _waits(feature),
    }


def _last_outcomes(layout: Layout, wanted: set[str]) -> dict[str, str]:
    """{feature: role and outcome of its newest run}, reading the books only as far back as they have something to tell."""
    found: dict[str, str] = {}
    for result in runs.books(layout):
        if result.feature in wanted:
            found.setdefault(result.feature, f"{result.role} {result.verdict or result.outcome}")
        if len(found) == len(wanted):
            break
    return found


def _waits(feature: Feature) -> str:
    note = feature.last_note("needs") or feature.last_note("dispute") or feature.last_note("person")
    if feature.status != "blocked" or note is None:
        return ""
    return f"{', '.join(note['ids'])}: {note['text']}" if note["ids"] else str(note["text"])


REASONS = {
    "STOPPED": "somebody said stop; remove .harness/STOP to go on",
    "PAUSED": "somebody said pause; remove .harness/PAUSE to go on",
    "CHECKPOINT": "a person must look at the checkpoint",
    "BUDGET": "the cap in config.toml [limits] is reached",
    "WAIT": "until then the agent's vendor lets nobody in",
    "DONE": "every feature has passed, and so has a fresh worktree",
}


def why(view: decide.View, decision: decide.Decision) -> str:
    """Why that is due, in a sentence."""
    if decision.word != "NEXT":
        return REASONS.get(decision.word, "a person is needed: read .harness/escalation.md")
    if decision.what == "planner":
        return "there is no plan yet" if not view.features else "the spec, an issue or a feature asks for it"
    if decision.what == "curator":
        return f"at least {min(view.uncurated, view.curate_after)} notes wait"
    if decision.what == "validator":
        return "its worker is done" if decision.feature else "all features passed; a fresh worktree has not been tried"
    return "its turn has come"


def accepted(layout: Layout) -> set[str]:
    """Manual claims for which a person has given a receipt."""
    rows = [json.loads(line) for line in (files.read(layout.contract_log) or b"").split(b"\n") if line]
    return {row["claim"] for row in rows if row["verb"] == "accept"}


def ending(layout: Layout, word: str) -> list[str]:
    """At most ten lines: what is proven, what is not, commits, cost, the branch to merge, the next command."""
    made, known = mission.load(layout), contract.load(layout)
    found = views.queue(layout)
    passed = [feature for feature in found if feature.status == "passed"]
    proven = [claim for feature in passed for claim in known.of(feature.claims) if not claim.manual]
    signed = accepted(layout)
    open_claims = [claim for claim in known.claims if claim not in proven and claim.id not in signed]
    totals = runs.totals(layout)
    standing = git.standing(layout.project)
    commits = len(git.log_lines(layout.project, made.base_commit, standing.head)) if standing.head else 0
    checks = sum(len(claim.checks) for claim in proven)
    lines = [
        f"{word}  {made.id}: {len(passed)} of {len(found)} features passed",
        f"proven    {len(proven)} of {len(known.claims)} claims, by {checks} checks",
        f"unproven  {_unproven(open_claims)}",
        f"issues    {_open_issues(layout)}",
        f"runs      {totals.runs} in {totals.seconds:.0f} s, cost {_cost(totals)}",
        f"commits   {commits} on {made.branch}, now at {standing.head[:10]}",
    ]
    return [*lines, *(_merge(layout, made.branch) if word == "DONE" else _remedy(layout, word))]


def _unproven(claims: list[Claim]) -> str:
    if not claims:
        return "nothing"
    named = [f"{claim.id}{' (manual)' if claim.manual else ''}" for claim in claims]
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    manual = next((claim.id for claim in claims if claim.manual), "")
    hint = f"; when you have looked: harness claim accept {manual} --note TEXT" if manual else ""
    return ", ".join(named[:5]) + more + hint


def _open_issues(layout: Layout) -> str:
    found = [issue for issue in issues.load(layout) if issue.state != "closed"]
    return ", ".join(f"{issue.id} {issue.severity}" for issue in found[:8]) or "none"


def _cost(totals: runs.Totals) -> str:
    return "unknown or nothing" if totals.cost_usd is None else f"{totals.cost_usd:.2f} USD"


def _merge(layout: Layout, branch: str) -> list[str]:
    target = git.default_branch(layout.project) or "main"
    return [
        f"merge     git switch {target} && git merge {branch}",
        "look      run.sh status, run.sh runs list, run.sh memory show, run.sh log",
    ]


def _remedy(layout: Layout, word: str) -> list[str]:
    if word.startswith("ESCALATE"):
        return [
            f"why       {layout.relative(layout.escalation)} says what is the matter",
            'next      run.sh escalation answer "what to do", then run.sh',
        ]
    first = word.split(" ")[0]
    return [f"why       {REASONS.get(first, 'see: run.sh status')}", "next      run.sh status"]
