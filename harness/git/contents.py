"""Reads a commit's files below some paths, and the last change of a path, without a working folder. Calls as in
`repository`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from harness.base.record import Record
from harness.git import repository, settings
from harness.git.repository import GitFailed

LINK = "120000"
SUBMODULE = "commit"
TRAILER = "Harness-Run:"
MERGED = "what a person did there"  # in the message of a merge by the harness


class CommitFile(Record):
    """A file of a commit: git's `mode`, the id of its blob, its length in bytes, 0 if `entries` did not ask."""

    mode: str
    blob: str
    size: int


class PathChange(Record):
    """A commit that changed a path: its parents, whether a run made it, and whether the harness merged it."""

    parents: list[str]
    by_run: bool
    merge_of_ours: bool


def entries(project: str, commit: str, paths: Collection[str], *, sizes: bool = True) -> dict[str, CommitFile]:
    """{path: entry} of the files that are, or lie below, one of `paths`, in git's order. For `sizes` a partial clone fetches
    each file that it lacks, one by one. 1 call, 0 without paths."""
    if not paths or not commit:
        return {}
    words = ("--literal-pathspecs", "ls-tree", "-r", "-z", *["-l"] * sizes, "--full-tree", commit, "--", *paths)
    found: dict[str, CommitFile] = {}
    for row in repository.run(project, *words).split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        mode, kind, blob, *size = about.decode().split()
        if kind != SUBMODULE:
            found[os.fsdecode(path)] = CommitFile(mode=mode, blob=blob, size=int(size[0]) if size else 0)
    return found


def named(project: str, commit: str, name: str, below: str) -> list[str]:
    """The paths of the files of this name in folders below `below`, which is "" or ends with a slash. 1 call."""
    words = ("--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--")
    rows = repository.run(project, *words, *filter(None, [below])).split(b"\0")
    return [os.fsdecode(row) for row in rows if row.endswith(b"/" + os.fsencode(name))]


def blobs(project: str, ids: Iterable[str]) -> dict[str, bytes]:
    """{id: bytes} of these blobs. 1 call, 0 without any."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    out = repository.run(project, "cat-file", "--batch", stdin="".join(f"{one}\n" for one in wanted).encode())
    found, at = dict[str, bytes](), 0
    for one in wanted:
        end = out.index(b"\n", at)
        head = out[at:end].split(b" ")
        if len(head) != 3:
            raise GitFailed(f"git no longer has the blob {one[:12]} in {project}")
        size = int(head[2])
        found[one] = out[end + 1 : end + 1 + size]
        at = end + 2 + size
    return found


def last_change(project: str, commit: str, path: str) -> PathChange | None:
    """The newest commit up to `commit` that changed `path`; None if none did. 1 call."""
    words = ("--literal-pathspecs", "log", "-1", "--format=%P%x00%B", commit, "--", path)
    code, out, err = settings.call(project, *words)
    if code:
        raise repository.failure(project, "log", code, err)
    if not out:
        return None
    parents, _, message = out.decode("utf-8", "replace").partition("\0")
    lines = message.rstrip("\n").split("\n")
    named = parents.split()
    ours = len(named) == 2 and lines[0].startswith("Merge branch '") and lines[-1] == MERGED
    return PathChange(parents=named, by_run=any(line.startswith(TRAILER) for line in lines), merge_of_ours=ours)
