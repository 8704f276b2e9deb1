"""Ranks lines by BM25 against the words of a query; a line need not contain all of them.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with the usual constants. Chinese,
Japanese and Korean are split into pairs of adjacent characters. Line length is in characters.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

K1, B = 1.2, 0.75
WIDE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WIDE = re.compile(f"[{WIDE}]")
_RUNS = re.compile(rf"[{WIDE}]+|[^\W_{WIDE}]+")


def terms(text: str) -> list[str]:
    """The lower-case words of a text, and the pairs of adjacent wide characters; a lone wide character counts as a term."""
    found = []
    for run in _RUNS.findall(text.casefold()):
        pairs = [run[at : at + 2] for at in range(len(run) - 1)] if is_wide(run) else []
        found += pairs or [run]
    return found


def is_wide(term: str) -> bool:
    """Whether a term is Chinese, Japanese or Korean, which have no spaces between words."""
    return _WIDE.match(term) is not None


def best(lines: Callable[[], Iterable[tuple[str, T]]], wanted: str, most: int) -> list[T]:
    """The values of the `most` best (text, value) lines, best first, on a tie the later first; a line without any of
    the words is left out. `lines` is called twice, so that only the best are kept in memory."""
    asked = dict.fromkeys(terms(wanted))
    have, count, size = dict.fromkeys(asked, 0), 0, 0
    for text, _ in lines():
        count, size = count + 1, size + len(text)
        for term in _frequencies(text, asked):
            have[term] += 1
    weights = {term: math.log(1 + (count - number + 0.5) / (number + 0.5)) for term, number in have.items()}
    mean = max(1.0, size / max(1, count))
    heap: list[tuple[float, int, T]] = []
    for number, (text, one) in enumerate(lines()):
        found = _frequencies(text, asked)
        if found:
            norm = K1 * (1 - B + B * len(text) / mean)
            score = sum(weights[term] * often * (K1 + 1) / (often + norm) for term, often in found.items())
            (heapq.heappush if len(heap) < most else heapq.heappushpop)(heap, (score, number, one))
    return [one for _, _, one in sorted(heap, key=lambda row: row[:2], reverse=True)]


def _frequencies(text: str, asked: Iterable[str]) -> dict[str, int]:
    """{term: count} of the terms in a text. A text that cannot contain one is not split."""
    small = text.casefold()
    if not any(term in small for term in asked):
        return {}
    found = terms(small)
    counts = {term: small.count(term) if is_wide(term) else found.count(term) for term in asked}
    return {term: often for term, often in counts.items() if often}
