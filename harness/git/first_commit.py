"""The repository of a mission: the one that contains its folder, or a new one with its first commit."""

from __future__ import annotations

import os

from harness.base.errors import Unavailable, UsageFault
from harness.git import repository, settings
from harness.state.layout import repository_of

OLDEST = (2, 38)


def require(folder: str) -> None:
    """Check that a repository can hold the work of `folder`: its own, or one above it that neither ignores it nor is
    the home folder's. Raises UsageFault, or Unavailable without git. 0 calls at the top of a repository, else 2."""
    if os.path.lexists(os.path.join(folder, ".git")):
        return
    code, out, err = settings.call(folder, "rev-parse", "--show-toplevel", extra={"GIT_CEILING_DIRECTORIES": ""})
    if b"not a git repository" in err:
        raise UsageFault(f"{folder} is not a git repository. Run `git init` there, then start again.")
    if code:
        raise repository.failure(folder, "rev-parse", code, err)
    top, real = os.fsdecode(out).rstrip("\n"), os.path.realpath(folder)
    ignored = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore refuses to be literal
    if top == os.path.realpath(os.path.expanduser("~")):
        why = f"lies inside the repository of your home, {top}"
    elif top != repository_of(folder):
        why = f"lies inside {repository_of(folder)}, whose .git is not a repository"
    elif (
        settings.call(top, "check-ignore", "-z", "--stdin", stdin=repository.as_input([real + "/"]), extra=ignored)[0]
        == 0
    ):
        why = f"is ignored by the repository {top}"
    else:
        return
    raise UsageFault(f"{folder} {why}. Run `git init` here first, then start again.")


def require_version(project: str) -> None:
    """Check that git is new enough; raises Unavailable with the installed version. 1 call."""
    version = repository.run(project, "version").decode("utf-8", "replace").rstrip("\n")
    if tuple(int(part) for part in version.removeprefix("git version ").split(".")[:2]) < OLDEST:
        raise Unavailable(f"{version} is too old: it cannot merge outside a working folder. Install git 2.38 or newer.")


def first_commit(project: str, names: list[str], message: str) -> None:
    """Commit these files, and nothing else, on `main` of a repository without a commit. 6 calls."""
    repository.run(project, "add", "--", *names)
    tree = repository.run(project, "write-tree").decode().strip()
    repository.commit(project, tree=tree, parent="", branch="main", message=message)
