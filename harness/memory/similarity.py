"""How two notes relate: the same lesson, one subject of which the newer note holds, or unrelated.

Notes are compared by the terms they share, weighted by how rare a term is among all notes (TF-IDF, cosine); a shared identifier
counts as strong evidence. Two close notes still differ where one denies what the other states, where a word of one has its
opposite in the other, or where their numbers or names differ: then the newer holds if all the rest is the same, else they
are unrelated. Pure; each look-up does bounded work.
"""

from __future__ import annotations

import heapq
from math import log, sqrt

from harness.memory import tables
from harness.memory.words import AFFIRMS, Words, stem, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

SAME, NEWER, UNRELATED = "same", "newer", ""

# Tuned on the half of bench/memory_corpus that is for tuning; docs/decisions/0013 has the trials.
CLOSE = 0.46  # two notes are the same from here on
CLOSE_WITH_NAME = 0.34  # where they share a rare identifier
SUBJECT = 0.22  # two decisions are about one subject
REST = 0.72  # where numbers or names differ, the rest of two notes is the same
FRAME = 0.45  # two notes are built alike
OPPOSED_DECISIONS = 0.15
OPPOSED = 0.30  # a note denies what the other orders, about one subject
MEANT = 0.6  # of what a note denies, the other has
MOST_SWAPPED = 3  # words of each that a contrast replaces
RARE_NAME = 12  # notes that may have an identifier for it to be rare
FEWEST_NOTES = 200  # terms are weighted as if there were at least so many notes
MOST_COMPARED = 24  # notes that one note is compared with
MOST_LISTED = 400  # notes looked at for one term
MILLION = 1_000_000
RARE = 150_000  # a term of less rarity tells nothing of two notes that share it

_PAIRS = [tuple(stem(word) for word in row.split()) for row in tables.sections("words.txt")["opposites"]]
ORDERING = frozenset(map(stem, AFFIRMS))
OPPOSITE = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


class Index:
    """Finds the notes that are nearest to another. A note belongs to an owner (a number), who may have several."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.terms: list[Collection[str]] = []
        self.owners: list[int] = []
        self.listed: dict[str, list[int]] = {}
        self.counts: dict[str, int] = {}
        self.exact: dict[str, int] = {}
        self.number: dict[str, int] = {}
        self.size = 0
        self._squares: dict[int, int] = {}
        self._size = -1

    def add(self, text: str, owner: int, terms: Collection[str] | None = None) -> None:
        """Add a note of an owner; `terms` saves the look at its words."""
        number, found = len(self.texts), words(text).terms if terms is None else terms
        self.texts.append(text)
        self.terms.append(found)
        self.owners.append(owner)
        self.exact[plain(text)], self.number[text] = owner, number
        self.size += 1
        for term in found:
            self.listed.setdefault(term, []).append(number)
            self.counts[term] = self.counts.get(term, 0) + 1

    def remove(self, text: str) -> None:
        """Remove a note."""
        number = self.number.pop(text, None)
        if number is None:
            return
        self.exact.pop(plain(text), None)
        self.size -= 1
        for term in self.terms[number]:
            self.listed[term].remove(number)
            self.counts[term] -= 1
        self.terms[number] = ()

    def terms_of(self, text: str) -> list[str]:
        """The terms of a note, in a fixed order."""
        return sorted(self.terms[self.number[text]] if text in self.number else words(text).terms)

    def square(self, term: str) -> int:
        """How much a term tells, squared, in millionths: the logarithm of how rare it is. Whole, so that sums have no order."""
        count = self.counts.get(term, 0)
        if self._size != self.size:
            self._squares, self._size = {}, self.size
        found = self._squares.get(count)
        if found is None:
            found = self._squares[count] = round(1e6 * log((max(self.size, FEWEST_NOTES) + 1) / (count + 0.5)) ** 2)
        return found

    def length(self, terms: Iterable[str]) -> int:
        """The length of the vector of these terms, squared, in millionths."""
        counts, squares, total = self.counts, self._squares if self._size == self.size else {}, 0
        for term in terms:
            square = squares.get(counts.get(term, 0))
            total += self.square(term) if square is None else square
        return total

    def cosine(self, one: Words, other: Words) -> float:
        """How close two notes are, 0 to 1."""
        shared = self.length(one.terms & other.terms)
        return shared / (sqrt(self.length(one.terms) * self.length(other.terms)) or 1.0)

    def rarity(self, term: str, owners: int) -> int:
        """How much it tells of two of so many owners that both have a term, in millionths: all where only these two have it. What
        many notes have tells nothing."""
        listed = self.listed.get(term, ())
        if len(listed) > MOST_LISTED:
            return 0
        has = len({self.owners[number] for number in listed})
        return (
            min(round(1e6 * (log((owners + 1) / (has + 0.5)) / log((owners + 1) / 2.5)) ** 4), MILLION)
            if has < owners
            else 0
        )

    def closeness(self, one: str, other: str) -> float:
        """How close two notes of the index are, 0 to 1."""
        mine, yours = self.terms_of(one), self.terms_of(other)
        return self.length(set(mine) & set(yours)) / (sqrt(self.length(mine) * self.length(yours)) or 1.0)

    def near(self, note: Words) -> list[tuple[float, int]]:
        """(cosine, number) of the nearest notes, the nearest and then the oldest owner first."""
        shared: dict[int, int] = {}
        for term in note.terms:
            if self.counts.get(term):
                square = self.square(term)
                for number in self.listed[term][-MOST_LISTED:]:
                    shared[number] = shared.get(number, 0) + square
        own, owners = self.length(note.terms), self.owners
        best = heapq.nsmallest(MOST_COMPARED * 2, shared, key=lambda number: (-shared[number], owners[number]))
        found = [(shared[number] / (sqrt(own * self.length(self.terms[number])) or 1.0), number) for number in best]
        return sorted(found, key=lambda row: (-row[0], owners[row[1]]))[:MOST_COMPARED]

    def relation(self, new: Words, old: Words, cosine: float, *, decisions: bool) -> str:
        """How a newer note relates to an older one."""
        shared_names = [name for name in new.names & old.names if self.counts.get(name, 0) <= RARE_NAME]
        alike, able = cosine >= FRAME, cosine >= (OPPOSED_DECISIONS if decisions else OPPOSED)
        if able and opposed(new, old, decisions=decisions, alike=alike):
            return NEWER
        near = cosine >= (CLOSE_WITH_NAME if shared_names else CLOSE)
        if not near and not (decisions and cosine >= SUBJECT):
            return UNRELATED
        if near and decisions and denies(new, old):
            return NEWER
        if has_opposites(new, old) and self.rest(new, old) >= FRAME:
            is_order = begins_with_opposite(new, old) or (new.must and old.must)
            return NEWER if decisions or is_order else UNRELATED
        if apart(new.numbers, old.numbers) or (
            not shared_names and apart(new.names - old.terms, old.names - new.terms)
        ):
            is_change = decisions or (self.rest(new, old) >= REST and not said_of_others(new, old))
            return NEWER if is_change else UNRELATED
        if is_contrast(new, old) and cosine >= FRAME:
            return NEWER if decisions else UNRELATED
        return SAME if near else NEWER

    def rest(self, new: Words, old: Words) -> float:
        """The cosine of two notes without the numbers and names that only one of them has."""
        mine = new.terms - ((new.numbers | new.names) - old.terms)
        yours = old.terms - ((old.numbers | old.names) - new.terms)
        return self.length(mine & yours) / (sqrt(self.length(mine) * self.length(yours)) or 1.0)


def opposed(new: Words, old: Words, *, decisions: bool, alike: bool) -> bool:
    """Whether one says not to use what the other says to use, or in a note that is `alike`, or a decision, names at all."""
    if decisions and new.denied & old.names - old.denied:
        return True
    for one, two in ((new, old), (old, new)):
        meant = one.denied & two.terms - two.denied
        if len(meant) < MEANT * len(one.denied) or not meant:
            continue
        if meant & two.ordered or (alike and one.refuses and not two.refuses and two.order[0] in one.refused):
            return True
    return False


def denies(new: Words, old: Words) -> bool:
    """Whether one denies most of what it denies in the face of the other, which has it: "B instead of A", and A."""
    pairs = ((one.denied, two.terms - two.denied) for one, two in ((new, old), (old, new)))
    return any(denied & said and len(denied & said) >= MEANT * len(denied) for denied, said in pairs)


def begins_with_opposite(new: Words, old: Words) -> bool:
    """Whether the first word of one has its opposite in the other: what it says to do is undone there."""
    return any(OPPOSITE.get(one.lead) in two.terms for one, two in ((new, old), (old, new)))


def has_opposites(new: Words, old: Words) -> bool:
    """Whether one has a word and the other its opposite instead; of words that no comparison counts ("before", "off") only
    where all the others are the same."""
    mine, yours = new.terms - old.terms, old.terms - new.terms
    if new.order == old.order:
        mine, yours = frozenset(new.text.lower().split()), frozenset(old.text.lower().split())
    said = {form for term in yours - mine for form in (term, stem(term))}
    return any(OPPOSITE.get(form) in said for term in mine - yours for form in (term, stem(term)))


def said_of_others(new: Words, old: Words) -> bool:
    """Whether the two differ in more than numbers and names: each has a word that the other lacks."""
    mine, yours = new.terms - old.terms, old.terms - new.terms
    return bool(mine - new.numbers - new.names and yours - old.numbers - old.names)


def is_contrast(new: Words, old: Words) -> bool:
    """Whether the two are one sentence with a few words replaced: a contrast, not a paraphrase."""
    mine, yours = (len(swapped(one, two)) for one, two in ((new, old), (old, new)))
    if not (1 <= mine <= MOST_SWAPPED and 1 <= yours <= MOST_SWAPPED):
        return False
    return [term for term in new.order if term in old.terms] == [term for term in old.order if term in new.terms]


def swapped(one: Words, other: Words) -> set[str]:
    """The words that the other lacks, but for verbs of ordering, and "unchanged" where the other says "not change"."""
    lacks = one.terms - other.terms - ORDERING
    return {term for term in lacks if term.removeprefix("un") not in other.terms and f"un{term}" not in other.terms}


def apart(mine: frozenset[str], yours: frozenset[str]) -> bool:
    """Whether both have some, and none in common."""
    return bool(mine and yours and not mine & yours)


def plain(text: str) -> str:
    """A note without what two writings of the same words differ in: case, white space, quotes and the last full stop."""
    return " ".join(text.replace("`", "").casefold().split()).rstrip(".! ")
