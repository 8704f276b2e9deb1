"""Grows an identity: adds graduations, counts items over the evidence, and drops items for room."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from harness.base.record import Record
from harness.memory import pages
from harness.memory._similarity import Index
from harness.memory._words import CandidateFilter, plain, words
from harness.memory.pages import MemoryPage, PageItem

FAILURES = ("FAIL", "AVOID")
COUNTED = " [counted]"  # ends a line that no agent marked and no person noted


class Evidence(Record):
    """One occurrence of a note: entry `seq` of `mission`, by `role` on `feature`, compacted by `run`; `key` may group it."""

    mission: str
    feature: str
    run: str
    seq: int
    role: str
    at: str
    tag: str
    text: str
    key: str = ""


class Graduation(Record):
    """A note that moves from a mission to the identity of `role`; `count` occurrences in `missions` at planning time, by the rule
    in `why`."""

    role: str
    text: str
    tag: str
    missions: list[str]
    count: int
    lesson: int = -1
    why: str = ""


def grow(
    page: MemoryPage, graduations: list[Graduation], known: list[Evidence], today: str, most: int
) -> tuple[list[Graduation], list[PageItem]]:
    """Add graduations to an identity, counted over the evidence `known`, within `most` lines by dropping the harness's items.
    Returns (graduations without room, dropped items): the least frequent go first, then the older, then the later added."""
    index = ItemIndex(page.items(""))
    new: list[PageItem] = []
    touched: list[PageItem] = []
    for one in graduations:
        shown = shown_text(one.tag, one.text)
        item = index.find(shown)
        if item is None:
            item = PageItem(date=today, text=shown, count=0, where=one.missions[-pages.MAX_NAMED :])
            new.append(item)
            index.add(item)
        if not shown.endswith(COUNTED):
            item.text = item.text.removesuffix(COUNTED)  # now marked, or noted by a person
        item.count = max(item.count, one.count if item.count == 0 else 0)
        touched.append(item)
    occurrences = _occurrences(ItemIndex(touched), known)
    for item in touched:
        _count(item, occurrences.get(id(item), []), today)
    if new:
        pages.add_items(page.sections[0], new)
    places = {id(item): place for place, item in enumerate(page.items(""))}
    gone = pages.fit(page, most, lambda item: (item.count, item.date, -places.get(id(item), 0)))
    left, came = {id(item) for item in gone}, {id(item) for item in touched}
    crowded = [one for one, item in zip(graduations, touched, strict=True) if id(item) in left]
    return crowded, [item for item in gone if id(item) not in came]


def shown_text(tag: str, note: str) -> str:
    """The text of a note in an identity: a failure becomes something to avoid."""
    return pages.AVOID_MARK + note if tag in FAILURES else note


class ItemIndex:
    """Finds items of an identity; failures and other items are separate."""

    def __init__(self, items: list[PageItem]) -> None:
        self.parts: dict[bool, tuple[Index, list[PageItem]]] = {is_avoid: (Index(), []) for is_avoid in (True, False)}
        for item in items:
            self.add(item)

    def add(self, item: PageItem) -> None:
        """Add an item."""
        index, items = self.parts[item.text.startswith(pages.AVOID_MARK)]
        index.add(_bare(item.text), len(items))
        items.append(item)

    def find(self, shown: str) -> PageItem | None:
        """The item with the words of `shown`, or None."""
        index, items = self.parts[shown.startswith(pages.AVOID_MARK)]
        owner = index.exact.get(plain(_bare(shown)))
        return None if owner is None else items[owner]

    def alike(self, shown: str) -> PageItem | None:
        """The item that seems to say what `shown` says, or None."""
        index, items = self.parts[shown.startswith(pages.AVOID_MARK)]
        note = words(_bare(shown))
        near = (number for number in index.near(note) if index.is_alike(note, words(index.texts[number])))
        return self.find(shown) or next((items[index.owners[number]] for number in near), None)


def _bare(text: str) -> str:
    return text.removeprefix(pages.AVOID_MARK).removesuffix(COUNTED)


def _occurrences(index: ItemIndex, known: Iterable[Evidence]) -> dict[int, list[Evidence]]:
    """{id(item): its evidence}."""
    find = functools.cache(index.alike)
    found: dict[int, list[Evidence]] = {}
    able = CandidateFilter([item.text for _, items in index.parts.values() for item in items])
    for one in known:
        if not able.has(one.text):
            continue  # the common case: no comparison needed
        item = find(shown_text(one.tag, one.text))
        if item is not None:
            found.setdefault(id(item), []).append(one)
    return found


def _count(item: PageItem, occurrences: list[Evidence], today: str) -> None:
    """Raise an item's count and missions to those of the evidence; never lower a count that a person raised."""
    missions = list(dict.fromkeys([*(one.mission for one in occurrences), *item.where]))[-pages.MAX_NAMED :]
    if len(occurrences) > item.count or missions != item.where:
        item.count, item.where, item.date = max(item.count, len(occurrences)), missions, today
