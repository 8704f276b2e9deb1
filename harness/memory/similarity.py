"""Whether two notes have the same meaning: other words, but the same commands, flags, numbers and sense.

Merging two different notes loses one of them, so every rule prefers "different": flags, numbers, names, negations,
opposites and the order of things must not contradict; only then do shared content words decide. Pure.
"""

from __future__ import annotations

import functools
import re

from harness.base.record import Record

# From the labelled pairs of tests/memory/test_similarity.py: tuned on 32 same and 40 different, measured on 14 and 16 written
# later; on all of them precision is 1.00 and recall 0.78. Changed one at a time, in steps of 0.05 or 1, recall falls above
# CLOSENESS 0.70, OVERLAP 0.75, ONE_SIDED_OVERLAP 0.85 and LEAST_SHARED 5; different pairs are merged below CLOSENESS 0.60 and
# MOST_SWAPPED 2. The other lower ends are caution. The last two bound the work of one look-up.
LEAST_SHARED = 4
OVERLAP = 0.6
ONE_SIDED_OVERLAP = 0.7
CLOSENESS = 0.65
MOST_SWAPPED = 3
MOST_LOOKED_AT = 200
MOST_COMPARED = 12


@functools.lru_cache(65536)
def stem(word: str) -> str:
    """The word without plural, -ing, -ed and a final e; `migrations`, `migrate` and `migrating` have one stem."""
    if word.endswith(("ies", "ied")) and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "ls" and len(word) > 3:
                word = word[:-1]
            break
    if word.endswith("tion") and len(word) > 6:
        word = word[:-3]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _rows(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row.split()) for row in text.split(","))


# The tables hold plain words. Those compared with stems are stemmed here, once, so that every row can match.

STOP_WORDS = _words(
    "the a an and or but if so that this these those is are was were be been being it its to of in on at by for from with as"
    " into when while which who whose what how there here will would can could should must may might do does did done has"
    " have had you your we our us they them their he i also just really very much some any all each every both such own"
    " too s t ll ve d since because otherwise else until till need needs needed require requires required again"
    " always get gets got per here one"
)
NEGATIONS = _words("not never no none cannot nor neither avoid nothing")
CONDITIONS = frozenset(map(stem, _words("without unless")))
ORDERS = frozenset(map(stem, _words("before instead rather over than call need require depend import override")))
REVERSED_ORDERS = frozenset(("after",))
PROGRAMS = _words(
    "npm npx pnpm yarn bun pip uv poetry cargo go make git docker kubectl helm terraform apt brew alembic compose"
)
NUMBER_WORDS = {
    row[0]: str(number) for number, row in enumerate(_rows("two, three, four, five, six, seven, eight, nine, ten"), 2)
}
COMPOUNDS = _rows(
    "filename file name, filesystem file system, lockfile lock file, subfolder sub folder, subdirectory sub folder,"
    " timezone time zone"
)
SYNONYMS = _rows(
    "folder directory dir, repository repo, database db, environment env, configuration configure config, remove delete,"
    " run execute invoke, fail error break broke broken crash, dependency dep, document documentation doc,"
    " postgres postgresql, javascript js, typescript ts, sort order, kill terminate, temporary temp tmp,"
    " different differ another, write wrote written"
)
OPPOSITES = _rows(
    "enable disable, first last, true false, sync async, add remove, install uninstall, allow deny, min max,"
    " minimum maximum, start stop, upper lower, read write, push pull, open close, old new, staging production, ascend descend,"
    " tab space, local remote, pass fail, client server, left inner, left right, more less, up down, on off, full empty,"
    " same different, include exclude, encode decode, serial parallel, get set, public private"
)

_PARTS = {stem(row[0]): tuple(stem(word) for word in row[1:]) for row in COMPOUNDS}
_ROOTS = {stem(word): stem(row[0]) for row in SYNONYMS for word in row}
_PAIRS = [tuple(_ROOTS.get(stem(word), stem(word)) for word in row) for row in OPPOSITES]
_PAIRS += [pair[::-1] for pair in _PAIRS]
_OPPOSITES = {one: tuple(other for first, other in _PAIRS if first == one) for one, _ in _PAIRS}


class Meaning(Record):
    """The meaning of a note, as far as it is compared.

    `words`: all content words, with flags, numbers and names; `poles`: words that have an opposite, also stop words, in order.
    """

    text: str
    words: frozenset[str]
    order: tuple[str, ...]
    poles: tuple[str, ...]
    flags: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    negated: bool
    denied: frozenset[str]
    commands: frozenset[tuple[str, str]]
    earlier: frozenset[str]
    later: frozenset[str]
    turn: tuple[str, str] | None


FLAG = re.compile(r"--?[A-Za-z][\w-]*")
NUMBER = re.compile(
    r"v?([0-9]+(?:[.:][0-9]+)*)(?:%|x|ms|s|m|h|k|kb|mb|gb|st|nd|rd|th|seconds?|minutes?)?", re.IGNORECASE
)
NAMED = re.compile(r"[/_*$@:=.]|[a-z][A-Z]|[0-9]")
EDGES = ".,;:!?()[]{}\"'<>…"


class _Parser:
    """Parses a note, word by word."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.poles: list[str] = []
        self.flags: set[str] = set()
        self.numbers: set[str] = set()
        self.names: set[str] = set()
        self.denials: list[int] = []
        self.commands: set[tuple[str, str]] = set()
        self.program = ""
        self.turn = -1
        self.reversed = False

    def take(self, token: str, code: bool) -> None:
        """Take one token, split at white space; `code` if it was in backticks."""
        bare = token.strip(EDGES) if token[:1] != "." else token.rstrip(EDGES)
        number = NUMBER.fullmatch(bare)
        if self.program and bare.isalpha() and bare.lower() not in STOP_WORDS:
            self.commands.add((self.program, bare))
        self.program = token if token in PROGRAMS else ""
        if FLAG.match(bare):
            flag, _, value = bare.partition("=")
            self.flags.add(flag)
            self.words.append(flag)
            if value:
                self.take(value, True)
        elif number:
            self._number(number.group(1))
        elif bare and (code or NAMED.search(bare)):
            name = bare.lower().removeprefix("./")
            self.names.add(name)
            self.words.append(name)
            self._root(stem(name))
        elif bare:
            for part in bare.lower().replace("\u2019", "'").split("-"):
                self._word(part)

    def _number(self, number: str) -> None:
        self.numbers.add(number)
        self.words.append(number)

    def _word(self, word: str) -> None:
        if word in NEGATIONS or word.endswith("n't"):
            self.denials.append(len(self.words))
            return
        if word in NUMBER_WORDS:
            self._number(NUMBER_WORDS[word])
            return
        word = word.partition("'")[0]
        stemmed = stem(word)
        if stemmed in _PARTS:
            self.words.extend(_PARTS[stemmed])
            return
        root = self._root(stemmed)
        if self.turn < 0 and (stemmed in ORDERS or word in REVERSED_ORDERS):
            self.turn, self.reversed = len(self.words), word in REVERSED_ORDERS
        if word and word not in STOP_WORDS and stemmed not in ORDERS and word not in REVERSED_ORDERS:
            self.words.append(root)

    def _root(self, stemmed: str) -> str:
        """The common stem of the word and its synonyms; records a pole before stop words such as `on` are dropped."""
        root = _ROOTS.get(stemmed, stemmed)
        if root in _OPPOSITES:
            self.poles.append(root)
        return root


def meaning(text: str) -> Meaning:
    """The meaning of `text`, ready for comparison."""
    parser = _Parser()
    for index, part in enumerate(text.split("`")):
        for token in part.split():
            parser.take(token, code=index % 2 == 1)
    earlier, later = parser.words[: max(parser.turn, 0)], parser.words[parser.turn :]
    if not earlier or not later:
        earlier, later = [], []
    turn = (earlier[-1], later[0]) if earlier else None
    if parser.reversed and turn:
        earlier, later, turn = later, earlier, turn[::-1]
    return Meaning(
        text=text.strip().rstrip("."),
        words=frozenset(parser.words),
        order=tuple(dict.fromkeys(parser.words)),
        poles=tuple(dict.fromkeys(parser.poles)),
        flags=frozenset(parser.flags),
        numbers=frozenset(parser.numbers),
        names=frozenset(parser.names),
        negated=bool(parser.denials),
        denied=frozenset(parser.words[at] for at in parser.denials if at < len(parser.words)),
        commands=frozenset(parser.commands),
        earlier=frozenset(earlier),
        later=frozenset(later),
        turn=turn,
    )


def contradict(a: Meaning, b: Meaning) -> bool:
    """Whether flags, numbers, names, a negation, an opposite or the order of things differ between the two."""
    if a.negated != b.negated or (a.numbers and b.numbers and a.numbers != b.numbers):
        return True
    if (a.flags - b.flags and b.flags - a.flags) or (a.names - b.words and b.names - a.words):
        return True
    mine, yours = ({program for program, _ in one} for one in (a.commands - b.commands, b.commands - a.commands))
    if mine & yours or _opposite(a, b) or _reversed_order(a, b):  # of one program: `npm ci`, `npm install`
        return True
    return bool(a.denied & b.words - b.denied and b.denied & a.words - a.denied)


def _opposite(a: Meaning, b: Meaning) -> bool:
    """Whether one has a word and the other its opposite, or both have both in another order."""
    for one in a.poles:
        for other in _OPPOSITES[one]:
            if other not in b.poles:
                continue
            if other not in a.poles or one not in b.poles:
                return True
            if (a.poles.index(one) < a.poles.index(other)) != (b.poles.index(one) < b.poles.index(other)):
                return True
    return False


def _reversed_order(a: Meaning, b: Meaning) -> bool:
    """Whether the first thing in one (before, after, instead of, calls …) is the last in the other."""
    if not a.turn or not b.turn:
        return False
    crossed = len(a.earlier & b.later) + len(a.later & b.earlier)
    straight = len(a.earlier & b.earlier) + len(a.later & b.later)
    return crossed > straight or any(
        one.turn[0] in other.later and one.turn[1] in other.earlier for one, other in ((a, b), (b, a)) if one.turn
    )


def swapped(a: Meaning, b: Meaning) -> bool:
    """Whether the two are one sentence with a few words replaced: a contrast, not a paraphrase."""
    mine, yours = a.words - b.words, b.words - a.words
    moved = _moved(a, b)
    if moved == 2 or ((mine | yours) & CONDITIONS and len(mine | yours) <= 3):
        return True
    return moved == 0 and 1 <= len(mine) <= MOST_SWAPPED and 1 <= len(yours) <= MOST_SWAPPED


def _moved(a: Meaning, b: Meaning) -> int:
    """The number of shared words at different positions among the shared words; 2 means that two changed places."""
    ours = [word for word in a.order if word in b.words]
    theirs = [word for word in b.order if word in a.words]
    return sum(one != other for one, other in zip(ours, theirs, strict=True))


def score(a: Meaning, b: Meaning) -> float:
    """The confidence that both have the same meaning: above 0 (up to 1) if they do, else 0."""
    if a.text == b.text:
        return 1.0
    shared = len(a.words & b.words)
    close = 2 * shared / (len(a.words) + len(b.words) or 1)
    if close < CLOSENESS or (shared < LEAST_SHARED and a.words != b.words):
        return 0.0
    one_sided = a.flags != b.flags or a.numbers != b.numbers
    least = ONE_SIDED_OVERLAP if one_sided else OVERLAP
    if shared < least * min(len(a.words), len(b.words)) or contradict(a, b) or swapped(a, b):
        return 0.0
    return 0.99 * close


class Index:
    """Finds, among its notes, the one with the same meaning as another; each look-up does bounded work.

    Candidates share words; the rarest words are looked up first, and the best few candidates are compared.
    """

    def __init__(self) -> None:
        self.known: list[Meaning] = []
        self.exact: dict[str, int] = {}
        self.postings: dict[str, list[int]] = {}

    def add(self, text: str) -> int:
        """Add a note; returns its number, counted from 0."""
        return self._add(meaning(text))

    def find(self, text: str) -> int | None:
        """The number of the note with the same meaning, the best and then the oldest match; None if there is none."""
        found = self.exact.get(text.strip().rstrip("."))
        return found if found is not None else self._nearest(meaning(text))

    def place(self, text: str) -> int:
        """The number of the note with the same meaning; without one, `text` is added."""
        found = self.exact.get(text.strip().rstrip("."))
        if found is not None:
            return found
        note = meaning(text)
        found = self._nearest(note)
        if found is None:
            return self._add(note)
        self.exact[note.text] = found
        return found

    def _add(self, note: Meaning) -> int:
        number = len(self.known)
        self.known.append(note)
        self.exact.setdefault(note.text, number)
        for word in note.words:
            self.postings.setdefault(word, []).append(number)
        return number

    def _nearest(self, note: Meaning) -> int | None:
        best, best_score = None, 0.0
        for number in self._candidates(note):
            sure = score(note, self.known[number])
            if sure > best_score:
                best, best_score = number, sure
        return best

    def _candidates(self, note: Meaning) -> list[int]:
        """The numbers of the notes that share most words, at most MOST_COMPARED, in the order of their addition."""
        lists = sorted((self.postings[word] for word in note.words if word in self.postings), key=len)
        counts: dict[int, int] = {}
        looked_at = 0
        for numbers in lists:
            for number in numbers[: MOST_LOOKED_AT - looked_at]:
                counts[number] = counts.get(number, 0) + 1
            looked_at += min(len(numbers), MOST_LOOKED_AT - looked_at)
        nearest = sorted(counts, key=lambda number: (-counts[number], number))[:MOST_COMPARED]
        return sorted(nearest)
