"""What a curator should beat: simple ways to fill a summary under the same bounds, judged by the same judge."""

from __future__ import annotations

import math
from collections import Counter

from memory_corpus.judge import LINES, SECTIONS, TOKENS, estimate
from memory_corpus.streams import Note
from memory_corpus.words import terms

THRESHOLD = 0.18  # of TF-IDF: the best sum of `memory_quality.py --threshold`, which is the tuned half


def last(notes: list[Note], *, tagged: bool) -> str:
    """The last lines that fit; `tagged`: only of notes with a tag."""
    return _page([note.text for note in reversed(notes) if note.role and (note.tag != "-" or not tagged)])


def frequent(notes: list[Note]) -> str:
    """The most frequent lines, exactly as they were noted."""
    return _page([text for text, _ in Counter(note.text for note in notes if note.role).most_common()])


def _page(texts: list[str]) -> str:
    """The first of these that fit, each once."""
    found: list[str] = []
    tokens = 0
    for text in dict.fromkeys(texts):
        line = f"- {text}\n".replace("\n", " ").strip() + "\n"
        tokens += estimate(line)
        if len(found) == LINES or tokens > TOKENS:
            break
        found.append(line)
    return "".join(found)


def clusters(notes: list[Note], threshold: float = THRESHOLD) -> str:
    """TF-IDF clusters of the tagged notes: what most runs noted first, in its newest words. (Sections in turn are worse here.)"""
    tagged = [(place, note) for place, note in enumerate(notes) if note.role and note.tag in SECTIONS]
    number = grouped([note.text for _, note in tagged], threshold)
    groups: dict[int, list[tuple[int, Note]]] = {}
    for place, note in tagged:
        groups.setdefault(number[note.text], []).append((place, note))
    ranked = sorted(groups.values(), key=lambda some: (-len({note.run for _, note in some}), -some[-1][0]))
    return _page([some[-1][1].text for some in ranked])


def grouped(texts: list[str], threshold: float) -> dict[str, int]:
    """The number of the cluster of each text: the one whose centre is nearest, if it is near enough, else a new one."""
    distinct = list(dict.fromkeys(texts))
    words = {text: Counter(terms(text)) for text in distinct}
    seen = Counter(term for counts in words.values() for term in counts)
    centres: list[dict[str, float]] = []
    norms: list[float] = []
    postings: dict[str, set[int]] = {}
    found = {}
    for text in distinct:
        vector = {
            term: (1 + math.log(count)) * math.log(1 + len(distinct) / seen[term])
            for term, count in words[text].items()
        }
        length = math.sqrt(sum(one * one for one in vector.values())) or 1.0
        vector = {term: one / length for term, one in vector.items()}
        near = {number for term in vector for number in postings.get(term, ())}
        scores = [(_dot(vector, centres[number]) / norms[number], -number) for number in near]
        best, number = max(scores, default=(0.0, 0))
        if best < threshold:
            centres.append({})
            norms.append(0.0)
            number = 1 - len(centres)
        centre = centres[-number]
        for term, one in vector.items():
            centre[term] = centre.get(term, 0.0) + one
            postings.setdefault(term, set()).add(-number)
        norms[-number] = math.sqrt(sum(one * one for one in centre.values())) or 1.0
        found[text] = -number
    return found


def _dot(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(value * other[term] for term, value in one.items() if term in other)
