"""How much a word tells that two notes share: little if it is common everywhere, all if it is a word of this mission's own.

`common.txt` has the words that most documentation has, the commonest first. What a stream of notes knows of its own words is
their rarity (similarity.py); a young mission knows little, and a topic that has many notes makes its own words look common.
"""

from __future__ import annotations

import functools
from math import log

from harness.memory import tables

ALL = 1000  # what a word tells that is not common
MIN_SPECIAL = 200  # what the commonest word tells
SPREAD = 20  # places in the list after which words begin to tell more
DEFAULT_PLACE = 400  # the place of words whose place nobody counted
SHORT_NUMBER, NUMBER = 400, 700  # "5" is in many notes by chance, "3000" in few
LONG_NUMBER = 4  # digits
PAIR = 500  # one pair of characters of a script without spaces: a word has two or three


@functools.cache
def _places() -> dict[str, int]:
    listed = [word for line in tables.sections("common.txt")["words"] for word in line.split()]
    places = {word: place for place, word in enumerate(listed)}
    for name in ("words of other languages", "identifiers"):
        places |= dict.fromkeys(
            (word for line in tables.sections("common.txt")[name] for word in line.split()), DEFAULT_PLACE
        )
    return places


@functools.lru_cache(65536)
def special(term: str) -> int:
    """How much a term tells, LEAST to ALL, whatever this mission's notes are."""
    if term.isdigit():
        return NUMBER if len(term) >= LONG_NUMBER else SHORT_NUMBER
    if len(term) <= 2 and not term.isascii():
        return PAIR
    places = _places()
    place = places.get(term)
    if place is None:
        return ALL
    return round(
        MIN_SPECIAL + (ALL - MIN_SPECIAL) * log(1 + place / SPREAD) / log(1 + max(len(places), place) / SPREAD)
    )
