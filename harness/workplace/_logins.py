"""Removes credentials from settings of tools, so that the rest still locates packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.base import redaction

Pairs = Sequence[Sequence[str | None]]

LONG = "token|passw|passphrase|secret|credential|apikey|api_key|keyfile|proxyuser"  # anywhere in a setting's name
SHORT = "auth|oauth2?|key|user|username|login|cookie|header|netrc|password_command"  # as a word of it
CAMEL = "Auth|Key|User|Login"
NAMED = re.compile(rf"(?i:{LONG})|(?<![A-Za-z])(?i:{SHORT})(?![A-Za-z])|(?<=[a-z0-9])(?:{CAMEL})(?![a-z])")
KEPT = re.compile(r"(?i)registry\s*$")  # `@my-auth:registry`: an address
SEPARATOR = re.compile(r"=|:\s")  # of a name and its value, in any of these formats
BUNDLER = re.compile(r"BUNDLE_\w+__")  # a server with credentials as its value
OPTION = re.compile(r"-[uUHE]\b")  # of curl
INLINE = re.compile(r"[{,]\s*([\w.-]+)\s*[=:]")  # the names in an inline table
IN_ADDRESS = re.compile(
    r"(?i)(https?|ftp)://[^/\s@\"'<>]+@|(\w+)://[^/\s@:\"'<>]*:[^/\s@\"'<>]+@|(?<=/t/)[\w-]{8,}(?=/)"
)
IN_XML = re.compile(
    r"(?is)<(servers|packageSourceCredentials|apikeys)\b.*?</\1\s*>"
    r"|<([\w.-]*(?:user(?:name)?|passw|passphrase|token|secret|privatekey)[\w.-]*)>.*?</\2\s*>"
)


def without(text: str) -> str:
    """The text of a settings file (ini, TOML, YAML, XML, properties) without credentials."""
    text = IN_XML.sub("", text) if text.lstrip().startswith("<") else "".join(_kept(text.splitlines(keepends=True)))
    return _plain(text)


def without_in_git(config: Pairs) -> list[list[str | None]]:
    """The same for (key, value) pairs of git's configuration, whose keys may also contain URLs."""
    return [[_plain(str(key)), None if value is None else _plain(value)] for key, value in config]


def _plain(text: str) -> str:
    return redaction.mask(
        IN_ADDRESS.sub(lambda found: f"{found[1] or found[2]}://" if found[0][-1] == "@" else "x", text)
    )


def _kept(lines: Iterable[str]) -> Iterator[str]:
    """The lines that neither name a credential nor continue its value, by brackets or indentation."""
    brackets, indent = 0, -1  # of the login above; -1 for none
    for line in lines:
        if brackets > 0:
            brackets += _opened(line)
        elif 0 <= indent < _indent(line):
            continue
        elif _is_login(line):
            indent, value = _indent(line), SEPARATOR.split(line, maxsplit=1)[-1].lstrip()
            brackets = _opened(value) if value.startswith(("[", "{")) else 0
        else:
            indent = -1
            yield line


def _is_login(line: str) -> bool:
    """Whether the line has a setting whose name says so, also one in an inline table or a comment."""
    bare = line.strip().lstrip("#; ")
    name = SEPARATOR.split(bare, maxsplit=1)[0] if SEPARATOR.search(bare) else bare.split(" ")[0]
    names = [*INLINE.findall(bare), *([] if name == bare or KEPT.search(name) else [name])]
    return bool(OPTION.match(bare) or BUNDLER.search(name) or any(map(NAMED.search, names)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _opened(line: str) -> int:
    """How many brackets of a value this line leaves open."""
    return sum(map(line.count, "[{")) - sum(map(line.count, "]}"))
