"""summary.md, layer L2: the most valuable lessons as plain lines, in every prompt. Pure.

It is derived from the lessons that MEMORY.md has, or would have without people's lines. Avoid, Lessons and Decisions
are filled in turn within 40 lines and 800 tokens, each with the lesson that most runs noted, then with the newest; a
person's pinned lines come first. Look-alikes stand together with their dates, the newest first. The first heading says
what else MEMORY.md has.
"""

from __future__ import annotations

from harness.base import tokens
from harness.memory import edits, pages
from harness.memory.curation.compaction import Compaction, is_avoid, title_of
from harness.memory.lessons import DECISION, Lesson


def derive(made: Compaction) -> tuple[str, set[int]]:
    """(text of summary.md, lessons that it shows)."""
    page, every = made.short, made.lessons.all
    edits.prepare(page, pages.SUMMARY_TITLES)
    pinned = edits.pinned(made.page)
    for title, lines in pinned.items():
        edits.place_lines(page, title, lines)
    edits.dense(page)
    if made.shown:
        counts = _counts([every[one] for one in made.shown])
        page.section(pages.LESSONS).heading += f"{pages.MORE_IN_MEMORY}{counts}"
    chosen = _chosen(made)
    written = dict[str, int]()
    for title, lessons in chosen.items():
        groups = made.lessons.neighbours(lessons)
        texts = {_line(made, one, dated=len(group) > 1): one.id for group in groups for one in group}
        edits.place_lines(page, title, [*pinned[title], *texts])
        written |= texts
    made.lessons.written["summary"] = written | {line: edits.PERSONS for lines in pinned.values() for line in lines}
    shown = {one.id for lessons in chosen.values() for one in lessons}
    for number in sorted(made.told - shown & every.keys()):
        if every[number].holds and number not in made.said_by_people:
            made.change("demoted", every[number], "other lines of summary.md are worth more")
    return pages.render_page(page), shown


def _counts(lessons: list[Lesson]) -> str:
    """The number of lines in each section of MEMORY.md, in words."""
    counts = {title: sum(title_of(one) == title for one in lessons) for title in pages.MEMORY_TITLES}
    return ", ".join(f"{title} {count}" for title, count in counts.items() if count)


def _chosen(made: Compaction) -> dict[str, list[Lesson]]:
    """{heading: its lessons}: the best that fit, one after the other for the heading with the fewest."""
    page, chosen = made.short, {title: list[Lesson]() for title in pages.SUMMARY_TITLES}
    lines = pages.SUMMARY_LINES - page.size()
    left = pages.SUMMARY_TOKENS - tokens.estimated(pages.render_page(page))
    offers, hand, looks = _offers(made), edits.hand_index(page), dict[int, set[int]]()
    while lines > 0 and any(offers.values()):
        title = min(filter(offers.get, offers), key=lambda title: len(chosen[title]))
        lesson = offers[title].pop(0)
        near = {*made.lessons.near(lesson.kind, lesson.text)}
        like = [one for one in chosen[title] if one.id in near or lesson.id in looks[one.id]]
        undated = [one for one in like if not any(other.id in looks[one.id] for other in chosen[title] if other != one)]
        cost = tokens.estimated(_line(made, lesson, dated=bool(like)) + "\n") + len(undated) * _DATE
        if cost <= left and not edits.is_said(hand, lesson):
            chosen[title].append(lesson)
            looks[lesson.id] = near
            lines, left = lines - 1, left - cost
    return chosen


def _offers(made: Compaction) -> dict[str, list[Lesson]]:
    """{heading: the lessons for it, the best first}; context comes after the others."""
    found = [made.lessons.all[number] for number in made.worthy]
    found = [one for one in found if one.holds and one.kind != "other" and title_of(one) != pages.HISTORY]
    found.sort(key=lambda one: (one.kind != "context", made.worth(one)), reverse=True)
    return {
        pages.AVOID: [one for one in found if is_avoid(one)],
        pages.LESSONS: [one for one in found if one.kind in ("lesson", "context")],
        pages.CURRENT: [one for one in found if one.kind == DECISION],
    }


def _line(made: Compaction, lesson: Lesson, *, dated: bool) -> str:
    date = f"[{lesson.date or made.before.today}] " if dated else ""
    return f"- {date}{edits.shown(lesson.text)}"


_DATE = tokens.estimated("[2026-01-31] ")
