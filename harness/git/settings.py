"""The environment and settings of the harness's git: it never starts a program that an agent configured.

Git takes programs (filters, hooks, merge drivers, fsmonitor, …) from files that an agent may be able to write. So
`record` stores the configuration at init, before any agent runs. From then on `use` gives the harness's git a private
common folder: a `config` and `info/` made from the record, and links to the repository's objects and refs. Git reads no
other configuration: GIT_COMMON_DIR names that folder, the global and system configurations are disabled. So nothing has
to be verified before a call, nothing can change between check and call, and no extra call is needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.base.errors import LockBusy, NeedsPerson, Unavailable
from harness.base.record import Record
from harness.git import dotgit
from harness.git.checkouts import _rendering
from harness.process import drivers, spawn, supervise
from harness.state import files
from harness.state.folder_lock import FolderLock
from harness.state.layout import state_home

SETTINGS = (
    "core.hooksPath=/dev/null core.fsync=all core.fsyncMethod=fsync core.quotePath=false commit.gpgSign=false "
    "core.fsmonitor=false core.commitGraph=false "  # a forged graph file would name other parents
    "core.safecrlf=false "  # `true` makes git refuse files with mixed line ends
    "user.useConfigOnly=true "  # no author guessed from the host's name
    "log.showSignature=false gc.auto=0 maintenance.auto=false submodule.recurse=false rerere.enabled=false "
    "i18n.commitEncoding=UTF-8 i18n.logOutputEncoding=UTF-8"
)
GIT = ("git", "--no-pager", *(word for setting in SETTINGS.split(" ") for word in ("-c", setting)))
PERSONS = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
PASSED_ON = {f"GIT_{name}" for name in (*PERSONS, "CONFIG_GLOBAL", "CONFIG_SYSTEM", "CONFIG_NOSYSTEM")}
FIXED = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
NO_FETCH = {"GIT_ALLOW_PROTOCOL": ""}  # fetching a missing object would start configured programs
FATAL = 128  # the exit code of a git that could not begin
LIMIT_SECONDS = 600.0  # a checkout of 50,000 files on a noisy disk takes 30
RUN_PROGRAMS = {"status", "diff", "diff-files", "update-index", "checkout-index", "read-tree", "reset", "switch", "add"}
RUN_PROGRAMS |= {"merge-tree", "worktree", "hash-object"}  # they read or merge files of a working folder
KEPT = {"extensions", "filter", "merge"}  # whole sections; git refuses an extension that it does not know
KEPT |= {"lfs", "remote", "url", "http", "credential"}  # git-lfs and partial clones fetch what is missing
KEPT |= {f"{who}.{what}" for who in ("user", "author", "committer") for what in ("name", "email")}
OF_CORE = (
    "autocrlf eol checkroundtripencoding filemode symlinks ignorecase precomposeunicode protecthfs protectntfs longpaths "
    "excludesfile trustctime checkstat repositoryformatversion sharedrepository compression loosecompression logallrefupdates "
    "sshcommand askpass"  # programs: a fetch over ssh, and the login of one over https
)
KEPT |= {"init.defaultbranch", *(f"core.{name}" for name in OF_CORE.split())}
DROPPED = {  # a person's other settings hold in clones
    f"core.{name}" for name in ("worktree", "bare", "hookspath", "fsmonitor", "attributesfile", "sparsecheckout")
}
DROPPED |= {"core.sparsecheckoutcone", "core.alternaterefscommand", "core.gitproxy", "extensions.worktreeconfig"}
PERSONS_SCOPES = ("system", "global")
ALTERNATES = "/objects/info/alternates"
MADE = ("objects", "refs", "worktrees")
LINKED = (*MADE, "shallow", "lfs")


class RecordedSettings(Record):
    """The configuration at init as plain values: git's folders, (key, value or None) pairs, attributes files.
    `git_dir` and `common` are relative to the project if inside it; `commondir` is the content of that file. `persons`:
    the whole configuration outside the repository. `prefix`: the mission's folder
    below the project, "" if it is the project. `head`: the checked-out commit, or "".
    """

    git_dir: str
    common: str
    commondir: str
    config: list[list[str | None]]
    attributes: str
    info_attributes: str
    alternates: str
    persons: list[list[str | None]] = []
    prefix: str = ""
    head: str = ""


class GitHung(NeedsPerson):
    """A git call reached its time limit and was ended."""


class GitKilled(LockBusy):
    """An external signal killed git, perhaps for lack of memory. Its answer is unknown, which does not mean "no"."""


class _Place(Record):
    """A working folder registered for the harness's git calls: its git folder, the private common folder, the required
    content of `commondir`, the mission's folder in it, whether drivers may run unconfined, the commit at init, and the
    options of each call there (`-c key=value`)."""

    git_dir: str
    private: str
    commondir: str
    runs_programs: bool
    prefix: str
    unconfined: bool = False
    base: str = ""
    options: list[str] = []


_places: dict[str, _Place] = {}
_held: list[int] = []


class HeldLock(files.Lock):
    """A lock that the harness's git holds too, so that it stays taken if this process is killed while git runs.
    `folder`: a folder to lock with it, if its file system supports that."""

    def __init__(self, path: str, folder: str = "") -> None:
        super().__init__(path)
        self.locks: list[files.Lock | FolderLock] = [self, *([FolderLock(folder)] if folder else [])]

    def __enter__(self) -> HeldLock:
        for one in self.locks:
            one.take(wait=True)
            _held.append(one.descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.locks:
            _held.remove(one.descriptor)
            one.release()


def record(project: str) -> RecordedSettings:
    """Read the configuration of this repository, for the caller to store, before any agent runs. 1 call."""
    own, common = dotgit.folders(project)
    scoped = _configured(project, _surroundings(project))
    config = [(key, value) for _, key, value in scoped]
    named = next((value for key, value in reversed(config) if key == "core.attributesfile"), None)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return RecordedSettings(
        git_dir=_below(project, own),
        common=_below(project, common),
        commondir=_text(own + "/commondir"),
        config=[[key, value] for key, value in config if key and _is_kept(key)],
        attributes=_text(os.path.expanduser(named or os.path.join(home, "git", "attributes"))),
        info_attributes=_text(common + "/info/attributes"),
        alternates=_text(common + ALTERNATES),
        persons=[[key, value] for scope, key, value in scoped if scope in PERSONS_SCOPES and _is_persons(key)],
        head=dotgit.commit(project),
    )


def _configured(project: str, env: Mapping[str, str]) -> list[tuple[str, str, str | None]]:
    """(scope, key, value or None) of the present configuration; reading it starts no program. 1 call."""
    words = [*GIT, "-C", project, "config", "--list", "-z", "--show-scope"]
    code, out, err = supervise.capture(words, cwd="", env=env, wall_seconds=LIMIT_SECONDS)
    if code:
        raise NeedsPerson(f"git cannot read its configuration in {project}: {err.decode('utf-8', 'replace').strip()}")
    said = os.fsdecode(out).split("\0")[:-1]
    pairs = [
        (scope, pair.partition("\n")) for scope, pair in zip(said[::2], said[1::2], strict=True) if scope != "command"
    ]
    return [(scope, key, value if found else None) for scope, (key, found, value) in pairs]


def values(project: str) -> dict[str, str | None]:
    """{key: last value} of the person's present configuration, including the repository's. 1 call."""
    return {key: value for _, key, value in _configured(project, _surroundings(project))}


def person(project: str) -> dict[str, str]:
    """The person's present git name and address, as variables for a commit in their name. 1 call."""
    found = values(project)
    named = {"NAME": found.get("user.name"), "EMAIL": found.get("user.email")}
    return {f"GIT_{who}_{what}": value for what, value in named.items() if value for who in ("AUTHOR", "COMMITTER")}


def _is_kept(key: str) -> bool:
    return not KEPT.isdisjoint({key, key.split(".", 1)[0]}) and key not in DROPPED


def _is_persons(key: str) -> bool:
    return key not in DROPPED and not key.startswith(("include.", "includeif."))  # git lists the included keys itself


def _text(path: str) -> str:
    return os.fsdecode(files.read(path) or b"")


def _below(project: str, path: str) -> str:
    """`path`, relative if inside the project, so that it stays valid when the project folder is moved."""
    path, top = os.path.realpath(path), os.path.realpath(project)
    return os.path.relpath(path, top) if path.startswith(top + "/") else path


def later(project: str, recorded: RecordedSettings) -> list[str]:
    """Keys of the present configuration that the harness's git ignores, one line per key, without values. 1 call."""
    now = record(project)
    old = {(key, value) for key, value in recorded.config}
    lines = [str(key) for key, value in now.config if (key, value) not in old]
    lines += [
        name
        for name in ("attributes", "info_attributes", "alternates")
        if getattr(now, name) != getattr(recorded, name)
    ]
    return list(dict.fromkeys(lines))


def use(project: str, recorded: RecordedSettings, private: str, prefix: str = "", unconfined: bool = False) -> None:
    """Make every git call of this process in `project` use only the recorded configuration. 0 calls.
    `private` is a folder that agents cannot write; changes in it are repaired. `prefix`: the mission's folder below the
    project, such as `services/api/`. `unconfined`: see `drivers.confined`.
    """
    own, common = (os.path.join(project, path) for path in (recorded.git_dir, recorded.common))
    config = _confined(recorded.config, project, os.path.join(common, "lfs"), unconfined)
    wanted = {
        "config": _render(config, private),
        "attributes": recorded.attributes,
        "info/attributes": recorded.info_attributes,
    }
    for name, text in wanted.items():
        path = os.path.join(private, name)
        if os.path.islink(path) or files.read(path) != os.fsencode(text):
            files.replace(path, os.fsencode(text), files.PRIVATE)
    links = {name: os.path.join(common, name) for name in LINKED} | {"info/exclude": common + "/info/exclude"}
    if _text(common + ALTERNATES) != recorded.alternates:
        raise NeedsPerson(f"{common + ALTERNATES} was changed: commits would depend on objects elsewhere. Restore it.")
    large = ["lfs"] if any(str(key).startswith("filter.lfs.") for key, _ in config) else []  # git-lfs makes it at once
    for name in (*MADE, *large):
        files.make_folder(os.path.join(common, name))
    for name, target in links.items():
        dotgit.link(os.path.join(private, name), os.path.abspath(target))
    programs = any(drivers.is_driver(key) for key, _ in config)
    place = _Place(git_dir=own, private=private, commondir=recorded.commondir, runs_programs=programs, prefix=prefix)
    place.unconfined, place.base = unconfined, recorded.head
    _know(project, place, common)


def share(project: str, folder: str, git_dir: str, options: list[str]) -> None:
    """Treat `folder`, a worktree of `project` with this git folder, like `project`; each call gets the `options`."""
    common, place = dotgit.folders(project)[1], _places[dotgit.real(project)]
    own = place.replace(git_dir=git_dir, commondir=os.path.abspath(common) + "\n", options=options)
    _know(folder, own, common)


def _know(folder: str, place: _Place, common: str) -> None:
    _places[dotgit.real(folder)] = place
    dotgit.know(folder, place.git_dir, common)


def private(project: str) -> str:
    """The private folder that `use` was given for this project."""
    return _places[dotgit.real(project)].private


def prefix(folder: str) -> str:
    """The mission's folder below this git working folder, such as `services/api/`; "" if it is the same."""
    place = _places.get(dotgit.real(folder))
    return place.prefix if place else ""


def base(project: str) -> str:
    """The commit that was checked out when this project's configuration was recorded; "" if unknown."""
    return _places[dotgit.real(project)].base


def options(folder: str) -> list[str]:
    """The options of each call in this working folder (`-c key=value`); see `share`."""
    place = _places.get(dotgit.real(folder))
    return place.options if place else []


def forget(folder: str) -> None:
    """Unregister `folder`."""
    _places.pop(dotgit.real(folder), None)
    dotgit.forget(folder)


def _confined(config: drivers.Config, folder: str, large: str, unconfined: bool) -> drivers.Config:
    """The part of this configuration that the harness's git uses, with drivers confined. `large`: git-lfs's storage."""
    kept = [pair for pair in config if _is_kept(str(pair[0]))]
    return drivers.confined(kept, os.path.realpath(large), _trees(folder), unconfined)


def _trees(folder: str) -> list[str]:
    """Folders in which an agent may have left programs: this one, all known ones, and the folder of trees."""
    return [dotgit.real(folder), *_places, dotgit.real(state_home())]


def _render(config: drivers.Config, private: str) -> str:
    """Render these pairs as the configuration file of the harness's git."""
    attributes = _rendering.escaped(os.path.join(private, "attributes"))
    return _rendering.rendered(config) + f'[core]\n\tbare = false\n\tattributesFile = "{attributes}"\n'


def _surroundings(folder: str) -> dict[str, str]:
    """This environment without GIT_* variables, which a hook or shell may have set for another repository, and without
    paths to programs or libraries that an agent could write."""
    kept = {key: value for key, value in os.environ.items() if key[:4] != "GIT_" or key in PASSED_ON} | FIXED
    paths = [name for name in ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in kept]
    return kept | {name: spawn.outside(kept[name], _trees(folder)) for name in paths}


def _overrides(folder: str, env: Mapping[str, str]) -> dict[str, str]:
    """Variables for a git call that confine the drivers of the present configuration. 1 call."""
    config = [[key, value] for _, key, value in _configured(folder, env)]
    unconfined = any(place.unconfined for place in _places.values())
    found = _confined(config, folder, os.path.join(dotgit.folders(folder)[1], "lfs"), unconfined)
    return drivers.variables([pair for pair in found if str(pair[0]).startswith(("filter.", "merge."))])


def call(
    project: str, *args: str, stdin: bytes = b"", extra: Mapping[str, str] = {}, wall_seconds: float = LIMIT_SECONDS
) -> tuple[int, bytes, bytes]:
    """One git call: (exit code, stdout, stderr). It never looks for a repository above `project`. Threads may call at once.

    Raises Unavailable without the folder or git, GitHung after `wall_seconds`; if a recorded program may run, its process tree
    is ended with the call."""
    folder = dotgit.real(project)
    env = _surroundings(project) | {"GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
    place, heeds = _places.get(folder), args[0] in RUN_PROGRAMS
    found = {} if place or not heeds else _overrides(project, env)
    env |= {**(_private_environment(project, place) if place else {**found, **NO_FETCH}), **extra}
    programs = heeds and bool(place.runs_programs if place else found)
    run = _guarded if programs else supervise.capture
    argv, cwd = [*GIT, "-C", folder, *options(project), *args], folder if programs else ""
    try:
        done = run(argv, cwd=cwd, env=env, stdin=stdin, wall_seconds=wall_seconds, keep=_held)
    except TimeoutError:
        hung = f"git {args[0]} in {project} did not end within {wall_seconds:.0f} seconds and was ended."
        why = "A filter or merge driver of your git configuration may hang: try the same command by hand."
        raise GitHung(f"{hung} {why if programs else 'Is the disk there?'}") from None
    if done[0] == FATAL and not os.path.isdir(folder):
        raise Unavailable(f"git cannot be started in the folder {project}: No such file or directory.")
    if done[0] < 0:
        words = f"git {args[0]} in {project} was killed from outside by signal {-done[0]}"
        raise GitKilled(f"{words} (out of memory?). Nothing is lost: start again.")
    return done


def alone(folder: str, config: str, *args: str, extra: Mapping[str, str] = {}) -> tuple[int, bytes, bytes]:
    """One git call in `folder` that reads only the configuration file `config` and that of the repository there: (exit
    code, stdout, stderr); with the variables `extra`. Its writes are not durable, and no process outlives it. Raises GitHung."""
    env = {key: value for key, value in _surroundings(folder).items() if not key.startswith("GIT_CONFIG")}
    env |= {"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
    env |= _overrides(folder, env) if RUN_PROGRAMS & {*args} else {}
    words = [*GIT, "-c", "core.fsync=none", *args]
    try:
        return _guarded(words, cwd=folder, env=env | {**extra}, stdin=b"", wall_seconds=LIMIT_SECONDS, keep=_held)
    except TimeoutError:
        hung = f"git {args[0]} in {folder} did not end within {LIMIT_SECONDS:.0f} seconds and was ended."
        raise GitHung(f"{hung} A filter of your git configuration may hang: try the same command by hand.") from None


def _private_environment(project: str, place: _Place) -> dict[str, str]:
    """Variables that select the private common folder and disable other configuration. Checks the file `commondir`, by
    which git finds refs and which an agent may write."""
    path = place.git_dir + "/commondir"
    if _text(path) != place.commondir:
        raise NeedsPerson(f"{path} was changed: it makes git use other branches. Remove or restore it.")
    return {
        "GIT_DIR": place.git_dir,
        "GIT_COMMON_DIR": place.private,
        "GIT_WORK_TREE": dotgit.real(project),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _guarded(
    argv: list[str], *, cwd: str, env: Mapping[str, str], stdin: bytes, wall_seconds: float, keep: list[int]
) -> tuple[int, bytes, bytes]:
    """As `supervise.capture`, under a guardian that ends leftover processes of a person's filter; costs 10 ms."""
    got: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    path = os.path.join(env.get("GIT_COMMON_DIR", cwd), f"stdin.{os.getpid()}")
    if stdin:
        files.stage(path, stdin, files.PRIVATE, quickly=True)
    try:
        ended = supervise.run(
            argv,
            cwd=cwd,
            env=env,
            stdin=path if stdin else None,
            wall_seconds=wall_seconds,
            grace_seconds=2.0,
            merge=False,
            keep=keep,
            sink=lambda stream, chunk: got[stream].append(chunk),
        )
    finally:
        if stdin:
            files.remove(path)
    if ended.cause != "exit":
        raise TimeoutError
    out, err = (b"".join(got[stream]) for stream in ("stdout", "stderr"))
    if refused := next(
        (line for line in err.decode("utf-8", "replace").split("\n") if line.startswith(drivers.REFUSED)), ""
    ):
        raise NeedsPerson(refused)
    return (ended.exit if ended.exit is not None else -(ended.signal or 0)), out, err
