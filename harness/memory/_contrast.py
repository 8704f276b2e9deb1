"""Detects contradictions between similar notes: one denies what the other states. Pure."""

from __future__ import annotations

from harness.memory._words import NoteWords

MEANT = 0.5  # minimum share of a note's denied terms that the other has


def opposed(new: NoteWords, old: NoteWords, *, decisions: bool, alike: bool) -> bool:
    """Whether one note says not to use what the other says to use, or merely names it if the notes are `alike` or
    decisions."""
    if decisions and new.denied & old.names - old.denied:
        return True
    if new.refused & old.refused:
        return False
    for one, two in ((new, old), (old, new)):
        meant = one.denied & two.terms - two.denied
        if len(meant) < MEANT * len(one.denied) or not meant:
            continue
        if meant & two.ordered:
            return True
        begins = not one.refused.isdisjoint(two.order[:3])
        if begins and one.refuses and not two.refuses and (alike or one.refused & two.names):
            return True
    return False


def denies(new: NoteWords, old: NoteWords) -> bool:
    """Whether the other note has most of the terms that one denies: "B instead of A", and A."""
    pairs = ((one.denied, two.terms - two.denied) for one, two in ((new, old), (old, new)))
    return any(denied & said and len(denied & said) >= MEANT * len(denied) for denied, said in pairs)


def apart(mine: frozenset[str], yours: frozenset[str]) -> bool:
    """Whether both sets are non-empty and disjoint."""
    return bool(mine and yours and not mine & yours)


def plain(text: str) -> str:
    """Normalise a note: case, white space, quotes and the final full stop."""
    return " ".join(text.replace("`", "").casefold().split()).rstrip(".! ")
