"""The list of all that no program of a run may do, and of what it may.

Files of a person are opened for writing and renamed to their own name, which changes nothing even where it works; files of
the trial's own mission are really moved and removed.
"""

from __future__ import annotations

import os
import stat

from harness.base.record import Record
from harness.git import dotgit
from harness.process import tree
from harness.process.confine import BUBBLEWRAP, LANDLOCK
from harness.state import files, names
from harness.state.layout import Layout, RunLayout, home, identity_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH, GLASS = (BUBBLEWRAP, LANDLOCK), (BUBBLEWRAP,)
NEW = "harness-try.new"  # no file has this name
START_UP = (".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile")
BELOW_CONFIG = ("git/config", "git/attributes", "fish/config.fish", "autostart/try.desktop", "systemd/user/try.service")
CRONTABS = (f"/var/spool/cron/{NEW}", f"/var/spool/cron/crontabs/{NEW}", f"/etc/cron.d/{NEW}", "/etc/crontab")
KEYS = (".ssh", ".aws", ".gnupg", ".netrc")
ENGINES = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")
MOST_SOCKETS = 12
LOOKED_THROUGH = 2000  # folders below /run
GUARDIAN = "its guardian"
KNOWN = "harness try"  # the only line of its identity
MANUAL, ISSUE, BLOCKED = "VAL-LOOK", "I-001", ("F-001", "F-002", "F-003")
SURVIVORS = {BUBBLEWRAP: ("40", "0", "20"), LANDLOCK: ("40", "0.2", "20")}  # no pid limit there: they take their time


class Attempt(Record):
    """One attempt: its words for a person and for the program, the tiers that refuse it, and whether it is allowed."""

    what: str
    words: list[str]
    tiers: tuple[str, ...] = BOTH
    allowed: bool = False


class Stage(Record):
    """What the attempts are aimed at: a mission with a tree, a run with its temporary folder (`room`), a file in the tree of
    `another` mission, a `socket` that is listened to ("" for none), processes of ours by name, and what is to stay away
    (`marker`) or to be held open by survivors (`fifo`). `crontab`: the person's, None without the program."""

    there: Layout
    tree: str
    room: str
    run_id: str
    another: str
    socket: str
    marker: str
    fifo: str
    crontab: str | None
    processes: dict[str, int] = {}

    @property
    def run(self) -> RunLayout:
        """The files of the run."""
        return self.there.run(self.run_id)

    def name(self, path: str) -> str:
        """The path as a person knows it."""
        for folder, called in ((self.there.state, ".harness"), (self.there.folders.project, "the project")):
            if path == folder or path.startswith(folder + "/"):
                return called + path.removeprefix(folder)
        own = os.path.expanduser("~")
        return "~" + path.removeprefix(own) if path.startswith(own + "/") else path


def attempts(stage: Stage, tier: str) -> list[Attempt]:
    """All attempts in turn; the last one leaves processes behind."""
    return [
        *_allowed(stage),
        *_on_state(stage),
        *_on_git(stage),
        *_on_person(stage),
        *_on_harness(stage),
        *_moves(stage),
        *_mounts(stage),
        *_reads(stage),
        *_connects(stage),
        *_processes(stage),
        *_orders(stage),
        *_saved(stage),
        Attempt(what="a git folder of its own in its tree", words=["plant", stage.tree, stage.marker], allowed=True),
        Attempt(
            what="a daemon, a subreaper and processes that fork as fast as they can",
            words=["survive", stage.fifo, *SURVIVORS[tier]],
            allowed=True,
        ),
    ]


def _on(stage: Stage, path: str, *verbs: str) -> list[Attempt]:
    return [Attempt(what=f"{verb} {stage.name(path)}", words=[verb, path]) for verb in verbs]


def _allowed(stage: Stage) -> list[Attempt]:
    """What an agent needs: without it, a confinement that refuses everything would look good."""
    note = ["order", stage.tree, stage.there.path(names.SHIM), "note", "--tag", "CONTEXT", "harness try"]
    return [
        Attempt(what="write in its tree", words=["create", os.path.join(stage.tree, NEW)], allowed=True),
        Attempt(what="write in its temporary folder", words=["create", os.path.join(stage.room, NEW)], allowed=True),
        Attempt(what="read the prompt", words=["read", stage.run.prompt], allowed=True),
        Attempt(what="harness note", words=note, allowed=True),
    ]


def _on_state(stage: Stage) -> Iterator[Attempt]:
    there = stage.there
    for path in (there.path(names.FEATURES), there.path(names.RAW), stage.run.prompt):
        yield from _on(stage, path, "write", "move", "delete")
    for folder in (
        there.state,
        os.path.dirname(there.path(names.RAW)),
        there.path(names.RUNS),
        stage.run.folder,
        there.path(names.ROLES),
    ):
        yield from _on(stage, os.path.join(folder, NEW), "create")


def _on_git(stage: Stage) -> Iterator[Attempt]:
    common, own = os.path.abspath(dotgit.folders(stage.there.folders.top)[1]), dotgit.folders(stage.tree)[0]
    for path in (common + "/config", own + "/HEAD", own + "/commondir"):
        yield from _on(stage, path, "write", "move", "delete")
    new = (
        "hooks/post-checkout",
        "info/attributes",
        "refs/heads/x",
        "packed-refs",
        "commondir",
        "objects/info/alternates",
    )
    for path in (*(os.path.join(common, name) for name in new), own + "/config.worktree"):
        yield from _on(stage, path, *(("write", "move", "delete") if os.path.exists(path) else ("create",)))


def _carefully(stage: Stage, path: str) -> list[Attempt]:
    """Attempts on a file that must not be lost; on the name that would have to be made first, where it is not there."""
    if os.path.isfile(path):
        return _on(stage, path, "write", "replace")
    while not os.path.isdir(os.path.dirname(path)):
        path = os.path.dirname(path)
    return _on(stage, path, "create")


def _on_person(stage: Stage) -> Iterator[Attempt]:
    """Git's settings, what shells and desktops start, crontabs."""
    own = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(own, ".config")
    paths = [os.path.join(own, name) for name in (".gitconfig", *START_UP)]
    paths += [os.path.join(config, name) for name in BELOW_CONFIG]
    seen: dict[str, Attempt] = {}
    for path in (*paths, *CRONTABS):
        seen |= {one.what: one for one in _carefully(stage, path)}
    yield from seen.values()
    if stage.crontab is not None:
        yield Attempt(what="crontab -", words=["crontab", stage.crontab])


def _on_harness(stage: Stage) -> Iterator[Attempt]:
    package = os.path.dirname(os.path.dirname(files.__file__))
    roles = os.path.join(home(), "roles")
    some = next((name for name in files.names(roles) if name.endswith(".md")), NEW)
    for path in (os.path.join(home(), "run.sh"), os.path.join(roles, some), os.path.join(package, "__main__.py")):
        yield from _carefully(stage, path)
    for folder in dict.fromkeys((home(), roles, package, identity_folder())):
        yield from _carefully(stage, os.path.join(folder, NEW))


def _moves(stage: Stage) -> Iterator[Attempt]:
    project = stage.there.folders.project
    yield Attempt(what="mv .git x; cp -r x .git", words=["exchange", project])
    yield Attempt(what="rename the project folder", words=["move", project])
    yield Attempt(what="rename the folder of the tree", words=["move", os.path.dirname(stage.tree)])


def _mounts(stage: Stage) -> Iterator[Attempt]:
    for folder, what in (("/", "/"), (stage.there.folders.project, "the project")):
        yield Attempt(what=f"mount -o remount,bind,rw {what}", words=["remount", folder])
        yield Attempt(what=f"the same as root of a namespace: {what}", words=["remount as another", folder])


def _reads(stage: Stage) -> Iterator[Attempt]:
    own = os.path.expanduser("~")
    keys = [os.path.join(own, name) for name in KEYS]
    for path in (*(path for path in keys if _holds_something(path)), stage.another):
        what = "read the tree of another mission" if path == stage.another else f"read {stage.name(path)}"
        yield Attempt(what=what, words=["read", path])


def _holds_something(path: str) -> bool:
    return bool(files.names(path)) if os.path.isdir(path) else files.length(path) > 0


def _connects(stage: Stage) -> Iterator[Attempt]:
    for path in sockets(stage.socket):
        yield Attempt(what=f"connect to {path}", words=["connect", path], tiers=GLASS)


def sockets(own: str = "") -> list[str]:
    """Sockets of this machine that nobody inside may reach, those that matter most first, and `own` the very first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    named = [own, *ENGINES, *(os.path.join(runtime, name) for name in ("bus", "docker.sock") if runtime)]
    found = [path for top in dict.fromkeys(filter(None, ("/run", runtime))) for path in _sockets_below(top)]
    there = [path for path in filter(None, [*named, *sorted(found)]) if _is_socket(path)]
    return list(dict.fromkeys(map(os.path.realpath, there)))[:MOST_SOCKETS]


def _sockets_below(top: str) -> Iterator[str]:
    for number, (folder, _, held) in enumerate(os.walk(top)):
        if number > LOOKED_THROUGH:
            return
        yield from (path for name in held if _is_socket(path := os.path.join(folder, name)))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _processes(stage: Stage) -> Iterator[Attempt]:
    for called, pid in stage.processes.items():
        identity = [str(pid), tree.stat(pid)[19].decode()]
        yield Attempt(what=f"kill {called}", words=["end", *identity], tiers=GLASS)
        alike = called == GUARDIAN  # Landlock protects only processes that are not confined with the tracer
        yield Attempt(what=f"trace {called}", words=["trace", *identity], tiers=GLASS if alike else BOTH)


def orders(stage: Stage) -> list[list[str]]:
    """A person's commands; that about an identity is given one of the trial's own."""
    verbs = ["accept", stage.run_id, "features.json"], ["claim", "accept", MANUAL], ["issue", "close", ISSUE]
    asked = [*verbs, ["escalation", "answer", "go on"], ["feature", "retry", BLOCKED[0]]]
    known = [
        "env",
        f"HARNESS_IDENTITY={identity_of(stage.there)}",
        stage.there.path(names.SHIM),
        "identity",
        "forget",
        KNOWN,
    ]
    return [*([stage.there.path(names.SHIM), *words] for words in asked), known]


def identity_of(there: Layout) -> str:
    """The folder of the trial's own identity."""
    return there.state + "/identity"


def _orders(stage: Stage) -> Iterator[Attempt]:
    for kind, how in (("order", ""), ("order detached", "setsid env -i ")):
        for words in orders(stage):
            first = words.index(stage.there.path(names.SHIM)) + 1
            what = f"{how}harness {' '.join(words[first : first + 2])}"
            yield Attempt(what=what, words=[kind, stage.tree, *words])


def _saved(stage: Stage) -> Iterator[Attempt]:
    """What somebody outside has just replaced by a rename, as editors and git do."""
    ready, go = os.path.join(stage.room, "ready"), os.path.join(stage.room, "go")
    config = os.path.join(os.path.abspath(dotgit.folders(stage.there.folders.top)[1]), "config")
    yield Attempt(what="wait for a save from outside", words=["await save", ready, go], allowed=True)
    for path in (stage.there.folders.asked_spec, config):
        yield Attempt(what=f"write {stage.name(path)} after somebody saved it", words=["write", path])
