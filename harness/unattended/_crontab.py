"""The user's crontab: one marked block belongs to the harness; everything else is the person's and stays byte for byte.

Each line of the block is one time of one mission's schedule. It calls `schedule start ID` with absolute paths, quoted for any
shell, without the environment of the start: a crontab line is limited to 998 characters, and PATH may be longer.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

from harness.base.errors import BrokenFile, Unavailable, UsageFault
from harness.base.record import Record
from harness.process import spawn
from harness.state import files, layout

BEGIN = "# harness schedules: begin. Written by `harness schedule`, which replaces what stands here."
END = "# harness schedules: end"
PROGRAM = "crontab"
NONE = ("no crontab", "can't open")  # messages of Debian, BSD, cronie and busybox for an absent crontab
MAX_CHARACTERS = 998
SECONDS = 30.0
DAEMONS = ("cron", "crond", "fcron", "cronie", "bcron-sched", "dcron", "busybox-crond")
OTHERS = "docs/unattended.md has a timer for systemd, and an agent for launchd."
NAME = "your crontab"


class CrontabEntry(Record):
    """One line of the block: its five time fields, the mission's folder, the schedule's id, and the whole command."""

    times: str
    folder: str
    id: str
    command: list[str]

    @property
    def line(self) -> str:
        """The line; raises UsageFault for a path that does not fit into a crontab."""
        bad = next((word for word in self.command if "\\" in word or "\n" in word or "\0" in word), "")
        if bad:
            raise UsageFault(f"A crontab cannot hold the path {bad!r}: it has a backslash or a line break. Rename it.")
        words = shlex.join(self.command).replace("%", "\\%")
        if len(os.fsencode(words)) > MAX_CHARACTERS:
            raise UsageFault(
                f"A crontab's command has at most {MAX_CHARACTERS} characters; with {self.folder} it is longer."
            )
        return f"{self.times} {words}"


def available() -> bool:
    """Whether the crontab program exists."""
    return any(
        os.access(os.path.join(one, PROGRAM), os.X_OK) for one in os.environ.get("PATH", os.defpath).split(os.pathsep)
    )


def is_idle() -> bool:
    """Whether no cron daemon runs here; False if unknown. (On macOS launchd starts it once a crontab exists.)"""
    if not os.path.isdir("/proc/self"):
        return False
    return not any(_name(pid) in DAEMONS for pid in os.listdir("/proc") if pid.isdigit())


def _name(pid: str) -> str:
    try:
        return files.read_from(f"/proc/{pid}/comm", 0, 64).strip().decode("utf-8", "replace")
    except ProcessLookupError:  # it ended meanwhile
        return ""


def read() -> str:
    """The user's crontab, "" if it is absent. Raises Unavailable without the program, or with its error."""
    code, out, err = _call("-l")
    said = os.fsdecode(err).strip()
    if code and not any(words in said.lower() for words in NONE):
        raise Unavailable(f"`crontab -l` ended with {code}: {said or 'without output'}. {OTHERS}")
    return "" if code else os.fsdecode(out)


def _write(text: str) -> None:
    code, _, err = _call("-", os.fsencode(text))
    if code:
        said = "; ".join(os.fsdecode(err).rstrip("\n. ").split("\n"))
        raise Unavailable(f"`crontab -` refused the new crontab, and yours is unchanged: {said}.")


def _call(word: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    if not available():
        raise Unavailable(f"There is no `crontab` on the PATH (Debian: apt install cron). {OTHERS}")
    env = {**os.environ, "LC_ALL": "C"}
    return spawn.capture([PROGRAM, word], cwd="/", env=env, stdin=stdin, wall_seconds=SECONDS)


def change(change: Callable[[list[CrontabEntry]], list[CrontabEntry]]) -> bool:
    """Replace the entries of the block by the result of `change`; returns whether they differ. One process at a time."""
    lock = files.Lock(os.path.join(layout.state_home(), "crontab.lock"))
    lock.take(wait=True)
    with lock:
        before = read()
        after = with_entries(before, change(entries(before)))
        if after != before:
            _write(after)
        return after != before


def variables(text: str) -> dict[str, str]:
    """The variables set above the block, which cron passes to the commands below."""
    found = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if line == BEGIN:
            break
        if equals and name.strip().isidentifier():
            found[name.strip()] = value.strip().strip("\"'")
    return found


def entries(text: str) -> list[CrontabEntry]:
    """The entries of the block; [] without a block. Raises BrokenFile, with the line, if the block was edited."""
    place = _place(text)
    return [_entry(line, number) for number, line in place[1]] if place else []


def with_entries(text: str, found: list[CrontabEntry]) -> str:
    """The crontab with these entries in the block: in place, else at the end; without entries there is no block."""
    place, lines = _place(text), text.split("\n")
    ours = [BEGIN, *(entry.line for entry in found), END] if found else []
    if place:
        first, inside = place
        return "\n".join([*lines[:first], *ours, *lines[first + len(inside) + 2 :]])
    above = f"{text}\n" if text and not text.endswith("\n") else text
    return above + "".join(f"{line}\n" for line in ours)


def _place(text: str) -> tuple[int, list[tuple[int, str]]] | None:
    """The index of the block's first line, and the numbered lines inside."""
    lines = text.split("\n")
    begins, ends = ([at for at, line in enumerate(lines) if line.rstrip() == mark] for mark in (BEGIN, END))
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        fault = f"the block of harness schedules has {len(begins)} first lines and {len(ends)} last lines"
        fault = "the block of harness schedules ends before it starts" if len(begins) == len(ends) == 1 else fault
        raise _broken(min(begins + ends) + 1, fault)
    first = begins[0]
    return first, [(at + 1, lines[at]) for at in range(first + 1, ends[0])]


def _entry(line: str, number: int) -> CrontabEntry:
    parts = line.split(" ", 5)
    try:
        words = shlex.split(parts[5].replace("\\%", "%")) if len(parts) == 6 else []
    except ValueError:
        words = []
    if len(words) != 7 or words[2] != "-C" or words[4:6] != ["schedule", "start"]:
        raise _broken(number, "a line of the block of harness schedules was edited")
    return CrontabEntry(times=" ".join(parts[:5]), folder=words[3], id=words[6], command=words)


def _broken(line: int, fault: str) -> BrokenFile:
    again = f"then run again, in each mission: {layout.command('schedule add')}"
    remedy = (
        f"Nothing was changed. Run `crontab -e`, remove every line of the block ({BEGIN[:28]} …) and its ends, {again}"
    )
    return BrokenFile(NAME, fault, line=line, remedy=remedy)
