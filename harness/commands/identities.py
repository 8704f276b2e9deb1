"""`identity`: the lines that roles know across missions, their evidence, and their removal for good."""

from __future__ import annotations

from typing import Any

from harness.base.errors import UsageFault
from harness.commands.provenance import MemoryLine, plain, select
from harness.memory import identity, pages
from harness.memory.curation import graduation, growth
from harness.memory.curation.growth import Evidence
from harness.memory.pages import PageItem
from harness.run.prompt import IDENTITY
from harness.state import names
from harness.state.layout import Layout, identity_folder
from harness.state.state import State
from harness.workplace import run_detection


def listed(role: str) -> list[dict[str, Any]]:
    """The lines of a role's identity, "" for all roles, in order. A person's line has no missions, and count 0."""
    texts = identity.texts(identity_folder())
    if role and role not in texts:
        raise UsageFault(f"There is no identity of '{role}'. There is: {', '.join(sorted(texts)) or 'none'}.")
    return [row for name in sorted(texts) if role in ("", name) for row in _rows(name, texts[name])]


def given(layout: Layout) -> tuple[str, list[dict[str, Any]]]:
    """(run, lines of the identity in its prompt) inside a run that cannot read the identities; else ("", [])."""
    run = "" if identity.texts(identity_folder()) else run_detection.run_id(layout)
    if not run:
        return "", []
    prompt = State(layout).data(names.of_run(run, names.PROMPT)) or b""
    _, heading, rest = prompt.decode("utf-8", "replace").partition(f"\n{IDENTITY} ")
    role = rest.partition(" role)")[0].rpartition(" ")[2] if heading else ""
    fence, _, content = rest.partition("\n\n")[2].partition("\n")
    return run, _rows(role, content.partition(f"\n{fence}\n")[0]) if fence.startswith("```") else []


def _rows(role: str, content: str) -> list[dict[str, Any]]:
    """The lines of one identity."""
    found: list[dict[str, Any]] = []
    for section in identity.parse(content).sections:
        for line in section.lines:
            if isinstance(line, pages.PageItem):
                row = {"text": line.text, "date": line.date, "missions": line.where, "count": line.count}
            elif line.startswith("- "):
                row = {"text": line[2:], "date": "", "missions": [], "count": 0}
            else:
                continue
            found.append({"role": role, **row})
    return found


def why(asked: str, role: str) -> dict[str, Any]:
    """A line as in `listed`, with the `rule` that added it, "" for a person's, and its `evidence`. Raises UsageFault if no line
    or several lines match."""
    row = _find(asked, role)
    if not row["count"]:
        return {**row, "rule": "", "evidence": []}
    folder = identity_folder()
    items = identity.parse(identity.text(folder, row["role"])).items("")
    found = _evidence(items, row["text"], identity.evidence(folder))
    alone = f", {graduation.BY_COUNT}" if row["text"].endswith(growth.COUNTED) else ""
    return {**row, "rule": _rule(row, found) + alone, "evidence": found}


def _evidence(items: list[PageItem], text: str, known: list[Evidence]) -> list[Evidence]:
    """The occurrences with the meaning of an item."""
    index = growth.ItemIndex(items)
    shown = {tuple_: growth.shown_text(*tuple_) for tuple_ in {(one.tag, one.text) for one in known}}
    mine = {key for key, words in shown.items() if (item := index.alike(words)) is not None and item.text == text}
    return [one for one in known if (one.tag, one.text) in mine]


def _rule(row: dict[str, Any], found: list[Evidence]) -> str:
    """The first rule that the evidence satisfies."""
    if row["text"].startswith(pages.AVOID_MARK) and len({one.mission for one in found}) > 1:
        return "a failure in two missions"
    voices = {(one.mission, one.feature) for one in found if one.role == row["role"]}
    if len(voices) > 1:
        return f"a trick that the {row['role']} of {len(voices)} features noted"
    return "a convention, noted again after it was in memory"


def forget(layout: Layout, asked: str, role: str) -> dict[str, Any]:
    """Remove a line for good; only a person may. Returns its role and text; raises UsageFault inside a run, for a person's line,
    and if no line or several lines match."""
    run_detection.refuse(layout, "identity forget")
    row = _find(asked, role)
    if not row["count"]:
        raise UsageFault(f"A person wrote '{row['text']}': remove it from {row['role']}.md by hand.")
    identity.forget(identity_folder(), row["role"], row["text"])
    return {"role": row["role"], "text": row["text"]}


def _find(asked: str, role: str) -> dict[str, Any]:
    """The matching line."""
    rows = listed(role)
    lines = [MemoryLine(text=plain(row["text"]), place=f"{row['role']}.md") for row in rows]
    found = select(asked, lines)
    mine = [row for row, line in zip(rows, lines, strict=True) if line in found]
    if len({row["role"] for row in mine}) > 1:
        raise UsageFault(f"{' and '.join(row['role'] for row in mine)} have this line: choose one with --role.")
    return mine[0]
