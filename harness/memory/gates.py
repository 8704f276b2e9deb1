"""Gates: notes that give orders to their reader, hide text or contain a secret never leave raw.md. Pure.

`gated` checks a note from any source: a run's note, a reply, a line appended by hand. The rules match the form of an
attack (an order about the reader's instructions, a role tag, hidden characters, encoded text), never a single word such
as "ignore" or "always", which honest notes use. docs/memory.md has the measured hits and false positives.
"""

from __future__ import annotations

import codecs
import functools
import html
import re
import unicodedata
import urllib.parse

from harness.base import redaction
from harness.base.passwords import BLOB, MASKED, decoded
from harness.memory._words import STOP_WORDS, words
from harness.memory.tables import matches

SECRET = "a secret"
MAX_PATTERN_CHARS = 4096  # characters; a note has at most 1000, the rest is only checked for known formats of secrets
MAX_SECRET_CHARS = 256  # a secret may begin this many characters earlier
PROSE = 0.75  # minimum share of letters and spaces in decoded text
FEWEST_BLANKS = 2
MAX_REPORT_WORDS = 16  # words; longer notes give reasons

# Invisible characters: tags, bidirectional overrides, zero-width ones within a word.
_HIDDEN = re.compile(
    "[\x1b\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069\u2060-\u2064\u00ad]|(?<=\\S)[\u200b\ufeff\u180e]+(?=\\S)"
)
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u180e\u00ad\U000e0000-\U000e007f]")
_SPACED = re.compile(r"(?:\b\w[ .*_-]){5,}\w\b")
_SYLLABLES = re.compile(r"(?<=[a-z]{2})-(?=[a-z]{2})")
_LEET = re.compile(r"[A-Za-z][013457@$][A-Za-z]|\b[013457@$][a-z]{3}")
_ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2}){2}|&#x?[0-9a-fA-F]+;")
_LETTERS = str.maketrans("013457@$", "oieastas")
_MIXED = re.compile(  # homoglyphs of Latin letters
    r"[A-Za-z][\u0370-\u03ff\u0400-\u04ff][A-Za-z]|[\u0400-\u04ff][A-Za-z]{2,}|[A-Za-z]{2,}[\u0400-\u04ff]"
)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ ]?|\\x[0-9a-fA-F]{2}){20,}")
_OF_FEATURE = re.compile(r"\b(?:F|VAL|ISS(?:UE)?|FEAT(?:URE)?)-\w*\d\b")


def gated(text: str) -> str:
    """Why a note must stay in raw.md, in a few words; "" if it may leave."""
    rest = text[MAX_PATTERN_CHARS - MAX_SECRET_CHARS :] if len(text) > MAX_PATTERN_CHARS else ""
    return SECRET if rest and redaction.found(rest) else _gated(text[:MAX_PATTERN_CHARS])


@functools.lru_cache(4096)
def _gated(text: str) -> str:
    if MASKED in text or redaction.found(text, prose=True):
        return SECRET
    if _HIDDEN.search(text):
        return "hidden characters"
    seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    if _MIXED.search(seen):
        return "letters that look like others"
    seen = _SPACED.sub(lambda found: re.sub(r"[ .*_-]", "", found.group()), seen)
    if matches("role tag", seen):
        return "a role tag"
    if matches("heading", seen):
        return "a heading or a code fence"
    if any(matches("order", one) for one in _read_as(seen)) or matches("other tongues", seen):
        return "orders to its reader"
    return "encoded text" if _is_encoded(seen) else ""


def _read_as(text: str) -> list[str]:
    """The text and its possible readings: decoded, without hyphens inside words, with look-alike digits as letters;
    and, if it has no common word, reversed and in rot13."""
    found = [text, _SYLLABLES.sub("", text)]
    if _ESCAPED.search(text):
        found.append(html.unescape(urllib.parse.unquote(text)))
    if text.count(" ") >= FEWEST_BLANKS and STOP_WORDS.isdisjoint(text.lower().split()):
        found += [text[::-1], codecs.encode(text, "rot13")]
    if _LEET.search(text):
        found.append(text.translate(_LETTERS))
    return list(dict.fromkeys(found))


def masked(text: str) -> str:
    """The text with its secrets masked, also those found by context."""
    return redaction.mask(text[:MAX_PATTERN_CHARS], prose=True) + redaction.mask(text[MAX_PATTERN_CHARS:])


def _is_encoded(text: str) -> bool:
    """Whether a part of the text is prose encoded in base64 or hexadecimal."""
    for found in BLOB.finditer(text):
        for data in decoded(found.group()):
            if _is_prose(data) and data.decode("utf-8").strip(" .!").lower() not in text.lower():
                return True  # and the text does not contain it in plain form too
    for found in _HEX.finditer(text):
        digits = re.sub(r"[^0-9a-fA-F]", "", found.group().replace("\\x", ""))
        if _is_prose(bytes.fromhex(digits[: len(digits) // 2 * 2])):
            return True
    return False


def _is_prose(data: bytes) -> bool:
    """Whether these bytes are a sentence."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    plain = sum(one.isalpha() or one == " " for one in text)
    return text.count(" ") >= FEWEST_BLANKS and plain >= PROSE * len(text)


@functools.lru_cache(4096)
def is_report(text: str, tag: str = "") -> bool:
    """Whether a note only reports what was done or how a check went, without advice."""
    if matches("lesson", text) or matches("fixed by", text):
        return False
    if tag == "DECISION" and matches("change", text):
        return False
    is_long = len(text.split()) > MAX_REPORT_WORDS
    if not is_long and (matches("counted", text) or matches("report", text)):
        return True
    rest = _OF_FEATURE.sub("", text)
    names = words(rest).names - words(rest).numbers
    if names:
        return False
    return tag == "-" or rest != text or (tag != "DECISION" and not is_long and matches("numbered", text))
