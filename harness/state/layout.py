"""Where a mission is: its state by key, its project's folders, the files of a run. A test compares `docs/layout.md` with it."""

from __future__ import annotations

import os

from harness.base import encoding
from harness.base.errors import UsageFault
from harness.state import names


class ProjectFolders:
    """The folders of a mission's project; touches the disk only to find the repository. `project`: the absolute path
    of the working folder; `top`: that of its repository, if it is known."""

    def __init__(self, project: str, top: str = "") -> None:
        self.project, self._top = os.path.abspath(project), top
        self.asked_spec = f"{self.project}/{names.ASKED_SPEC}"  # the spec that a person writes

    @property
    def top(self) -> str:
        """The top of the project's repository: the project folder or one above it; the project folder without a
        repository."""
        self._top = self._top or repository_of(self.project) or self.project
        return self._top

    @property
    def prefix(self) -> str:
        """The project's path below the top of its repository, such as `services/api/`; "" at the top."""
        return "" if self.top == self.project else os.path.realpath(self.project)[len(self.top.rstrip("/")) + 1 :] + "/"

    def within(self, checkout: str) -> str:
        """The project's place in another checkout of its repository."""
        return os.path.join(checkout, self.prefix).rstrip("/") if self.prefix else checkout

    def relative(self, path: str) -> str:
        """The path for messages: relative if it is inside the working folder."""
        inside = self.project + "/"
        return path[len(inside) :] if path.startswith(inside) else path


class Layout:
    """The mission's state by key (`names.py`) in the folder `state`, and the folders of its project."""

    def __init__(self, project: str, state: str = "", top: str = "") -> None:
        self.folders = ProjectFolders(project, top)
        self.state = os.path.abspath(state) if state else os.path.join(self.folders.project, ".harness")

    def path(self, key: str) -> str:
        """The absolute path of a key."""
        return f"{self.state}/{key}"

    def shown(self, key: str) -> str:
        """The path of a key for messages: relative if it is inside the working folder."""
        return self.folders.relative(self.path(key))

    @property
    def archived(self) -> bool:
        """Whether this is the state of an archived mission."""
        return os.path.basename(os.path.dirname(self.state)) == names.ARCHIVED

    @property
    def cache(self) -> str:
        """The folder of what can be made again. That of an archived mission cannot be written: an archive does not change."""
        return os.path.join(os.devnull if self.archived else self.state, names.CACHE)

    @property
    def committed(self) -> str:
        """The folder of the committed copy for unconfined runs; it lies outside the project, named by the mission's path."""
        return os.path.join(state_home(), f"committed-{encoding.digest(os.fsencode(self.state))[:12]}")

    def archive_of(self, mission_id: str) -> str:
        """The state folder of an archived mission."""
        return os.path.join(self.path(names.ARCHIVED), mission_id)

    def turns(self, run_id: str, task: str = "") -> str:
        """The turns of a run, or of one of its subagents."""
        run = self.run(run_id)
        return f"{run.tasks}/{task}/{names.TURNS}" if task else run.turns

    def run(self, run_id: str) -> RunLayout:
        """The files of one run."""
        return RunLayout(self.path(f"{names.RUNS}/{run_id}"), self.path(f"{names.LOCKS}/run-{run_id}"))

    def managed(self) -> tuple[str, ...]:
        """Managed files: the harness replaces them whole; an agent never writes them."""
        return tuple(self.path(name) for name in names.MANAGED)

    def append_only(self) -> tuple[str, ...]:
        """Append-only files: they grow by whole lines, and the ledger records their length."""
        return tuple(self.path(name) for name in names.APPEND_ONLY)


class RunLayout:
    """The files in the folder of one run, and the lock of an open run."""

    def __init__(self, folder: str, lock: str) -> None:
        self.folder, self.lock = folder, lock
        under = folder + "/"
        self.context = under + names.CONTEXT
        self.manifest = under + names.MANIFEST
        self.prompt = under + names.PROMPT
        self.stream = under + names.STREAM
        self.stderr = under + names.STDERR
        self.turns = under + names.TURNS
        self.results = under + names.RESULTS
        self.tasks = under + names.TASKS
        self.reply = under + names.REPLY
        self.reply_fault = under + names.REPLY_FAULT
        self.notes = under + names.NOTES
        self.asked = under + names.ASKED
        self.workspace = under + names.WORKSPACE
        self.receipts = under + names.RECEIPTS
        self.result = under + names.RESULT
        self.refused = under + names.REFUSED
        self.inbox = under + names.INBOX  # the folder of the socket for in-run commands


def repository_of(folder: str) -> str:
    """The top of the folder's repository: the nearest folder with a `.git`, itself or above it (links resolved); "" if
    there is none. Does not call git."""
    at = folder
    if not os.path.lexists(at + "/.git"):
        at = os.path.realpath(folder)
        while not os.path.lexists(at + "/.git"):
            above = os.path.dirname(at)
            if above == at:
                return ""
            at = above
    return at


def identity_file(folder: str, role: str) -> str:
    """The identity of a role: its knowledge across missions."""
    return os.path.join(folder, role + ".md")


def home() -> str:
    """HARNESS_HOME: the checkout (or the packed copy beside the package) with run.sh and roles/."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    checkout = os.path.dirname(package)
    fallback = checkout if os.path.exists(os.path.join(checkout, "run.sh")) else os.path.join(package, "home")
    return os.environ.get("HARNESS_HOME") or fallback


def command(words: str = "") -> str:
    """A harness command that the reader can paste: run.sh as it was started (HARNESS_CALLED), else `harness`; with `-C
    DIR` (HARNESS_AT) if given."""
    called, own = encoding.shell_word(os.environ.get("HARNESS_CALLED") or "harness"), os.environ.get("HOME", "") + "/"
    if len(own) > 2 and called.startswith(own):
        called = "~/" + called.removeprefix(own)
    folder = os.environ.get("HARNESS_AT", "")
    return " ".join(filter(None, (called, f"-C {encoding.shell_word(folder)}" if folder else "", words)))


def restoring() -> str:
    """The remedy for a damaged queue or contract."""
    return f"To go back to an earlier state: {command('snapshot list')}, then: {command('snapshot restore ID')}"


def state_home() -> str:
    """The folder of the missions' worktrees: $XDG_STATE_HOME/harness, else ~/.local/state/harness."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return os.path.join(named if os.path.isabs(named) else os.path.expanduser("~/.local/state"), "harness")


def identity_folder() -> str:
    """$HARNESS_IDENTITY, else identity/ of the checkout, else the user's data folder for an installed package. Raises
    UsageFault if the variable does not name a folder."""
    named = os.environ.get("HARNESS_IDENTITY")
    if named:
        if os.path.exists(named) and not os.path.isdir(named):
            raise UsageFault(
                f"HARNESS_IDENTITY is {named}, which is not a folder: unset it, or name the folder of the identities."
            )
        return os.path.abspath(named)
    root = home()
    if not root.endswith("/harness/home"):
        return os.path.join(root, "identity")
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "harness", "identity")
