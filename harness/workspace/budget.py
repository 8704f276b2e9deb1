"""One budget over all sections of a workspace: small ones stay whole, large ones share the rest, and each says what is cut."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.record import Record
from harness.base.tokens import estimated

HEAD, ROWS, NEWEST = "head", "rows", "newest"  # what of a section is kept where it is cut
DATED = "- ["
SMALLEST = 40  # tokens; below, a cut text is its note alone


class WorkspaceSection(Record):
    """A part of a prompt: `title`, which may have an introduction, and `text`, from the file `source` of a `layer`. `keep`: what
    of the text stays where there is no room; `rest`: where a reader finds the whole. `whole_tokens`: before it was cut."""

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
        """An estimate of its length."""
        return estimated(self.text)

    @property
    def is_cut(self) -> bool:
        """Whether some of it is left out."""
        return self.tokens < self.whole_tokens


def fit(sections: Sequence[WorkspaceSection], most: int) -> list[WorkspaceSection]:
    """The sections, in their order, of at most `most` tokens together."""
    made = [one.replace(whole_tokens=one.tokens) for one in sections]
    left, room = sorted(range(len(made)), key=lambda at: made[at].whole_tokens), most
    while left and made[left[0]].whole_tokens <= room // len(left):
        room -= made[left.pop(0)].whole_tokens
    for at in left:
        made[at] = _cut(made[at], room // len(left))
    return made


def _cut(section: WorkspaceSection, most: int) -> WorkspaceSection:
    """The section with at most `most` tokens, the note on what is left out included."""
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
    """The first rows that fit; unless they must be `whole`, a part of the next one, too."""
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
    """The longest beginning of a line that fits."""
    low, high = 0, len(row)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimated(row[:middle]) <= most else (low, middle - 1)
    return row[:low]


def _newest(rows: Sequence[str], most: int) -> list[str]:
    """The newest rows that fit, in their places, below their headings. A row is dated (`- [2026-01-31] …`); one that a person
    wrote without a date is newer than any."""
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
    """For each row the row of the heading above it, -1 for none."""
    found, last = [], -1
    for at, row in enumerate(rows):
        last = at if row.startswith("#") else last
        found.append(last)
    return found
