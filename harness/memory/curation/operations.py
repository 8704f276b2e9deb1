"""An agent's operations on a compaction: it sees the computed plan and answers with operations on entry numbers.

Code checks each operation and applies the valid ones: sources exist, no fact is added, commands and identifiers are
kept, and nothing is retired without a reason. Only this way are paraphrases found, and corrections in free words.
"""

from __future__ import annotations

from typing import Any

from harness.memory import gates
from harness.memory._words import words
from harness.memory.curation.compaction import Compaction
from harness.memory.lessons import DECISION, FAILURES, RETIRED, Lesson, best_wording
from harness.state import raw

APART = "apart"  # a separate lesson, overriding the code; applied before the entries are compacted
KINDS = ("same", "newer", "reword", "rank", "retire", "identity", APART)
MAX_TEXT_CHARS = 300  # characters of a new wording
KNOWN = 0.6  # minimum share of a new wording's words that are in its sources
MAX_RANKED, MAX_RANK = 40, 3.0
MIN_RETIRED, MAX_RETIRED_SHARE = 5, 0.2  # one compaction may retire this many lessons, or this share of all
MAX_MERGED, MAX_REPLACED = 12, 5  # lessons per operation that merges, or replaces
MAX_SHOWN_GROUPS = 60
MAX_WHY_CHARS = 120  # characters of a reason in the archive


class InvalidOperation(Exception):
    """An operation that is refused, with the reason."""


class Operations:
    """Applies operations to a compaction before its pages are laid out."""

    def __init__(self, made: Compaction) -> None:
        self.made, self.lessons = made, made.lessons
        self.retired = 0

    def apply(self, rows: list[Any]) -> tuple[int, list[str]]:
        """Apply the valid operations; returns (number applied, reasons of the refused ones)."""
        taken, wrong = 0, []
        for number, row in enumerate(rows, 1):
            try:
                self._one(row)
                taken += 1
            except InvalidOperation as fault:
                wrong.append(f"operation {number}: {fault}")
        return taken, wrong

    def _one(self, row: Any) -> None:
        what = row.get("do") if isinstance(row, dict) else None
        if what not in KINDS:
            raise InvalidOperation(f"'do' must be one of {', '.join(KINDS)}")
        entries = row.get("entries")
        if not isinstance(entries, list) or not entries or not all(isinstance(one, int) for one in entries):
            raise InvalidOperation("'entries' must be a list of entry numbers")
        found = list(dict.fromkeys(self._lesson(number).id for number in entries))
        sources = [self.lessons.all[number] for number in found]
        {
            "same": self._same,
            "newer": self._newer,
            "reword": self._reword,
            "rank": self._rank,
            "retire": self._retire,
            "identity": lambda *_: self.made.marked.update(found),
            APART: lambda *_: None,  # already applied, see `alone`
        }[what](sources, row)

    def _lesson(self, number: int) -> Lesson:
        """The lesson of an entry."""
        lesson = self.made.lesson_of(self.made.dispositions.get(number, ("", number, ""))[1])
        if lesson is None or not lesson.holds or lesson.kind == "other":
            raise InvalidOperation(f"entry {number} is not a current lesson")
        return lesson

    def _same(self, sources: list[Lesson], row: dict[str, Any]) -> None:
        if len(sources) < 2:
            raise InvalidOperation("the entries are one lesson already")
        if len({one.kind == DECISION for one in sources}) > 1:
            raise InvalidOperation("a decision is not the same as a lesson")
        if len({one.kind in FAILURES for one in sources}) > 1:
            raise InvalidOperation("something to avoid is not the same as something to do")
        if len(sources) > MAX_MERGED:
            raise InvalidOperation(f"one operation takes at most {MAX_MERGED} lessons together")
        said = _new_words(sources, row) if row.get("text") else ""
        shown = said or best_wording([lesson.text for lesson in sources])
        missing = {number for lesson in sources for number in words(lesson.text).numbers} - words(shown).terms
        if missing:
            raise InvalidOperation(
                f"one line would lose {', '.join(sorted(missing)[:5])}: give 'text' with all of them"
            )
        first, *others = sorted(sources, key=lambda one: one.id)
        for gone in others:
            self.made.merge(gone, first, _why(row, "the same lesson"))
        if first.text != shown:
            self._say(first, shown)

    def _newer(self, sources: list[Lesson], row: dict[str, Any]) -> None:
        if len(sources) < 2:
            raise InvalidOperation("'entries' must be the older and the newer entry")
        if len(sources) > MAX_REPLACED + 1:
            raise InvalidOperation(f"one entry replaces at most {MAX_REPLACED} lessons")
        newest = max(sources, key=lambda one: one.last)
        near = {newest.id, *self.lessons.near(newest.kind, newest.text)}
        if apart := [str(one.id) for one in sources if one.id not in near]:
            raise InvalidOperation(f"entry {apart[0]} is about something else than entry {newest.id}")
        for older in sources:
            if older is not newest:
                self.made.supersede(older, newest, _why(row, "the newer holds"))

    def _reword(self, sources: list[Lesson], row: dict[str, Any]) -> None:
        if len(sources) != 1:
            raise InvalidOperation("'reword' takes one lesson; merge them first with 'same'")
        self._say(sources[0], _new_words(sources, row))

    def _say(self, lesson: Lesson, text: str) -> None:
        lesson.said = text
        self.made.change("reworded", lesson, "an agent: shorter")

    def _rank(self, sources: list[Lesson], _row: dict[str, Any]) -> None:
        if len(sources) > MAX_RANKED:
            raise InvalidOperation(f"at most {MAX_RANKED} entries are ranked")
        for place, lesson in enumerate(sources):
            lesson.rank = round(MAX_RANK * (len(sources) - place) / len(sources), 2)
            self.made.change("ranked", lesson, str(lesson.rank))

    def _retire(self, sources: list[Lesson], row: dict[str, Any]) -> None:
        why = _why(row, "")
        if not why:
            raise InvalidOperation("'why' must give a reason in a few words")
        most = max(MIN_RETIRED, int(MAX_RETIRED_SHARE * len(self.lessons.all)))
        if self.retired + len(sources) > most:
            raise InvalidOperation(f"one compaction retires at most {most} lessons")
        for lesson in sources:
            lesson.state = RETIRED
            self.retired += 1
            self.made.change("retired", lesson, why)


def _why(row: dict[str, Any], default: str) -> str:
    """The agent's reason, for the archive; else the default, "" for none."""
    said = row.get("why")
    given = raw.one_line(said).strip()[:MAX_WHY_CHARS] if isinstance(said, str) and not gates.gated(said) else ""
    why = given or default
    return f"an agent: {why}" if why else ""


def _new_words(sources: list[Lesson], row: dict[str, Any]) -> str:
    """The new wording of an operation for these lessons; raises InvalidOperation if its content differs."""
    text = row.get("text")
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT_CHARS or "\n" in text:
        raise InvalidOperation(f"'text' must be one line of at most {MAX_TEXT_CHARS} characters")
    why = gates.gated(text.strip())
    if why:
        raise InvalidOperation(f"the new words have {why}")
    terms = frozenset[str]().union(*(words(one).terms for lesson in sources for one in lesson.texts))
    new = words(text.strip())
    added = (new.names | new.numbers) - terms
    if added or len(new.terms & terms) < KNOWN * len(new.terms):
        raise InvalidOperation(f"the new words add facts: {', '.join(sorted(added or new.terms - terms)[:5])}")
    lost = frozenset.intersection(*(words(lesson.text).names for lesson in sources)) - new.terms
    if lost:
        raise InvalidOperation(f"the new words lose {', '.join(sorted(lost)[:5])}")
    return text.strip()


def alone(rows: list[Any]) -> frozenset[int]:
    """The entries that an agent declares to be separate lessons."""
    asked = [row.get("entries") for row in rows if isinstance(row, dict) and row.get("do") == APART]
    return frozenset(one for some in asked if isinstance(some, list) for one in some if isinstance(one, int))


def offer(made: Compaction) -> str:
    """The computed plan, for the prompt: results of the entries, candidates for an identity, and look-alikes, by
    number."""
    new = {number for what, number, _ in made.dispositions.values() if what in ("kept", "merged")}
    lines = []
    for number in sorted(new & made.lessons.all.keys()):
        lesson = made.lessons.all[number]
        if lesson.kind == "other":
            continue
        mine = sorted({seq for seq, (_, of, _) in made.dispositions.items() if of == number} | {number})
        state = "" if lesson.holds else f" (superseded by {lesson.by})"
        lines.append(f"{', '.join(map(str, mine))}: {lesson.kind}: {lesson.text}{state}")
    asked = [
        " | ".join(f"{one.id}: {one.text}" for one in group) for group in _neighbours(made, new)[:MAX_SHOWN_GROUPS]
    ]
    replaced = [
        f"{change.lesson}, by {change.by}: {change.text}" for _, change in made.changes if change.change == "superseded"
    ]
    parts = [
        ("The computed groups (entries: result)", lines),
        ("What newer entries replace", replaced),
        (
            "Candidates for an identity",
            [f"{one.lesson}: to {one.role}, {one.why}: {one.text}" for one in made.candidates],
        ),
        ("Look-alikes, the newest of a group first: same, newer, or both true? (code keeps them all)", asked),
    ]
    return "\n\n".join(f"{head}:\n" + "\n".join(rows) for head, rows in parts if rows)


def _neighbours(made: Compaction, new: set[int]) -> list[list[Lesson]]:
    """The groups of lessons that look alike and have one of this compaction."""
    found = dict[int, Lesson]()
    for number in sorted(new & made.lessons.all.keys()):
        lesson = made.lessons.all[number]
        near = (made.lessons.all.get(one) for one in made.lessons.near(lesson.kind, lesson.text))
        found |= {one.id: one for one in (lesson, *near) if one and one.holds and one.kind != "other"}
    return [group for group in made.lessons.neighbours(found.values()) if len(group) > 1]
