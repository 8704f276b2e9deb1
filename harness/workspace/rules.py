"""Rules on calls of tools, such as `execute`, `maps_*` or `write_file(docs/**)`: what is denied, asked about, or allowed. Pure.

A rule is the name of a tool, which may hold `*`, and perhaps in brackets a pattern for what the call is about: its command, its
path, or else its arguments as JSON. Deny wins over everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from harness.base import patterns
from harness.base.record import Record

ALLOW, ASK, DENY = "allow", "ask", "deny"
PATH, TEXT = "path", "text"  # how a pattern is read: `*` stays within a name of a path, or is any text
SPECIAL = "*?[{\\"


class ToolRule(Record):
    """One rule. `pattern`: None where the rule is about every call of the tool."""

    text: str
    tool: str
    pattern: str | None

    def covers(self, tool: str) -> bool:
        """Whether it is about a tool of this name."""
        return fnmatchcase(tool, self.tool)

    def fits(self, tool: str, about: str, kind: str = TEXT) -> bool:
        """Whether it is about a call of this tool, which is about this path or text."""
        return self.covers(tool) and (self.pattern is None or _matches(self.pattern, about, kind))


class ToolRules(Record):
    """What a conversation may call. `allow`: lists of which each must have a rule that fits, none for no such lists; `granted`:
    what a person has said yes to for good, which is not asked about again."""

    allow: list[list[str]] = []
    deny: list[str] = []
    ask: list[str] = []
    granted: list[str] = []

    @property
    def restricts(self) -> bool:
        """Whether there is any rule."""
        return bool(self.allow or self.deny or self.ask)

    def offers(self, tool: str) -> bool:
        """Whether any call of a tool of this name could be allowed."""
        if any(rule.covers(tool) and rule.pattern is None for rule in map(parse, self.deny)):
            return False
        return all(any(rule.covers(tool) for rule in map(parse, one)) for one in self.allow)

    def verdict(self, tool: str, about: Sequence[str], kind: str = TEXT, like: str = "") -> tuple[str, str]:
        """(ALLOW, ASK or DENY, the rule that says so) for a call. It is about several texts where a command has several parts:
        a rule that denies or asks fits one of them, rules that allow fit each. `like`: a tool whose every call being
        asked about is about this one, too."""
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
        """These rules, with one more list of what is allowed; None for none."""
        return self if only is None else self.replace(allow=[*self.allow, list(only)])


def parse(text: str) -> ToolRule:
    """The rule in a text that `fault` accepts."""
    name, bracket, rest = text.partition("(")
    return ToolRule(text=text, tool=name, pattern=rest[:-1] if bracket else None)


def fault(text: str) -> str:
    """What is wrong with the text of a rule; "" for nothing."""
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
    """Those of the rules `one` that allow nothing but what the rules `other` allow."""
    wider = [parse(text) for text in other]

    def inside(rule: ToolRule) -> bool:
        return any(two.covers(rule.tool) and two.pattern in (None, rule.pattern) for two in wider)

    return [text for text in one if inside(parse(text))]


def _first(texts: Iterable[str], tool: str, about: Sequence[str], kind: str) -> str:
    found = (rule.text for rule in map(parse, texts) if any(rule.fits(tool, text, kind) for text in about))
    return next(found, "")


def _matches(pattern: str, about: str, kind: str) -> bool:
    """A pattern of paths is as in glob_files, hidden names included; `docs/**` is the folder, too."""
    if kind == TEXT:
        return fnmatchcase(about, pattern)
    whole = pattern.removesuffix("/**") if pattern.endswith("/**") else ""
    found = [patterns.glob(pattern, hidden=True)] + ([patterns.glob(f"/{whole}", hidden=True)] if whole else [])
    return any(one.match(about) for one in found)
