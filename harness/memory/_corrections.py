"""Whether a note says that an older one no longer holds: in one of four forms, or as a decision of the same name. Pure.

A correction must repeat the older note word for word around the form: "the web team no longer merges the branch" corrects "the
web team merges the branch, as agreed". What the older note has besides must be a clause of its own, without a fact and without
a word of the part that is denied. A line that is wrongly replaced is lost, one that is wrongly kept stands beside its correction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.memory._facts import NEGATION, facts, tokens
from harness.memory._words import STOP_WORDS, stem

MAX_WORDS = 60  # of a sentence; a longer one corrects nothing
LEFT_OUT = frozenset(("a", "an", "the", "do", "does", "did"))
ALSO = frozenset(("and", "or"))
WAS = frozenset(("was", "were", "previously", "formerly"))
ENDS = frozenset((",", "but", "since", "because", "so"))  # end a clause
# Begin what limits a denial: "no longer …, except in CI", "… but only on staging".
LIMITS = frozenset(("in", "on", "at", "for", "from", "with", "without", "within", "during", "outside", "only"))
LIMITS |= {"except", "unless", "until", "if", "when", "while"}
# A decision's name: a name of several parts before a colon, "db-engine: …", or any before an equals sign, "retry.max = …".
NAME = re.compile(r"`?([^\W\d]+(?:[-_][^\W\d]+)+)`?:\s|`?([^\W\d][\w.-]*)`?\s+=\s")


def replaces(new: str, old: str, *, decisions: bool) -> bool:
    """Whether a newer note says that an older one no longer holds."""
    if decisions and (name := _name(new)) and name == _name(old):
        return True
    said, found = facts(old)
    if NEGATION in said:
        return False  # what lifts a prohibition is rarely said in these forms
    known = [*_sentences(old)]
    return len(known) == 1 and any(
        found <= {*core} and _is_clause(core, known[0]) for one in _sentences(new) for core in _denied(one)
    )


def _name(decision: str) -> str:
    found = NAME.match(decision)
    return next(filter(None, found.groups())).casefold() if found else ""


def _sentences(text: str) -> Iterator[list[str]]:
    """The words of each sentence that is no question; "," stands between clauses."""
    words: list[str] = []
    for chunk in [*text.split(), "."]:
        words += [","] if chunk[0] == "(" else []
        words += [word for word in tokens(chunk) if word not in LEFT_OUT]
        words += [","] if chunk[-1] in ",:)" else []
        if chunk[-1] in ".;!?":
            if words and chunk[-1] != "?" and len(words) <= MAX_WORDS:
                yield words
            words = []


def _denied(words: list[str]) -> Iterator[list[str]]:
    """What a sentence says no longer holds, as an older note would say it."""
    pairs = [*zip(words, [*words[1:], ""], strict=True)]
    if (place := _first(pairs, ("no", "longer"))) >= 0:
        yield from _joined(words[:place], _clause(words[place + 2 :]))
    if "not" in words and "but" in words[(place := words.index("not")) :]:
        yield from _joined(words[:place], words[place + 1 : words.index("but", place)])
    for form in (("instead", "of"), ("rather", "than")):
        if (place := _first(pairs, form)) >= 0:
            yield from _exchanged(words[:place], _clause(words[place + 2 :]))
    place = words.index("now") if "now" in words else len(words)
    was = next((at for at in range(place + 2, len(words)) if words[at] in WAS and words[at - 1] == ","), 0)
    if was:
        yield from _exchanged(words[:place] + words[place + 1 : was - 1], _clause(words[was + 1 :]))


def _first(pairs: list[tuple[str, str]], pair: tuple[str, str]) -> int:
    return pairs.index(pair) if pair in pairs else -1


def _clause(words: list[str]) -> list[str]:
    """The words of a clause; none if what follows limits it."""
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    rest = [word for word in words[end:] if word not in ENDS]
    return words[:end] if LIMITS.isdisjoint(rest[:1]) else []


def _joined(subject: list[str], denied: list[str]) -> Iterator[list[str]]:
    if subject and denied:
        yield subject + denied


def _exchanged(value: list[str], denied: list[str]) -> Iterator[list[str]]:
    """The older note with what is denied in the place of the last words, at most one more than those."""
    for count in range(1, min(len(denied) + 2, len(value)) if denied else 0):
        yield value[:-count] + denied


def _is_clause(part: list[str], words: list[str]) -> bool:
    """Whether a part of a sentence is a clause of it, and the others say something else. Words are compared by their stems."""
    part, words = [stem(word) for word in part], [stem(word) for word in words]
    for place in range(len(words) - len(part) + 1):
        before, after = words[:place], words[place + len(part) :]
        if words[place : place + len(part)] == part and (not after or after[0] in ENDS) and ALSO.isdisjoint(before):
            return {*before, *after}.isdisjoint({*part} - STOP_WORDS - {","})
    return False
