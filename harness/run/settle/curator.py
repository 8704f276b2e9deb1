"""The curator: compacts raw entries into lessons, lessons into MEMORY.md and summary.md, and recurring ones into identities.

A run compacts waiting entries in batches of bounded size. `plan` is pure: it computes everything that a batch writes.
`apply` writes it: the identities first, then archive, lessons, pages and curated.json in one journal, with the last
batch also the shortened raw.md. After a crash a repeated run loses and duplicates nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import chain
from typing import Any

from harness.agents import registry
from harness.base import clock
from harness.base.errors import BrokenFile, LockBusy
from harness.base.record import Record
from harness.git import repository
from harness.memory import archive, backlog, identity, lessons, pages, rebuild
from harness.memory.archive import ArchiveEntry, LessonChange
from harness.memory.backlog import BOUND, BatchLimit, Window
from harness.memory.curation import graduation, operations, private_names, summary
from harness.memory.curation.compaction import Compaction, Inputs
from harness.memory.curation.graduation import GraduationPlan
from harness.memory.curation.growth import Graduation
from harness.memory.pages import CurationProgress
from harness.mission import roles
from harness.mission.open_run import OpenRun
from harness.state import files, journal, names, raw
from harness.state.layout import Layout, command, identity_folder
from harness.state.state import Changes, State

MAX_UNTRACKED_PATHS = 5000  # untracked paths counted as the project's
PLANS = 10  # tries of a batch, against missions that write identities meanwhile
ASK_AT = 20  # number of waiting notes from which an agent is asked
LOOKED_AT = 200  # newest entries of the archive that are checked: 3 ms
WINDOW_BYTES = raw.WINDOW * raw.MAX_LINE_BYTES


class CurationPlan(GraduationPlan):
    """Everything that `apply` writes, with the inputs in `before`; empty without waiting entries, edited pages and owed
    graduations. `candidates`: for an identity, not yet confirmed by an agent or a person. `taken`: the number of valid
    operations of an agent; `wrong`: faults of the others."""

    curated: CurationProgress
    memory: str | None
    summary: str | None
    rows: list[ArchiveEntry | LessonChange] = []
    candidates: list[Graduation] = []
    taken: int = 0
    wrong: list[str] = []

    @property
    def is_believed(self) -> bool:
        """Whether code took at least half of the agent's operations."""
        return self.taken >= len(self.wrong)

    @property
    def archived(self) -> list[ArchiveEntry]:
        """The entries, each with its disposition."""
        return [row for row in self.rows if isinstance(row, ArchiveEntry)]


class CurationSite(Record):
    """The site of a curation: the mission, the identity folder, the run, its day, and the project's names. `symbols`
    filters names that the project's code defines; `counted`: whether counts alone move a lesson to an identity."""

    layout: Layout
    folder: str
    mission: str
    run: str
    today: str
    project_names: frozenset[str] = frozenset()
    symbols: Callable[[list[str]], set[str]] = graduation.no_symbols
    counted: bool = False
    bound: BatchLimit = BOUND


# ---- the plan, and its application


def plan(before: Inputs, rows: list[Any] = []) -> CurationPlan:  # noqa: B006 - it is never changed
    """The plan of one batch; `apply` completes `curated` with the offset in raw.md. `rows`: an agent's operations.
    Raises BrokenFile if a page has a heading twice."""
    old, stop = before.curated, before.curated.folded + len(before.waiting)
    if not before.waiting and not _is_edited(before):
        return CurationPlan(
            before=before, curated=old, known=before.known, memory=before.memory, summary=before.summary
        )
    if [entry.seq for entry in before.waiting] != list(range(old.folded, stop)):
        raise ValueError("the waiting entries do not follow the compacted ones")
    made = Compaction(before, operations.alone(rows))
    for entry in before.waiting:
        made.take(entry)
    taken, wrong = operations.Operations(made).apply(rows)
    made.lay_out()
    short, promoted = summary.derive(made)
    evidence, graduations = graduation.graduates(made)
    memory = pages.render_page(made.page)
    made.lessons.pages = pages.digests(memory, short)
    first = pages.first_seq(stop) if before.waiting and before.is_last else old.first_seq
    return CurationPlan(
        before=before,
        curated=old.replace(generation=old.generation + 1, first_seq=first, folded=stop),
        known=made.lessons,
        memory=memory,
        summary=short,
        rows=made.archived(promoted, {one.lesson for one in graduations}),
        evidence=evidence,
        graduations=graduations,
        candidates=made.candidates,
        taken=taken,
        wrong=wrong,
    )


def _is_edited(before: Inputs) -> bool:
    """Whether a page differs from what the curator wrote, as far as known."""
    return bool(before.known.pages) and before.known.pages != pages.digests(before.memory, before.summary)


def gather(place: CurationSite) -> Inputs:
    """The inputs, read from disk under one lock.

    Raises BrokenFile if a file does not parse, or archive, raw.md and curated.json contradict each other.
    """
    layout = place.layout
    with files.Lock(layout.path(names.STATE_LOCK)):
        journal.finish_journal(layout)
        curated = pages.parse_curated(files.read(layout.path(names.CURATED)), layout.path(names.CURATED))
        memory, short = files.read_text(layout.path(names.MEMORY)), files.read_text(layout.path(names.SUMMARY))
        # This raises for a broken archive; `doctor` checks all of it.
        archive.newest(layout.path(names.ARCHIVE), curated.folded, LOOKED_AT, WINDOW_BYTES)
        known = lessons.parse(files.read(layout.path(names.LESSONS)), curated.folded, curated.generation)
        evidence, identities, forgotten = identity.seen(place.folder)
        batch = backlog.batch(layout.path(names.RAW), curated.folded, _start(layout, curated), place.bound)
    return Inputs(
        mission=place.mission,
        run=place.run,
        today=place.today,
        waiting=batch.entries,
        known=known
        or rebuild.lessons(
            layout.path(names.ARCHIVE), curated, {one.seq for one in evidence if one.mission == place.mission}
        ),
        end=batch.end,
        crc=batch.crc,
        is_last=batch.is_last,
        curated=curated,
        memory=memory,
        summary=short,
        evidence=evidence,
        identities=identities,
        project_names=place.project_names,
        symbols=place.symbols,
        counted=place.counted,
        forgotten=forgotten,
        places=(layout.shown(names.MEMORY), layout.shown(names.SUMMARY)),
    )


def _start(layout: Layout, curated: CurationProgress) -> int:
    """The offset in raw.md of the first waiting entry; raises BrokenFile if archived lines are missing."""
    found = backlog.start(layout, curated)
    if found is None:
        lines, least = (
            sum(block.count(b"\n") for block in files.blocks(layout.path(names.RAW))),
            curated.folded - curated.first_seq,
        )
        fault = f"has {lines} whole lines, and needs at least {least}"
        fault = fault if lines < least else f"does not begin with the last {least} lines that were compacted"
        fix = command("doctor --fix")
        remedy = (
            f"raw.md is append-only. Put the first lines back: they are 'entry' in archive.jsonl, and {fix} does it."
        )
        raise BrokenFile(layout.path(names.RAW), fault, remedy=remedy)
    return found


def apply(layout: Layout, folder: str, plan: CurationPlan) -> bool:
    """Write a plan; `folder` has the identities. Entries appended meanwhile stay in raw.md and wait. An unwritable
    identity folder becomes a warning of the plan, and a later curation writes its part. Returns False, without writing,
    if another mission changed the folder since the plan read it. Raises LockBusy if another compaction or a person
    changed the inputs of the plan.
    """
    before = plan.before
    is_same = plan.curated == before.curated
    if is_same and not plan.known.owed:
        return True
    is_recorded = graduation.record(folder, plan)
    if is_same and is_recorded and plan.known.owed:
        return True  # the folder is not writable yet
    with files.Lock(layout.path(names.STATE_LOCK)):
        journal.finish_journal(layout)
        _check_unchanged(layout, before)
        if not is_recorded:
            return False
        changes = Changes()
        changes.append(names.ARCHIVE, b"".join(map(archive.render, plan.rows)))
        for name, old, new in (
            (names.MEMORY, before.memory, plan.memory),
            (names.SUMMARY, before.summary, plan.summary),
        ):
            if new is not None and new != old:
                changes.put(name, new.encode())
        place = plan.curated.replace(generation=before.curated.generation + 1)
        if before.waiting and before.is_last:
            kept = _window(layout, plan)
            rest = files.blocks(layout.path(names.RAW), before.end, backlog.COPIED)
            changes.put_blocks(names.RAW, chain(kept.blocks(), rest))
            place = place.replace(offset=kept.size(), crc=kept.checksum())
        elif before.waiting:
            place = place.replace(offset=before.end, crc=backlog.checksum(layout.path(names.RAW), before.end))
        changes.put(names.CURATED, pages.render_curated(place))
        changes.put(names.LESSONS, lessons.render(plan.known, place.folded, place.generation))
        State(layout).commit(changes, locked=True)
    return True


def _window(layout: Layout, plan: CurationPlan) -> Window:
    """The lines of raw.md that stay before the waiting ones; gated lines as in the archive."""
    first, end = plan.curated.first_seq, plan.before.end
    earlier = archive.newest(layout.path(names.ARCHIVE), plan.before.curated.folded, raw.WINDOW, WINDOW_BYTES)
    gated = [row for row in (*earlier, *plan.archived) if row.disposition == "gated"]
    rows = {row.seq - first: row.entry.encode("utf-8", "replace") for row in gated}
    return backlog.window(
        layout.path(names.RAW), backlog.before(layout.path(names.RAW), end, plan.curated.folded - first), end, rows
    )


def _check_unchanged(layout: Layout, before: Inputs) -> None:
    """Raise LockBusy if the inputs changed. The caller holds the state lock."""
    now = pages.parse_curated(files.read(layout.path(names.CURATED)), layout.path(names.CURATED))
    if now.generation != before.curated.generation:
        raise LockBusy(
            f"{layout.path(names.CURATED)}: another curator was faster. Nothing is lost; run the curator again."
        )
    texts = ((layout.path(names.MEMORY), before.memory), (layout.path(names.SUMMARY), before.summary))
    changed = [path for path, old in texts if files.read_text(path) != old]
    if before.waiting and backlog.checksum(layout.path(names.RAW), before.end) != before.crc:
        changed.append(layout.path(names.RAW))
    if changed:
        raise LockBusy(f"{changed[0]} changed while the curator worked, and was left alone. Run the curator again.")


def compact(place: CurationSite, rows: list[Any] | None = None) -> CurationPlan:
    """Gather, plan and apply one batch; returns the plan. `rows`: an agent's operations."""
    for _ in range(PLANS):
        made = _planned(place, rows)
        if apply(place.layout, place.folder, made):
            return made
    raise LockBusy(f"{place.folder} changed while the curator worked, and was left alone. Run the curator again.")


def _planned(place: CurationSite, rows: list[Any] | None) -> CurationPlan:
    """The plan; an agent that errs in most of its operations is not believed in the rest."""
    before = gather(place)
    made = plan(before, rows if rows and before.is_last else [])
    return made if made.is_believed else plan(gather(place)).replace(wrong=made.wrong)


def compact_all(place: CurationSite, rows: list[Any] | None = None) -> tuple[int, int, str]:
    """Compact all waiting entries, batch by batch; returns (number of entries, number of graduated notes, a message
    about the agent's operations or an unwritable identity folder)."""
    folded, graduated, is_last, message = 0, 0, False, ""
    while not is_last:
        made = compact(place, rows)
        folded, graduated = folded + len(made.archived), graduated + len(made.graduations)
        is_last, message = made.before.is_last, _message(made, rows)
        del made  # free memory for the next batch
    return folded, graduated, message


def _message(made: CurationPlan, rows: list[Any] | None) -> str:
    """The message about a plan for a person."""
    most = "" if made.is_believed else ", since most are wrong"
    taken = f"{made.taken} of {len(rows)} operations of the agent taken{most}" if rows else ""
    left = ""
    if made.candidates and not rows:
        left = f"{len(made.candidates)} may go to an identity once you note it, too: {made.candidates[0].text}"
    return "; ".join(filter(None, [taken, *made.wrong[:1], left, made.warning]))


def offer(run: OpenRun, own: frozenset[str] = frozenset()) -> str:
    """The computed plan for an agent's prompt; "" with fewer notes than ASK_AT and no candidate for an identity. Writes
    nothing. `own`: the paths and ids of the project."""
    before = gather(_place(run, own))
    made = Compaction(before)
    for entry in before.waiting:
        made.take(entry)
    graduation.graduates(made)
    return operations.offer(made) if made.candidates or len(before.waiting) >= ASK_AT else ""


def _place(run: OpenRun, own: frozenset[str]) -> CurationSite:
    today, folder = clock.day(clock.now()), identity_folder()
    place = CurationSite(
        layout=run.layout, folder=folder, mission=run.mission.id, run=run.id, today=today, project_names=own
    )
    counted = run.settings.identity == "counted"
    return place.replace(symbols=lambda found: repository.defined_names(run.checkout, found), counted=counted)


def prepare(run: OpenRun) -> bool:
    """Whether to ask an agent: if a real one is configured, and ASK_AT notes wait or one may go to an identity. Its
    prompt has the computed plan."""
    outcome = run.outcome
    names = roles.agents_of(run.settings, run.role)
    if not names or set(names) <= {registry.PLAYBOOK, registry.NONE} or run.context.trigger == "leaving":
        return False
    outcome.prompt.offer = offer(run, _own_names(run))
    return bool(outcome.prompt.offer)


def _own_names(run: OpenRun) -> frozenset[str]:
    """The paths, names and ids of the project."""

    own = {*repository.tracked_names(run.checkout), run.mission.id, *_names_of(run.checkout, run.layout)}
    for folder in dict.fromkeys((run.checkout, run.layout.folders.top)):  # has a person's untracked files
        own |= {*repository.other_names(folder, MAX_UNTRACKED_PATHS)}
    for feature in run.outcome.features:
        own |= {feature.id, *feature.claims}
    return frozenset(own)


def _names_of(checkout: str, layout: Layout) -> set[str]:
    """The project's own names: its folders, and its Python and Node packages."""
    found = {os.path.basename(folder) for folder in (layout.folders.top, layout.folders.project)}
    for name in ("pyproject.toml", "package.json"):
        text = files.read_text(os.path.join(checkout, name)) or ""
        found |= {
            one.rpartition("/")[2]
            for one in re.findall(r"""^\s*"?name"?\s*[=:]\s*["']([^"'\s]+)["']""", text, re.M)[:1]
        }
    return {private_names.PROJECT + name for name in found if name}


def settle(run: OpenRun) -> None:
    """Compact all waiting entries by code, with the operations of an agent's reply."""
    outcome = run.outcome
    before = identity.items(identity_folder())
    folded, _, message = compact_all(_place(run, _own_names(run)), (outcome.reply or {}).get("operations"))
    there = identity.items(identity_folder())
    counts = f"{folded} notes folded, {len(there - before)} new in identities ({len(there)} in all)"
    is_silent = outcome.prompt.offer and outcome.reply is None and not outcome.reason
    silent = "its agent replied without a ```json harness block" if is_silent else ""
    outcome.reason = "; ".join(filter(None, [outcome.reason or counts, message, silent]))
