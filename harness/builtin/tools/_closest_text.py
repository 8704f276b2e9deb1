"""Explains why a text is not in a file: pasted line numbers, other white space, or the most similar lines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

NUMBERED = re.compile(r"^ *\d+(?:\t|→|: ?|\| ?)", re.MULTILINE)
ALIKE = 0.55  # ratio of difflib from which lines are shown
COMPARED = 200  # lines of a file that are compared closely
MOST_SHOWN = 12  # lines
LONGEST_SHOWN = 300  # characters


def unfound(path: str, old: str, text: str) -> str:
    """One or two sentences and the lines of the file that are most like `old`; all texts have \\n as line ends."""
    bare = without_numbers(old)
    if bare != old and bare in text:
        return (
            f"old_string begins its lines with the line numbers of read_file, which are not in {path}. Leave them out."
        )
    lines, wanted = text.split("\n"), old.strip("\n").split("\n")
    at = _same_but_blanks(lines, wanted)
    if at >= 0:
        return (
            f"old_string is in {path}, but with other white space. Give it as it stands there:\n"
            f"{_shown(lines, at, len(wanted))}"
        )
    at = _alike(lines, wanted)
    if at < 0:
        return f"old_string is not in {path}, nor anything like it. Read the file again."
    return (
        f"old_string is not in {path}. Most like it, {_first_difference(lines[at:], wanted, at)}:\n"
        f"{_shown(lines, at, len(wanted))}"
    )


def without_numbers(text: str) -> str:
    """The text without line numbers, if each of its lines begins with one."""
    lines = [line for line in text.split("\n") if line]
    return NUMBERED.sub("", text) if lines and all(map(NUMBERED.match, lines)) else text


def _same_but_blanks(lines: list[str], wanted: list[str]) -> int:
    """Where the lines stand with other blanks; -1 for nowhere."""
    bare, sought = ["".join(line.split()) for line in lines], ["".join(line.split()) for line in wanted]
    if not any(sought):
        return -1
    return next((at for at in range(len(bare)) if bare[at : at + len(sought)] == sought), -1)


def _alike(lines: list[str], wanted: list[str]) -> int:
    """Where the lines that are most like the wanted ones begin; -1 where none are. One line, the longest, finds the places that
    are then compared whole."""
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    near = _candidates(lines, wanted[anchor].strip())
    best, place = ALIKE, -1
    whole = difflib.SequenceMatcher(None, autojunk=False)
    whole.set_seq2("\n".join(line.strip() for line in wanted)[:4000])
    for number in near:
        begin = max(0, number - anchor)
        whole.set_seq1("\n".join(line.strip() for line in lines[begin : begin + len(wanted)])[:4000])
        ratio = whole.ratio()
        if ratio > best:
            best, place = ratio, begin
    return place


def _candidates(lines: list[str], wanted: str) -> list[int]:
    """The lines that share most words with this one, at most 10."""
    words = set(re.findall(r"\w+", wanted.lower()))
    shared = [(len(words & set(re.findall(r"\w+", line.lower()))), -number) for number, line in enumerate(lines)]
    likely = [-number for common, number in sorted(shared, reverse=True)[:COMPARED] if common]
    one = difflib.SequenceMatcher(None, autojunk=False)
    one.set_seq2(wanted[:500])
    ratios = []
    for number in likely:
        one.set_seq1(lines[number].strip()[:500])
        ratios.append((one.quick_ratio(), -number))
    return [-number for _, number in sorted(ratios, reverse=True)[:10]]


def _first_difference(lines: Sequence[str], wanted: list[str], at: int) -> str:
    for index, line in enumerate(wanted):
        if index >= len(lines) or lines[index] != line:
            return f"with line {at + index + 1} the first that differs"
    return "with other line ends"


def _shown(lines: list[str], at: int, count: int) -> str:
    rows = [f"{number + 1:>6}\t{lines[number][:LONGEST_SHOWN]}" for number in range(at, min(at + count, len(lines)))]
    return "\n".join(rows[:MOST_SHOWN] + (["     …"] if len(rows) > MOST_SHOWN else []))
