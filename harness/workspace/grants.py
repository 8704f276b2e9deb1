"""Parts of a folder that require a person's acceptance: MCP servers, skills with files, and a `.harness` (configuration, hooks,
rules of sessions) that is committed or was made by somebody else. Restrictions of a workspace apply at once.

One digest covers all of it. The accepted digests of a folder are in the person's state folder, which confined processes
cannot write. A `.harness` that was made here has a random id; the state folder, or a variable of the person, has it, too.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator

from harness.base import encoding, schema
from harness.base.errors import BrokenFile, Unavailable, UsageFault
from harness.base.record import Record
from harness.git import dotgit, repository, settings
from harness.mission import mission
from harness.state import files, names
from harness.state.layout import Layout, command, state_home
from harness.workspace._reader import WorkspaceReader
from harness.workspace.skills import Skill
from harness.workspace.tools import STDIO, McpServer

STATE, TREE = ".harness", "tree"
MAX_SHOWN_FILES = 20
MAX_REMEMBERED_DIGESTS = 100  # remembered digests per folder
WAITS = "not used until you accept it ({accept}): {rows}"
FOREIGN = (
    "The repository has a .harness of its own, which may start programs and name where your key goes: {rows}. Look at it, then: "
    "{accept}. Or remove it from the repository: git rm -r --cached .harness && git commit -m 'Remove .harness'"
)
UNKNOWN = (
    "{path} was not made here by your user, and it may start programs and name where your key goes: {rows}. Look at it, then: "
    "{accept}. Or move it away. On a machine that is new each time: HARNESS_ORIGIN (docs/unattended.md)."
)
SHOWN_DIGITS = 16  # of the digest of a `.harness`, which `workspace accept` takes
ORIGINS, BEFORE = "origins", "before"  # in the state folder: the ids; the missions there before the first of them
ID, GIVEN = "[0-9a-f]{32}", "HARNESS_ORIGIN"  # an id; the variable by which a person names theirs
ODD = "The repository's .harness is {kind}, not a folder, and is never used. Remove it."


class Grants(Record):
    """Parts that wait for a person: one line each, and one digest of all. `unknown`: a `.harness` that was not made here."""

    rows: list[str] = []
    digest: str = ""
    unknown: bool = False

    def is_accepted(self, layout: Layout) -> bool:
        """Whether a person has accepted exactly these parts for the folder."""
        return not self.rows or (not self.unknown and self.digest in _accepted(layout))

    def accept(self, layout: Layout) -> None:
        """Record a person's acceptance for the folder."""
        if self.unknown:
            adopt(layout)
            of_state(layout).accept(layout)
            return
        kept = [one for one in _accepted(layout) if one != self.digest][-MAX_REMEMBERED_DIGESTS:]
        files.make_folder(os.path.dirname(path(layout)))
        row = {"folder": layout.folders.project, "accepted": [*kept, self.digest]}
        files.replace(path(layout), encoding.dump_json(row), files.PRIVATE)

    def waits(self) -> str:
        """The message for the person and the model without acceptance."""
        return WAITS.format(accept=command("workspace accept"), rows="; ".join(self.rows))


def _grants(rows: Iterable[str], about: object) -> Grants:
    """Make Grants; each row is forced onto one line."""
    shown = [row.replace("\n", "\\n") for row in rows]
    return Grants(rows=shown, digest=encoding.digest(encoding.dump_json(about)))


def of_workspace(reader: WorkspaceReader, servers: Iterable[McpServer], skills: Iterable[Skill]) -> Grants:
    """The grants that the workspace needs. `skills`: those with files."""
    rows, about = [], list[object]()
    for server in servers:
        rows.append(_row_of(server))
        about.append(schema.plain(server))
    for skill in skills:
        rows.append(f"skill {skill.name}: {', '.join(skill.files) or 'links'}")
        about.append([skill.name, skill.text, reader.fingerprints(skill.folder)])
    return _grants(rows, about)


def _row_of(server: McpServer) -> str:
    what = shlex.join([server.command, *server.args]) if server.transport == STDIO else server.url
    more = [f"{name}={value}" for name, value in {**server.env, **server.headers}.items()]
    free = " [not confined]" if server.transport == STDIO and not server.confine else ""
    return f"MCP server {server.name}{free}: {what}{f' ({shlex.join(more)})' if more else ''}"


def of_state(layout: Layout) -> Grants:
    """The grants for a `.harness` that is in the checked-out commit, whatever that folder says, or was not made here.
    Raises Unavailable if it is committed as a link or a submodule. 2 git calls with a commit, else 1; 0 without it."""
    if not os.path.lexists(layout.state):
        return Grants()
    about, held = _committed(layout)
    disk = [] if _is_known(layout) else [*_files_of(layout.state)]
    if not about and not disk:
        return Grants()
    held = [name for name, _ in disk] or held
    text = (files.read(layout.path(names.CONFIG)) or b"").decode("utf-8", "replace")
    rows = [f".harness/config.toml: {line}" for line in text.split("\n") if line.strip() and line.strip()[0] != "#"]
    rows.append(f".harness: {encoding.few(held, MAX_SHOWN_FILES)}")
    return _grants(rows, [text, about, *([disk] if disk else [])]).replace(unknown=bool(disk))


def _committed(layout: Layout) -> tuple[list[list[str]], list[str]]:
    """(mode, kind and object of each `.harness` in the checked-out commit, the names of their files)."""
    if not os.path.lexists(f"{layout.folders.top}/.git"):
        return [], []
    words = ("ls-tree", "-z", "--full-tree", "HEAD", "--", *filter(None, [layout.folders.prefix]))
    code, out, err = settings.call(layout.folders.top, *words)
    if code and dotgit.commit(layout.folders.top):
        raise repository.failure(layout.folders.top, words[0], code, err)
    found = [row.partition("\t") for row in os.fsdecode(out).split("\0")[:-1] if not code]
    about = [row[0].split() for row in found if os.path.basename(row[2]).casefold() == STATE]  # macOS: in any case
    if not about:
        return [], []
    if odd := [kind for _, kind, _ in about if kind != TREE]:
        raise Unavailable(ODD.format(kind="a link" if odd[0] == "blob" else "a submodule"))
    out = repository.run(layout.folders.top, "ls-tree", "-r", "-z", "--name-only", about[0][2])
    return about, os.fsdecode(out).split("\0")[:-1]


def _files_of(folder: str) -> Iterator[list[str]]:
    """[path below the folder, digest of its bytes, or what a link leads to] of every file, without what killed writers left."""
    for at, folders, found in os.walk(folder):
        gone = {os.path.basename(path) for path in files.abandoned(at)}
        folders.sort()
        for name in sorted({*found, *(one for one in folders if os.path.islink(os.path.join(at, one)))} - gone):
            path = os.path.join(at, name)
            link = os.readlink(path) if os.path.islink(path) else ""
            data = (files.read(path) or b"") if os.path.isfile(path) and not link else os.fsencode(link)
            yield [os.path.relpath(path, folder), encoding.digest(data)]


def check_state(layout: Layout) -> None:
    """Raise Unavailable if the folder has a `.harness` that is committed or was not made here, and no person has accepted it."""
    found = of_state(layout)
    if not found.is_accepted(layout):
        accept = command(f"workspace accept {found.digest[:SHOWN_DIGITS]}")
        fault = FOREIGN if _committed(layout)[0] else UNKNOWN
        raise Unavailable(fault.format(path=layout.shown(""), rows="; ".join(found.rows), accept=accept))


def begin(layout: Layout) -> None:
    """Mark a `.harness` that this process is about to make as made here; one with files is left as it is."""
    if not any(_files_of(layout.state)):
        adopt(layout)


def adopt(layout: Layout) -> None:
    """Add a new id to a `.harness`, and to the state folder before, unless it is known. Nobody who made the folder elsewhere
    knows the id."""
    if os.path.lexists(layout.state) and _is_known(layout):
        return
    key, known = os.environ.get(GIVEN) or os.urandom(16).hex(), files.read(layout.path(names.ORIGIN)) or b""
    if not re.fullmatch(ID, key):
        raise UsageFault(f"{GIVEN} is not an id of 32 hexadecimal digits. Make one: openssl rand -hex 16")
    files.make_folder(os.path.dirname(_origin(BEFORE)))
    if not os.path.exists(_origin(BEFORE)):
        files.replace(_origin(BEFORE), "\n".join(_missions_before()).encode(), files.PRIVATE)
    files.replace(_origin(key), b"", files.PRIVATE)
    files.make_folder(layout.state)
    files.replace(layout.path(names.ORIGIN), known + key.encode() + b"\n", files.PRIVATE)


def _is_known(layout: Layout) -> bool:
    """Whether the person or the state folder has an id of the `.harness`, or that its mission, begun before there were ids."""
    keys = re.findall(f"^{ID}$", (files.read(layout.path(names.ORIGIN)) or b"").decode("latin-1"), re.MULTILINE)
    if any(key == os.environ.get(GIVEN) or os.path.exists(_origin(key)) for key in keys):
        return True
    try:
        row = files.read_json(layout.path(names.MISSION))
    except BrokenFile:
        return False
    return isinstance(row, dict) and row.get("id") in _missions_before()


def _missions_before() -> list[str]:
    """The missions in the state folder when it got its first id."""
    if (data := files.read(_origin(BEFORE))) is not None:
        return data.decode("utf-8", "replace").split("\n")
    return [name for name in files.names(state_home()) if re.fullmatch(mission.ID, name)]


def _origin(name: str) -> str:
    return os.path.join(state_home(), ORIGINS, name)


def path(layout: Layout) -> str:
    """The file with the accepted digests of a folder."""
    name = encoding.digest(os.fsencode(os.path.realpath(layout.folders.project)))[:32]
    return os.path.join(state_home(), "accepted", f"{name}.json")


def _accepted(layout: Layout) -> list[str]:
    row = files.read_json(path(layout))
    found = row.get("accepted") if isinstance(row, dict) else None
    return [str(one) for one in found] if isinstance(found, list) else []
