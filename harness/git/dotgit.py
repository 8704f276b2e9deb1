"""Operations inside `.git` without a git call: a call costs 2-4 ms, these cost microseconds.

They rely only on gitrepository-layout(5): `.git` may be a file that names the folder, `commondir` names the folder
shared by worktrees; HEAD, index, info/exclude, refs/ and `*.lock`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from harness.state import files

LOCK_SECONDS = 1.0
_known: dict[str, tuple[str, str]] = {}
_real: dict[str, str] = {}


def real(folder: str) -> str:
    """The folder's resolved path, cached, so that a link changed meanwhile cannot redirect the harness's git."""
    if folder not in _real:
        _real[folder] = os.path.realpath(folder)
    return _real[folder]


def know(folder: str, own: str, common: str) -> None:
    """Make `folders` return these for `folder`, regardless of the disk."""
    _known[real(folder)] = own, common


def forget(folder: str) -> None:
    """Make `folders` read the disk again."""
    _known.pop(real(folder), None)
    _real.pop(folder, None)


def folders(project: str) -> tuple[str, str]:
    """(git folder of this working folder, git folder shared by all worktrees), see gitrepository-layout(5)."""
    if _known and (known := _known.get(real(project))):
        return known
    own = os.path.join(project, ".git")
    if os.path.isfile(own):
        link = os.fsdecode(files.read(own) or b"").removeprefix("gitdir: ").rstrip("\n")
        own = os.path.join(project, link)
    common = os.fsdecode(files.read(own + "/commondir") or b"").rstrip("\n")
    return own, os.path.join(own, common) if common else own


def link(path: str, target: str) -> None:
    """Make `path` a link to `target`; a link is replaced, anything else at that path is moved aside."""
    if os.path.islink(path) and os.readlink(path) == target:
        return
    if os.path.lexists(path) and not os.path.islink(path):
        os.rename(path, f"{path}.{os.urandom(4).hex()}.aside")
    files.link(path, target)


def head(project: str) -> bytes:
    """The content of HEAD: `ref: refs/heads/main`, or a commit."""
    return (files.read(folders(project)[0] + "/HEAD") or b"").rstrip(b"\n")


def commit(project: str) -> str:
    """The id of HEAD's commit; "" if there is none."""
    ref = head(project).removeprefix(b"ref: ")
    return commit_of(project, os.fsdecode(ref)) if b"/" in ref else ref.decode()


def commit_of(project: str, ref: str) -> str:
    """The commit id of a ref (full name), from its own file or packed-refs; "" if absent."""
    shared, name = folders(project)[1], os.fsencode(ref)
    own = files.read(os.path.join(shared, ref))
    packed = (files.read(shared + "/packed-refs") or b"").split(b"\n") if own is None else [own]
    found = next(
        (line.split()[0].decode() for line in packed if line.strip() and (own or line.endswith(b" " + name))), ""
    )
    return found if len(found) in (40, 64) and set(found) <= set("0123456789abcdef") else ""


def exclude(project: str, line: str) -> None:
    """Add `line` to the repository's info/exclude, once."""
    path = os.path.join(folders(project)[1], "info", "exclude")
    old = files.read(path) or b""
    new = os.fsencode(line)
    if new not in old.split(b"\n"):
        for left in files.abandoned(os.path.dirname(path)):  # left by a start that was killed before a mission existed
            files.remove(left)
        files.replace(path, old + (b"" if old[-1:] in (b"", b"\n") else b"\n") + new + b"\n")


def copy_index(project: str, target: str) -> None:
    """Copy the index for `work`; without an index the target is removed."""
    index = folders(project)[0] + "/index"
    files.make_folder(os.path.dirname(target))
    try:
        made = os.stat(index).st_mtime_ns
    except FileNotFoundError:
        return files.remove(target)
    files.replace(target, files.read(index) or b"")
    return os.utime(target, ns=(made, made))  # git compares it with file times to detect a change in the same tick


def sync(project: str, *refs: str) -> None:
    """Make HEAD's content and the names of these refs durable: git 2.39 fsyncs neither (seen with strace)."""
    own, common = folders(project)
    for path in dict.fromkeys((own + "/HEAD", own, *(os.path.dirname(os.path.join(common, ref)) for ref in refs))):
        if os.path.exists(path):  # packed refs and reftables have no folder per ref
            files.sync_folder(path)


def ref_locks(project: str, below: str) -> list[str]:
    """Git's lock files of a ref such as `refs/harness/x` and of those below it; a trailing `*` matches a prefix."""
    top = os.path.join(folders(project)[1], below)
    if below.endswith("*"):
        folder, begin = os.path.split(top[:-1])
        found = [os.path.join(folder, name) for name in files.names(folder) if name.startswith(begin)]
    else:
        found = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names] + [top + ".lock"]
    return [path for path in found if path.endswith(".lock") and os.path.exists(path)]


def clear_unheld(project: str, below: Iterable[str]) -> None:
    """Remove stale locks on HEAD, and on refs such as `refs/heads/x` and those below them: a live git holds a lock for
    milliseconds, a killed one leaves it. Waits LOCK_SECONDS if there is one."""
    paths = [
        os.path.join(folders(project)[0], "HEAD.lock"),
        *(path for name in below for path in ref_locks(project, name)),
    ]
    seen = {path: _made(path) for path in paths if os.path.lexists(path)}
    if seen:
        time.sleep(LOCK_SECONDS)
    for path in (path for path, made in seen.items() if _made(path) == made):
        files.remove(path)


def _made(path: str) -> tuple[int, ...]:
    """The identity and modification time of a file; () if it is gone."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns
