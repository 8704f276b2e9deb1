"""A glance as lines for a terminal: they fit its size, and contain no control characters."""

from __future__ import annotations

import os
import time

from rich.text import Text

from harness.base import clock, console, faults
from harness.mission import runs
from harness.mission.receipts import Receipt
from harness.mission.runs import RunResult
from harness.report._facts import HERE
from harness.report.glance import Glance, Lane
from harness.state import raw

LABEL = 9  # columns
MARKS = {"said": "says", "did": "does", "output": "|", "cut": "…"}
COLOURS = {"run": "green", "done": "green", "wait": "yellow", "ask": "bold red", "halt": "yellow"}
STATUS = {"passed": "green", "failing": "red", "blocked": "yellow", "validating": "cyan", "in_progress": "blue"}
SIGNS = {"run": "▶", "done": "✓", "wait": "…", "ask": "!", "halt": "■"}
WIDEST_BAR = 30
PLAIN_WIDTH, PLAIN_HEIGHT = 160, 60
MIN_LANE_LINES = 2  # its head and its last row
MAX_FAULTS = 2


def lines(glance: Glance, width: int, height: int, keys: bool = False) -> list[Text]:
    """At most `height` lines of at most `width` columns. `keys`: the last line shows the keys."""
    head = _head(glance, width)
    foot = [Text("q quits", style="dim")] if keys else []
    room = height - len(head) - len(foot)
    others = _others(glance)
    least, wanted = sum(min(2, len(rows)) for _, rows in others), sum(len(rows) for _, rows in others)
    lanes = _lanes(
        glance.lanes, max(MIN_LANE_LINES * min(len(glance.lanes), 2), (room - least + 1) // 2, room - wanted)
    )
    below = _fitted(others, max(room - len(lanes), 0))
    blank = [Text()] * max(room - len(lanes) - len(below), 0) if keys else []
    found = [*head, *lanes, *below][: height - len(foot)]
    shown = [*found, *blank, *foot][:height]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
    return shown


def plain(glance: Glance) -> list[str]:
    """The glance as text for a pipe, a log or a dumb terminal."""
    return [line.plain.rstrip() for line in lines(glance, PLAIN_WIDTH, PLAIN_HEIGHT)]


def _fitted(others: list[tuple[str, list[Text]]], room: int) -> list[Text]:
    """The rows of each section, with its name before the first; cuts the longest section first if room is short."""
    counts = [len(rows) for _, rows in others]
    while sum(counts) > room and any(counts):
        longest = max(range(len(counts)), key=lambda at: (counts[at], at))
        counts[longest] -= 1
    found = []
    for (name, rows), count in zip(others, counts, strict=True):
        for at, row in enumerate(rows[:count]):
            found.append(Text.assemble((f"{'' if at else name:<{LABEL}}", "bold"), row))
    return found


def _safe(text: str, style: str = "") -> Text:
    return Text(" ".join(console.sanitise(text).split()), style=style)


def _head(glance: Glance, width: int) -> list[Text]:
    """The mission, its state, progress and spending, and the unreadable parts."""
    name, at = (
        _safe(f"{glance.id or glance.project}  {glance.branch}".rstrip(), "bold"),
        time.strftime("%H:%M", time.localtime(glance.now)),
    )
    name.truncate(max(width - len(at) - 1, 1), overflow="ellipsis", pad=True)
    state = Text.assemble((f"{SIGNS[glance.word]} ", COLOURS[glance.word]), _safe(glance.state, COLOURS[glance.word]))
    found = [Text.assemble(name, " ", at), state]
    found += [_progress(glance, width)] if glance.features else []
    if glance.caps or glance.newest:
        words = [cap.words for cap in glance.caps]
        capped, totals = {cap.name for cap in glance.caps}, glance.totals
        words += [f"cost {totals.cost_usd:.2f} USD"] if totals.cost_usd is not None and "cost" not in capped else []
        words += [f"{totals.tokens:,} tokens"] if totals.tokens is not None and "tokens" not in capped else []
        found.append(_safe(" · ".join(words), "yellow" if any(cap.percent >= 80 for cap in glance.caps) else ""))
    return [*found, *(_safe(f"not read: {fault}", "red") for fault in glance.faults[:MAX_FAULTS])]


def _progress(glance: Glance, width: int) -> Text:
    """A bar, and the number of features per status."""
    total = len(glance.features)
    counts: dict[str, int] = {}
    for one in glance.features:
        counts[one.status] = counts.get(one.status, 0) + 1
    passed, columns = counts.pop("passed", 0), max(min(WIDEST_BAR, width // 3), 1)
    done = columns * passed // total
    found = Text.assemble(("█" * done, "green"), ("░" * (columns - done), "dim"), f" {passed} of {total} passed")
    for status, count in counts.items():
        found.append(f" · {count} {status.replace('_', ' ')}", STATUS.get(status, ""))
    return found


def _lanes(lanes: list[Lane], room: int) -> list[Text]:
    """The open runs with the last lines of their transcripts; only the first ones if room is short."""
    if not lanes:
        return []
    shown = lanes[: max(room // MIN_LANE_LINES, 1)]
    more = len(lanes) - len(shown)
    each, extra = divmod(room - (more > 0), len(shown))
    found = []
    for at, lane in enumerate(shown):
        found += _lane(lane, each + (at < extra))
    return [*found, *([Text(f"and {more} more runs under way", style="dim")] if more else [])]


def _lane(lane: Lane, room: int) -> list[Text]:
    since = clock.seconds_of(lane.since)
    seconds = max(int(time.time()) - since, 0) if since else 0
    tree, tries = os.path.basename(lane.tree) or HERE, f"try {lane.attempt}" if lane.attempt else ""
    tree += f" on {lane.machine}" if lane.machine else ""
    words = [tree, f"{lane.role} {lane.feature}".strip(), tries]
    last = "died; the next start settles it" if lane.dead else f"{seconds // 60}:{seconds % 60:02d}"
    head = _safe("  ".join(filter(None, [*words, last])), "bold yellow" if lane.dead else "bold cyan")
    rows = [
        Text.assemble(
            (f"  {MARKS.get(row.kind, row.kind):>4} ", "dim"), Text(console.sanitise(text.expandtabs(4).rstrip()))
        )
        for row in lane.rows
        for text in row.text.split("\n")
        if text.strip()
    ]
    rows = rows[len(rows) - max(room - 1, 0) :] if len(rows) >= room else rows
    return [head, *(rows or [Text(f"       {_silent(lane)}", style="dim")][: room - 1])]


def _silent(lane: Lane) -> str:
    """The activity of a run whose agent has not written yet."""
    return f"{lane.checks} check{'s have' if lane.checks > 1 else ' has'} run" if lane.checks else "nothing written yet"


def _others(glance: Glance) -> list[tuple[str, list[Text]]]:
    """The other sections: (name, rows), possibly without rows."""
    queue = [
        Text.assemble((f"{one.id} ", "bold"), _safe(one.title), (f"  {one.status}", STATUS.get(one.status, "dim")))
        for one in glance.ready[:6]
    ]
    notes = [_safe(raw.readable(f"{one.role} {one.feature} {one.tag}: {one.text}")) for one in glance.notes[:6]]
    if notes and glance.generation:
        notes[0].append(f"  ({glance.generation} curations)", "dim")
    return [
        ("next", queue),
        ("receipts", [_receipt(one) for one in glance.receipts[:6]]),
        ("runs", [_run(one, glance.now) for one in glance.newest[:6]]),
        ("memory", notes),
    ]


def _receipt(one: Receipt) -> Text:
    why = "; ".join([*([] if one.green else [one.fault]), *one.notes])
    return Text.assemble(
        (f"{one.verdict} ", "green" if one.green else "red"), _safe(f"{one.claim}  {one.seconds:.1f} s  {why}")
    )


def _run(one: RunResult, now: int) -> Text:
    good = one.outcome in runs.GOOD and not one.negative
    ended = clock.local(clock.seconds_of(one.at), now)
    why = faults.first(one.reason) or one.commit[:10]
    return Text.assemble(
        (f"{ended} ", "dim"),
        _safe(f"{one.role} {one.feature}".strip()),
        (f" {one.said} ", "green" if good else "red"),
        _safe(why),
    )
