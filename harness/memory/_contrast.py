"""How two notes differ that are built alike: what one denies and the other says, and values. Pure."""

from __future__ import annotations

from harness.memory._words import NoteWords

MEANT = 0.5  # of what a note denies, the other has


def opposed(new: NoteWords, old: NoteWords, *, decisions: bool, alike: bool) -> bool:
    """Whether one says not to use what the other says to use, or in a note that is `alike`, or a decision, names at all."""
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
    """Whether one denies most of what it denies in the face of the other, which has it: "B instead of A", and A."""
    pairs = ((one.denied, two.terms - two.denied) for one, two in ((new, old), (old, new)))
    return any(denied & said and len(denied & said) >= MEANT * len(denied) for denied, said in pairs)


def differs_in_values(new: NoteWords, old: NoteWords) -> bool:
    """Whether both set one thing, and to another value: how="left", how="outer"."""
    mine, yours = dict(new.values), dict(old.values)
    return any(mine[name] != yours[name] for name in mine.keys() & yours.keys())


def apart(mine: frozenset[str], yours: frozenset[str]) -> bool:
    """Whether both have some, and none in common."""
    return bool(mine and yours and not mine & yours)


def plain(text: str) -> str:
    """A note without what two writings of the same words differ in: case, white space, quotes and the last full stop."""
    return " ".join(text.replace("`", "").casefold().split()).rstrip(".! ")
