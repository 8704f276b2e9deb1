"""Whether a note says that an older one no longer holds: in one of four forms, or as a decision of the same name. Pure.

A correction must repeat the older note word for word around the form: "the web team no longer merges the branch" corrects "the
web team merges the branch, as agreed". What the older note has besides must be a clause of its own, without a fact and without
a word of the part that is denied. A line that is wrongly replaced is lost, one that is wrongly kept stands beside its correction.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from harness.memory import tables
from harness.memory._facts import facts, tokens
from harness.memory._words import NEGATIONS, STOP_WORDS

MAX_WORDS = 60  # of a sentence; a longer one corrects nothing
ARTICLES = frozenset(("a", "an", "the"))
DO = {"do": "", "does": "s", "did": ""}  # the ending of the verb without it
WAS = frozenset(("was", "were", "previously", "formerly"))
ENDS = frozenset((",", "but", "since", "because", "so"))  # end a clause
# In a value, or in what follows, these limit a correction: "postgres in CI instead of …", "no longer …, but only on staging".
LIMITS = NEGATIONS | tables.words(tables.WORDS, "limits")
# A decision's name: a name of several parts before a colon, "db-engine: …", or any before an equals sign, "retry.max = …".
NAME = re.compile(r"`?([^\W\d_]+(?:[-_][^\W\d_]+)+)`?:\s|`?([^\W\d][\w.-]*)`?\s+=\s")


def replaces(new: str, old: str, *, decisions: bool) -> bool:
    """Whether a newer note says that an older one no longer holds."""
    if "?" in new or "\uff1f" in new:
        return False
    if decisions and (name := _name(new)) and name == _name(old):
        return True
    known, said, found = [*_sentences(old)], [*_sentences(new), [""]], facts(old)[1]
    return len(known) == 1 and any(
        found <= {*core} and _begins(core, known[0])
        for sentence, following in itertools.pairwise(said)
        for core in (_denied(sentence) if following[0] not in LIMITS else ())
    )


def _name(decision: str) -> str:
    found = NAME.match(decision)
    return next(filter(None, found.groups())).casefold() if found else ""


def _sentences(text: str) -> Iterator[list[str]]:
    """The words of each sentence; "," stands between clauses. "Does not run" is read as "not runs"."""
    words: list[str] = []
    ending = ""
    for chunk in [*text.split(), "."]:
        words += [","] if chunk[0] == "(" else []
        for word in tokens(chunk):
            if word in DO and words:
                ending = DO[word]
            elif word not in ARTICLES:
                words.append(word + ending if word != "not" else word)
                ending = ending if word == "not" else ""
        words += [","] if chunk[-1] in ",:)" else []
        if chunk[-1] in ".;!":
            if words and len(words) <= MAX_WORDS:
                yield words
            words, ending = [], ""


def _denied(words: list[str]) -> Iterator[list[str]]:
    """What a sentence says no longer holds, as an older note would say it."""
    pairs = [*zip(words, [*words[1:], ""], strict=True)]
    if (place := _first(pairs, ("no", "longer"))) >= 0:
        yield from _joined(words[:place], words[place + 2 :])
    if "not" in words and "but" in words[(place := words.index("not")) :]:
        yield from _joined(words[:place], words[place + 1 :])
    for form in (("instead", "of"), ("rather", "than")):
        if (place := _first(pairs, form)) >= 0:
            yield from _exchanged(words[:place], words[place + 2 :])
    place = words.index("now") if "now" in words else len(words)
    was = next((at for at in range(place + 2, len(words)) if words[at] in WAS and words[at - 1] == ","), 0)
    if was:
        yield from _exchanged(words[:place] + words[place + 1 : was - 1], words[was + 1 :])


def _first(pairs: list[tuple[str, str]], pair: tuple[str, str]) -> int:
    return pairs.index(pair) if pair in pairs else -1


def _clause(words: list[str]) -> list[str]:
    """The first clause of what follows a form; none if the next one limits it."""
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    rest = [word for word in words[end:] if word not in ENDS]
    return words[:end] if _limits(rest) <= {*words[:end]} else []


def _limits(words: list[str]) -> set[str]:
    return {*words} & LIMITS


def _joined(subject: list[str], rest: list[str]) -> Iterator[list[str]]:
    if subject and (denied := _clause(rest)):
        yield subject + denied


def _exchanged(value: list[str], rest: list[str]) -> Iterator[list[str]]:
    """The older note with what is denied in the place of the last words, at most one more than those."""
    denied = _clause(rest)
    for count in range(1, min(len(denied) + 2, len(value)) if denied else 0):
        if _limits(value[-count:]) <= {*denied}:
            yield value[:-count] + denied


def _begins(part: list[str], words: list[str]) -> bool:
    """Whether a sentence begins with a clause, and says something else behind it."""
    rest = words[len(part) :]
    is_clause = not rest or (rest[0] in ENDS and rest[1:2] not in (["and"], ["or"]))
    return is_clause and words[: len(part)] == part and {*rest}.isdisjoint({*part} - STOP_WORDS)
