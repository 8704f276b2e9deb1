"""The curator: compacts raw entries into MEMORY.md, MEMORY.md into summary.md, and moves recurring notes to the identities.

`plan` is pure: it computes from the disk all that will be written. `apply` writes it: the identities first, then archive,
pages, curated.json and the shortened raw.md in one journal. After a crash a repeated run loses and duplicates nothing.
"""

from __future__ import annotations

from harness.base import clock
from harness.base.errors import BrokenFile, Busy
from harness.base.record import Record
from harness.git import repository
from harness.memory import identity, pages, raw, similarity
from harness.memory.compaction import Compaction, Group, Inputs, Occurrence, features_of
from harness.memory.identity import Evidence, Graduation
from harness.memory.pages import Archived, Curated, Move
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
        found = self.indexes[failure].find(text)
        return [] if found is None else self.evidence[(failure, found)]


def graduates(compaction: Compaction) -> tuple[list[Evidence], list[Graduation]]:
    """New evidence, and the notes that go to an identity: `_recurs` has the three rules.

    Only notes that may leave the mission count, and only groups with a new occurrence, so nothing graduates twice.
    """
    before, other_missions = compaction.before, _OtherMissions(compaction.before)
    own = identity.own_names(before.project_names)
    known = {role: identity.ItemIndex(identity.parse(content).items("")) for role, content in before.identities.items()}
    evidence: list[Evidence] = []
    found: list[Graduation] = []
    for group in compaction.groups.of(*NOTES):
        if not any(one.is_new for one in group.occurrences):
            continue  # most groups: no text is searched
        occurrences = [one for one in group.occurrences if identity.may_travel(one.text, own)]
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
    """All that one compaction writes. Raises BrokenFile where the lines of people leave no room on a page."""
    if not before.waiting:
        return CurationPlan(before=before, curated=before.curated, memory=before.memory, summary=before.summary)
    expected = range(before.curated.folded, before.curated.folded + len(before.waiting))
    if [entry.seq for entry in before.waiting] != list(expected):
        raise ValueError("the waiting entries do not follow the compacted ones")
    compaction = Compaction(before)
    for entry in before.waiting:
        compaction.take(entry)
    archived = compaction.lay_out()
    summary = pages.summarise(compaction.page, before.summary, compaction.ours.__contains__, before.places[1])
    evidence, graduations = graduates(compaction)
    return CurationPlan(
        before=before,
        curated=Curated(
            generation=before.curated.generation + 1, first_seq=pages.first_seq(expected.stop), folded=expected.stop
        ),
        memory=pages.render_page(compaction.page),
        summary=summary,
        archived=archived,
        moves=compaction.moves,
        evidence=evidence,
        graduations=graduations,
    )


def gather(
    layout: Layout, folder: str, mission: str, run: str, today: str, project_names: Iterable[str] = ()
) -> Inputs:
    """The inputs, read from disk under one lock; `folder` has the identities.

    Raises BrokenFile where a file does not parse, or archive, raw.md and curated.json contradict each other.
    """
    with files.Lock(layout.state_lock):
        journal.finish_journal(layout)
        curated = pages.parse_curated(files.read(layout.curated), layout.curated)
        lines = files.read(layout.raw) or b""
        texts = files.read_text(layout.memory), files.read_text(layout.summary)
        archive, _ = pages.parse_archive(files.read(layout.archive), layout.archive)
    pages.check_accounts(curated, archive, layout.archive)
    entries = raw.parse(lines, curated.first_seq)
    _check_raw(layout, curated, len(entries))
    window = curated.folded - curated.first_seq
    return Inputs(
        mission=mission,
        run=run,
        today=today,
        waiting=entries[window:],
        lines=lines.decode("utf-8", "replace").split("\n")[window:-1],
        curated=curated,
        memory=texts[0],
        summary=texts[1],
        archive=archive,
        evidence=identity.evidence(folder),
        identities=identity.texts(folder),
        project_names=frozenset(project_names),
        places=(layout.relative(layout.memory), layout.relative(layout.summary)),
    )


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
        rows = [pages.render_archived(row) for row in plan.archived]
        changes.append(names.ARCHIVE, b"".join(rows + [pages.render_move(move) for move in plan.moves]))
        for name, old, new in (
            (names.MEMORY, before.memory, plan.memory),
            (names.SUMMARY, before.summary, plan.summary),
        ):
            if new is not None and new != old:
                changes.put(name, new.encode())
        changes.put(names.RAW, _kept_lines(layout, before.curated, plan.curated))
        changes.put(names.CURATED, pages.render_curated(plan.curated))
        State(layout).commit(changes, locked=True)


def _check_unchanged(layout: Layout, before: Inputs) -> None:
    """The caller holds the state lock."""
    now = pages.parse_curated(files.read(layout.curated), layout.curated)
    if now.generation != before.curated.generation:
        raise Busy(f"{layout.curated}: another curator was faster. Nothing is lost; run the curator again.")
    for path, old in ((layout.memory, before.memory), (layout.summary, before.summary)):
        if files.read_text(path) != old:
            raise Busy(f"{path} changed while the curator worked, and was left alone. Run the curator again.")


def _kept_lines(layout: Layout, old: Curated, new: Curated) -> bytes:
    """The bytes of raw.md from the new first line on, torn last line and all."""
    lines = (files.read(layout.raw) or b"").split(b"\n")
    _check_raw(layout, old.replace(folded=new.folded), len(lines) - 1)
    return b"\n".join(lines[new.first_seq - old.first_seq :])


def _check_raw(layout: Layout, curated: Curated, lines: int) -> None:
    expected = curated.folded - curated.first_seq
    if lines < expected:
        fault = f"has {lines} whole lines, and needs at least {expected}"
        remedy = "raw.md is append-only. Put the first lines back: the compacted ones are 'entry' in archive.jsonl."
        raise BrokenFile(layout.raw, fault, remedy=remedy)


def compact(
    layout: Layout, folder: str, mission: str, run: str, today: str, project_names: Iterable[str] = ()
) -> CurationPlan:
    """Gather, plan and apply; returns the plan."""
    made = plan(gather(layout, folder, mission, run, today, project_names))
    apply(layout, folder, made)
    return made


def prepare(asked: Run) -> bool:
    """No agent is asked: code computes the compaction, and an agent's operations are not applied yet."""
    return False


def settle(asked: Run) -> None:
    """The curator's run: one compaction of all that waits, by code."""
    run, outcome = asked.opened, asked.outcome
    names = {*repository.tracked_names(run.workplace), run.mission.id}
    for feature in outcome.features:
        names |= {feature.id, *feature.claims}
    made = compact(run.layout, identity_folder(), run.mission.id, run.id, clock.day(clock.now()), names)
    outcome.reason = outcome.reason or f"{len(made.archived)} notes folded, {len(made.graduations)} in identities"
