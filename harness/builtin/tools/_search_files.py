"""list_files, glob_files and grep_files: what there is, bounded, with how to see the rest."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from harness.builtin.tools import read_files, tool_results
from harness.builtin.tools.tool import READS, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import counted
from harness.filesystem.protocol import FileFault, Match, Matches

MOST_LISTED, MOST_GLOBBED, MOST_MATCHES = 1000, 200, 200
MOST_COUNTED = 10_000  # matching lines that the modes files and count look at
LONGEST_MATCH = 400  # characters of a matching line
MOST_CONTEXT = 10
MOST_SKIPPED = 5


def _list_files(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    path = arguments.get("path", ".")
    found = session.files.ls(path, MOST_LISTED)
    if isinstance(found, FileFault):
        return tool_results.fault(session, found)
    if not found.entries:
        return ToolResult(text=f"({path} is an empty folder.)")
    more = tool_results.left_out(found.more, "entries", "glob_files finds files by name.")
    return ToolResult(text="\n".join(map(tool_results.row, found.entries)) + more)


def _glob_files(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    pattern, path = arguments["pattern"], arguments.get("path", ".")
    found = session.files.glob(pattern, path, MOST_GLOBBED)
    if isinstance(found, FileFault):
        return tool_results.fault(session, found)
    if not found.entries:
        return ToolResult(
            text=f"No file below {path} matches {pattern}. (Files that .gitignore names are not looked at.)"
        )
    more = tool_results.left_out(found.more, "files", "Give a narrower pattern or path.")
    return ToolResult(text="\n".join(map(tool_results.row, found.entries)) + more)


def _grep_files(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    mode = arguments.get("mode", "content")
    most = arguments.get("limit", MOST_MATCHES) if mode == "content" else MOST_COUNTED
    found = session.files.grep(
        arguments["pattern"],
        arguments.get("path", "."),
        glob=arguments.get("glob", ""),
        ignore_case=arguments.get("ignore_case", False),
        literal=arguments.get("literal", False),
        most=most,
        longest=LONGEST_MATCH,
    )
    if isinstance(found, FileFault):
        return tool_results.fault(session, found)
    skipped = _skipped(found)
    if not found.matches:
        where = f"{arguments.get('path', '.')}{' in ' + arguments['glob'] if 'glob' in arguments else ''}"
        return ToolResult(text=f"No line below {where} matches {arguments['pattern']}.{skipped}")
    if mode != "content":
        return ToolResult(text=_by_file(found, mode == "count") + skipped)
    rows = _with_context(session, found, arguments.get("context", 0))
    more = tool_results.left_out(found.more, "matching lines", "Narrow pattern, path or glob, or use mode=files.")
    return ToolResult(text="\n".join(rows) + more + skipped)


def _by_file(found: Matches, counts: bool) -> str:
    """The files that matched, or how many lines in each."""
    per_file: dict[str, int] = {}
    for match in found.matches:
        per_file[match.path] = per_file.get(match.path, 0) + 1
    shown = list(per_file)[:MOST_LISTED]
    rows = [f"{path}:{per_file[path]}" if counts else path for path in shown]
    left = max(found.files, len(per_file)) - len(shown)
    more = tool_results.left_out(left, "files", "Narrow pattern, path or glob.")
    if counts:
        more += f"\n\n[{_at_least(found)} in {counted(max(found.files, len(per_file)), 'file')}.]"
    return "\n".join(rows) + more


def _at_least(found: Matches) -> str:
    exact = counted(len(found.matches) + max(0, found.more), "matching line")
    return f"At least {exact}; not all are counted above" if found.more else exact


def _skipped(found: Matches) -> str:
    """The files that could not be searched."""
    if not found.skipped:
        return ""
    named = "; ".join(f"{path} ({why})" for path, why in list(found.skipped.items())[:MOST_SKIPPED])
    return f"\n\n[{counted(len(found.skipped), 'file')} not searched: {named}.]"


def _with_context(session: ToolSession, found: Matches, around: int) -> list[str]:
    """`path:line:text` of each match, as grep prints it; with context `path-line-text`, and `--` between parts."""
    if not around:
        return [_row(match.path, match.line, match.text, ":") for match in found.matches]
    rows = list[str]()
    for path, parts in groupby(_parts(found.matches, around), key=lambda part: part[0].path):
        for shown in _of_file(session, path, list(parts), around):
            rows += (["--"] if rows else []) + shown
    return rows


def _parts(matches: list[Match], around: int) -> list[list[Match]]:
    """Matches whose context meets, together."""
    parts: list[list[Match]] = []
    for match in matches:
        last = parts[-1][-1] if parts else None
        if last and last.path == match.path and match.line - last.line <= 2 * around + 1:
            parts[-1].append(match)
        else:
            parts.append([match])
    return parts


def _of_file(session: ToolSession, path: str, parts: list[list[Match]], around: int) -> list[list[str]]:
    """The rows of each part of a file, which is read once, from the first of them to the last."""
    first, last = max(1, parts[0][0].line - around), parts[-1][-1].line + around
    found = session.files.read(path, first - 1, last - first + 1)
    lines = [] if isinstance(found, FileFault) else read_files.lines_of(found.data)  # a Fault: it went meanwhile
    return [_part(path, part, lines, first, around) for part in parts]


def _part(path: str, part: list[Match], lines: list[bytes], first: int, around: int) -> list[str]:
    """The matches and the lines around them; `lines` are those from the line `first` on."""
    rows = {match.line: _row(path, match.line, match.text, ":") for match in part}
    for number in range(max(first, part[0].line - around), part[-1].line + around + 1):
        if number not in rows and number - first < len(lines):
            rows[number] = _row(path, number, lines[number - first], "-")
    return [rows[number] for number in sorted(rows)]


def _row(path: str, line: int, text: bytes, sign: str) -> str:
    shown = read_files.decoded(text.removesuffix(b"\r"))
    cut = f"{shown[:LONGEST_MATCH]} […]" if len(shown) > LONGEST_MATCH else shown
    return f"{path}{sign}{line}{sign}{cut}"


LIST_TOOL = Tool(
    name="list_files",
    about="path",
    description=f"The entries of one folder, up to {MOST_LISTED}; the names of folders end in /.",
    parameters={"type": "object", "properties": {"path": {"type": "string", "description": "default: the root"}}},
    effects=READS,
    run=_list_files,
)
GLOB_TOOL = Tool(
    name="glob_files",
    about="path",
    description=(
        f"Find files by path pattern (*, ?, [a-z], {{a,b}}, **), such as **/*.py: up to {MOST_GLOBBED}, newest first."
        " A pattern that ends in / finds folders. Leaves out what .gitignore names."
    ),
    parameters={
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "path": {"type": "string", "description": "folder"}},
        "required": ["pattern"],
    },
    effects=READS,
    run=_glob_files,
)
GREP_TOOL = Tool(
    name="grep_files",
    about="path",
    description=(
        "Search file contents with a regular expression (ripgrep's syntax), in a file or below a folder."
        f" Up to {MOST_MATCHES} lines as path:line:text, cut at {LONGEST_MATCH} characters."
        " Leaves out hidden and binary files, and what .gitignore names."
    ),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {"type": "string"},
            "path": {"type": "string"},
            "glob": {"type": "string", "description": "only files that match, such as *.py"},
            "mode": {"type": "string", "enum": ["content", "files", "count"]},
            "ignore_case": {"type": "boolean"},
            "literal": {"type": "boolean", "description": "the pattern is plain text"},
            "context": {
                "type": "integer",
                "minimum": 0,
                "maximum": MOST_CONTEXT,
                "description": "lines around a match",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "matching lines"},
        },
        "required": ["pattern"],
    },
    effects=READS,
    run=_grep_files,
)
