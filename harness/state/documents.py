"""Strict parsing of front matter and Markdown, fences that their content cannot close, and values that can be made again.

The parsers take 20 to 40 ms to import, so only what parses imports them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.state import files

SHORTEST_FENCE = 3
DESCRIPTION = re.compile(r"^description:[ \t]+(?=[^\s|>'\"\[])", re.MULTILINE)  # whose value begins without quotes
NUMBERING = re.compile(r"^(§ ?)?\d+(\.\d+)*[.):]? ")  # of a heading


class Block(Record):
    """A heading (`level` 1-6), a fence (`info` follows its ticks; `closed`: it ends) or a paragraph. `line` is 1-based."""

    kind: str
    line: int
    text: str
    level: int = 0
    info: str = ""
    closed: bool = True


def front_matter(text: str, path: str) -> tuple[dict[str, Any], str]:
    """(front matter, exact body after it); ({}, text) without front matter. Raises BrokenFile if the front matter is
    not closed, not YAML, or not a mapping."""
    if not text.startswith("---\n"):
        return {}, text
    head, mark, body = text[4:].partition("\n---\n") if not text[4:].startswith("---\n") else ("", "---\n", text[8:])
    if not mark:
        raise BrokenFile(path, "the front matter is not closed", line=1, remedy="End it with a line of three dashes.")
    meta = _yaml(head, path)
    if not isinstance(meta, dict) or not all(isinstance(key, str) for key in meta):
        raise BrokenFile(path, "the front matter is not a list of 'key: value' lines", line=2, remedy="Correct it.")
    return meta, body


def _yaml(head: str, path: str) -> Any:
    import yaml  # 20 ms, and `note` and `hold` read no front matter
    from frontmatter.default_handlers import YAMLHandler  # as above

    try:
        value = YAMLHandler().load(head)
        return {} if value is None else value
    except (yaml.YAMLError, ValueError) as fault:  # ValueError: a date or a number that does not exist
        if head != (told := DESCRIPTION.sub("description: >-\n  ", head)):
            with contextlib.suppress(BrokenFile):
                return _yaml(told, path)
        mark = getattr(fault, "problem_mark", None)
        line = mark.line + 2 if mark else 2
        problem = getattr(fault, "problem", None) or "not YAML"
        at = (f"{head}\n".split("\n")[mark.line] if mark else "")[getattr(mark, "column", 0) :][:1]
        problem += f"; put the text with this '{at}' in quotes" if at in (*":@`%",) else ""
        raise BrokenFile(
            path, f"the front matter does not parse ({problem})", line=line, remedy="Correct it."
        ) from None


def line_in_front(text: str, key: str) -> int:
    """The 1-based line of a key of the front matter; 1 if it is absent."""
    head = text.partition("\n---\n")[0].split("\n")
    return next(
        (number for number, line in enumerate(head, start=1) if key and line.partition(":")[0].strip() == key), 1
    )


def blocks(text: str) -> list[Block]:
    """The headings, fences and paragraphs of a Markdown text, in order."""
    from markdown_it import MarkdownIt  # 30 ms, and few commands read headings

    found: list[Block] = []
    parser = MarkdownIt("commonmark").disable("inline")  # keep inline markup as it is
    tokens, lines = parser.parse(text), text.split("\n")
    for index, token in enumerate(tokens):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            last = lines[token.map[1] - 1].strip() if token.map and token.map[1] > line else ""
            closed = last.startswith(token.markup) and not last.strip(token.markup[0])
            found.append(Block(kind="fence", line=line, text=token.content, info=token.info.strip(), closed=closed))
        elif token.type == "heading_open":
            found.append(Block(kind="heading", line=line, text=tokens[index + 1].content, level=int(token.tag[1:])))
        elif token.type == "paragraph_open":
            found.append(Block(kind="paragraph", line=line, text=tokens[index + 1].content))
        elif token.type in ("html_block", "code_block"):
            found.append(Block(kind="other", line=line, text=token.content))
    return found


def fence_mark(line: str) -> str:
    """The backticks or tildes with which a line opens or closes a fence, else "": further backticks mean inline code."""
    mark = line[: len(line) - len(line.lstrip("`"))] or line[: len(line) - len(line.lstrip("~"))]
    return "" if len(mark) < SHORTEST_FENCE or (mark[0] == "`" and "`" in line[len(mark) :]) else mark


def _heading(line: str) -> tuple[str, int] | None:
    """(text, level) of an ATX heading."""
    rest = line.lstrip("#")
    level = len(line) - len(rest)
    return (rest.strip().rstrip("#").rstrip(), level) if 1 <= level <= 6 and rest[:1].isspace() else None


def headings(text: str) -> list[tuple[str, int, int]]:
    """(heading, level, 0-based line) of every ATX heading outside fences, found line by line."""
    found, fence = [], ""
    for number, line in enumerate(text.split("\n")):
        mark = fence_mark(line.lstrip())
        if mark and (not fence or (mark.startswith(fence) and line.strip() == mark)):
            fence = "" if fence else mark
        elif not fence and (title := _heading(line)):
            found.append((*title, number))
    return found


def _words(heading: str) -> str:
    """A heading without its marks, emphasis and numbering."""
    return NUMBERING.sub("", " ".join(re.sub(r"[*_`\\]", "", heading).strip("# \t").lower().split()))


def named(text: str, heading: str) -> list[tuple[str, int, int]]:
    """The rows of `headings` that are this one but for case; else those that are it but for numbering, emphasis and blanks."""
    wanted, alike = _words(heading), heading.strip().lstrip("#").strip().lower()
    found = [row for row in headings(text) if _words(row[0]) == wanted]
    return [row for row in found if row[0].lower() == alike] or found


def sections(text: str, heading: str) -> Iterator[str]:
    """The sections under the headings that are `named`, with their subsections."""
    lines, found = text.split("\n"), headings(text)
    for _, level, start in named(text, heading):
        ends = (line for _, other, line in found if line > start and other <= level)
        yield "\n".join(lines[start : next(ends, len(lines))])


def fence_for(text: str, least: int = 3, tick: str = "`") -> str:
    """A fence that `text` cannot close: more backticks (or tildes) than any run of them in the text."""
    longest, at = 0, text.find(tick)
    while at >= 0:
        end = at + longest
        while text.startswith(tick, end):
            end += 1
        longest, at = end - at, text.find(tick * (end - at + 1), end)
    return tick * max(least, longest + 1)


def ended(text: str) -> str:
    """The text with a newline at its end, unless it is empty."""
    return text if not text or text.endswith("\n") else text + "\n"


def fenced(text: str, info: str = "") -> str:
    """`text` in a fenced block that it cannot close, with a newline at the end."""
    mark = fence_for(text, tick="~" if "`" in info else "`")  # an info string with ticks needs tildes
    return f"{mark}{info}\n{ended(text)}{mark}\n"


def fenced_blocks(text: str, info: str) -> list[str]:
    """The contents of the fenced blocks with exactly this info string, in order. Parses line by line to tolerate any
    agent output: an unclosed fence is not a block and does not hide a later block with this info string."""
    found: list[str] = []
    fence, wanted = "", False
    inside: list[str] = []
    for line in text.split("\n"):
        mark = fence_mark(line.strip())
        opens = mark != "" and line.strip()[len(mark) :].strip() == info
        if mark and (not fence or (opens and info and mark.startswith(fence))):
            fence, wanted, inside = mark, opens, []
        elif fence and mark and mark.startswith(fence) and line.strip() == mark:
            found += ["\n".join(inside)] if wanted else []
            fence = ""
        else:
            inside.append(line)
    return found


def recall(folder: str, name: str, text: str, fields: tuple[str, ...] = ()) -> Any:
    """What `keep` left of exactly this text with these fields, else None; a torn file counts as absent."""
    try:
        row = json.loads(files.read(os.path.join(folder, name + ".json")) or b"{}")
        return row["value"] if row["fields"] == [*fields] and row["of"] == text else None
    except (OSError, ValueError, KeyError, TypeError, BrokenFile):
        return None


def keep(folder: str, name: str, text: str, value: Any, fields: tuple[str, ...] = ()) -> None:
    """Keep a value that can be made again from what `text` names; not durable, and silent if the folder is not writable."""
    if not os.path.isdir(os.path.dirname(folder)):
        return
    row = files.dump_json({"fields": fields, "of": text, "value": value})
    try:
        files.replace_quickly(os.path.join(folder, name + ".json"), row)
    except OSError:
        return


def line_of_key(text: str, table: str, key: str = "", row: int = 0) -> int | None:
    """The 1-based line of a key in its table of a TOML text, or of the table's header without a key; else the first line with
    that word (`a.b = 1`), else None. `row`: the 0-based index of the table among those of its name."""
    word = key or table.partition(".")[2] or table
    inside, first, before = "", None, 0
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[+([^\]]+)\]", line):
            before += bool(table) and inside == table
            inside = re.sub(r"[\"'\s]", "", header[1])
        if before >= row and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line.partition("#")[0]):
            if inside == table or (not (table and key) and f"{inside}.".startswith(word + ".")):
                return number
            first = first or number
    return first or (line_of_key(text, table, key) if row else None)
