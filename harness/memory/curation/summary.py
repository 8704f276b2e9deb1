"""summary.md, L2: the lessons worth most, bare, in every prompt. It is derived from the lessons that MEMORY.md has, or
would have if people had written nothing there. Pure.

Avoid, Lessons and Decisions are filled in turn within 40 lines and 800 tokens; what a person pinned comes first. Two lessons that
share words of the mission's own may be one in other words, with a chance that grows with what they share. The next line is the
one that adds most to what is told: its own worth and, by that chance, that of lessons like it, as far as no line tells them
already. The first heading says what more MEMORY.md has.
"""

from __future__ import annotations

from math import exp

from harness.base import tokens
from harness.memory import edits, pages
from harness.memory._contrast import apart
from harness.memory._similarity import MILLION, MIN_COSINE_SAME, MIN_WEIGHT_SAME, SAME, Index
from harness.memory._words import NoteWords, words
from harness.memory.curation.compaction import Compaction, is_avoid, title_of
from harness.memory.lessons import DECISION, WARNINGS, Lesson, compared

MIN_TERM_WEIGHT = 150_000  # a word that tells less makes no two lessons candidates
EVEN = 1.1  # words of its own that two lessons share of which every second is one in other words
STEEP = 4.0  # how fast that chance grows with what they share
APART = 0.2  # and what it takes away that they name different things, and none in common
OTHER_KIND = 2.0  # and falls where one is advice and the other, say, a failure
MIN_SHARED_WEIGHT = 500_000  # less makes no two lessons one
MIN_CHANCE = 0.02  # a smaller one counts as none
OWN_LINE = 1  # the owner of a line whose lesson an agent knows from others


def derive(made: Compaction) -> tuple[str, set[int]]:
    """The text of summary.md, and the lessons that it shows."""
    page, lessons = made.short, [made.lessons.all[number] for number in made.worthy]
    edits.prepare(page, pages.SUMMARY_TITLES)
    pinned = edits.pinned(made.page)
    for title, lines in pinned.items():
        edits.place_lines(page, title, lines)
    edits.dense(page)
    if made.shown:
        page.section(
            pages.LESSONS
        ).heading += f"{pages.MORE_IN_MEMORY}{_counts([made.lessons.all[one] for one in made.shown])}"
    room = (pages.SUMMARY_LINES - page.size(), pages.SUMMARY_TOKENS - tokens.estimated(pages.render_page(page)))
    holding = [one for one in lessons if one.holds and one.kind != "other" and title_of(one) != pages.HISTORY]
    standing = _Standing(made, holding)
    choice = _Choice(standing, room, edits.hand_index(page))
    choice.fill(_offers(holding))
    written = {line: edits.PERSONS for lines in pinned.values() for line in lines}
    for title, found in choice.chosen.items():
        edits.place_lines(page, title, [*pinned[title], *(line for line, _ in found)])
        written = dict(found) | written
    made.lessons.written["summary"] = written
    return pages.render_page(page), choice.ids


def _counts(lessons: list[Lesson]) -> str:
    """How many lines each section of MEMORY.md has."""
    counts = {title: sum(title_of(one) == title for one in lessons) for title in pages.MEMORY_TITLES}
    return ", ".join(f"{title} {count}" for title, count in counts.items() if count)


class _Standing:
    """What the lessons of MEMORY.md are worth, and how likely two of them are one in other words."""

    def __init__(self, made: Compaction, lessons: list[Lesson]) -> None:
        self.worth = {one.id: made.worth(one) for one in lessons}
        self.index = made.lessons.advice
        self.lessons = {one.id: one for one in lessons}
        self.notes = {one.id: [compared(one.kind, text) for text in one.texts] for one in lessons}
        self.near: dict[int, dict[int, float]] = {one.id: {} for one in lessons}
        advice = [one for one in lessons if one.kind != DECISION]
        for (one, other), rarity in self._shared(advice).items():
            chance = self._chance(self.lessons[one], self.lessons[other], rarity / MILLION)
            if chance >= MIN_CHANCE:
                self.near[one][other] = self.near[other][one] = chance

    def _shared(self, lessons: list[Lesson]) -> dict[tuple[int, int], int]:
        """How much the words tell that two wordings of two lessons share, in millionths of a word that only they have."""
        wordings = [(one.id, key) for one in lessons for key in self.notes[one.id]]
        listed: dict[str, list[int]] = {}
        for place, (_, key) in enumerate(wordings):
            for term in self.index.terms_of(key):
                listed.setdefault(term, []).append(place)
        sums: dict[tuple[int, int], int] = {}
        for term, places in listed.items():
            told = self.index.told(term) if len(places) > 1 else 0
            for number, place in enumerate(places) if told >= MIN_TERM_WEIGHT else ():
                for other in places[:number]:
                    sums[other, place] = sums.get((other, place), 0) + told
        found: dict[tuple[int, int], int] = {}
        for (other, place), most in sums.items():
            both = wordings[other][0], wordings[place][0]
            if both[0] != both[1] and most > max(found.get(both, 0), MIN_SHARED_WEIGHT):
                found[both] = max(found.get(both, 0), self._told(words(wordings[other][1]), words(wordings[place][1])))
        return dict(sorted(found.items()))

    def _told(self, one: NoteWords, other: NoteWords) -> int:
        """How much two wordings tell that they are of one lesson, in millionths of a word that only they have."""
        told = self.index.telling(one, other)
        is_apart = apart(one.names - other.terms, other.names - one.terms) and not one.names & other.names
        return told - int(APART * MILLION) * is_apart

    def _chance(self, one: Lesson, other: Lesson, shared: float) -> float:
        """How likely two lessons are one in other words, 0 to 1."""
        if one.own and other.own:
            return 0.0
        logit = STEEP * (shared - EVEN) - (0.0 if one.kind == other.kind else OTHER_KIND)
        chance = 1 / (1 + exp(-logit))
        return 0.0 if chance >= MIN_CHANCE and self._differ(one, other) else chance

    def _differ(self, one: Lesson, other: Lesson) -> bool:
        """Whether two of their wordings are close, and not the same."""
        index, warnings = self.index, {one.kind, other.kind} <= WARNINGS
        for mine in self.notes[one.id]:
            for yours in self.notes[other.id]:
                cosine, most = index.closeness(mine, yours)
                if cosine < MIN_COSINE_SAME and most < MIN_WEIGHT_SAME:
                    continue
                note, other_note = words(mine), words(yours)
                if cosine < MIN_COSINE_SAME and index.shared(note, other_note) < MIN_WEIGHT_SAME:
                    continue
                if index.relation(note, other_note, cosine, decisions=False, warnings=warnings) != SAME:
                    return True
        return False


def _offers(lessons: list[Lesson]) -> dict[str, list[Lesson]]:
    """The lessons for each heading; context comes behind the others."""
    return {
        pages.AVOID: [one for one in lessons if is_avoid(one)],
        pages.LESSONS: [one for one in lessons if one.kind in ("lesson", "context")],
        pages.CURRENT: [one for one in lessons if one.kind == DECISION],
    }


class _Choice:
    """Lines for each heading, taken in turn within the room in lines and tokens: what adds most to what is told."""

    def __init__(self, standing: _Standing, room: tuple[int, int], taken: Index) -> None:
        self.standing, self.taken = standing, taken
        self.lines, self.left = room
        self.chosen: dict[str, list[tuple[str, int]]] = {title: [] for title in pages.SUMMARY_TITLES}
        self.ids: set[int] = set()
        self.untold = dict.fromkeys(standing.worth, 1.0)

    def gain(self, lesson: Lesson) -> tuple[bool, float, int, int]:
        """What a line for a lesson adds: the worth of all that it may tell, as far as no line tells that already. What is worth
        more than the lesson itself has a line of its own to come, and counts as little as the lesson."""
        standing = self.standing
        own, newest = standing.worth[lesson.id]
        value = own * self.untold[lesson.id]
        for number, chance in sorted(standing.near[lesson.id].items()):
            value += min(own, standing.worth[number][0]) * self.untold[number] * chance
        return lesson.kind != "context", value, newest, -lesson.id

    def fill(self, offers: dict[str, list[Lesson]]) -> None:
        """Take what fits, each line for the heading that has fewest."""
        while self.lines > 0 and any(offers.values()):
            title = min(filter(offers.get, offers), key=lambda title: len(self.chosen[title]))
            lesson = max(offers[title], key=self.gain)
            offers[title].remove(lesson)
            if not _is_said(self.taken, self.standing.index, lesson):
                self._take(title, lesson)

    def _take(self, title: str, lesson: Lesson) -> None:
        line = f"- {edits.shown(lesson.text)}"
        cost = tokens.estimated(line + "\n")
        if cost > self.left:
            return
        self.chosen[title].append((line, lesson.id))
        self.ids.add(lesson.id)
        self.taken.add(compared(lesson.kind, lesson.text), OWN_LINE if lesson.own else 0)
        self.lines, self.left = self.lines - 1, self.left - cost
        self.untold[lesson.id] = 0.0
        for number, chance in self.standing.near[lesson.id].items():
            self.untold[number] *= 1 - chance


def _is_said(taken: Index, index: Index, lesson: Lesson) -> bool:
    """Whether a line of the summary says the lesson already, weighed by all that the mission knows."""
    note = words(compared(lesson.kind, lesson.text))
    for _, number in taken.near(note):
        if lesson.own and taken.owners[number] == OWN_LINE:
            continue  # an agent knows them apart
        other = words(taken.texts[number])
        if index.relation(note, other, index.cosine(note, other), decisions=False) == SAME:
            return True
    return False
