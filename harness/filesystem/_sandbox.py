"""A RemoteShell whose other side is bubblewrap on this machine, with a root of its own: the system's programs, read-only, and
one folder of the host, writable.

The limit of processes holds by `pid_max` of its PID namespace (Linux 6.14), or `ulimit -u`, which does not hold for root; those
of CPU seconds and memory by `ulimit`, for each process."""

from __future__ import annotations

import os
import sys

from harness.base.errors import Unavailable
from harness.filesystem._remote_shell import RemoteConnection, RemoteShell
from harness.process import confine
from harness.process.confine import MAX_PROCESSES, Confinement, Glass

WORKSPACE = "/workspace"
LOOPBACK = "loopback"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
SETTINGS = ("alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "localtime", "mime.types", "nsswitch.conf",
            "passwd", "protocols", "resolv.conf", "services", "ssl")  # fmt: skip
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": WORKSPACE, "LANG": "C.UTF-8", "TMPDIR": "/tmp"}


def sandbox(
    folder: str,
    *,
    network: bool | str = True,
    cpu_seconds: int = 0,
    memory_bytes: int = 0,
    processes: int = MAX_PROCESSES,
) -> RemoteShell:
    """A sandbox that sees `folder` as /workspace. `network`: as in config.toml, True: the host's; "loopback" and False: a
    loopback of its own. Limits for each process: `cpu_seconds` and `memory_bytes` of address space, 0: none; for all:
    `processes`. Raises Unavailable without bubblewrap."""
    if confine.available()[0] != confine.BUBBLEWRAP:
        raise Unavailable(
            "A sandbox needs bubblewrap (`bwrap` on PATH) and user namespaces, or root: see docs/confinement.md."
        )
    python = os.path.realpath(sys.executable)
    seen = [*SYSTEM, *(f"/etc/{name}" for name in SETTINGS)]
    seen += [] if f"{sys.base_prefix}/".startswith("/usr/") else [os.path.realpath(sys.base_prefix)]
    glass = Glass(writable=[WORKSPACE], moved={WORKSPACE: os.path.realpath(folder)}, root=seen,
                  network="host" if network is True else "none")  # fmt: skip
    limits = f" -t {cpu_seconds}" * bool(cpu_seconds) + f" -v {memory_bytes // 1024}" * bool(memory_bytes)
    confinement = Confinement(glass=glass, tier=confine.BUBBLEWRAP, processes=processes)
    connection = RemoteConnection([], python=python, confine=confinement, environment=ENVIRONMENT)
    return RemoteShell(connection, WORKSPACE, before=f"ulimit{limits}; " if limits else "")
