"""Snapshots of the mission after a run and before a restore: listed, shown, compared.

`snapshots/<id>.json` has digests and lengths; the bytes are objects, or prefixes of append-only files.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from harness.base import encoding, schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Json, Record
from harness.mission import features, mission, run_lookup, runs
from harness.replay import _past_state, rebuild
from harness.replay._past_state import PastState, StateRecord, StateSource
from harness.state import names, objects
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import workplace

NOW = "now"
COMPARED_FILES = (names.SPEC, names.FEATURES, names.CONTRACT, names.ISSUES, names.SUMMARY, names.MEMORY, names.CONFIG)
DIFF_LINES = 400


class Snapshot(Record):
    """A file of snapshots/. `live`: {managed file: object}; `grown`: {append-only file: ["", length]}; `raw`: length and
    generation of raw.md, `entries`: all its entries so far (-1: an older version did not count); `identity`: {file: object} as
    the prompt showed it; `saved`: {append-only file: object}, only before a restore."""

    run: str
    at: str
    commit: str
    live: dict[str, str]
    grown: dict[str, Json]
    raw: list[Json]
    entries: int = -1
    identity: dict[str, str] = {}
    saved: dict[str, str] = {}


class SnapshotSummary(Record):
    """A snapshot in a list: `what` it follows or precedes, `features` as `passed of all`; `fault` if it is broken."""

    id: str
    at: str
    what: str
    commit: str
    features: str
    fault: str = ""


def path_of(layout: Layout, snapshot_id: str) -> str:
    """The file of a snapshot."""
    return State(layout).path(f"{names.SNAPSHOTS}/{snapshot_id}.json")


def load(layout: Layout, snapshot_id: str) -> Snapshot:
    """The snapshot; raises UsageFault if it does not exist, BrokenFile if its file is invalid."""
    path = path_of(layout, snapshot_id)
    row = State(layout).json(f"{names.SNAPSHOTS}/{snapshot_id}.json") if runs.is_id(snapshot_id) else None
    if row is None:
        raise UsageFault(f"There is no snapshot '{snapshot_id[:80]}'. See: {command('snapshot list')}")
    try:
        found = schema.record(Snapshot, row, "a run writes")
    except (TypeError, schema.InvalidField) as fault:
        message = str(fault) if isinstance(fault, schema.InvalidField) else "not a snapshot"
        raise BrokenFile(path, message, line=1, remedy=_look()) from None
    lengths = [row for row in found.grown.values() if row is not None]
    if not all(_is_mark(row) for row in lengths) or [*map(type, found.raw)] != [int, str]:
        raise BrokenFile(path, "it has an invalid length", line=1, remedy=_look())
    return found


def _is_mark(row: object) -> bool:
    return isinstance(row, list) and [*map(type, row)] == [str, int]


def _look() -> str:
    return f"See: {command('snapshot list')}"


def then(layout: Layout, found: Snapshot, only: Iterable[str] = _past_state.EVERY) -> PastState:
    """The state, or `only` these files of it, at the snapshot."""
    marks = {name: (digest, 0) for name, digest in found.live.items()}
    marks |= {name: ("", row[1]) for name, row in found.grown.items() if row is not None}
    log = marks.get(names.RUN_LOG, ("", 0))[1]
    restores = _past_state.restores(layout)
    era = next((one for one in restores if one.kept == found.run), None)
    era = era or next((one for one in restores if one.log >= log), None)
    return _past_state.resolve(
        StateSource(layout, era), StateRecord(found.at, found.commit, marks, found.raw, found.entries), only
    )


def listed(layout: Layout, most: int) -> list[SnapshotSummary]:
    """The newest snapshots, oldest first; a broken one has its fault."""
    mission.check_format(layout)
    return [_row(layout, *one) for one in islice(_newest(layout), most)][::-1]


def _newest(layout: Layout) -> Iterator[tuple[str, str, str]]:
    """(id, time, description) of each snapshot, newest first: those of finished runs, and those before a restore."""
    state, restores = State(layout), _past_state.restores(layout)[::-1]
    for start, one in runs.placed(layout):
        while restores and restores[0].log > start:
            made = restores.pop(0)
            yield made.kept, made.at, f"before the restore of {made.to}"
        if state.exists(f"{names.SNAPSHOTS}/{one.run}.json"):
            yield one.run, one.at, " ".join(filter(None, ("after", one.role, one.feature, one.said)))
    yield from ((made.kept, made.at, f"before the restore of {made.to}") for made in restores)


def _row(layout: Layout, snapshot_id: str, at: str, what: str) -> SnapshotSummary:
    row = SnapshotSummary(id=snapshot_id, at=at, what=what, commit="", features="")
    try:
        found = load(layout, snapshot_id)
        queue = queue_of(then(layout, found, (names.FEATURES,)))
        return row.replace(commit=found.commit, features=f"{len(features.passed(queue))} of {len(queue)}")
    except (BrokenFile, UsageFault) as fault:
        return row.replace(fault=str(fault))


def queue_of(found: PastState) -> list[features.Feature]:
    """The features of a past state. Raises BrokenFile if they are not recorded or do not parse."""
    return features.parse(found.known(names.FEATURES), f"{names.FEATURES} of {found.at or NOW}")


def now(layout: Layout) -> PastState:
    """The present state."""
    state = State(layout)
    data = {name: state.data(name) for name in _past_state.EVERY}
    return PastState(
        at="",
        commit=workplace.position(layout).head,
        files={name: one for name, one in data.items() if one is not None},
        unknown={},
        inexact={},
    )


def of(layout: Layout, name: str) -> PastState:
    """The state of a snapshot, or `now`."""
    return now(layout) if name == NOW else then(layout, load(layout, name))


def diff(layout: Layout, one: str, two: str) -> list[str]:
    """The changes between two snapshots: features field by field, a unified diff of the other readable files, and the commits.
    Raises BrokenFile if a file is not recorded, which never counts as unchanged."""
    before, after, lines = of(layout, one), of(layout, two), list[str]()
    for name in COMPARED_FILES:
        old, new = before.known(name), after.known(name)
        if old != new and name == names.FEATURES:
            lines += _features_diff(queue_of(before), queue_of(after))
        elif old != new:
            left, right = ((data or b"").decode("utf-8", "backslashreplace").split("\n") for data in (old, new))
            found = difflib.unified_diff(left, right, f"{one}/{name}", f"{two}/{name}", lineterm="", n=1)
            lines += [*islice(found, DIFF_LINES)]
    if before.commit != after.commit:
        lines.append(f"code: git diff {before.commit[:12]} {after.commit[:12]}")
    return lines


def _features_diff(before: list[features.Feature], after: list[features.Feature]) -> list[str]:
    """A line for each changed feature, with its fields."""
    old, new = ({one.id: one.asdict() for one in queue} for queue in (before, after))
    lines = [f"{name}: gone" for name in old.keys() - new.keys()]
    for name, row in new.items():
        was = old.get(name)
        if was is None:
            lines.append(f"{name}: new, {row['status']}, {row['title']}")
        elif was != row:
            changed = {key for key in row if row[key] != was[key]}
            fields = [f"{key} {was[key]} -> {row[key]}" for key in sorted(changed - {"notes"})]
            fields += [f"notes {len(was['notes'])} -> {len(row['notes'])}"] if "notes" in changed else []
            lines.append(f"{name}: {', '.join(fields)}")
    return lines


def is_whole(layout: Layout, found: PastState) -> list[str]:
    """A line for each file of a state that is not recorded, or not exact."""
    lines = [f"{name}: {why}" for name, why in found.unknown.items()]
    return lines + [
        f"{layout.folders.relative(State(layout).path(name))}: {why}" for name, why in found.inexact.items()
    ]


def value(layout: Layout, name: str) -> dict[str, Any]:
    """A snapshot as one value: `files` {file, bytes, digest}, `features` (None if they are not recorded), `faults`."""
    found = load(layout, name)
    state = then(layout, found)
    rows = [{"file": one, "bytes": len(data), "digest": encoding.digest(data)} for one, data in state.files.items()]
    return {
        **{key: getattr(found, key) for key in ("at", "commit", "identity")},
        "id": found.run,
        "files": rows,
        "features": None if names.FEATURES in state.unknown else _rows(state),
        "faults": is_whole(layout, state),
    }


def _rows(found: PastState) -> list[dict[str, Any]]:
    return [{name: getattr(one, name) for name in ("id", "status", "attempts", "title")} for one in queue_of(found)]


def due(where: Layout, run_id: str) -> dict[str, Any]:
    """The features at the start of a run, and the decision, which is the run. Raises BrokenFile if they are not recorded."""
    context = runs.context(where, run_id)
    found = _past_state.at(where, run_id, (names.FEATURES,))
    words = " ".join(filter(None, (context.role, context.feature)))
    return {"run": run_lookup.title(where, run_id), "at": context.at, "due": words, "features": _rows(found)}


def remembered(where: Layout, run_id: str) -> dict[str, Any]:
    """summary.md and MEMORY.md at the start of a run: `files` {name: text}, `unknown` {name: why it is not recorded}. For an
    older record the summary comes from the prompt."""
    found = _past_state.at(where, run_id, (names.SUMMARY, names.MEMORY))
    if names.SUMMARY in found.unknown:
        rows = rebuild.rows_of(where, run_id) or []
        asked = next((row["object"] for row in rows if row.get("source", "").endswith(f"/{names.SUMMARY}")), "")
        if asked:
            found.files[names.SUMMARY] = objects.get(where, asked)
            del found.unknown[names.SUMMARY]
    short = {os.path.basename(one): one for one in (names.SUMMARY, names.MEMORY)}
    return {
        "run": run_lookup.title(where, run_id),
        "at": found.at,
        "files": {one: found.files.get(name, b"").decode("utf-8", "replace") for one, name in short.items()},
        "unknown": {one: found.unknown[name] for one, name in short.items() if name in found.unknown},
    }
