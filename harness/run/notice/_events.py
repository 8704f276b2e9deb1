"""The events of a finished run, and of the decision with which run.sh ends. Each has a stable id, so that a notice is
sent once."""

from __future__ import annotations

from harness.base import encoding, faults
from harness.base.record import Json, Record
from harness.decision import checkpoints, escalations, rules, views
from harness.mission import runs
from harness.mission.runs import RunResult
from harness.state.layout import Layout

NEEDS_HELP = ("auth", "config")  # outcomes of an agent that cannot answer
RUN_FIELDS = ("run", "role", "feature", "outcome", "verdict", "reason", "agent", "commit", "at", "seconds")
TEXT_CHARS = 200


class NoticeEvent(Record):
    """An event. `text`: for people, with a short first line; `facts`: the further fields of its JSON."""

    id: str
    name: str
    text: str
    facts: dict[str, Json] = {}


def of_run(result: RunResult, before: RunResult | None) -> list[NoticeEvent]:
    """The events of a finished run, given the one before it: `run`, and passed, failed or auth."""
    about = " ".join(filter(None, [result.role, result.feature]))
    text = f"{about}: {result.said}. {faults.first(result.reason, TEXT_CHARS)}".strip()
    names = ["run"]
    if result.feature and result.verdict:
        names.append("passed" if result.verdict == "green" else "failed")
    if result.outcome in NEEDS_HELP and not (before and before.outcome in NEEDS_HELP):
        names.append("auth")
    facts = {"run": {name: getattr(result, name) for name in RUN_FIELDS}, "totals": result.totals}
    return [NoticeEvent(id=f"{name}-{result.run}", name=name, text=text, facts=facts) for name in names]


def of_decision(layout: Layout, line: str, now: int) -> list[NoticeEvent]:
    """The event of the decision with which run.sh ends: done, escalated, stuck, checkpoint or budget; [] for others."""
    word, _, rest = line.partition(" ")
    totals = {"totals": runs.totals(layout).asdict(), "decision": line}
    if word == "DONE":
        sweep = next((one.run for one in runs.finished(layout) if one.sweep is not None), "")
        text = "DONE: every feature has passed, and so has a fresh clone."
        return [NoticeEvent(id=f"done-{sweep}", name="done", text=text, facts=totals)]
    if word == "CHECKPOINT":
        found = checkpoints.behind(rest, views.gather(layout).asks.all)
        known = [(row.name, row.cause) for row in checkpoints.rows(layout) if row.state in checkpoints.ANSWERED]
        return [
            NoticeEvent(
                id=f"checkpoint-{one.name}-{_asked(one, known.count((one.name, one.cause)))}",
                name="checkpoint",
                text=checkpoints.shown(one),
                facts=totals | {"checkpoint": one.name},
            )
            for one in found
        ]
    if word == "ESCALATE":
        text = escalations.shown(layout, now).text
        kinds = ["escalated", *(["stuck"] if rest in ("stuck", "stalled") else [])]
        return [NoticeEvent(id=f"{kind}-{rest}-{_short(text)}", name=kind, text=text, facts=totals) for kind in kinds]
    if word == "BUDGET":
        view = views.gather(layout)
        again = f"-{view.totals.runs}"  # the cap of a day or a feature may be reached again
        return [
            NoticeEvent(
                id=f"budget-{cap.name}-{cap.most:g}{again * (cap.name in rules.MONEY[1:])}",
                name="budget",
                text=f"A cap is reached: {cap.words}",
                facts=totals,
            )
            for cap in rules.exhausted(view)[:1]
        ]
    return []


def _asked(ask: rules.PendingCheckpoint, answers: int) -> str:
    """An id that is constant while a checkpoint waits, and differs when it is asked again after an answer."""
    return _short(ask.cause + ask.text) + (f"-{answers}" if answers else "")


def _short(text: str) -> str:
    return encoding.digest(text.encode())[:12]
