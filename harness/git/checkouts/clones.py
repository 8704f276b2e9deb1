"""Fresh clones: a commit as another machine would get it, with its own git folder and nothing local.

`git clone --no-local` reads from a *door*: a git folder beside the clone with only the project's objects, branches and
tags. So the clone has no replaced objects, grafts, attributes, filters, hooks or settings of the project's own git
folder, and every object is hashed again. 50,000 files take 30 s on a slow disk. A partial clone cannot be cloned over
git's protocol and stay partial: its clone gets a copy of the present objects. If the person's checkout is sparse, so is
the clone. A repository for a replay only borrows the project's objects: it has no remote, and writes its own.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from harness.git import dotgit, repository, settings
from harness.git.checkouts import _rendering, _sparse
from harness.git.settings import RecordedSettings
from harness.state import files

SAFE = '[safe]\n\tdirectory = *\n[core]\n\tattributesFile = "{attributes}"\n'
FORMAT = ("core.repositoryformatversion", "extensions.objectformat", "extensions.partialclone")
PROMISES = ("extensions.partialclone", ".promisor")  # either means that objects may be missing locally
WHATEVER = ("--binary", "--full-index")  # for any file content
UNKNOWN = "the-repository"
WEEK = 7 * 24 * 3600
WORDS = ("--no-local", "--no-checkout", "--no-reject-shallow", "--origin=origin", "--template=")


def configuration(recorded: RecordedSettings, home: str) -> str:
    """Write the person's recorded configuration, with attributes files, as `.gitconfig` in this HOME layer; returns its
    path."""
    config, attributes = os.path.join(home, ".gitconfig"), os.path.join(home, ".gitattributes")
    files.replace_quickly(attributes, os.fsencode(recorded.attributes))
    text = _rendering.rendered(recorded.persons) + SAFE.format(attributes=_rendering.escaped(attributes))
    files.replace_quickly(config, os.fsencode(text))
    return config


@contextmanager
def persons(recorded: RecordedSettings, beside: str) -> Iterator[str]:
    """The person's recorded configuration with credentials, for the duration of a clone; hidden from runs."""
    folder = beside + ".git-config"
    try:
        yield configuration(recorded, folder)
    finally:
        shutil.rmtree(folder)


def part(path: str, folder: str, kept: Callable[[list[list[str | None]]], list[list[str | None]]]) -> bytes:
    """A configuration file filtered by `kept`, a function of (key, value or None) pairs; includes for the repository in
    `folder` are resolved. b"" if git cannot read it. 1 call."""
    _, out, _ = settings.call(folder, "config", "--file", path, "--includes", "--list", "-z")
    pairs = (pair.partition("\n") for pair in os.fsdecode(out).split("\0")[:-1])
    return os.fsencode(_rendering.rendered(kept([[key, value if found else None] for key, found, value in pairs])))


def make(
    project: str,
    target: str,
    commit: str,
    recorded: RecordedSettings,
    config: str,
    below: str = "",
    refs: Mapping[str, str] | None = None,
    branch: str = "",
) -> None:
    """Clone `project` into `target` at `commit`, on this `branch` or detached, with only the configuration file `config`;
    creates the folder `below` in it if the commit lacks it. `refs`: {ref: commit} to clone, by default branches and tags. Its
    remote is that of the recorded project. Filters of the person's own configuration run. Raises GitFailed. 4 calls.
    """
    if any(str(key).endswith(PROMISES) for key, _ in recorded.config):
        _open(project, os.path.join(target, ".git"), commit, recorded, refs)
        _own_objects(project, os.path.join(target, ".git"))
    else:
        _clone(project, target, commit, recorded, config, refs)
    found = _sparse.of(project, recorded.head, commit)
    if found:
        _sparse.lay(os.path.join(target, ".git"), found)
    large, theirs = os.path.join(target, ".git", "lfs"), os.path.join(dotgit.folders(project)[1], "lfs")
    if os.path.isdir(theirs):  # git-lfs files that may not be on a server yet; its filter reads them there
        files.link(large, os.path.abspath(theirs))
    where = ("-C", branch) if branch else ("--detach",)
    _call(target, config, *_sparse.options(found), "switch", "-q", *where, commit)
    if os.path.islink(large):
        files.remove(large)
    files.make_folder(os.path.join(target, below).rstrip("/"))


def _clone(
    project: str, target: str, commit: str, recorded: RecordedSettings, config: str, refs: Mapping[str, str] | None
) -> None:
    """Run `git clone` from a door, with the project's remote. 3 calls."""
    door, above = target + ".git-source", os.path.dirname(target)
    _open(project, door, commit, recorded, refs)
    ours = ("-c", "remote.origin.fetch=+refs/harness/*:refs/harness/*") if refs is not None else ()
    _call(above, config, "-c", "protocol.file.allow=always", "clone", "-q", *WORDS, *ours, door, target)
    remote = next((value for key, value in recorded.config if key == "remote.origin.url" and value), "")
    _call(target, config, "config", "remote.origin.url", remote or UNKNOWN)


def _own_objects(project: str, git_dir: str) -> None:
    """Give the git folder a copy of the project's objects, since programs in a clone may write to them."""
    files.remove(os.path.join(git_dir, "objects"))
    shutil.copytree(os.path.join(dotgit.folders(project)[1], "objects"), os.path.join(git_dir, "objects"))


def _open(project: str, door: str, commit: str, recorded: RecordedSettings, refs: Mapping[str, str] | None) -> None:
    """Make the git folder that is cloned, or that becomes the clone's own."""
    common = dotgit.folders(project)[1]
    if refs is None:
        listed = repository.run(project, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
    else:
        listed = b"".join(f"{refs[name]} {name}\n".encode() for name in sorted(refs))
    files.make_folder(os.path.join(door, "refs"))
    files.link(os.path.join(door, "objects"), os.path.abspath(os.path.join(common, "objects")))
    kept = [pair for pair in recorded.config if pair[0] in FORMAT or str(pair[0]).startswith("remote.")]
    texts = {"HEAD": commit.encode() + b"\n", "packed-refs": listed, "config": _rendering.rendered(kept).encode()}
    shallow = files.read(os.path.join(common, "shallow"))
    for name, data in {**texts, **({"shallow": shallow} if shallow else {})}.items():
        files.replace_quickly(os.path.join(door, name), data)


def _call(folder: str, config: str, *args: str) -> None:
    code, _, err = settings.alone(folder, config, *args)
    if code:
        verb = next((word for word in args if word in ("clone", "config", "switch")), args[0])
        raise repository.failure(folder, verb, code, err)


def date_back(clone: str, config: str, remote: str) -> None:
    """Backdate the clone by a week; its remote is `remote` if the project has none. 2-3 calls."""
    if settings.alone(clone, config, "config", "remote.origin.url")[1].decode().strip() in ("", UNKNOWN):
        _call(clone, config, "config", "remote.origin.url", remote)
    then = time.time() - WEEK
    _date(clone, then)
    _call(clone, config, "update-index", "-q", "--refresh")
    _date(os.path.join(clone, ".git"), then + 1)  # the index is newer than its files


def _date(folder: str, then: float) -> None:
    for top, _, names in os.walk(folder, topdown=False):
        for name in (*names, "."):
            os.utime(os.path.join(top, name), (then, then), follow_symlinks=False)


def naming(clone: str, config: str, texts: Iterable[str]) -> list[str]:
    """The tracked files of the clone that contain one of these texts. 1 call."""
    words = [word for text in texts for word in ("-e", text)]
    code, out, err = settings.alone(
        clone, config, "grep", "-l", "-z", "-a", "-F", "--no-textconv", *words, "HEAD", "--"
    )
    if code > 1:
        raise repository.failure(clone, "grep", code, err)
    return [name.removeprefix("HEAD:") for name in os.fsdecode(out).split("\0") if name]


def local(project: str, recorded: RecordedSettings) -> list[str]:
    """The parts of the repository's git folder that affect files or commits, and are not cloned. 1 call."""
    common = dotgit.folders(project)[1]
    found = [f"info/{name}" for name in ("attributes", "grafts") if files.read(os.path.join(common, "info", name))]
    found += ["refs/replace"] * bool(repository.run(project, "for-each-ref", "--count=1", "refs/replace"))
    keys = [str(key) for key, value in recorded.config if [key, value] not in (recorded.persons)]
    return [*found, *dict.fromkeys(key for key in keys if key.startswith("filter."))]


def borrow(project: str, target: str, branch: str, commit: str) -> None:
    """Make `target` a separate repository with the branch checked out at `commit`, which reads the objects of `project`
    in place and never writes there. 4 calls."""
    common = dotgit.folders(project)[1]
    files.make_folder(target)
    form = "sha256" if len(commit) == 64 else "sha1"
    repository.run(target, "init", "-q", "-b", branch, "--template=", f"--object-format={form}")
    files.replace_quickly(target + "/.git" + settings.ALTERNATES, os.fsencode(os.path.realpath(common)) + b"/objects\n")
    if shallow := files.read(os.path.join(common, "shallow")):
        files.replace_quickly(target + "/.git/shallow", shallow)
    move(target, commit)


def move(project: str, commit: str) -> None:
    """Reset the checked-out branch and its files to `commit`. 1 call."""
    repository.run(project, "reset", "-q", "--hard", commit)


def check_out(project: str, branch: str) -> None:
    """Check out another branch, overwriting files. 2 calls."""
    repository.run(project, "symbolic-ref", "HEAD", repository.BRANCHES + branch)
    move(project, "HEAD")


def patch(project: str, old: str, new: str, *more: str) -> bytes:
    """The difference between two commits or trees as a unified diff; with WHATEVER for `git apply`. 1 call."""
    words = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
    return repository.run(project, "diff", *words, *more, old, new, "--")


def between(project: str, known: Iterable[str], commit: str) -> list[list[str]]:
    """[commit, its parents …] of the commits reachable from `commit` and from none of `known`, oldest first. 1 call."""
    words = "".join(f"{name}\n" for name in (commit, *(f"^{one}" for one in known)))
    out = repository.run(project, "rev-list", "--topo-order", "--reverse", "--parents", "--stdin", stdin=words.encode())
    return [line.split(" ") for line in out.decode().split("\n") if line]


def copy(project: str, commit: str, parents: Iterable[str]) -> str:
    """Copy a commit with other parents, without its signature; returns the new id. 2 calls."""
    head, _, message = repository.run(project, "cat-file", "commit", commit).partition(b"\n\n")
    kept: list[bytes] = []
    skipped = False
    for line in head.split(b"\n"):
        skipped = line.startswith((b"gpgsig", b"parent ")) or (skipped and line.startswith(b" "))
        kept += [] if skipped else [line]
    kept[1:1] = [b"parent " + name.encode() for name in parents]
    data = b"\n".join(kept) + b"\n\n" + message
    return repository.run(project, "hash-object", "-t", "commit", "-w", "--stdin", stdin=data).decode().strip()
