"""Swaps one item of a past prompt: the role's text, an identity, the spec, the summary, or memory without one lesson.

The section is composed as in a live prompt; every other part is unchanged. The past state gets the same swap.
"""

from __future__ import annotations

import difflib
from itertools import islice

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.memory import archive, lessons, pages, rebuild
from harness.memory.archive import ArchiveEntry
from harness.memory.lessons import Lesson, Lessons
from harness.mission import features
from harness.replay.resends.state_at_run import RunAtOpen
from harness.run import prompt
from harness.run.prompt import Part
from harness.state import documents, files, journal, names, raw
from harness.state.layout import Layout, identity_file
from harness.state.state import State

ITEMS = ("role", "summary", "identity", "spec")
WITHOUT = "without:"
USAGE = "role=FILE, summary=FILE, identity=FILE, spec=FILE or memory=without:SEQ"
SECTIONS = {"identity": prompt.IDENTITY, "spec": prompt.ASKED, "summary": prompt.MEMORY}
LEFT_OUT = "[left out in this replay]"
DIFF_LINES = 200


class PromptSwap(Record):
    """A swap: an item with its new text, or the removed lesson of entry `seq` of raw.md."""

    item: str
    text: str = ""
    seq: int = -1


def asked(word: str) -> PromptSwap:
    """Parse `ITEM=FILE` or `memory=without:SEQ`; raises UsageFault if it is neither."""
    item, _, value = word.partition("=")
    number = value.removeprefix(WITHOUT)
    if item == "memory" and value.startswith(WITHOUT) and number.isascii() and number.isdigit():
        return PromptSwap(item=item, seq=int(number))
    if item not in ITEMS or not value:
        raise UsageFault(f"'--with {word}' is unknown. Use {USAGE}.")
    text = files.read_text(value)
    if text is None:
        raise UsageFault(f"There is no file {value} for --with {item}.")
    return PromptSwap(item=item, text=text)


def swapped(past: RunAtOpen, staged: Layout, identities: str, parts: list[Part], swap: PromptSwap) -> list[Part]:
    """The parts with the swap, which is also applied to the state `staged`. Raises UsageFault if it changes nothing."""
    if swap.item == "memory":
        made = _without(past, staged, parts, swap.seq)
    elif swap.item == "role":
        made = _with_role(past.context.role, parts, swap.text)
    else:
        made = _with_section(past, staged, parts, swap.item, swap.text)
        paths = {
            "summary": staged.path(names.SUMMARY),
            "spec": staged.path(names.SPEC),
            "identity": identity_file(identities, past.context.role),
        }
        files.replace_quickly(paths[swap.item], swap.text.encode())
    journal.adopt(staged)
    if prompt.text_of(made) == prompt.text_of(parts):
        what = f"entry {swap.seq}" if swap.item == "memory" else f"another {swap.item}"
        raise UsageFault(f"The prompt of {past.context.run} is the same with{'out' * (swap.seq >= 0)} {what}.")
    return made


def _with_role(role: str, parts: list[Part], text: str) -> list[Part]:
    """Replace the role's own text, before and after the task; the common text of all roles stays. A prompt with one part of the
    role gets all of it there, unless it is for an agent without a shell."""
    source = f"roles/{role}.md"
    common = "\n".join(one.data.decode() for one in parts if one.source == prompt.COMMON)
    body = documents.front_matter(text, source)[1] if text.startswith("---") else text
    words = prompt.words(body, source, len(common))
    sources = [one.source for one in parts]
    no_rules = sources.count(prompt.COMMON) == 1 and prompt.DUE.encode() in parts[-1].data
    new = iter([words] if sources.count(source) == 1 and not no_rules else prompt.divided(words))
    return [next(new) if one.source == source else one for one in parts]


def _with_section(past: RunAtOpen, staged: Layout, parts: list[Part], item: str, text: str) -> list[Part]:
    """Compose a fenced section again."""
    start = next((n for n, one in enumerate(parts) if one.data.startswith(SECTIONS[item].encode())), None)
    if start is None:
        raise UsageFault(f"The prompt of {past.context.run} has no {item}.")
    filled = start + 1 < len(parts) and bool(parts[start + 1].source)
    source = parts[start + 1].source if filled else _path(past, item)
    if item == "identity":
        made = prompt.identity(past.context.role, text, source)
    elif item == "spec":
        about = next((one for one in features.load(staged) if one.id == past.context.feature), None)
        made = prompt.spec(text, source, about)
    else:
        made = prompt.summary(text, source)
    return [*parts[:start], *made, *parts[start + (3 if filled else 1) :]]


def _path(past: RunAtOpen, item: str) -> str:
    """The path of an item that was empty, as the prompt would show it."""
    known = {"summary": past.where.path(names.SUMMARY), "spec": past.where.path(names.SPEC)}
    return past.where.folders.relative(known[item]) if item in known else f"{past.context.role}.md"


def _without(past: RunAtOpen, staged: Layout, parts: list[Part], seq: int) -> list[Part]:
    """Memory without the lesson of an entry: removes its lines from the pages of memory, and blanks its line in raw.md."""
    known, lesson = _lesson(staged, seq)
    state, before = State(staged), State(staged).text(names.SUMMARY)
    for name in (names.SUMMARY, names.MEMORY):
        old = state.text(name)
        if lesson and old is not None:
            files.replace_quickly(state.path(name), _purged(old, known, lesson).encode())
    _blank(staged, seq)
    after = state.text(names.SUMMARY)
    made = parts if after is None or after == before else _with_section(past, staged, parts, "summary", after)
    return [_without_entry(made, number, seq) for number in range(len(made))]


def _lesson(staged: Layout, seq: int) -> tuple[Lessons, Lesson | None]:
    """The lessons at that time, and that of an entry; None if it has none."""
    curated = pages.curated(staged)
    found = (
        one
        for one in archive.rows_backwards(staged.path(names.ARCHIVE))
        if isinstance(one, ArchiveEntry) and one.seq == seq
    )
    row = next(found, None) if seq < curated.folded else None
    known = lessons.parse(State(staged).data(names.LESSONS), curated.folded, curated.generation)
    known = known or rebuild.lessons(staged.path(names.ARCHIVE), curated)
    return known, known.all.get(row.lesson) if row else None


def _purged(text: str, known: Lessons, lesson: Lesson) -> str:
    """The page without the lines that the curator wrote for this lesson; if they are unknown, without lines that contain one of
    its wordings."""
    own = {line for page in known.written.values() for line, owner in page.items() if owner == lesson.id}
    said = [] if own else [*lesson.texts, *filter(None, [lesson.said])]
    lines = text.split("\n")
    return "\n".join(line for line in lines if line not in own and not any(one in line for one in said))


def _blank(staged: Layout, seq: int) -> None:
    """Replace the text of the entry in raw.md by LEFT_OUT."""
    first = pages.curated(staged).first_seq
    lines = (State(staged).data(names.RAW) or b"").split(b"\n")
    if 0 <= seq - first < len(lines) - 1:
        entry = raw.parse_line(lines[seq - first].decode("utf-8", "replace"), seq)
        lines[seq - first] = entry.replace(text=LEFT_OUT).line().encode()
        files.replace_quickly(staged.path(names.RAW), b"\n".join(lines))


def _without_entry(parts: list[Part], number: int, seq: int) -> Part:
    """A part; if it shows entries to curate, without this entry."""
    part = parts[number]
    if not number or not parts[number - 1].data.startswith(prompt.ENTRIES.encode()):
        return part
    kept = [line for line in part.data.split(b"\n") if not line.startswith(f"{seq} ".encode())]
    return part.replace(data=b"\n".join(kept))


def diff(old: bytes, new: bytes, before: str = "original", after: str = "resent") -> list[str]:
    """A unified diff of two texts, of at most DIFF_LINES lines."""
    one, two = (data.decode("utf-8", "replace").split("\n") for data in (old, new))
    lines = list(islice(difflib.unified_diff(one, two, before, after, lineterm=""), DIFF_LINES + 1))
    return [*lines[:DIFF_LINES], f"… cut after {DIFF_LINES} lines"] if len(lines) > DIFF_LINES else lines
