"""All git calls of the harness: the repository's state, the working folder as a tree, commits and refs.

A call costs 2-4 ms, so each docstring states the number of calls. Calls run no hook, sign nothing, never prompt, use no
pager, and make their writes durable (see `settings`). They do not inherit GIT_* variables. `project` is the top level
of the repository. Names are `str` as from `os.fsdecode`, commits are full ids, and "" means "no commit yet". Every
function raises GitFailed with git's own message when git fails.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from harness.base.errors import NeedsPerson
from harness.base.record import Record
from harness.git import dotgit, settings
from harness.git.checkouts import commit_excludes
from harness.state import files

AUTHOR = ("harness", "harness@localhost")
EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
BRANCHES, BRANCH = "refs/heads/", "main"
WHOLE = 1_000_000  # lines of context: whole files


class GitFailed(NeedsPerson):
    """Git refused; the message holds its last lines."""


class Position(Record):
    """The position of the repository: HEAD's commit and tree ids ("" before the first commit), branch ("" = detached)."""

    head: str
    branch: str
    tree: str


class RepositoryState(Record):
    """The position of the repository, tracked files that differ from HEAD, and untracked files that are not ignored."""

    standing: Position
    dirty: list[str]
    untracked: list[str]


class WorkingTree(Record):
    """The working folder as a tree id; the files left out of it, each as `path (reason)`; files of `leave` that differ."""

    tree: str
    kept_out: list[str]
    left: list[str] = []


class _Status(Record):
    """Parsed `git status`: `tracked` holds (XY, path); `.` in XY means unchanged, a conflict is UM."""

    head: str = ""
    branch: str = ""
    tracked: list[tuple[str, str]] = []
    untracked: list[str] = []


def run(project: str, *args: str, stdin: bytes = b"", extra: Mapping[str, str] = {}) -> bytes:
    """The stdout of one git call that must succeed. 1 call."""
    code, out, err = settings.call(project, *args, stdin=stdin, extra=extra)
    if code:
        raise failure(project, args[0], code, err)
    return out


def failure(project: str, verb: str, code: int, err: bytes) -> GitFailed:
    """A GitFailed with git's message on one line, for the caller to raise."""
    message = " ".join(line.strip() for line in err.decode("utf-8", "replace").split("\n")[-9:] if line.strip())
    return GitFailed(f"git {verb} failed in {project} (exit {code}): {message or 'it printed nothing'}")


def _line(project: str, *args: str, extra: Mapping[str, str] = {}) -> str:
    return run(project, *args, extra=extra).decode("utf-8", "replace").rstrip("\n")


def _listed(out: bytes) -> list[str]:
    """The names in NUL-separated output."""
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def as_input(paths: Iterable[str]) -> bytes:
    """Names in git's -z format: literal, with any characters."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def init(project: str) -> None:
    """Create a repository on the branch main. 1 call."""
    run(project, "init", "-q", "-b", BRANCH, "--template=")


def _status(project: str, untracked: str = "all", extra: Mapping[str, str] = {}) -> _Status:
    """Run `git status`. 1 call. Submodules count by their gitlink, not by their checkout."""
    words = ("--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames", "--ignore-submodules=all")
    found = _Status()
    for entry in run(project, "status", *words, f"--untracked-files={untracked}", extra=extra).split(b"\0")[:-1]:
        kind, _, rest = entry.partition(b" ")
        if kind == b"?":
            found.untracked.append(os.fsdecode(rest))
        elif kind == b"#":
            _header(project, found, os.fsdecode(rest))
        else:
            fields = rest.split(b" ", 9 if kind == b"u" else 7)
            found.tracked.append(("UM" if kind == b"u" else fields[0].decode(), os.fsdecode(fields[-1])))
    state = _state_of(project)
    found.untracked = [name for name in found.untracked if name != state and not name.startswith(state + "/")]
    return found


def _state_of(project: str) -> str:
    """The name of the mission's state."""
    return settings.prefix(project) + commit_excludes.STATE


def _header(project: str, found: _Status, line: str) -> None:
    key, _, value = line.partition(" ")
    if key == "branch.oid":
        found.head = "" if value == "(initial)" else value
    elif key == "branch.head":
        found.branch = "" if value == "(detached)" else value
        if value == "(unknown)":
            raise GitFailed(f"HEAD in {project} names a broken branch: see `git fsck`. Or take one: `git switch NAME`.")


def position(project: str) -> Position:
    """HEAD's commit, branch and tree. 1 call, 2 before the first commit."""
    code, out, _ = settings.call(project, "rev-parse", "HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD")
    if code:  # a damaged branch file fails here too, and again in the next call
        return Position(head="", branch=_line(project, "symbolic-ref", "--short", "HEAD"), tree="")
    head, tree, name = os.fsdecode(out).split("\n")[:3]
    return Position(head=head, branch="" if name == "HEAD" else name.removeprefix(BRANCHES), tree=tree)


def state(project: str) -> RepositoryState:
    """The whole state of the repository at open. 2 calls."""
    now = _status(project)
    where = Position(head=now.head, branch=now.branch, tree=tree_of(project, now.head))
    return RepositoryState(standing=where, dirty=[path for _, path in now.tracked], untracked=now.untracked)


def dirty(project: str) -> list[str]:
    """Tracked files that differ from HEAD, in the index or in the working folder; with conflicts. 1 call."""
    return [path for _, path in _status(project, "no").tracked]


def hidden(project: str) -> list[str]:
    """Tracked files that a person's git takes for unchanged, whatever they hold (`git update-index`). 1 call."""
    return [row[2:] for row in _listed(run(project, "ls-files", "-v", "-z")) if row[0] == "S" or row[0].islower()]


def edited(project: str) -> list[str]:
    """`dirty`, and untracked files that are not ignored; a folder without tracked files appears as `dir/`. 1 call."""
    now = _status(project, "normal")
    return [*(path for _, path in now.tracked), *now.untracked]


def untracked(project: str) -> list[str]:
    """Untracked files that are not ignored; a nested repository appears as `dir/`. 1 call."""
    return _status(project).untracked


def survey(project: str, extra: Mapping[str, str]) -> tuple[bool, list[str]]:
    """(whether the index that `extra` names and the folder's tracked files match HEAD, `untracked`). 1 call."""
    now = _status(project, extra=extra)
    return not now.tracked, now.untracked


def default_branch(project: str) -> str | None:
    """The default branch of the repository; None when unknown. 1 call, 2 without origin/HEAD.

    origin's HEAD, else init.defaultBranch, `main` or `master`, the first that exists, else the only branch there is.
    """
    refs = _line(project, "for-each-ref", "--format=%(refname) %(symref)", BRANCHES, "refs/remotes/origin/HEAD")
    targets = dict(line.split(" ") for line in refs.split("\n") if line)
    if remote := targets.pop("refs/remotes/origin/HEAD", ""):
        return remote.removeprefix("refs/remotes/origin/")
    named = settings.call(project, "config", "--get", "init.defaultBranch")[1].decode("utf-8", "replace").strip()
    for name in (named, "main", "master"):
        if BRANCHES + name in targets:
            return name
    return next(iter(targets)).removeprefix(BRANCHES) if len(targets) == 1 else None


def switch_new(project: str, branch: str) -> None:
    """Create `branch` at HEAD and check it out; no file changes. GitFailed if it exists. 1 call."""
    dotgit.clear_unheld(project, [BRANCHES + branch.partition("/")[0]])  # locks of a killed start
    run(project, "switch", "-q", "--no-track", "-c", branch)
    dotgit.sync(project, BRANCHES + branch)


def working_tree(project: str, *, index: str, parent: str, leave: Collection[str]) -> WorkingTree:
    """The working folder as a tree: all tracked files, and new files except `leave` and the commit excludes.

    `index` is the copy from the start of the run, so the agent's staging does not count; a lost copy is rebuilt from
    `parent`. The same rules apply to files that the agent committed, even ignored ones. `leave`: a person's files,
    untracked ones as returned by `untracked`; a tracked one stays as in the index, like the state of a mission. 2-4
    calls, one more for a lost index.
    """
    own = {"GIT_INDEX_FILE": os.path.abspath(index)}
    files.remove(own["GIT_INDEX_FILE"] + ".lock")  # left by a killed git call; nothing else uses this index
    if parent and not os.path.exists(index):
        run(project, "read-tree", parent, extra=own)
        _skip_missing(project, own)
    now = _status(project, extra=own)
    left = [path for path in (*(path for _, path in now.tracked), *now.untracked) if path in leave]
    rows = [(xy, path) for xy, path in now.tracked if commit_excludes.state_in(path)]
    mine, state = [path for xy, path in rows if xy[1] != "."], _state_of(project)
    now.tracked = [(xy, path) for xy, path in now.tracked if path not in leave and (xy, path) not in rows]
    committed = [path for xy, path in [*now.tracked, *rows] if xy == "D." and commit_excludes.is_file(project, path)]
    new = sorted({*now.untracked, *committed})
    # These are folders, so no file replaces them.
    above = {path[:at] for path in mine for at, letter in enumerate(path) if letter == "/"}
    new, kept_out = commit_excludes.split_new_files(project, new, {*leave, *above}, state)
    kept_out += [f"{path} ({commit_excludes.OF_MISSION})" for path in mine if not path.startswith(state + "/")]
    _stage(project, now, new, own)
    return WorkingTree(tree=_line(project, "write-tree", extra=own), kept_out=kept_out, left=left)


def _skip_missing(project: str, extra: Mapping[str, str]) -> None:
    """Keep the files outside a sparse checkout, which a rebuilt index treats as deleted. 0 calls, 2 if sparse."""
    if settings.options(project):
        missing = run(project, "ls-files", "-z", "--deleted", extra=extra)
        run(project, "update-index", "--skip-worktree", "-z", "--stdin", stdin=missing, extra=extra)


def stage_tracked(project: str, extra: Mapping[str, str], below: str) -> list[tuple[str, bytes]]:
    """Stage the tracked files below a prefix, as they are in the folder, in the index that `extra` names. Returns those
    that differ from HEAD: (path, row for `git update-index --index-info`). 2-4 calls."""
    now = _status(project, "no", extra=extra)
    now.tracked = [(xy, path) for xy, path in now.tracked if path.startswith(below)]
    _stage(project, now, [], extra)
    words = ("diff-index", "--cached", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none", "-z", "HEAD")
    said = run(project, *words, "--", *filter(None, [below]), extra=extra).split(b"\0")[:-1]
    rows = [(row.split(b" "), path) for row, path in zip(said[::2], said[1::2], strict=True)]
    rows.sort(key=lambda row: row[0][1] != b"000000")  # a file may replace a folder
    return [(os.fsdecode(path), b"%b %b 0\t%b" % (row[1], row[3], path)) for row, path in rows]


def _stage(project: str, now: _Status, new: list[str], extra: Mapping[str, str]) -> None:
    gone = [path for xy, path in now.tracked if xy[1] == "D"]
    take = [path for xy, path in now.tracked if xy[1] not in ".D"]
    if gone:  # forced: git refuses the name of a file whose folder became a symbolic link
        run(project, "update-index", "--force-remove", "-z", "--stdin", stdin=as_input(gone), extra=extra)
    if take or new:
        run(project, "update-index", "--add", "--remove", "-z", "--stdin", stdin=as_input([*take, *new]), extra=extra)


def commit(project: str, *, tree: str, parent: str, branch: str, message: str, at: str | None = None) -> str:
    """Commit `tree` on `branch`, replacing its position; check the branch out and update the index.

    `at` is the expected position of the branch ("" = it must not exist), by default the present one. An unfinished merge of
    the agent is dropped; no file changes; everything is durable on return. Returns the commit id. 4 calls: one less with
    `at`, one more without a configured author, one more if HEAD is elsewhere.
    """
    ref = BRANCHES + branch
    if at is None:
        at = settings.call(project, "rev-parse", "-q", "--verify", ref)[1].decode().strip()
    made = commit_tree(project, tree, [parent] if parent else [], message.replace("\0", "").rstrip("\n") + "\n")
    run(project, "update-ref", "-m", "harness: commit", ref, made, at)
    check_out(project, branch)
    run(project, "reset", "-q", "--mixed", made, "--")
    dotgit.sync(project, ref)
    return made


def commit_tree(project: str, tree: str, parents: Collection[str], message: str, person: Mapping[str, str] = {}) -> str:
    """Create a commit object by `person` (git's variables), the configured author, or else the harness. 1-2 calls."""
    words = ("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)), "-F", "-")
    text = message.encode("utf-8", "replace")
    code, out, err = settings.call(project, *words, stdin=text, extra=person)
    if code and b"ident" in err:
        ours = {f"GIT_{name}": value for name, value in zip(settings.PERSONS, AUTHOR * 2, strict=True)}
        out = run(project, *words, stdin=text, extra={**ours, **person})
    elif code:
        raise failure(project, words[0], code, err)
    return out.decode().strip()


def check_out(project: str, branch: str) -> None:
    """Point HEAD at `branch`; nothing else changes. 0 calls if it already does."""
    if dotgit.head(project) != f"ref: {BRANCHES}{branch}".encode():
        dotgit.clear_unheld(project, ())
        run(project, "symbolic-ref", "-m", "harness: back to the branch", "HEAD", BRANCHES + branch)


def delete_ref(project: str, ref: str) -> None:
    """Delete `ref` (full name); ignores an absent one. 1 call."""
    run(project, "update-ref", "-d", ref)


def _span(old: str, new: str) -> str:
    return f"{old}..{new}" if old else new


def messages_between(project: str, old: str, new: str) -> list[str]:
    """The full messages of the commits in `new` and not in `old`, oldest first. 1 call."""
    out = run(project, "log", "--reverse", "-z", "--format=%B", _span(old, new), "--")
    return [text.decode("utf-8", "replace").strip("\n") for text in out.split(b"\0") if text]


def log_lines(project: str, old: str, new: str) -> list[str]:
    """`abcdef1 subject` of the commits in `new` and not in `old`, newest first. 1 call."""
    out = _line(project, "log", "--abbrev=7", "--format=%h %s", _span(old, new), "--")
    return out.split("\n") if out else []


def diff_stat(project: str, old: str, new: str) -> str:
    """`git diff --stat` from `old` to `new` (commits or trees). 1 call."""
    return diff(project, old, new, "--stat=100").decode("utf-8", "replace").rstrip("\n")


def diff(project: str, old: str, new: str, form: str) -> bytes:
    """The differences from `old` to `new` (commits or trees), with renames, as git's option `form` shows them, such as
    `--stat=100` or `--patch`. 1 call."""
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
    return run(project, "diff-tree", "-r", "-M", *plain, form, old or EMPTY_TREE[len(new)], new)


def changed(project: str, old: str, new: str) -> list[tuple[str, str]]:
    """(status letter A M D T, path) of every file that differs between `old` and `new`; a rename is D and A. 1 call."""
    words = ("diff-tree", "-r", "-z", "--no-renames", "--name-status")
    out = _listed(run(project, *words, old or EMPTY_TREE[len(new)], new))
    return list(zip(out[::2], out[1::2], strict=True))


def patch_between(project: str, old: str, new: str) -> bytes:
    """The unified diff of two commits with whole files as context, and a rename as a deletion and an addition.
    Attributes cannot hide a file's lines. 1 call."""
    plain = ("--no-ext-diff", "--no-textconv", "--text", "--no-color", "--no-renames", "--submodule=short")
    words = (*plain, "--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/", f"--unified={WHOLE}")
    return run(project, "diff", *words, old, new, "--")


def patch(project: str, old: str) -> bytes:
    """The tracked files of the working folder against the commit `old`, as a patch for `git apply`. 1 call."""
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")
    words = ("--binary", "--full-index", "--ignore-submodules=all", *plain)
    return run(project, "diff", *words, old or EMPTY_TREE[40], "--")


def tree_of(project: str, commit: str) -> str:
    """The tree id of `commit`; "" for none. 1 call."""
    return _line(project, "rev-parse", "--verify", commit + "^{tree}") if commit else ""


def commit_of(project: str, name: str) -> str:
    """The id of the commit that `name` (an id, a branch, a tag, HEAD^) means. 1 call."""
    return _line(project, "rev-parse", "--verify", name + "^{commit}")


def show(project: str, commit: str, path: str) -> bytes | None:
    """The file in `commit`, None if it is absent. 1 call, 2 for an absent file."""
    code, out, err = settings.call(project, "cat-file", "blob", f"{commit}:{path}")
    if code and b" blob " in run(project, "ls-tree", "-z", commit, "--", path):
        raise failure(project, "cat-file", code, err)
    return None if code else out


def not_in_index(project: str) -> list[str]:
    """Files in the working folder and not in the index, ignored or not, whole folders as "dir/". 1 call."""
    names = _listed(run(project, "ls-files", "-z", "--others", "--directory"))
    return [name for name in names if name.rstrip("/") != _state_of(project)]  # a link in the harness's trees


def defined_names(project: str, found: list[str]) -> set[str]:
    """The subset of names that the tracked code defines, as a function, class, type, constant or variable. 1 call."""
    plain = [name for name in found if name.replace("_", "").isalnum() and len(name) > 3]
    if not plain:
        return set()
    kinds = "def|class|function|func|fn|type|struct|interface|enum|const|let|var|trait|module"
    pattern = rf"({kinds})[[:space:]]+({'|'.join(plain)})\b"
    _, out, _ = settings.call(project, "grep", "-h", "-o", "-i", "-I", "-E", "-e", pattern)  # exit code 1: no match
    return {line.split()[-1].decode("utf-8", "replace").lower() for line in out.split(b"\n") if line.strip()}


def other_names(project: str, most: int) -> list[str]:
    """At most `most` files that are neither tracked nor ignored, listed individually also in new folders. 1 call."""
    names, ours = _listed(run(project, "ls-files", "-z", "--others", "--exclude-standard")), _state_of(project) + "/"
    return [name for name in names if not name.startswith(ours)][:most]


def tracked_names(project: str) -> list[str]:
    """Every path in the index, sorted by its bytes. 1 call."""
    return _listed(run(project, "ls-files", "-z", "--deduplicate"))
