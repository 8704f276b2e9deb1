"""Confinement: a program sees everything read-only but the folders that are given to it, and nothing of it outlives it.

Two tiers. *bubblewrap*: its own mounts, PID and IPC namespaces; the end of the first process ends all of them. *landlock*:
where user namespaces are forbidden (Docker's default, Ubuntu's AppArmor restriction) the kernel refuses writes outside the
given folders; reads and processes are not confined. Neither is there on macOS: then nothing is confined, and callers say so.
"""

from __future__ import annotations

import errno
import os

from harness.base.errors import Unavailable
from harness.base.record import Record
from harness.process import landlock, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUBBLEWRAP, LANDLOCK, NONE = "bubblewrap", "landlock", "none"
TIERS = (BUBBLEWRAP, LANDLOCK, NONE)
NETWORKS = ("host", "loopback", "none")
PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # empty and writable inside, whatever lies there outside
MOST_PROCESSES = 4096  # a fork bomb fills this, not the machine's table
PID_MAX = "/proc/sys/kernel/pid_max"
OWN_PID_MAX_SINCE = (6, 14)  # before this Linux the number is the machine's, and root inside would change it for all
ULIMIT = f'ulimit -u {MOST_PROCESSES} 2>/dev/null || ulimit -p {MOST_PROCESSES} 2>/dev/null; exec "$@"'  # bash || dash
ROOT = (
    "--die-with-parent",
    "--unshare-pid",
    "--unshare-ipc",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
)
PROC_SYS = ("--ro-bind", "/proc/sys", "/proc/sys")  # root without capabilities could write kernel.core_pattern there
LIMIT = ("--file", str(spawn.HELD_FROM), PID_MAX)
HIDDEN = "its confinement hides it"
LAYERS = ("--tmpfs", "--ro-bind", "--bind")  # of one folder, the last one decides
NAMESPACES = ("/proc/self/ns/user", "/proc/self/ns/pid")


class Glass(Record):
    """What a confined program may touch; all paths are absolute.

    `writable`: folders that it may change. `readable`: folders that it sees read-only although they lie below a private,
    hidden or writable one. `hidden`: folders and files that are empty inside, also below a writable one. The deepest path
    decides. `network`: host, loopback (one of its own) or none.
    """

    writable: list[str] = []
    readable: list[str] = []
    hidden: list[str] = []
    network: str = "host"

    def words(self, argv: Sequence[str], tier: str, kernel: str = "") -> list[str]:
        """The command line that starts `argv` confined on this tier and `kernel` release (empty: the running one).

        bubblewrap reads the limit on processes from the descriptor of `limit()`. On the other tiers the words are `argv`:
        Landlock confines the process that starts it. Raises Unavailable when bubblewrap is missing.
        """
        if tier != BUBBLEWRAP:
            return list(argv)
        own = has_own_pid_max(kernel or os.uname().release)
        words = [_bubblewrap(), *ROOT, *(LIMIT if own else ()), *PROC_SYS]
        for path, option in self._layers():
            words += ["--tmpfs", path] if option == "--tmpfs" else [option, path, path]
        for path in self._hidden_files():
            words += ["--ro-bind", os.devnull, path]
        if os.geteuid() == 0:  # else root could remount what is read-only; nested sandboxes map ids with SETFCAP
            words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETFCAP"]
        words += [] if self.network == "host" else ["--unshare-net"]
        return [*words, "--", *(() if own else ("/bin/sh", "-c", ULIMIT, "sh")), *argv]

    def shows(self, path: str) -> bool:
        """Whether a program behind bubblewrap sees what lies at this path (without links) outside."""
        covers = [option for folder, option in self._layers() if _is_at_or_below(path, folder)]
        return covers[-1:] != ["--tmpfs"] and path not in self._hidden_files()

    def _layers(self) -> list[tuple[str, str]]:
        """(folder, option) of each mount over the read-only root, outer folders first: what is mounted later lies above."""
        private = [folder for folder in PRIVATE if os.path.isdir(folder) and not os.path.islink(folder)]
        layers = [(os.path.realpath(path), "--tmpfs") for path in (*private, *self.hidden) if os.path.isdir(path)]
        layers += [(os.path.realpath(path), "--ro-bind") for path in self.readable if os.path.exists(path)]
        layers += [(os.path.realpath(path), "--bind") for path in self.writable]
        return sorted(layers, key=lambda layer: (layer[0].count("/"), LAYERS.index(layer[1])))

    def _hidden_files(self) -> list[str]:
        return [os.path.realpath(path) for path in self.hidden if os.path.isfile(path)]


class Confinement(Record):
    """How a program is confined: what it may touch, and on which tier."""

    glass: Glass
    tier: str

    def opened(self, *folders: str) -> Confinement:
        """The same, with these folders writable too."""
        return self.replace(glass=self.glass.replace(writable=[*self.glass.writable, *folders]))

    def words(self, argv: Sequence[str]) -> list[str]:
        """The command line that starts `argv` confined."""
        return self.glass.words(argv, self.tier)

    def limit(self) -> list[int]:
        """The descriptors that the start of these words holds."""
        return limit() if self.tier == BUBBLEWRAP else []

    def check(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> None:
        """Raise Unavailable when bubblewrap could not start the program: it, `cwd` or a writable folder is missing inside."""
        if self.tier != BUBBLEWRAP:
            return  # the start itself finds this out
        for folder in (cwd, *self.glass.writable):
            if fault := _why_no_folder(folder):
                raise Unavailable(f"{argv[0]} cannot be started in the folder {folder}: {fault}.")
        if not self.glass.shows(os.path.realpath(cwd)):
            raise Unavailable(f"{argv[0]} cannot be started in the folder {cwd}: {HIDDEN}.")
        if fault := self._why_no_program(argv[0], cwd, env):
            raise Unavailable(f"{argv[0]} cannot be started (is it installed, and on PATH?): {fault}.")

    def confine_this_process(self) -> None:
        """On the tier that has no program of its own, Landlock: from here on this process is confined. Raises Unavailable."""
        if self.tier == LANDLOCK:
            landlock.restrict(self.glass.writable)

    def _why_no_program(self, name: str, cwd: str, env: Mapping[str, str]) -> str:
        """Why no program of this name is found inside, on the PATH of `env`; empty when there is one."""
        folders = [""] if "/" in name else os.get_exec_path(env)
        files = [path for folder in folders if os.path.isfile(path := os.path.join(cwd, folder, name))]
        programs = [path for path in files if os.access(path, os.X_OK)]
        if any(self._shows_program(path) for path in programs):
            return ""
        return HIDDEN if programs else os.strerror(errno.EACCES if files else errno.ENOENT)

    def _shows_program(self, path: str) -> bool:
        """Whether the program is seen inside, and so is the link that leads to it."""
        link = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        return self.glass.shows(link) and self.glass.shows(os.path.realpath(path))


def _why_no_folder(path: str) -> str:
    number = 0 if os.path.isdir(path) else errno.ENOTDIR if os.path.exists(path) else errno.ENOENT
    return os.strerror(number) if number else ""


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def has_own_pid_max(release: str) -> bool:
    """Whether this Linux has a kernel.pid_max for each PID namespace."""
    numbers = [int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit()]
    return tuple(numbers) >= OWN_PID_MAX_SINCE


def limit() -> list[int]:
    """A new descriptor that bubblewrap reads the limit on processes from; none on a kernel where the launcher sets it."""
    if not has_own_pid_max(os.uname().release):
        return []
    return [spawn.filled_pipe(str(MOST_PROCESSES).encode())]


def _bubblewrap() -> str:
    """The path of bubblewrap on this process's PATH, not on that of the program. Raises Unavailable."""
    try:
        return spawn.program("bwrap", os.environ)
    except FileNotFoundError as fault:
        raise Unavailable("bubblewrap cannot be started: bwrap is not on PATH.") from fault


def available(remembered: str = "") -> tuple[str, str]:
    """(the best tier of this machine, what to remember): BUBBLEWRAP, LANDLOCK or NONE, found by trying it in about 6 ms.

    A caller that keeps the second string and passes it the next time spares the trial, as long as boot, user, namespaces
    and bubblewrap are the same. Only bubblewrap is remembered: a passing fault must not lower the tier until the next boot.
    """
    try:
        program = _bubblewrap()
        key = _key(program)
        if key == remembered:
            return BUBBLEWRAP, key
        if _works():
            return BUBBLEWRAP, key
    except Unavailable:
        pass
    return (LANDLOCK if landlock.abi() else NONE), ""


def _key(program: str) -> str:
    """What the trial's answer hangs on, in one line."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    namespaces = [str(os.stat(path).st_ino) for path in NAMESPACES]
    return " ".join([boot, str(os.geteuid()), *namespaces, str(os.stat(program).st_mtime_ns), program])


def _works() -> bool:
    """Whether a confined program starts."""
    held = limit()
    try:
        words = Glass().words(["true"], BUBBLEWRAP)
        return spawn.capture(words, cwd="/", env={"PATH": os.environ.get("PATH", os.defpath)}, keep=held)[0] == 0
    finally:
        spawn.close(held)
