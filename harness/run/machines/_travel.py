"""Data that travels between home and a machine: commits as packs, files of the state, and the returned work."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable

from harness.base import frames
from harness.base.errors import HarnessError, NeedsPerson
from harness.git import dotgit, repository, settings
from harness.git.checkouts import worktrees
from harness.git.repository import GitFailed
from harness.mission.open_run import OpenRun
from harness.run import workspace_inputs
from harness.state import files, names, objects
from harness.state.layout import identity_file, identity_folder
from harness.state.state import State

CHUNK_BYTES = 4 * 1024 * 1024
MAX_WORK_BYTES = 128 * 1024 * 1024  # of what a run changes, packed
LEFT = (names.STREAM, names.STDERR, names.REFUSED, names.INBOX)
RECORDS = (names.TURNS, names.RESULTS, names.TASKS)  # of the built-in agent, which come back
UNSENT = (names.GIT_RECORD, names.ARCHIVE)
IDENTITY = "identity"  # the name under which a role's identity travels
SUBMODULE, LARGE = "160000", b"filter=lfs"
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class ResultRefused(HarnessError):
    """The result of a machine is not what a run may return; the message is one line."""


def compress(found: dict[str, bytes]) -> bytes:
    """Files by name, compressed."""
    return zlib.compress(frames.pack(found))


def decompress(data: bytes) -> dict[str, bytes]:
    """The inverse of `compress`, for data from home."""
    return dict(frames.unpack(zlib.decompress(data)))


def pack_commit(project: str, commit: str, known: Iterable[str]) -> bytes:
    """A pack of the objects of a commit, without those of the `known` commits. 1 call; 1 more for each known commit."""
    there = [one for one in known if COMMIT.fullmatch(one) and not settings.call(project, "cat-file", "-e", one)[0]]
    words = "".join(f"{line}\n" for line in (commit, *(f"^{one}" for one in there)))
    return repository.run(
        project, "pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "-q", stdin=words.encode()
    )


def store_pack(project: str, data: bytes, *more: str) -> None:
    """Store the objects of a pack; raises GitFailed. 1 call."""
    repository.run(project, "index-pack", "--stdin", "--fix-thin", *more, stdin=data)


def require_portable(project: str, commit: str) -> None:
    """Raise NeedsPerson if the commit has submodules or LFS objects, which do not travel. 1 call; 1 more for attributes."""
    found, attributes = [], []
    for line in repository.run(project, "ls-tree", "-r", "-z", commit).split(b"\0")[:-1]:
        about, _, path = os.fsdecode(line).partition("\t")
        found += [path] if about.startswith(SUBMODULE) else []
        attributes += [path] if os.path.basename(path) == ".gitattributes" else []
    found += [path for path in attributes if LARGE in (repository.show(project, commit, path) or b"")]
    if found:
        raise NeedsPerson(
            f"Submodules and LFS objects do not travel to other machines: {', '.join(found[:3])}. Leave out --on to work here."
        )


def state_files(run: OpenRun, prompt: str = "") -> dict[str, bytes]:
    """{name: bytes} of the mission's state that an agent of the run may read: the present files, and those of this run and of
    the runs that the prompt names."""
    state, found = State(run.layout), dict[str, bytes | None]()
    for name in (*names.MANAGED, *names.APPEND_ONLY, names.RAW, names.STEER, names.REPOSITORY):
        found[name] = None if name in UNSENT else state.data(name)
    for one in {run.id, *re.findall(rf"/{names.RUNS}/([\w.-]+)/", prompt)}:
        folder = run.layout.run(one).folder
        for name in (name for name in files.names(folder) if name not in (*LEFT, *RECORDS)):
            path = os.path.join(folder, name)
            found[names.of_run(one, name)] = files.read(path) if os.path.isfile(path) else None
    given = workspace_inputs.kept_of(run.layout, run.id)
    for name in {name for skill in given.skills for name in (skill.object, *skill.kept.values())} if given else ():
        path = objects.path_of(run.layout, name)
        found[os.path.relpath(path, run.layout.state)] = files.read(path)
    found[IDENTITY] = files.read(identity_file(identity_folder(), run.role.name))
    return {name: data for name, data in found.items() if data is not None}


def carried_files(run: OpenRun) -> dict[str, tuple[int, bytes]]:
    """{name: (mode, bytes)} of the ignored files that config.toml carries into trees, as far as they are in the run's."""
    paths = {name: os.path.join(run.workplace, name) for name in run.settings.carry}
    found = {name: path for name, path in paths.items() if os.path.isfile(path)}
    return {name: (os.stat(path).st_mode & 0o777, files.read(path) or b"") for name, path in found.items()}


def shallow(project: str) -> bytes:
    """The commits at which the history of a shallow repository ends, as git keeps them."""
    return files.read(os.path.join(dotgit.folders(project)[1], "shallow")) or b""


def apply_work(run: OpenRun, work: str, data: bytes) -> None:
    """Give the run's own tree the files of the commit `work`, whose objects a machine has sent. Nothing has changed after
    ResultRefused: for what is no commit on the run's, or has paths that no tree may have."""
    top, head = run.layout.folders.top, run.context.head
    if not COMMIT.fullmatch(work):
        raise ResultRefused(f"{work[:80]!r} is no commit")
    if len(data) > MAX_WORK_BYTES:
        raise ResultRefused(f"its changes are more than {MAX_WORK_BYTES:,} bytes, packed")
    try:
        store_pack(top, data, "--strict", f"--max-input-size={MAX_WORK_BYTES}")
        said = repository.run(top, "rev-list", "--parents", "--no-walk", work).decode().split()
        if said != [work, head]:
            raise ResultRefused("it rewrites the history: its work is no commit on that of the run")
        for _, path in repository.changed(top, head, work):
            parts, ours = path.lower().split("/"), f"{run.layout.folders.prefix}.harness/"  # "" begins an absolute path
            if not {"", ".", "..", ".git"}.isdisjoint(parts) or f"{path}/".startswith(ours):
                raise ResultRefused(f"it changes {path!r}, which is no path of the tree")
        worktrees.lay(run.checkout, work)
    except GitFailed as fault:
        raise ResultRefused(f"git does not take its objects: {' '.join(str(fault).split())[:300]}") from None


def keep_records(run: OpenRun, found: dict[str, bytes]) -> None:
    """Keep the records of the built-in agent that came back, in the folder of the run."""
    for name, data in found.items():
        parts = name.split("/")
        whole = len(parts) == 1 if parts[0] == names.TURNS else len(parts) > 1
        if parts[0] not in RECORDS or not {"", ".", ".."}.isdisjoint(parts) or not whole:
            raise ResultRefused(f"it sends the record {name!r}, which no run has")
        State(run.layout).put(names.of_run(run.id, name), data, mode=files.PRIVATE)


def read_records(folder: str) -> dict[str, bytes]:
    """{name: bytes} of the records of the built-in agent in the folder of a run."""
    found = {}
    for top, _, there in os.walk(folder):
        for path in (os.path.join(top, name) for name in there):
            name = os.path.relpath(path, folder)
            if name.split("/")[0] in RECORDS and os.path.isfile(path) and not os.path.islink(path):
                found[name] = files.read(path) or b""
    return found
