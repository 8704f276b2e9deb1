"""The similarity of notes: whether two say the same, and which look alike.

Notes are compared by the terms they share, weighted by how rare a term is among all notes (TF-IDF, cosine); a shared identifier
counts as strong evidence. Two notes are one only if they are close, have the same facts, and one has all words of the other: a
fact that is lost costs a run, a line that is said twice a few tokens. Pure; each lookup does bounded work.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from math import log, sqrt

from harness.memory._facts import same_facts
from harness.memory._word_frequency import ALL, special
from harness.memory._words import PART, NoteWords, plain, stem, words

# docs/decisions/0014, 0027, 0034 and 0046 have the trials. Weights are in millionths of a word that only two lessons have.
MIN_COSINE_SAME = 0.46
MIN_COSINE_NEAR = 0.2  # neighbours on a page
MIN_WEIGHT_SAME = 2_600_000  # shared weight from which two notes may always be one
NAME_BONUS = 0.5  # factor that a shared identifier adds to its weight
YOUNG = 60  # number of lessons below which common words are expected in more of them
FEWEST_NOTES = 256  # weights assume at least this many notes, and change at powers of two
MAX_COMPARED = 24  # notes compared with one note
MAX_LISTED = 400  # notes examined per term


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

    def near(self, note: NoteWords) -> list[int]:
        """The numbers of the nearest notes, nearest first, on a tie the oldest owner first."""
        shared: dict[int, int] = {}
        for term in note.order:
            if term in self.listed:
                square = self.square(term)
                for number in self.listed[term][-MAX_LISTED:]:
                    shared[number] = shared.get(number, 0) + square
        own, owners, found = self.length(note.order), self.owners, []
        for number in heapq.nlargest(MAX_COMPARED * 2, shared, key=shared.__getitem__):
            found.append((shared[number] / (sqrt(own * self.length(self.terms[number])) or 1.0), number))
        return [number for _, number in sorted(found, key=lambda row: (-row[0], owners[row[1]]))[:MAX_COMPARED]]

    def is_near(self, one: NoteWords, other: NoteWords) -> bool:
        """Whether two notes look alike, so that a reader should see them together."""
        return self.cosine(one, other) >= MIN_COSINE_NEAR

    def is_close(self, one: NoteWords, other: NoteWords) -> bool:
        """Whether two notes share enough to be one, unless they differ in a fact or word."""
        return self.cosine(one, other) >= MIN_COSINE_SAME or self.telling(one, other) >= MIN_WEIGHT_SAME

    def same(self, note: NoteWords) -> int | None:
        """The owner of the nearest note that says the same, or None."""
        for number in self.near(note):
            known = words(self.texts[number])
            if self.is_close(note, known) and is_same(note, known):
                return self.owners[number]
        return None


def is_same(one: NoteWords, other: NoteWords) -> bool:
    """Whether two notes have the same facts, and one has all words of the other, not two of them exchanged."""
    if one.text == other.text:
        return True
    is_part = one.terms <= other.terms or other.terms <= one.terms
    return is_part and not _swaps(one, other) and same_facts(one.text, other.text)


def _swaps(one: NoteWords, other: NoteWords) -> bool:
    """Whether two of the terms that both notes have change places: A before B, B before A."""
    mine, yours = ([term for term in note.order if term in one.terms & other.terms] for note in (one, other))
    return sum(term != at for term, at in zip(mine, yours, strict=True)) == 2


def _power(count: int) -> int:
    """The smallest power of two, at least FEWEST_NOTES, above a count."""
    return max(FEWEST_NOTES, 1 << count.bit_length())
