"""A regular expression as ripgrep takes it, for Python: matches within a line; bytes that are no UTF-8 are surrogates.

ripgrep is told by its own words where it is there. Here what means the same is passed on, what is written otherwise is rewritten,
and what Python lacks or reads differently is refused with its reason, rather than answered differently.
"""

from __future__ import annotations

import re

from harness.filesystem.patterns import BadPattern

OTHER = r"\n\udc80-\udcff"  # never matched by "any but": the line's end, and bytes that are no UTF-8
SPACE = r"\t\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
SETS = {"d": r"\d", "w": r"\w", "s": SPACE}
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x09\x0b-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x09\x0b-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\x0b\x0c\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
SIGNS = {"t": r"\t", "r": r"\r", "f": r"\f", "v": r"\v", "a": r"\a"}
BOUNDS = {"b": r"\b", "B": r"\B", "A": r"(?m:^)", "z": r"(?m:$)", "<": r"\b(?=\w)", ">": r"\b(?<=\w)"}
NAMED_BOUNDS = {"{start}": r"\b(?=\w)", "{end}": r"\b(?<=\w)"}
REPEAT = re.compile(r"\{(\d*)(,?)(\d*)\}")
NEEDS = "only ripgrep can search for that, and it is not installed here"


def compiled(pattern: str, *, literal: bool, ignore_case: bool) -> re.Pattern[str]:
    """The expression; raises BadPattern."""
    if "\n" in pattern:
        raise BadPattern("a line has no line break in it")
    body = re.escape(pattern) if literal else _Reader(pattern).whole()
    try:
        return re.compile(body, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as fault:
        raise BadPattern(str(fault)) from None


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> str:
        body = self.group()
        if self.at < len(self.text):
            raise BadPattern("a ) is not opened")
        return body

    def next(self, count: int = 1) -> str:
        """The next signs; BadPattern where there are none."""
        found = self.text[self.at : self.at + count]
        if len(found) < count:
            raise BadPattern("it ends too early")
        self.at += count
        return found

    def group(self) -> str:
        """Everything up to the end, or to the ) of this group."""
        parts, repeatable = list[str](), False
        while self.at < len(self.text) and self.text[self.at] != ")":
            sign = self.next()
            if sign in "*+?{":
                if not repeatable:
                    raise BadPattern(f"nothing is before {sign} that could be repeated")
                parts.append(f"(?:{parts.pop()}{self.repeat(sign)})")
                continue
            flags = self.flags() if sign == "(" else ""
            if flags:
                parts.append(f"(?{flags}:{self.rest()})")
                continue
            parts.append(self.one(sign))
            repeatable = sign != "|"
        return "".join(parts)

    def rest(self) -> str:
        """What flags hold for: the rest of the group, with each of its alternatives."""
        return self.group()

    def flags(self) -> str:
        """The flags of `(?i)`; "" where something else begins."""
        found = re.compile(r"\?([a-zA-Z]*)(-[a-zA-Z]+)?\)").match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return _flags(found[1], found[2] or "") or "-x"

    def repeat(self, sign: str) -> str:
        """A repetition, lazy or not."""
        if sign == "{":
            found = REPEAT.match(self.text, self.at - 1)
            if not found or not found[1]:
                raise BadPattern("a { begins no repetition; write \\{ for the sign")
            self.at = found.end()
            sign = found[0]
        lazy = "?" if self.text[self.at : self.at + 1] == "?" else ""
        self.at += len(lazy)
        return sign + lazy

    def one(self, sign: str) -> str:
        """One thing that can be repeated, or a `|`."""
        if sign == "(":
            return self.opened()
        if sign == "[":
            return self.bracket()
        if sign == "\\":
            return self.escape()
        fixed = {".": f"[^{OTHER}]", "^": "(?m:^)", "$": "(?m:$)", "|": "|"}
        return fixed.get(sign) or re.escape(sign)

    def opened(self) -> str:
        """A group, from behind its (."""
        head = re.compile(r"\?(?:P?<([A-Za-z_]\w*)>|([a-zA-Z]*)(-[a-zA-Z]+)?:)").match(self.text, self.at)
        if not head and self.text[self.at : self.at + 1] == "?":
            raise BadPattern("look-around and other groups that begin with (? are not supported")
        self.at = head.end() if head else self.at
        body = self.group()
        if self.next() != ")":
            raise BadPattern("a ( is not closed")
        if not head:
            return f"({body})"
        return f"(?P<{head[1]}>{body})" if head[1] else f"(?{_flags(head[2] or '', head[3] or '')}:{body})"

    def escape(self) -> str:
        """What a backslash begins, outside brackets."""
        sign = self.next()
        if sign in BOUNDS:
            named = next((name for name in NAMED_BOUNDS if sign == "b" and self.text.startswith(name, self.at)), "")
            self.at += len(named)
            return NAMED_BOUNDS.get(named) or BOUNDS[sign]
        if sign.lower() in SETS:
            return f"[{SETS[sign]}]" if sign in SETS else f"[^{SETS[sign.lower()]}{OTHER}]"
        return self.literal(sign)

    def literal(self, sign: str) -> str:
        """A sign that is written with a backslash."""
        if sign in SIGNS:
            return SIGNS[sign]
        if sign in "xuU":
            return re.escape(self.number({"x": 2, "u": 4, "U": 8}[sign]))
        if sign in "pP":
            raise BadPattern(f"\\{sign}: {NEEDS}")
        if sign == "n":
            raise BadPattern("a line has no line break in it")
        if sign.isalnum() or not sign.isascii():
            raise BadPattern(f"\\{sign} means nothing; there are no references to groups")
        return re.escape(sign)

    def number(self, digits: int) -> str:
        """A sign by its number in hexadecimal."""
        if self.text[self.at : self.at + 1] == "{":
            inside, _, rest = self.text[self.at + 1 :].partition("}")
            self.at = len(self.text) - len(rest)
        else:
            inside = self.next(digits)
        try:
            return chr(int(inside, 16))
        except (ValueError, OverflowError):
            raise BadPattern(f"{inside} is no number of a sign") from None

    def bracket(self) -> str:
        """A class of signs, from behind its [."""
        negated = self.text[self.at : self.at + 1] == "^"
        self.at += negated
        parts, first = list[str](), True
        while (sign := self.next()) != "]" or first:
            first = False
            if sign == "[" and (named := re.compile(r":(\^?)([a-z]+):\]").match(self.text, self.at)):
                if named[1] or named[2] not in POSIX:
                    raise BadPattern(f"[[:{named[1]}{named[2]}:]]: {NEEDS}")
                self.at = named.end()
                parts.append(POSIX[named[2]])
            elif sign == "[" or (self.text.startswith(sign, self.at) and sign in "&~-" and parts):
                raise BadPattern(f"a class in a class: {NEEDS}")
            else:
                parts.append(self.in_class(sign))
        return f"[^{''.join(parts)}{OTHER}]" if negated else f"[{''.join(parts)}]"

    def in_class(self, sign: str) -> str:
        """A sign, a range or a set in brackets."""
        if sign == "\\":
            sign = self.next()
            if sign.lower() in SETS:
                if sign not in SETS:
                    raise BadPattern(f"\\{sign} in a class: {NEEDS}")
                return SETS[sign]
            return self.literal("x" if sign == "x" else sign)
        return "-" if sign == "-" else re.escape(sign)


def _flags(on: str, off: str) -> str:
    """The flags that both know; `u` is how it is anyway, `m` as well."""
    for flag in on + off[1:]:
        if flag not in "ismu" or (flag in "um" and flag in off):
            raise BadPattern(f"the flag {flag}: {NEEDS}")
    kept = "".join(flag for flag in on if flag == "i")
    lost = "".join(flag for flag in off if flag == "i")
    return kept + (f"-{lost}" if lost else "")
