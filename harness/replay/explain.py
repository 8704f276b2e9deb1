"""Explains a prompt: the size, source and last change of its sections, and its share that a prompt cache can serve."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.base.tokens import estimated
from harness.mission import run_lookup, runs
from harness.replay import rebuild
from harness.replay.rebuild import Rows
from harness.state.layout import Layout

EARLIER = 50  # runs of the role searched for the last change
FENCES = ("```", "~~~")
OPENING = ("## ", "### ")
RULES = "(before the first heading)"


class PromptSection(Record):
    """A part of a prompt under a heading. `source` "": text of the harness; `digest`: of the object, or of the text. `since`: the
    oldest run of the role with the present version, "" if that is more than EARLIER runs ago."""

    title: str
    source: str
    digest: str
    bytes: int
    tokens: int
    since: str
    at: str


class Explanation(Record):
    """A prompt. `previous`: the role's previous run, "" for none; `cacheable`: the length in bytes of the prefix shared with its
    prompt, None if that cannot be rebuilt (`fault` gives the reason)."""

    run: str
    role: str
    feature: str
    at: str
    bytes: int
    tokens: int
    previous: str
    cacheable: int | None
    share: float | None
    fault: str
    sections: list[PromptSection]


class _Piece(Record):
    """A section in the manifest: its row numbers."""

    title: str
    source: str = ""
    key: str = ""
    rows: list[int] = []


def explain(layout: Layout, run_id: str) -> Explanation:
    """Explain the prompt of a run; raises as `rebuild.text_of`."""
    text = rebuild.text_of(layout, run_id)
    context = runs.context(layout, run_id)
    data, known = text.encode(), rebuild.Objects(layout)
    earlier = list(islice(run_lookup.before(layout, run_id, context.role), EARLIER))
    common, fault = _cacheable(layout, earlier, data, known)
    return Explanation(
        run=run_lookup.title(layout, run_id),
        role=context.role,
        feature=context.feature,
        at=context.at,
        bytes=len(data),
        tokens=estimated(text),
        previous=earlier[0] if earlier else "",
        cacheable=common,
        share=None if common is None else common / max(1, len(data)),
        fault=fault,
        sections=_sections(layout, run_id, earlier, known),
    )


def _cacheable(layout: Layout, earlier: list[str], data: bytes, known: rebuild.Objects) -> tuple[int | None, str]:
    """The length of the prefix shared with the previous prompt, or why it is unknown."""
    if not earlier:
        return 0, ""
    try:
        before = rebuild.rebuild(layout, earlier[0], known)
    except BrokenFile as fault:
        return None, str(fault)
    if before.prompt is not None and not before.equal:
        return None, f"{layout.run(earlier[0]).prompt}: {rebuild.difference(before)}"
    return rebuild.common(data, before.data), ""


def _sections(layout: Layout, run_id: str, earlier: list[str], known: rebuild.Objects) -> list[PromptSection]:
    rows = rebuild.rows_of(layout, run_id) or []
    parts, found = list(rebuild.parts(rows, known)), _pieces(rows)
    since = _since(layout, run_id, found, earlier)
    made = []
    for piece in found:
        data = b"".join(parts[number] for number in piece.rows)
        digest = next(
            (rows[number]["object"] for number in piece.rows if "object" in rows[number]), encoding.digest(data)
        )
        first = since[piece.title, piece.source]
        made.append(
            PromptSection(
                title=piece.title,
                source=piece.source,
                digest=digest,
                bytes=len(data),
                tokens=estimated(data.decode("utf-8", "replace")),
                since=first,
                at=runs.context(layout, first).at if first else "",
            )
        )
    return made


def _pieces(rows: Rows) -> list[_Piece]:
    """The sections of a manifest. A section starts at a heading of the harness, and at an object without a heading, such as a
    role's text. Foreign text is a separate row between two fence rows, so a heading in it starts no section."""
    found: list[_Piece] = []
    inside = False
    for number, row in enumerate(rows):
        text = str(row.get("text", ""))
        heads = not inside and text.startswith(OPENING)
        alone = "text" not in row and not inside
        if heads or alone or not found:
            title = text.partition("\n")[0].lstrip("# ") if heads else str(row.get("source", "")) if alone else RULES
            found.append(_Piece(title=title))
        found[-1].rows.append(number)
        found[-1].source = found[-1].source or str(row.get("source", ""))
        found[-1].key += encoding.digest(text.encode()) if "text" in row else row["object"]
        inside = heads and _opens_fence(text)
    return found


def _opens_fence(text: str) -> bool:
    last = text.rstrip("\n").rpartition("\n")[2]
    return text.endswith("\n") and last.startswith(FENCES)


def _since(layout: Layout, run_id: str, found: list[_Piece], earlier: list[str]) -> dict[tuple[str, str], str]:
    """{section: the oldest run of the role with the present version}; "" if all earlier runs have it."""
    since = {(one.title, one.source): run_id for one in found}
    same = {(one.title, one.source): one.key for one in found}
    for before in earlier:
        then = {(one.title, one.source): one.key for one in _pieces_of(layout, before)}
        same = {name: key for name, key in same.items() if then.get(name) == key}
        since |= dict.fromkeys(same, before)
        if not same:
            break
    return since | (dict.fromkeys(same, "") if len(earlier) == EARLIER else {})


def _pieces_of(layout: Layout, run_id: str) -> list[_Piece]:
    """The sections of an earlier run; [] if its manifest is broken, so that everything counts as changed there."""
    try:
        return _pieces(rebuild.rows_of(layout, run_id) or [])
    except BrokenFile:
        return []


def rows(value: Explanation) -> Iterator[tuple[str, ...]]:
    """The cells of a table: bytes, tokens, section, source, digest, since."""
    for one in value.sections:
        when = f"{one.at[:16]} {one.since}" if one.since else f"more than {EARLIER} runs ago"
        source = one.source if one.source != one.title else ""
        yield str(one.bytes), str(one.tokens), one.title, source, one.digest[:12], when
