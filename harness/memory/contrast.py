"""How two notes differ that are built alike: what one denies and the other says, opposites, places, values, other words. Pure."""

from __future__ import annotations

import functools
import re

from harness.memory import tables
from harness.memory.words import AFFIRMS, CLAUSE, DENIALS, EDGES, MODAL, NEGATIONS, PART, UNTOLD, Words, stem, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MEANT = 0.5  # of what a note denies, the other has
AGREED = 0.75  # of the reasons that a note gives
SHORTEST_BEGINNING = 5  # letters in which two forms of a word begin alike
MOST_SWAPPED = 3  # words of each that a contrast replaces
_PAIRS = [tuple(stem(word) for word in row.split()) for row in tables.sections("words.txt")["opposites"]]
SIDES = frozenset(map(stem, tables.words("words.txt", "sides")))  # of which one has this, the other that
LITTLE = frozenset(map(stem, tables.words("words.txt", "little words")))  # they mean many things
AVOIDED = re.compile(r"avoid \w+ing\b")  # "avoid: downgrading X"; "avoid: downgrade X" may say either
WORD = re.compile(r"(?<![\w-])[a-z]+(?:-[a-z]+)*")
CAPITALS = re.compile(r"\b[A-Z]{4,}\b")
PLACES = tables.words("words.txt", "places")
COMPOUND = re.compile(r"(?<![\w-])[a-z]+(?:-[a-z]+)+(?![\w-])")
ORDERING = frozenset(map(stem, AFFIRMS))
DENYING = frozenset(map(stem, (*DENIALS, "stop", "without")))
ON, OFF, TURNING = (tables.words("words.txt", name) for name in ("turning on", "turning off", "turning"))
FAR = 3  # words between "turn" and "on"
FEWEST_BEFORE = 2  # words before "off", in "X must be off"
BEHIND_ON = frozenset(
    ("for", "so", "in", "when", "if", "even", "during", "again", "because", "or", "and", "until", "while", "as")
)
STATES = {"on": True, "off": False, "enabled": True, "disabled": False}
SWITCHES = ORDERING | frozenset(map(stem, ("without", "avoid", *ON, *OFF, *TURNING, *STATES)))
TRUE = frozenset(("yes", "true", "on", "1", "enabled", "always"))
FALSE = frozenset(("no", "false", "off", "0", "disabled", "never"))
LABEL = 3  # words before a colon that say what the order behind it is about
OPPOSITE = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


def opposed(new: Words, old: Words, rare: frozenset[str], *, decisions: bool, alike: bool) -> bool:
    """Whether one says not to use what the other says to use, or in a note that is `alike`, or a decision, names at all. `rare`:
    the words that they share and few lessons have."""
    if decisions and new.denied & old.names - old.denied:
        return True
    if new.refused & old.refused:
        return False
    for one, two in ((new, old), (old, new)):
        meant = one.denied & two.terms - two.denied
        if not decisions and agrees(one, two):
            continue
        if len(meant) < MEANT * len(one.denied) or not meant:
            continue
        if meant & two.ordered:
            return True
        begins = not one.refused.isdisjoint(two.order[:3]) or one.refused & two.names & head(two.text)
        if begins and one.refuses and not two.refuses and (alike or one.refused & (two.names | rare)):
            return True
    return False


def agrees(one: Words, other: Words) -> bool:
    """Whether a note gives most of the reasons of one that refuses something, or says to do the opposite: both warn of it."""
    if refuses_opposite(one, other):
        return True
    reasons = one.terms - head(one.text) - one.refused - DENYING - ORDERING
    return len(reasons) > 1 and len(reasons & other.terms) >= AGREED * len(reasons)


def refuses_opposite(one: Words, other: Words) -> bool:
    """Whether one is to avoid doing something of which the other says the opposite."""
    is_avoided = one.lead in one.refused and AVOIDED.match(one.text)
    return bool(is_avoided) and OPPOSITE.get(one.lead) in other.terms - other.refused


def denies(new: Words, old: Words) -> bool:
    """Whether one denies most of what it denies in the face of the other, which has it: "B instead of A", and A."""
    pairs = ((one.denied, two.terms - two.denied) for one, two in ((new, old), (old, new)))
    return any(denied & said and len(denied & said) >= MEANT * len(denied) for denied, said in pairs)


def takes_the_place(new: Words, old: Words) -> bool:
    """Whether one says all that the other says, and to do something else instead of a part of it."""
    pairs = ((new, old), (old, new))
    return any(
        one.terms > two.terms and one.denied & two.terms and not (one.refuses or two.denied) for one, two in pairs
    )


def begins_with_opposite(new: Words, old: Words) -> bool:
    """Whether the first word of one has its opposite in the other: what it says to do is undone there."""
    for one, two in ((new, old), (old, new)):
        other = None if refuses_opposite(one, two) else OPPOSITE.get(one.lead)
        if other in two.terms - one.terms - two.refused and one.lead not in two.terms and one.lead not in SIDES:
            return True
    return False


def has_opposites(new: Words, old: Words) -> bool:
    """Whether one has a word and the other its opposite instead; of words that no comparison counts ("before", "off") only
    where all the others are the same."""
    mine, yours = poles(new.text), poles(old.text)
    lacks = {pole for pole in yours - mine if OPPOSITE[pole] in mine - yours}
    lacks |= {OPPOSITE[pole] for pole in mine - yours} & yours - mine
    lacks = {pole for pole in lacks if (pole in old.refused) == (OPPOSITE[pole] in new.refused)}  # not to add: remove
    return bool(lacks if new.order == old.order else lacks - LITTLE)


def flips(new: Words, old: Words) -> bool:
    """Whether one turns off what the other turns on."""
    mine, yours = switched(new.text), switched(old.text)
    return any(yours[what] != mine[what] for what in mine.keys() & yours.keys())


def drops(new: Words, old: Words) -> bool:
    """Whether one orders with an identifier what the other orders without it."""
    mine, yours = lacking(new.text), lacking(old.text)
    has = ((mine - yours, old.names - old.denied), (yours - mine, new.names - new.denied))
    return any(one & names for one, names in has) and head(new.text) == head(old.text)


def of_one_order(new: Words, old: Words) -> bool:
    """Whether the order of one says no more than that of the other, but for numbers, and for what it turns on or off."""
    mine, yours = head(new.text), head(old.text)
    return mine <= yours or yours <= mine


def _state_behind(told: list[str], at: int) -> int:
    """The place of the "on" or "off" of "turn X on"; 0 for none. "On the" is where something is."""
    for place in range(at + 2, min(at + 2 + FAR, len(told))):
        is_place = told[place] == "on" and (told[at] == "set" or not {*told[place + 1 : place + 2]} <= BEHIND_ON)
        if told[place] in STATES and not is_place:
            return place
    return 0


@functools.lru_cache(4096)
def switched(text: str) -> dict[str, bool]:
    """What a note turns on, or off."""
    found: dict[str, bool] = {}
    for clause in CLAUSE.split(text.lower().removeprefix("avoid ")):
        told = [token.strip(EDGES) for token in clause.split()]
        for at, token in enumerate(told):
            if token in TURNING and told[at + 1 : at + 2] and told[at + 1] in STATES:
                on, what = STATES[told[at + 1]], told[at + 2 :]
            elif token in TURNING and (state := _state_behind(told, at)):
                on, what = STATES[told[state]], told[state - 1 : state]
            elif token in ON or token in OFF:
                on, what = token in ON, told[at + 1 :]
            elif token in STATES and at > FEWEST_BEFORE and told[at - 1] == "be" and told[at - 2] in MODAL:
                on, what = STATES[token], told[at - 3 : at - 2]  # X must be off
            elif token in STATES and told[at - 1] not in UNTOLD and (at == 1 or at == len(told) - 1 > 0):
                on, what = STATES[token], told[at - 1 : at]
            else:
                continue
            is_denied = at > 0 and (told[at - 1] in DENIALS or told[at - 1] in NEGATIONS)
            name = next((word for word in what if word not in UNTOLD), "")
            if name and name not in TURNING:
                found.setdefault(stem(name), on != is_denied)
    return found


@functools.lru_cache(4096)
def lacking(text: str) -> frozenset[str]:
    """The identifiers without which the order of a note is to be done."""
    return words(" ".join(re.findall(r"\bwithout (?:the )?(\S+)", order_of(text), re.IGNORECASE))).names


@functools.lru_cache(4096)
def head(text: str) -> frozenset[str]:
    """What the order of a note is about, without what turns it on or off."""
    found = words(order_of(text))
    return found.terms - found.numbers - SWITCHES


def order_of(text: str) -> str:
    """The first clause of a note, and the second where the first is but its label."""
    first, *others = CLAUSE.split(text)
    is_label = others and len(first.split()) <= LABEL and text[len(first) : len(first) + 1] == ":"
    return f"{first} {others[0]}" if is_label else first


@functools.lru_cache(8192)
def poles(text: str) -> frozenset[str]:
    """The words of a text that have an opposite."""
    found = {part for token in WORD.findall(text.lower()) for part in (token, *token.split("-"))}
    return frozenset(OPPOSITE.keys() & {*found, *(stem(word.removesuffix("ly")) for word in found)})


def aside(new: Words, old: Words) -> bool:
    """Whether one puts something before what the other puts something after: "the linter before the formatter", and "the checker
    after the formatter". "B after A" is "A before B"."""
    mine, yours = placed(new), placed(old)
    return any(OPPOSITE.get(word) in yours.get(what, ()) and word not in yours[what] for what, word in sides(mine))


def sides(places: dict[str, set[str]]) -> Iterable[tuple[str, str]]:
    """Each pair of a thing and its place."""
    return ((what, word) for what, some in places.items() for word in some)


def placed(note: Words) -> dict[str, set[str]]:
    """What stands behind a word such as "before", and those words."""
    found: dict[str, set[str]] = {}
    told = [token.strip(EDGES) for token in note.text.lower().split()]
    if PLACES.isdisjoint(told):
        return found
    for number, token in enumerate(told):
        if token in PLACES:
            what = next((stem(word) for word in told[number + 1 :] if word not in UNTOLD), "")
            found.setdefault(what, set()).add(stem(token))
    return found


@functools.lru_cache(4096)
def compounds(text: str) -> frozenset[tuple[str, ...]]:
    """The stems of the parts of each compound."""
    return frozenset(tuple(map(stem, found.split("-"))) for found in COMPOUND.findall(text.lower()))


@functools.lru_cache(4096)
def capitals(text: str) -> frozenset[str]:
    """The stems of the words in capitals."""
    return frozenset(stem(word.lower()) for word in CAPITALS.findall(text))


def sets_opposites(new: Words, old: Words) -> bool:
    """Whether one sets to yes what the other sets to no; not to set it to yes is no."""
    mine, yours = dict(new.values), dict(old.values)
    truths = [{name: value in TRUE for name, value in some.items() if value in TRUE | FALSE} for some in (mine, yours)]
    both = [name for name in truths[0].keys() & truths[1].keys() if truths[0][name] != truths[1][name]]
    return any((name in new.refused) == (name in old.refused) for name in both)


def differs_in_values(new: Words, old: Words) -> bool:
    """Whether both set one thing, and to another value: how="left", how="outer"."""
    mine, yours = dict(new.values), dict(old.values)
    return any(mine[name] != yours[name] for name in mine.keys() & yours.keys())


def differs_in_compounds(new: Words, old: Words) -> bool:
    """Whether one has a compound of which the other has only a half, in another one: "pre-commit" and "pre-push"."""
    if "-" not in new.text or "-" not in old.text:
        return False
    mine, yours = compounds(new.text), compounds(old.text)
    for one in mine - yours:
        for two in yours - mine:
            lacks = [(a, b) for a, b in zip(one, two, strict=False) if a != b]
            if len(one) == len(two) > len(lacks) and not any(a in old.terms or b in new.terms for a, b in lacks):
                return True
    return False


def said_of_others(new: Words, old: Words) -> bool:
    """Whether the two differ in more than numbers and names: each has a word that the other lacks."""
    mine, yours = new.terms - old.terms, old.terms - new.terms
    return bool(mine - new.numbers - new.names and yours - old.numbers - old.names)


def is_contrast(new: Words, old: Words) -> bool:
    """Whether the two are one sentence with a few words replaced: a contrast, not a paraphrase. Two that refuse the same, and
    give other reasons, are none."""
    if new.refused & old.refused and head(new.text) - DENYING == head(old.text) - DENYING:
        return False
    mine, yours = (len(swapped(one, two)) for one, two in ((new, old), (old, new)))
    if not (1 <= mine <= MOST_SWAPPED and 1 <= yours <= MOST_SWAPPED):
        return False
    return [term for term in new.order if term in old.terms] == [term for term in old.order if term in new.terms]


def swapped(one: Words, other: Words) -> set[str]:
    """The words that the other lacks, but for verbs of ordering and denying, and "unchanged" where the other
    says "not change"."""
    lacks = one.terms - other.terms - ORDERING - DENYING
    return {term for term in lacks if term.removeprefix("un") not in other.terms and f"un{term}" not in other.terms}


def uninflected(terms: set[str], other: Words) -> set[str]:
    """The terms of which the other has no form that begins alike: "Umlauten", "Umlaute"."""
    begun = {term[:SHORTEST_BEGINNING] for term in other.terms if len(term) >= SHORTEST_BEGINNING}
    return {term for term in terms if term[:SHORTEST_BEGINNING] not in begun}


def is_flag_changed(new: Words, old: Words) -> bool:
    """Whether all names that only one of them has are flags: one command, called in two ways."""
    mine, yours = new.names - old.terms, old.names - new.terms
    return bool(mine and yours) and all(name.startswith("-") for name in mine | yours)


def differs_in_flags(new: Words, old: Words) -> bool:
    """Whether both have flags, and none in common."""
    return apart(*(frozenset(name for name in one.names if name.startswith("-")) for one in (new, old)))


def has_siblings(new: Words, old: Words) -> bool:
    """Whether each has an identifier that the other lacks, and the two share half of their parts: server.proxy, preview.proxy."""
    for one in new.names - old.terms:
        for two in old.names - new.terms:
            mine, yours = set(PART.findall(one)), set(PART.findall(two))
            if one not in two and two not in one and 2 * len(mine & yours) >= max(len(mine), len(yours), 2):
                return True
    return False


def apart(mine: frozenset[str], yours: frozenset[str]) -> bool:
    """Whether both have some, and none in common."""
    return bool(mine and yours and not mine & yours)


def plain(text: str) -> str:
    """A note without what two writings of the same words differ in: case, white space, quotes and the last full stop."""
    return " ".join(text.replace("`", "").casefold().split()).rstrip(".! ")
