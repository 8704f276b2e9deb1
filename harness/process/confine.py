"""Confinement: a program can write only to the folders it is given, and none of its processes outlives it.

Two tiers. *bubblewrap*: its own mounts, PID and IPC namespaces; the end of the first process ends all of them.
*landlock*: where user namespaces are forbidden (Docker's default, Ubuntu's AppArmor restriction) the kernel refuses
writes outside the given folders and reads of hidden paths; processes are not confined. Both refuse access to kernel
keyrings (`seccomp`). macOS has neither: programs then run unconfined, and callers report it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from harness.base.errors import Unavailable
from harness.base.faults import HIDES
from harness.base.record import Record
from harness.process import _seccomp, landlock, network, spawn, tree

Layers = Sequence[tuple[str, str]]

BUBBLEWRAP, LANDLOCK, NONE = "bubblewrap", "landlock", "none"
TIERS = (BUBBLEWRAP, LANDLOCK, NONE)
NETWORKS = ("host", "none")
PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # empty and writable inside
TRIALS, TRIAL_PAUSE_SECONDS = 5, 0.1
MAX_PROCESSES = 4096  # bounds a fork bomb
MIN_PID_MAX = 301  # of the kernel
PID_MAX = "/proc/sys/kernel/pid_max"
OWN_PID_MAX_SINCE = (6, 14)  # older kernels have one value per machine, which root inside would change for all
ULIMIT = "ulimit -u {0} 2>/dev/null || ulimit -p {0} 2>/dev/null; "  # bash || dash
EXEC = 'exec "$@"'
APART = ("--die-with-parent", "--unshare-pid", "--unshare-ipc")
ROOT = ("--ro-bind", "/", "/")
SYSTEM = ("--dev", "/dev", "--proc", "/proc")
PROC_SYS = ("--ro-bind", "/proc/sys", "/proc/sys")  # root without capabilities could write kernel.core_pattern there
FILTER = ("--seccomp", str(spawn.HELD_FROM))
LAST_PID = "/proc/sys/kernel/ns_last_pid"  # of the namespace: the next pid is one higher
NUMBERED = 1000  # minimum first pid in a `plain` namespace
BEHIND = '/bin/sh -c "\\"\\$@\\"; exit \\$?" sh "$@"; exit $?'  # the second shell is the parent of the program
FRESH = ("/dev/", "/proc/")  # new inside, not from the host
OWN = "each run has an empty {top} of its own; put it elsewhere, such as below /opt or ~/.local"
LISTED = 'runs see only a list of your home folder; to show it, write into config.toml: [home] show = ["{below}"]'
KEPT = "runs do not see {top}; put it elsewhere, or see docs/threat-model.md for what they see"
TMPFS, EMPTY, LINK, READ, WRITE = "--tmpfs", f"--ro-bind {os.devnull}", "--symlink", "--ro-bind", "--bind"
ORDER = (TMPFS, EMPTY, LINK, READ, WRITE)  # for one path, the last one wins


class Glass(Record):
    """The access of a confined program; all paths are absolute.

    `writable`: folders or files that it may change. `readable`: folders that are read-only although they lie below a private,
    hidden or writable one. `hidden`: folders and files that appear empty, also below a writable one. The deepest path wins.
    `network`: host, or none (a loopback of its own). `moved`: {path inside, without links: the host folder mounted there}, in
    the order in which `Confinement.seen` tries them; such a path is also in `writable` or `readable`. `root`: all that it sees
    of the host besides; empty: everything.
    """

    writable: list[str] = []
    readable: list[str] = []
    hidden: list[str] = []
    network: str = "host"
    moved: dict[str, str] = {}
    root: list[str] = []

    def layers(self) -> list[tuple[str, str]]:
        """(path without links, option) of each mount over the read-only root, in order: a later one covers an earlier one."""
        private = [(folder, TMPFS) for folder in PRIVATE if os.path.isdir(folder) and not os.path.islink(folder)]
        hidden = [(os.path.realpath(path), TMPFS if os.path.isdir(path) else EMPTY) for path in _there(self.hidden)]
        readable = [(self._real(path), READ) for path in self.readable if path in self.moved or os.path.exists(path)]
        writable = [(self._real(path), WRITE) for path in self.writable]
        links = [(path, LINK) for path in self.links()]
        found = [*private, *hidden, *links, *readable, *writable]
        return _needed(sorted(found, key=lambda one: (one[0].count("/"), ORDER.index(one[1]))), self.moved)

    def links(self) -> dict[str, str]:
        """{link: its target} of the links in the paths of `readable`."""
        paths = [path for path in self.readable if path not in self.moved and os.path.realpath(path) != path]
        return dict(pair for path in paths for pair in _links(path))

    def _real(self, path: str) -> str:
        """The path with links resolved; a `moved` path stays as it is, since the host's content there is irrelevant."""
        return path if path in self.moved else os.path.realpath(path)


class Confinement(Record):
    """How a program is confined: its access, the tier, and the pid of the `holder` of its network (0: none). `plain`:
    it sees no process of the harness, and pids look like those of an ordinary machine. `processes`: the most it may have."""

    glass: Glass
    tier: str
    holder: int = 0
    plain: bool = False
    processes: int = MAX_PROCESSES

    def opened(self, *folders: str) -> Confinement:
        """A copy with these folders writable too."""
        return self.replace(glass=self.glass.replace(writable=[*self.glass.writable, *folders]))

    def reading(self, folder: str) -> Confinement:
        """A copy with a writable folder, and everything in it, made read-only."""
        real, inside, glass = os.path.realpath(folder), self.seen(folder), self.glass
        gone = [
            path for path in glass.writable if path == inside or (os.path.realpath(path) + "/").startswith(real + "/")
        ]
        kept = [path for path in glass.writable if path not in gone]
        return self.replace(glass=glass.replace(writable=kept, readable=[*glass.readable, *gone]))

    def words(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> list[str]:
        """The command line that starts `argv` confined in `cwd`; the caller passes the descriptors of `held()` with it.
        On a tier other than bubblewrap it is `argv`. Raises Unavailable when bubblewrap is missing, or when the
        program, `cwd` or a writable folder is missing or hidden inside.
        """
        if self.tier != BUBBLEWRAP:
            return list(argv)
        layers = self.glass.layers()
        self._check(argv[0], cwd, env, layers)
        sources = {**self.glass.links(), **self.glass.moved}
        kernel, glass = os.uname().release, self.glass
        words = bubblewrap(argv, layers, glass.network, kernel, sources, self.plain, glass.root, self.processes)
        at = self.seen(cwd)
        return words if at == cwd else [words[0], "--chdir", at, *words[1:]]

    def seen(self, path: str) -> str:
        """The path inside of a path outside."""
        for inside, folder in self.glass.moved.items():
            if self.tier == BUBBLEWRAP and (path + "/").startswith(folder + "/"):
                return inside + path[len(folder) :]
        return path

    def held(self) -> list[int]:
        """New descriptors for bubblewrap in the order of `words`: the system call filter, then process limits and pids."""
        if self.tier != BUBBLEWRAP:
            return []
        numbers = _numbers(os.uname().release, self.plain, self.processes).values()
        return [spawn.filled_pipe(data) for data in (_seccomp.program(), *(str(number).encode() for number in numbers))]

    def confine_this_process(self) -> None:
        """Confine this process: apply Landlock and enter the run's network, for which there is no launcher program.
        Raises Unavailable."""
        if self.tier == LANDLOCK:
            landlock.restrict(self.glass.writable, hidden=self.glass.hidden, readable=self.glass.readable)
        if self.holder:
            network.enter(self.holder)

    def _check(self, name: str, cwd: str, env: Mapping[str, str], layers: Layers) -> None:
        writable = [self.glass.moved.get(path, path) for path in self.glass.writable]
        for folder in (cwd, *(path for path in writable if not os.path.isfile(path))):
            if fault := _why_no_folder(folder):
                raise Unavailable(f"{name} cannot be started in the folder {folder}: {fault}.")
        at = self.seen(cwd)
        if at not in self.glass.moved and (why := self._why_hidden(layers, os.path.realpath(at))):
            raise Unavailable(f"{name} cannot be started in the folder {cwd}: {why}.")
        if fault := self._why_no_program(name, cwd, env, layers):
            raise Unavailable(f"{name} cannot be started{fault}.")

    def hides(self, paths: Iterable[str]) -> str:
        """Why a program inside does not see the first of these paths that it does not see, and the remedy; "" if it sees all."""
        layers = [one for one in self.glass.layers() if self.tier == BUBBLEWRAP or one[0] not in PRIVATE]
        return next((why for path in paths if (why := self._why_hidden(layers, path))), "")

    def _why_hidden(self, layers: Layers, path: str) -> str:
        """Why a program inside does not see the host's content at this path, or the link there; "" if it does."""
        link = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        for at in (link, os.path.realpath(path)):
            top, option = next((one for one in reversed(layers) if _is_in(at, one[0])), ("", READ))
            if option in (TMPFS, EMPTY):
                home, own = os.path.realpath(os.path.expanduser("~")), map(os.path.realpath, self.glass.hidden)
                top = max((one for one in own if _is_in(at, one)), key=len, default=top)  # it may be below another
                why = OWN if top in PRIVATE else LISTED if top == home else KEPT
                return f"{HIDES}{at}: {why.format(top=top, below=at.removeprefix(home + '/'))}"
        return ""

    def _why_no_program(self, name: str, cwd: str, env: Mapping[str, str], layers: Layers) -> str:
        """Why the PATH of `env` has no program of this name inside; "" if it has one."""
        folders = [""] if "/" in name else os.get_exec_path(env)
        files = [path for folder in folders if os.path.isfile(path := os.path.join(cwd, folder, name))]
        hidden = [self._why_hidden(layers, path) for path in files if os.access(path, os.X_OK)]
        if "" in hidden:
            return ""
        lacks = os.strerror(errno.EACCES if files else errno.ENOENT)
        return f": {hidden[0]}" if hidden else f" (is it installed, and on PATH?): {lacks}"


def bubblewrap(
    argv: Sequence[str], layers: Layers, network: str, kernel: str, sources: Mapping[str, str] = {}, plain: bool = False,
    root: Sequence[str] = (), processes: int = MAX_PROCESSES,
) -> list[str]:  # fmt: skip
    """The command line of bubblewrap with these mounts, on this kernel release; see Confinement. `sources`: {path of a
    mount: a different folder to mount there, or the target of a link}."""
    script = ("" if has_own_pid_max(kernel) else ULIMIT.format(processes)) + (BEHIND if plain else EXEC)
    words = [_bubblewrap(), *APART, *(_own_root(root) if root else ROOT), *SYSTEM, *FILTER]
    for number, path in enumerate(_numbers(kernel, plain, processes), start=1):
        words += ["--file", str(spawn.HELD_FROM + number), path]
    words += PROC_SYS
    for path, option in layers:
        words += [*option.split(), path] if option in (TMPFS, EMPTY) else [option, sources.get(path, path), path]
    hidden = [path for path, option in layers if option == TMPFS and path not in PRIVATE]
    words += [word for path in hidden for word in ("--remount-ro", path)]
    if os.geteuid() == 0:  # else root could remount read-only mounts; nested sandboxes map ids with SETFCAP
        words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETFCAP"]
    words += [] if network == "host" else ["--unshare-net"]
    words += ["--as-pid-1", "--unsetenv", tree.TAG] if plain else []
    words += ["--remount-ro", "/"] if root else []
    return [*words, "--", *(() if script == EXEC else ("/bin/sh", "-c", script, "sh")), *argv]


def _own_root(paths: Sequence[str]) -> Iterator[str]:
    """The options for a root with these paths of the host alone."""
    for path in _there(paths):
        yield from ("--symlink", os.readlink(path), path) if os.path.islink(path) else ("--ro-bind", path, path)


def _numbers(kernel: str, plain: bool, processes: int) -> dict[str, int]:
    """{kernel file: value to write} for a new PID namespace."""
    late = plain and os.path.exists(LAST_PID)
    last = {LAST_PID: NUMBERED + int.from_bytes(os.urandom(2)) % 2000} if late else {}
    return {**({PID_MAX: max(processes, MIN_PID_MAX)} if has_own_pid_max(kernel) else {}), **last}


def _needed(layers: Layers, moved: Collection[str]) -> list[tuple[str, str]]:
    """The layers without redundant ones: duplicates, read-only mounts and links below a read-only parent, and hidden
    ones below a hidden parent. bubblewrap's cost per mount grows with the number of mounts."""
    kept: dict[str, str] = {}
    for path, option in layers:
        top, above = next(((folder, kept[folder]) for folder in _parents(path) if folder in kept), ("", READ))
        if option == LINK and above != TMPFS:
            continue
        if option in (TMPFS, EMPTY) and above == TMPFS and top not in PRIVATE and path not in kept:
            continue
        if option != READ or above != READ or path in kept or path in moved or path.startswith(FRESH):
            kept.pop(path, None)
            kept[path] = option
    return list(kept.items())


def _links(path: str) -> Iterator[tuple[str, str]]:
    """(link, target) of each link in a path, both with resolved parents."""
    real = "/"
    for name in os.path.normpath(path).split("/")[1:]:
        at = os.path.join(real, name)
        real = os.path.realpath(at)
        if real != at:
            yield at, real


def _parents(path: str) -> Iterator[str]:
    """The folders above a path, the nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _there(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if os.path.exists(path)]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _why_no_folder(path: str) -> str:
    try:
        return "" if stat.S_ISDIR(os.stat(path).st_mode) else os.strerror(errno.ENOTDIR)
    except OSError as fault:
        return fault.strerror or str(fault)


def has_own_pid_max(release: str) -> bool:
    """Whether this Linux release has a kernel.pid_max per PID namespace."""
    numbers = [int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit()]
    return tuple(numbers) >= OWN_PID_MAX_SINCE


def _bubblewrap() -> str:
    """The path of bubblewrap on this process's PATH (not the program's), and outside the current folder. Raises
    Unavailable."""
    path = spawn.outside(os.environ.get("PATH", os.defpath), [os.getcwd()])
    try:
        return spawn.program("bwrap", {"PATH": path})
    except FileNotFoundError as fault:
        raise Unavailable("bubblewrap cannot be started: bwrap is not on PATH.") from fault


def available() -> str:
    """The best tier of this machine: BUBBLEWRAP, LANDLOCK or NONE, found by a trial of about 6 ms. A trial that fails is repeated
    for 0.4 s: another process may have ended a mount, or used up a limit, and the tier holds for a whole run."""
    try:
        for attempt in range(TRIALS):
            time.sleep(TRIAL_PAUSE_SECONDS if attempt else 0)
            if _works():
                return BUBBLEWRAP
    except Unavailable:
        pass
    return LANDLOCK if landlock.abi() else NONE


def _works() -> bool:
    """Whether a confined program starts. It is the first process of its namespace, so that no process is left to
    reap."""
    trial = Confinement(glass=Glass(), tier=BUBBLEWRAP)
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    program, *words = trial.words(["true"], cwd="/", env=env)
    held = trial.held()
    try:
        return spawn.capture([program, "--as-pid-1", *words], cwd="", env=env, keep=held)[0] == 0
    finally:
        spawn.close(held)
