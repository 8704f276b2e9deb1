"""The relation of two notes: the same lesson, the same subject (then the newer holds), or unrelated.

Notes are compared by the terms they share, weighted by how rare a term is among all notes (TF-IDF, cosine); a shared identifier
counts as strong evidence. Two close notes still differ if one denies what the other states (the newer holds), or if
their facts differ: then the newer holds if it is a decision, or exchanges one number, else both hold. Notes that exchange
several facts in the same words are rows of one table, and both hold. Pure; each lookup does bounded work.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from math import log, sqrt

from harness.memory._contrast import apart, denies, opposed, plain
from harness.memory._facts import facts
from harness.memory._word_frequency import ALL, special
from harness.memory._words import PART, NoteWords, stem, words

SAME, NEWER, UNRELATED = "same", "newer", ""

# docs/decisions/0014, 0027 and 0034 have the trials. Weights are in millionths of a word that only two lessons have.
MIN_COSINE_SAME = 0.46
MIN_COSINE_SUBJECT = 0.22  # two decisions have one subject, and two notes may contradict each other
MIN_WEIGHT_SAME = 2_600_000  # shared weight from which two notes are always the same
MIN_WEIGHT_SUBJECT = 500_000  # minimum shared weight of two decisions on one subject
NAME_BONUS = 0.5  # factor that a shared identifier adds to its weight
YOUNG = 60  # number of lessons below which common words are expected in more of them
FEWEST_NOTES = 256  # weights assume at least this many notes, and change at powers of two
MAX_COMPARED = 24  # notes compared with one note
MAX_LISTED = 400  # notes examined per term
MILLION = 1_000_000


class Index:
    """Finds the notes nearest to another. A note belongs to an owner (a number), which may have several."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.terms: list[Sequence[str]] = []
        self.owners: list[int] = []
        self.listed: dict[str, list[int]] = {}
        self.exact: dict[str, int] = {}
        self.number: dict[str, int] = {}
        self.size = 0
        self.owned: dict[int, int] = {}
        self._notes, self._lessons = FEWEST_NOTES, (FEWEST_NOTES, YOUNG)
        self._squares: dict[int, int] = {}
        self._told: dict[str, int] = {}

    def add(self, text: str, owner: int, terms: Sequence[str] | None = None) -> None:
        """Add a note of an owner; `terms`, as from `terms_of`, avoid parsing it."""
        number, found = len(self.texts), sorted(words(text).terms) if terms is None else terms
        self.texts.append(text)
        self.terms.append(found)
        self.owners.append(owner)
        self.exact[plain(text)], self.number[text] = owner, number
        self.owned[owner] = self.owned.get(owner, 0) + 1
        self._resize(1)
        for term in found:
            self.listed.setdefault(term, []).append(number)
            self._told.pop(term, None)

    def remove(self, text: str) -> None:
        """Remove a note."""
        number = self.number.pop(text, None)
        if number is None:
            return
        self.exact.pop(plain(text), None)
        owner = self.owners[number]
        self.owned[owner] -= 1
        if not self.owned[owner]:
            del self.owned[owner]
        self._resize(-1)
        for term in self.terms[number]:
            self.listed[term].remove(number)
            self._told.pop(term, None)
        self.terms[number] = ()

    def _resize(self, change: int) -> None:
        """Adjust the number of notes. Weights change in steps, so that they are not recomputed for each note."""
        self.size += change
        notes, lessons = _power(self.size), (_power(len(self.owned)), max(0, YOUNG - len(self.owned)))
        if notes != self._notes:
            self._notes, self._squares = notes, {}
        if lessons != self._lessons:
            self._lessons, self._told = lessons, {}

    def terms_of(self, text: str) -> Sequence[str]:
        """The terms of a note, in a fixed order."""
        number = self.number.get(text)
        return sorted(words(text).terms) if number is None else self.terms[number]

    def square(self, term: str) -> int:
        """The squared weight of a term, in millionths: the logarithm of its rarity. An integer, so that sums are exact."""
        count = len(self.listed.get(term, ()))
        found = self._squares.get(count)
        if found is None:
            found = self._squares[count] = round(1e6 * log((self._notes + 1) / (count + 0.5)) ** 2)
        return found

    def length(self, terms: Iterable[str]) -> int:
        """The squared length of the vector of these terms, in millionths."""
        return sum(map(self.square, terms))

    def cosine(self, one: NoteWords, other: NoteWords) -> float:
        """The cosine similarity of two notes, 0 to 1."""
        shared = self.length(one.terms & other.terms)
        return shared / (sqrt(self.length(one.terms) * self.length(other.terms)) or 1.0)

    def told(self, term: str) -> int:
        """The weight of a term that two lessons share, in millionths: full for a word specific to this mission and
        unique to them."""
        found = self._told.get(term)
        if found is None:
            found = self._told[term] = self._tells(term)
        return found

    def _tells(self, term: str) -> int:
        listed, (lessons, lacking) = self.listed.get(term, ()), self._lessons
        if len(listed) > MAX_LISTED:
            return 0
        has = max(2, len({self.owners[number] for number in listed})) + (1 - special(term) / ALL) * lacking / 3
        return round(max(0.0, log((lessons + 1) / (has + 0.5)) / log((lessons + 1) / 2.5)) ** 3 * special(term) ** 2)

    def shared(self, new: NoteWords, old: NoteWords) -> int:
        """The weight of the terms that two notes share, in millionths. A shared identifier counts once, without its parts."""
        parts = {stem(part) for name in new.names & old.names for part in PART.findall(name) if part != name}
        return sum(map(self.told, (new.terms & old.terms) - parts))

    def telling(self, new: NoteWords, old: NoteWords) -> int:
        """The evidence that two notes are one, in millionths: their shared weight, with identifiers counted again."""
        return self.shared(new, old) + int(NAME_BONUS * self.named(new, old))

    def named(self, new: NoteWords, old: NoteWords) -> int:
        """The weight of the most specific identifier that two notes share, in millionths."""
        return max((self.told(name) for name in new.names & old.names if not name.startswith("-")), default=0)

    def closeness(self, one: str, other: str) -> tuple[float, int]:
        """(cosine similarity of two notes of the index, 0 to 1; an upper bound of their shared weight)."""
        mine, yours = self.terms_of(one), self.terms_of(other)
        both = set(mine).intersection(yours)
        return self.length(both) / (sqrt(self.length(mine) * self.length(yours)) or 1.0), sum(map(self.told, both))

    def near(self, note: NoteWords) -> list[tuple[float, int]]:
        """(cosine, owner) of the nearest notes, nearest first, on a tie the oldest owner first."""
        shared: dict[int, int] = {}
        for term in note.order:
            if term in self.listed:
                square = self.square(term)
                for number in self.listed[term][-MAX_LISTED:]:
                    shared[number] = shared.get(number, 0) + square
        own, owners, found = self.length(note.order), self.owners, []
        for number in heapq.nlargest(MAX_COMPARED * 2, shared, key=shared.__getitem__):
            found.append((shared[number] / (sqrt(own * self.length(self.terms[number])) or 1.0), number))
        return sorted(found, key=lambda row: (-row[0], owners[row[1]]))[:MAX_COMPARED]

    def relation(
        self, new: NoteWords, old: NoteWords, cosine: float, *, decisions: bool, warnings: bool = False
    ) -> str:
        """The relation of a newer note to an older one. Two `warnings` never contradict each other."""
        if new.text == old.text:
            return SAME
        shared = self.telling(new, old)
        is_telling = shared >= MIN_WEIGHT_SAME and not decisions
        if cosine < MIN_COSINE_SUBJECT and not is_telling:
            return UNRELATED
        if not warnings and opposed(new, old, decisions=decisions, alike=cosine >= MIN_COSINE_SAME):
            return NEWER
        if decisions and denies(new, old):
            return NEWER
        same = is_telling or cosine >= MIN_COSINE_SAME
        if not same and not (decisions and shared >= MIN_WEIGHT_SUBJECT):
            return UNRELATED
        (mine, my_facts, my_possible), (yours, your_facts, your_possible) = facts(new.text), facts(old.text)
        added, missing = my_facts - yours, your_facts - mine
        if my_possible - yours and your_possible - mine:  # Anna in the place of Ben
            added, missing = added | (my_possible - yours), missing | (your_possible - mine)
        if not added and not missing:
            return SAME if same else NEWER
        if not missing or not mine ^ yours <= added | missing:
            return NEWER if decisions else UNRELATED
        values = apart(new.numbers, old.numbers) or (decisions and apart(new.names, old.names))
        return NEWER if values and len(added) == len(missing) == 1 else UNRELATED


def _power(count: int) -> int:
    """The smallest power of two, at least FEWEST_NOTES, above a count."""
    return max(FEWEST_NOTES, 1 << count.bit_length())
