"""Translates shell globs for relative paths into regular expressions.

`*` and `?` match within a name, `**` matches across folders, `[…]` and `[!…]` match one character, `{a,b}` matches
either. A glob without `/` matches a name at any depth; one with `/` matches the path from the start of the search.
"""

from __future__ import annotations

import re

MAX_BRACES = 1000
VISIBLE = r"(?!\.)"  # a wildcard at the start of a name does not match a dot
BELOW = f"(?:{VISIBLE}[^/]+/)*"  # any folders except hidden ones

BRACKET = r"\[[!^]?+\]?+(?:\\.|[^\\\]])*\]"
SIGN = re.compile(rf"\\.|{BRACKET}|\*+|.", re.DOTALL)  # an escaped character, a bracket, stars, or one character
UNFINISHED = {"[": "a [ is not closed", "\\": "it ends with a backslash"}
RANGE = re.compile(r"(?:\\(?=.))?(.)(?:-(?:\\(?=.))?(.))?", re.DOTALL)


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
    signs = SIGN.findall(pattern)
    if "{" not in signs:
        return [pattern]
    begin, depth, parts = signs.index("{"), 0, [""]
    for at, sign in enumerate(signs[begin:], start=begin):
        depth += (sign == "{") - (sign == "}")
        if not depth:
            head, tail = "".join(signs[:begin]), "".join(signs[at + 1 :])
            found = [one for part in parts for one in braces(head + part + tail)]
            if len(found) > MAX_BRACES:
                raise BadPattern(f"it expands to more than {MAX_BRACES} patterns")
            return found
        if sign == "," and depth == 1:
            parts.append("")
        elif at > begin:
            parts[-1] += sign
    raise BadPattern("a { is not closed")


def one_name(name: str) -> str:
    """The regular expression of one path component. Raises BadPattern."""
    return "".join(map(_one_sign, SIGN.findall(name)))


def _one_sign(sign: str) -> str:
    if sign in UNFINISHED:
        raise BadPattern(UNFINISHED[sign])
    if sign[0] == "*":
        return "[^/]*"
    if sign == "?":
        return "[^/]"
    return _class(sign[1:-1]) if sign[0] == "[" else re.escape(sign[-1])


def _class(inside: str) -> str:
    """The regular expression of a bracket's content: characters and ranges."""
    negated, body = inside[:1] in ("!", "^"), ""
    for low, high in RANGE.findall(inside[negated:]):
        if high and low > high:
            raise BadPattern(f"the range {low}-{high} is reversed")
        body += re.escape(low) + (f"-{re.escape(high)}" if high else "")
    return f"[^/{body}]" if negated else f"(?!/)[{body}]"
