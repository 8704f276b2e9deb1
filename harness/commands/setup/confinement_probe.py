"""Probes of the confinement of runs on this machine: each is a command confined like an agent's.

They run in a temporary folder; for a person's keys they only test whether the keys are readable.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence

from harness.base.errors import Unavailable
from harness.base.record import Record
from harness.commands.setup import agent_probe
from harness.commands.setup.agent_probe import Finding
from harness.git import dotgit
from harness.mission import config
from harness.mission.config import Config
from harness.process import supervise, temporary, tree
from harness.process.confine import BUBBLEWRAP, LANDLOCK, NONE, Confinement
from harness.state import files, names
from harness.state.layout import Layout
from harness.workplace import confine, environment, home_layer, run_detection, workplace

SECONDS, MAX_SHOWN_NAMES = 30.0, 3
TRUST = "workspace"  # if config.toml sets none
BOTH, MOUNTS = (BUBBLEWRAP, LANDLOCK), (BUBBLEWRAP,)
NOTHING = (
    "The programs of a run are not confined here, so there is nothing to probe: {why}. An agent may change whatever you may. "
    "Install the package bubblewrap; see `confine` and `workplace` in docs/contract.md."
)
WRITE = 'code=1; for one; do echo >> "$one" && code=0; done; exit $code'
READ = 'for one; do if [ -d "$one" ]; then ls -A "$one"; else head -c 1 "$one"; fi; done 2>/dev/null | grep -q .'
SIGNAL = '[ "$(sed "s/.*) //" "/proc/$1/stat" | cut -d " " -f 20)" = "$2" ] && kill -0 "$1"'
SHARED = '[ "$(readlink /proc/self/ns/ipc)" = "$1" ] || [ "$(stat -c %d /dev/shm 2>&1)" = "$2" ]'
PYTHON = [sys.executable, "-I", "-S", "-c"]
KEYRING = """import ctypes, os, sys  # keyctl(2): the id of the session keyring
kernel = ctypes.CDLL(None, use_errno=True)
sys.exit("keyctl: " + os.strerror(ctypes.get_errno()) if kernel.syscall(int(sys.argv[1]), 0, -3, 0) < 0 else 0)"""
RUN = 'exec "$@"'
KEYCTL = {"x86_64": "250", "aarch64": "219"}
CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
PTRACE = "processes of one program are not protected from each other: ptrace is allowed, for debuggers and sanitizers"


class Probe(Record):
    """A probe: its description, its script with arguments, the tiers that refuse it. `written`: files of which it changes one if
    it works. A probe that no tier refuses is what an agent needs."""

    what: str
    script: str
    arguments: list[str]
    tiers: tuple[str, ...] = BOTH
    written: list[str] = []


def attempt(where: Layout) -> Iterator[Finding]:
    """A line for each probe, with the settings of the mission in `where`, if it exists; raises Unavailable if nothing is
    confined."""
    run_detection.refuse(where, "doctor confine")
    settings = config.load(where)
    tag = temporary.of_process(agent_probe.TRIED)
    folder, another = temporary.create(agent_probe.TRIED, tag), workplace.folder_of(tag)
    try:
        yield from _tried(os.path.join(folder, agent_probe.TRIED), settings, another)
    finally:
        tree.sweep(tag)
        for path in (folder, os.path.dirname(another)):
            temporary.remove(path)


def _tried(project: str, settings: Config, another: str) -> Iterator[Finding]:
    there, folder = agent_probe.begin(project), project + "-tree"
    how = confine.tier(there, settings)
    if how == NONE:
        off = 'config.toml says confine = "off"' if settings.confine == "off" else ""
        raise Unavailable(NOTHING.format(why=off or "no bubblewrap, no Landlock"))
    trust = settings.trust or TRUST
    yield Finding(state="note", what=f"on this machine: {how}; an agent with trust = {json.dumps(trust)}")
    for path in (another + "/secret", there.path(names.FEATURES), folder + "/file"):
        files.replace(path, b"")
    glass = confine.of_mission(there, settings, folder, how)
    assert glass is not None, "there is a tier"
    glass = confine.of_agent(there, glass, [folder], trust, ())
    for probe in probes(there, folder, another, settings.shown):
        yield judged(probe, how, *carry_out(probe, glass, folder))
    yield _network(glass, how, settings, folder)
    yield _environment(settings)
    yield Finding(state="note", what=PTRACE)


def _network(glass: Confinement, how: str, settings: Config, folder: str) -> Finding:
    """Whether a server of this machine is reachable although `network` forbids it."""
    if settings.network is True:
        return Finding(state="note", what="network = true: every network that you can reach is reachable")
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [*PYTHON, CONNECT, str(server.getsockname()[1])]
        probe = Probe(what="reach a server outside", script=RUN, arguments=words, tiers=MOUNTS)
        return judged(probe, how, *carry_out(probe, glass, folder))


def _environment(settings: Config) -> Finding:
    """The variables of a person's environment that a check would not get."""
    gone = environment.withheld(os.environ, settings.passed)
    more = f" and {len(gone) - MAX_SHOWN_NAMES} more" if len(gone) > MAX_SHOWN_NAMES else ""
    named = f": {', '.join(gone[:MAX_SHOWN_NAMES])}{more}" if gone else ""
    return Finding(state="ok", what=f"of {len(os.environ)} variables {len(gone)} are not passed on{named}")


def probes(there: Layout, folder: str, another: str, shown: Sequence[str] = ()) -> list[Probe]:
    """An agent's needs, and forbidden actions; it may read the paths of HOME that config.toml shows."""
    config, new = os.path.abspath(dotgit.folders(there.folders.top)[1]) + "/config", folder + "/harness-try"
    keys = [path for path in home_layer.keys(os.path.expanduser("~"), os.environ, shown) if os.path.exists(path)]
    identity = [str(os.getpid()), tree.stat(os.getpid())[19].decode()]
    state, shared = [there.path(names.FEATURES), config], "/dev/shm"
    spaces = [os.readlink("/proc/self/ns/ipc"), str(os.stat(shared).st_dev) if os.path.isdir(shared) else "none"]
    number = KEYCTL.get(os.uname().machine)
    keyring = Probe(what="use a keyring of the kernel", script=RUN, arguments=[*PYTHON, KEYRING, number or ""])
    return [
        Probe(what="write in its tree", script=WRITE, arguments=[new], tiers=(), written=[new]),
        Probe(what="write the state of a mission, or git's settings", script=WRITE, arguments=state, written=state),
        Probe(what="read keys, or the tree of another mission", script=READ, arguments=[*keys, another]),
        Probe(what="signal a process outside", script=SIGNAL, arguments=identity, tiers=MOUNTS),
        Probe(what="share System V IPC, or /dev/shm", script=SHARED, arguments=spaces, tiers=MOUNTS),
        *([keyring] if number else []),
    ]


def carry_out(probe: Probe, glass: Confinement | None, folder: str) -> tuple[bool, str]:
    """Whether it worked, as seen from outside; the last words of the shell."""
    output, before = bytearray(), [*map(files.read, probe.written)]
    ended = supervise.run(
        ["sh", "-c", probe.script, "sh", *probe.arguments],
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        wall_seconds=SECONDS,
        sink=lambda _, chunk: output.extend(chunk),
        confine=glass,
    )
    worked = ended.exit == 0 and (not before or [*map(files.read, probe.written)] != before)
    return worked, output.decode("utf-8", "replace").strip().rpartition(": ")[2]


def judged(probe: Probe, tier: str, worked: bool, why: str) -> Finding:
    """The meaning of a probe's result for this tier."""
    reason = f" ({why})" if why else ""
    if not probe.tiers:
        return Finding(
            state="ok" if worked else "bad", what=f"{'allowed' if worked else 'not possible'}: {probe.what}{reason}"
        )
    if not worked:
        return Finding(state="ok", what=f"refused: {probe.what}{reason}")
    if tier in probe.tiers:
        return Finding(state="bad", what=f"worked: {probe.what}")
    return Finding(state="note", what=f"not refused on this tier: {probe.what}")
