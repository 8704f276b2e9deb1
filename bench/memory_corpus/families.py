"""Families of parallel facts, half of them with one correction: what a memory loses of them, misses, and strengthens.

A fact is held if a line of MEMORY.md that still holds has its words as they were noted; a correction, if one line has all
that its family names. An old line is strengthened if it is counted twice, and replaced if it is not there or superseded.
"""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from memory_corpus.baselines import THRESHOLD, grouped
from memory_corpus.streams import Note

FILE = Path(__file__).with_name("families.toml")
HISTORY = ("(superseded by entry ", "(retired)")  # in a line that no longer holds


@dataclass
class Family:
    """Facts that hold together, and the correction of number `corrects`, said in one of twelve ways, if there is one."""

    name: str
    tag: str
    facts: list[str]
    differs: str = ""
    correction: str = ""
    corrects: int = -1
    way: int = 0
    gone: list[str] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)


@dataclass
class Verdict:
    """What a page makes of some families: facts that it lost, corrections that it misses, old lines that it strengthened, and
    the corrections by their way: (replaced, all)."""

    lost: list[str]
    missing: list[str]
    strengthened: list[str]
    replaced: Counter[int]
    corrections: Counter[int]

    def counts(self) -> tuple[int, int, int]:
        """(lost, missing, strengthened)."""
        return len(self.lost), len(self.missing), len(self.strengthened)


def load() -> list[Family]:
    """All families."""
    return [Family(**row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["family"]]


def notes(families: list[Family], seed: int = 1) -> list[Note]:
    """What a mission notes: the facts of all families in any order, then the corrections, each by a run of its own."""
    dice = random.Random(seed)
    facts = [(family, fact) for family in families for fact in family.facts]
    corrections = [(family, family.correction) for family in families if family.correction]
    dice.shuffle(facts)
    dice.shuffle(corrections)
    return [
        Note("lesson", family.name, family.tag, text, run=place, role="worker", feature=f"F-{place:03}", at=at(place))
        for place, (family, text) in enumerate(facts + corrections)
    ]


def at(place: int) -> str:
    """The time of a note."""
    return f"2026-02-{1 + place // 24:02}T{place % 24:02}:00:00Z"


def judged(families: list[Family], lines: list[str]) -> Verdict:
    """What the lines of a page make of families."""
    current = [line for line in lines if not any(mark in line for mark in HISTORY)]
    found = Verdict([], [], [], Counter(), Counter())
    for family in families:
        known = [fact for place, fact in enumerate(family.facts) if place != family.corrects or not family.correction]
        found.lost += [fact for fact in known if not any(fact in line for line in current)]
        if not family.correction:
            continue
        old = [line for line in current if family.correction not in line and any(one in line for one in family.gone)]
        if not any(all(part in line for part in family.holds) for line in current):
            found.missing.append(family.correction)
        found.strengthened += [line for line in old if line.endswith("x)") and not line.endswith(" 1x)")]
        found.corrections[family.way] += 1
        found.replaced[family.way] += not old
    return found


def simple(said: list[Note]) -> dict[str, list[str]]:
    """What the memory is compared with, each as lines."""
    number = grouped([note.text for note in said], THRESHOLD)
    clusters = {number[note.text]: note.text for note in said}
    texts = [note.text for note in said]
    return {"newest 200": texts[-200:], "newest 40": texts[-40:], "TF-IDF": [*clusters.values()]}


def ways(verdicts: Iterable[Verdict]) -> str:
    """The corrections that replaced the old line, by their way."""
    replaced, every = Counter[int](), Counter[int]()
    for one in verdicts:
        replaced += one.replaced
        every += one.corrections
    return ", ".join(f"way {way}: {replaced[way]} of {every[way]}" for way in sorted(every))
