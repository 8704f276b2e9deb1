"""summary.md, L2: the lessons worth most, bare, in every prompt. It is derived from the lessons on MEMORY.md alone. Pure.

Avoid, Lessons and Decisions are filled in turn, the best first, within 40 lines and 800 tokens; what a person pinned comes first.
The last line says what more MEMORY.md has.
"""

from __future__ import annotations

from math import sqrt

from harness.memory import edits, pages, tokens
from harness.memory.compaction import Compaction, is_avoid, title_of
from harness.memory.lessons import DECISION, Lesson, compared
from harness.memory.similarity import SAME, Index
from harness.memory.words import words

ALIKE = 0.8  # of the closeness of two notes: on a page of forty lines two that are nearly the same are one too many
FLOOR = 10  # lines that each heading has before the best of all headings are taken
NEAR = 0.34  # two lessons may be one in far words
COMMON = 80  # wordings of the page with a word: such a word brings no two lessons near
SUPPORT = 0.3  # of the worth of such a lesson


def derive(made: Compaction) -> tuple[str, set[int]]:
    """The text of summary.md, and the lessons that it shows."""
    page, lessons = made.short, [made.lessons.all[number] for number in made.shown]
    edits.prepare(page, pages.SUMMARY_TITLES)
    pinned = edits.pinned(made.page)
    for title, lines in pinned.items():
        edits.place_lines(page, title, lines)
    holding = [one for one in lessons if one.holds and one.kind != "other" and title_of(one) != pages.HISTORY]
    standing = _Standing(made, holding)
    rest = f"{pages.MORE}{_counts(lessons)}" if lessons else ""
    text = pages.render_page(page)
    room = (pages.SUMMARY_LINES - page.size() - bool(rest), pages.SUMMARY_TOKENS - tokens.estimated(f"{text}{rest}\n"))
    choice = _Choice(standing, room, edits.hand_index(page))
    for apart in (True, False):
        choice.fill(_offers(standing, holding), apart=apart)
    chosen = choice.chosen
    written = {rest: edits.POINTER} if rest and room[0] >= 0 and room[1] >= 0 else {}
    for title, found in chosen.items():
        edits.place_lines(page, title, [*pinned[title], *(line for line, _ in found)])
        written |= dict(found)
    edits.dense(page)
    text = pages.render_page(page) + "".join(f"{line}\n" for line in [rest] if line in written)
    made.lessons.written["summary"] = written | {line: edits.PERSONS for lines in pinned.values() for line in lines}
    return text, {number for found in chosen.values() for _, number in found}


def _counts(lessons: list[Lesson]) -> str:
    """How many lines each section of MEMORY.md has."""
    counts = {title: sum(title_of(one) == title for one in lessons) for title in pages.MEMORY_TITLES}
    return ", ".join(f"{title} {count}" for title, count in counts.items() if count)


class _Standing:
    """What the lessons of MEMORY.md are worth together: those that may be one lesson in far words support each other."""

    def __init__(self, made: Compaction, lessons: list[Lesson]) -> None:
        self.worth = {one.id: made.worth(one) for one in lessons}
        self.near: dict[int, dict[int, float]] = {one.id: {} for one in lessons}
        index = Index()
        for one in lessons:
            known = made.lessons.index_of(one.kind)
            for text in one.texts:
                key = compared(one.kind, text)
                index.add(key, one.id, known.terms_of(key))
        for number, owner in enumerate(index.owners):
            self._compare(index, number, owner)

    def _compare(self, index: Index, number: int, owner: int) -> None:
        """Note the lessons near one of its wordings, with the closeness of their nearest."""
        shared: dict[int, int] = {}
        for term in index.terms[number]:
            square, listed = index.square(term), index.listed[term]
            for other in listed if len(listed) <= COMMON else ():
                if other < number:
                    shared[other] = shared.get(other, 0) + square
        own = index.length(index.terms[number])
        for other, product in shared.items():
            against = index.owners[other]
            cosine = product / (sqrt(own * index.length(index.terms[other])) or 1.0) if product * 6 > own else 0.0
            if cosine >= NEAR and against != owner:
                self.near[owner][against] = max(self.near[owner].get(against, 0.0), cosine)
                self.near[against][owner] = self.near[owner][against]

    def value(self, lesson: Lesson) -> tuple[float, int]:
        """The worth of a lesson with the support that it has."""
        own, newest = self.worth[lesson.id]
        return own + SUPPORT * sum(self.worth[other][0] for other in self.near[lesson.id]), newest


def _offers(standing: _Standing, lessons: list[Lesson]) -> dict[str, list[Lesson]]:
    """The lessons for each heading, best first."""
    ranked = sorted(lessons, key=standing.value, reverse=True)
    return {
        pages.AVOID: [one for one in ranked if is_avoid(one)],
        pages.LESSONS: [one for one in ranked if one.kind == "lesson"]
        + [one for one in ranked if one.kind == "context"],
        pages.CURRENT: [one for one in ranked if one.kind == DECISION],
    }


class _Choice:
    """Lines for each heading, taken in turn within the room in lines and tokens."""

    def __init__(self, standing: _Standing, room: tuple[int, int], taken: Index) -> None:
        self.standing, self.taken = standing, taken
        self.lines, self.left = room
        self.chosen: dict[str, list[tuple[str, int]]] = {title: [] for title in pages.SUMMARY_TITLES}
        self.ids: set[int] = set()

    def fill(self, offers: dict[str, list[Lesson]], *, apart: bool) -> None:
        """Take what fits; `apart`: nothing that is near a chosen lesson, which may be the same in other words."""
        waiting = {
            title: [one for one in found[::-1] if self._is_free(one, apart=apart)] for title, found in offers.items()
        }
        while self.lines > 0 and any(waiting.values()):
            title = self._next(waiting)
            lesson = waiting[title].pop()
            if self._is_free(lesson, apart=apart):
                self._take(title, lesson)

    def _next(self, waiting: dict[str, list[Lesson]]) -> str:
        """The heading that takes a line: the emptiest below FLOOR, then the one with the best lesson."""
        able = [title for title in waiting if waiting[title]]
        low = [title for title in able if len(self.chosen[title]) < FLOOR]
        if low:
            return min(low, key=lambda title: len(self.chosen[title]))
        return max(able, key=lambda title: self.standing.value(waiting[title][-1]))

    def _is_free(self, lesson: Lesson, *, apart: bool) -> bool:
        if lesson.id in self.ids or (apart and not self.ids.isdisjoint(self.standing.near[lesson.id])):
            return False
        return not _is_said(self.taken, lesson)

    def _take(self, title: str, lesson: Lesson) -> None:
        line = f"- {edits.shown(lesson.text)}"
        cost = tokens.estimated(line + "\n")
        if cost <= self.left:
            self.chosen[title].append((line, lesson.id))
            self.ids.add(lesson.id)
            self.taken.add(lesson.text, 0)
            self.lines, self.left = self.lines - 1, self.left - cost


def _is_said(taken: Index, lesson: Lesson) -> bool:
    """Whether a line of the summary says the lesson already, or nearly."""
    note = words(lesson.text)
    return any(
        cosine >= ALIKE or taken.relation(note, words(taken.texts[number]), cosine, decisions=False) == SAME
        for cosine, number in taken.near(note)
    )
