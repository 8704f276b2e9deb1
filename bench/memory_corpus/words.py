"""The words that carry a text, for the baseline and for the matcher of reworded lines."""

from __future__ import annotations

import re

STOP = """a an and are as at be been before but by do does for from has have if in into is it its no not of on one only or our
out so that the their then there they this to too two under until up was we when where which with without you your"""
STOP_WORDS = frozenset(STOP.split())
ENDINGS = ("ations", "ation", "ing", "ies", "ed", "es", "ly", "s", "e")
_WORDS = re.compile(r"[a-zäöüß0-9][\wäöüß./:=+-]*|[\u3040-\u30ff\u3400-\u9fff]+|--?[a-z][\w-]*", re.IGNORECASE)


def terms(text: str) -> list[str]:
    """The stems of the words, and pairs of neighbours in a script without spaces."""
    found = []
    for word in _WORDS.findall(text.lower()):
        if ord(word[0]) > 0x3000:
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif word not in STOP_WORDS:
            found.append(_stem(word.rstrip(".:=")))
    return found


def _stem(word: str) -> str:
    if not word.isalpha():
        return word
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
