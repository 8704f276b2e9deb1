"""Crashes for tests: a child that stops at its n-th call, and every disk that a power cut may leave of what a child did.

The power cut is a model after the ALICE paper. Bytes are certain once their file was fsynced, names once their folder
was; operations in one folder reach the disk in their order, as on ext4 and xfs; a rename is never half done. What is
not certain may be there, be missing, be cut in half, or be NUL bytes.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

TORTURE = os.environ.get("HARNESS_TORTURE") == "1"
STOPPED = 77
RAISED = 78
STOPPING_CALLS = ("fsync", "replace", "unlink")
DYING = """import os, signal, sys
count, real = 0, {name}
def dying(*args, **kwargs):
    global count
    count += 1
    if count == {step}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
{name} = dying
"""  # source of a program that is killed before its `step`th call of the function `name`
RECORDED_CALLS = ("open", "write", "pwrite", "ftruncate", "fsync", "replace", "rename", "unlink", "mkdir")


def sampled(rows: Iterable[Any], keep: Callable[[Any], bool]) -> list[Any]:
    """The rows of a table that the suite plays, which `keep` names; HARNESS_TORTURE=1 plays all of them."""
    return [row for row in rows if TORTURE or keep(row)]


def start(action: Callable[[], object]) -> int:
    """Run `action` in a forked child that exits with 0, or with RAISED after an OSError; returns its pid."""
    pid = os.fork()
    if not pid:
        code = RAISED + 1
        try:
            action()
            code = 0
        except OSError:
            code = RAISED
        finally:
            if code == RAISED + 1:
                traceback.print_exc()
            os._exit(code)
    return pid


def end(pid: int) -> int:
    """Wait for a child; returns its exit status, or the signal that ended it as a negative number."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_child(action: Callable[[], object]) -> int:
    """Run `action` in a forked child to its end; returns its exit status as `end` does."""
    return end(start(action))


def stop_at(number: int, stop: Callable[[], object] = lambda: os._exit(STOPPED)) -> None:
    """From now on this process stops just before its n-th call of STOPPING_CALLS. Only for use in a forked child."""
    left = [number]

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                stop()
            return real(*args)

        return call

    for name in STOPPING_CALLS:
        setattr(os, name, wrapped(getattr(os, name)))


def stops(action: Callable[[], object]) -> Iterator[int]:
    """Run `action` in a child stopped at its first call, in one stopped at its second, … until one completes."""
    number = 0
    code = STOPPED
    while code == STOPPED:
        number += 1

        def attempt(at: int = number) -> None:
            stop_at(at)
            action()

        code = in_child(attempt)
        assert code in (0, STOPPED), f"the child ended with {code} at call {number}"
        yield number


class Recorder:
    """Records what this process does to files below `root`. Only for use in a forked child."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.log: list[tuple[Any, ...]] = []
        self.real = {name: getattr(os, name) for name in RECORDED_CALLS}
        self.open_files: dict[int, int] = {}
        self.inodes = {path: number for number, path in enumerate(sorted(contents(root)))}
        for name in RECORDED_CALLS:
            setattr(os, name, getattr(self, name))

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        """The call may create or empty a file."""
        is_new = not os.path.exists(path)
        descriptor: int = self.real["open"](path, flags, mode)
        self.open_files.pop(descriptor, None)
        if path.startswith(self.root) and "/locks/" not in path and not os.path.isdir(path):
            if is_new:
                self.inodes[path] = len(self.log) + 1000
                self.log.append(("create", path, self.inodes[path]))
            self.open_files[descriptor] = self.inodes[path]
            if flags & os.O_TRUNC:
                self.log.append(("truncate", self.inodes[path], 0))
        else:
            self.log.append(("folder", path, descriptor))
        return descriptor

    def write(self, descriptor: int, data: bytes) -> int:
        """At the end if the file is in append mode, else at the descriptor's position."""
        done: int = self.real["write"](descriptor, data)
        if descriptor in self.open_files:
            at = os.lseek(descriptor, 0, os.SEEK_CUR) - done
            self.log.append(("write", self.open_files[descriptor], at, bytes(data)[:done]))
        return done

    def pwrite(self, descriptor: int, data: bytes, at: int) -> int:
        """At an offset."""
        done: int = self.real["pwrite"](descriptor, data, at)
        if descriptor in self.open_files:
            self.log.append(("write", self.open_files[descriptor], at, bytes(data)[:done]))
        return done

    def ftruncate(self, descriptor: int, size: int) -> None:
        """The file is cut or extended."""
        self.real["ftruncate"](descriptor, size)
        if descriptor in self.open_files:
            self.log.append(("truncate", self.open_files[descriptor], size))

    def fsync(self, descriptor: int) -> None:
        """The bytes of a file, or the names of a folder."""
        self.real["fsync"](descriptor)
        if descriptor in self.open_files:
            self.log.append(("fsync", self.open_files[descriptor]))
        else:
            folders = [row[1] for row in self.log if row[0] == "folder" and row[2] == descriptor]
            self.log += [("fsync names", folders[-1])] if folders else []

    def replace(self, source: str, target: str) -> None:
        """One name replaces another."""
        self.real["replace"](source, target)
        if os.path.isdir(target):
            below = [path for path in self.inodes if path.startswith(source + "/")]
            self.inodes.update({target + path.removeprefix(source): self.inodes.pop(path) for path in below})
            self.log.append(("rename folder", source, target, -1))
            return
        if source not in self.inodes:
            return
        self.inodes[target] = self.inodes.pop(source)
        self.log.append(("rename", source, target, self.inodes[target]))

    rename = replace

    def unlink(self, path: str) -> None:
        """A name is removed."""
        self.real["unlink"](path)
        if path in self.inodes:
            self.log.append(("unlink", path, self.inodes.pop(path)))

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        """A folder is created."""
        self.real["mkdir"](path, mode)
        if path.startswith(self.root):
            self.log.append(("mkdir", path, -1))


def contents(root: str) -> dict[str, bytes]:
    """{path: bytes} of all files below a folder, except locks."""
    found = (path for path in Path(root).rglob("*") if path.is_file() and path.parent.name != "locks")
    return {str(path): path.read_bytes() for path in found}


def recorded(root: str, action: Callable[[], object]) -> list[tuple[Any, ...]]:
    """What `action` does to the files below `root` when a child runs it; a marker shows that it returned."""
    path = root + ".log"

    def attempt() -> None:
        recorder = Recorder(root)
        action()
        recorder.log.append(("returned",))
        for name, real in recorder.real.items():
            setattr(os, name, real)
        Path(path).write_bytes(pickle.dumps(recorder.log))

    assert in_child(attempt) == 0
    log: list[tuple[Any, ...]] = pickle.loads(Path(path).read_bytes())
    return log


def power_cuts(before: dict[str, bytes], log: list[tuple[Any, ...]]) -> Iterator[tuple[bool, dict[str, bytes]]]:
    """Every disk {path: bytes} that a power cut during the log may leave, each once, and whether the action had returned."""
    seen: set[tuple[Any, ...]] = set()
    for cut in range(len(log) + 1):
        done = log[:cut]
        returned = ("returned",) in done
        for names in _namespaces(before, done):
            for bytes_of in _bytes(before, done):
                disk = {path: bytes_of.get(inode, b"") for path, inode in names.items()}
                key = (returned, *sorted(disk.items()))
                if key not in seen:
                    seen.add(key)
                    yield returned, disk


def _folders(row: tuple[Any, ...]) -> set[str]:
    return {os.path.dirname(path) for path in row[1:-1]}


def _namespaces(before: dict[str, bytes], done: list[tuple[Any, ...]]) -> Iterator[dict[str, int]]:
    """Names that may exist: none of the uncertain operations, all, those up to each one, all but those from each one."""
    pending: list[int] = []
    for number, row in enumerate(done):
        if row[0] in ("create", "rename", "rename folder", "unlink", "mkdir"):
            pending.append(number)
        elif row[0] == "fsync names":
            certain = [other for other in pending if row[1] in _folders(done[other])]
            pending = [other for other in pending if not any(other in _needed(done, pending, one) for one in certain)]
    choices = [set(pending), set()]
    choices += [set(pending) - _needed(done, pending, one) for one in pending]
    choices += [{one} | {later for later in pending if one in _needed(done, pending, later)} for one in pending]
    for lost in {frozenset(choice) for choice in choices}:
        yield _names(before, [row for number, row in enumerate(done) if number not in lost])


def _needed(done: list[tuple[Any, ...]], pending: list[int], one: int) -> set[int]:
    """The operation and the earlier ones that must reach the disk before it: in its folders, and in theirs."""
    found = {one}
    folders = _folders(done[one])
    for number in reversed([other for other in pending if other < one]):
        if _folders(done[number]) & folders or (done[number][0] == "mkdir" and done[number][1] in folders):
            found.add(number)
            folders |= _folders(done[number])
    return found


def _names(before: dict[str, bytes], rows: list[tuple[Any, ...]]) -> dict[str, int]:
    names = {path: number for number, path in enumerate(sorted(before))}
    for row in rows:
        if row[0] == "create":
            names[row[1]] = row[2]
        elif row[0] == "rename":
            names = {path: inode for path, inode in names.items() if path != row[1] or inode != row[3]}
            names[row[2]] = row[3]
        elif row[0] == "rename folder":
            names = {_moved(path, row[1], row[2]): inode for path, inode in names.items()}
        elif row[0] == "unlink" and names.get(row[1]) == row[2]:
            del names[row[1]]
    return names


def _moved(path: str, source: str, target: str) -> str:
    return target + path.removeprefix(source) if path.startswith(source + "/") else path


def _bytes(before: dict[str, bytes], done: list[tuple[Any, ...]]) -> Iterator[dict[int, bytes]]:
    """Bytes that may be there: all uncertain writes or none, and each one alone missing, halved, or NUL."""
    pending: list[int] = []
    for number, row in enumerate(done):
        if row[0] in ("write", "truncate"):
            pending.append(number)
        elif row[0] == "fsync":
            pending = [other for other in pending if done[other][1] != row[1]]
    yield _written(before, done, {})
    yield _written(before, done, dict.fromkeys(pending, "lost"))
    for number in pending:
        for fate in ("lost", "half", "nul"):
            yield _written(before, done, {number: fate})


def _written(before: dict[str, bytes], done: list[tuple[Any, ...]], fates: dict[int, str]) -> dict[int, bytes]:
    found = {number: before[path] for number, path in enumerate(sorted(before))}
    for number, row in enumerate(done):
        fate = fates.get(number, "")
        if row[0] == "truncate" and fate != "lost":
            found[row[1]] = found.get(row[1], b"")[: row[2]].ljust(row[2], b"\0")
        elif row[0] == "write" and fate != "lost":
            data = {"half": row[3][: len(row[3]) // 2], "nul": b"\0" * len(row[3])}.get(fate, row[3])
            old = found.get(row[1], b"").ljust(row[2], b"\0")
            found[row[1]] = old[: row[2]] + data + old[row[2] + len(data) :]
    return found


def lay_out(root: str, disk: dict[str, bytes]) -> None:
    """Make the folder contain these files and nothing else. What is there as it should be stays: disks differ little."""
    for folder, folders, names in os.walk(root, topdown=False):
        for name in names:
            path = os.path.join(folder, name)
            if path not in disk or os.path.islink(path):
                os.unlink(path)
        if not os.listdir(folder):
            os.rmdir(folder)
        for link in folders:
            if os.path.islink(os.path.join(folder, link)):
                os.unlink(os.path.join(folder, link))
    for path, data in disk.items():
        if not os.path.isfile(path) or Path(path).read_bytes() != data:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).write_bytes(data)
    os.makedirs(root, exist_ok=True)


KILLED_CALLS = ("replace", "rename", "unlink", "link", "symlink", "posix_spawn")


def kills(action: Callable[[], object], step: int = 1) -> Iterator[int]:
    """Carry out `action` in a child that SIGKILL ends just before its n-th rename, link, removal or start of a program,
    and right after that start, for n = 1, 1 + `step`, … until one completes; yields n after each."""
    number, code = 1 - step, -signal.SIGKILL
    while code == -signal.SIGKILL:
        number += step

        def attempt(at: int = number) -> None:
            _die_at(at)
            action()

        code = in_child(attempt)
        assert code in (0, -signal.SIGKILL), f"the child ended with {code} at call {number}"
        yield number


def _die_at(number: int) -> None:
    left = [number]

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and real is not os_spawn:
                os.kill(os.getpid(), signal.SIGKILL)
            done = real(*args, **kwargs)
            if left[0] == 0:  # git is at work when we die: it goes on alone, or is cut short too
                if number % 2:
                    os.kill(done, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return call

    os_spawn = os.posix_spawn
    for name in KILLED_CALLS:
        setattr(os, name, wrapped(getattr(os, name)))
