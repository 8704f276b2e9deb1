"""The facts of a note: numbers, names, identifiers, quotations, and whether it has a negation. Two notes whose facts differ
are never one line, since a lost fact costs a run and a repeated line twenty tokens. Words are only split, not parsed. Pure.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from harness.memory import tables
from harness.memory._word_frequency import ALL, special
from harness.memory._words import EDGES, IDENTIFIER, NUMBER_WORDS, STOP_WORDS, WIDE_RUN

NEGATION, NEGATIONS = "n't", tables.words(tables.WORDS, "negations")  # a note with any has the fact NEGATION
QUOTED = re.compile(r"`[^`]+`|\"[^\"]+\"|[“„«][^“”„«»]+[“”»]|(?<!\w)'[^']+'(?!\w)")
BETWEEN = re.compile(r"[\s()\[\]{}\"`=<>|]+|,(?!\d)|(?<!\d),")
SENTENCE_ENDS = ".:;!?\u2013\u2014-"


@functools.lru_cache(4096)
def facts(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """(the words of a note in small letters, those that are facts, those that may be: uncommon words with a capital at the
    beginning of a sentence)."""
    text, begins = unicodedata.normalize("NFKC", text).replace("\u2019", "'"), True
    found = {token for part in QUOTED.findall(text) for _, token in _tokens(part)}
    possible, tokens = set[str](), set[str]()
    for chunk in WIDE_RUN.sub(r" \g<0> ", text).split():
        for bare, token in _tokens(chunk):
            letters = bare[1:] if begins else bare
            tokens.add(token)
            if IDENTIFIER.search(bare) or re.search(r"\d|\w-\w", token) or letters != letters.lower() or "=" in chunk:
                found.add(token)
            elif bare[:1].isupper() and token not in STOP_WORDS and special(token) == ALL:
                possible.add(token)
            begins = begins and token == "avoid"
        begins = begins or chunk[-1] in SENTENCE_ENDS
    denial = {NEGATION for token in tokens if token in NEGATIONS or token.endswith(NEGATION)}
    return frozenset(tokens | denial), frozenset(found | denial), frozenset(possible)


def _tokens(text: str) -> list[tuple[str, str]]:
    """(token as written, in small letters) of each word."""
    found = (part.strip(EDGES).rstrip("/") for part in BETWEEN.split(text))
    made = ((bare, bare.casefold().removesuffix("'s")) for bare in found if re.search(r"\w", bare))
    return [(bare, NUMBER_WORDS.get(token, token)) for bare, token in made]
