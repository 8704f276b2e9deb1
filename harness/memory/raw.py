"""raw.md, L1: the notes of all roles, append-only, one line per entry.

`[2026-04-24T10:05:12Z] worker F-023 TRICK: psql -f drizzle/*.sql applies migrations in filename order`
An entry is identified by its sequence number, from 0 over all entries ever appended; `curated.json` has the number of the
file's first line. A line that is not a valid entry (torn by a power cut, garbage) also counts as one and is kept as it is.
"""

from __future__ import annotations

from itertools import islice

from harness.base import clock, redaction
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.store import names
from harness.store.layout import Layout
from harness.store.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TAGS = ("TRICK", "DECISION", "AVOID", "CONTEXT", "FAIL", "-")
MARKS = {tag if tag == "-" else f"{tag}:": tag for tag in TAGS}
LONGEST = 300
BREAKS = "\0\r\n\t"
WINDOW = 10
CURATOR = "curator"  # the role in the curator's own entries, and their disposition in the archive


class Entry(Record):
    """One line of raw.md. `tag` is one of TAGS, or "" for a line that is no entry (its `text` is then the whole line)."""

    seq: int
    at: str
    role: str
    feature: str
    tag: str
    text: str

    def line(self) -> str:
        """The line as written in raw.md, without its newline."""
        return _line(self.at, self.role, self.feature, self.tag, self.text) if self.tag else self.text


def render(at: str, role: str, feature: str, tag: str, text: str) -> str:
    """One line without its newline; newlines in `text` become spaces."""
    return _line(at, role, feature or "-", tag, one_line(text))


def _line(at: str, role: str, feature: str, tag: str, text: str) -> str:
    return f"[{at}] {role} {feature} {tag if tag == '-' else tag + ':'} {text}"


def one_line(text: str) -> str:
    """`text` with every run of line breaks, tabs and NULs as one space."""
    if any(character in text for character in BREAKS):
        import re  # few notes have one

        text = re.sub(f"[{BREAKS}]+", " ", text)
    return text.strip()


def parse_line(line: str, seq: int) -> Entry:
    """The entry in one line; an invalid line keeps its text, with an empty tag."""
    stamp, _, rest = line.partition("] ")
    parts = rest.split(" ", 3)
    if len(parts) == 4 and stamp[:1] == "[" and stamp.endswith("Z") and parts[2] in MARKS:
        role, feature, mark, text = parts
        return Entry(seq=seq, at=stamp[1:], role=role, feature=feature, tag=MARKS[mark], text=text)
    return Entry(seq=seq, at="", role="", feature="-", tag="", text=line)


def parse(data: bytes, first_seq: int) -> list[Entry]:
    """All whole lines of raw.md; undecodable bytes are replaced, a torn last line is left out."""
    lines = data.decode("utf-8", "replace").split("\n")[:-1]
    return [parse_line(line, first_seq + index) for index, line in enumerate(lines)]


def checked(tag: str, text: str, *, in_run: bool) -> str:
    """`text` as it may be appended; raises UsageFault for an unknown tag, an empty text, or too long a line in a run."""
    if tag not in TAGS:
        raise UsageFault(f"'{tag}' is no tag of a note. Use one of {', '.join(TAGS)}.")
    text = one_line(text)
    if not text:
        raise UsageFault("The note is empty. Say in one line what the next stranger needs, with the command.")
    if in_run and len(text) > LONGEST:
        raise UsageFault(f"The note has {len(text)} characters; one line of at most {LONGEST} is kept. Shorten it.")
    return text


def append(layout: Layout, role: str, feature: str, notes: list[tuple[str, str]]) -> None:
    """Append (tag, text) notes durably, in one write; secrets in them are masked."""
    if notes:
        State(layout).append(names.RAW, rendered(role, feature, notes))


def rendered(role: str, feature: str, notes: list[tuple[str, str]]) -> bytes:
    """The lines of (tag, text) notes that are made now; secrets in them are masked."""
    at = clock.stamp(clock.now())
    return "".join(render(at, role, feature, tag, redaction.mask(text)) + "\n" for tag, text in notes).encode()


def uncurated(layout: Layout, first_seq: int, folded: int, most: int) -> int:
    """The number of entries that wait for the curator, counted up to `most`; the curator's own do not count."""
    return sum(1 for _ in islice((one for one in waiting(layout, first_seq, folded) if one.role != CURATOR), most))


def waiting(layout: Layout, first_seq: int, folded: int) -> Iterator[Entry]:
    """The entries that no compaction has archived yet, in order, read block by block."""
    seq, offset, rest = first_seq, 0, b""
    while block := State(layout).part(names.RAW, offset, 65536):
        offset += len(block)
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if seq >= folded:
                yield parse_line(line.decode("utf-8", "replace"), seq)
            seq += 1
