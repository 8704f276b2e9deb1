"""tools.json: an agent's tool permissions and MCP servers. A broken file never means "no restrictions".

`${NAME}` and `${NAME:-default}` in a server's texts are substituted after parsing, at its start, so that a value cannot
change the structure or a rule, and no secret reaches a prompt or a record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.workspace import rules

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Tools_ = list[str]
    Transport = str
    Seconds = int
else:
    Tools_ = schema.listed(
        schema.TEXT.part("a rule", lambda text: not rules.fault(text)),
        'a list of names of tools, such as ["execute"], or of rules, such as ["execute(git push*)"]',
    )
    Transport = schema.one_of(("", "stdio", "http", "streamableHttp", "streamable-http"))
    Seconds = schema.WORDS["Positive"]

STDIO, HTTP = "stdio", "http"
OFF = "To have no tools.json of the harness here, write into config.toml: [workspace] tools = false"
FOREIGN = ("type", "command", "args", "env", "url", "headers", "disabled")  # fields of a server in a .mcp.json
PLACEHOLDER = re.compile(r"\$\{[^}]*\}?")  # also one that is no variable, such as an editor's ${input:login}
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class _File(Record):
    allow: Tools_ | None = None
    deny: Tools_ = []
    ask: Tools_ = []
    mcpServers: dict[str, Json] = {}  # noqa: N815 - the field's usual name


class _Server(Record):
    """A server as in the file; `type` is an alias of `transport`."""

    transport: Transport = ""
    type: Transport = ""
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    tools: Tools_ | None = None
    timeout: Seconds = 60
    confine: bool = True
    disabled: bool = False


class McpServer(Record):
    """An MCP server: over `stdio` (a command) or `http` (a URL). `tools`: the offered subset of its tools, None for all;
    `seconds`: the timeout of a call; `confine`: whether its command is confined. Texts contain `${NAME}` as written."""

    name: str
    transport: str
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    tools: list[str] | None = None
    seconds: int = 60
    confine: bool = True


class ToolsFile(Record):
    """The content of a tools.json, as rules of `rules.py`. `allow` None: every tool that is not denied; `faults`: one
    line for each server skipped because its entry is invalid; `unused`: one for each field of a .mcp.json that is left out;
    `disabled`: names of servers that are switched off."""

    allow: list[str] | None = None
    deny: list[str] = []
    ask: list[str] = []
    servers: list[McpServer] = []
    faults: list[str] = []
    unused: list[str] = []
    disabled: list[str] = []

    @property
    def restricts(self) -> bool:
        """Whether any call is denied or needs a person's permission."""
        return self.rules.restricts

    @property
    def rules(self) -> rules.ToolRules:
        """The rules of its lists."""
        return rules.ToolRules(allow=[] if self.allow is None else [self.allow], deny=self.deny, ask=self.ask)


def of_json(value: Mapping[str, Any]) -> ToolsFile:
    """The inverse of `schema.plain` for a ToolsFile."""
    return ToolsFile(**{**value, "servers": [McpServer(**row) for row in value["servers"]]})


def parse(text: str, path: str, *, foreign: bool = False) -> ToolsFile:
    """Parse the file; raises BrokenFile with the line. An empty file is broken too; `{}` restricts nothing. An invalid
    server is skipped, since it restricts nothing. `foreign`: a .mcp.json, of which only known fields count."""
    if not text.strip():
        raise BrokenFile(path, "the file is empty", line=1, remedy=f"For no restrictions write {{}}. {OFF}")
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as fault:
        raise BrokenFile(
            path, f"not JSON ({fault.msg})", line=fault.lineno, remedy=f"Correct that line. {OFF}"
        ) from None
    except _Twice as fault:
        raise BrokenFile(
            path, str(fault), line=_line(text, fault.key, last=True), remedy=f"Say it once. {OFF}"
        ) from None
    except RecursionError:
        raise BrokenFile(path, "nested too deeply", line=1, remedy=OFF) from None
    unknown = _removed(value, path) if foreign else []
    found = schema.faults(value, "the file", _File)
    if found:
        raise BrokenFile(path, "; ".join(found), line=_line(text, found[0].key), remedy=f"docs/workspace.md. {OFF}")
    whole = _File(**value)
    made = ToolsFile(allow=whole.allow, deny=whole.deny, ask=whole.ask, unused=unknown)
    made.disabled = [
        name for name, row in whole.mcpServers.items() if isinstance(row, dict) and row.get("disabled") is True
    ]
    for name, row in whole.mcpServers.items():
        if name in made.disabled:
            continue
        try:
            made.servers.append(_server(name, row, text, path))
        except BrokenFile as broken:
            made.faults.append(broken.brief)
    return made


def _removed(value: Any, path: str) -> list[str]:
    """Remove the fields that .mcp.json does not have here; a line for each."""
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    rows = servers.items() if isinstance(servers, dict) else ()
    known = [("the file", value, ("mcpServers",)), *((f"the server '{name}'", row, FOREIGN) for name, row in rows)]
    gone = [(where, row, key) for where, row, keys in known if isinstance(row, dict) for key in row if key not in keys]
    for _, row, key in gone:
        del row[key]
    return [f"{path}: '{key}' of {where} is not used" for where, _, key in gone]


class _Twice(ValueError):
    """A key appears twice in one object; JSON would keep the last and lose a rule."""

    def __init__(self, key: str) -> None:
        super().__init__(f"'{key}' appears twice")
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _Twice(key)
        made[key] = value
    return made


def _line(text: str, key: str, *, last: bool = False) -> int:
    """The 1-based line of a key; 1 if it is absent."""
    found = (
        [found.start() for found in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)), text)] if key else []
    )
    return text.count("\n", 0, found[-1 if last else 0]) + 1 if found else 1


def _server(name: str, row: object, text: str, path: str) -> McpServer:
    where = f"the server '{name}'"
    faults = [str(one) for one in schema.faults(row, where, _Server)]
    faults += [] if schema.is_name(name) else [f"{where} has no name of letters, digits, '.', '_', '-'"]
    if not faults:
        asked = _Server(**row)  # type: ignore[arg-type]  # validated by `faults`
        said = asked.transport or asked.type
        transport = STDIO if said == STDIO or not (said or asked.url) else HTTP
        needs = "command" if transport == STDIO else "url"
        faults += [] if getattr(asked, needs) else [f"{where} has no '{needs}'"]
        faults += [f"{where} has both a 'command' and a 'url'"] if asked.command and asked.url else []
    if faults:
        raise BrokenFile(path, "; ".join(faults), line=_line(text, name), remedy=f"docs/workspace.md. {OFF}")
    same = {key: getattr(asked, key) for key in ("command", "args", "env", "url", "headers")}
    seconds, confine = asked.timeout, asked.confine
    return McpServer(name=name, transport=transport, tools=asked.tools, seconds=seconds, confine=confine, **same)


def substituted(server: McpServer, env: Mapping[str, str]) -> tuple[McpServer, list[str]]:
    """(server with the variables of `env` substituted, what of its texts still has a `${` then, which prevents its start)."""
    left: list[str] = []

    def put(key: str, text: str) -> str:
        made = VARIABLE.sub(lambda found: env.get(found[1], found[0] if found[2] is None else found[2]), text)
        if "${" in made:
            left.append(f"{key} has {', '.join(one for one in PLACEHOLDER.findall(text) if one in made) or '${'}")
        return made

    made = server.replace(
        command=put("command", server.command),
        args=[put("args", one) for one in server.args],
        env={key: put(f"env.{key}", value) for key, value in server.env.items()},
        url=put("url", server.url),
        headers={key: put(f"headers.{key}", value) for key, value in server.headers.items()},
    )
    return made, left


def merged(found: Iterable[ToolsFile]) -> ToolsFile:
    """Merge several files, nearer layers last: every deny counts, a tool must be in each allow-list, and a later server
    replaces one of the same name, or switches it off."""
    denied, asked, disabled = list[str](), list[str](), list[str]()
    allowed: list[str] | None = None
    servers: dict[str, McpServer] = {}
    faults = list[str]()
    for one in found:
        faults += one.faults
        denied += [rule for rule in one.deny if rule not in denied]
        asked += [rule for rule in one.ask if rule not in asked]
        if one.allow is not None:
            allowed = one.allow if allowed is None else _both(allowed, one.allow)
        servers |= {server.name: server for server in one.servers}
        servers = {name: server for name, server in servers.items() if name not in one.disabled}
        disabled = [name for name in dict.fromkeys([*disabled, *one.disabled]) if name not in servers]
    held = list(servers.values())
    return ToolsFile(allow=allowed, deny=denied, ask=asked, servers=held, faults=faults, disabled=disabled)


def _both(one: list[str], two: list[str]) -> list[str]:
    """The intersection of two rule lists; of two rules the narrower."""
    kept = rules.within(one, two)
    return kept + [rule for rule in rules.within(two, one) if rule not in kept]
