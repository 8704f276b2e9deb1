"""One token budget for all sections of a workspace: small ones stay whole, large ones share the rest, with a note on
each cut."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.record import Record
from harness.base.tokens import estimated

HEAD, ROWS, NEWEST = "head", "rows", "newest"  # the part of a section that a cut keeps
DATED = "- ["
SMALLEST = 40  # tokens; below this, only the note of a cut text remains


class WorkspaceSection(Record):
    """A part of a prompt: `title`, which may have an introduction, and `text`, from the file `source` of a `layer`.
    `keep`: the part of the text that a cut keeps; `rest`: where to find the whole; `whole_tokens`: before the cut."""

    kind: str
    title: str
    text: str
    source: str
    layer: str
    keep: str = HEAD
    rest: str = ""
    whole_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Estimated length in tokens."""
        return estimated(self.text)


def fit(sections: Sequence[WorkspaceSection], most: int) -> list[WorkspaceSection]:
    """The sections, in order, cut to at most `most` tokens in total."""
    made = [one.replace(whole_tokens=one.tokens) for one in sections]
    left, room = sorted(range(len(made)), key=lambda at: made[at].whole_tokens), most
    while left and made[left[0]].whole_tokens <= room // len(left):
        room -= made[left.pop(0)].whole_tokens
    for at in left:
        made[at] = _cut(made[at], room // len(left))
    return made


def _cut(section: WorkspaceSection, most: int) -> WorkspaceSection:
    """The section cut to at most `most` tokens, including the note on the cut."""
    rows = section.text.rstrip("\n").split("\n")
    note = _note(section, len(rows))
    room = most - estimated(note)
    if most < SMALLEST or room <= 0:
        return section.replace(text=note if estimated(note) <= most else "")
    kept = _newest(rows, room) if section.keep == NEWEST else _first(rows, room, whole=section.keep == ROWS)
    if section.keep == ROWS:
        note = _note(section, len(rows) - len(kept))
    return section.replace(text="".join(f"{row}\n" for row in kept) + note)


def _note(section: WorkspaceSection, rows: int) -> str:
    what = {ROWS: f"{rows} more", NEWEST: "older entries"}.get(section.keep, "the rest")
    return f"[… no room for {what}: {section.rest or section.source} …]\n"


def _first(rows: Sequence[str], most: int, *, whole: bool) -> list[str]:
    """The first rows that fit, and a part of the next one unless rows must be `whole`."""
    kept: list[str] = []
    for row in rows:
        size = estimated(row + "\n")
        if size > most:
            part = "" if whole else _beginning(row, most - 1)
            return [*kept, part] if part else kept
        kept.append(row)
        most -= size
    return kept


def _beginning(row: str, most: int) -> str:
    """The longest prefix of a line that fits."""
    low, high = 0, len(row)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimated(row[:middle]) <= most else (low, middle - 1)
    return row[:low]


def _newest(rows: Sequence[str], most: int) -> list[str]:
    """The newest rows that fit, in their order, below their headings. Rows are dated (`- [2026-01-31] …`); a person's
    row without a date counts as the newest."""
    wanted = [at for at, row in enumerate(rows) if row.strip() and not row.startswith("#")]
    dates = {at: rows[at][len(DATED) :].partition("]")[0] if rows[at].startswith(DATED) else "~" for at in wanted}
    heads = _headings(rows)
    kept: set[int] = set()
    for at in sorted(wanted, key=lambda at: (dates[at], at), reverse=True):
        new = {at, *([heads[at]] if heads[at] >= 0 else [])} - kept
        size = sum(estimated(rows[one] + "\n") for one in new)
        if size > most:
            break
        kept |= new
        most -= size
    return [rows[at] for at in sorted(kept)]


def _headings(rows: Sequence[str]) -> list[int]:
    """For each row the index of the heading above it, or -1."""
    found, last = [], -1
    for at, row in enumerate(rows):
        last = at if row.startswith("#") else last
        found.append(last)
    return found
