"""The confinement rules of a run's processes: they write its worktree, its temporary folder, and paths by trust or adapter.

The rest of the machine is read-only; of a person's HOME only paths in home.txt are visible; sockets and other missions
are hidden. `process/confine.py` has the mechanism.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from harness.base import encoding
from harness.base.errors import Unavailable
from harness.git import dotgit
from harness.git.settings import ALTERNATES
from harness.mission.config import Config
from harness.process import confine, drivers, landlock, network, spawn, variables
from harness.process.confine import Confinement, Glass
from harness.process.supervise import TAG
from harness.state import files, names
from harness.state.layout import Layout, home, identity_folder, state_home
from harness.workplace import _home_list, home_layer
from harness.workplace._home_list import Person

NETWORKS = {True: "host", False: "none"}
MISSING = (
    'confine = "required" in {config}, and neither bubblewrap nor Landlock works here. Install bubblewrap (the package '
    'has that name), and see docs/confinement.md for containers; or write confine = "auto".'
)
OPEN = (
    "network = {value} in {config} does not hold here ({tier}): programs of a run reach every network that you reach."
)
OPEN_REMEDY = ' Install bubblewrap (docs/confinement.md), or write confine = "auto".'
UNCONFINED = (
    "No command is run and no server is started: neither bubblewrap nor Landlock works here. Install bubblewrap "
    '(docs/confinement.md), or write into {config} that they may touch all that you may: confine = "off"'
)


def tier(layout: Layout, settings: Config) -> str:
    """The mission's tier of confinement on this machine, or `none`; raises Unavailable if a missing tier is required."""
    if settings.confine == "off":
        return confine.NONE
    found = confine.available()
    if found == confine.NONE and settings.confine == "required":
        raise Unavailable(MISSING.format(config=layout.shown(names.CONFIG)))
    if settings.confine == "required" and (line := open_network(layout, settings, found)):
        raise Unavailable(line + OPEN_REMEDY)
    return found


def open_network(layout: Layout, settings: Config, how: str) -> str:
    """A warning if this tier does not enforce the mission's `network`; "" if it does."""
    if settings.network is True or how == confine.BUBBLEWRAP:
        return ""
    tier = 'confine = "off"' if settings.confine == "off" else f"tier: {how}"
    value = encoding.dump_json(settings.network).decode().strip()
    return OPEN.format(value=value, config=layout.shown(names.CONFIG), tier=tier)


def of_conversation(
    layout: Layout, settings: Config, folder: str, results: str, environment: Mapping[str, str] | None = None
) -> tuple[Confinement | None, dict[str, str]]:
    """(confinement, environment) of a conversation's commands and servers: they write in `folder`, except where git,
    the harness or a program on PATH is, and in their own HOME layer. No confinement if config.toml says so.
    `environment`: by default the passing part of this process's. Raises Unavailable without a tier."""
    environment = variables.passing(os.environ) if environment is None else environment
    if settings.confine == "off":
        return None, dict(environment)
    if (how := tier(layout, settings)) == confine.NONE:
        raise Unavailable(UNCONFINED.format(config=layout.shown(names.CONFIG)))
    known, real = _of_runs(layout, settings, folder, how), os.path.expanduser("~")
    name, talk = (encoding.digest(os.fsencode(os.path.realpath(path)))[:12] for path in (folder, results or folder))
    own = home_of_clone(os.path.join(state_home(), f"conversation-{name}.home"), settings.home)
    room = os.path.join(own + ".tmp", talk)  # per conversation, with the folders of its subagents
    files.make_folder(room)
    os.chmod(state_home(), 0o700)
    top = os.path.realpath(folder)
    spared = [path for path in [*protected(layout), os.path.join(top, ".git")] if path != top and _is_in(path, top)]
    if _is_in(os.path.realpath(real), top):
        opened = []  # it has the startup files of a person's shell
    elif how == confine.LANDLOCK and spared:
        opened = _opened(top, spared)
    else:  # mount the folder itself, so that it cannot be renamed with a spared one inside
        opened = [top, *dict.fromkeys(above for path in spared for above in _between(path, top))]
    known = of_agent(layout, known, [*opened, own, room], settings.trust, ())
    shown = [*known.glass.readable, *filter(os.path.exists, spared), *filter(None, [results])]
    hidden = [*known.glass.hidden, layout.path(names.SESSIONS), layout.path(names.SANDBOXES)]
    known = known.replace(glass=known.glass.replace(readable=shown, hidden=hidden))
    return known, {**home_layer.variables(dict(environment), own, real), "TMPDIR": room}


def of_mission(layout: Layout, settings: Config, tree: str, how: str) -> Confinement | None:
    """The confinement of programs in this tree; None without a tier. Each program adds its writable folders. Unlisted
    paths of HOME, the trees of other missions, and a team's database and sources, are hidden."""
    if how == confine.NONE:
        return None
    found = _of_runs(layout, settings, os.path.dirname(tree), how)
    urls = map(urlsplit, map(str, settings.team.values()))
    hidden = [unquote(one.path) for one in urls if one.scheme in ("sqlite", "file")]
    return found.replace(glass=found.glass.replace(hidden=[*found.glass.hidden, *hidden]))


def _of_runs(layout: Layout, settings: Config, own: str, how: str) -> Confinement:
    """A confinement that can read this folder and the required parts of the mission."""
    shared = settings.network == "loopback" and how == confine.BUBBLEWRAP
    glass = _reading(own, *_ours(layout), shown=settings.home).replace(network=NETWORKS[bool(settings.network)])
    glass = glass.replace(hidden=[*glass.hidden, layout.path(names.ORIGIN)])
    return Confinement(glass=glass, tier=how, holder=network.hold() if shared else 0)


def home_of_checks(project: str, folder: str, shown: Sequence[str] = ()) -> str:
    """Make the HOME of checks, services and setup in `folder`: links to the visible paths of a person's HOME (the list
    and `shown`), and files that tools write."""
    return home_layer.make(folder, _person(shown), _common(project), home_layer.packages_of(folder))


def home_of_agent(project: str, tree: str, below: str = "", adapter: Iterable[str] = ()) -> str:
    """Make the HOME of the tree's agents over that of its setup (`below`, if it exists), so that checks do not read an
    agent's files. It links to the folders and files of the agent's `adapter` below a person's HOME."""
    made = home_layer.make(
        tree + ".agent", Person(below or home_of_checks(project, tree + ".home"), {}, ("",)), _common(project)
    )
    home_layer.link(made, os.path.expanduser("~"), adapter)
    return made


def home_of_clone(folder: str, shown: Sequence[str] = (), packages: str = "") -> str:
    """Make the HOME of checks in a fresh clone in `folder`: as `home_of_checks`, without links to a project."""
    return home_layer.make(folder, _person(shown), packages=packages)


def disarm(tree: str) -> list[str]:
    """Take setuid and setgid bits and capabilities off what a run left in its tree and HOMEs; returns a line each."""
    found, tops = [], (tree, tree + ".home", tree + ".agent")
    for path in (f"{at}/{name}" for top in tops for at, _, inside in os.walk(top) for name in inside):
        with suppress(OSError, AttributeError):  # another user's; macOS has no capabilities
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) and (mode & 0o6000 or "security.capability" in os.listxattr(path)):
                os.chown(path, -1, -1)  # the kernel then takes capabilities off, for which a program needs no rights
                os.chmod(path, mode & 0o1777)
                found.append(f"{os.path.relpath(path, tree)}: setuid, setgid or capabilities")
    return found


def _person(shown: Iterable[str] = ()) -> Person:
    """A person's HOME, with the programs on PATH and this process's interpreter."""
    path = [os.environ.get("PATH", ""), os.path.dirname(sys.executable)]
    return _home_list.person(os.path.expanduser("~"), {**os.environ, "PATH": os.pathsep.join(path)}, shown)


def of_stranger(folder: str = "") -> Confinement | None:
    """The confinement of a check outside a mission: it writes its folders and reads the git of `folder`; trees of
    missions are hidden. None without mounts."""
    if confine.available() != confine.BUBBLEWRAP:
        return None
    return Confinement(glass=_reading(*([_common(folder)] if folder else [])), tier=confine.BUBBLEWRAP)


def _reading(*own: str, shown: Sequence[str] = ()) -> Glass:
    """A read-only Glass: these folders, and the paths of HOME that are listed or `shown`. Trees of missions are hidden."""
    home, tops = os.path.realpath(os.path.expanduser("~")), [path for path in own if path]
    if home == "/" or any(_is_in(home, os.path.realpath(path)) for path in tops):
        shown = [_home_list.ALL, *shown]  # a folder that contains HOME
    person = _person(shown)
    closed = [] if person.whole else [home, *map(person.at, person.places)]
    hidden = [*closed, *filter(os.path.lexists, map(person.at, person.hidden)), state_home()]
    return Glass(readable=list(dict.fromkeys([*tops, *_readable(person), *map(person.at, person.seen)])), hidden=hidden)


def without(known: Confinement, folders: Iterable[str]) -> Confinement:
    """`known` with these folders and all missions' trees hidden."""
    gone = list(dict.fromkeys(map(os.path.realpath, [*folders, state_home()])))
    shown = [path for path in known.glass.readable if not any(_is_in(os.path.realpath(path), one) for one in gone)]
    return known.replace(glass=known.glass.replace(readable=shown, hidden=[*known.glass.hidden, *gone]))


def moved(layout: Layout, known: Confinement, mounts: Iterable[tuple[str, str, bool]]) -> Confinement:
    """`known` with other folders mounted over the mission's: (path inside, host folder, writable) each. The rest of the
    mission is hidden."""
    there = {inside: (folder, write) for inside, folder, write in mounts}
    ours = [layout.folders.project, layout.folders.top, layout.state, _common(layout.folders.top)]
    shown = [path for path in known.glass.readable if path not in ours and path not in there]
    hidden = [path for path in ours if not any(_is_in(path, inside) for inside in there)]
    glass = known.glass.replace(
        readable=[*shown, *(inside for inside, (_, write) in there.items() if not write)],
        writable=[*known.glass.writable, *(inside for inside, (_, write) in there.items() if write)],
        hidden=[*known.glass.hidden, *hidden],
        moved={inside: folder for inside, (folder, _) in there.items()},
    )
    return known.replace(glass=glass)


def _is_in(path: str, folder: str) -> bool:
    return (path + "/").startswith(folder.rstrip("/") + "/")


def _common(project: str) -> str:
    return os.path.abspath(dotgit.folders(project)[1])


def _ours(layout: Layout) -> list[str]:
    """The mission's folders that its checks and agents must see, and the harness."""
    common = _common(layout.folders.top)
    ours = [
        layout.folders.project,
        layout.folders.top,
        layout.state,
        common,
        *_borrowed(common),
        home(),
        identity_folder(),
    ]
    return [folder for folder in (*ours, os.path.dirname(os.path.dirname(files.__file__))) if os.path.isdir(folder)]


def _borrowed(common: str) -> list[str]:
    """The alternate object folders of a git folder."""
    lines = os.fsdecode(files.read(common + ALTERNATES) or b"").split("\n")
    return [os.path.join(common, "objects", line) for line in lines if line]


def _readable(person: Person) -> list[str]:
    """Folders that stay visible even below a private or hidden one: Python, PATH, name servers."""
    python = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
    python += [path for path in sys.path if path.endswith("-packages")]
    names = os.path.dirname(os.path.realpath("/etc/resolv.conf"))  # some systems keep it below /run
    known = [part for path in python for part in person.parts(path)]
    path = [folder for folder in _on_path() if person.below(folder) is None]
    return [folder for folder in (*known, *path, names) if os.path.isdir(folder)]


def _on_path() -> list[str]:
    """The folders on the PATH of this process."""
    return [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]


def of_agent(
    layout: Layout,
    known: Confinement,
    folders: Sequence[str],
    trust: str,
    adapter: Iterable[str],
    readable: Iterable[str] = (),
) -> Confinement:
    """`known` with an agent's additional writable folders: these, its adapter's, and under full trust a person's HOME;
    and with the `readable` files of its adapter and the installations of its programs."""
    named = [os.path.realpath(path) for path in map(os.path.expanduser, adapter) if _made(path)]
    spared = [*protected(layout), *map(os.path.realpath, [*known.glass.moved, *known.glass.hidden])]
    whole = _opened(os.path.realpath(os.path.expanduser("~")), spared) if trust == "full" else []
    person = Person(os.path.expanduser("~"), {}, ())
    shown = [part for path in readable for part in (person.installed(path) if os.access(path, os.X_OK) else [path])]
    writable = list(dict.fromkeys([*known.glass.writable, *folders, *whole, *named]))
    return known.replace(glass=known.glass.replace(writable=writable, readable=[*known.glass.readable, *shown]))


def _made(folder: str) -> bool:
    """Create the folder if missing, since its confined program cannot; returns whether it exists."""
    try:
        files.make_folder(folder)
    except OSError:
        return False  # its program reports what it lacks
    return True


def protected(layout: Layout) -> list[str]:
    """Paths that processes of a run may never write, at any trust: state, git, the harness, roles, identity, git's
    settings, and the programs and the Python that the harness and its person start by name."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    paths = [
        layout.folders.top,
        layout.state,
        home(),
        os.path.dirname(os.path.dirname(files.__file__)),
        identity_folder(),
    ]
    paths += [_common(layout.folders.top), state_home(), os.path.join(config, "git"), sys.prefix]
    paths += [os.path.join(config, name) for name in ("fish", "autostart", "systemd")]
    paths += [sys.base_prefix, *_on_path()]
    return list(map(os.path.realpath, paths))


def _opened(folder: str, spared: Sequence[str]) -> list[str]:
    """The topmost folders below `folder` that neither are nor contain nor lie in a spared path.
    Folders above a spared path stay read-only: renaming them would move it.
    """
    return [path for path in landlock.beside(folder, [f"{folder}/", *spared]) if os.path.isdir(path)]


def _between(path: str, top: str) -> list[str]:
    """The folders below `top` that contain this existing path."""
    parts = path[len(top) :].split("/")[1:-1] if os.path.exists(path) else []
    return [os.path.join(top, *parts[:depth]) for depth in range(1, len(parts) + 1)]


def start_driver(tier: str, large: str, path: str, command: str, *values: str) -> None:
    """Exec this git driver, confined, with this PATH; `values` are those of its placeholders. `large`: for git-lfs, its
    folder, which it may write; it may also reach its server with a person's login."""
    env, cwd = dict(os.environ), os.getcwd()
    if large:
        files.make_folder(large)
    else:
        own = {key: value for key, value in env.items() if key == TAG or key.startswith("GIT_")}  # git sets its own
        env = variables.passing(env) | own | {"PATH": path}
    known = Confinement(glass=_of_driver(large, command, cwd, values), tier=tier)
    words = known.words(["/bin/sh", "-c", drivers.expand(command, values)], cwd=cwd, env=env)
    spawn.close_all_but({0, 1, 2})  # git holds locks of the harness
    for number, descriptor in enumerate(known.held()):
        os.dup2(descriptor, spawn.HELD_FROM + number)
    if tier == confine.LANDLOCK:
        landlock.restrict(
            known.glass.writable, tcp=bool(large), hidden=known.glass.hidden, readable=known.glass.readable
        )
    os.execve(words[0], words, env)


def _of_driver(large: str, command: str, cwd: str, values: Sequence[str]) -> Glass:
    """The Glass of a driver: it sees what a check sees and the programs of its command, and writes only the output file
    of a merge."""
    own = [os.environ.get(f"GIT_{name}", "") for name in ("DIR", "INDEX_FILE", "COMMON_DIR")]
    own += [os.path.dirname(os.path.realpath(own[2] + "/objects"))] if own[2] else []
    plain = os.path.expandvars(command.replace("'", '"'))
    words = map(os.path.expanduser, (*plain.replace('"', " ").split(), *plain.split('"')))
    named = [word.split("/bin/")[0] for word in words]
    own += [os.environ.get("SSH_AUTH_SOCK", "")] if large else named
    there = [path for path in own if os.path.isabs(path) and os.path.exists(path)]
    glass = _reading(cwd, *there, shown=_home_list.everything() if large else ())
    writable = [large] if large else [os.path.join(cwd, path) for path in values[1:2]]
    return glass.replace(writable=writable, network=NETWORKS[bool(large)])
