"""Runs checks, as the only module that does; each check gives a receipt of its real result."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

from harness.base import clock, faults
from harness.base.errors import RunCut
from harness.git import repository
from harness.mission import receipts
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Claim, Contract
from harness.mission.receipts import Receipt
from harness.process import supervise, temporary, timeouts
from harness.process.confine import BUBBLEWRAP
from harness.proof._outputs import OutputDigest, TracedOutput
from harness.state import documents, files
from harness.state.layout import Layout
from harness.workplace import environment

GRACE_SECONDS = 1.0
EMPTY_FOLDER_SECONDS = 20.0
NOT_FIRED = receipts.NOT_FIRED
CONFIGURED = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}
NAMED = re.compile(r"\$\{?[!#]?([A-Za-z_]\w*)|(?<![\w$-])([A-Za-z_]\w*)\+?=(?!=)")  # variables of a command
OUT_OF_TIME = "interrupted: the time of --for or max_hours is over; the next start runs it again"
GREEN_ON_NOTHING = (
    "passes in an empty folder and so proves nothing: test what the feature brings; a guard that passes where there are no tests "
    "asks for them first, such as `test -d tests && python3 -m unittest -q`"
)


def fire(check: Check, claim: Claim, phase: str, place: CheckEnvironment, traced: bool = False) -> Receipt:
    """Run one check to its end, end its process tree, and return the receipt; with its trace if `traced`."""
    if place.machine and not place.fault:
        there = place.machine.fire(check, claim, phase, traced)
        return there.replace(notes=[*place.notes, *there.notes])
    started = time.monotonic()
    output = TracedOutput({name: os.environ.get(name, "") for name in place.passed}) if traced else OutputDigest()
    code: int | None = NOT_FIRED
    if place.fault:
        output.take("stdout", place.fault.encode())
    else:
        if place.watch:
            place.watch.begin_check(claim.id)
        code = _exit_code(run_shell(check.run, place, check.seconds or place.seconds, output))
    text = output.text()
    receipt = Receipt(
        claim=claim.id,
        command=check.run,
        phase=phase,
        exit=code,
        seconds=round(time.monotonic() - started, 3),
        output=text if code in (0, NOT_FIRED) else environment.explained(text, place),
        output_sha256=output.hash.hexdigest(),
        head=place.head,
        tree=place.tree,
        by=place.by,
        host=os.uname().nodename,
        at=clock.stamp(clock.now()),
        guard=check.guard,
        notes=list(place.notes),
        trace=output.trace(),
    )
    return place.watch.examined(receipt) if place.watch and not place.fault else receipt


def _exit_code(ended: supervise.ChildEnd) -> int | None:
    if ended.cause != "exit":
        return None
    return ended.exit if ended.exit is not None else 128 + (ended.signal or 0)


def fire_with_retry(check: Check, claim: Claim, phase: str, place: CheckEnvironment) -> Receipt:
    """Fire a check, and a red one once more, traced. A check can tell that it is traced, so a green result then only makes it
    flaky, and a third one decides. One that changed a test is red."""
    first = fire(check, claim, phase, place)
    if first.green or first.reason or place.fault:
        return first
    traced = fire(check, claim, phase, place, traced=True)
    if not traced.green:
        return first.replace(trace=traced.trace)
    third = fire(check, claim, phase, place)
    kept = third if third.green else first
    return kept.replace(flaky=True, notes=[*kept.notes, f"{receipts.FLAKY}{first.verdict} the first time"])


def run_shell(command: str, place: CheckEnvironment, seconds: float, output: OutputDigest) -> supervise.ChildEnd:
    """Run a command as a check: bash -euo pipefail, its own TMPDIR and PORT, empty stdin; raises RunCut at the end of its run."""
    left, folder = place.until - time.monotonic(), temporary.create("check", place.tag, ordinary=place.plain)
    try:
        start = start_of(command, place, folder, output.begin) | {"sealed": bool(output.begin)}
        limit = max(min(seconds, left), 0.0)
        ended = supervise.run(**start, sink=output.take, wall_seconds=limit, grace_seconds=GRACE_SECONDS)
    finally:
        temporary.remove(folder)
    if ended.cause == timeouts.WALL and left < seconds:
        raise RunCut(f"{OUT_OF_TIME}: {faults.cut(command, 80)}")
    return ended


def start_of(command: str, place: CheckEnvironment, folder: str, before: str = "") -> dict[str, Any]:
    """The start parameters of a contract's command in `place`, with `folder` as its TMPDIR; `before`: shell code that
    precedes it."""
    env = environment.of_check(os.environ, place) | {"TMPDIR": folder, **port_variables(place.ports)}
    return {
        "argv": ["bash", "-euo", "pipefail", "-c", before + command],
        "cwd": place.directory,
        "env": plain_variables(env, command, place) if place.plain else env,
        "keep": place.keep,
        "confine": place.confined(folder),
    }


def plain_variables(env: dict[str, str], command: str, place: CheckEnvironment) -> dict[str, str]:
    """The environment without variables that only the harness sets, except those that the command expands or assigns,
    or the project needs. The tag stays, since bubblewrap removes it."""
    kept = {*place.needs, *(name for pair in NAMED.findall(command) for name in pair)}
    wrapped = place.confinement is not None and place.confinement.tier == BUBBLEWRAP
    gone = {*environment.UNATTENDED, *([] if place.ports else ["PORT"]), *([] if wrapped else [supervise.TAG])}
    left = {name: value for name, value in env.items() if name in kept or (name not in gone and name not in CONFIGURED)}
    return {"TERM": "xterm", **left}


def port_variables(ports: dict[str, int]) -> dict[str, str]:
    """PORT_<NAME> of every running service, and PORT: the first service's, else a free one."""
    named = {f"PORT_{name.upper().replace('-', '_').replace('.', '_')}": str(port) for name, port in ports.items()}
    return {**named, "PORT": str(next(iter(ports.values()), 0) or free_port())}


def free_port() -> int:
    """A TCP port on loopback that is free at the time of the call."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fire_all(claims: list[Claim], phase: str, place: CheckEnvironment, path: str = "") -> Iterator[Receipt]:
    """Fire every check of the claims, in order; with `path`, each receipt is durable there before the next check."""
    yield from fire_each([(claim, check) for claim in claims for check in claim.checks], phase, place, path)


def fire_each(
    pairs: list[tuple[Claim, Check]], phase: str, place: CheckEnvironment, path: str = ""
) -> Iterator[Receipt]:
    """Fire these checks in order; in phase `before` once, in other phases a red one once more."""
    record = files.TranscriptFile(path) if path else None
    try:
        for claim, check in pairs:
            receipt = (fire if phase == "before" else fire_with_retry)(check, claim, phase, place)
            if record:
                record.write(receipts.render([receipt]))
                record.sync()
            yield receipt
    finally:
        if record:
            record.close()


def keep(found: list[Receipt], path: str) -> None:
    """Append these receipts to the file, durably."""
    record = files.TranscriptFile(path)
    record.write(receipts.render(found))
    record.close()


def setup_once(layout: Layout, contract: Contract, place: CheckEnvironment) -> str:
    """`setup_fault`, unless the setup was green in this tree with the same key and what it made is there: it may take minutes."""
    if place.machine:
        return place.machine.setup(contract)
    if not contract.setup:
        return ""
    key, name = _setup_key(contract, place), f"setup-{os.path.basename(place.root)}"
    made = documents.recall(layout.cache, name, key)
    if made is not None and all(os.path.lexists(os.path.join(place.root, path)) for path in made):
        return ""
    documents.keep(layout.cache, name, "", None)  # it may end red, or not at all, and leave the tree half changed
    fault = setup_fault(contract, place)
    if not fault:
        documents.keep(layout.cache, name, key, _made(place.root) if contract.setup_inputs else [])
    return fault


def _made(root: str) -> list[str]:
    """The files that no commit has, folders as "dir/", and the names in these folders. 1 call."""
    found = repository.not_in_index(root)
    return found + [path + name for path in found if path[-1] == "/" for name in files.names(os.path.join(root, path))]


def _setup_key(contract: Contract, place: CheckEnvironment) -> str:
    """The cache key of a green setup: the command, the commit or its version of the inputs, and the identity of the folders,
    which may be recreated. 1 call with inputs."""
    link = os.path.join(place.root, ".git")  # in a tree it is written once; a folder's inode may be reused
    made = [os.stat(link).st_mtime_ns if os.path.isfile(link) else os.stat(place.root).st_ino]
    made += [os.stat(place.home).st_ino] if place.home else []
    words = ("--literal-pathspecs", "ls-tree", "-r", "-z", place.head, "--", *contract.setup_inputs)
    at = repository.run(place.directory, *words).decode() if contract.setup_inputs else place.head
    return f"{at} {made} {place.directory} {contract.setup}"


def setup_fault(contract: Contract, place: CheckEnvironment) -> str:
    """Run the contract's setup; "" if it is green or absent, else its output."""
    if not contract.setup:
        return ""
    output = OutputDigest()
    ended = run_shell(contract.setup, place, place.seconds, output)
    if ended.cause == "exit" and ended.exit == 0:
        return ""
    code = f"exit {ended.exit}" if ended.exit is not None else f"signal {ended.signal}"
    how = "ran out of time" if ended.cause != "exit" else f"ended with {code}"
    return f"setup {how}:\n{environment.explained(output.text(), place)}"


def green_in_empty_folder(commands: list[str], place: CheckEnvironment) -> list[str]:
    """The commands that are green in an empty folder, and so prove nothing."""
    found = []
    for command in commands:
        folder = temporary.create("empty", place.tag)
        try:
            ended = run_shell(
                command, place.replace(directory=folder, checkout=""), EMPTY_FOLDER_SECONDS, OutputDigest()
            )
            if ended.cause == "exit" and ended.exit == 0:
                found.append(command)
        finally:
            temporary.remove(folder)
    return found
