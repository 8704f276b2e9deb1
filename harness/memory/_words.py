"""Splits a note into terms for comparison: stems, identifiers and numbers. Pure.

Words are stems without stop words; Chinese, Japanese and Korean text is split into pairs of characters. An identifier
(path, flag, command, camelCase, anything in backticks) counts as written, and its parts as words.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections import Counter

from harness.base.record import Record
from harness.memory import tables

SHORTEST_STEM = 3
FEWEST_SHARED = 2  # words (or all, if fewer) that two texts must share to be compared
MAX_TOKEN_CHARS = 80  # characters; longer tokens are cut, so that a line of garbage costs little

STOP_WORDS = tables.words(tables.WORDS, "stop words")
NEGATIONS = tables.words(tables.WORDS, "negations")  # a fact of the note, see `_facts.py`, and no term
UNTOLD = STOP_WORDS | NEGATIONS
BETWEEN = re.compile("[\u3001\u3002\u2192]")  # signs that end a word, beside spaces
TOKEN = re.compile(r"`[^`]{1,200}`|\S+")
IDENTIFIER = re.compile(r"[/_*$@=\\|~<>#]|::|[a-z][A-Z]|\w\.\w|\d[a-zA-Z]|[a-zA-Z]\d|^--?[A-Za-z]")
NUMBER = re.compile(
    r"[$€v]?(\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?)(?:%|x|ms|s|m|h|k|kb|mb|gb|mib|gib|st|nd|rd|th|min|sec|px|d|days?|hours?|seconds?|minutes?)?",
    re.IGNORECASE,
)
FINAL = re.compile(r"(?<=\w)[.!]$")
LONG = re.compile(r"[^\W_]{3,}")
PART = re.compile(r"[a-z]+|\d+|[^\W\d_a-z]+", re.IGNORECASE)
WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\u3040-\u30ff"
WIDE_RUN = re.compile(f"[{WIDE}]+")
EDGES = ".,;:!?()[]{}\"'<>\u2026\u201c\u201d\u2018\u2019\u00ab\u00bb\u2013\u2014`"
IRREGULAR = dict(pair.split(":") for pair in tables.words("words.txt", "irregular"))
NUMBER_WORDS = {
    word: str(number) for number, word in enumerate("two three four five six seven eight nine ten".split(), 2)
}


class NoteWords(Record, frozen=True):
    """A note in terms. `terms`: all words and identifiers; `order`: the same in order; `names`: the identifiers."""

    text: str
    terms: frozenset[str]
    order: tuple[str, ...]
    names: frozenset[str]
    numbers: frozenset[str]


@functools.lru_cache(65536)
def stem(word: str) -> str:
    """Strip English inflections from a word; `migrated`, `migrate` and `migrating` have one stem."""
    word = IRREGULAR.get(word, word)
    if len(word) > 4 and word.endswith(("ies", "ied")):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ation", "ing", "ed", "er", "ment"):
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            word = word[: -len(ending)]
            if word.endswith("at") and len(word) > 5 and word[-3] not in "eo":
                word = word[:-2]  # migrated, as migration
            elif word[-1] == word[-2] and word[-1] not in "ls" and len(word) > SHORTEST_STEM:
                word = word[:-1]
            break
    if word.endswith("tion") and len(word) > 6:
        word = word[:-3]
    if word.endswith("ate") and len(word) > 6 and word[-4] not in "eo":
        return word[:-3]
    return word[:-1] if word.endswith("e") and len(word) > SHORTEST_STEM else word


class _Reader:
    """Reads a note token by token."""

    def __init__(self) -> None:
        self.terms: dict[str, None] = {}
        self.names: set[str] = set()
        self.numbers: set[str] = set()

    def read(self, text: str) -> None:
        """Read a note."""
        for token in TOKEN.findall(BETWEEN.sub(" ", unicodedata.normalize("NFKC", text))):
            if token[0] == "`":
                inner = token.strip("`").split()
                for part in inner:
                    self.token(part, code=True)
                if len(inner) > 1:
                    self.name(" ".join(inner[:2]).lower())
            else:
                self.token(token, code=False)

    def token(self, token: str, *, code: bool) -> None:
        """Read one token: a number, an identifier, or words."""
        bare = token.strip(EDGES)[:MAX_TOKEN_CHARS]
        if not bare:
            return
        number = NUMBER.fullmatch(bare)
        if not code and bare.isascii() and bare.isalpha() and (bare[1:].islower() or bare.isupper()):
            self.word(bare.lower())  # most tokens
        elif number:
            self.numbers.add(number.group(1))
            self.terms[number.group(1)] = None
        elif WIDE_RUN.search(bare):
            self.wide(bare)
        elif IDENTIFIER.search(bare) or (code and len(bare) > 1):
            self.identifier(bare.lower())
        else:
            for word in bare.lower().replace("\u2019", "'").split("-"):
                self.word(word)

    def identifier(self, low: str) -> None:
        """Read an identifier: it counts whole, without an assigned value, and its parts as words."""
        if "(" in low[1:]:
            low, _, inside = low.partition("(")
            for part in inside.rstrip(")").split(","):
                self.token(part, code=False)
        name, sets, value = low.partition("=")
        if not PART.search(name):
            return
        self.name(name.removeprefix("./").rstrip("/"))
        for part in PART.findall(name):
            if len(part) > 2 and part not in STOP_WORDS and part != name:
                self.terms[stem(part)] = None
        if sets and value.strip(EDGES):
            self.token(value, code=not value.strip(EDGES).isalpha())

    def word(self, word: str) -> None:
        """Read a plain word: a number, or a term if it is meaningful."""
        if word in NUMBER_WORDS:
            word = NUMBER_WORDS[word]
            self.numbers.add(word)
        word = "" if word.endswith("n't") else word.partition("'")[0]
        if word and word not in UNTOLD:
            self.terms[stem(word)] = None

    def wide(self, text: str) -> None:
        """Read text without spaces between words: each pair of adjacent characters is a term, and a lone character;
        other parts are read as usual."""
        at = 0
        for run in WIDE_RUN.finditer(text):
            self.token(text[at : run.start()], code=False)
            found, at = run.group(), run.end()
            self.terms |= dict.fromkeys([found] if len(found) == 1 else map("".join, itertools.pairwise(found)))
        self.token(text[at:], code=False)

    def name(self, name: str) -> None:
        """Add an identifier."""
        self.terms[name] = None
        self.names.add(name)


@functools.lru_cache(4096)
def words(text: str) -> NoteWords:
    """The words of a note."""
    reader = _Reader()
    reader.read(text)
    return NoteWords(
        text=text,
        terms=frozenset(reader.terms),
        order=tuple(reader.terms),
        names=frozenset(reader.names),
        numbers=frozenset(reader.numbers),
    )


def plain(text: str) -> str:
    """Normalise a note: white space, backticks, the first letter's case, the final full stop. Equal notes are one line."""
    text = FINAL.sub("", " ".join(text.replace("`", "").split()))
    return text[:1].casefold() + text[1:] if text[1:2].islower() else text


@functools.lru_cache(16384)
def keys(text: str) -> frozenset[str]:
    """Search keys of a text; two equivalent texts share some."""
    return frozenset(LONG.findall(text.lower())) - STOP_WORDS if text.isascii() else words(text).terms


class CandidateFilter:
    """A fast test whether any of some texts can be equivalent to a text: they share two words, or all of few."""

    def __init__(self, texts: list[str]) -> None:
        self.listed: dict[str, list[int]] = {}
        self.known: dict[str, bool] = {}
        for number, text in enumerate(texts):
            for word in keys(text):
                self.listed.setdefault(word, []).append(number)

    def has(self, text: str) -> bool:
        """Whether any text can be equivalent."""
        if text not in self.known:
            self.known[text] = self._has(text)
        return self.known[text]

    def _has(self, text: str) -> bool:
        said = keys(text)
        known, least = said & self.listed.keys(), min(FEWEST_SHARED, len(said))
        if len(known) < least:
            return False  # most texts
        counts = Counter(number for word in known for number in self.listed[word])
        return max(counts.values(), default=0) >= least
