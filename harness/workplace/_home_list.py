"""The visible paths of a person's HOME for programs of a run: by home.txt, PATH, variables and config.toml."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from harness.state import files
from harness.workplace import _logins

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "home.txt")
SEEN, OPENED, FRESH, LOGIN, COPY, SETTINGS = "seen", "opened", "fresh", "login", "copy", "settings"
GIT, KEY, NAMED, MOVED, UNSET = "git", "key", "named", "moved", "unset"
ALL = "/"  # among the shown paths: everything
GIT_FILES = (".gitconfig", ".config/git/config")
PROGRAMS = ("bin", "sbin", ".bin", "shims")  # program folders of an installation
PARTS = ("lib", "lib64", "libexec", "share")
SYSTEM = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")  # never lead into a HOME
SHARED = ("", ".config", ".local", ".local/share", ".local/state", ".cache")  # never seen whole for a program in them
NAMES_A_FILE = re.compile(
    r"(?im)^\s*(?:cafile|ca-file|cert|cacert|cainfo|ca_certificate|ssl-?ca(?:info|path)|ssl_verify|excludesfile"
    r"|attributesfile)\s*[=:]\s*[\"']?([^\s\"'][^\"'\n]*)"
)
MAX_LINKS = 8  # in a chain


class HomeEntry(NamedTuple):
    """A line of home.txt: a path below HOME, its kind, and its variables."""

    path: str
    how: str
    variables: list[str]


class Person(NamedTuple):
    """A person's HOME. `places`: {path below HOME: another folder that a variable names for it}. Paths below HOME:
    `seen` (visible; "" is all of HOME), `shown` (by config.toml), and `hidden` ones below."""

    home: str
    places: Mapping[str, str]
    seen: tuple[str, ...]
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether everything except hidden paths is visible."""
        return "" in self.seen

    def at(self, path: str) -> str:
        """The absolute path of a path below HOME."""
        for below, folder in self.places.items():
            if is_in(path, below):
                return folder + path[len(below) :]
        return os.path.join(self.home, path) if path else self.home

    def below(self, path: str) -> str | None:
        """The relative path below HOME; None if it is elsewhere."""
        for below, folder in self.places.items():
            if is_in(path, folder):
                return below + path[len(folder) :]
        tops = [top for top in (self.home, _real(self.home)) if is_in(path, top)]
        return path[len(tops[0]) + 1 :] if tops else None

    def installed(self, path: str) -> list[str]:
        """The installation of a program below HOME, else the program itself; [] if it is elsewhere."""
        below = self.below(path)
        return [] if below is None else [self.at(part) for part in _installed(self, below) or [below]]

    def parts(self, path: str) -> list[str]:
        """This installation folder; if it is shared with other files of a person, only the parts of the installation."""
        return [f"{path}/{name}" for name in ("bin", *PARTS)] if self.below(path) in SHARED else [path]

    def how(self, path: str) -> str:
        """The kind of a path at or below a visible one."""
        entry = _known().get(path) or next((one for pattern, one in _patterns() if pattern.fullmatch(path)), None)
        how = entry.how if entry else SEEN
        if how == SETTINGS and (self.whole or any(is_in(path, one) for one in self.shown)):
            return COPY
        return LOGIN if path in self.hidden and how != SETTINGS else how


_real = functools.cache(os.path.realpath)


@functools.cache
def entries(*hows: str) -> list[HomeEntry]:
    """The lines of home.txt of these kinds."""
    lines = [line.split(None, 3) for line in (files.read_text(LIST) or "").split("\n") if line and line[0] != "#"]
    made = [HomeEntry(path, how, [name for name in names.split(",") if name != "-"]) for path, how, names, _ in lines]
    return [entry for entry in made if entry.how in hows]


@functools.cache
def _known() -> dict[str, HomeEntry]:
    """{path: its entry} of the known paths; parents of an entry count as opened folders."""
    found = {entry.path: entry for entry in entries(SEEN, OPENED, FRESH, COPY, SETTINGS)}
    return {**{path: HomeEntry(path, OPENED, []) for below in found for path in above(below)}, **found}


@functools.cache
def _patterns() -> list[tuple[re.Pattern[str], HomeEntry]]:
    found = [entry for entry in entries(OPENED, FRESH) if "*" in entry.path]
    return [(re.compile(re.escape(entry.path).replace(r"\*", "[^/]+")), entry) for entry in found]


def above(path: str) -> list[str]:
    """The parent paths, with "" for HOME itself."""
    return ["", *(path[:at] for at, sign in enumerate(path) if sign == "/")]


def is_in(path: str, folder: str) -> bool:
    """Whether a path is at or below this folder; every path is below ""."""
    return not folder or path == folder or path.startswith(folder.rstrip("/") + "/")


def elsewhere(env: Mapping[str, str], home: str) -> dict[str, str]:
    """{path below HOME: the folder that a variable names for it}, if that differs."""
    known = [(entry.path, name[1:]) for entry in entries(OPENED, MOVED) for name in entry.variables if name[0] == "="]
    named = {below: env[name].rstrip("/") for below, name in known if os.path.isabs(env.get(name, ""))}
    usual = {below: os.path.join(home, below) for below in named}
    return {
        below: theirs
        for below, theirs in named.items()
        if os.path.isdir(theirs) and theirs != usual[below] and not is_in(home, theirs)
    }


def person(home: str, env: Mapping[str, str], shown: Iterable[str] = ()) -> Person:
    """A person's HOME with the listed and these paths visible; with ALL among them, everything except keys."""
    one = Person(home, elsewhere(env, home), (), tuple(shown))
    if ALL in one.shown:
        keys = [entry.path for entry in entries(KEY) if not any(is_in(entry.path, path) for path in one.shown)]
        return one._replace(seen=("",), shown=(), hidden=tuple(keys))
    plain, logins = _settings(one)
    found = [entry.path for entry in entries(SEEN, OPENED) if "*" not in entry.path]
    found += [*one.shown, *plain, *_named(one, env)]
    roots = _outermost(path for path in found if os.path.exists(one.at(path)))
    seen = _outermost(path for path in [*roots, *_led_to(one, env, roots)] if os.path.exists(one.at(path)))
    hidden = [entry.path for entry in entries(LOGIN)] + logins
    hidden = [path for path in hidden if not any(is_in(path, shown) for shown in one.shown)]
    below = [path for path in hidden if any(is_in(path, top) for top in seen) and os.path.lexists(one.at(path))]
    return one._replace(seen=tuple(seen), hidden=tuple(below))


def everything() -> list[str]:
    """The shown paths when HOME is used unchanged."""
    return [ALL, *(entry.path for entry in entries(KEY))]


def _outermost(paths: Iterable[str]) -> list[str]:
    """The distinct paths that are not below another."""
    found: list[str] = []
    for path in sorted(set(paths)):
        if not any(is_in(path, one) for one in found):
            found.append(path)
    return found


def _settings(one: Person) -> tuple[list[str], list[str]]:
    """(settings files without credentials, settings files with them)."""
    texts = {entry.path: _text(one, entry.path) for entry in entries(SETTINGS)}
    logins = [path for path, text in texts.items() if _logins.without(text) != text]
    copies = [entry.path for entry in entries(COPY) if entry.path not in GIT_FILES]
    return [*copies, *(path for path in texts if path not in logins)], logins


def _text(one: Person, path: str) -> str:
    """The text of a settings file, "" if absent."""
    theirs = one.at(path)
    return os.fsdecode(files.read(theirs) or b"") if os.path.isfile(theirs) else ""


def _named(one: Person, env: Mapping[str, str]) -> list[str]:
    """Paths below HOME named by variables and by settings for certificates and git excludes, which may be fully visible."""
    variables = [name.lstrip("=") for entry in entries(SEEN, OPENED, NAMED) for name in entry.variables]
    named = [path for name in variables for path in env.get(name, "").split(os.pathsep)]
    for path in [*GIT_FILES, *(entry.path for entry in entries(SETTINGS))]:
        found = (found[1].rstrip() for found in NAMES_A_FILE.finditer(_text(one, path)))
        named += [re.sub(r"^(?:~|\$\{?HOME\}?)/", one.home + "/", name) for name in found]
    known = {one.below(os.path.normpath(path)) for path in named if os.path.isabs(path)} - {None, *SHARED}
    return [path for path in map(str, known) if "PRIVATE KEY" not in _text(one, path)]


def _led_to(one: Person, env: Mapping[str, str], roots: list[str]) -> Iterator[str]:
    """Paths below HOME reached through PATH: its folders and the targets of links in them, with their installations."""
    known = [*roots, *(entry.path for entry in entries(KEY))]
    path = [folder for folder in env.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    for folder in path:
        for at in {os.path.normpath(folder), os.path.realpath(folder)}:
            below = one.below(at)
            if below not in (None, *SHARED) and not any(is_in(str(below), root) for root in roots):
                yield from [str(below), *_installed(one, f"{below}/-")]
    own = [one.at(entry.path) for entry in entries(OPENED) if os.path.basename(entry.path) in PROGRAMS]
    for folder in {*path, *own}:
        for link in () if folder.rstrip("/") in SYSTEM else _links(folder):
            below = one.below(link)
            if below is not None and not any(is_in(below, path) for path in known):
                yield from _installed(one, below) or [below]


def _links(folder: str) -> Iterator[str]:
    """The targets of the links in a folder, step by step."""
    try:
        with os.scandir(folder) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return
    for path in links:
        for _ in range(MAX_LINKS):
            if not os.path.islink(path):
                break
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
            yield path
        yield os.path.realpath(path)


def _installed(one: Person, path: str) -> list[str]:
    """The installation folder of a program below HOME; if it may contain other files of a person, its known parts."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) not in PROGRAMS:
        return [] if _is_shared(one, folder) else [folder]
    above = os.path.dirname(folder)
    if not _is_shared(one, above):
        return [above]
    parts = [] if above in SHARED else [f"{above}/{name}" for name in PARTS]
    return [folder, *(part for part in parts if os.path.isdir(one.at(part)))]


def _is_shared(one: Person, folder: str) -> bool:
    """Whether a folder may contain more than one installation: settings, credentials, other projects."""
    if "/" not in folder and folder[:1] not in ("", "."):
        return not any(os.path.isdir(one.at(f"{folder}/{name}")) for name in PARTS)
    return folder in SHARED or os.path.dirname(folder) in SHARED
