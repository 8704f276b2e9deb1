"""Translates shell globs for relative paths into regular expressions.

`*` and `?` match within a name, `**` matches across folders, `[…]` and `[!…]` match one character, `{a,b}` matches
either. A glob without `/` matches a name at any depth; one with `/` matches the path from the start of the search.
"""

from __future__ import annotations

import re

MAX_BRACES = 1000
VISIBLE = r"(?!\.)"  # a wildcard at the start of a name does not match a dot
BELOW = f"(?:{VISIBLE}[^/]+/)*"  # any folders except hidden ones


class BadPattern(ValueError):
    """An invalid pattern; the message gives the reason."""


def glob(pattern: str, *, hidden: bool = False, folders: bool = False) -> re.Pattern[str]:
    """The regular expression of a glob, for a full match of a path. `hidden`: wildcards match names that begin with a dot,
    as they always do in a pattern that contains such a name. `folders`: a pattern that ends with `/` matches the path of a
    folder with a `/` at its end, and nothing else; else that `/` has no meaning. Raises BadPattern."""
    if not pattern or "\0" in pattern:
        raise BadPattern("it is empty")
    found = "|".join(dict.fromkeys(_glob(one, hidden, folders) for one in braces(pattern)))
    return re.compile(found, re.DOTALL)


def names_hidden(pattern: str) -> bool:
    """Whether a glob contains a name that begins with a dot. Raises BadPattern."""
    return any(map(_names_hidden, braces(pattern)))


def _names_hidden(pattern: str) -> bool:
    return any(name.startswith((".", "\\.")) and name not in (".", "..") for name in pattern.split("/"))


def names_folders(pattern: str) -> bool:
    """Whether a glob asks for folders, by a `/` at its end. Raises BadPattern."""
    return any(one.endswith("/") for one in braces(pattern))


def _glob(pattern: str, hidden: bool, folders: bool) -> str:
    """The regular expression of a glob without braces."""
    anchored = "/" in pattern
    names = [name for name in pattern.strip("/").split("/") if name not in ("", ".")]
    if not names:
        raise BadPattern("it names nothing")
    parts = [] if anchored else [BELOW]
    for number, name in enumerate(names, start=1):
        if name == "**":
            parts.append(BELOW + (VISIBLE + "[^/]+" if number == len(names) else ""))
        else:
            hides = VISIBLE if name[0] in "*?[" else ""
            parts.append(hides + one_name(name) + ("/" if number < len(names) else ""))
    found = "".join(parts) + (("/" if pattern.endswith("/") else "(?<!/)") if folders else "")
    return f"(?:{found.replace(VISIBLE, '') if hidden or _names_hidden(pattern) else found})\\Z"


def braces(pattern: str) -> list[str]:
    """The patterns that a pattern with `{a,b}` expands to. Raises BadPattern."""
    begin = _open(pattern)
    if begin < 0:
        return [pattern]
    parts, depth, last = list[str](), 0, begin + 1
    for at in _signs(pattern, begin):
        if pattern[at] == "{":
            depth += 1
        elif pattern[at] == "," and depth == 1:
            parts.append(pattern[last:at])
            last = at + 1
        elif pattern[at] == "}":
            depth -= 1
            if not depth:
                heads = [pattern[:begin] + part for part in [*parts, pattern[last:at]]]
                found = [one for head in heads for one in braces(head + pattern[at + 1 :])]
                if len(found) > MAX_BRACES:
                    raise BadPattern(f"it expands to more than {MAX_BRACES} patterns")
                return found
    raise BadPattern("a { is not closed")


def _open(pattern: str) -> int:
    return next((at for at in _signs(pattern, 0) if pattern[at] == "{"), -1)


def _signs(pattern: str, begin: int) -> list[int]:
    """The positions of braces and commas that are neither escaped nor in brackets."""
    found, at = [], begin
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[" and (end := _closing(pattern, at)) > 0:
            at = end
        elif pattern[at] in "{,}":
            found.append(at)
        at += 1
    return found


def _closing(pattern: str, begin: int) -> int:
    """The position of the closing bracket; -1 if it is missing."""
    at = begin + 1
    if pattern[at : at + 1] in ("!", "^"):
        at += 1
    if pattern[at : at + 1] == "]":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at if at < len(pattern) else -1


def one_name(name: str) -> str:
    """The regular expression of one path component. Raises BadPattern."""
    found, at = list[str](), 0
    while at < len(name):
        sign = name[at]
        if sign == "*":
            if found[-1:] != ["[^/]*"]:
                found.append("[^/]*")
        elif sign == "?":
            found.append("[^/]")
        elif sign == "[":
            end = _closing(name, at)
            if end < 0:
                raise BadPattern("a [ is not closed")
            found.append(_class(name[at + 1 : end]))
            at = end
        elif sign == "\\":
            at += 1
            if at == len(name):
                raise BadPattern("it ends with a backslash")
            found.append(re.escape(name[at]))
        else:
            found.append(re.escape(sign))
        at += 1
    return "".join(found)


def _class(inside: str) -> str:
    """The regular expression of a bracket's content: characters and ranges."""
    negated = inside[:1] in ("!", "^")
    signs, at = list[tuple[str, str]](), int(negated)
    while at < len(inside):
        at += inside[at] == "\\" and at + 1 < len(inside)
        low, at = inside[at], at + 1
        high = low
        if inside[at : at + 1] == "-" and at + 1 < len(inside):
            at += 1
            at += inside[at] == "\\" and at + 1 < len(inside)
            high, at = inside[at], at + 1
        if low <= high:
            signs.append((low, high))
        else:
            raise BadPattern(f"the range {low}-{high} is reversed")
    body = "".join(re.escape(low) + (f"-{re.escape(high)}" if high != low else "") for low, high in signs)
    return f"[^/{body}]" if negated else f"(?!/)[{body}]"
