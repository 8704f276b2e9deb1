"""The knowledge of a mission: lessons, each with its wordings, its evidence, and whether it still holds.

`lessons.jsonl` caches them, so that a compaction need not read the archive or raw.md again. It is derived from
archive.jsonl, where each entry names its lesson and each later change is a line, and rebuilt from there if it is absent
or does not match curated.json. The sequence number of its first entry identifies a lesson.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from harness.base.record import Record
from harness.memory._corrections import replaces
from harness.memory._similarity import Index
from harness.memory._words import NoteWords, plain, words
from harness.state.raw import RawEntry

MAX_LESSONS = 4000  # beyond that, the oldest with the least evidence stay only in the archive
MAX_WORDINGS = 6
MAX_VOICES = 12
MAX_NAMED_FEATURES = 8
MAX_ROLES = 4
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
FEATURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DECISION = "decision"
FAILURES = ("avoid", "fail")
ADVICE = ("lesson", "avoid", "context", "fail")
SUPERSEDED, FORGOTTEN, RETIRED = "superseded", "forgotten", "retired"
FORMAT, OLDER = 3, 2


class Lesson(Record):
    """`kind` is one of ADVICE, a decision, or "other" (an untagged line). `texts`: its wordings, the newest last;
    `best`: the index of the shown one. `voices`: role and feature of its authors, the newest last; `heard`: the number
    of runs that noted it. `last`: the number of its newest entry. `state`: "" while it holds; `by`: the lesson that
    replaced it. `said`: a wording by an agent; `rank`: an agent's addition to its worth. `evidenced`: its occurrences
    in evidence.jsonl."""

    id: int
    kind: str
    texts: list[str]
    count: int = 0
    heard: int = 0
    last: int = 0
    date: str = ""
    where: list[str] = []
    voices: list[str] = []
    roles: list[str] = []
    state: str = ""
    by: int = -1
    said: str = ""
    evidenced: int = 0
    rank: float = 0.0
    best: int = 0

    @property
    def holds(self) -> bool:
        """Whether it still holds, by all notes so far."""
        return not self.state

    @property
    def text(self) -> str:
        """The wording on pages: an agent's, a decision's newest, else the shortest informative one."""
        if self.said:
            return self.said
        return self.texts[-1] if self.kind in (DECISION, "other") else self.texts[self.best]

    def hear(self, entry: RawEntry) -> None:
        """Count an occurrence; a lesson noted again holds again."""
        voice = voice_of(entry)
        self.state, self.by, self.last = "", -1, entry.seq
        self.count += 1
        self.heard += self.voices[-1:] != [voice]
        self.date = max(self.date, entry.at[:10] if DAY.match(entry.at) else "")
        self.where = newest([*self.where, *features_of([entry])], MAX_NAMED_FEATURES)
        self.voices = newest([*(one for one in self.voices if one != voice), voice], MAX_VOICES)
        self.roles = newest([*self.roles, entry.role], MAX_ROLES)

    def choose(self) -> None:
        """Choose the shown wording after a change."""
        self.best = self.texts.index(best_wording(self.texts))


def newest(names: list[str], most: int) -> list[str]:
    """The last `most` distinct names."""
    return [*dict.fromkeys(names)][-most:]


def voice_of(entry: RawEntry) -> str:
    """The author of an entry: its role and feature."""
    return f"{entry.role} {entry.feature}"


def features_of(entries: Iterable[RawEntry]) -> list[str]:
    """The features of the entries, in order, without invalid names."""
    return list(dict.fromkeys(entry.feature for entry in entries if FEATURE.fullmatch(entry.feature)))


def best_wording(texts: list[str]) -> str:
    """The wording that says most: the most terms, then the shortest; on a tie the first."""
    return min(texts, key=lambda text: (-len(words(text).terms), len(text)))


class Lessons:
    """All lessons of a mission, and the index that finds those similar to a note."""

    def __init__(self) -> None:
        self.all: dict[int, Lesson] = {}
        self.decisions, self.advice = Index(), Index()
        self.others: dict[str, int] = {}
        self.written: dict[str, dict[str, int]] = {}
        self.pages: dict[str, str] = {}  # {page: digest of its text as the curator wrote it}
        self.owed: list[dict[str, Any]] = []  # evidence not yet written to the identity folder

    def index_of(self, kind: str) -> Index:
        """The index for notes of this kind."""
        return self.decisions if kind == DECISION else self.advice

    def relations(self, kind: str, text: str) -> tuple[int | None, list[int]]:
        """(the equivalent lesson or None, the lessons that the note says no longer hold). If no current lesson is
        equivalent, a replaced one may be: it is reinstated."""
        index, older = self.index_of(kind), dict[int, None]()
        exact = self.all.get(index.exact.get(plain(compared(kind, text)), -1))
        same = exact.id if exact and exact.holds else None
        reinstated = exact.id if exact and exact.state != RETIRED else None
        note = words(compared(kind, text))
        for owner in dict.fromkeys(index.owners[number] for number in index.near(note)):
            lesson = self.all.get(owner)
            if lesson is None or owner == same:
                continue
            if lesson.holds and (kind in FAILURES) == (lesson.kind in FAILURES):
                if replaces(text, lesson.text, decisions=kind == DECISION):
                    older[owner] = None
            elif lesson.state == FORGOTTEN and same is None:
                is_alike = any(index.is_alike(note, words(compared(lesson.kind, one))) for one in lesson.texts)
                same = owner if is_alike else None
        return (reinstated if same is None else same), list(older)

    def near(self, kind: str, text: str) -> list[int]:
        """The lessons that look like a note, nearest first."""
        return self._near(kind, text, Index.is_near)

    def alike(self, lesson: Lesson) -> list[Lesson]:
        """The other current lessons that seem to say the same in other words, nearest first."""
        found = (self.all.get(number) for number in self._near(lesson.kind, lesson.text, Index.is_alike))
        return [one for one in found if one and one is not lesson and one.holds]

    def _near(self, kind: str, text: str, matches: Callable[[Index, NoteWords, NoteWords], bool]) -> list[int]:
        if kind == "other":
            return []
        index, note = self.index_of(kind), words(compared(kind, text))
        found = (number for number in index.near(note) if matches(index, note, words(index.texts[number])))
        return list(dict.fromkeys(index.owners[number] for number in found))

    def neighbours(self, lessons: Iterable[Lesson]) -> list[list[Lesson]]:
        """The lessons in groups that look alike: the groups in the order of their oldest, in each the newest first."""
        group_of: dict[int, int] = {}
        groups: dict[int, list[Lesson]] = {}
        for lesson in sorted(lessons, key=lambda one: one.id):
            near = (group_of[one] for one in self.near(lesson.kind, lesson.text) if one in group_of)
            group_of[lesson.id] = group = next(near, lesson.id)
            groups.setdefault(group, []).append(lesson)
        return [sorted(group, key=lambda one: one.last, reverse=True) for group in groups.values()]

    def has_words(self, kind: str, text: str) -> bool:
        """Whether a lesson has exactly this wording."""
        return plain(compared(kind, text)) in self.index_of(kind).exact

    def add(self, seq: int, kind: str, text: str) -> Lesson:
        """Add a lesson."""
        lesson = self.all[seq] = Lesson(id=seq, kind=kind, texts=[text])
        if kind != "other":
            self.index_of(kind).add(compared(kind, text), seq)
        return lesson

    def say(self, lesson: Lesson, kind: str, text: str) -> None:
        """Add a wording to a lesson."""
        if text in lesson.texts:
            if kind in (DECISION, "other"):
                lesson.texts.remove(text)
                lesson.texts.append(text)
            return
        lesson.texts.append(text)
        if len(lesson.texts) > MAX_WORDINGS:
            gone = lesson.texts.pop(0 if kind in (DECISION, "other") else 1)
            self.index_of(kind).remove(compared(kind, gone))
        if kind != "other":
            self.index_of(kind).add(compared(kind, text), lesson.id)
        if kind in ADVICE:
            lesson.choose()

    def retag(self, lesson: Lesson, kind: str) -> None:
        """Turn a failure or a fact that is noted as advice into advice."""
        order = ("other", "fail", "context")
        if lesson.kind not in order or kind in order[: order.index(lesson.kind) + 1] or kind == DECISION:
            return
        for text in lesson.texts:
            self.index_of(lesson.kind).remove(compared(lesson.kind, text))
        lesson.kind = kind
        for text in lesson.texts:
            self.index_of(kind).add(compared(kind, text), lesson.id)

    def supersede(self, older: Lesson, by: Lesson) -> None:
        """Replace the older lesson. A decision inherits its evidence; advice must earn its own."""
        older.state, older.by = SUPERSEDED, by.id
        if by.kind != DECISION:
            return
        by.heard = max(by.heard, older.heard)
        by.where = newest([*older.where, *by.where], MAX_NAMED_FEATURES)
        by.voices = newest([*older.voices, *by.voices], MAX_VOICES)

    def merge(self, gone: Lesson, into: Lesson) -> None:
        """Merge lesson `gone` into `into`, which gets the wordings and evidence of both."""
        for text in gone.texts:
            self.index_of(gone.kind).remove(compared(gone.kind, text))
        del self.all[gone.id]
        self.retag(into, gone.kind)
        for text in gone.texts:
            self.say(into, into.kind, text)
        into.count, into.heard = into.count + gone.count, into.heard + gone.heard
        into.last, into.date = max(into.last, gone.last), max(into.date, gone.date)
        into.where = newest([*into.where, *gone.where], MAX_NAMED_FEATURES)
        into.voices = newest([*into.voices, *gone.voices], MAX_VOICES)
        into.roles = newest([*gone.roles, *into.roles], MAX_ROLES)
        into.evidenced += gone.evidenced

    def make_room(self) -> None:
        """Forget the weakest lessons before one is added, if there are far too many."""
        if len(self.all) > 2 * MAX_LESSONS:
            self.prune()

    def prune(self) -> None:
        """Forget the weakest lessons above MAX_LESSONS."""
        over = len(self.all) - MAX_LESSONS
        if over > 0:
            order = sorted(
                self.all.values(), key=lambda one: (one.state == FORGOTTEN, one.holds, len(one.voices), one.last)
            )
            for lesson in order[:over]:
                del self.all[lesson.id]
                if lesson.kind == "other":
                    self.others = {key: number for key, number in self.others.items() if number != lesson.id}
                    continue
                for text in lesson.texts:
                    self.index_of(lesson.kind).remove(compared(lesson.kind, text))


def compared(kind: str, text: str) -> str:
    """The form of a note for comparison: what failed or is to avoid is never what is to do."""
    return f"avoid: {plain(text)}" if kind in FAILURES else text


# ---- lessons.jsonl


def render(lessons: Lessons, folded: int, generation: int) -> bytes:
    """The bytes of the file, one lesson per line, for readable diffs."""
    head: dict[str, Any] = {"format": FORMAT, "generation": generation, "folded": folded}
    head |= {"written": lessons.written, "others": lessons.others, "owed": lessons.owed}
    head["pages"] = lessons.pages
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    rows, unset = (
        [encode(head)],
        [(name, Lesson.default(name)) for name in Lesson.fields if name not in Lesson.needed()],
    )
    for lesson in lessons.all.values():
        row = lesson.asdict()
        for name, value in unset:
            if row[name] == value:
                del row[name]
        index = lessons.index_of(lesson.kind)
        if lesson.kind != "other":
            row["terms"] = [index.terms_of(compared(lesson.kind, text)) for text in lesson.texts]
        rows.append(encode(row))
    return ("\n".join(rows) + "\n").encode("utf-8", "replace")


def parse(data: bytes | None, folded: int, generation: int) -> Lessons | None:
    """The lessons in the file; None if it is absent, broken, or from another state of the archive."""
    if data is None:
        return None
    try:
        head, *rows = data.decode("utf-8").rstrip("\n").split("\n")
        first = json.loads(head)
        if first["format"] not in (OLDER, FORMAT) or (first["generation"], first["folded"]) != (generation, folded):
            return None
        lessons = Lessons()
        lessons.written, lessons.others, lessons.owed = first["written"], first["others"], first["owed"]
        lessons.pages = first.get("pages", {})
        for row in rows:
            _take(lessons, json.loads(row), has_terms=first["format"] == FORMAT)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return lessons


def _take(lessons: Lessons, row: dict[str, Any], *, has_terms: bool) -> None:
    """Add a row's lesson; an older version split words otherwise, and had two more keys."""
    terms = row.pop("terms", [])
    lesson = Lesson(**{name: value for name, value in row.items() if has_terms or name not in ("own", "keys")})
    lessons.all[lesson.id] = lesson
    if lesson.kind == "other":
        return
    if lesson.kind in ADVICE and not has_terms:
        lesson.choose()
    index = lessons.index_of(lesson.kind)
    for text, known in zip(lesson.texts, terms, strict=True):
        index.add(compared(lesson.kind, text), lesson.id, known if has_terms else None)
