"""Graduation: lessons move from a mission to the identities by counted evidence, and how this is recorded.

Three rules make a candidate: a trick noted by workers of two features; a failure in two missions; a convention noted
again, by another run, after it was in memory. Lessons that seem to say the same count together. Evidence of other
missions counts, also that of a single author, and outlives the archive. Lessons that name this project never graduate,
and the rules alone do not suffice: advice is an order to its reader, so the curator's agent must mark a candidate, or a
person note it. With `identity = "counted"` in config.toml the rules suffice, and the line says so.
"""

from __future__ import annotations

import errno
import re
from collections import Counter

from harness.base.errors import VersionConflict
from harness.base.record import Record
from harness.memory import identity
from harness.memory._words import keys, words
from harness.memory.curation import compaction, growth, private_names
from harness.memory.curation.compaction import Compaction, Inputs, Occurrence
from harness.memory.curation.growth import Evidence, Graduation
from harness.memory.lessons import ADVICE, FAILURES, Lesson, Lessons, best_wording, compared, voice_of
from harness.memory.pages import PageItem

WORKER = "worker"
MAX_EVIDENCE_OF_LESSON = 3  # occurrences of a lesson recorded as evidence per mission
MAX_COMPARED = 40  # pieces of evidence compared with one lesson
BY_COUNT = "by counting alone"
SHARED = 2  # words that evidence and lesson must share to be compared
NO_ROOM = f"no room in the {identity.LINES} lines of {{}}.md"
CONVENTION = re.compile(
    r"`|\b(?:use|run|set|pass|call|prefer|never|always|do not|don't|must|should|before|after|instead|with)\b"
    r"|--?\w|[/_.=]\w|[a-z][A-Z]"
)


def no_symbols(_names: list[str]) -> set[str]:
    """The symbol lookup of a mission without code."""
    return set()


class _Others:
    """The evidence of other missions, searchable by words shared with a lesson."""

    def __init__(self, made: Compaction) -> None:
        self.made = made
        self.rows: list[Evidence] = [one for one in made.before.evidence if one.mission != made.before.mission]
        self.listed: dict[str, list[int]] = {}
        for number, one in enumerate(self.rows):
            for word in keys(one.text):
                self.listed.setdefault(word, []).append(number)

    def like(self, lesson: Lesson) -> list[Evidence]:
        """The evidence equivalent to a lesson."""
        index, found = self.made.lessons.index_of(lesson.kind), []
        notes = [words(compared(lesson.kind, text)) for text in lesson.texts[:3]]
        for number in self._candidates(lesson):
            one = self.rows[number]
            other = words(compared("avoid" if one.tag in growth.FAILURES else "lesson", one.text))
            if any(index.is_alike(note, other) for note in notes):
                found.append(one)
        return found

    def _candidates(self, lesson: Lesson) -> list[int]:
        known = {word for text in lesson.texts for word in keys(text)}
        counts = Counter(number for word in known for number in self.listed.get(word, ())[-500:])
        able = [number for number, count in counts.items() if count >= min(SHARED, len(known))]
        return sorted(sorted(able, key=lambda number: (-counts[number], number))[:MAX_COMPARED])


def graduates(made: Compaction) -> tuple[list[Evidence], list[Graduation]]:
    """(new evidence, lessons that graduate now); sets `made.candidates` to the others that may. Only a lesson with a
    new occurrence may graduate, so none does twice."""
    before, others = made.before, _Others(made)
    own = private_names.own_names(before.project_names)
    touched: dict[int, list[Occurrence]] = {}
    for one in made.said:
        lesson = made.lessons.all.get(one.lesson)
        if lesson is not None and lesson.holds and lesson.kind in ADVICE:
            touched.setdefault(one.lesson, []).append(one)
    named = {name for number in touched for text in made.lessons.all[number].texts for name in words(text).names}
    symbols = before.symbols(sorted(named)) if named else set()
    marked = {lesson.id for lesson in map(made.lesson_of, made.marked) if lesson}
    evidence: list[Evidence] = []
    found: list[Graduation] = []
    counted: list[Graduation] = []
    for number, said in touched.items():
        lesson = made.lessons.all[number]
        texts = [
            text for text in lesson.texts if private_names.may_travel(text, own) and not words(text).names & symbols
        ]
        if not texts:
            continue
        if lesson.evidenced < MAX_EVIDENCE_OF_LESSON:
            new = [one for one in said if one.text in texts][: MAX_EVIDENCE_OF_LESSON - lesson.evidenced]
            lesson.evidenced += len(new)
            noted = (one.entry.replace(text=one.text).asdict() for one in new)
            evidence += [Evidence(mission=before.mission, run=before.run, **entry) for entry in noted]
        graduation = _graduation(made, lesson, said, texts, others)
        if graduation is None or identity.is_forgotten(graduation, before.forgotten):
            continue
        of_person = [one.text for one in said if one.entry.role == compaction.PERSON and one.text in texts]
        if number in marked:
            found.append(graduation)
        elif of_person:
            found.append(graduation.replace(text=best_wording(of_person)))
        elif before.counted:
            counted.append(graduation)
        else:
            made.candidates.append(graduation)
    for number, graduation in enumerate(counted):
        if not _is_known(graduation, [*found, *counted[:number]], before):
            text, why = graduation.text + growth.COUNTED, f"{graduation.why}, {BY_COUNT}"
            found.append(graduation.replace(text=text, why=why))
    return evidence, _with_room(made, evidence, found)


def _is_known(one: Graduation, others: list[Graduation], before: Inputs) -> bool:
    """Whether the identity, or one of the others for it, seems to say the same in other words."""
    shown = growth.shown_text(one.tag, one.text)
    texts = [growth.shown_text(other.tag, other.text) for other in others if other.role == one.role]
    items = [PageItem(date="", text=text) for text in texts]
    index = growth.ItemIndex([*identity.parse(before.identities.get(one.role, "")).items(""), *items])
    return index.find(shown) is None and index.alike(shown) is not None


def _with_room(made: Compaction, evidence: list[Evidence], graduations: list[Graduation]) -> list[Graduation]:
    """The graduations for which the identities have room; records the accepted ones, the others, and the lines that leave."""
    before, owed = made.before, made.lessons.owed
    known = [*before.evidence, *(Evidence(**row) for row in owed if "seq" in row), *evidence]
    every = [*(Graduation(**row) for row in owed if "seq" not in row), *graduations]
    crowded: list[Graduation] = []
    for role in dict.fromkeys(one.role for one in every):
        mine = [one for one in every if one.role == role]
        _, without, gone = identity.grown(before.identities.get(role, ""), role, mine, known, before.today)
        crowded += without
        for item in gone if len(without) < len(mine) else ():  # else nothing is written
            made.note("crowded", -1, item.text, NO_ROOM.format(role))
    for one in graduations:
        lesson = made.lessons.all[one.lesson]
        if one in crowded:
            made.change("crowded", lesson, f"{NO_ROOM.format(one.role)}: {one.why}")
        else:
            made.change("graduated", lesson, f"to {one.role}.md: {one.why}")
    return [one for one in graduations if one not in crowded]


def _graduation(
    made: Compaction, lesson: Lesson, said: list[Occurrence], texts: list[str], others: _Others
) -> Graduation | None:
    """The graduation of a lesson, counted with those that seem to say the same; None if no rule applies."""
    alike = made.lessons.alike(lesson)
    here = {voice for one in (lesson, *alike) for voice in one.voices if voice.startswith(WORKER + " ")}
    elsewhere = others.like(lesson)
    missions = list(dict.fromkeys(one.mission for one in elsewhere))
    also = {f"{one.mission} {one.feature}" for one in elsewhere if one.role == WORKER}
    there = [other for other in alike if other.id in made.there]
    again = any(one.again or any(voice_of(one.entry) not in other.voices[-1:] for other in there) for one in said)
    if lesson.kind == "lesson" and len(here) + len(also) > 1:
        role, why = WORKER, "a trick of two workers"
    elif lesson.kind in FAILURES and missions:
        role, why = WORKER, "a failure in two missions"
    elif again and lesson.kind in ("lesson", "avoid", "context") and CONVENTION.search(texts[0]):
        role, why = _role_of(lesson), "a convention, noted again after it was in memory"
    else:
        return None
    text = best_wording(texts)
    tag = "AVOID" if compaction.is_avoid(lesson) or lesson.kind in FAILURES else "TRICK"
    return Graduation(
        role=role,
        text=text,
        tag=tag,
        missions=[*missions, made.before.mission],
        count=len(elsewhere) + sum(one.count for one in (lesson, *alike)),
        lesson=lesson.id,
        why=why,
    )


def _role_of(lesson: Lesson) -> str:
    """The role that noted a convention last; the worker if a person did."""
    role = next((one for one in reversed(lesson.roles) if one != compaction.PERSON), WORKER)
    return role if identity.is_role(role) else WORKER


class GraduationPlan(Record):
    """What a curation that read `before` has for the identities: with what is owed in `known`, and a `warning`."""

    before: Inputs
    known: Lessons
    evidence: list[Evidence] = []
    graduations: list[Graduation] = []
    warning: str = ""


def record(folder: str, plan: GraduationPlan) -> bool:
    """Write a plan's graduations and evidence, and those owed by earlier plans, to the identities. An unwritable folder
    becomes a warning of the plan, and its content is owed. Returns False, without writing, if others changed the folder
    since it was read, because their evidence may change the result."""
    owed = plan.known.owed
    evidence = [Evidence(**row) for row in owed if "seq" in row] + plan.evidence
    graduations = [Graduation(**row) for row in owed if "seq" not in row] + plan.graduations
    if not evidence and not graduations:
        return True
    before = plan.before
    try:
        known = (before.evidence, before.identities, before.forgotten)
        identity.record(folder, evidence, graduations, before.today, known)
        plan.known.owed = []
    except VersionConflict:
        return False
    except PermissionError as fault:
        _owe(plan, evidence, graduations, fault)
    except OSError as fault:
        if fault.errno != errno.EROFS:
            raise
        _owe(plan, evidence, graduations, fault)
    return True


def _owe(plan: GraduationPlan, evidence: list[Evidence], graduations: list[Graduation], fault: OSError) -> None:
    rows = [*evidence, *graduations]
    plan.known.owed = [row.asdict() for row in rows]
    plan.warning = f"{len(rows)} notes wait for the identity folder: {fault.strerror}"
