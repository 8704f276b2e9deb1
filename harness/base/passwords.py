"""Finds secrets by context: a password next to its name, and a long key that has no vendor's format.

The patterns are in `passwords.txt`. They apply to prose only (notes, replies, issues): code and logs match too often.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
from collections.abc import Iterator

from harness.base import tables

PATH = os.path.join(os.path.dirname(__file__), "passwords.txt")
MASKED = "[masked: "
SECTIONS = ("password", "beside", "before", "pair", "account", "option")
SHORTEST = 5
LONG_KEY = 56  # characters: a longer mix of upper case, lower case and digits is a key in any context
FEWEST_OF_A_KIND = 4
PRINTABLE = 0.9  # minimum share of printable bytes in text
BLOB = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_NO_KEY = re.compile(r"AAAA|MII|sha\d+-|_Z")  # public key, certificate, integrity hash, mangled symbol
_DIGEST = re.compile(r"(?:h1|sha\d+)[:/]+$")
_WORD = re.compile(r"[a-z]{9}")


def find(text: str) -> str:
    """The first such secret in a text, or ""."""
    for found in BLOB.finditer(text):
        if _is_key(found.group().rstrip("="), text[: found.start()]):
            return found.group()
    for name in SECTIONS:
        for found in tables.pattern(PATH, name).finditer(text):
            if text[: found.start("secret")].endswith(MASKED) or found["secret"].isalpha():
                continue  # already masked, or a word: the password follows it
            value = found["secret"].rstrip(".,;:!?")
            if len(value) >= SHORTEST and not value.isdigit() and not _names_no_value(value):
                return value
    return ""


def _names_no_value(value: str) -> bool:
    return tables.pattern(PATH, "no value").fullmatch(value) is not None


def _is_key(blob: str, before: str) -> bool:
    """Whether a long run is a key: mixed case and digits, no words, neither a digest nor a public key."""
    if len(blob) < LONG_KEY or _NO_KEY.match(blob) or _DIGEST.search(before) or _WORD.search(blob):
        return False
    if any(sum(9 <= byte < 127 for byte in data) >= PRINTABLE * len(data) for data in decoded(blob)):
        return False  # encoded text
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(sum(map(kind, blob)) >= FEWEST_OF_A_KIND for kind in kinds)


def decoded(blob: str) -> Iterator[bytes]:
    """The bytes that a run of characters decodes to in base64, in either alphabet."""
    blob = blob.rstrip("=")
    for alphabet in (base64.b64decode, base64.urlsafe_b64decode):
        with contextlib.suppress(ValueError, binascii.Error):
            yield alphabet(blob + "=" * (-len(blob) % 4))


def hold() -> None:
    """Load the table now, so that later edits of the file have no effect."""
    tables.sections(PATH)
