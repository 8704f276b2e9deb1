"""Front matter and Markdown, strictly: what our own files must look like, and text fenced so that it cannot get out.

The libraries are loaded only when a file must really be parsed: `cached` keeps what was parsed beside the exact text.
"""

from __future__ import annotations

import json
import os
import re

from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")  # a line with more ticks behind the first ones is inline code


class Block(Record):
    """A heading (`level` 1-6), a fence (`info` is the text behind its ticks, `closed` whether it ends) or a paragraph.

    `line` is 1-based.
    """

    kind: str
    line: int
    text: str
    level: int = 0
    info: str = ""
    closed: bool = True


def front_matter(text: str, path: str) -> tuple[dict[str, Any], str]:
    """The front matter and the body behind it; ({}, text) where the file has none.

    Raises BrokenFile where it is not closed, not YAML, or not a mapping. The body is exact: nothing is stripped.
    """
    if not text.startswith("---\n"):
        return {}, text
    head, mark, body = text[4:].partition("\n---\n") if not text[4:].startswith("---\n") else ("", "---\n", text[8:])
    if not mark:
        raise BrokenFile(path, "the front matter is not closed", line=1, remedy="End it with a line of three dashes.")
    meta = _yaml(head, path)
    if not isinstance(meta, dict) or not all(isinstance(key, str) for key in meta):
        raise BrokenFile(path, "the front matter is not a list of 'key: value' lines", line=2, remedy="Mend it.")
    return meta, body


def _yaml(head: str, path: str) -> Any:
    import yaml  # 40 ms: only when a front matter is really parsed
    from frontmatter.default_handlers import YAMLHandler

    try:
        value = YAMLHandler().load(head)
        return {} if value is None else value
    except (yaml.YAMLError, ValueError) as fault:  # ValueError: a date or a number that there is not
        mark = getattr(fault, "problem_mark", None)
        line = mark.line + 2 if mark else 2
        problem = getattr(fault, "problem", None) or "not YAML"
        raise BrokenFile(path, f"the front matter does not parse ({problem})", line=line, remedy="Mend it.") from None


def with_front_matter(meta: dict[str, Any], body: str) -> str:
    """The text of a file with this front matter (keys in their order) and exactly this body."""
    import yaml  # 40 ms: only when one is written; the handler's own export strips no-break spaces off the ends

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    head = yaml.dump(meta, Dumper=dumper, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return f"---\n{head}---\n{body}"


def blocks(text: str) -> list[Block]:
    """Headings, fences and paragraphs of Markdown whose shape we check, in order."""
    from markdown_it import MarkdownIt  # 60 ms: only when a file is really parsed

    found: list[Block] = []
    tokens, lines = MarkdownIt("commonmark").parse(text), text.split("\n")
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


def headings(text: str) -> list[tuple[str, int, int]]:
    """(heading, level, 0-based line) of every ATX heading outside fences, found line by line."""
    found: list[tuple[str, int, int]] = []
    fence = ""
    for number, line in enumerate(text.split("\n")):
        mark = FENCE.match(line.lstrip())
        if mark and (not fence or (mark[1].startswith(fence) and line.strip() == mark[1])):
            fence = "" if fence else mark[1]
        elif not fence and (title := re.match(r"(#{1,6})\s+(.*?)\s*#*\s*$", line)):
            found.append((title[2], len(title[1]), number))
    return found


def section(text: str, heading: str) -> str | None:
    """The section under a heading (compared without case), its subsections included; None where there is none."""
    lines = text.split("\n")
    found = headings(text)
    for index, (title, level, start) in enumerate(found):
        if title.strip().lower() == heading.strip().lstrip("#").strip().lower():
            ends = (line for _, other, line in found[index + 1 :] if other <= level)
            return "\n".join(lines[start : next(ends, len(lines))])
    return None


def fence_for(text: str, least: int = 3, tick: str = "`") -> str:
    """A run of backticks (or tildes) that `text` cannot close: longer than any run of them in it."""
    longest = max((len(run) for run in re.findall(f"{tick}+", text)), default=0)
    return tick * max(least, longest + 1)


def fenced(text: str, info: str = "") -> str:
    """`text` as a fenced block that it cannot close, ending in a newline."""
    mark = fence_for(text, tick="~" if "`" in info else "`")  # an info string with ticks stands behind tildes only
    return f"{mark}{info}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{mark}\n"


def fenced_blocks(text: str, info: str) -> list[str]:
    """Contents of the fenced blocks with exactly this info string, in order; line by line, as agents write anything.

    A fence that is never closed is no block, and takes no block with this info string behind it along.
    """
    found: list[str] = []
    fence, wanted = "", False
    held: list[str] = []
    for line in text.split("\n"):
        mark = FENCE.match(line.strip())
        opens = mark is not None and line.strip()[len(mark[1]) :].strip() == info
        if mark and (not fence or (opens and info and mark[1].startswith(fence))):
            fence, wanted, held = mark[1], opens, []
        elif fence and mark and mark[1].startswith(fence) and line.strip() == mark[1]:
            found += ["\n".join(held)] if wanted else []
            fence = ""
        else:
            held.append(line)
    return found


def cached(folder: str, name: str, text: str, parse: Callable[[str], Any], fields: tuple[str, ...] = ()) -> Any:
    """`parse(text)`, a JSON value, from a disposable file that holds it beside the exact text it came from.

    Start-up is what this saves: the parsers cost 40 to 100 ms to load. A cache that cannot be read or written is none, and
    so is one of a version of us that made other `fields` of the text.
    """
    held = recall(folder, name, text, fields)
    if held is not None:
        return held
    value = parse(text)
    keep(folder, name, text, value, fields)
    return value


def recall(folder: str, name: str, text: str, fields: tuple[str, ...] = ()) -> Any:
    """The value with these fields that is kept beside exactly this text, else None; a torn cache is an absent one."""
    try:
        held = json.loads(files.read(os.path.join(folder, name + ".json")) or b"{}")
        return held["value"] if held.get("text") == text and held["fields"] == [*fields] else None
    except (OSError, ValueError, KeyError, AttributeError, BrokenFile):
        return None


def keep(folder: str, name: str, text: str, value: Any, fields: tuple[str, ...] = ()) -> None:
    """Put a parsed value beside its text into the cache; not durable, and silent where the folder cannot be written."""
    if not os.path.isdir(os.path.dirname(folder)):
        return
    row = files.dump_json({"fields": fields, "text": text, "value": value})
    try:
        files.replace_quickly(os.path.join(folder, name + ".json"), row)
    except OSError:
        return
