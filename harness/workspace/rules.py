"""Tool permission rules, such as `execute`, `maps_*` or `write_file(docs/**)`: deny, ask or allow. Pure.

A rule is a tool name, which may contain `*`, with an optional pattern in parentheses for the subject of the call: its
command, its path, or else its arguments as JSON. Deny wins over everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from harness.base import patterns
from harness.base.record import Record

ALLOW, ASK, DENY = "allow", "ask", "deny"
PATH, TEXT = "path", "text"  # kind of pattern: `*` matches within a path component, or any text
SPECIAL = "*?[{\\"


class ToolRule(Record):
    """One rule. `pattern`: None if the rule applies to every call of the tool."""

    text: str
    tool: str
    pattern: str | None

    def covers(self, tool: str) -> bool:
        """Whether the rule applies to a tool of this name."""
        return fnmatchcase(tool, self.tool)

    def fits(self, tool: str, about: str, kind: str = TEXT) -> bool:
        """Whether the rule matches a call of this tool with this path or text as its subject."""
        return self.covers(tool) and (self.pattern is None or _matches(self.pattern, about, kind))


class ToolRules(Record):
    """The tool permissions of a conversation. `allow`: lists that must each have a matching rule, [] for no
    restriction; `granted`: calls that a person has allowed permanently."""

    allow: list[list[str]] = []
    deny: list[str] = []
    ask: list[str] = []
    granted: list[str] = []

    @property
    def restricts(self) -> bool:
        """Whether there is any rule."""
        return bool(self.allow or self.deny or self.ask)

    def offers(self, tool: str) -> bool:
        """Whether any call of this tool could be allowed."""
        if any(rule.covers(tool) and rule.pattern is None for rule in map(parse, self.deny)):
            return False
        return all(any(rule.covers(tool) for rule in map(parse, one)) for one in self.allow)

    def verdict(self, tool: str, about: Sequence[str], kind: str = TEXT, like: str = "") -> tuple[str, str]:
        """(ALLOW, ASK or DENY, the deciding rule) for a call. A command with several parts has several subjects: deny and ask
        apply if one matches, allow only if each does. `like`: a tool whose general ask rule also covers this one."""
        if rule := _first(self.deny, tool, about, kind):
            return DENY, rule
        for one in self.allow:
            if not all(_first(one, tool, [text], kind) for text in about):
                return DENY, f"allow: {', '.join(one) or 'nothing'}"
        rule = _first(self.ask, tool, about, kind) or (_first(self.ask, like, [""], TEXT) if like else "")
        if not rule or all(_first(self.granted, tool, [text], kind) for text in about):
            return ALLOW, rule
        return ASK, rule

    def narrowed(self, only: Sequence[str] | None) -> ToolRules:
        """These rules with another allow-list; None adds none."""
        return self if only is None else self.replace(allow=[*self.allow, list(only)])


def parse(text: str) -> ToolRule:
    """Parse a valid rule (see `fault`)."""
    name, bracket, rest = text.partition("(")
    return ToolRule(text=text, tool=name, pattern=rest[:-1] if bracket else None)


def fault(text: str) -> str:
    """The fault of a rule's text; "" if it is valid."""
    name, bracket, rest = text.partition("(")
    if not name.strip() or any(map(str.isspace, name)):
        return "the name of a tool"
    if not bracket:
        return ""
    if not rest.endswith(")") or not rest[:-1].strip():
        return "a pattern in brackets"
    try:
        patterns.glob(rest[:-1])
    except patterns.BadPattern as bad:
        return f"a pattern ({bad})"
    return ""


def exact(tool: str, about: str, kind: str = TEXT) -> str:
    """The rule for exactly this call."""
    if kind == PATH:
        said = "".join("\\" + sign if sign in SPECIAL else sign for sign in about)
    else:
        said = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in about)
    return f"{tool}({said})"


def within(one: Iterable[str], other: Sequence[str]) -> list[str]:
    """The rules of `one` that allow only calls that `other` allows too."""
    wider = [parse(text) for text in other]

    def inside(rule: ToolRule) -> bool:
        return any(two.covers(rule.tool) and two.pattern in (None, rule.pattern) for two in wider)

    return [text for text in one if inside(parse(text))]


def _first(texts: Iterable[str], tool: str, about: Sequence[str], kind: str) -> str:
    found = (rule.text for rule in map(parse, texts) if any(rule.fits(tool, text, kind) for text in about))
    return next(found, "")


def _matches(pattern: str, about: str, kind: str) -> bool:
    """Whether a pattern matches. Path patterns work as in glob_files, including hidden names; `docs/**` also matches
    the folder."""
    if kind == TEXT:
        return fnmatchcase(about, pattern)
    whole = pattern.removesuffix("/**") if pattern.endswith("/**") else ""
    found = [patterns.glob(pattern, hidden=True)] + ([patterns.glob(f"/{whole}", hidden=True)] if whole else [])
    return any(one.match(about) for one in found)
