"""Identities, layer L4: the knowledge of a role across missions, one `<role>.md` each, with sources in `evidence.jsonl`.

All missions of a person share the folder. Each change is computed from what is there and put by compare-and-set; on a conflict
it is computed again. A line `- [2026-04-24] text (missions: a, b · 3x)` is an item of the harness; every other line is a
person's and kept verbatim.

`written.jsonl` has the items as the harness wrote them: one that is not on its page was deleted by a person. So an item is never
in it before it is on the page, and leaves it before it leaves the page, whenever a write is cut short.
"""

from __future__ import annotations

import collections
import functools
import json
import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from harness.base import encoding, schema
from harness.base.errors import LockBusy, UsageFault, VersionConflict
from harness.memory import pages
from harness.memory.curation import growth
from harness.memory.curation.growth import Evidence, Graduation
from harness.memory.pages import MemoryPage, PageItem
from harness.state import files, json_lines
from harness.state.layout import command
from harness.stores.disk import DiskStore
from harness.stores.store import ABSENT, Value

T = TypeVar("T")
Seen = tuple[list[Evidence], dict[str, str], list[tuple[str, str]]]  # evidence, texts by role, forgotten lines

LINES = pages.IDENTITY_LINES
MAX_EVIDENCE = 10_000  # occurrences per mission, so that one cannot flood the file of all missions
BUSY_SECONDS = 10.0  # of conflicts with other missions
PAUSE_SECONDS = 0.02  # between two tries, at most
README = "README.md"
EVIDENCE, TAKEN_BACK, WRITTEN = "evidence.jsonl", "forgotten.jsonl", "written.jsonl"

_ROLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_role(name: str) -> bool:
    """Whether `name` is valid as the name of an identity file."""
    return bool(_ROLE.fullmatch(name)) and name.casefold() + ".md" != README.casefold()


def _store(folder: str) -> DiskStore:
    return DiskStore(folder, mode=files.SHARED)


class _Folder:
    """The folder at one moment. `changed` gets the names of the files that are put. Raises VersionConflict if the folder
    changes while it is read."""

    def __init__(self, folder: str, changed: dict[str, None] | None = None) -> None:
        self.store, self.changed = _store(folder), {} if changed is None else changed
        self.values: dict[str, Value | None] = {}
        names = _page_names(self.store)
        for name in (WRITTEN, *names, EVIDENCE, TAKEN_BACK):  # TAKEN_BACK is put before WRITTEN
            self.values[name] = self.store.get((name,))
        self.roles = [name.removesuffix(".md") for name in names if self.values[name] is not None]
        if self._version(WRITTEN) != _version(self.store.get((WRITTEN,))):
            raise VersionConflict(self.where(WRITTEN))

    def where(self, name: str) -> str:
        """The path of a file."""
        return self.store.describe((name,))

    def data(self, name: str) -> bytes:
        """The bytes of a file; empty if it is absent."""
        value = self.values.get(name)
        return value.data if value else b""

    def page(self, role: str) -> str:
        """The text of a page; empty if it is absent. Raises BrokenFile with the line of a bad byte."""
        return encoding.decode(self.data(f"{role}.md"), self.where(f"{role}.md"))

    def put(self, name: str, data: bytes) -> None:
        """Write a file. Raises VersionConflict if somebody else did since it was read."""
        self.values[name] = Value(data, self.store.put((name,), data, self._version(name)))
        self.changed[name] = None

    def _version(self, name: str) -> str:
        return _version(self.values.get(name))

    def seen(self) -> Seen:
        """See `seen`."""
        return self.evidence(), {role: self.page(role) for role in self.roles}, self.forgotten()

    def evidence(self) -> list[Evidence]:
        """See `evidence`."""
        return parse_evidence(self.data(EVIDENCE), self.where(EVIDENCE))

    def rows(self, name: str) -> list[tuple[str, str]]:
        """(role, text) of each row. Raises BrokenFile with an invalid one."""
        found: list[tuple[str, str]] = []

        def take(row: Any) -> None:
            found.append((str(row["role"]), str(row["text"])))

        json_lines.parse(self.data(name), self.where(name), take, "the line is not a removed item", "Remove that line.")
        return found

    def forgotten(self) -> list[tuple[str, str]]:
        """See `forgotten`."""
        found, written = self.rows(TAKEN_BACK), collections.defaultdict[str, list[str]](list)
        for role, text in self.rows(WRITTEN):
            written[role].append(text)
        missing = [(role, text) for role in sorted(written) for text in self._deleted(role, written[role])]
        return [*found, *(row for row in missing if row not in found)]

    def _deleted(self, role: str, written: list[str]) -> list[str]:
        """Those of the harness's lines that a person deleted from an identity. An empty or missing file does not count as
        deletion, nor does a line that was reworded or made a person's own."""
        content = self.page(role)
        shown = [
            line if isinstance(line, PageItem) else PageItem(date="", text=line.removeprefix("- "))
            for part in parse(content).sections
            for line in part.lines
        ]
        exact = {item.text for item in shown}
        missing = [text for text in written if text not in exact] if content.strip() else []
        if not missing:
            return []
        index = growth.ItemIndex([item for item in shown if item.text not in written])
        return [text for text in missing if index.alike(text) is None]

    def put_pages(self, texts: dict[str, str], taken_back: list[tuple[str, str]]) -> None:
        """Write pages, and WRITTEN in the order that the module describes; first what persons deleted, before its trace goes."""
        if taken_back != self.rows(TAKEN_BACK):
            self.put(TAKEN_BACK, _rendered(taken_back))
        rows, after = self.rows(WRITTEN), {role: _items(text) for role, text in texts.items()}
        kept = [(role, text) for role, text in rows if role not in after or text in after[role]]
        if kept != rows or any(set(_items(self.page(role))) - set(after[role]) for role in after):
            # also if nothing changes: the new version stops a mission that is about to write one of the lines that go
            self.put(WRITTEN, _rendered(kept))
        for role, text in texts.items():
            if text != self.page(role):
                self.put(f"{role}.md", text.encode())
        rows = [row for row in kept if row[0] not in after] + [(role, text) for role in after for text in after[role]]
        if _rendered(rows) != self.data(WRITTEN):
            self.put(WRITTEN, _rendered(rows))


def _page_names(store: DiskStore) -> list[str]:
    return [key[0] for key in store.list(()) if len(key) == 1 and key[0].endswith(".md") and key[0] != README]


def _version(value: Value | None) -> str:
    return value.version if value else ABSENT


def _items(content: str) -> list[str]:
    return [item.text for item in parse(content).items("")]


def _rendered(rows: list[tuple[str, str]]) -> bytes:
    return b"".join(encoding.dump_json({"role": role, "text": text}) for role, text in rows)


def _until_done(folder: str, action: Callable[[], T]) -> T:
    """Repeat an action until nobody else writes beside it. Raises LockBusy after BUSY_SECONDS."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return action()
        except VersionConflict:
            if time.monotonic() > until:
                message = f"{folder}: other missions have been writing for {BUSY_SECONDS:.0f} s. Try again later."
                raise LockBusy(message) from None
        time.sleep(random.uniform(0, PAUSE_SECONDS))


# ---- reading


def seen(folder: str) -> Seen:
    """Evidence, texts by role, and forgotten lines, at one moment."""
    return _until_done(folder, lambda: _Folder(folder).seen())


def forgotten(folder: str) -> list[tuple[str, str]]:
    """(role, text) of the lines that a person removed by command or by hand. Raises BrokenFile with an invalid line."""
    return _until_done(folder, lambda: _Folder(folder).forgotten())


def is_forgotten(one: Graduation, taken_back: list[tuple[str, str]]) -> bool:
    """Whether a person removed this from the role's identity, in these words or others."""
    items = [PageItem(date="", text=text) for role, text in taken_back if role == one.role]
    return bool(items) and growth.ItemIndex(items).alike(growth.shown_text(one.tag, one.text)) is not None


def text(folder: str, role: str) -> str:
    """The present identity of a role; "" if there is none yet."""
    key = (f"{role}.md",)
    value = _store(folder).get(key)
    return encoding.decode(value.data, _store(folder).describe(key)) if value else ""


def texts(folder: str) -> dict[str, str]:
    """Every role's identity, by role."""
    return {name.removesuffix(".md"): text(folder, name.removesuffix(".md")) for name in _page_names(_store(folder))}


def items(folder: str) -> set[tuple[str, str]]:
    """(role, text) of every present item of the identities."""
    found = texts(folder)
    return {(role, item.text) for role, content in found.items() for item in parse(content).items("")}


def evidence(folder: str) -> list[Evidence]:
    """All evidence in file order, without duplicates of (mission, seq, at) and a torn last line. Raises BrokenFile."""
    value = _store(folder).get((EVIDENCE,))
    return parse_evidence(value.data if value else b"", _store(folder).describe((EVIDENCE,)))


def parse_evidence(data: bytes, path: str) -> list[Evidence]:
    """The evidence in the complete lines of `data`. Raises BrokenFile with the line that is not valid evidence."""
    return list(_parsed(data, path))


@functools.lru_cache(1)  # a writer reads the same file again
def _parsed(data: bytes, path: str) -> tuple[Evidence, ...]:
    import jsonlines  # 30 ms: few runs read evidence

    # A restored mission reuses a number at another time.
    found: dict[tuple[str, int, str], Evidence] = {}
    waiting: list[str] = []
    reader = jsonlines.Reader(iter(waiting.pop, None), loads=json.loads)
    remedy = "Remove that line; evidence.jsonl has one JSON object per line."

    def take(row: Any) -> None:
        one = schema.record(Evidence, row, "a mission leaves")
        found.setdefault((one.mission, one.seq, one.at), one)

    def read(line: bytes) -> Any:
        waiting.append(line.decode("utf-8"))
        return reader.read(type=dict)

    json_lines.parse(data, path, take, "no evidence", remedy, read)
    return tuple(found.values())


def parse(content: str) -> MemoryPage:
    """Parse a role's identity as a page; its items are before the first `## ` heading."""
    return pages.parse_page(content, ("",), pages.MISSIONS)


def render(page: MemoryPage) -> str:
    """The text of a role's identity."""
    return pages.render_page(page, pages.MISSIONS)


# ---- writing


def record(
    folder: str, occurrences: list[Evidence], graduations: list[Graduation], today: str, known: Seen | None = None
) -> list[str]:
    """Add new evidence (MAX_EVIDENCE per mission) and `graduations` to the identities, except forgotten ones; returns the
    changed files. Idempotent. `known`: what the graduations were computed from; raises VersionConflict, with nothing written, if
    the folder is not like that any more. Raises LockBusy if other missions write for BUSY_SECONDS.
    """
    if not occurrences and not graduations:
        return []
    changed: dict[str, None] = {}

    def attempt() -> bool:
        now = _Folder(folder, changed)
        if known is not None and not changed and now.seen() != known:
            return False
        _record(now, occurrences, graduations, today)
        return True

    if not _until_done(folder, attempt):
        raise VersionConflict(folder)
    return [name for name in changed if name != WRITTEN]


def _record(now: _Folder, occurrences: list[Evidence], graduations: list[Graduation], today: str) -> None:
    """One try of `record`."""
    known, taken_back = now.evidence(), now.forgotten()
    fresh = _fresh(known, occurrences)
    if fresh:
        now.put(EVIDENCE, b"".join(encoding.dump_json(one.asdict()) for one in known + fresh))
    graduations = [one for one in graduations if not is_forgotten(one, taken_back)]
    pages = {}
    for role in dict.fromkeys(one.role for one in graduations):
        mine = [one for one in graduations if one.role == role]
        pages[role] = grown(now.page(role), role, mine, known + fresh, today)[0]
    if fresh or pages:
        now.put_pages(pages, taken_back)


def forget(folder: str, role: str, text: str) -> None:
    """Remove a line permanently: it leaves the identity and never returns. Raises UsageFault if there is none."""

    def attempt() -> None:
        now = _Folder(folder)
        page, taken_back = parse(now.page(role)), now.forgotten()
        section = page.sections[0]
        found = next((item for item in section.items() if item.text == text), None)
        if found is None and (role, text) not in taken_back:
            raise UsageFault(f"{role}.md has no line '{text}' of the harness. See: {command('identity list')}")
        section.lines = [line for line in section.lines if line is not found]
        now.put_pages({role: render(page)}, list(dict.fromkeys([*taken_back, (role, text)])))

    _until_done(folder, attempt)


def clear(folder: str) -> None:
    """Remove the temporary files of interrupted writes."""
    _store(folder).clear()


def grown(
    content: str, role: str, graduations: list[Graduation], known: list[Evidence], today: str
) -> tuple[str, list[Graduation], list[PageItem]]:
    """(text of a role's identity with these graduations, within LINES by dropping the harness's items; graduations
    without room; dropped items)."""
    page = parse(content or f"# {role}\n")
    crowded, gone = growth.grow(page, graduations, known, today, LINES)
    return render(page), crowded, gone


def _fresh(known: list[Evidence], occurrences: list[Evidence]) -> list[Evidence]:
    """The new occurrences, up to MAX_EVIDENCE per mission."""
    seen = {(one.mission, one.seq, one.at) for one in known}
    counts = collections.Counter(one.mission for one in known)
    found = []
    for one in occurrences:
        if (one.mission, one.seq, one.at) not in seen and counts[one.mission] < MAX_EVIDENCE:
            counts[one.mission] += 1
            found.append(one)
    return found
