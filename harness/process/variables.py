"""Selects the environment variables of a run's programs: the names in variables.txt, without credentials."""

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
    """Whether the name suggests a credential: it contains one of a few words."""
    return KEY.search(name) is not None


def holds_login(name: str, value: str) -> bool:
    """Whether the name suggests a credential, or the value contains one: a user in a URL, or a secret of a known format."""
    in_proxy = "@" in value and name.lower().endswith("proxy")  # it may lack a scheme
    return is_key(name) or in_proxy or bool(IN_ADDRESS.search(value) or redaction.found(f"{name}={value}"))


def matches(name: str, rows: Iterable[str]) -> bool:
    """Whether one of these rows of patterns matches a name."""
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
    """Whether one of these sections of the table matches a name."""
    found = tables.sections(TABLE)
    return any(matches(name, [row.partition(" # ")[0] for row in found[section]]) for section in sections)


def passing(base: Mapping[str, str], passed: Iterable[str] = (), needs: Iterable[str] = ()) -> dict[str, str]:
    """The variables of `base` that pass: those of the table, or of a pattern in `needs`, without credentials; and, with
    any value, the names in `passed` and `needs`, and those of a pattern for credentials, such as `*_API_KEY`. The
    harness's own variables never pass."""
    needs, named = [*needs], {*passed}
    meant = [need for need in needs if "*" not in need or is_key(need)]

    def passes(name: str, value: str) -> bool:
        if name in named or matches(name, meant):
            return not listed(name, "ours")
        known = listed(name, "passes") or (matches(name, needs) and not listed(name, "ours"))
        return known and not holds_login(name, value)

    return {name: value for name, value in base.items() if passes(name, value)}
