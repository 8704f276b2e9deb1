"""Secrets that only their place in a sentence tells: a password beside its name, and a long key without a vendor's form.

The patterns are in `passwords.txt`. They are for prose (a note, a reply, an issue): in code and logs both are too common.
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
LONG_KEY = 56  # characters of letters of both cases and digits that are no text: a key, whatever stands around it
FEWEST_OF_A_KIND = 4
PRINTABLE = 0.9  # of the bytes of a text
BLOB = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_NO_KEY = re.compile(r"AAAA|MII|sha\d+-|_Z")  # a public key, a certificate, an integrity, a symbol
_DIGEST = re.compile(r"(?:h1|sha\d+)[:/]+$")
_WORD = re.compile(r"[a-z]{9}")


def find(text: str) -> str:
    """The first such secret of a text, "" if there is none."""
    for found in BLOB.finditer(text):
        if _is_key(found.group().rstrip("="), text[: found.start()]):
            return found.group()
    for name in SECTIONS:
        for found in tables.pattern(PATH, name).finditer(text):
            if text[: found.start("secret")].endswith(MASKED) or found["secret"].isalpha():
                continue  # masked before, or a word: the digits that a password has are behind it
            value = found["secret"].rstrip(".,;:!?")
            if len(value) >= SHORTEST and not value.isdigit() and not _names_no_value(value):
                return value
    return ""


def _names_no_value(value: str) -> bool:
    return tables.pattern(PATH, "no value").fullmatch(value) is not None


def _is_key(blob: str, before: str) -> bool:
    """Whether a long run of characters is a key: letters of both cases and digits without a word, and no digest or public key."""
    if len(blob) < LONG_KEY or _NO_KEY.match(blob) or _DIGEST.search(before) or _WORD.search(blob):
        return False
    if any(sum(9 <= byte < 127 for byte in data) >= PRINTABLE * len(data) for data in decoded(blob)):
        return False  # a text, whatever it is
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(sum(map(kind, blob)) >= FEWEST_OF_A_KIND for kind in kinds)


def decoded(blob: str) -> Iterator[bytes]:
    """What a run of characters is in base64, in either alphabet."""
    blob = blob.rstrip("=")
    for alphabet in (base64.b64decode, base64.urlsafe_b64decode):
        with contextlib.suppress(ValueError, binascii.Error):
            yield alphabet(blob + "=" * (-len(blob) % 4))


def hold() -> None:
    """Keep the table as it is now."""
    tables.sections(PATH)
