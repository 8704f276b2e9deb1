"""Finds secrets that a run would commit: by the rules of `redaction`, in the files that differ from its parent commit.

A certain secret keeps its file out of the commit; a possible one is committed and reported. A secret that is anywhere
in the parent commit is not attributed to the run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from harness.base import redaction
from harness.base.record import Record
from harness.git import repository, settings
from harness.git.checkouts import worktrees
from harness.state import files

MAX_FILE_BYTES = 2 * 1024 * 1024  # of each file, from its start
MAX_TOTAL_BYTES = 32 * 1024 * 1024  # of all files
BINARY_BYTES = 8000  # git checks as many bytes for a NUL
ALLOWED = ("gitleaks:allow", "pragma: allowlist secret")  # markers of other scanners, in the line of the secret
MAX_SHOWN_LINES = 5


class SecretFinding(Record):
    """A secret in a file: its rule and line, whether it is certain, and a part of it on one line, to search for."""

    path: str
    rule: str
    line: int
    certain: bool
    mark: str


class SecretCheck(Record):
    """The tree without files that must stay out. `out`: their paths; `tracked`: those in the parent; `kept_out`: the
    reasons; `doubtful`: possible secrets; `changed`: every path that differs from the parent."""

    tree: str
    out: list[str] = []
    tracked: list[str] = []
    kept_out: list[str] = []
    doubtful: list[str] = []
    changed: list[str] = []


def keep_out(project: str, *, index: str, parent: str, tree: str) -> SecretCheck:
    """Check what `tree` adds to the commit `parent`. `index` is that of the tree, and on return lacks the kept-out files; the
    folder is not touched. 1 call without a secret, else 2 and one per such file, 2 more to keep files out."""
    rows = repository.changed(project, parent, tree)
    changed = {path: letter for letter, path in rows if letter != "D"}
    unread: list[str] = []
    hits = [path for path, data in _read(project, changed, unread) if secrets_in(path, data)]
    committed = ((path, repository.show(project, tree, path) or b"") for path in hits)  # a filter may have encrypted it
    found = _new(project, parent, [one for path, data in committed for one in secrets_in(path, data[:MAX_FILE_BYTES])])
    out = {one.path: one for one in reversed(found) if one.certain}
    left = [one for one in found if one.path not in out]
    lines = [f"{one.path} line {one.line} ({one.rule})" for one in left]
    more = [f"and {len(lines) - MAX_SHOWN_LINES} more"] if len(lines) > MAX_SHOWN_LINES else []
    more += [f"{len(unread)} files that were not checked, such as {unread[0]}"] if unread else []
    return SecretCheck(
        tree=_without(project, index, parent, out) if out else tree,
        out=sorted(out),
        tracked=sorted(path for path in out if changed[path] != "A"),
        kept_out=[f"{path} (line {one.line} holds a secret: {one.rule})" for path, one in sorted(out.items())],
        doubtful=[*lines[:MAX_SHOWN_LINES], *more],
        changed=[path for _, path in rows if path not in out],
    )


def put_back(project: str, index: str, found: SecretCheck) -> None:
    """Restore the kept-out files in the folder from the parent; remove those that it lacks. 1 call if it has any."""
    own = {"GIT_INDEX_FILE": os.path.abspath(index)}
    if found.tracked:
        words = ("checkout-index", "-f", "-u", "-z", "--stdin")
        repository.run(project, *words, stdin=repository.as_input(found.tracked), extra=own)
    for path in found.out:
        if path not in found.tracked:
            worktrees.discard(project, path)


def _read(project: str, paths: Iterable[str], unread: list[str]) -> Iterator[tuple[str, bytes]]:
    """(path, beginning) of the text files among the paths, up to MAX_TOTAL_BYTES; the others are added to `unread`."""
    room = MAX_TOTAL_BYTES
    for path in paths:
        whole = os.path.join(project, path)
        try:
            plain = stat.S_ISREG(os.lstat(whole).st_mode) and os.access(whole, os.R_OK)
        except OSError:  # gone, or its folder was replaced: git took it from the index
            continue
        if plain and room <= 0:
            unread.append(path)
        data = files.read_from(whole, 0, min(MAX_FILE_BYTES, room)) if plain and room > 0 else b""
        room -= len(data)
        if data and b"\0" not in data[:BINARY_BYTES]:
            yield path, data


def secrets_in(path: str, data: bytes) -> list[SecretFinding]:
    """The secrets of a file, except made-up ones and those that their line marks as allowed."""
    text, found = data.decode("utf-8", "replace"), []
    lines = text.split("\n")
    for rule, line, secret in redaction.secrets(text):
        mark = max(secret.split("\n"), key=len).strip("\r")
        if not redaction.is_made_up(mark) and not any(word in lines[line - 1] for word in ALLOWED):
            certain = redaction.is_certain(rule, secret)
            found.append(SecretFinding(path=path, rule=rule, line=line, certain=certain, mark=mark))
    return found


def _new(project: str, parent: str, found: list[SecretFinding]) -> list[SecretFinding]:
    """The secrets that are nowhere in the parent commit. 1 call."""
    if not (parent and found):
        return found
    marks = "".join(f"{one.mark}\n" for one in found).encode()
    code, out, _ = settings.call(project, "grep", "-a", "-h", "-o", "-F", "-f", "-", parent, "--", stdin=marks)
    known = set(out.decode("utf-8", "replace").split("\n")) if code == 0 else set()
    return [one for one in found if not any(one.mark in text for text in known)]


def _without(project: str, index: str, parent: str, paths: Iterable[str]) -> str:
    """The tree with these paths as in the parent; updates the index likewise. 2 calls."""
    own = {"GIT_INDEX_FILE": os.path.abspath(index)}
    words = ("reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul", parent or repository.EMPTY_TREE[40])
    repository.run(project, *words, stdin=repository.as_input(paths), extra=own)
    return repository.run(project, "write-tree", extra=own).decode().strip()
