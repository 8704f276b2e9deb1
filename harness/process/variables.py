"""What of an environment passes to programs of a run: a table of names, variables.txt, and nothing that holds a login."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping

from harness.base import redaction, tables

TABLE = os.path.join(os.path.dirname(__file__), "variables.txt")
KEY = re.compile(r"KEY|TOKEN|SECRET|PASS|CRED|(?<![A-Z])(?:AUTH|PAT|PWD)(?![A-Z])", re.IGNORECASE)
IN_ADDRESS = re.compile(r"://[^\s/@:]*:[^\s@]*@|(?:https?|ftp|socks\w*)://[^\s/@]+@", re.IGNORECASE)


def is_key(name: str) -> bool:
    """Whether it is the name of a login: one of a few words is anywhere in it."""
    return KEY.search(name) is not None


def holds_login(name: str, value: str) -> bool:
    """Whether the name is that of a login, or the value has one: a user in an address, or a secret of a known form."""
    in_proxy = "@" in value and name.lower().endswith("proxy")  # it may have no scheme
    return is_key(name) or in_proxy or bool(IN_ADDRESS.search(value) or redaction.found(f"{name}={value}"))


def matches(name: str, rows: Iterable[str]) -> bool:
    """Whether one of these rows of patterns has a name."""
    return _pattern(*rows).fullmatch(name) is not None


@functools.cache
def _pattern(*rows: str) -> re.Pattern[str]:
    made = []
    for row in rows:
        words = [re.escape(word).replace(r"\*", ".*") for word in row.split()]
        without = "|".join(word[1:] for word in words if word[0] == "!")
        made.append(rf"(?!(?:{without})\Z)(?:{'|'.join(word for word in words if word[0] != '!')})")
    return re.compile("|".join(made), re.DOTALL)


def listed(name: str, *sections: str) -> bool:
    """Whether one of these sections of the table has a name."""
    found = tables.sections(TABLE)
    return any(matches(name, [row.partition(" # ")[0] for row in found[section]]) for section in sections)


def passing(base: Mapping[str, str], passed: Iterable[str] = (), needs: Iterable[str] = ()) -> dict[str, str]:
    """What passes of `base`: what the table has, or a pattern of `needs`, and holds no login; and whatever they hold the names in
    `passed` and `needs`, and those of a pattern for logins, such as `*_API_KEY`. What is ours never passes."""
    needs, named = [*needs], {*passed}
    meant = [need for need in needs if "*" not in need or is_key(need)]

    def passes(name: str, value: str) -> bool:
        if name in named or matches(name, meant):
            return not listed(name, "ours")
        known = listed(name, "passes") or (matches(name, needs) and not listed(name, "ours"))
        return known and not holds_login(name, value)

    return {name: value for name, value in base.items() if passes(name, value)}
