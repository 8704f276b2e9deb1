"""summary.md, L2: the lessons worth most, bare, in every prompt. It is derived from the lessons on MEMORY.md alone. Pure.

Avoid, Lessons and Decisions are filled in turn, the best first, within 40 lines and 800 tokens; what a person pinned comes first.
The last line says what more MEMORY.md has.
"""

from __future__ import annotations

from harness.memory import edits, pages, tokens
from harness.memory.compaction import Compaction, is_avoid, title_of
from harness.memory.lessons import DECISION, Lesson
from harness.memory.similarity import SAME, Index
from harness.memory.words import words

ALIKE = 0.8  # of the closeness of two notes: on a page of forty lines two that are nearly the same are one too many
LONGEST = 240  # characters of a line


def derive(made: Compaction) -> tuple[str, set[int]]:
    """The text of summary.md, and the lessons that it shows."""
    page, lessons = made.short, [made.lessons.all[number] for number in made.shown]
    edits.prepare(page, pages.SUMMARY_TITLES)
    pinned = edits.pinned(made.page)
    for title, lines in pinned.items():
        edits.place_lines(page, title, lines)
    offers = _offers(made, [one for one in lessons if one.holds and one.kind != "other" and title_of(one) != pages.HISTORY])
    rest = f"{pages.MORE}{_counts(lessons)}" if lessons else ""
    text = pages.render_page(page)
    room = (pages.SUMMARY_LINES - page.size() - bool(rest), pages.SUMMARY_TOKENS - tokens.estimated(f"{text}{rest}\n"))
    chosen = _chosen(offers, room, edits.hand_index(page))
    written = {rest: -1} if rest and room[0] >= 0 and room[1] >= 0 else {}
    for title, found in chosen.items():
        edits.place_lines(page, title, [*pinned[title], *(line for line, _ in found)])
        written |= dict(found)
    edits.dense(page)
    text = pages.render_page(page) + "".join(f"{line}\n" for line in [rest] if line in written)
    made.lessons.written["summary"] = written | {line: -1 for lines in pinned.values() for line in lines}
    return text, {number for found in chosen.values() for _, number in found}


def _counts(lessons: list[Lesson]) -> str:
    """How many lines each section of MEMORY.md has."""
    counts = {title: sum(title_of(one) == title for one in lessons) for title in pages.MEMORY_TITLES}
    return ", ".join(f"{title} {count}" for title, count in counts.items() if count)


def _offers(made: Compaction, lessons: list[Lesson]) -> dict[str, list[Lesson]]:
    """The lessons for each heading, best first."""
    ranked = sorted(lessons, key=made.worth, reverse=True)
    return {
        pages.AVOID: [one for one in ranked if is_avoid(one)],
        pages.LESSONS: [one for one in ranked if one.kind == "lesson"] + [one for one in ranked if one.kind == "context"],
        pages.CURRENT: [one for one in ranked if one.kind == DECISION],
    }


def _chosen(
    offers: dict[str, list[Lesson]], room: tuple[int, int], taken: Index
) -> dict[str, list[tuple[str, int]]]:
    """(line, lesson) for each heading, taken in turn within the room in lines and tokens; one that does not fit, or says what
    another line says, is passed over."""
    lines, left = room
    waiting = {title: iter(found) for title, found in offers.items()}
    chosen: dict[str, list[tuple[str, int]]] = {title: [] for title in offers}
    while waiting and lines > 0:
        for title in list(waiting):
            lesson = next((one for one in waiting[title] if not _is_said(taken, one)), None)
            if lesson is None:
                del waiting[title]
                continue
            line = f"- {shown(lesson.text)}"
            cost = tokens.estimated(line + "\n")
            if cost <= left and lines > 0:
                chosen[title].append((line, lesson.id))
                taken.add(lesson.text, 0)
                lines, left = lines - 1, left - cost
    return chosen


def shown(text: str) -> str:
    """A lesson as a line of the summary shows it."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def _is_said(taken: Index, lesson: Lesson) -> bool:
    """Whether a line of the summary says the lesson already, or nearly."""
    note = words(lesson.text)
    return any(
        cosine >= ALIKE or taken.relation(note, words(taken.texts[number]), cosine, decisions=False) == SAME
        for cosine, number in taken.near(note)
    )
