"""The Protocol of a store: bytes under keys, and writes that name the version they replace.

A key is a tuple of names. Every store keeps and orders keys in the form that `encoded` returns.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol
from urllib.parse import unquote_to_bytes

from harness.base.errors import UsageFault

Key = tuple[str, ...]

ABSENT = ""  # as the expected version: there is no value yet
ANY = "*"  # as the expected version: whatever is there, or nothing
SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=")
# Names of folders, and of files that a store on disk makes beside values.
RESERVED = re.compile(r"\.\.?|\.folder\.lock|.*\.tmp", re.DOTALL)


class Value(NamedTuple):
    """The bytes under a key, and their version: opaque, only compared for equality, new for every write."""

    data: bytes
    version: str


class StoreKey(NamedTuple):
    """A key in its store, or the prefix of several keys."""

    store: Store
    key: Key

    def below(self, *names: str) -> StoreKey:
        """The key with these names appended."""
        return StoreKey(self.store, (*self.key, *names))


class Store(Protocol):
    """A place that keeps bytes by key. Methods may be called from several threads.

    Absent, empty and corrupt are three answers: None, a value of no bytes, and BrokenFile. No key is the beginning of another."""

    def get(self, key: Key) -> Value | None:
        """The value; None if there is none. Raises BrokenFile if what is there cannot be read as a value."""

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """Write the value durably and return its new version. `expect`: the version that it replaces, ABSENT or ANY; raises
        VersionConflict, with nothing written, if the value has another version."""

    def delete(self, key: Key, expect: str) -> None:
        """Remove the value; `expect` as for `put`. With ANY an absent value is not a fault."""

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        """The keys that begin with these names, in the order of their encoded form, without reading a value. `after`: only
        those after this key; `limit`: at most so many, 0 for all."""

    def describe(self, key: Key) -> str:
        """Where a person finds the key: a path, or an address."""


def encoded(key: Key) -> str:
    """The names joined by `/`, each byte outside SAFE as `%XX`; injective. Raises UsageFault for an empty key or name."""
    if not key or not all(key):
        raise UsageFault(f"A key has at least one name, and no empty one: {key!r}.")
    return "/".join(map(_name, key))


def _name(name: str) -> str:
    form = "".join(chr(one) if one in SAFE else f"%{one:02X}" for one in name.encode("utf-8", "surrogateescape"))
    return form.replace(".", "%2E") if RESERVED.fullmatch(name) else form


def decoded(text: str) -> Key:
    """The key of an encoded form."""
    parts = text.encode("utf-8", "surrogateescape").split(b"/")
    return tuple(unquote_to_bytes(one).decode("utf-8", "surrogateescape") for one in parts)


def matches(expect: str, version: str) -> bool:
    """Whether a write that expects this may replace the version, ABSENT for no value."""
    return expect in (ANY, version)
