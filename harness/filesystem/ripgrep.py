"""Runs ripgrep, or what stands in for it, within a time, and reads its records: `path NUL line:offset:text`."""

from __future__ import annotations

import os
import re
import select
import sys
import time

from harness.base.errors import Unavailable
from harness.filesystem.faults import Refused
from harness.process import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHUNK = 1024 * 1024
SECONDS = 60.0
MOST_SAID = 64 * 1024  # bytes of complaints
FLAGS = (
    *("--no-config", "--color=never", "--no-heading", "--null", "--with-filename", "--line-number", "--byte-offset"),
    *("--encoding=none", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", "--no-ignore-parent"),
    "--no-require-git",
)
BINARY = b": WARNING: stopped searching binary file after match"
COMPLAINT = re.compile(r"^rg: (?:\./)?(.*): (.*) \(os error \d+\)$", re.MULTILINE)
PLAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from harness.filesystem import plain_grep
sys.exit(plain_grep.main(sys.argv[2]))
"""
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program() -> str:
    """The path of ripgrep, on PATH or beside this Python; "" where it is at neither."""
    beside = os.path.dirname(sys.executable)
    try:
        return spawn.program("rg", {"PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), beside])})
    except FileNotFoundError:
        return ""


def plain(question: str) -> list[str]:
    """The command line of what stands in for ripgrep."""
    return [sys.executable, "-I", "-S", "-c", PLAIN, HOME, question]


class Stream:
    """A searching process: its output in chunks, until it ends, or at its time; leaving the context ends it."""

    def __init__(self, argv: Sequence[str], *, cwd: str, stdin: int | None = None, seconds: float = 0.0) -> None:
        import subprocess  # starts a program in a folder without changing into it, which would do so for every thread

        self.seconds, self.said = seconds or SECONDS, b""
        self.until = time.monotonic() + self.seconds
        environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        try:
            self.process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as fault:
            raise Unavailable(f"{argv[0]} cannot be started: {fault.strerror}.") from fault
        assert self.process.stdout, "both are pipes"
        assert self.process.stderr, "both are pipes"
        self.out, self.err = self.process.stdout.fileno(), self.process.stderr.fileno()

    def chunks(self) -> Iterator[bytes]:
        """What it writes. Raises Refused when its time is over."""
        poller, open_ends = select.poll(), {self.out, self.err}
        for fd in open_ends:
            poller.register(fd, select.POLLIN)
        while open_ends:
            left = self.until - time.monotonic()
            if left <= 0:
                raise Refused(
                    "timeout", "", f"The search took longer than {self.seconds:.0f} s. Search in fewer files."
                )
            for fd, _ in poller.poll(left * 1000):
                data = os.read(fd, CHUNK)
                if not data:
                    poller.unregister(fd)
                    open_ends.discard(fd)
                elif fd == self.out:
                    yield data
                elif len(self.said) < MOST_SAID:
                    self.said += data

    def complaints(self) -> dict[str, str]:
        """{file: why it could not be searched}."""
        text = self.said.decode("utf-8", "surrogateescape")
        return {path: reason.lower() for path, reason in COMPLAINT.findall(text)}

    def check(self, pattern: str) -> None:
        """Raise Refused where the pattern is why it ended."""
        if self.process.wait() in (0, 1):
            return
        text = COMPLAINT.sub("", self.said.decode("utf-8", "replace")).strip()
        if text:
            reason = " ".join(text.split()).removeprefix("rg: ")
            raise Refused("bad_pattern", "", f"The pattern {pattern} is not valid: {reason}")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for end in (self.process.stdout, self.process.stderr):
            if end:
                end.close()


def records(stream: Stream, binary: set[str]) -> Iterator[tuple[str, int, int, bytes]]:
    """(path, line, offset of the line, its text without newline) of each line that was found. `binary` gets the files that turned
    out binary after the first lines."""
    rest = b""
    for chunk in stream.chunks():
        data, at = rest + chunk, 0
        while (end := data.find(b"\0", at)) >= 0:
            stop = data.find(b"\n", end)
            if stop < 0:
                break
            path = data[at:end]
            while BINARY in path:
                path = _warned(path, binary)
            line, offset, text = data[end + 1 : stop].split(b":", 2)
            yield os.fsdecode(path).removeprefix("./"), int(line), int(offset), text
            at = stop + 1
        rest = data[at:]
    while BINARY in rest:
        rest = _warned(rest, binary)


def _warned(text: bytes, binary: set[str]) -> bytes:
    """What follows a warning that a file is binary."""
    name, _, rest = text.partition(BINARY)
    binary.add(os.fsdecode(name).removeprefix("./"))
    return rest.partition(b")\n")[2]
