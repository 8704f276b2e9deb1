"""Parses a note for comparison: stems, identifiers, numbers, and which of them the note denies. Pure.

Words are stems without stop words; Chinese, Japanese and Korean text is split into pairs of characters. An identifier
(path, flag, command, camelCase, anything in backticks) counts as written, and its parts as words. "Not", "never",
"instead of", "no longer" and the like deny the words that follow in the clause.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from harness.base.record import Record
from harness.memory import tables

SHORTEST_STEM = 3
FEWEST_SHARED = 2  # words (or all, if fewer) that two texts must share to be compared
MAX_TOKEN_CHARS = 80  # characters; longer tokens are cut, so that a line of garbage costs little

STOP_WORDS = tables.words(tables.WORDS, "stop words")
DENIALS = tables.words(tables.WORDS, "denials")
DENYING = tables.words(tables.WORDS, "denying verbs")  # in an order, unlike "browsers refuse X"
PAST = tables.words(tables.WORDS, "past")
INSTEAD = {"instead": "of", "rather": "than"}
PASSIVE = frozenset(("was", "were", "is", "are", "been", "got", "wird", "wurde", "ist"))
BY = frozenset(("by", "with", "durch", "mit"))  # replaced by
ORDERS = tables.words(tables.WORDS, "orders")
AFFIRMS = tables.words(tables.WORDS, "affirms")
MODAL = tables.words(tables.WORDS, "modal")
MOVES = tables.words(tables.WORDS, "moves")
LIFTS = tables.words(tables.WORDS, "lifts")
NEGATIONS = tables.words(tables.WORDS, "negations")
UNTOLD = STOP_WORDS | NEGATIONS
REACH = 3  # terms after a denial or order that it applies to
CLAUSE = re.compile(r"[.;:!?,)(](?:\s|$)|\s[\u2013\u2014-]\s|[\u3002\uff1b\uff0c\uff01\uff1f\u3001]|\s=>|\s->|\u2192")
TOKEN = re.compile(r"`[^`]{1,200}`|\S+")
IDENTIFIER = re.compile(r"[/_*$@=\\|~<>#]|::|[a-z][A-Z]|\w\.\w|\d[a-zA-Z]|[a-zA-Z]\d|^--?[A-Za-z]")
NUMBER = re.compile(
    r"[$€v]?(\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?)(?:%|x|ms|s|m|h|k|kb|mb|gb|mib|gib|st|nd|rd|th|min|sec|px|d|days?|hours?|seconds?|minutes?)?",
    re.IGNORECASE,
)
GOES = ("goes away", "go away", "is out", "is over", "goes")
NO_MORE = re.compile(r"\b(?:any ?more|any longer|nicht mehr|keine?[nrms]? .*mehr)\b", re.IGNORECASE)
LONG = re.compile(r"[^\W_]{3,}")
PART = re.compile(r"[a-z]+|\d+|[^\W\d_a-z]+", re.IGNORECASE)
WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\u3040-\u30ff"
WIDE_RUN = re.compile(f"[{WIDE}]+")
WIDE_DENIAL = re.compile("不再使用|不再用|不要使用|不要用|禁止使用|不使用|不用|不要|不再|禁止|切勿|而不是|而非")
WIDE_REFUSED = re.compile("(?:使わない|使用しない|使わず|使うな|やめ|廃止|禁止)")  # after the denied term
EDGES = ".,;:!?()[]{}\"'<>\u2026\u201c\u201d\u2018\u2019\u00ab\u00bb\u2013\u2014`"
IRREGULAR = dict(pair.split(":") for pair in tables.words("words.txt", "irregular"))
NUMBER_WORDS = {
    word: str(number) for number, word in enumerate("two three four five six seven eight nine ten".split(), 2)
}
# Words that change the meaning of words after or before them.
CONTROLS = frozenset(
    ("be", "werden", "forget", "vergessen", "it", "not", "nicht", "more", "from", "von", "to", "zu", "auf")
)
CONTROLS |= {*INSTEAD.values()} | DENIALS | PAST | NEGATIONS | BY | LIFTS | MOVES | AFFIRMS | NUMBER_WORDS.keys()


class NoteWords(Record, frozen=True):
    """A parsed note. `terms`: all words and identifiers; `order`: the same in order; `names`: the identifiers; `denied`
    and `ordered`: terms not to use, and to use; `refused`: terms denied explicitly, not just in passing; `refuses`:
    whether any are; `must`: whether it states a requirement."""

    text: str
    terms: frozenset[str]
    order: tuple[str, ...]
    names: frozenset[str]
    numbers: frozenset[str]
    denied: frozenset[str]
    ordered: frozenset[str]
    refused: frozenset[str]
    refuses: bool
    must: bool


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
        self.denied: set[str] = set()
        self.ordered: set[str] = set()
        self.refused: set[str] = set()
        self.refuses = False
        self.said: set[str] | None = None  # the set for the next terms: denied, ordered, or None
        self.tail: set[str] | None = None  # the set for later identifiers of the clause
        self.left = 0
        self.moves = self.replaced = self.ends = False
        self.before, self.begun = "", 0  # the previous word; the number of terms before the clause

    def clause(self, clause: str) -> None:
        """Read one clause: a denial applies at most to its end."""
        self.tail = None
        self.said, self.moves, self.replaced, self.before, self.begun = None, False, False, "", len(self.terms)
        self.ends = bool(NO_MORE.search(clause))
        for token in TOKEN.findall(clause):
            if self.said is None and token.isascii() and token.isalpha() and token.islower():
                self.letters(token[:MAX_TOKEN_CHARS])  # most tokens
            elif token[0] == "`":
                inner = token.strip("`").split()
                for part in inner:
                    self.token(part, code=True)
                if len(inner) > 1:
                    self.term(" ".join(inner[:2]).lower(), name=True)
            else:
                self.token(token, code=False)
        ended = [*self.terms][self.begun :]
        if (self.before in PAST or clause.lower().rstrip(" .").endswith(GOES)) and 1 < len(ended) <= REACH + 1:
            self.denied.update(ended)  # X dropped

    def token(self, token: str, *, code: bool) -> None:
        """Read one token: a denial or order applies to at most three meaningful terms."""
        said, count = self.said, len(self.said or ())
        self._token(token, code=code)
        if said is not None and self.said is said and len(said) > count:
            self.left -= 1
            if not self.left:
                self.said, self.tail = None, said

    def _token(self, token: str, *, code: bool) -> None:
        bare = token.strip(EDGES)[:MAX_TOKEN_CHARS]
        if not bare:
            return
        if not code and bare.isascii() and bare.isalpha() and (bare[1:].islower() or bare.isupper() or len(bare) == 1):
            self.letters(bare.lower())
            return
        number = NUMBER.fullmatch(bare)
        if number:
            self.numbers.add(number.group(1))
            self.term(number.group(1))
        elif WIDE_RUN.search(bare):
            self.wide(bare)
        elif IDENTIFIER.search(bare) or (code and len(bare) > 1):
            self.identifier(bare.lower())
        else:
            for word in bare.lower().replace("\u2019", "'").split("-"):
                self.word(word)

    def letters(self, low: str) -> None:
        """Read a word of letters only, the common case."""
        if self.said is not None or low in CONTROLS or self.before == "stop":
            self.word(low)
            return
        self.before = low
        if low not in UNTOLD:
            self.terms[stem(low)] = None

    def identifier(self, low: str) -> None:
        """Read an identifier: it counts whole, without an assigned value, and its parts as words."""
        if "(" in low[1:]:
            low, _, inside = low.partition("(")
            for part in inside.rstrip(")").split(","):
                self._token(part, code=False)
        name, sets, value = low.partition("=")
        if not PART.search(name):
            return
        if self.before == "no" and len(self.terms) == self.begun:
            self.says(self.refused)  # no X
        self.term(name.removeprefix("./").rstrip("/"), name=True)
        for part in PART.findall(name):
            if len(part) > 2 and part not in STOP_WORDS and part != name:
                self.term(stem(part))
        if sets and value.strip(EDGES):
            self._token(value, code=not value.strip(EDGES).isalpha())

    def word(self, word: str) -> None:
        """Read a plain word: a denial, an order, a number, or a term."""
        before, self.before = self.before, word
        if before in ("not", "nicht") and word in ("be", "werden") and self.said is self.refused:
            self.refused |= self.terms.keys()  # X must not be used
        elif word in ("forget", "vergessen") and self.said is self.refused and self.left == REACH:
            self.said, self.refuses = None, bool(self.refused)  # do not forget X
        elif word == "it" and self.said is self.refused and self.left == REACH:
            self.refused |= self.terms.keys()  # X …: avoid it
        elif (
            (word in DENIALS and (word not in DENYING or not before or before in ORDERS))
            or (before == "no" and word in ("longer", "more"))
            or (before == "stop" and word.endswith("ing"))
            or (word in ("not", "nicht") and (not before or before in ORDERS))
        ):
            self.says(self.refused)
        elif word in PAST and before in PASSIVE:
            self.denied.update([*self.terms][self.begun :])  # X was dropped
            self.replaced = True
            return
        elif self.ends and word in NEGATIONS:
            self.says(self.refused)
            self.refused.update([*self.terms][self.begun :])  # X is no longer done
        elif word in PAST or INSTEAD.get(before) == word:
            self.says(self.denied)
            self.replaced = word in PAST
        elif self.replaced and word in BY:
            self.says(self.ordered)
        elif word in LIFTS:
            self.refused.difference_update([*self.terms][self.begun :])  # never X without Y
            self.refuses = bool(self.refused)
            self.said = self.tail = None
        elif word in MOVES:
            self.moves = True
        elif self.moves and word in ("from", "von"):
            self.says(self.denied)
        elif (self.moves and word in ("to", "zu", "auf")) or self.affirms(word, before):
            self.says(self.ordered)
        self.plain(word)

    def plain(self, word: str) -> None:
        """Add a word as a term, if it is meaningful."""
        if word in NUMBER_WORDS:
            word = NUMBER_WORDS[word]
            self.numbers.add(word)
        if word.endswith("n't"):
            return
        word = word.partition("'")[0]
        if (word in AFFIRMS or word in DENIALS) and word not in UNTOLD:
            self.terms[stem(word)] = None  # the verb itself is neither ordered nor denied
        elif word and word not in UNTOLD:
            self.term(stem(word))

    def affirms(self, word: str, before: str) -> bool:
        """Whether the word orders what follows: "run X", but not "cannot run X"."""
        is_said = self.said is self.denied or self.said is self.refused
        return word in AFFIRMS and before not in NEGATIONS and not is_said

    def says(self, target: set[str]) -> None:
        """Apply a denial or an order to the next terms."""
        self.said, self.left, self.tail = target, REACH, None
        self.refuses = self.refuses or target is self.refused

    def wide(self, text: str) -> None:
        """Read text without spaces between words: each pair of adjacent characters is a term; other parts are read as
        usual."""
        at = 0
        for run in WIDE_RUN.finditer(text):
            if run.start() > at:
                self.token(text[at : run.start()], code=False)
            denial = WIDE_DENIAL.search(run.group())
            self.pairs(run.group()[: denial.start() if denial else None])
            if WIDE_REFUSED.search(run.group()):
                self.refused |= self.names
                self.refuses = True
            elif denial:
                self.says(self.refused)
                self.pairs(run.group()[denial.end() :])
            at = run.end()
        if at < len(text):
            self.token(text[at:], code=False)

    def pairs(self, run: str) -> None:
        """Add each pair of adjacent characters of a run; a lone character is a term too."""
        for one in [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]:
            self.term(one)

    def term(self, term: str, *, name: bool = False) -> None:
        """Add one term."""
        self.terms[term] = None
        if name:
            self.names.add(term)
        if self.said is not None:
            self.said.add(term)
        elif name and self.tail is self.refused:
            self.refused.add(term)


@functools.lru_cache(4096)
def words(text: str) -> NoteWords:
    """The words of a note."""
    reader = _Reader()
    for clause in CLAUSE.split(unicodedata.normalize("NFKC", text)):
        reader.clause(clause)
    denied = reader.denied | reader.refused
    return NoteWords(
        text=text,
        terms=frozenset(reader.terms),
        order=tuple(reader.terms),
        names=frozenset(reader.names),
        numbers=frozenset(reader.numbers),
        denied=frozenset(denied),
        ordered=frozenset(reader.ordered - denied),
        refused=frozenset(reader.refused),
        refuses=reader.refuses,
        must=not MODAL.isdisjoint(text.lower().split()),
    )


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
        said, counts = keys(text), dict[int, int]()
        known, least = said & self.listed.keys(), min(FEWEST_SHARED, len(said))
        if len(known) < least:
            return False  # most texts
        for word in known:
            for number in self.listed[word]:
                counts[number] = counts.get(number, 0) + 1
        return max(counts.values(), default=0) >= least
