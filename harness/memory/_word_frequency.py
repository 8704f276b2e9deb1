"""The weight of a word: low if it is common in all documentation, full if it is a name of somebody's own.

`common.txt` lists the words of most documentation, the commonest first.
"""

from __future__ import annotations

import functools
from math import log

from harness.memory import tables

ALL = 1000  # weight of a word that is not common
MIN_SPECIAL = 200  # weight of the commonest word
SPREAD = 20  # rank in the list from which weights begin to grow
DEFAULT_PLACE = 400  # rank of words without a counted rank
SHORT_NUMBER, NUMBER = 400, 700  # weights: "5" is in many notes by chance, "3000" in few
LONG_NUMBER = 4  # digits
PAIR = 500  # weight of a pair of characters in a script without spaces; a word has two or three


@functools.cache
def _places() -> dict[str, int]:
    listed = [word for line in tables.sections("common.txt")["words"] for word in line.split()]
    places = {word: place for place, word in enumerate(listed)}
    for name in ("words of other languages", "identifiers"):
        places |= dict.fromkeys(tables.words("common.txt", name), DEFAULT_PLACE)
    return places


@functools.lru_cache(65536)
def special(term: str) -> int:
    """The weight of a term, MIN_SPECIAL to ALL, independent of this mission's notes."""
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
