"""Runs ripgrep, or Python's `re` if ripgrep is not installed, on a list of files with a timeout, and reads the records."""

from __future__ import annotations

import base64
import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from types import ModuleType
from typing import Any, NamedTuple

from harness.base.errors import Unavailable
from harness.filesystem import _python_grep
from harness.filesystem._faults import VerbRefusal

CHUNK = 1024 * 1024
SECONDS = 60.0
MAX_ERROR_BYTES = 64 * 1024  # bytes of error messages
MAX_PATH_BYTES = 100_000  # bytes of paths on one command line
PACKAGE = "ripgrep"
# One thread keeps the order of the paths.
FLAGS = ("--no-config", "--json", "--encoding=none", "--no-mmap", "--threads=1")
COMPLAINT = re.compile(r"^rg: (?:\./)?(.*): (.*) \(os error (\d+)\)$", re.MULTILINE)
ENOENT = "2"  # the number of the error ENOENT


class FoundLine(NamedTuple):
    """A matching line: its number, the offset of its first byte, and its text without newline."""

    line: int
    offset: int
    text: bytes


def program() -> str:
    """The path of `rg` in the package ripgrep, never another one on PATH; "" if the package is not installed."""
    try:
        installed = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return ""
    found = (os.path.realpath(str(file.locate())) for file in installed if file.name in ("rg", "rg.exe"))
    return next((path for path in found if os.access(path, os.X_OK)), "")


def argv(rg: str, pattern: str, *, literal: bool, ignore_case: bool) -> list[str]:
    """The command line of a search, without the paths; `rg` "" means Python's `re`."""
    if not rg:
        options = "-" + _python_grep.LITERAL * literal + _python_grep.IGNORE_CASE * ignore_case
        return [sys.executable, "-I", "-S", "-c", source(_python_grep), options, pattern]
    flags = ["--fixed-strings"] * literal + ["--ignore-case"] * ignore_case
    return [rg, *FLAGS, *flags, f"--regexp={pattern}", "--"]


def source(module: ModuleType) -> str:
    """The text of a module, which runs as a program of its own also where there is no file of it."""
    loader: Any = module.__loader__
    return str(loader.get_source(module.__name__))


def batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths split into as many command lines as needed; at least one, which checks the pattern."""
    batch, size = list[str](), 0
    for path in paths:
        if size > MAX_PATH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(f"./{path}")
        size += len(os.fsencode(path))
    yield batch or [os.devnull]


class Stream:
    """A search process: its output in chunks, until its end or timeout; leaving the context ends it."""

    def __init__(self, argv: Sequence[str], *, cwd: str, until: float) -> None:
        self.until, self.said = until, b""
        environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        try:
            self.process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
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
        """The output in chunks. Raises VerbRefusal at the timeout."""
        poller, open_ends = select.poll(), {self.out, self.err}
        for fd in open_ends:
            poller.register(fd, select.POLLIN)
        while open_ends:
            left = self.until - time.monotonic()
            if left <= 0:
                raise VerbRefusal("timeout", "", f"The search took longer than {SECONDS:.0f} s. Search in fewer files.")
            for fd, _ in poller.poll(left * 1000):
                data = os.read(fd, CHUNK)
                if not data:
                    poller.unregister(fd)
                    open_ends.discard(fd)
                elif fd == self.out:
                    yield data
                elif len(self.said) < MAX_ERROR_BYTES:
                    self.said += data

    def complaints(self) -> dict[str, str]:
        """{file: why it could not be searched}, without files removed meanwhile."""
        text = self.said.decode("utf-8", "surrogateescape")
        return {path: reason.lower() for path, reason, number in COMPLAINT.findall(text) if number != ENOENT}

    def check(self, pattern: str) -> None:
        """Raise VerbRefusal if the process failed because of the pattern."""
        if self.process.wait() in (0, 1):
            return
        text = COMPLAINT.sub("", self.said.decode("utf-8", "replace")).strip()
        if text:
            reason = " ".join(text.split()).removeprefix("rg: ")
            raise VerbRefusal("bad_pattern", "", f"The pattern {pattern} is invalid: {reason}")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:  # its exit closes the pipes and waits
            self.process.kill()


def records(stream: Stream, *, most: int, longest: int) -> Iterator[tuple[str, list[FoundLine]]]:
    """(path, its matching lines) of each file with matches and without a NUL. A file with `most` lines comes at once,
    so a NUL may follow them. Lines are cut at `longest` bytes."""
    rest, lines = b"", dict[str, list[FoundLine]]()
    for chunk in stream.chunks():
        *rows, rest = (rest + chunk).split(b"\n")
        for record in map(json.loads, rows):
            kind, data = record["type"], record["data"]
            if kind not in ("match", "end"):
                continue
            path = os.fsdecode(_bytes(data["path"])).removeprefix("./")
            known = lines.setdefault(path, [])
            if kind == "match" and len(known) < most:
                text = _bytes(data["lines"]).removesuffix(b"\n")
                known.append(FoundLine(data["line_number"], data["absolute_offset"], text[:longest]))
                if len(known) == most:
                    yield path, known
            elif kind == "end":
                del lines[path]
                if 0 < len(known) < most and data["binary_offset"] is None:
                    yield path, known


def _bytes(value: dict[str, str]) -> bytes:
    """The bytes of a value of `rg --json`: text, or base64 if it is not UTF-8."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])
