"""How many tokens a text has at most, estimated by classes of characters. Pure; no vocabulary is loaded.

Calibrated on the vocabulary that makes most tokens of all that were measured in autumn 2026: 2.8 characters a token of English
prose and of Python, 2.1 of shell, 2.15 of logs, 1.1 of Chinese. The estimate is at most 10 % below that, and so above every
vocabulary with longer tokens (o200k makes a third fewer tokens of English). Characters / 2.8 was 48 % short for Japanese.
"""

from __future__ import annotations

import re

WORD, LETTER = 0.60, 0.20  # tokens of a word, and of each of its letters
DIGIT = 0.5
SIGN = 1.0  # punctuation, brackets, the break of a line
WIDE = 0.87  # a character of Chinese, Japanese or Korean
OTHER = 0.6  # a letter with an accent, or of another alphabet
_CLASSES = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<blank>[ \t]+)"
    r"|(?P<wide>[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]+)"
    r"|(?P<sign>[!-/:-@\[-`{-~\n\r])|(?P<other>.)",
    re.DOTALL,
)


def estimated(text: str) -> int:
    """Tokens of `text`, rounded up."""
    total = 0.0
    for found in _CLASSES.finditer(text):
        kind, size = found.lastgroup, found.end() - found.start()
        if kind == "word":
            total += WORD + LETTER * size
        elif kind == "digits":
            total += DIGIT * size
        elif kind == "sign":
            total += SIGN
        elif kind == "wide":
            total += WIDE * size
        elif kind == "other":
            total += OTHER
    return -int(-total // 1)
