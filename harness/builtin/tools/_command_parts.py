"""The single commands of a shell command line, for rules: the parts between operators and inside substitutions.

A rule about commands guards against mistakes, not against intent: `sh -c`, an alias or a script gets around any pattern.
Confinement limits what a command may touch."""

from __future__ import annotations

OPERATORS = frozenset(";&|\n(){}`")
ASSIGNED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def parts(line: str) -> list[str]:
    """The whole line, then its single commands without variables that are set for them, as far as they differ."""
    found = [part for text in _split(line) if (part := _bare(text))]
    return found if len(found) == 1 else list(dict.fromkeys([line.strip(), *found]))


def _split(line: str) -> list[str]:
    """The line cut at operators that no quotes or backslash hide; a substitution in double quotes is cut out, too."""
    found, part, quote, at = list[str](), list[str](), "", 0
    while at < len(line):
        sign = line[at]
        if sign == "\\" and quote != "'":
            part.append(line[at : at + 2])
            at += 2
            continue
        if sign in "'\"" and quote in ("", sign):
            quote = "" if quote else sign
        elif (not quote and sign in OPERATORS) or (quote == '"' and (sign == "`" or line[at : at + 2] == "$(")):
            found.append("".join(part).removesuffix("$"))
            part, at = [], at + (sign == "$")
            at += 1
            continue
        part.append(sign)
        at += 1
    return [*found, "".join(part)]


def _bare(command: str) -> str:
    """A command without `NAME=value` before it."""
    words = command.split()
    while words and (name := words[0].partition("=")[0]) != words[0] and set(name) <= ASSIGNED and name:
        words.pop(0)
    return " ".join(words)
