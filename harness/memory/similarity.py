"""How two notes relate: the same lesson, one subject of which the newer note holds, or unrelated.

Notes are compared by the terms they share, weighted by how rare a term is among all notes (TF-IDF, cosine); a shared identifier
counts as strong evidence. Two close notes still differ where one denies what the other states, where a word of one has its
opposite in the other, or where their numbers or names differ: then the newer holds if all the rest is the same, else they
are unrelated. Pure; each look-up does bounded work.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from itertools import count, takewhile
from math import log, sqrt

from harness.memory.common import ALL, special
from harness.memory.contrast import (
    MOST_SWAPPED,
    apart,
    aside,
    begins_with_opposite,
    capitals,
    compounds,
    denies,
    differs_in_compounds,
    differs_in_flags,
    differs_in_values,
    drops,
    flips,
    has_opposites,
    has_siblings,
    is_contrast,
    is_flag_changed,
    of_one_order,
    opposed,
    plain,
    said_of_others,
    sets_opposites,
    swapped,
    takes_the_place,
    uninflected,
)
from harness.memory.words import PART, Words, stem, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SAME, NEWER, UNRELATED = "same", "newer", ""

# Tuned on the half of bench/memory_corpus that is for tuning; docs/decisions/0014 and 0027 have the trials.
CLOSE = 0.46  # two notes are the same from here on
CLOSE_WITH_NAME = 0.34  # where they share a rare identifier
SUBJECT = 0.22  # two decisions are about one subject
REST = 0.72  # where numbers or names differ, the rest of two notes is the same
DESPITE = 1.2  # times as much, where numbers or names differ
ONE_FRAME = 0.65  # and that is all that they say, but for those
FRAME = 0.45  # two notes are built alike
LEAST_OF_SUBJECT = 200_000  # and share so much
OPPOSED_DECISIONS = 0.12
DENIED, LEAST_DENIED = 0.2, 400_000  # and is so close, or shares so much, where it denies what the other has
LEAST_OPPOSED = 0.22  # where that is a rare word of both
OPPOSED = 0.30  # a note denies what the other orders, about one subject
OWN = 1_100_000  # words of its own that a note has in the place of another's: that of another thing
NAMED = 0.5  # what an identifier of its own adds to what two notes share
TELLING = 2_200_000  # two notes are the same that share so much, whatever else they say
LEAST_SHARED = 500_000  # what two notes share, however close: words that all documentation has make no lesson
VERY_CLOSE = 0.7  # but for notes of nothing else
LITTLE = 0.35  # of what those share: names or words of their own that tell less make no two lessons of them
LEAST = 0.1  # nor does a word that stands for another
COMMON = 20  # notes will have the commonest word
MATURE = 60  # lessons from which on a mission knows how rare its words are
TELLS = 800_000  # two notes are about one subject
LEAST_CLOSE = 0.08  # and are so close
MOST_TELLING = 60  # notes that have a term which tells something
RARE_NAME = 12  # notes that may have an identifier for it to be rare
FEWEST_NOTES, MOST_NOTES = 200, 1_000_000  # terms are weighted as if there were at least so many notes
STEP = 1.2  # and by steps of so much
MOST_COMPARED = 24  # notes that one note is compared with
MOST_LISTED = 400  # notes looked at for one term
MILLION = 1_000_000
SIZES = tuple(takewhile(MOST_NOTES.__gt__, (round(FEWEST_NOTES * STEP**number) for number in count())))


class Index:
    """Finds the notes that are nearest to another. A note belongs to an owner (a number), who may have several."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.terms: list[Sequence[str]] = []
        self.owners: list[int] = []
        self.listed: dict[str, list[int]] = {}
        self.counts: dict[str, int] = {}
        self.exact: dict[str, int] = {}
        self.number: dict[str, int] = {}
        self.size = 0
        self.owned: dict[int, int] = {}
        self._grown, self._grown_owned = SIZES[0], (SIZES[0], 0)
        self._squares: dict[int, int] = {}
        self._lengths: dict[int, int] = {}
        self._told: dict[str, int] = {}

    def add(self, text: str, owner: int, terms: Sequence[str] | None = None) -> None:
        """Add a note of an owner; `terms`, as `terms_of` gives them, saves the look at its words."""
        number, found = len(self.texts), sorted(words(text).terms) if terms is None else terms
        self.texts.append(text)
        self.terms.append(found)
        self.owners.append(owner)
        self.exact[plain(text)], self.number[text] = owner, number
        self.owned[owner] = self.owned.get(owner, 0) + 1
        self._resize(1)
        if self._lengths or self._told:
            for term in found:
                self._recount(term, 1)
        else:
            counts = self.counts
            for term in found:
                counts[term] = counts.get(term, 0) + 1
        listed = self.listed
        for term in found:
            if term in listed:
                listed[term].append(number)
            else:
                listed[term] = [number]

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
            self._recount(term, -1)
        self.terms[number] = ()
        self._lengths.pop(number, None)

    def _resize(self, change: int) -> None:
        """There is a note more, or less. What terms weigh goes by steps, so that it need not be found anew for each note."""
        self.size += change
        grown = SIZES[bisect_left(SIZES, self.size)]
        owned = SIZES[bisect_left(SIZES, len(self.owned))], min(MATURE, len(self.owned))
        if grown != self._grown:
            self._grown, self._squares, self._lengths = grown, {}, {}
        if owned != self._grown_owned:
            self._grown_owned, self._told = owned, {}

    def _recount(self, term: str, change: int) -> None:
        """One note more, or less, has a term: it weighs less, or more, in all that have it."""
        before = self.square(term) if self._lengths else 0
        self.counts[term] = self.counts.get(term, 0) + change
        self._told.pop(term, None)
        if self._lengths:
            more, lengths = self.square(term) - before, self._lengths
            for number in self.listed.get(term, ()):
                if number in lengths:
                    lengths[number] += more

    def terms_of(self, text: str) -> Sequence[str]:
        """The terms of a note, in a fixed order."""
        number = self.number.get(text)
        return sorted(words(text).terms) if number is None else self.terms[number]

    def square(self, term: str) -> int:
        """How much a term tells, squared, in millionths: the logarithm of how rare it is. Whole, so that sums have no order."""
        count = self.counts.get(term, 0)
        found = self._squares.get(count)
        if found is None:
            found = self._squares[count] = round(1e6 * log((self._grown + 1) / (count + 0.5)) ** 2)
        return found

    def length(self, terms: Iterable[str]) -> int:
        """The length of the vector of these terms, squared, in millionths."""
        counts, squares, total = self.counts, self._squares, 0
        for term in terms:
            square = squares.get(counts.get(term, 0))
            total += self.square(term) if square is None else square
        return total

    def cosine(self, one: Words, other: Words) -> float:
        """How close two notes are, 0 to 1."""
        shared = self.length(one.terms & other.terms)
        return shared / (sqrt(self.length(one.terms) * self.length(other.terms)) or 1.0)

    def told(self, term: str) -> int:
        """How much it tells of two lessons that both have a term, in millionths: all for a word of this mission, which
        nobody else has."""
        found = self._told.get(term)
        if found is None:
            found = self._told[term] = self._tells(term)
        return found

    def _tells(self, term: str) -> int:
        listed = self.listed.get(term, ())
        if len(listed) > MOST_TELLING:
            return 0
        has, most = len({self.owners[number] for number in listed}), self._grown_owned[0] + 1
        known, common = self._grown_owned[1] / MATURE, 1 - special(term) / ALL
        expected = max(has, 2) + COMMON * common * (1 - known)  # a young mission has few notes, common words come again
        return round((log(most / (expected + 0.5)) / log(most / 2.5)) ** 3 * special(term) ** 2)

    def shared(self, new: Words, old: Words) -> int:
        """How much the terms tell that two notes share, in millionths. A shared identifier tells once, not with its parts,
        and so does a compound such as "pre-commit"."""
        both = new.terms & old.terms
        parts = {stem(part) for name in new.names & old.names for part in PART.findall(name) if part != name}
        told = sum(map(self.told, both - parts))
        if "-" in new.text and "-" in old.text:
            for compound in compounds(new.text) & compounds(old.text):
                each = sorted(self.told(term) for term in {*compound} & both - parts)
                told -= sum(each[:-1])
        return told

    def telling(self, new: Words, old: Words) -> int:
        """How much it tells that two notes are one, in millionths: all that they share, and an identifier once more."""
        return self.shared(new, old) + int(NAMED * self.named(new, old))

    def _at_most(self, new: Words, old: Words) -> int:
        """What `telling` is at most."""
        each = [self.told(term) for term in new.terms & old.terms]
        return sum(each) + int(NAMED * max(each, default=0))

    def named(self, new: Words, old: Words) -> int:
        """How much the most telling identifier tells that two notes share, in millionths; a word in capitals is one."""
        both = (new.names | capitals(new.text)) & (old.names | capitals(old.text)) & new.terms & old.terms
        return max((self.told(name) for name in both if not name.startswith("-")), default=0)

    def closeness(self, one: str, other: str) -> tuple[float, int]:
        """How close two notes of the index are, 0 to 1, and how much the terms tell at most that they share."""
        (mine, my_length), (yours, your_length) = self._measured(one), self._measured(other)
        both = set(mine).intersection(yours)
        return self.length(both) / (sqrt(my_length * your_length) or 1.0), sum(map(self.told, both))

    def _measured(self, text: str) -> tuple[Sequence[str], int]:
        """The terms of a note, and its length."""
        number = self.number.get(text)
        if number is not None:
            return self.terms[number], self._length_of(number)
        terms = self.terms_of(text)
        return terms, self.length(terms)

    def _length_of(self, number: int) -> int:
        """The length of a note of the index, squared, in millionths."""
        found = self._lengths.get(number)
        if found is None:
            found = self._lengths[number] = self.length(self.terms[number])
        return found

    def near(self, note: Words) -> list[tuple[float, int]]:
        """(cosine, number) of the nearest notes, the nearest and then the oldest owner first."""
        shared: dict[int, int] = {}
        for term in note.order:
            if self.counts.get(term):
                square = self.square(term)
                for number in self.listed[term][-MOST_LISTED:]:
                    shared[number] = shared.get(number, 0) + square
        own, owners, found = self.length(note.order), self.owners, []
        for number in heapq.nlargest(MOST_COMPARED * 2, shared, key=shared.__getitem__):
            cosine = shared[number] / (sqrt(own * self._length_of(number)) or 1.0)
            if cosine >= LEAST_CLOSE:
                found.append((cosine, number))
        return sorted(found, key=lambda row: (-row[0], owners[row[1]]))[:MOST_COMPARED]

    def relation(self, new: Words, old: Words, cosine: float, *, decisions: bool) -> str:
        """How a newer note relates to an older one."""
        if new.text == old.text:
            return SAME
        if not decisions and cosine < OPPOSED and self._at_most(new, old) < TELLS:
            return UNRELATED  # most pairs: too little for any of what follows
        shared_names = [name for name in new.names & old.names if self.counts.get(name, 0) <= RARE_NAME]
        told = self.telling(new, old) if cosine >= LEAST_CLOSE else 0
        alike, tells = cosine >= FRAME, not decisions and told >= TELLING
        able = cosine >= OPPOSED_DECISIONS if decisions else alike or tells or (cosine >= OPPOSED and told >= TELLS)
        turned = self._turned(new, old, cosine, told, able=able, decisions=decisions)
        if turned is not None:
            return turned
        near = cosine >= (CLOSE_WITH_NAME if shared_names else CLOSE)
        near = near and (decisions or told >= LEAST_SHARED or cosine >= VERY_CLOSE)
        if not near and not tells and not (decisions and cosine >= SUBJECT and told >= LEAST_OF_SUBJECT):
            return UNRELATED
        if not decisions and new.order != old.order and aside(new, old):
            return UNRELATED
        if has_opposites(new, old) and self.rest(new, old) >= FRAME:
            is_order = begins_with_opposite(new, old) or new.must or old.must
            return NEWER if decisions or is_order else UNRELATED
        if not decisions and (differs_in_compounds(new, old) or differs_in_flags(new, old)):
            return UNRELATED
        if not decisions and alike and has_siblings(new, old):
            return UNRELATED
        numbers = apart(new.numbers, old.numbers)
        own = self.own(new, old) if cosine >= VERY_CLOSE else 1.0
        names = not shared_names and own >= LITTLE and apart(new.names - old.terms, old.names - new.terms)
        values = differs_in_values(new, old)
        if numbers or names or values:
            rest = self.rest(new, old)
            if decisions or ((numbers or values) and rest >= REST and not said_of_others(new, old)):
                return NEWER
            is_frame = values or (numbers and (names or alike)) or rest >= ONE_FRAME or is_flag_changed(new, old)
            if is_frame or told < DESPITE * TELLING:
                return UNRELATED
        if alike and own >= LEAST and is_contrast(new, old):
            return NEWER if decisions else UNRELATED
        if alike and own >= LITTLE and not decisions and self.of_others(new, old):
            return UNRELATED
        return SAME if near or tells else NEWER

    def _turned(self, new: Words, old: Words, cosine: float, told: int, *, able: bool, decisions: bool) -> str | None:
        """NEWER where one says not to do what the other says to do, UNRELATED where it says more than that; else None."""
        rare = (
            frozenset(term for term in new.terms & old.terms if self.told(term) >= TELLS)
            if told >= TELLS
            else frozenset()
        )
        able = able or (cosine >= LEAST_OPPOSED and bool(rare & (new.refused | old.refused)))
        if able and opposed(new, old, rare, decisions=decisions, alike=cosine >= FRAME):
            return NEWER
        if decisions and able and denies(new, old) and (cosine >= DENIED or told >= LEAST_DENIED):
            return NEWER
        if decisions and cosine >= LEAST_CLOSE and self.replaces(new, old, cosine):
            return NEWER
        if cosine < OPPOSED:
            return None
        if flips(new, old) and (not decisions or of_one_order(new, old)):
            return NEWER if of_one_order(new, old) else UNRELATED
        if drops(new, old) or (cosine >= FRAME and takes_the_place(new, old)) or sets_opposites(new, old):
            return NEWER
        return NEWER if begins_with_opposite(new, old) and self.rest(new, old) >= FRAME else None

    def replaces(self, new: Words, old: Words, cosine: float) -> bool:
        """Whether a decision denies a rare word of the other, "A, no B any more", and B; or has another number for one."""
        about = new.denied & old.terms - old.denied
        if cosine >= DENIED and apart(new.numbers, old.numbers):
            about |= new.terms & old.terms
        return any(self.told(term) >= TELLS for term in about)

    def own(self, new: Words, old: Words) -> float:
        """How much the words tell that only one of two notes has, of what they share; of the one that has less."""
        mine, yours = (uninflected(swapped(*two), two[1]) for two in ((new, old), (old, new)))
        return min(sum(map(self.told, some)) for some in (mine, yours)) / (self.shared(new, old) or 1)

    def of_others(self, new: Words, old: Words) -> bool:
        """Whether each of two notes that are built alike has words of its own in the place of the other's."""
        mine, yours = (uninflected(swapped(*two), two[1]) for two in ((new, old), (old, new)))
        if max(len(mine), len(yours)) > MOST_SWAPPED:
            return False
        return all(sum(special(term) ** 2 for term in some) >= OWN for some in (mine, yours))

    def rest(self, new: Words, old: Words) -> float:
        """The cosine of two notes without the numbers and names that only one of them has."""
        mine = new.terms - ((new.numbers | new.names) - old.terms)
        yours = old.terms - ((old.numbers | old.names) - new.terms)
        return self.length(mine & yours) / (sqrt(self.length(mine) * self.length(yours)) or 1.0)
