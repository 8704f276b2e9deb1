"""Parts of a repository that require a person's acceptance: MCP servers, skills with files, and a committed `.harness`
(configuration, hooks, rules of sessions). Restrictions of a workspace apply at once.

One digest covers all of it. The accepted digests of a folder are in the person's state folder, which confined processes
cannot write.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from harness.base import encoding, schema
from harness.base.errors import Unavailable
from harness.base.record import Record
from harness.git import dotgit, repository, settings
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
    "{accept}. Or remove it from the repository: git rm -r --cached .harness"
)
ODD = "The repository's .harness is {kind}, not a folder, and is never used. Remove it."


class Grants(Record):
    """Parts that wait for a person: one line each, and one digest of all."""

    rows: list[str] = []
    digest: str = ""

    def is_accepted(self, layout: Layout) -> bool:
        """Whether a person has accepted exactly these parts for the folder."""
        return not self.rows or self.digest in _accepted(layout)

    def accept(self, layout: Layout) -> None:
        """Record a person's acceptance for the folder."""
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
    """The grants for a `.harness` in the checked-out commit, regardless of records in that folder. Raises Unavailable
    if it is a link or a submodule. 2 git calls with one, else 1, and 0 without the folder."""
    if not os.path.lexists(layout.state) or not os.path.lexists(f"{layout.folders.top}/.git"):
        return Grants()
    words = ("ls-tree", "-z", "--full-tree", "HEAD", "--", *filter(None, [layout.folders.prefix]))
    code, out, err = settings.call(layout.folders.top, *words)
    if code and dotgit.commit(layout.folders.top):
        raise repository.failure(layout.folders.top, words[0], code, err)
    found = [row.partition("\t") for row in os.fsdecode(out).split("\0")[:-1] if not code]
    about = [row[0].split() for row in found if os.path.basename(row[2]).casefold() == STATE]  # macOS: in any case
    if not about:
        return Grants()
    if odd := [kind for _, kind, _ in about if kind != TREE]:
        raise Unavailable(ODD.format(kind="a link" if odd[0] == "blob" else "a submodule"))
    text = (files.read(layout.path(names.CONFIG)) or b"").decode("utf-8", "replace")
    out = repository.run(layout.folders.top, "ls-tree", "-r", "-z", "--name-only", about[0][2])
    held = os.fsdecode(out).split("\0")[:-1]
    more = f" and {len(held) - MAX_SHOWN_FILES} more" if len(held) > MAX_SHOWN_FILES else ""
    rows = [f".harness/config.toml: {line}" for line in text.split("\n") if line.strip() and line.strip()[0] != "#"]
    rows.append(f".harness: {', '.join(held[:MAX_SHOWN_FILES])}{more}")
    return _grants(rows, [text, about])


def check_state(layout: Layout) -> None:
    """Raise Unavailable if the repository has a `.harness` that no person has accepted."""
    found = of_state(layout)
    if not found.is_accepted(layout):
        raise Unavailable(FOREIGN.format(rows="; ".join(found.rows), accept=command("workspace accept")))


def path(layout: Layout) -> str:
    """The file with the accepted digests of a folder."""
    name = encoding.digest(os.fsencode(os.path.realpath(layout.folders.project)))[:32]
    return os.path.join(state_home(), "accepted", f"{name}.json")


def _accepted(layout: Layout) -> list[str]:
    row = files.read_json(path(layout))
    found = row.get("accepted") if isinstance(row, dict) else None
    return [str(one) for one in found] if isinstance(found, list) else []
