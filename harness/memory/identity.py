"""Identities, layer L4: the knowledge of a role across missions, one `<role>.md` each, with sources in `evidence.jsonl`.

All missions of a person share the folder, so writers take `.lock`, and `ledger.json` keeps the digest of each file as
the harness wrote it, to detect changes by others. A line `- [2026-04-24] text (missions: a, b · 3x)` is an item of the
harness; every other line is a person's and kept verbatim.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import re
from contextlib import AbstractContextManager
from typing import Any

from harness.base import encoding, schema
from harness.base.errors import LockBusy, UsageFault
from harness.memory import pages
from harness.memory.curation import growth
from harness.memory.curation.growth import Evidence, Graduation
from harness.memory.pages import MemoryPage, PageItem
from harness.state import files, json_lines
from harness.state.layout import evidence_file, identity_file

LINES = pages.IDENTITY_LINES
MAX_EVIDENCE = 10_000  # occurrences per mission, so that one cannot flood the file of all missions
LOCK_SECONDS = 10.0
README = "README.md"
TAKEN_BACK = "forgotten.jsonl"
WRITTEN = "written.jsonl"  # the harness's lines as written: a missing one was deleted by a person
LEDGER, PENDING = "ledger.json", "ledger.next.json"  # PENDING: the digests of a write in progress

_ROLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_role(name: str) -> bool:
    """Whether `name` is valid as the name of an identity file."""
    return bool(_ROLE.fullmatch(name)) and name.casefold() + ".md" != README.casefold()


# ---- reading


def forgotten(folder: str) -> list[tuple[str, str]]:
    """(role, text) of the lines that a person removed by command or by hand. Raises BrokenFile with an invalid line."""
    found = _lines(os.path.join(folder, TAKEN_BACK))
    deleted = [
        (name[:-3], text) for name in _differing(folder) if name.endswith(".md") for text in _deleted(folder, name)
    ]
    return [*found, *(row for row in deleted if row not in found)]


def _lines(path: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def take(row: Any) -> None:
        found.append((str(row["role"]), str(row["text"])))

    json_lines.parse(files.read(path) or b"", path, take, "the line is not a removed item", "Remove that line.")
    return found


def is_forgotten(one: Graduation, taken_back: list[tuple[str, str]]) -> bool:
    """Whether a person removed this from the role's identity, in these words or others."""
    items = [PageItem(date="", text=text) for role, text in taken_back if role == one.role]
    return bool(items) and growth.ItemIndex(items).find(growth.shown_text(one.tag, one.text)) is not None


def forget(folder: str, role: str, text: str) -> None:
    """Remove a line permanently: it leaves the identity and never returns. Raises UsageFault if there is none."""
    with locked(folder):
        page = parse(files.read_text(identity_file(folder, role)) or "")
        section = page.sections[0]
        found = next((item for item in section.items() if item.text == text), None)
        if found is None:
            raise UsageFault(f"{role}.md has no line '{text}' of the harness. `harness identity list` shows them.")
        section.lines = [line for line in section.lines if line is not found]
        taken_back = _rendered([*forgotten(folder), (role, text)])
        _write(
            folder, {os.path.join(folder, TAKEN_BACK): taken_back, identity_file(folder, role): render(page).encode()}
        )


def _rendered(rows: list[tuple[str, str]]) -> bytes:
    return b"".join(encoding.dump_json({"role": role, "text": text}) for role, text in rows)


def text(folder: str, role: str) -> str:
    """The present identity of a role; "" if there is none yet."""
    return files.read_text(identity_file(folder, role)) or ""


def texts(folder: str) -> dict[str, str]:
    """Every role's identity, by role."""
    roles = [name.removesuffix(".md") for name in files.names(folder) if name.endswith(".md") and name != README]
    return {role: text(folder, role) for role in roles}


def items(folder: str) -> set[tuple[str, str]]:
    """(role, text) of every present item of the identities."""
    found = texts(folder)
    return {(role, item.text) for role, content in found.items() for item in parse(content).items("")}


def evidence(folder: str) -> list[Evidence]:
    """All evidence in file order, without duplicates of (mission, seq, at) and a torn last line. Raises BrokenFile."""
    return parse_evidence(files.read(evidence_file(folder)) or b"", evidence_file(folder))


def parse_evidence(data: bytes, path: str) -> list[Evidence]:
    """The evidence in the complete lines of `data`. Raises BrokenFile with the line that is not valid evidence."""
    return list(_parsed(data, path))


@functools.lru_cache(1)  # a writer reads the file again, under the lock
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


def record(folder: str, occurrences: list[Evidence], graduations: list[Graduation], today: str) -> list[str]:
    """Add new evidence (MAX_EVIDENCE per mission) and `graduations` to the identities; returns the changed files.
    Idempotent. Raises LockBusy if another mission holds the folder for LOCK_SECONDS.
    """
    if not occurrences and not graduations:
        return []
    with locked(folder):
        known = evidence(folder)
        fresh = _fresh(known, occurrences)
        contents: dict[str, bytes] = {}
        if fresh:
            contents[evidence_file(folder)] = b"".join(encoding.dump_json(one.asdict()) for one in known + fresh)
        for role in dict.fromkeys(one.role for one in graduations):
            mine = [one for one in graduations if one.role == role]
            before = text(folder, role)
            after = grown(before, role, mine, known + fresh, today)[0]
            if after != before:
                contents[identity_file(folder, role)] = after.encode()
        taken_back = forgotten(folder)
        if contents and taken_back != _lines(os.path.join(folder, TAKEN_BACK)):
            contents = {os.path.join(folder, TAKEN_BACK): _rendered(taken_back), **contents}  # before its trace goes
        _write(folder, contents)
    return [os.path.basename(path) for path in contents]


def grown(
    content: str, role: str, graduations: list[Graduation], known: list[Evidence], today: str
) -> tuple[str, list[Graduation], list[PageItem]]:
    """(text of a role's identity with these graduations, within LINES by dropping the harness's items; graduations
    without room; dropped items)."""
    page = parse(content or f"# {role}\n")
    crowded, gone = growth.grow(page, graduations, known, today, LINES)
    return render(page), crowded, gone


def is_as(folder: str, known: list[Evidence], found: dict[str, str], taken_back: list[tuple[str, str]]) -> bool:
    """Whether the folder still has this evidence, these texts by role, and these removed lines."""
    return (evidence(folder), texts(folder), forgotten(folder)) == (known, found, taken_back)


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


# ---- the ledger: the digests of the files that the harness wrote


def _differing(folder: str) -> list[str]:
    pending, ledger = _digests(folder, PENDING), _digests(folder, LEDGER)
    found = {name: _digest(os.path.join(folder, name)) for name in sorted(ledger)}
    return [name for name, digest in found.items() if digest not in (ledger[name], pending.get(name))]


def _deleted(folder: str, name: str) -> list[str]:
    """The harness's lines that a person deleted from an identity. An empty or missing file does not count as deletion,
    nor does a line that was reworded or made a person's own."""
    content = files.read_text(os.path.join(folder, name)) or ""
    shown = [
        line if isinstance(line, PageItem) else PageItem(date="", text=line.removeprefix("- "))
        for part in parse(content).sections
        for line in part.lines
    ]
    index, exact = growth.ItemIndex(shown), {item.text for item in shown}
    texts = [text for role, text in _lines(os.path.join(folder, WRITTEN)) if f"{role}.md" == name]
    return [text for text in texts if content.strip() and text not in exact and index.find(text) is None]


def _write(folder: str, contents: dict[str, bytes]) -> None:
    """Record the pending digests, write the files, then update the ledger. The caller holds the lock."""
    if not contents:
        return
    _finish_write(folder)
    texts = {
        os.path.basename(path)[:-3]: data.decode("utf-8", "replace")
        for path, data in contents.items()
        if path.endswith(".md")
    }
    if texts:
        path = os.path.join(folder, WRITTEN)
        written = [(role, item.text) for role, content in texts.items() for item in parse(content).items("")]
        contents = {**contents, path: _rendered([row for row in _lines(path) if row[0] not in texts] + written)}
    pending = {os.path.basename(path): encoding.digest(data) for path, data in contents.items()}
    files.replace(os.path.join(folder, PENDING), encoding.dump_json(pending))
    for path, data in contents.items():
        files.replace(path, data)
    _finish_write(folder)


def clear(folder: str) -> None:
    """Remove the temporary files of interrupted writes, under the lock that every writer holds."""
    if not files.abandoned(folder):
        return  # the lock is slow to import
    with locked(folder):
        for path in files.abandoned(folder):
            files.remove(path)


def _finish_write(folder: str) -> None:
    """Record completed pending files in the ledger, after a write or a crash during one."""
    pending = _digests(folder, PENDING)
    done = {name: digest for name, digest in pending.items() if _digest(os.path.join(folder, name)) == digest}
    if done:
        files.replace(os.path.join(folder, LEDGER), encoding.dump_json({**_digests(folder, LEDGER), **done}))
    files.remove(os.path.join(folder, PENDING))


def _digest(path: str) -> str:
    data = files.read(path)
    return "" if data is None else encoding.digest(data)


def _digests(folder: str, name: str) -> dict[str, str]:
    return dict(files.read_json(os.path.join(folder, name)) or {})


def locked(folder: str) -> AbstractContextManager[object]:
    """The folder's reentrant lock, for one writer of all missions; raises LockBusy after LOCK_SECONDS."""
    from filelock import FileLock, Timeout  # 40 ms: only a curator writes here

    files.make_folder(folder)
    path = os.path.join(folder, ".lock")
    try:
        return FileLock(path, timeout=LOCK_SECONDS, poll_interval=0.005, is_singleton=True).acquire()
    except Timeout:
        message = f"{path}: another mission has held this lock for {LOCK_SECONDS:.0f} s. Try again later."
        raise LockBusy(message) from None
