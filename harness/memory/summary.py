"""summary.md, L2: the lessons worth most, bare, in every prompt. It is derived from the lessons on MEMORY.md alone. Pure.

Avoid, Lessons and Decisions are filled in turn, the best first, within 40 lines and 800 tokens; what a person pinned comes first.
Lessons that share several rare words are probably one in other words: they are a topic, which has one line, in the words of its
best lesson, and the evidence of all; the others come where room is left. The first heading says what more MEMORY.md has.
"""

from __future__ import annotations

from harness.memory import edits, pages, tokens
from harness.memory.compaction import Compaction, is_avoid, title_of
from harness.memory.lessons import ADVICE, DECISION, Lesson, compared
from harness.memory.similarity import RARE, SAME, Index
from harness.memory.words import words

ALIKE = 0.8  # of the closeness of two notes: on a page of forty lines two that are nearly the same are one too many
TOPIC = 1.6  # rare words that two lessons of one topic share
TOLD_APART = 0.42  # so close, and not the same: what the two say differs
SUPPORT = 0.8  # of the worth of another lesson of a topic


def derive(made: Compaction) -> tuple[str, set[int]]:
    """The text of summary.md, and the lessons that it shows."""
    page, lessons = made.short, [made.lessons.all[number] for number in made.shown]
    edits.prepare(page, pages.SUMMARY_TITLES)
    pinned = edits.pinned(made.page)
    for title, lines in pinned.items():
        edits.place_lines(page, title, lines)
    edits.dense(page)
    if lessons:
        page.section(pages.LESSONS).heading += f"{pages.MORE}{_counts(lessons)}"
    room = (pages.SUMMARY_LINES - page.size(), pages.SUMMARY_TOKENS - tokens.estimated(pages.render_page(page)))
    holding = [one for one in lessons if one.holds and one.kind != "other" and title_of(one) != pages.HISTORY]
    standing = _Standing(made, holding)
    choice = _Choice(room, edits.hand_index(page))
    for lead in (True, False):
        choice.fill(_offers(standing, [one for one in holding if standing.leads(one) == lead]))
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
    """What the lessons of MEMORY.md are worth, and their topics."""

    def __init__(self, made: Compaction, lessons: list[Lesson]) -> None:
        self.worth = {one.id: made.worth(one) for one in lessons}
        self.index = made.lessons.advice
        self.notes = {one.id: [compared(one.kind, text) for text in one.texts] for one in lessons}
        self.topic: dict[int, list[Lesson]] = {one.id: [one] for one in lessons}
        ranked = sorted(lessons, key=lambda one: (self.worth[one.id], -one.id), reverse=True)
        self._gather([one for one in ranked if one.kind != DECISION], self._shared(made, ranked))

    def _shared(self, made: Compaction, lessons: list[Lesson]) -> dict[tuple[int, int], int]:
        """How much the words tell that two wordings of two lessons share, in millionths of a word that only they have."""
        count = sum(one.kind in ADVICE for one in made.lessons.all.values())
        wordings = [(one.id, key) for one in lessons for key in self.notes[one.id]]
        listed: dict[str, list[int]] = {}
        for place, (_, key) in enumerate(wordings):
            for term in self.index.terms_of(key):
                listed.setdefault(term, []).append(place)
        pairs: dict[tuple[int, int], int] = {}
        for term, places in listed.items():
            rarity = self.index.rarity(term, count) if len(places) > 1 else 0
            for number, place in enumerate(places) if rarity >= RARE else ():
                for other in places[:number]:
                    pairs[other, place] = pairs.get((other, place), 0) + rarity
        found: dict[tuple[int, int], int] = {}
        for (better, place), rarity in pairs.items():
            both = wordings[better][0], wordings[place][0]
            found[both] = max(found.get(both, 0), rarity)
        return found

    def _gather(self, ranked: list[Lesson], shared: dict[tuple[int, int], int]) -> None:
        """Each lesson joins the topic that it shares most with, if it shares enough and nothing there tells them apart."""
        near: dict[int, list[tuple[int, int]]] = {}
        for (better, number), rarity in shared.items():
            near.setdefault(number, []).append((better, rarity))
        topics: list[list[Lesson]] = []
        for one in ranked:
            sums: dict[int, int] = {}
            for number, rarity in near.get(one.id, ()):
                key = id(self.topic[number])
                sums[key] = sums.get(key, 0) + rarity
            able = [topic for topic in topics if sums.get(id(topic), 0) >= TOPIC * 1e6 * len(topic)]
            able.sort(key=lambda topic: -sums[id(topic)] / len(topic))
            mine = next((topic for topic in able if not any(self._differ(one, other) for other in topic)), None)
            if mine is None:
                topics.append(self.topic[one.id])
            else:
                mine.append(one)
                self.topic[one.id] = mine

    def _differ(self, one: Lesson, other: Lesson) -> bool:
        """Whether two of their wordings are close, and not the same."""
        index = self.index
        for mine in self.notes[one.id]:
            for yours in self.notes[other.id]:
                cosine = index.closeness(mine, yours)
                if cosine < TOLD_APART:
                    continue
                if index.relation(words(mine), words(yours), cosine, decisions=False) != SAME:
                    return True
        return False

    def leads(self, lesson: Lesson) -> bool:
        """Whether it is the best of its topic."""
        return self.topic[lesson.id][0] is lesson

    def value(self, lesson: Lesson) -> tuple[float, int]:
        """The worth of a lesson, with that of its topic where it leads that."""
        own, newest = self.worth[lesson.id]
        others = self.topic[lesson.id][1:] if self.leads(lesson) else ()
        return own + SUPPORT * sum(self.worth[other.id][0] for other in others), newest


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

    def __init__(self, room: tuple[int, int], taken: Index) -> None:
        self.taken = taken
        self.lines, self.left = room
        self.chosen: dict[str, list[tuple[str, int]]] = {title: [] for title in pages.SUMMARY_TITLES}
        self.ids: set[int] = set()

    def fill(self, offers: dict[str, list[Lesson]]) -> None:
        """Take what fits, each line for the heading that has fewest."""
        waiting = {title: found[::-1] for title, found in offers.items()}
        while self.lines > 0 and any(waiting.values()):
            title = min(filter(waiting.get, waiting), key=lambda title: len(self.chosen[title]))
            lesson = waiting[title].pop()
            if not _is_said(self.taken, lesson):
                self._take(title, lesson)

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
