"""What the curator does: raw entries into MEMORY.md, MEMORY.md into summary.md, and what recurs into the identities.

`plan` is pure: from what is on disk it computes everything that will be written. `apply` writes it: the identities first,
then archive, pages, curated.json and the cut raw.md in one journal. Cut anywhere, doing it again loses and doubles nothing.
"""

from __future__ import annotations

from harness.base import clock
from harness.base.errors import BrokenFile, Busy
from harness.base.record import Record
from harness.git import repository
from harness.memory import identity, pages, raw, similarity
from harness.memory.compaction import Before, Fold, Group, Voice, features_of
from harness.memory.identity import Evidence, Graduation
from harness.memory.pages import Archived, Curated, Move
from harness.store import files, journal
from harness.store.layout import Layout, identity_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.open_run import Run

FAILURES = ("fail", "avoid")
NOTES = ("lesson", "avoid", "decision", "context", "fail")
WORKER = "worker"
PERSON = "person"


class CurationPlan(Record):
    """Everything that `apply` writes, and in `before` what it was computed from. Nothing waiting: nothing to write."""

    before: Before
    curated: Curated
    memory: str | None
    summary: str | None
    archived: list[Archived] = []
    moves: list[Move] = []
    evidence: list[Evidence] = []
    graduations: list[Graduation] = []


# ---- what graduates


class Elsewhere:
    """What other missions said, found by what it says."""

    def __init__(self, before: Before) -> None:
        self.indexes = {True: similarity.Index(), False: similarity.Index()}
        self.voices: dict[tuple[bool, int], list[Evidence]] = {}
        for one in before.evidence:
            if one.mission != before.mission:
                failure = one.tag in identity.FAILURES
                self.voices.setdefault((failure, self.indexes[failure].place(one.text)), []).append(one)

    def like(self, group: Group, text: str) -> list[Evidence]:
        """The evidence of other missions that says the same."""
        failure = group.kind in FAILURES
        found = self.indexes[failure].find(text)
        return [] if found is None else self.voices[(failure, found)]


def graduates(fold: Fold) -> tuple[list[Evidence], list[Graduation]]:
    """New evidence, and what goes to an identity: `_recurs` has the three rules.

    Only what may leave the mission counts, and only groups with a new voice are looked at, so nothing graduates twice.
    """
    before, elsewhere = fold.before, Elsewhere(fold.before)
    own = identity.own_names(before.project_names)
    held = {role: identity.ItemIndex(identity.parse(content).items("")) for role, content in before.identities.items()}
    evidence: list[Evidence] = []
    found: list[Graduation] = []
    for group in fold.groups.of(*NOTES):
        if not any(voice.is_new for voice in group.voices):
            continue
        voices = [voice for voice in group.voices if identity.may_travel(voice.text, own)]
        if not any(voice.is_new for voice in voices):
            continue
        others = elsewhere.like(group, voices[0].text)
        one = _graduation(group, voices, others, before.mission)
        index = held.get(one.role)
        goes = _recurs(group, voices, others) or bool(index and index.find(identity.shown_text(one.tag, one.text)))
        if goes:
            found.append(one)
        if goes or group.kind in FAILURES:
            evidence += [_evidence(voice, before.mission) for voice in voices if goes or voice.is_new]
    return evidence, found


def _recurs(group: Group, voices: list[Voice], others: list[Evidence]) -> bool:
    """A failure in two missions; a trick of two workers; a convention noted again after it was in memory."""
    if group.kind in FAILURES:
        return bool(others)
    workers = features_of(voice.entry for voice in voices if voice.entry.role == WORKER)
    return (group.kind == "lesson" and len(workers) > 1) or group.was_known


def _graduation(group: Group, voices: list[Voice], others: list[Evidence], mission: str) -> Graduation:
    """What would go to the identity: to workers where it is a failure or two of them said it, else to who said it last."""
    role = next((voice.entry.role for voice in reversed(voices) if voice.entry.role != PERSON), WORKER)
    tricks = group.kind == "lesson" and len(features_of(v.entry for v in voices if v.entry.role == WORKER)) > 1
    if group.kind in FAILURES or tricks or not identity.is_role(role):
        role = WORKER
    missions = list(dict.fromkeys([*(one.mission for one in others), mission]))
    return Graduation(
        role=role, text=voices[0].text, tag=voices[0].entry.tag, missions=missions, count=len(others) + len(voices)
    )


def _evidence(voice: Voice, mission: str) -> Evidence:
    entry = voice.entry
    return Evidence(
        mission=mission,
        feature=entry.feature,
        run=voice.run,
        seq=entry.seq,
        role=entry.role,
        at=entry.at,
        tag=entry.tag,
        text=voice.text,
    )


# ---- the plan, and carrying it out


def plan(before: Before) -> CurationPlan:
    """What one fold writes. Raises BrokenFile where what people wrote leaves a page no room."""
    if not before.waiting:
        return CurationPlan(before=before, curated=before.curated, memory=before.memory, summary=before.summary)
    expected = range(before.curated.folded, before.curated.folded + len(before.waiting))
    if [entry.seq for entry in before.waiting] != list(expected):
        raise ValueError("the waiting entries do not follow what is folded")
    fold = Fold(before)
    for entry in before.waiting:
        fold.take(entry)
    archived = fold.lay_out()
    summary = pages.summarise(fold.page, before.summary, fold.ours.__contains__, before.places[1])
    evidence, graduations = graduates(fold)
    return CurationPlan(
        before=before,
        curated=Curated(
            generation=before.curated.generation + 1, first_seq=pages.first_seq(expected.stop), folded=expected.stop
        ),
        memory=pages.render_page(fold.page),
        summary=summary,
        archived=archived,
        moves=fold.moves,
        evidence=evidence,
        graduations=graduations,
    )


def gather(
    layout: Layout, folder: str, mission: str, run: str, today: str, project_names: Iterable[str] = ()
) -> Before:
    """What is on disk, read in one moment; `folder` has the identities.

    Raises BrokenFile where a file does not parse, or archive, raw.md and curated.json do not add up.
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
    return Before(
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
    """Write a plan; `folder` has the identities. Entries appended since it was made stay in raw.md, waiting.

    Raises Busy where another fold, or a person, changed what the plan was made from.
    """
    before = plan.before
    if not before.waiting:
        return
    identity.record(folder, plan.evidence, plan.graduations, before.today)
    with files.Lock(layout.state_lock):
        journal.finish_journal(layout)
        _check_unmoved(layout, before)
        book = journal.Journal(layout)
        rows = [pages.render_archived(row) for row in plan.archived]
        book.append(layout.archive, b"".join(rows + [pages.render_move(move) for move in plan.moves]))
        pages_now = (layout.memory, before.memory, plan.memory), (layout.summary, before.summary, plan.summary)
        for path, old, new in pages_now:
            if new is not None and new != old:
                book.replace(path, new.encode())
        book.replace(layout.raw, _kept_lines(layout, before.curated, plan.curated))
        book.replace(layout.curated, pages.render_curated(plan.curated))
        book.commit(locked=True)


def _check_unmoved(layout: Layout, before: Before) -> None:
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
        fault = f"has {lines} whole lines, where at least {expected} belong"
        remedy = "raw.md only grows. Put the first lines back: those that were folded are 'entry' in archive.jsonl."
        raise BrokenFile(layout.raw, fault, remedy=remedy)


def fold(
    layout: Layout, folder: str, mission: str, run: str, today: str, project_names: Iterable[str] = ()
) -> CurationPlan:
    """Gather, plan and apply; the plan says what was done."""
    made = plan(gather(layout, folder, mission, run, today, project_names))
    apply(layout, folder, made)
    return made


def prepare(asked: Run) -> bool:
    """Nobody is asked: what is folded is computed, and an agent's operations are not carried out yet."""
    return False


def settle(asked: Run) -> None:
    """The curator's run: one fold of everything that waits, by code."""
    run, outcome = asked.opened, asked.outcome
    names = {*repository.tracked_names(run.layout.project), run.mission.id}
    for feature in outcome.features:
        names |= {feature.id, *feature.claims}
    made = fold(run.layout, identity_folder(), run.mission.id, run.id, clock.day(clock.now()), names)
    outcome.reason = outcome.reason or f"{len(made.archived)} notes folded, {len(made.graduations)} in identities"
