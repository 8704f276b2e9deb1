"""Checkpoints, at which the mission waits for a person, and people's requests to a planner.
A due checkpoint is not written: it follows from config.toml, the run log and the answers in checkpoints.jsonl, so a
crash loses none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from harness.base import encoding, schema
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.decision.rules import PendingCheckpoint, PendingCheckpoints
from harness.mission import config
from harness.mission.config import Config
from harness.mission.features import Feature
from harness.state import json_lines, names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace.recovery import unsettled_runs

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Word = str
else:
    Word = schema.one_of(("asked", "granted", "denied", "wanted", "planned"))

ANSWERED = ("granted", "denied")
FOR_THE_PLAN = ("denied", "wanted")  # until a plan was accepted whose prompt contained it
FILE = "file"  # the cause of a checkpoint in the form of a file
MAX_TEXT_CHARS = 4000


class CheckpointRow(Record):
    """A line of checkpoints.jsonl. `state`: asked (by an agent), granted or denied (by a person), wanted (a feature
    requested by a person), planned (a plan was accepted whose prompt had the row `id`). `cause`: the event for which
    the checkpoint is asked once."""

    id: str
    at: str
    by: str
    state: Word
    name: str = ""
    cause: str = ""
    text: str = ""
    question: str = ""


def rows(layout: Layout) -> list[CheckpointRow]:
    """The lines of checkpoints.jsonl, oldest first; raises BrokenFile."""

    def made(row: Any) -> CheckpointRow:
        return schema.record(CheckpointRow, row, "a checkpoint has")

    data = State(layout).data(names.CHECKPOINT_LOG)
    return json_lines.parse(
        data, layout.path(names.CHECKPOINT_LOG), made, "the line is not a checkpoint", "Remove that line."
    )


def line(**fields: str) -> bytes:
    """A line of checkpoints.jsonl, with a new id unless it has one."""
    return encoding.dump_json(CheckpointRow(**{"id": f"K-{os.urandom(4).hex()}", **fields}).asdict())


def find(
    layout: Layout, settings: Config, found: list[Feature], cost_usd: float | None, *, swept: bool
) -> PendingCheckpoints:
    """The waiting checkpoints. `found`: the features; `cost_usd`: the cost of the mission; `swept`: everything,
    including the final sweep, has passed."""
    known = rows(layout)
    made = PendingCheckpoints(now=_laid(layout), wanted=any(row.state in FOR_THE_PLAN for row in _unplanned(known)))
    answered = {(row.name, row.cause) for row in known if row.state in ANSWERED}
    made.now += [_of_agent(row) for row in known if row.state == "asked" and (row.name, row.cause) not in answered]
    again = {(row.name, row.cause) for row in _denied_and_planned(known)}
    for table in settings.checkpoint:
        name, when = table["name"], table["when"]
        if when.startswith(config.FEATURE):
            ask = _before_feature(name, when.removeprefix(config.FEATURE), found)
            if ask and ((name, ask.cause) not in answered or (name, ask.cause) in again):
                made.features[ask.cause] = ask
            continue
        last = when == "before-done"
        ask = _asked(layout, name, when, cost_usd) if swept or not last else None
        if ask and (name, ask.cause) not in answered:
            made.done = ask if last else made.done
            made.now += [] if last else [ask]
    return made


def _laid(layout: Layout) -> list[PendingCheckpoint]:
    """Checkpoints by files in checkpoints/, each as long as its file exists."""
    state, made = State(layout), []
    for name in (name for name in state.list(names.CHECKPOINTS) if name.endswith(".md")):
        path = f"{names.CHECKPOINTS}/{name}"
        text = (state.data(path) or b"")[:MAX_TEXT_CHARS].decode("utf-8", "replace")
        made.append(
            PendingCheckpoint(
                name=name[:-3], cause=FILE, why=f"{layout.folders.relative(state.path(path))} is there", text=text
            )
        )
    return made


def _of_agent(row: CheckpointRow) -> PendingCheckpoint:
    shown = [(command(f"runs show {row.by}"), "the run that asks")]
    return PendingCheckpoint(name=row.name, cause=row.cause, why=f"the run {row.by} asks", text=row.text, read=shown)


def _before_feature(name: str, feature_id: str, found: list[Feature]) -> PendingCheckpoint | None:
    """A checkpoint before the first attempt of a feature; later attempts do not ask again."""
    feature = next((one for one in found if one.id == feature_id), None)
    if feature is None or feature.status != "todo" or feature.attempts:
        return None
    shown = [(command(f"feature show {feature_id}"), "what is to be built, and its checks")]
    return PendingCheckpoint(name=name, cause=feature_id, why=f"{feature_id} is to begin: {feature.title}", read=shown)


def _asked(layout: Layout, name: str, when: str, cost_usd: float | None) -> PendingCheckpoint | None:
    """The checkpoint of the newest plan, the newest sweep or the newest step of cost; None before there is one."""
    if when.startswith(config.COST):
        step = when.removeprefix(config.COST)
        steps = int(round((cost_usd or 0.0) / float(step), 6))
        reached = f"{steps * float(step):g} USD"
        shown = [(command("usage"), "what was spent, by role and feature"), (command("status"), "what it brought")]
        return (
            PendingCheckpoint(name=name, cause=reached, why=f"the mission has cost {reached}", read=shown)
            if steps
            else None
        )
    swept = when == "before-done"
    newest = next(
        (one for one in unsettled_runs.believed(layout) if one.accepted or (swept and one.sweep is not None)), None
    )
    if newest is None:
        return None
    if swept:
        shown = [(command("status"), "what is proven, and how"), (command("runs list"), "what ran")]
        return PendingCheckpoint(
            name=name, cause=newest.run, why="all has passed, and so has a fresh clone", read=shown
        )
    shown = [(command("feature list"), "the plan"), (command("claim list"), "what will prove it")]
    return PendingCheckpoint(name=name, cause=newest.run, why=f"the run {newest.run} brought a plan", read=shown)


def _planned(known: list[CheckpointRow]) -> set[str]:
    return {row.id for row in known if row.state == "planned"}


def _unplanned(known: list[CheckpointRow]) -> list[CheckpointRow]:
    """People's denials and requests that no accepted plan has seen."""
    planned = _planned(known)
    return [row for row in known if row.id not in planned]


def _denied_and_planned(known: list[CheckpointRow]) -> list[CheckpointRow]:
    """The newest answers that were denials followed by a plan: their checkpoints are asked again."""
    newest = {(row.name, row.cause): row for row in known if row.state in ANSWERED}
    planned = _planned(known)
    return [row for row in newest.values() if row.state == "denied" and row.id in planned]


def for_the_plan(layout: Layout) -> list[CheckpointRow]:
    """People's messages that no accepted plan has seen, oldest first; a grant counts if it has a note."""
    return [
        row for row in _unplanned(rows(layout)) if row.state in FOR_THE_PLAN or (row.state == "granted" and row.text)
    ]


def words(row: CheckpointRow) -> str:
    """A person's message, for a prompt."""
    if row.state == "wanted":
        return f"{row.at} a person wants a feature: {row.text}"
    about = f" ({row.cause})" if row.cause != FILE else ""
    return f"{row.at} the checkpoint {row.name}{about} was {row.state}: {row.text}"


def shown(ask: PendingCheckpoint) -> str:
    """A checkpoint for a person: why it waits, what to read, and a command for each answer."""
    name = encoding.shell_word(ask.name)  # that of a file may be any
    ways = [
        *((words, what) for words, what in ask.read),
        (command(f"checkpoint grant {name}"), "go on"),
        (command(f"checkpoint deny {name} --note 'WHY'"), "a new plan follows, with your reason"),
    ]
    longest = max(len(words) for words, _ in ways)
    lines = [f"    {words:<{longest}}  # {what}".rstrip(" #") for words, what in ways]
    return "\n".join([f"The checkpoint {ask.name} waits: {ask.why}.", *filter(None, [ask.text.rstrip()]), "", *lines])


def behind(what: str, asks: list[PendingCheckpoint]) -> list[PendingCheckpoint]:
    """The checkpoints that a decision names: its line has the name after CHECKPOINT, and optionally a feature."""
    return [ask for ask in asks if what in (ask.name, f"{ask.name} {ask.cause}")]


def named(asks: list[PendingCheckpoint], name: str) -> list[PendingCheckpoint]:
    """The checkpoints of this name; raises UsageFault if there is none."""
    found = [ask for ask in asks if ask.name == name]
    if not found:
        there = ", ".join(dict.fromkeys(ask.name for ask in asks))
        raise UsageFault(f"No checkpoint '{name}' waits. What waits: {there or 'nothing'}.")
    return found
