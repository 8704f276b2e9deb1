"""read_file: numbered lines of a file, bounded, with the offset to continue at; images as images; other binary files
described."""

from __future__ import annotations

from typing import Any

from harness.base.encoding import digest
from harness.base.record import Record
from harness.builtin.tools import _read_digests, tool_results
from harness.builtin.tools.tool import READS, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import counted, failed
from harness.filesystem import transfer
from harness.filesystem.protocol import FileContent, FileFault, Shell

MOST_LINES, LONGEST_LINE = 2000, 2000
MOST_SHOWN = 76_000  # characters of one answer: below what the registry puts into a file
LONGEST_PIECE = 50_000  # characters of one line that is read from a column on
SNIFFED = 8192  # bytes that decide whether a file is text
LARGEST_IMAGE = 3_750_000  # bytes: vendors take 5 MB in base64
LARGE = 1024 * 1024  # bytes; reading the whole to know it again costs a few milliseconds
LARGEST_KNOWN = 64 * 1024 * 1024  # bytes; whether a larger file changed since it was read is not known
BOM = b"\xef\xbb\xbf"
IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
BINARIES = {
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive, or an office document, or a Java archive",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ\0": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\x7fELF": "a program or library (ELF)",
    b"SQLite format 3\0": "an SQLite database",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"\0\0\0": "binary",
}


class Page(Record):
    """Lines as they are shown. `last`: the number of the last line of them; `notes`: what else the model must know."""

    rows: list[str] = []
    last: int = 0
    notes: list[str] = []


def _read_file(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    path, first = arguments["path"], max(1, arguments.get("offset", 1))
    column = arguments.get("column", 0)
    limit = 1 if column else arguments.get("limit", MOST_LINES)
    found = session.files.read(path, first - 1, limit)
    if isinstance(found, FileFault):
        return tool_results.fault(session, found)
    described = _described(session, path, found)
    if described:
        return described
    if not found.size:
        _read_digests.remember(session, path, digest(b""))
        return ToolResult(text=f"({path} is an empty file: 0 bytes.)")
    if not found.data:
        there = counted(found.total_lines, "line") if found.total_lines >= 0 else "fewer lines"
        return failed(f"{path} has {there}; there is no line {first}. Give a smaller offset.")
    _remember(session, path, found)
    page = _piece(found, first, column) if column else _page(found, first)
    return ToolResult(text="\n".join(page.rows + ([""] if page.notes else []) + [f"[{note}]" for note in page.notes]))


def numbered(number: int, text: str) -> str:
    """A line as read_file shows it."""
    return f"{number:>6}\t{text}"


def decoded(line: bytes) -> str:
    """A line as text; bytes that are not UTF-8 stand as \\xNN."""
    return line.decode("utf-8", "backslashreplace")


def is_text(data: bytes) -> bool:
    """Whether the beginning of a file is that of text: no NUL in it, and no beginning of a binary format."""
    return b"\0" not in data[:SNIFFED] and not data.startswith(b"%PDF-")


def media_type(data: bytes) -> str:
    """The media type of an image that models can look at, else ""."""
    found = next((kind for start, kind in IMAGES.items() if data.startswith(start)), "")
    return "" if found == "image/webp" and data[8:12] != b"WEBP" else found


def _described(session: ToolSession, path: str, found: FileContent) -> ToolResult | None:
    """The answer for an image, or another binary file; None for text."""
    begin = found.data if found.first == 1 else b""
    kind = media_type(begin)
    if not kind and is_text(found.data):
        return None
    if kind and found.size <= LARGEST_IMAGE:
        image = transfer.read_whole(session.files, path)
        if isinstance(image, FileFault):
            return tool_results.fault(session, image)
        _read_digests.remember(session, path, image.digest)
        return ToolResult(text=f"{path}: {kind}, {tool_results.size(image.size)}.", images=[(kind, image.data)])
    what = next((words for start, words in BINARIES.items() if begin.startswith(start)), "binary")
    if kind:
        what = f"{kind}, larger than the {tool_results.size(LARGEST_IMAGE)} that can be shown"
    _remember(session, path, found)
    how = " Look into it with execute." if isinstance(session.files, Shell) else ""
    return ToolResult(text=f"{path} is no text that can be shown: {what}, {tool_results.size(found.size)}.{how}")


def _remember(session: ToolSession, path: str, found: FileContent) -> None:
    """Keep the digest of what the model saw. Where only a part was read, the whole counts if that part is in it unchanged; then
    its lines are known, too. A part of a large file must not cost a read of the whole: its version is kept, where it has one."""
    known = found.digest
    if not known and found.version and found.size > LARGE:
        known = _read_digests.VERSION + found.version
    if not known and found.size <= LARGEST_KNOWN:
        whole = transfer.read_whole(session.files, path)
        if isinstance(whole, FileFault) or found.data not in whole.data:
            return  # it is being written: the next change asks for another read
        known, found.total_lines = whole.digest, whole.total_lines
    _read_digests.remember(session, path, known)


def lines_of(data: bytes) -> list[bytes]:
    """The lines, without their newlines; the newline at the end of a file begins no line."""
    found = data.split(b"\n")
    return found[:-1] if not found[-1] else found


def _page(found: FileContent, first: int) -> Page:
    page, used, cut = Page(last=first - 1), 0, 0
    lines = lines_of(found.data.removeprefix(BOM) if first == 1 else found.data)
    for line in lines[:MOST_LINES]:
        text = decoded(line.removesuffix(b"\r"))
        if len(text) > LONGEST_LINE:
            cut += 1
            whole = len(text)
            text = f"{text[:LONGEST_LINE]} […line cut: {whole:,} characters]"
        used += len(text) + 8
        if used > MOST_SHOWN and page.rows:
            break
        page.last += 1
        page.rows.append(numbered(page.last, text))
    _note_rest(page, found, first)
    if cut:
        page.notes.append(
            f"{counted(cut, 'line')} cut at {LONGEST_LINE:,} characters."
            f" The rest of a line: offset=LINE, column={LONGEST_LINE + 1}."
        )
    page.notes += _oddities(found, lines, first)
    return page


def _note_rest(page: Page, found: FileContent, first: int) -> None:
    whole = len(page.rows) == found.lines and found.ends
    if whole and first == 1:
        return
    of = f" of {found.total_lines:,}" if found.total_lines >= 0 else ""
    on = "It ends here." if whole else f"Go on with offset={page.last + 1}."
    page.notes.append(f"Lines {first:,}-{page.last:,}{of}. {on}")


def _oddities(found: FileContent, lines: list[bytes], first: int) -> list[str]:
    """A note about bytes that the lines do not show."""
    notes, returns = [], sum(line.endswith(b"\r") for line in lines)
    if returns:
        which = "Its lines end" if returns >= len(lines) - 1 else f"{counted(returns, 'line')} here end"
        notes.append(f"{which} in CRLF; write_file and edit_file keep that.")
    if first == 1 and found.data.startswith(BOM):
        notes.append("It begins with a byte order mark; write_file and edit_file keep it.")
    if not is_utf8(found.data):
        notes.append("It is not UTF-8: such bytes stand as \\xNN, and edit_file takes them so.")
    return notes


def is_utf8(data: bytes) -> bool:
    """Whether all of these bytes are UTF-8 text."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _piece(found: FileContent, line: int, column: int) -> Page:
    """A part of one line."""
    text = decoded(lines_of(found.data)[0].removesuffix(b"\r"))
    part = text[column - 1 : column - 1 + LONGEST_PIECE]
    end = column - 1 + len(part)
    on = f"Go on with column={end + 1}." if end < len(text) else "The line ends here."
    shown = (
        f"Characters {column:,}-{end:,} of {len(text):,} of line {line:,}."
        if part
        else f"It has {len(text):,} characters."
    )
    return Page(rows=[numbered(line, part)], last=line, notes=[f"{shown} {on}"])


TOOL = Tool(
    name="read_file",
    about="path",
    description=(
        f"Read a text file as numbered lines: up to {MOST_LINES} lines of {LONGEST_LINE} characters;"
        " the answer says how to go on. Shows png, jpeg, gif and webp as images; describes other binary files."
        " The line numbers are not in the file."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0, "description": "first line; default 1"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LINES, "description": "lines"},
            "column": {
                "type": "integer",
                "minimum": 1,
                "description": f"read only line `offset`, from this character on, up to {LONGEST_PIECE}",
            },
        },
        "required": ["path"],
    },
    effects=READS,
    run=_read_file,
)
