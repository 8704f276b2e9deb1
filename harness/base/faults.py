"""Reduces a failure to one line: the first real fault of a reason, and the line of an output that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, takewhile

MAX_LINE_CHARS = 2000  # characters of a line that are examined
AND_MORE = " (and {} more)"
NOT_PASSED = "not passed on: "  # begins the last output line, which lists variables withheld from the program
HIDES = "its confinement hides "  # the same, or stands behind it: a path
# How test programs and compilers begin the line that explains a failure, best first; the group is shown.
TELLING = (
    r"^(FAILED \S+::\S+.*)$",  # pytest's summary: the test and the first line of its error
    r"^E {2,}(\S.*)$",  # pytest
    r"^\s*(--- FAIL: .*)$",  # go test; the next line has the reason
    r"^(thread '.*' (?:\(\d+\) )?panicked at .*)$",  # Rust; the next line has the reason
    r"^\s*(not ok\b(?!.*# TODO).*)$",  # TAP
)
ANNOUNCES = ("--- FAIL", "thread '")  # the next line belongs to these
EXCEPTION = r"^\s*(?:Uncaught )?((?:\w+\.)*\w*(?:Error|Exception|Exit|Failure)\b(?: \[\w+\])?(?::.*)?)$"
COMPILER = r"^\s*(\S*[:(]\d+\S*(?: -)? +(?:fatal )?error\b.*|error\[\w+\]: .*)$"  # with a place, or Rust's number
MARKED = r"^\s*([✖●] .*)$"  # a failed test of node's `spec` reporter, or of jest
BLOCK = r"^( *)not ok.*\n?((?:\1 +.*\n?)*)"  # in TAP: what is indented below a failed test
ERROR = r"(?m)^( *)error: (.*\n?(?:\1 +.*\n?)*)"  # in that
FRAME = r"^\s+at "  # ends the message of a JavaScript exception
MESSAGE_LINES, MESSAGE_CHARS = 12, 300
HUNK = r"^(\d+(,\d+)?[acd]\d+(,\d+)?|@@ .* @@.*)$"
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
# Trailing noise: a passed-on exit, a broken pipe, a ruler, a count.
NOISE = (
    r"make(\[\d+\])?: (\*\*\*|Leaving|Entering|Target|Nothing)|\w*BrokenPipeError\b|Exception ignored|npm (ERR!|error)"
    r"|error Command failed"
    r"|\[…|[-=_~^*. ]+$|=+ .* =+$|(FAILED|OK) ?\(|Ran \d+ tests? in|\d+ (failed|passed)\b"
    r"|exit status \d+$|FAIL$|.*: (write error: )?Broken pipe$|Command exited with|note: run with `RUST_BACKTRACE"
    r"|\d+ errors? generated\.?$|compilation terminated\.?$|.*ELIFECYCLE|Process completed with exit code"
)
MACHINE = (  # faults of the environment of a check
    r"command not found|No such file or directory|Permission denied|cannot execute|ModuleNotFoundError|ImportError"
    r"|Cannot find module|Connection refused|ECONNREFUSED|Could not resolve|No space left|Read-only file system"
    r"|Address already in use"
)
TRACE = r"Traceback \(most recent call last\):|Exception ignored (in|while)"


def first(reason: str, most: int = 0) -> str:
    """The first real fault of a reason on one line, without control characters, in at most `most` characters (0: all).
    If the first line ends with a colon, it is the first item of the list below with the count of the others, or the
    line of the output below that explains the failure."""
    head, *rest = [line for line in reason.split("\n") if line.strip()] or [""]
    fault, more = head.strip(), ""
    if fault.endswith(":") and rest:
        listed = sum(line.startswith("- ") for line in rest)
        fault += " " + (rest[0].strip().removeprefix("- ") if listed else of_output("\n".join(rest)))
        more = AND_MORE.format(listed - 1) if listed > 1 else ""
    shown = "".join(char if char.isprintable() else " " for char in fault).strip()
    return cut(shown, most - len(more) if most else 0) + more


def of_machine(fault: str) -> bool:
    """Whether a check failed because of the machine it ran on rather than the work: any feature may meet such a fault."""
    return re.search(MACHINE, fault) is not None


def cut(text: str, most: int) -> str:
    """Truncate the text to at most `most` characters, with an ellipsis; 0: no limit."""
    return text if not 0 < most < len(text) else text[: most - 1].rstrip() + "…"


def of_output(output: str) -> str:
    """The line of an output that explains the failure: the first failing assertion or exception, else the last line
    that is not noise, or "". Withheld variables are appended."""
    said, _, last = output.rstrip("\n").rpartition("\n")
    if last.startswith((NOT_PASSED, HIDES)):
        return "; ".join(filter(None, [of_output(said), last.strip()]))
    noise = re.compile(NOISE)
    lines = list(_without_pipes([line.rstrip()[:MAX_LINE_CHARS] for line in output.split("\n") if line.strip()]))
    for form in TELLING:
        for number, line in enumerate(lines):
            if found := re.match(form, line):
                return _whole(found[1].strip(), lines[:number], lines[number:])
    if said := _exception(lines) or _difference(lines):
        return said
    errors = (match[1] for form in (COMPILER, MARKED) for line in lines if (match := re.match(form, line)))
    left = [line.strip() for line in lines if not noise.match(line.strip())]
    return next(errors, left[-1] if left else "")


def _whole(said: str, before: list[str], lines: list[str]) -> str:
    """The match `said` in the first of the lines, with its reason: the next line, or what TAP says of the test."""
    if said.startswith(ANNOUNCES):
        return " ".join([said, *map(str.strip, lines[1:2])])
    why = _of_tap(before, lines) if said.startswith("not ok") else ""
    return f"{said}: {why}" if why else said


def _of_tap(before: list[str], lines: list[str]) -> str:
    """The error of the failed test in the first line; of a whole file, which has no stack, the exception in comments above."""
    block = re.match(BLOCK, "\n".join(lines)) or [""] * 3
    error, comments = re.search(ERROR, block[2]), takewhile(lambda line: line.startswith("#"), reversed(before))
    said = re.sub(r"^\|-? |^(['\"`])(.*)\1$", r"\2", _message((error[2] if error else "").split("\n")))
    return ("" if "stack: " in block[2] else _exception([line[2:] for line in comments][::-1])) or said


def _message(lines: list[str]) -> str:
    """A message of several lines on one."""
    text = (line.strip() for line in takewhile(lambda line: not re.match(FRAME, line), lines))
    told = (line for line in text if line and not re.match(NOISE, line))
    return cut(" ".join(islice(told, MESSAGE_LINES)), MESSAGE_CHARS)


def _without_pipes(lines: list[str]) -> Iterator[str]:
    """The lines without tracebacks that end in BrokenPipeError, which are harmless: the reader closed early."""
    held: list[str] = []
    for line in lines:
        if re.match(TRACE, line):
            yield from held
            held = [line]
        elif held and not line.startswith(" "):
            yield from () if "BrokenPipeError" in line else [*held, line]
            held = []
        elif held:
            held.append(line)
        else:
            yield line
    yield from held


def _difference(lines: list[str]) -> str:
    """The first line of each side of the first hunk of a diff: actual and expected."""
    below = lines[next((at for at, line in enumerate(lines) if re.match(HUNK, line)), len(lines)) + 1 :]
    sides = [_side(below, mark) for mark in "<>"]
    return " ".join(filter(None, sides if any(sides) else [_side(below, mark) for mark in "-+"]))


def _side(lines: list[str], mark: str) -> str:
    """The first line of a side, "" for none; of a traceback its exception."""
    mine = [line for line in lines if line.startswith(mark)]
    bare = [line[2 if mark in "<>" else 1 :] for line in mine]
    return f"{mark} {_exception(bare)}" if bare and re.match(TRACE, bare[0]) else "".join(mine[:1])


def _exception(lines: list[str]) -> str:
    """The first exception that is not the cause of another; without a message, with the line of code that raised it."""
    for number, line in enumerate(lines):
        found = re.match(EXCEPTION, line)
        chained = any(after.startswith(CHAINED) for after in lines[number + 1 : number + 2])
        if not found or chained or "BrokenPipeError" in line:
            continue
        code = [one.strip() for one in lines[max(0, number - 3) : number] if re.match(r" {4}", one)]
        code = [one for one in code if not re.fullmatch(r"[\^~ ]+", one)]
        bare, said = ":" not in found[1], found[1].strip()
        said = _message([said, *lines[number + 1 :]]) if said.endswith(":") else said
        return f"{said}: {code[-1]}" if bare and code else said
    return ""
