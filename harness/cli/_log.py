"""`log`: the readable transcript of one run, of the newest run of a feature or role, or of the whole mission."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from harness.base import console, errors
from harness.base.record import Record
from harness.cli import _values
from harness.decision import views
from harness.mission import lease, mission, roles, run_lookup, runs, transcript
from harness.mission.transcript import Row
from harness.run import steps
from harness.state import files, names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import mission_lock

BLOCK = 65536
POLL_SECONDS = 0.2
MARKS = {"said": "says", "did": "does", "output": "   |"}


def log(layout: Layout, what: str, follow: bool, as_json: bool) -> None:
    """Show the log of the run `what` (see `find`; also of an archived mission), with `follow` to its end, without a name also
    of the next runs."""
    if follow and as_json:
        raise errors.UsageFault("--json prints one value and -f does not end: use one of them.")
    layout, what = run_lookup.within(layout, what)
    mission.check_format(layout)
    if as_json:
        _values.echo(value(layout, find(layout, what)))
    elif follow and not what:
        follow_mission(layout)
    else:
        _follow(layout, [find(layout, what)], follow)


class TranscriptReader:
    """Reads a growing transcript; `shown`: a row for people has arrived, `asked`: an agent was called."""

    def __init__(self, layout: Layout, run_id: str) -> None:
        self.layout, self.run_id, self.path = layout, run_id, layout.run(run_id).stream
        self.offset, self.rest = 0, b""
        self.shown = self.asked = False

    def rows(self) -> Iterator[Row | bytes]:
        """The new rows for people since the last call; an invalid line is returned unchanged."""
        while block := files.read_from(self.path, self.offset, BLOCK):
            self.offset += len(block)
            *lines, self.rest = (self.rest + block).split(b"\n")
            for line in lines:
                row = transcript.parse(line)
                self.asked = self.asked or (row is not None and row.kind == "agent")
                if row is None or row.kind not in transcript.FOR_MACHINES:
                    self.shown = True
                    yield line if row is None else row

    def over(self) -> bool:
        """Whether no more rows will arrive."""
        return os.path.exists(self.layout.run(self.run_id).result) or runs.is_dead(self.layout, self.run_id)

    def why_empty(self) -> str:
        """Why there are no rows."""
        result = runs.result(self.layout, self.run_id)
        if result is None and not self.over():
            return "the agent is working and has written nothing yet" if self.asked else "the run is still starting"
        if result and result.agent and not os.path.exists(self.path):
            return "its transcript is gone: gc removed it"
        if self.asked:
            reason = result.reason.split("\n")[0] if result else "the run died"
            return "the agent wrote nothing" + (f": {reason}" if reason else "")
        if result is None or result.outcome not in runs.GOOD:
            how = (
                f"ended before an agent was asked: {result.outcome}, {result.reason}" if result else "died before that"
            )
            return f"no agent was asked: the run {how}".removesuffix(", ")
        return "no agent was asked: this run is the work of code alone"


def find(layout: Layout, what: str) -> str:
    """The run `what`: an id, or the newest of a feature or role; "" is the open run, else the newest. Prefers runs with a
    transcript. Raises UsageFault if there is none."""
    if what and State(layout).exists(names.of_run(what, names.CONTEXT)):
        return what
    alive = [one for one in lease.alive(layout) if what in ("", one.feature, one.role)]
    if alive:
        return alive[-1].run
    first = ""
    for one in runs.finished(layout):
        if what in ("", one.feature, one.role):
            if files.length(layout.run(one.run).stream):
                return one.run
            first = first or one.run
    if first:
        return first
    ids, there = [one.id for one in views.queue(layout)], roles.known(layout)
    if what in ("", *ids, *there):
        raise errors.UsageFault(f"Nothing has run yet{f' of {what}' if what else ''}.")
    raise errors.UsageFault(
        f"There is no run, feature or role '{what}'.{errors.suggestion(what, [*ids, *there])} See: {command('runs list')}"
    )


def follow_mission(layout: Layout) -> None:
    """Follow the open run, or the newest, and every next one, until neither run.sh nor a run is alive."""
    alive = [one.run for one in lease.alive(layout)]
    _follow(layout, alive or ([] if mission_lock.looping(layout) else [find(layout, "")]), follow=True, every=True)


def _follow(layout: Layout, wanted: list[str], follow: bool, every: bool = False) -> None:
    """Show these runs to their ends; with `every` also those that start meanwhile."""
    old = set(State(layout).list(names.RUNS)) - set(wanted)
    readers = {run_id: TranscriptReader(layout, run_id) for run_id in wanted}
    above, first = "", True
    while True:
        more = every and mission_lock.looping(layout)
        if every:
            begun = [name for name in State(layout).list(names.RUNS) if name not in old and name not in readers]
            readers |= {name: TranscriptReader(layout, name) for name in begun}
        for run_id, reader in list(readers.items()):
            over = not follow or reader.over()
            above = _show(reader, above, over or first)
            if over:
                old.add(run_id)
                del readers[run_id]
                _show_end(layout, run_id, every)
        if not readers and not more:
            return
        first = False
        time.sleep(POLL_SECONDS)


def _show(reader: TranscriptReader, above: str, explain: bool) -> str:
    """Show new rows below the name of the run, or why there are none; returns the run whose name was shown last."""
    for row in reader.rows():
        above = _named(reader, above)
        _echo_row(row)
    if explain and not reader.shown and os.path.exists(reader.layout.run(reader.run_id).context):
        above = _named(reader, above)
        console.print_line(f"        ({console.sanitise(reader.why_empty())})")
    return above


def _named(reader: TranscriptReader, above: str) -> str:
    """Show the name of the run, unless it is shown `above`; returns the name."""
    if above != reader.run_id:
        console.print_line(f"== {reader.run_id}")
    return reader.run_id


def _show_end(layout: Layout, run_id: str, every: bool) -> None:
    result = runs.result(layout, run_id) if every else None
    if result:
        console.print_line(steps.line_of(result))


def _echo_row(row: Row | bytes) -> None:
    if isinstance(row, bytes):  # torn by a crash, or foreign
        console.print_line(f"      ? not valid: {console.sanitise(row.decode('utf-8', 'replace'))}")
        return
    for text in row.text.rstrip("\n").split("\n"):
        console.print_line(f"{row.at:7.1f} {MARKS.get(row.kind, row.kind)} {text}")


def value(layout: Layout, run_id: str) -> dict[str, Any]:
    """The log of a run as a JSON value."""
    reader = TranscriptReader(layout, run_id)
    rows = [row.asdict() for row in reader.rows() if isinstance(row, Record)]
    context = runs.context(layout, run_id)
    why = "" if reader.shown else reader.why_empty()
    head = {"run": run_id, "role": context.role, "feature": context.feature, "over": reader.over()}
    return {**head, "why": why, "rows": rows}
