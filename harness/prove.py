"""Checks are fired here and nowhere else: each gives a receipt of what really happened."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import time

from harness import clock, environment, files, git, process, receipts
from harness.contract import Check, Claim, Contract
from harness.receipts import Receipt
from harness.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

GRACE_SECONDS = 1.0
EMPTY_FOLDER_SECONDS = 20.0


class Place(Record):
    """Where checks are fired: the folder, what is checked out in it, for which run, and how they are bounded.
    `keep`: lock descriptors that the guardians hold."""

    directory: str
    head: str = ""
    tree: str = ""
    by: str = "person"
    tag: str = "check"
    seconds: float = 600
    keep: list[int] = []


class Output:
    """Head, tail and digest of an output of any length."""

    def __init__(self) -> None:
        self.head, self.tail, self.length, self.hash = b"", b"", 0, hashlib.sha256()

    def take(self, _: str, chunk: bytes) -> None:
        """One more chunk."""
        self.hash.update(chunk)
        self.length += len(chunk)
        room = receipts.HEAD_BYTES - len(self.head)
        self.head += chunk[:room]
        self.tail = (self.tail + chunk[room:])[-receipts.TAIL_BYTES :]

    def text(self) -> str:
        """The output as a receipt keeps it, what was left out named."""
        return receipts.shortened(self.head, self.tail, self.length)


def fire(check: Check, claim: Claim, phase: str, place: Place) -> Receipt:
    """Run one check to its end, its whole process tree ended with it, and give the receipt."""
    started = time.monotonic()
    output = Output()
    ended = run_shell(check.run, place, check.seconds or place.seconds, output)
    in_time = ended.cause == "exit"
    code = ended.exit if ended.exit is not None else 128 + (ended.signal or 0)
    return Receipt(
        claim=claim.id,
        command=check.run,
        phase=phase,
        exit=code if in_time else None,
        seconds=round(time.monotonic() - started, 3),
        output=output.text(),
        output_sha256=output.hash.hexdigest(),
        head=place.head,
        tree=place.tree,
        by=place.by,
        host=socket.gethostname(),
        at=clock.stamp(clock.now()),
        guard=check.guard,
    )


def run_shell(command: str, place: Place, seconds: float, output: Output) -> process.Ended:
    """A command as a check runs: bash -euo pipefail, its own TMPDIR and PORT, no variable of ours, stdin at its end."""
    folder = scratch("check")
    try:
        env = {**environment.plain(os.environ, place.tag), "TMPDIR": folder, "PORT": str(free_port())}
        argv = ["bash", "-euo", "pipefail", "-c", command]
        return process.run(
            argv,
            cwd=place.directory,
            env=env,
            sink=output.take,
            wall_seconds=seconds,
            grace_seconds=GRACE_SECONDS,
            keep=place.keep,
        )
    finally:
        clear(folder)


def scratch(what: str) -> str:
    """A new empty folder in the system's temporary folder; whoever asks removes it."""
    base = os.environ.get("TMPDIR") or "/tmp"
    folder = os.path.join(base, f"harness-{what}-{os.urandom(5).hex()}")
    os.mkdir(folder, 0o700)
    return folder


def clear(folder: str) -> None:
    """The folder is gone, with whatever was made in it."""
    _make_writable(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _make_writable(folder: str) -> None:
    """Package caches are made read-only, and what lies in a read-only folder cannot be removed."""
    for top, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(top, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)


def free_port() -> int:
    """A TCP port on loopback that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fire_all(claims: list[Claim], phase: str, place: Place, path: str = "") -> Iterator[Receipt]:
    """Fire every check of the claims, in order; each receipt is durable in `path`, where given, before the next check."""
    record = files.Transcript(path) if path else None
    try:
        for claim in claims:
            for check in claim.checks:
                receipt = fire(check, claim, phase, place)
                if record:
                    record.write(receipts.render([receipt]))
                    record.sync()
                yield receipt
    finally:
        if record:
            record.close()


def setup_fault(contract: Contract, place: Place) -> str:
    """Run the contract's setup; "" where it is green or there is none, else what it said."""
    if not contract.setup:
        return ""
    output = Output()
    ended = run_shell(contract.setup, place, place.seconds, output)
    if ended.cause == "exit" and ended.exit == 0:
        return ""
    code = f"exit {ended.exit}" if ended.exit is not None else f"signal {ended.signal}"
    how = "ran out of time" if ended.cause != "exit" else f"ended with {code}"
    return f"setup {how}:\n{output.text()}"


def green_on_nothing(commands: list[str]) -> list[str]:
    """Which commands are green in an empty folder, and so prove nothing."""
    found = []
    for command in commands:
        folder = scratch("empty")
        try:
            ended = run_shell(command, Place(directory=folder), EMPTY_FOLDER_SECONDS, Output())
            if ended.cause == "exit" and ended.exit == 0:
                found.append(command)
        finally:
            clear(folder)
    return found


def sweep(project: str, contract: Contract, place: Place, path: str) -> tuple[list[Receipt], str]:
    """Every check of the contract in a fresh worktree at HEAD after setup: (receipts, what setup said where it failed)."""
    folder = scratch("sweep")
    target = os.path.join(folder, os.path.basename(project))
    try:
        git.add_worktree(project, target, place.head)
        there = place.replace(directory=target)
        fault = setup_fault(contract, there)
        return ([] if fault else list(fire_all(contract.claims, "sweep", there, path))), fault
    finally:
        _make_writable(folder)
        git.remove_worktree(project, target)
        clear(folder)
