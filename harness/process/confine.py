"""Confinement: a program sees everything read-only but the folders that are given to it, and nothing of it outlives it.

Two tiers. *bubblewrap*: its own mounts, PID and IPC namespaces; the end of the first process ends all of them. *landlock*:
where user namespaces are forbidden (Docker's default, Ubuntu's AppArmor restriction) the kernel refuses writes outside the
given folders; reads and processes are not confined. Neither is there on macOS: then nothing is confined, and callers say so.
"""

from __future__ import annotations

import os

from harness.base.errors import Unavailable
from harness.base.record import Record
from harness.process import landlock, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BUBBLEWRAP, LANDLOCK, NONE = "bubblewrap", "landlock", "none"
TIERS = (BUBBLEWRAP, LANDLOCK, NONE)
NETWORKS = ("host", "loopback", "none")
PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # empty and writable inside, whatever lies there outside
MOST_PROCESSES = 4096  # pid_max of the namespace: a fork bomb fills this, not the machine's table
LAUNCH = f'echo {MOST_PROCESSES} 2>/dev/null >/proc/sys/kernel/pid_max; exec "$@"'
PROBE_WORDS = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "true")


class Glass(Record):
    """What a confined program may touch; all paths are absolute.

    `writable`: folders that it may change. `readable`: folders that it sees read-only although they lie below a private
    or hidden one. `hidden`: folders and files that are empty inside. `network`: host, loopback (one of its own) or none.
    """

    writable: list[str] = []
    readable: list[str] = []
    hidden: list[str] = []
    network: str = "host"

    def words(self, argv: Sequence[str], tier: str) -> list[str]:
        """The command line that starts `argv` confined on this tier."""
        if tier == BUBBLEWRAP:
            return [*self._bubblewrap(), "--", "/bin/sh", "-c", LAUNCH, "sh", *argv]
        return landlock.words(self.writable, argv) if tier == LANDLOCK else list(argv)

    def _bubblewrap(self) -> list[str]:
        words = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/"]
        words += ["--dev", "/dev", "--proc", "/proc"]
        for folder in PRIVATE:
            words += ["--tmpfs", folder] if os.path.isdir(folder) and not os.path.islink(folder) else []
        for path in _outer_first(self.hidden):
            words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", os.devnull, path]
        binds = [("--ro-bind", path) for path in self.readable if _is_covered(path, (*PRIVATE, *self.hidden))]
        binds += [("--bind", path) for path in self.writable]
        for kind, path in sorted(binds, key=lambda bind: (bind[1].count("/"), bind[0])):
            words += [kind, path, path]
        if (
            os.geteuid() == 0
        ):  # without this root could remount what is read-only; nested sandboxes map ids with SETFCAP
            words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETFCAP"]
        return words if self.network == "host" else [*words, "--unshare-net"]


class Confinement(Record):
    """How a program is confined: what it may touch, and on which tier."""

    glass: Glass
    tier: str

    def opened(self, *folders: str) -> Confinement:
        """The same, with these folders writable too."""
        return self.replace(glass=self.glass.replace(writable=[*self.glass.writable, *folders]))


def _outer_first(paths: Iterable[str]) -> list[str]:
    return sorted((path for path in paths if os.path.exists(path)), key=lambda path: path.count("/"))


def _is_covered(path: str, folders: Iterable[str]) -> bool:
    """Whether the path lies below one of the folders, which would hide it."""
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def available() -> str:
    """The best tier of this machine, found by trying it: BUBBLEWRAP, LANDLOCK or NONE. Takes about 7 ms where it is the first."""
    try:
        words = ["bwrap", *PROBE_WORDS]
        code = spawn.capture(words, cwd="/", env={"PATH": os.environ.get("PATH", os.defpath)})[0]
    except Unavailable:  # it is not installed
        code = 1
    return BUBBLEWRAP if code == 0 else LANDLOCK if landlock.abi() else NONE
