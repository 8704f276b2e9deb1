"""summary.md, layer L2: the most valuable lessons as plain lines, in every prompt. Pure.

It is derived from the lessons that MEMORY.md has, or would have without people's lines. Avoid, Lessons and Decisions
are filled in turn within 40 lines and 800 tokens; a person's pinned lines come first. Two lessons that share words
specific to the mission may be paraphrases, with a probability that grows with the shared weight. The next line is the
one with the highest gain: its own worth plus, by that probability, the worth of its paraphrases that no line covers
yet. The first heading says what else MEMORY.md has.
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

MIN_TERM_WEIGHT = 150_000  # minimum weight of a word that makes two lessons candidates
EVEN = 1.1  # shared weight, in words, at which half of the pairs are paraphrases
STEEP = 4.0  # growth of that probability with the shared weight
APART = 0.2  # reduction if both have identifiers, but none in common
OTHER_KIND = 2.0  # reduction if their kinds differ, such as advice and failure
MIN_SHARED_WEIGHT = 500_000  # below this, two lessons are never paraphrases
MIN_CHANCE = 0.02  # a smaller probability counts as 0
OWN_LINE = 1  # the owner of a line whose lesson an agent declared distinct


def derive(made: Compaction) -> tuple[str, set[int]]:
    """(text of summary.md, lessons that it shows)."""
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
    """The number of lines in each section of MEMORY.md, in words."""
    counts = {title: sum(title_of(one) == title for one in lessons) for title in pages.MEMORY_TITLES}
    return ", ".join(f"{title} {count}" for title, count in counts.items() if count)


class _Standing:
    """The worth of the lessons of MEMORY.md, and the probability that two of them are paraphrases."""

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
        """{pair of lessons: shared weight of two wordings}, in millionths of a word that only they have."""
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
        """The evidence that two wordings are of one lesson, in millionths of a word that only they have."""
        told = self.index.telling(one, other)
        is_apart = apart(one.names - other.terms, other.names - one.terms) and not one.names & other.names
        return told - int(APART * MILLION) * is_apart

    def _chance(self, one: Lesson, other: Lesson, shared: float) -> float:
        """The probability that two lessons are paraphrases, 0 to 1."""
        if one.own and other.own:
            return 0.0
        logit = STEEP * (shared - EVEN) - (0.0 if one.kind == other.kind else OTHER_KIND)
        chance = 1 / (1 + exp(-logit))
        return 0.0 if chance >= MIN_CHANCE and self._differ(one, other) else chance

    def _differ(self, one: Lesson, other: Lesson) -> bool:
        """Whether two of their wordings are close but not equivalent."""
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
    """{heading: its lessons}; context comes after the others."""
    return {
        pages.AVOID: [one for one in lessons if is_avoid(one)],
        pages.LESSONS: [one for one in lessons if one.kind in ("lesson", "context")],
        pages.CURRENT: [one for one in lessons if one.kind == DECISION],
    }


class _Choice:
    """Greedy choice of lines, one heading at a time, by gain, within the limits of lines and tokens."""

    def __init__(self, standing: _Standing, room: tuple[int, int], taken: Index) -> None:
        self.standing, self.taken = standing, taken
        self.lines, self.left = room
        self.chosen: dict[str, list[tuple[str, int]]] = {title: [] for title in pages.SUMMARY_TITLES}
        self.ids: set[int] = set()
        self.untold = dict.fromkeys(standing.worth, 1.0)

    def gain(self, lesson: Lesson) -> tuple[bool, float, int, int]:
        """The gain of a line for a lesson: the worth of everything it may cover that no line covers yet. A lesson of
        higher worth will get its own line, so it counts only as much as this one."""
        standing = self.standing
        own, newest = standing.worth[lesson.id]
        value = own * self.untold[lesson.id]
        for number, chance in sorted(standing.near[lesson.id].items()):
            value += min(own, standing.worth[number][0]) * self.untold[number] * chance
        return lesson.kind != "context", value, newest, -lesson.id

    def fill(self, offers: dict[str, list[Lesson]]) -> None:
        """Fill with lines that fit, each for the heading with the fewest."""
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
    """Whether a line of the summary already states the lesson, by the weights of the whole mission."""
    note = words(compared(lesson.kind, lesson.text))
    for _, number in taken.near(note):
        if lesson.own and taken.owners[number] == OWN_LINE:
            continue  # an agent declared them distinct
        other = words(taken.texts[number])
        if index.relation(note, other, index.cosine(note, other), decisions=False) == SAME:
            return True
    return False
