"""The mission as commands show it: the view and decision of `next`, with proven claims and passed features."""

from __future__ import annotations

import time
from typing import Any

from harness.base.record import Record
from harness.decision import rules, views
from harness.decision.rules import Decision, View
from harness.memory import backlog, pages
from harness.mission.features import Feature, passed
from harness.proof import index
from harness.proof.index import Proofs
from harness.state.layout import Layout

UNBOUNDED = 10**9
WAITS = ("needs", "dispute", "person", "reason")  # notes that explain a blocked feature, by precedence


class Overview(Record):
    """A mission at one moment. `features`: as commands show and count them."""

    view: View
    decision: Decision
    proofs: Proofs
    features: list[Feature]


def gather(layout: Layout) -> Overview:
    """The overview; raises BrokenFile for a file that does not parse."""
    view, found = views.gather(layout), index.proofs(layout)
    decision = rules.decide(view, int(time.time()))
    return Overview(view=view, decision=decision, proofs=found, features=found.shown(view.features))


def features(layout: Layout) -> list[Feature]:
    """The features as commands show and count them, also while runs are open or died."""
    return index.proofs(layout).shown(views.queue(layout))


def unfinished(layout: Layout) -> str:
    """Why the mission is not done, regardless of SPEC.md's present content; "" if it is done."""
    found = features(layout)
    done = len(passed(found))
    if not found or done < len(found):
        return f"{done} of {len(found)} features passed" if found else "it has no plan yet"
    return "" if views.swept(layout) else "all features passed, and the final sweep is not green since"


def uncurated(layout: Layout) -> int:
    """The number of notes that wait for the curation."""
    return backlog.uncurated(layout, pages.curated(layout), UNBOUNDED)


def waits(feature: Feature) -> dict[str, Any] | None:
    """The note that explains what a blocked feature waits for; None for any other feature."""
    return next(filter(None, map(feature.last_note, WAITS)), None) if feature.status == "blocked" else None
