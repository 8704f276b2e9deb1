"""Notes that come from one mould: the same words each time, with other numbers. They report a state; no lesson changes so often. Pure."""

from __future__ import annotations

import re

from harness.memory import gates
from harness.memory.lessons import DECISION, RETIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.memory.lessons import Lesson, Lessons

ENOUGH = 3  # different numbers in the same words, from which on a note is a report
ENOUGH_OF_RULES = 5  # where it decides something, or gives a reason: its numbers change now and then
DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+Z?)?")
_DIGITS = dict.fromkeys(map(ord, "0123456789"))


class Moulds:
    """The texts of all lessons, by what they are without their numbers."""

    def __init__(self, lessons: Lessons) -> None:
        self.lessons = lessons
        self.made: dict[str, dict[str, None]] = {}
        for lesson in lessons.all.values():
            for text in lesson.texts:
                self.add(text)

    def add(self, text: str) -> None:
        """Know one more text."""
        mould = text.translate(_DIGITS)
        if len(mould) < len(text):
            self.made.setdefault(mould, {})[text] = None

    def is_report(self, kind: str, text: str) -> bool:
        """Whether a note is one more of a mould that came with other numbers before. Dates do not count."""
        known = self.made.get(text.translate(_DIGITS))
        if not known:
            return False
        enough = ENOUGH_OF_RULES if kind == DECISION or gates.pattern("lesson").search(text) else ENOUGH
        return len({DATE.sub("", one) for one in (*known, text)}) >= enough

    def of(self, text: str) -> list[Lesson]:
        """The lessons that hold and have come from the mould of a note alone."""
        known = self.made.get(text.translate(_DIGITS), {})
        return [one for one in self.lessons.all.values() if one.holds and all(text in known for text in one.texts)]

    def has_gone(self, lesson: Lesson) -> bool:
        """Whether a lesson was retired as a report."""
        return lesson.state == RETIRED and self.is_report(lesson.kind, lesson.text)
