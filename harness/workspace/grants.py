"""What a repository brings that counts only once a person has accepted it: MCP servers, skills with files of their own, and a
committed `.harness` (configuration, hooks, the rules of sessions). What a workspace forbids holds at once.

One digest covers all of it. The digests that a person accepted for a folder are in their own state folder, where no confined
process writes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from harness.base import encoding, schema
from harness.base.errors import Unavailable
from harness.base.record import Record
from harness.git import contents, repository
from harness.store import files
from harness.store.layout import Layout, command, state_home
from harness.workspace.reading import Reader
from harness.workspace.skills import Skill
from harness.workspace.tools import STDIO, McpServer

STATE, TREE = ".harness", "tree"
SAID = ("roles", "sessions")  # what else of it says what agents may do
MOST = 100  # digests that are remembered for a folder
WAITS = "not used until you accept it ({accept}): {rows}"
FOREIGN = (
    "The repository has a .harness of its own, which may start programs and name where your key goes. Look at it, then: "
    "{accept}. Or take it out of the repository: git rm -r --cached .harness"
)
ODD = "The repository's .harness is {kind}, not a folder, and is never used. Remove it."


class Grants(Record):
    """What waits for a person: a line each, and one digest of all of it."""

    rows: list[str] = []
    digest: str = ""

    def is_accepted(self, layout: Layout) -> bool:
        """Whether a person has accepted exactly this for the folder."""
        return not self.rows or self.digest in _accepted(layout)

    def accept(self, layout: Layout) -> None:
        """Remember that a person accepted it for the folder."""
        kept = [one for one in _accepted(layout) if one != self.digest][-MOST:]
        files.make_folder(os.path.dirname(path(layout)))
        row = {"folder": layout.project, "accepted": [*kept, self.digest]}
        files.replace(path(layout), encoding.dump_json(row), files.PRIVATE)

    def waits(self) -> str:
        """The line for a person and the model where it was not accepted."""
        return WAITS.format(accept=command("workspace accept"), rows="; ".join(self.rows))


def of_workspace(reader: Reader, servers: Iterable[McpServer], skills: Iterable[Skill]) -> Grants:
    """What the workspace brings. `skills`: those that have files."""
    rows, about = [], list[object]()
    for server in servers:
        rows.append(_row_of(server))
        about.append(schema.plain(server))
    for skill in skills:
        rows.append(f"skill {skill.name}: {', '.join(skill.files) or 'links'}")
        about.append([skill.name, skill.text, reader.fingerprints(skill.folder)])
    return Grants(rows=rows, digest=encoding.digest(encoding.dump_json(about)))


def _row_of(server: McpServer) -> str:
    what = shlex.join([server.command, *server.args]) if server.transport == STDIO else server.url
    more = [f"{name}={value}" for name, value in {**server.env, **server.headers}.items()]
    free = " [not confined]" if server.transport == STDIO and not server.confine else ""
    return f"MCP server {server.name}{free}: {what}{f' ({shlex.join(more)})' if more else ''}"


def of_state(layout: Layout, commit: str) -> Grants:
    """What the repository brings as `.harness`. Raises Unavailable where that is a link or a submodule."""
    at = layout.prefix + STATE
    row = (
        repository.run(layout.top, "--literal-pathspecs", "ls-tree", "--full-tree", commit, "--", at) if commit else b""
    )
    if not row:
        return Grants()
    if (kind := row.split()[1].decode()) != TREE:
        raise Unavailable(ODD.format(kind="a link" if kind == "blob" else "a submodule"))
    config = files.read(layout.config)
    text = (config or b"").decode("utf-8", "replace")
    found = contents.entries(layout.top, commit, [f"{at}/{name}" for name in SAID])
    rows = [f".harness/config.toml: {line}" for line in text.split("\n") if line.strip() and line.strip()[0] != "#"]
    rows += [f"roles, and sessions with their rules: {len(found)} files"] if found else []
    about = [text, {path: one.blob for path, one in found.items()}]
    return Grants(rows=rows or [".harness"], digest=encoding.digest(encoding.dump_json(about)))


def check_state(layout: Layout, commit: str) -> None:
    """Raises Unavailable where the repository brings a `.harness` that no person has accepted."""
    if not of_state(layout, commit).is_accepted(layout):
        raise Unavailable(FOREIGN.format(accept=command("workspace accept")))


def path(layout: Layout) -> str:
    """The file with what was accepted for a folder."""
    name = encoding.digest(os.fsencode(os.path.realpath(layout.project)))[:32]
    return os.path.join(state_home(), "accepted", f"{name}.json")


def _accepted(layout: Layout) -> list[str]:
    row = files.read_json(path(layout))
    found = row.get("accepted") if isinstance(row, dict) else None
    return [str(one) for one in found] if isinstance(found, list) else []
