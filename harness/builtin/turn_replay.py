"""A request of a past run: what it was made of, whether it can be made again byte for byte, and what the model says to it now."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from harness.agents import builtin, registry
from harness.agents.base import LOOP as LOOP
from harness.base import clock, encoding
from harness.base.errors import Unavailable, UsageFault
from harness.base.record import Json, Record
from harness.builtin.loop import turns
from harness.builtin.loop.turns import Log, Turn
from harness.mission import config, runs, usage
from harness.mission.usage import Usage
from harness.process.supervise import Child
from harness.replay.resends import replays, resend
from harness.state import files, names
from harness.state.layout import Layout

FIRST_CHARS = 100
MOST_SECONDS = 900.0
PRUNED = "The run {run} has no turns: it was not the built-in agent's, or `gc` removed them."


class Section(Record):
    """A part of a request, in the order in which it is sent: what it is, its size as JSON, its digest, whether it is new in this
    request, and how it begins."""

    what: str
    bytes: int
    digest: str
    new: bool
    first: str


class RecordedTurn(Record):
    """A turn of a run, or of its subagent `task`. `turns`: how many it has; `digest` and `bytes`: of the body that was sent, by
    `by`; `answer`: text, calls, usage and seconds, None where the run was cut off before it."""

    run: str
    turn: int
    turns: int
    at: str
    path: str
    digest: str
    bytes: int
    by: str
    parameters: dict[str, Json]
    sections: list[Section]
    answer: dict[str, Json] | None
    task: str = ""

    @property
    def cacheable(self) -> int:
        """The bytes that the request before had, too."""
        return sum(section.bytes for section in self.sections if not section.new)


class RebuiltRequest(Record):
    """The request made again. `equal`: the body is the one that was sent, byte for byte; `by`: what made it; `answer`: of the
    model, where it was sent; `fault`: (outcome, reason) where that failed."""

    equal: bool
    digest: str
    bytes: int
    by: str
    answer: dict[str, Json] | None = None
    fault: list[str] = []


def comparable() -> bool:
    """Whether the packages that make a request are here."""
    return builtin.installed()


def seen(where: Layout, run_id: str, number: int, task: str = "") -> RecordedTurn:
    """The request of that turn of a run, or of its subagent, and the answer. Raises UsageFault if there is none."""
    name = f"{run_id} {task}".strip()
    if task and task not in (there := files.names(where.run(run_id).tasks)):
        raise UsageFault(f"The run {run_id} has no task '{task[:60]}'. It has: {', '.join(there) or 'none'}.")
    log = turns.read(where.turns(run_id, task))
    if log is None or not log.turns:
        raise UsageFault(PRUNED.format(run=name))
    return seen_in(log, number, f"The run {name}", run_id, task)


def seen_in(log: Log, number: int, name: str, run_id: str, task: str = "") -> RecordedTurn:
    """The same of a log that was read; `name`: of what it is the log."""
    if number not in log.turns:
        raise UsageFault(f"{name} has turns 1 to {max(log.turns, default=0)}, and no turn {number}.")
    turn = log.turns[number]
    row = {name: turn.row[name] for name in ("at", "path", "digest", "bytes", "by")}
    return RecordedTurn(
        run=run_id,
        task=task,
        turn=number,
        turns=max(log.turns),
        parameters=log.request(number).parameters,
        sections=_sections(log, number),
        answer=_answer(turn),
        **row,
    )


def _sections(log: Log, number: int) -> list[Section]:
    """The parts of the request: tools, system, then the messages."""
    turn, before = log.turns[number], log.turns.get(number - 1)
    heads = [(name, turn.row[name], not before or before.row[name] != turn.row[name]) for name in ("tools", "system")]
    rows = [(log.values[one]["role"], one, at >= turn.keeps) for at, one in enumerate(turn.context)]
    return [
        Section(
            what=what,
            bytes=len(encoding.dump_json(log.values[digest])) - 1,
            digest=digest,
            new=new,
            first=_first(what, log.values[digest]),
        )
        for what, digest, new in (*heads, *rows)
    ]


def _first(what: str, value: dict[str, Any]) -> str:
    """How a part begins, on one line."""
    if what == "tools":
        text = ", ".join(tool["name"] for tool in value["tools"])
    elif what == "assistant":
        text = " ".join(_said(value))
    else:
        text = f"{value['name']}: {value['text']}" if what == "tool" else value.get("text") or value.get("system", "")
    return " ".join(text.split())[:FIRST_CHARS]


def _said(message: dict[str, Any]) -> list[str]:
    """The texts and calls of an answer, in words."""
    named = ((part.get("tool_name"), part) for part in message["parts"])
    return [f"{name}({part.get('args') or ''})" if name else str(part.get("content", "")) for name, part in named]


def _answer(turn: Turn) -> dict[str, Any] | None:
    if turn.answer is None:
        return None
    return {"said": _said(turn.answer["value"]), **{name: turn.answer[name] for name in ("usage", "seconds")}}


def again(layout: Layout, where: Layout, known: RecordedTurn, *, send: bool) -> RebuiltRequest:
    """Make the request once more in a child, and send it if requested; then it is kept as a replay, and its cost counts as one.
    Raises Unavailable without the packages, and NeedsPerson if a cap is used up."""
    settings = config.load(layout)
    if send:
        resend.capped(layout, settings)
    if not builtin.installed():
        raise Unavailable(builtin.NO_EXTRA.format(python=sys.executable, extra=builtin.EXTRA))
    rows = _child(_order(layout, where, known, send), layout.folders.project)
    body = next((row for row in rows if row["type"] == "body"), None)
    fault = next(([row["outcome"], row["reason"]] for row in rows if row["type"] == "fault"), [])
    if body is None:
        raise Unavailable(
            f"The request cannot be made again: {fault[1] if fault else 'the child ended without a word'}"
        )
    made = RebuiltRequest(
        equal=body["digest"] == known.digest,
        **{name: body[name] for name in ("digest", "bytes", "by")},
        answer=next((row for row in rows if row["type"] == "answer"), None),
        fault=fault,
    )
    if send:
        _keep(layout, where, known, made)
    return made


def _order(layout: Layout, where: Layout, known: RecordedTurn, send: bool) -> str:
    agent = registry.settings_of(layout, config.load(layout), LOOP, "").replace(model=known.parameters["model"])
    order = {
        "parameters": known.parameters,
        "key_env": builtin.key_names(agent),
        "directory": layout.folders.project,
        "project": layout.folders.project,
        "state": where.state,
        "run": known.run,
        "task": known.task,
        "turn": known.turn,
        "send": send,
    }
    return encoding.compact(order)


def _child(order: str, folder: str) -> list[dict[str, Any]]:
    """The rows that the child reports; what it prints beside them is the reason of Unavailable."""
    output, errors = bytearray(), bytearray()
    words = [sys.executable, "-I", builtin.program(), order]
    with Child(words, cwd=folder, env=dict(os.environ), wall_seconds=MOST_SECONDS) as child:
        for stream, chunk in child.output():
            (errors if stream == "stderr" else output).extend(chunk)
    if child.ended is None or child.ended.exit != 0:
        raise Unavailable(f"The request cannot be made again: {errors.decode('utf-8', 'replace').strip()}")
    return [json.loads(line) for line in output.split(b"\n") if line]


def _keep(layout: Layout, where: Layout, known: RecordedTurn, made: RebuiltRequest) -> None:
    """Write it down as a replay, for its cost."""
    replay, at, opened = replays.begin(layout, known.run), clock.stamp(clock.now()), runs.context(where, known.run)
    about = replays.ReplayRecord(
        id=replay,
        run=known.run,
        role=opened.role,
        feature=opened.feature,
        agent=LOOP,
        model=known.parameters["model"],
        at=at,
        times=1,
        swaps=[*([f"task={known.task}"] if known.task else []), f"turn={known.turn}"],
        mounted=False,
        digest=made.digest,
        prompt_bytes=made.bytes,
    )
    answer = made.answer or {}
    used = usage.priced(Usage(**{"agent": LOOP, **answer.get("usage", {})}), config.load(layout).prices)
    used.raw = [{"agent": LOOP, "block": answer.get("usage", {})}]
    sample = replays.Sample(
        number=1,
        agent=LOOP,
        outcome=made.fault[0] if made.fault else "ok",
        reason=made.fault[1] if made.fault else "",
        seconds=answer.get("seconds", 0.0),
        usage=used.asdict() if answer else None,
        uncounted=int(bool(answer) and used.cost_usd is None),
        at=at,
    )
    folder = replays.folder_of(layout, replay, 1)
    replays.keep(os.path.dirname(folder), replays.ABOUT, encoding.dump_json(about.asdict()))
    replays.keep(folder, names.RESULT, encoding.dump_json(sample.asdict()))
