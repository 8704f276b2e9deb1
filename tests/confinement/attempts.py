"""A program that attempts what no program of a run may do, and says what happened; `stage` starts it confined.

    python -I -S attempts.py PLAN

PLAN is a file with a JSON list of attempts, [kind, argument, …] each, and may come later. It prints a line of JSON for each:
whether it worked, else why not, and the device of the folder that it changed (a folder that it alone sees is not the
machine's). What works is undone at once, except orders. It loads nothing of the harness, which is what it examines.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOVED = ".harness-try"  # what a moved file or folder is called until it is moved back
REMOUNT, BIND = 32, 4096  # mount(2)
NEW_NAMESPACES = 0x10000000 | 0x00020000  # CLONE_NEWUSER and CLONE_NEWNS
TRACE, DETACH, ANY_CHILD = 16, 17, 0x40000000  # ptrace(2), and __WALL
SUBREAPER = 36  # prctl(2)
WAIT_SECONDS = 60.0
EMPTY = "it is empty"
PLANTED = """[core]
	repositoryformatversion = 0
	fsmonitor = "touch '{marker}'; false"
	hooksPath = hooks
[filter "planted"]
	clean = "touch '{marker}'; cat"
	smudge = "touch '{marker}'; cat"
"""


def main(path: str) -> None:
    """Carry out the attempts of a plan in turn."""
    _await(path)
    with open(path, encoding="utf-8") as file:
        plan: list[list[str]] = json.load(file)
    for number, (kind, *arguments) in enumerate(plan):
        try:
            answer = {"worked": True, "why": "", "device": KINDS[kind](*arguments) or 0}
        except OSError as fault:
            answer = {"worked": False, "why": fault.strerror or str(fault), "device": 0}
        os.write(1, json.dumps({"number": number, **answer}).encode() + b"\n")


def _device(path: str) -> int:
    return os.stat(os.path.dirname(path)).st_dev


def write(path: str) -> int:
    """Open it for writing; nothing is written."""
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    return _device(path)


def create(path: str) -> int:
    """Make a file that is not there."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    device = _device(path)
    os.unlink(path)
    return device


def move(path: str) -> int:
    """Give it another name."""
    os.rename(path, path + MOVED)
    device = _device(path)
    os.rename(path + MOVED, path)
    return device


def replace(path: str) -> int:
    """Whether it could get another name, for files that must not be lost: a rename to its own name changes nothing."""
    os.rename(path, path)
    if not os.access(os.path.dirname(path), os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return _device(path)


def delete(path: str) -> int:
    """Remove a file."""
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(data)
    return _device(path)


def read(path: str) -> None:
    """See something in a file or a folder."""
    if os.path.isdir(path):
        seen: object = os.listdir(path)
    else:
        with open(path, "rb") as file:
            seen = file.read(1)
    if not seen:
        raise OSError(EMPTY)


def connect(path: str) -> None:
    """Connect to the listener of a socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def exchange(project: str) -> int:
    """`mv .git x; cp -r x .git`: the git folder becomes one of its own."""
    git, aside = project + "/.git", project + "/x"
    os.rename(git, aside)
    shutil.copytree(aside, git, symlinks=True)
    device = _device(git)
    shutil.rmtree(git)
    os.rename(aside, git)
    return device


def remount(folder: str) -> int:
    """Make what is mounted there writable, and write."""
    _checked(ctypes.CDLL(None, use_errno=True).mount(None, folder.encode(), None, REMOUNT | BIND, None))
    return create(os.path.join(folder, "harness-try"))


def remount_as_another(folder: str) -> None:
    """The same in namespaces of its own, where it is root."""
    child = os.fork()
    if not child:
        code = errno.EPERM
        try:
            user = os.geteuid()
            _checked(ctypes.CDLL(None, use_errno=True).unshare(NEW_NAMESPACES))
            with open("/proc/self/uid_map", "w", encoding="ascii") as file:
                file.write(f"0 {user} 1")
            remount(folder)
            code = 0
        except OSError as fault:
            code = fault.errno or code
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


def _checked(answer: int) -> None:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _require_visible(pid: str, started: str) -> None:
    """Raises unless the process that started at this tick is seen: the number alone may be another process's."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            found = file.read().rpartition(") ")[2].split()[19]
    except FileNotFoundError:
        found = ""
    if found != started:
        raise ProcessLookupError(errno.ESRCH, "it is not seen")


def end(pid: str, started: str) -> None:
    """Whether a process could be killed; signal 0 is none."""
    _require_visible(pid, started)
    os.kill(int(pid), 0)


def trace(pid: str, started: str) -> None:
    """Stop a process as a debugger does."""
    _require_visible(pid, started)
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    _checked(ptrace(TRACE, int(pid), None, None))
    os.waitpid(int(pid), ANY_CHILD)
    _checked(ptrace(DETACH, int(pid), None, None))


def order(folder: str, *argv: str) -> None:
    """Run a command; it works if it ends with 0, else the exit code says why."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise OSError(f"exit {done.returncode}: {done.stderr.strip()}")


def order_detached(folder: str, *argv: str) -> None:
    """The same in a session of its own, with an empty environment, without its parent."""
    out = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"order-{time.monotonic_ns()}")
    script = 'sleep 0.1; "$@" >&0 2>&0; echo $? >"$0.new"; mv "$0.new" "$0"'
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.execve("/bin/sh", ["sh", "-c", script, out, *argv], {})
        os._exit(0)
    os.wait()
    _await(out)
    with open(out, encoding="ascii") as file:
        code = file.read().strip()
    if code != "0":
        raise OSError(f"exit {code}")


def _await(path: str) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, f"{path} did not come")
        time.sleep(0.01)


def set_crontab(text: str) -> None:
    """Install this crontab: the one that is there."""
    done = subprocess.run(["crontab", "-"], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError((done.stderr.strip() or f"exit {done.returncode}").split("\n")[0])


def await_save(ready: str, go: str) -> None:
    """Have somebody outside save files by a rename, and wait until it is done."""
    os.close(os.open(ready, os.O_WRONLY | os.O_CREAT, 0o600))
    _await(go)


def plant(tree: str, marker: str) -> None:
    """Give the tree a git folder of its own whose programs leave the marker; that is not forbidden, running them is."""
    git = tree + "/.git"
    os.rename(git, git + MOVED)
    for folder in ("/objects", "/refs/heads", "/hooks"):
        os.makedirs(git + folder)
    texts = {"/HEAD": "ref: refs/heads/planted\n", "/config": PLANTED.format(marker=marker)}
    texts["/hooks/post-checkout"] = f"#!/bin/sh\ntouch '{marker}'\n"
    for name, text in texts.items():
        with open(git + name, "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(git + "/hooks/post-checkout", 0o755)
    with open(tree + "/.gitattributes", "w", encoding="utf-8") as file:
        file.write("* filter=planted\n")


def survive(fifo: str, count: str, pause_seconds: str, seconds: str) -> None:
    """Leave processes behind that hold the FIFO open: a daemon, one below a subreaper of its own, and `count` that fork,
    each going on in its child, after a pause. All end by themselves after `seconds`."""
    held = os.open(fifo, os.O_WRONLY)
    os.set_inheritable(held, True)
    until = time.monotonic() + float(seconds)
    _leave(lambda: os.execve("/bin/sleep", ["sleep", seconds], {}))
    _leave(lambda: _reap_own(seconds))
    for _ in range(int(count)):
        _leave(lambda: _run_away(until, float(pause_seconds)))
    os.close(held)
    time.sleep(0.3)


def _leave(body: Callable[[], None]) -> None:
    """Run it in a session of its own, without a parent, deaf to signals that can be ignored."""
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        body()
        os._exit(0)
    os.wait()


def _reap_own(seconds: str) -> None:
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    _leave(lambda: os.execve("/bin/sleep", ["sleep", seconds], {}))
    time.sleep(float(seconds))


def _run_away(until: float, pause_seconds: float) -> None:
    while time.monotonic() < until:
        time.sleep(pause_seconds)
        try:
            if os.fork():
                os._exit(0)
        except OSError:  # no process is to be had at this moment
            time.sleep(0.001)


KINDS: dict[str, Callable[..., int | None]] = {
    "write": write,
    "create": create,
    "move": move,
    "replace": replace,
    "delete": delete,
    "read": read,
    "connect": connect,
    "exchange": exchange,
    "remount": remount,
    "remount as another": remount_as_another,
    "end": end,
    "trace": trace,
    "order": order,
    "order detached": order_detached,
    "crontab": set_crontab,
    "await save": await_save,
    "plant": plant,
    "survive": survive,
}

if __name__ == "__main__":
    main(sys.argv[1])
