"""Landlock, the second tier of confinement: restricts writes, and reads of hidden paths, of this process and its descendants.

There is no PID namespace: the program sees other processes, may signal those of its user and trace the guardian, which
is confined with it; only the guardian ends its daemons. Modes, times and sockets are not confined, nor is truncate(2)
before ABI 3. The guardian confines itself and then starts the program: a separate launcher would cost an interpreter
start, more than 15 ms. Numbers and structures are those of linux/landlock.h and landlock(7); the C library has no
wrappers for these system calls.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Collection, Iterator, Sequence

from harness.base.errors import Unavailable
from harness.process import _seccomp

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every architecture
VERSION = 1  # flag of CREATE_RULESET: query the ABI version
BELOW_PATH = 1  # rule type
NO_NEW_PRIVS = 38  # prctl(2)
WRITE_FILE, TRUNCATE, REFER = 1 << 1, 1 << 14, 1 << 13
REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))  # remove a folder or file; make any kind of node
READ_FILE, READ_DIR = 1 << 2, 1 << 3
FOR_FILES = WRITE_FILE | TRUNCATE | READ_FILE  # rights that a rule for a file, such as a device, may have
BIND_AND_CONNECT, TCP_SINCE = 1 << 0 | 1 << 1, 4
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
DEVICE_FOLDERS = ("/dev/pts", "/dev/shm")


def abi() -> int:
    """The Landlock ABI version of the kernel; 0 without Landlock."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _call(CREATE_RULESET, None, 0, VERSION))


def _call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    answer: int = library.syscall(ctypes.c_long(number), *given)
    return answer if answer >= 0 else -ctypes.get_errno()


def restrict(
    writable: Sequence[str], *, tcp: bool = True, hidden: Sequence[str] = (), readable: Sequence[str] = ()
) -> None:
    """Restrict this process and its descendants: they write only below these folders, cannot access keyrings, and
    without `tcp` have no TCP connections (from ABI 4 on). `hidden` paths can be read only where `readable` or writable.
    Raises Unavailable."""
    version = abi()
    handled = WRITE_FILE | REMOVE_AND_MAKE | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    handled |= READ_FILE | READ_DIR if hidden else 0
    rules = [handled] if tcp or version < TCP_SINCE else [handled, BIND_AND_CONNECT]
    asked = (ctypes.c_uint64 * len(rules))(*rules)
    ruleset = _checked(_call(CREATE_RULESET, ctypes.byref(asked), 8 * len(rules), 0), "a ruleset")
    allowed = [(path, handled) for path in (*writable, *DEVICE_FOLDERS, *DEVICES) if os.path.exists(path)]
    for path, rights in [*allowed, *(_visible(hidden, readable) if hidden else ())]:
        try:  # noqa: SIM105 - contextlib costs a launch 5 ms
            _allow(ruleset, path, rights if os.path.isdir(path) else rights & FOR_FILES)
        except FileNotFoundError:  # removed meanwhile
            pass
    ctypes.CDLL(None).prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    _seccomp.restrict()
    _checked(_call(RESTRICT_SELF, ruleset, 0), "to restrict itself")
    os.close(ruleset)


def _visible(hidden: Sequence[str], readable: Sequence[str]) -> Iterator[tuple[str, int]]:
    """(path, rights) that allow reading everything except hidden paths, plus the readable ones. Rules have no
    exceptions, so each sibling of a hidden path gets its own; the names in a readable folder are visible."""
    gone = [os.path.realpath(path) for path in hidden if os.path.exists(path)]
    for top in ("/", *map(os.path.realpath, readable)):
        below = [path for path in gone if path.startswith(top.rstrip("/") + "/")]
        if below and top != "/":
            yield top, READ_DIR
        yield from ((path, READ_FILE | READ_DIR) for path in beside(top, below))


def beside(top: str, hidden: Collection[str]) -> Iterator[str]:
    """The topmost paths below `top` that neither are nor contain a hidden one; links are skipped."""
    if not any(path.startswith(top.rstrip("/") + "/") for path in hidden):
        yield top
        return
    try:
        with os.scandir(top) as entries:
            paths = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:  # not listable by this user; `readable` covers what is needed
        return
    for path in paths:
        if path not in hidden:
            yield from beside(path, hidden)


def _allow(ruleset: int, path: str, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = rights.to_bytes(8, sys.byteorder) + folder.to_bytes(4, sys.byteorder)  # packed, as the header declares it
    try:
        _checked(_call(ADD_RULE, ruleset, BELOW_PATH, ctypes.c_char_p(rule), 0), path)
    finally:
        os.close(folder)


def _checked(answer: int, what: str) -> int:
    if answer < 0:
        raise Unavailable(f"Landlock refuses {what}: {os.strerror(-answer)}.")
    return answer
