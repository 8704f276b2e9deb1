"""The facts of a note: numbers, names, identifiers, quotations, and whether it has a negation.

A correction must have those of the line that it replaces, and notes with different facts never count together. Words are only
split, not parsed. Pure.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from harness.memory._words import EDGES, IDENTIFIER, NEGATIONS, NUMBER_WORDS, WIDE_RUN

NEGATION = "n't"  # the fact of a note with a word of NEGATIONS, or with one of these
WIDE_NEGATION = re.compile("[不没未無无勿]|ない|ません|禁止|やめ|않|못|없")
QUOTED = re.compile(r"`[^`]+`|\"[^\"]+\"|[“„«][^“”„«»]+[“”»]|(?<!\w)'[^']+'(?!\w)")
BETWEEN = re.compile(r"[\s()\[\]{}\"`=<>|]+|,(?!\d)|(?<!\d),")
SENTENCE_ENDS = ".:;!?\u2013\u2014-"


@functools.lru_cache(4096)
def facts(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """(the words of a note in small letters, those that are facts). A capital at the beginning of a sentence makes no name."""
    text, begins = unicodedata.normalize("NFKC", text).replace("\u2019", "'"), True
    quoted = {token for part in QUOTED.findall(text) for token in tokens(part)}
    found, every = set[str](), set[str]()
    for chunk in WIDE_RUN.sub(r" \g<0> ", text).split():
        for bare, token in _tokens(chunk):
            letters = bare[1:] if begins else bare
            every.add(token)
            is_name = letters != letters.lower() or token in quoted or "=" in chunk
            if is_name or IDENTIFIER.search(bare) or re.search(r"\d|\w-\w", token):
                found.add(token)
            begins = begins and token == "avoid"
        begins = begins or chunk[-1] in SENTENCE_ENDS
    if any(one in NEGATIONS or one.endswith(NEGATION) for one in every) or WIDE_NEGATION.search(text):
        every.add(NEGATION)
        found.add(NEGATION)
    return frozenset(every), frozenset(found)


def same_facts(one: str, other: str) -> bool:
    """Whether each of two notes has the facts of the other."""
    (mine, my_facts), (yours, your_facts) = facts(one), facts(other)
    return my_facts <= yours and your_facts <= mine


def tokens(text: str) -> list[str]:
    """The words of a text in small letters."""
    return [token for _, token in _tokens(text)]


def _tokens(text: str) -> list[tuple[str, str]]:
    """(token as written, in small letters) of each word."""
    found = (part.strip(EDGES).rstrip("/") for part in BETWEEN.split(text))
    made = ((bare, bare.casefold().removesuffix("'s")) for bare in found if re.search(r"\w", bare))
    return [(bare, NUMBER_WORDS.get(token, token)) for bare, token in made]
