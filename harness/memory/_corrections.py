"""Whether a note says that an older one no longer holds: in one of four forms, or as a decision of the same name. Pure.

A correction must repeat most words of the line that it corrects, and every fact of it: a line that is wrongly replaced is lost,
one that is wrongly kept stands beside its correction, older and with its date.
"""

from __future__ import annotations

import re

from harness.memory._facts import NEGATION, facts
from harness.memory._words import words

MOST = 0.7  # minimum share of an older note's terms that a correction repeats
SENTENCES = re.compile(r"[.;!?](?:\s|$)")
# A decision's name: "`engine`: …", "engine = …", or a name of several parts, "db-engine: …".
NAME = re.compile(r"`([^`]+)`\s*[:=]|([^\W\d][\w.-]*)\s+=\s|([^\W\d]{2,}(?:[-_./][^\W\d]{2,})+):")
# Groups: the subject, and what it no longer is.
DENIES = (
    re.compile(r"(.*?)\bno longer\b(.*?)(?:,|\bbut\b|\bsince\b|$)", re.IGNORECASE),
    re.compile(r"(.*?)\bnot\b(.*?)\bbut\b", re.IGNORECASE),
    re.compile(
        r"(.+?)\bnow\b.*?[,(] *(?:it |they )?(?:was|were|used to be|previously|formerly)\b([^),]+)", re.IGNORECASE
    ),
)
# Groups: the sentence with its new value, and the old value.
INSTEAD = re.compile(r"(.+?)(?:\binstead of\b|\brather than\b|, not\b)([^,]+)", re.IGNORECASE)


def replaces(new: str, old: str, *, decisions: bool) -> bool:
    """Whether a newer note says that an older one no longer holds."""
    if decisions and (name := _name(new)) and name == _name(old):
        return True
    if NEGATION in facts(old)[0]:
        return False  # what lifts a prohibition is rarely said in these forms
    return any(_corrects(sentence, old) for sentence in SENTENCES.split(new))


def _name(decision: str) -> str:
    found = NAME.match(decision)
    return next(filter(None, found.groups())).casefold() if found else ""


def _corrects(sentence: str, old: str) -> bool:
    """Whether one sentence denies an older note."""
    known, said = words(old).terms, facts(sentence)[0]
    if len(known & words(sentence).terms) < MOST * len(known) or not facts(old)[1] <= said:
        return False
    for form in DENIES:
        if found := form.search(sentence):
            subject, denied = (words(part).terms for part in found.groups())
            if subject and denied and subject | denied <= known:
                return True
    found = INSTEAD.search(sentence)
    if not found:
        return False
    value, denied = words(found[1]), words(found[2]).terms
    return bool(denied) and denied <= known <= value.terms | denied and _is_one_part(value.order, known)


def _is_one_part(order: tuple[str, ...], known: frozenset[str]) -> bool:
    """Whether the terms that an older note lacks are there, and stand together."""
    places = [place for place, term in enumerate(order) if term not in known]
    return bool(places) and places[-1] - places[0] == len(places) - 1
