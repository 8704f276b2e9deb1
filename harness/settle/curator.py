"""The curator: compacts raw entries into MEMORY.md, MEMORY.md into summary.md, and moves recurring notes to the identities.

A run compacts what waits in batches, each of bounded size. `plan` is pure: it computes from the disk all that a batch will
write. `apply` writes it: the identities first, then archive, pages and curated.json in one journal, and with the last batch
the shortened raw.md. After a crash a repeated run loses and duplicates nothing.
"""

from __future__ import annotations

import functools

from harness.base import clock
from harness.base.errors import BrokenFile, Busy
from harness.base.record import Record
from harness.git import repository
from harness.memory import archive, identity, pages, raw, similarity, waiting
from harness.memory.archive import Archived, Move
from harness.memory.compaction import Compaction, Group, Inputs, Occurrence, features_of, note_of
from harness.memory.identity import Evidence, Graduation
from harness.memory.pages import Curated
from harness.memory.waiting import BOUND, Bound
from harness.store import files, journal, names
from harness.store.layout import Layout, identity_folder
from harness.store.state import Changes, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.open_run import Run

FAILURES = ("fail", "avoid")
NOTES = ("lesson", "avoid", "decision", "context", "fail")
WORKER = "worker"
PERSON = "person"


class CurationPlan(Record):
    """All that `apply` writes, and in `before` the inputs. Without waiting entries there is nothing to write."""

    before: Inputs
    curated: Curated
    memory: str | None
    summary: str | None
    archived: list[Archived] = []
    moves: list[Move] = []
    evidence: list[Evidence] = []
    graduations: list[Graduation] = []


# ---- notes that graduate


class _OtherMissions:
    """The evidence of other missions, found by meaning."""

    def __init__(self, before: Inputs) -> None:
        self.indexes = {True: similarity.Index(), False: similarity.Index()}
        self.evidence: dict[tuple[bool, int], list[Evidence]] = {}
        for one in before.evidence:
            if one.mission != before.mission:
                failure = one.tag in identity.FAILURES
                self.evidence.setdefault((failure, self.indexes[failure].place(one.text)), []).append(one)

    def like(self, group: Group, text: str) -> list[Evidence]:
        """The evidence of other missions with the meaning of `text`."""
        failure = group.kind in FAILURES
        found = self.indexes[failure].find(text) if self.indexes[failure].known else None
        return [] if found is None else self.evidence[(failure, found)]


def graduates(compaction: Compaction) -> tuple[list[Evidence], list[Graduation]]:
    """New evidence, and the notes that go to an identity: `_recurs` has the three rules.

    Only notes that may leave the mission count, and only groups with a new occurrence, so nothing graduates twice.
    """
    before, other_missions = compaction.before, _OtherMissions(compaction.before)
    own = identity.own_names(before.project_names)
    travels = functools.cache(lambda text: identity.may_travel(text, own))  # the same words are noted again and again
    known = {role: identity.ItemIndex(identity.parse(content).items("")) for role, content in before.identities.items()}
    evidence: list[Evidence] = []
    found: list[Graduation] = []
    for group in compaction.groups.of(*NOTES):
        if not any(one.is_new for one in group.occurrences):
            continue  # most groups: no text is searched
        occurrences = [one for one in group.occurrences if travels(one.text)]
        if not any(one.is_new for one in occurrences):
            continue
        others = other_missions.like(group, occurrences[0].text)
        made = _graduation(group, occurrences, others, before.mission)
        index = known.get(made.role)
        goes = _recurs(group, occurrences, others) or bool(
            index and index.find(identity.shown_text(made.tag, made.text))
        )
        if goes:
            found.append(made)
        if goes or group.kind in FAILURES:
            more = [one for one in occurrences if goes or one.is_new]
            evidence += [
                Evidence(mission=before.mission, run=one.run, **{**one.entry.asdict(), "text": one.text})
                for one in more
            ]
    return evidence, found


def _of_two_workers(group: Group, occurrences: list[Occurrence]) -> bool:
    """Whether workers of two features noted the same trick."""
    return group.kind == "lesson" and len(features_of(v.entry for v in occurrences if v.entry.role == WORKER)) > 1


def _recurs(group: Group, occurrences: list[Occurrence], others: list[Evidence]) -> bool:
    """A failure in two missions; a trick of two workers; a convention noted again after it was in memory."""
    return bool(others) if group.kind in FAILURES else _of_two_workers(group, occurrences) or group.was_known


def _graduation(group: Group, occurrences: list[Occurrence], others: list[Evidence], mission: str) -> Graduation:
    """The note as it would graduate: a failure or a trick of two workers to workers, else to the role that noted it last."""
    role = next((one.entry.role for one in reversed(occurrences) if one.entry.role != PERSON), WORKER)
    if group.kind in FAILURES or _of_two_workers(group, occurrences) or not identity.is_role(role):
        role = WORKER
    missions = list(dict.fromkeys([*(one.mission for one in others), mission]))
    return Graduation(
        role=role,
        text=occurrences[0].text,
        tag=occurrences[0].entry.tag,
        missions=missions,
        count=len(others) + len(occurrences),
    )


# ---- the plan, and its application


def plan(before: Inputs) -> CurationPlan:
    """All that one batch writes; `apply` completes `curated` with the place in raw.md. Raises BrokenFile where the lines of
    people leave no room on a page."""
    if not before.waiting:
        return CurationPlan(before=before, curated=before.curated, memory=before.memory, summary=before.summary)
    old, stop = before.curated, before.curated.folded + len(before.waiting)
    if [entry.seq for entry in before.waiting] != list(range(old.folded, stop)):
        raise ValueError("the waiting entries do not follow the compacted ones")
    compaction = Compaction(before)
    for entry in before.waiting:
        compaction.take(entry)
    archived = compaction.lay_out()
    summary = pages.summarise(compaction.page, before.summary, compaction.ours.__contains__, before.places[1])
    evidence, graduations = graduates(compaction)
    first = pages.first_seq(stop) if before.is_last else old.first_seq
    return CurationPlan(
        before=before,
        curated=Curated(generation=old.generation + 1, first_seq=first, folded=stop),
        memory=pages.render_page(compaction.page),
        summary=summary,
        archived=archived,
        moves=compaction.moves,
        evidence=evidence,
        graduations=graduations,
    )


def gather(
    layout: Layout,
    folder: str,
    mission: str,
    run: str,
    today: str,
    project_names: Iterable[str] = (),
    *,
    bound: Bound = BOUND,
    earlier: Inputs | None = None,
) -> Inputs:
    """The inputs, read from disk under one lock; `folder` has the identities. `bound`: how many entries are compacted at once,
    and how many archived ones are compared with them; `earlier`: the inputs of this run's batch before.

    Raises BrokenFile where a file does not parse, or archive, raw.md and curated.json contradict each other.
    """
    with files.Lock(layout.state_lock):
        journal.finish_journal(layout)
        curated = pages.parse_curated(files.read(layout.curated), layout.curated)
        memory, summary = files.read_text(layout.memory), files.read_text(layout.summary)
        known = archive.newest(layout.archive, curated.folded, bound.entries, bound.bytes)
        batch = waiting.batch(layout.raw, curated.folded, _start(layout, curated), bound)
    return Inputs(
        mission=mission,
        run=run,
        today=today,
        waiting=batch.entries,
        end=batch.end,
        crc=batch.crc,
        is_last=batch.is_last,
        known=_known(earlier) if earlier else None,
        curated=curated,
        memory=memory,
        summary=summary,
        archive=known,
        ours=_of_older_entries(layout, known, memory, summary) if earlier is None else earlier.ours,
        evidence=identity.evidence(folder),
        identities=identity.texts(folder),
        project_names=frozenset(project_names),
        places=(layout.relative(layout.memory), layout.relative(layout.summary)),
    )


def _known(earlier: Inputs) -> frozenset[str]:
    """The items of MEMORY.md before the run's first batch; a later batch finds those, too, that the run has made itself."""
    if earlier.known is not None:
        return earlier.known
    page = pages.parse_page(earlier.memory, pages.MEMORY_TITLES)
    return frozenset(item.text for title in pages.MEMORY_TITLES for item in page.items(title))


def _of_older_entries(layout: Layout, known: list[Archived], memory: str | None, summary: str | None) -> frozenset[str]:
    """The notes on the summary that only entries older than the `known` have: what is left without an author, people wrote."""
    oldest = known[0].seq if known else 0
    page, short = pages.parse_page(memory, pages.MEMORY_TITLES), pages.parse_page(summary, pages.SUMMARY_TITLES)
    wanted = {item.text for title in pages.SUMMARY_TITLES for item in short.items(title)} if oldest else set()
    wanted -= {item.text.removeprefix(pages.AVOID_MARK) for title in pages.MEMORY_TITLES for item in page.items(title)}
    wanted -= {note_of(raw.parse_line(row.entry, row.seq)) for row in known} if wanted else set()
    found: set[str] = set()
    for row in archive.backwards(layout.archive, known[-1].seq + 1) if wanted else ():
        found |= wanted & {note_of(raw.parse_line(row.entry, row.seq))}
        if found == wanted:
            break
    return frozenset(found)


def _start(layout: Layout, curated: Curated) -> int:
    """The byte of raw.md where what waits begins; raises BrokenFile where archived lines are gone from it."""
    found = waiting.start(layout, curated)
    if found is None:
        lines = sum(block.count(b"\n") for block in files.blocks(layout.raw))
        fault = f"has {lines} whole lines, and needs at least {curated.folded - curated.first_seq}"
        remedy = "raw.md is append-only. Put the first lines back: the compacted ones are 'entry' in archive.jsonl."
        raise BrokenFile(layout.raw, fault, remedy=remedy)
    return found


def apply(layout: Layout, folder: str, plan: CurationPlan) -> None:
    """Write a plan; `folder` has the identities. Entries appended since then stay in raw.md and wait.

    Raises Busy where another compaction or a person changed the inputs of the plan.
    """
    before = plan.before
    if not before.waiting:
        return
    identity.record(folder, plan.evidence, plan.graduations, before.today)
    with files.Lock(layout.state_lock):
        journal.finish_journal(layout)
        _check_unchanged(layout, before)
        changes = Changes()
        rows = [archive.render_archived(row) for row in plan.archived]
        changes.append(names.ARCHIVE, b"".join(rows + [archive.render_move(move) for move in plan.moves]))
        for name, old, new in (
            (names.MEMORY, before.memory, plan.memory),
            (names.SUMMARY, before.summary, plan.summary),
        ):
            if new is not None and new != old:
                changes.put(name, new.encode())
        cut = 0
        if before.is_last:
            cut = waiting.before(layout.raw, before.end, plan.curated.folded - plan.curated.first_seq)
            changes.put_blocks(names.RAW, files.blocks(layout.raw, cut, waiting.COPIED))
        place = plan.curated.replace(offset=before.end - cut, crc=waiting.checksum(layout.raw, before.end, cut))
        changes.put(names.CURATED, pages.render_curated(place))
        State(layout).commit(changes, locked=True)


def _check_unchanged(layout: Layout, before: Inputs) -> None:
    """The caller holds the state lock."""
    now = pages.parse_curated(files.read(layout.curated), layout.curated)
    if now.generation != before.curated.generation:
        raise Busy(f"{layout.curated}: another curator was faster. Nothing is lost; run the curator again.")
    texts = ((layout.memory, before.memory), (layout.summary, before.summary))
    changed = [path for path, old in texts if files.read_text(path) != old]
    if waiting.checksum(layout.raw, before.end) != before.crc:
        changed.append(layout.raw)
    if changed:
        raise Busy(f"{changed[0]} changed while the curator worked, and was left alone. Run the curator again.")


def compact(
    layout: Layout,
    folder: str,
    mission: str,
    run: str,
    today: str,
    project_names: Iterable[str] = (),
    *,
    bound: Bound = BOUND,
    earlier: Inputs | None = None,
) -> CurationPlan:
    """Gather, plan and apply one batch; returns the plan."""
    made = plan(gather(layout, folder, mission, run, today, project_names, bound=bound, earlier=earlier))
    apply(layout, folder, made)
    return made


def compact_all(
    layout: Layout,
    folder: str,
    mission: str,
    run: str,
    today: str,
    project_names: Iterable[str] = (),
    *,
    bound: Bound = BOUND,
) -> tuple[int, int]:
    """Compact all that waits, batch by batch; returns how many entries, and how many of their notes graduated."""
    folded, graduated, earlier = 0, 0, None
    while earlier is None or not earlier.is_last:
        made = compact(layout, folder, mission, run, today, project_names, bound=bound, earlier=earlier)
        folded, graduated = folded + len(made.archived), graduated + len(made.graduations)
        earlier = made.before.replace(waiting=[], archive=[], evidence=[])
        del made  # the next batch needs its room
    return folded, graduated


def prepare(asked: Run) -> bool:
    """No agent is asked: code computes the compaction, and an agent's operations are not applied yet."""
    return False


def settle(asked: Run) -> None:
    """The curator's run: all that waits is compacted, by code."""
    run, outcome = asked.opened, asked.outcome
    names = {*repository.tracked_names(run.checkout), run.mission.id}
    for feature in outcome.features:
        names |= {feature.id, *feature.claims}
    today = clock.day(clock.now())
    before = identity.items(identity_folder())
    folded, _ = compact_all(run.layout, identity_folder(), run.mission.id, run.id, today, names)
    there = identity.items(identity_folder())
    counts = f"{folded} notes folded, {len(there - before)} new in identities ({len(there)} in all)"
    outcome.reason = outcome.reason or counts
