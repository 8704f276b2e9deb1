"""A RemoteShell in bubblewrap on this machine, which sees the system's programs, read-only, and one writable folder of the
host; or a RemoteShell behind any command.

Control groups limit memory and processes of the whole sandbox, where they can be created. Otherwise processes are limited by
`pid_max` of its PID namespace (Linux 6.14) or `ulimit -u`, which root bypasses, and the memory of each process by `ulimit -v`.
The limit of CPU seconds is for each process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from harness.base.errors import Unavailable
from harness.filesystem import _control_groups
from harness.filesystem._remote_shell import RemoteConnection
from harness.filesystem._remote_shell import RemoteShell as RemoteShell
from harness.process import confine
from harness.process.confine import MAX_PROCESSES, Confinement, Glass

WORKSPACE = "/workspace"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
SETTINGS = ("alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "localtime", "mime.types", "nsswitch.conf",
            "passwd", "protocols", "resolv.conf", "services", "ssl")  # fmt: skip
DYING_FIRST = "echo 1000 > /proc/self/oom_score_adj; "  # kill the command first, not the process that runs it
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": WORKSPACE, "LANG": "C.UTF-8", "TMPDIR": "/tmp"}


def sandbox(
    folder: str, *, network: bool | str = True, cpu_seconds: int = 0, memory_bytes: int = 0, processes: int = 0
) -> RemoteShell:
    """A sandbox that sees `folder` as /workspace. `network`: as in config.toml, True: the host's; "loopback" and False: a
    loopback of its own. Limits, 0 for none: `cpu_seconds` of each process, `memory_bytes` and `processes` of all, see above.
    Raises Unavailable without bubblewrap."""
    if confine.available() != confine.BUBBLEWRAP:
        raise Unavailable(
            "A sandbox needs bubblewrap (`bwrap` on PATH) and user namespaces, or root: see docs/confinement.md."
        )
    asked = {"memory": memory_bytes, "pids": processes}
    python = os.path.realpath(sys.executable)
    seen = [*SYSTEM, *(f"/etc/{name}" for name in SETTINGS)]
    seen += [] if f"{sys.base_prefix}/".startswith("/usr/") else [os.path.realpath(sys.base_prefix)]
    glass = Glass(writable=[WORKSPACE], moved={WORKSPACE: os.path.realpath(folder)}, root=seen,
                  network="host" if network is True else "none")  # fmt: skip
    groups = {name: _control_groups.made(name, limit) for name, limit in asked.items() if limit}
    each = memory_bytes if not groups.get("memory") else 0
    limits = f" -t {cpu_seconds}" * bool(cpu_seconds) + f" -v {each // 1024}" * bool(each)
    confinement = Confinement(glass=glass, tier=confine.BUBBLEWRAP, processes=processes or MAX_PROCESSES)
    connection = RemoteConnection(
        [], python=python, confine=confinement, environment=ENVIRONMENT, groups=[one for one in groups.values() if one]
    )
    before = DYING_FIRST * bool(groups.get("memory")) + f"ulimit{limits}; " * bool(limits)
    return RemoteShell(connection, WORKSPACE, before=before)


def remote_shell(prefix: Sequence[str], folder: str) -> RemoteShell:
    """A shell in `folder` behind a command such as `docker exec -i name`."""
    return RemoteShell(RemoteConnection(prefix), folder)
