"""raw.md, layer L1 of memory: the notes of all roles, append-only, one line per entry.

`[2026-04-24T10:05:12Z] worker F-023 TRICK: psql -f drizzle/*.sql applies migrations in filename order`
A sequence number from 0, over all entries ever appended, identifies an entry; `curated.json` has the number of the
file's first line. An invalid line (torn by a power cut, garbage) also counts and is kept as it is. Any program may
write the file, so a line may have any length: readers keep its first LONGEST_LINE bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.base import clock, redaction
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.state import files, names
from harness.state.layout import Layout
from harness.state.state import State

TAGS = ("TRICK", "DECISION", "AVOID", "CONTEXT", "FAIL", "-")
MARKS = {f"{tag}:": tag for tag in TAGS} | {"-": "-"}  # an untagged entry is written without a colon
MAX_NOTE_CHARS = 300  # characters in a note of a run
MAX_PERSON_NOTE_CHARS = 1000  # characters in a person's note, and of any note on pages and in prompts
MAX_LINE_BYTES = 65536  # bytes; a longer line is not an entry
MAX_HEAD_CHARS = 200  # characters of time, role and feature; a line with more is not an entry
BREAKS = "\0\r\n\t"
WINDOW = 10
CURATOR = "curator"  # the role in the curator's own entries


class RawEntry(Record):
    """One line of raw.md. `tag` is one of TAGS, or "" for an invalid line (`text` is then the whole line)."""

    seq: int
    at: str
    role: str
    feature: str
    tag: str
    text: str

    def line(self) -> str:
        """The line as written in raw.md, without its newline."""
        return _line(self.at, self.role, self.feature, self.tag, self.text) if self.tag else self.text

    def shown(self) -> str:
        """The line as prompts show it, truncated to a readable length."""
        return self.line() if len(self.text) <= MAX_PERSON_NOTE_CHARS else self.replace(text=readable(self.text)).line()


def render(at: str, role: str, feature: str, tag: str, text: str) -> str:
    """One line without its newline; newlines in `text` become spaces."""
    return _line(at, role, feature or "-", tag, one_line(text))


def _line(at: str, role: str, feature: str, tag: str, text: str) -> str:
    return f"[{at}] {role} {feature} {tag if tag == '-' else tag + ':'} {text}"


def one_line(text: str) -> str:
    """Replace every run of line breaks, tabs and NULs in `text` by one space."""
    if any(character in text for character in BREAKS):
        text = re.sub(f"[{BREAKS}]+", " ", text)
    return text.strip()


def readable(text: str) -> str:
    """`text` on one line, truncated to the maximum length of a note."""
    text = one_line(text)
    return text if len(text) <= MAX_PERSON_NOTE_CHARS else text[: MAX_PERSON_NOTE_CHARS - 1].rstrip() + "…"


def parse_line(line: str, seq: int) -> RawEntry:
    """Parse one line; an invalid one keeps its text, with an empty tag, and one that is too long keeps its beginning."""
    if len(line) > MAX_LINE_BYTES:
        line = _cut(line, len(line.encode("utf-8", "replace")))
    line = line.removeprefix("\ufeff")
    stamp, _, rest = line.partition("] ")
    parts = rest.split(" ", 3)
    if len(parts) == 4 and stamp[:1] == "[" and stamp.endswith("Z") and parts[2] in MARKS:
        role, feature, mark, text = parts
        if len(stamp) + len(role) + len(feature) <= MAX_HEAD_CHARS:
            return RawEntry(seq=seq, at=stamp[1:], role=role, feature=feature, tag=MARKS[mark], text=text)
    return RawEntry(seq=seq, at="", role="", feature="-", tag="", text=line)


def parse_bytes(line: bytes, size: int, seq: int) -> RawEntry:
    """Parse a line of `size` bytes; `line` has at least its first LONGEST_LINE bytes."""
    text = line[:MAX_LINE_BYTES].decode("utf-8", "replace")
    return parse_line(_cut(text, size) if size > MAX_LINE_BYTES else text, seq)


def _cut(line: str, size: int) -> str:
    """The beginning of a line that is too long. The mark comes first, so that the rest cannot parse as an entry."""
    mark = f"(a line of {size} bytes, cut) "
    return mark + line[: MAX_LINE_BYTES - len(mark)]


def lines(path: str, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """(its first LONGEST_LINE bytes, its length in bytes) of each whole line from the offset `start` on, without its newline.
    Time is linear and memory small, however long a line is; a torn last line is left out."""
    head, size = b"", 0
    for block in files.blocks(path, start, MAX_LINE_BYTES):
        first, *others = block.split(b"\n")
        head, size = head + first[: MAX_LINE_BYTES - len(head)], size + len(first)
        if others:
            yield head, size
            *whole, head = others
            size = len(head)
            for line in whole:
                yield line, len(line)


def entries(path: str, first_seq: int, start: int = 0) -> Iterator[RawEntry]:
    """The entries from the offset `start` on, in order, read block by block; the first has the number `first_seq`."""
    for seq, (line, size) in enumerate(lines(path, start), first_seq):
        yield parse_bytes(line, size, seq)


def parse(data: bytes, first_seq: int) -> list[RawEntry]:
    """The entries in these bytes, as `entries`."""
    whole = data.split(b"\n")[:-1]
    return [parse_bytes(line, len(line), seq) for seq, line in enumerate(whole, first_seq)]


def checked(tag: str, text: str, *, in_run: bool) -> str:
    """`text` ready to be stored; raises UsageFault for an unknown tag, or a text that is empty or too long."""
    if tag not in TAGS:
        raise UsageFault(f"unknown tag '{tag}'. Use one of {', '.join(TAGS)}.")
    text = one_line(redaction.received(text))
    if not text:
        raise UsageFault("The note is empty. Write one line that helps the next run, with the command.")
    most = MAX_NOTE_CHARS if in_run else MAX_PERSON_NOTE_CHARS
    if len(text) > most:
        raise UsageFault(f"The note has {len(text)} characters; the limit is {most}. Shorten it.")
    return text


def append(layout: Layout, role: str, feature: str, notes: list[tuple[str, str]]) -> None:
    """Append (tag, text) notes durably, in one write; secrets in them are masked."""
    if notes:
        State(layout).append(names.RAW, rendered(role, feature, notes))


def rendered(role: str, feature: str, notes: list[tuple[str, str]]) -> bytes:
    """The lines of (tag, text) notes with the present time; secrets in them are masked."""
    at = clock.stamp(clock.now())
    return "".join(render(at, role, feature, tag, redaction.received(text)) + "\n" for tag, text in notes).encode()
