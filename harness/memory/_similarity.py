"""The similarity of notes: which ones look alike, by the terms that they share.

A term weighs more the rarer it is among all notes (TF-IDF, cosine). Two notes are one line only if their words are the same: a
fact that is lost costs a run, a line that is said twice a few tokens. Pure; each lookup does bounded work.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from math import log, sqrt

from harness.memory._facts import same_facts
from harness.memory._words import NoteWords, plain, words

# docs/decisions/0014 and 0046 have the trials.
MIN_COSINE_ALIKE = 0.46
MIN_COSINE_NEAR = 0.2  # neighbours on a page
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
        self._notes = FEWEST_NOTES
        self._squares: dict[int, int] = {}

    def add(self, text: str, owner: int, terms: Sequence[str] | None = None) -> None:
        """Add a note of an owner; `terms`, as from `terms_of`, avoid parsing it."""
        number, found = len(self.texts), sorted(words(text).terms) if terms is None else terms
        self.texts.append(text)
        self.terms.append(found)
        self.owners.append(owner)
        self.exact[plain(text)], self.number[text] = owner, number
        self._resize(1)
        for term in found:
            self.listed.setdefault(term, []).append(number)

    def remove(self, text: str) -> None:
        """Remove a note."""
        number = self.number.pop(text, None)
        if number is None:
            return
        if self.exact.get(plain(text)) == self.owners[number]:
            del self.exact[plain(text)]
        self._resize(-1)
        for term in self.terms[number]:
            self.listed[term].remove(number)
        self.terms[number] = ()

    def _resize(self, change: int) -> None:
        """Adjust the number of notes. Weights change in steps, so that they are not recomputed for each note."""
        self.size += change
        notes = max(FEWEST_NOTES, 1 << self.size.bit_length())
        if notes != self._notes:
            self._notes, self._squares = notes, {}

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

    def is_alike(self, one: NoteWords, other: NoteWords) -> bool:
        """Whether two notes seem to say the same: enough to count them together, never to make them one line."""
        return self.cosine(one, other) >= MIN_COSINE_ALIKE and same_facts(one.text, other.text)
