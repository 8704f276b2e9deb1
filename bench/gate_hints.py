"""Makes `harness/memory/hints.json` anew: of each rule of gates.txt the literals of which one is in every text that it matches.

    python bench/gate_hints.py [--write | --check]

They are read off the parsed pattern, so none is left out. Where a pattern has several such sets of literals ("send … a token …
to"), it is the one that fewest notes of the corpora have. `--check` exits with 1 where the file is another one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME / "bench")]

from re import _constants as code  # type: ignore[attr-defined]  # the parsed form of a pattern: there is no public one
from re import _parser  # type: ignore[attr-defined]  # the same

from memory_corpus import HALVES, load

from harness.memory import tables

MOST = 64  # strings that a part of a pattern may stand for, to be written out
MOST_OF_CLASS, MOST_REPEATED = 4, 2
PER_HINT = 0.0004  # share of the notes that one more look-up costs as much as
OF_NO_RULE = ("no value",)  # that section is matched whole
Strings = frozenset[str]


def written_out(items: Iterable[Any]) -> Strings | None:
    """All strings that a sequence of a parsed pattern stands for, in small letters; None for too many."""
    made: Strings | None = frozenset([""])
    for item in items:
        made = _product(made, _of_one(*item))
    return made


def _product(one: Strings | None, other: Strings | None) -> Strings | None:
    if one is None or other is None or len(one) * len(other) > MOST:
        return None
    return frozenset(first + second for first in one for second in other)


def _of_one(kind: Any, value: Any) -> Strings | None:
    if kind is code.LITERAL:
        return frozenset([chr(value).lower()])
    if kind in (code.AT, code.ASSERT, code.ASSERT_NOT):
        return frozenset([""])
    if kind is code.IN:
        plain = all(kind is code.LITERAL for kind, _ in value) and len(value) <= MOST_OF_CLASS
        return frozenset(chr(one).lower() for _, one in value) if plain else None
    if kind is code.SUBPATTERN:
        return written_out(value[3])
    if kind is code.BRANCH:
        each = [written_out(one) for one in value[1]]
        return None if None in each else _few(frozenset[str]().union(*filter(None, each)))
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT) and value[1] <= MOST_REPEATED:
        return _repeated(written_out(value[2]), *value[:2])
    return None


def _few(strings: Strings) -> Strings | None:
    return strings if len(strings) <= MOST else None


def _repeated(body: Strings | None, least: int, most: int) -> Strings | None:
    made, now = frozenset[str](), frozenset([""])
    for count in range(most + 1):
        made |= now if count >= least else frozenset()
        following = _product(now, body)
        if following is None:
            return None
        now = following
    return _few(made)


def choices(items: Sequence[Any]) -> list[Strings]:
    """Sets of literals, of each of which one is in every text that a sequence of a parsed pattern matches."""
    found: list[Strings] = []
    run: Strings = frozenset([""])
    for kind, value in items:
        mine = _of_one(kind, value)
        longer = _product(run, mine)
        found.append(run)
        run = longer if longer is not None else mine or frozenset([""])
        if mine is None:
            found += _within(kind, value)
    return [_shortest(one) for one in [*found, run] if "" not in one]


def _within(kind: Any, value: Any) -> list[Strings]:
    """The same, of an item that stands for too many strings."""
    if kind is code.SUBPATTERN:
        return choices(value[3])
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT):
        return choices(value[2]) if value[0] else []
    if kind is code.ASSERT:
        return choices(value[1])
    if kind is not code.BRANCH:
        return []
    each = [choices(one) for one in value[1]]
    return [frozenset[str]().union(*map(rarest, each))] if all(each) else []


def _shortest(strings: Strings) -> Strings:
    """Those that have no other within them."""
    return frozenset(one for one in strings if not any(other != one and other in one for other in strings))


def rarest(found: list[Strings]) -> Strings:
    """The set that fewest notes have one of."""
    return min(found, key=lambda one: (share(one) + PER_HINT * len(one), sorted(one)))


def share(hints: Strings) -> float:
    """The share of the notes of the corpora that have one of these."""
    return sum(any(hint in text for hint in hints) for text in NOTES) / len(NOTES)


def notes() -> list[str]:
    """The notes of the corpora, in small letters."""
    corpora = [load(half) for half in HALVES]
    return [text.lower() for corpus in corpora for one in corpus.lessons for _, text in one.wordings]


NOTES = notes()


def made() -> str:
    """The text of the file."""
    found: dict[str, list[list[str]]] = {}
    for name in tables.sections(tables.GATES):
        if not name.startswith("part ") and name not in OF_NO_RULE:
            parsed = [choices(_parser.parse(source, re.IGNORECASE)) for source in tables.sources(name)]
            found[name] = [sorted(rarest(one)) if one else [] for one in parsed]
    rows = [f'"{name}": [\n{_lines(hints)}\n]' for name, hints in found.items()]
    return f'{{"gates": {tables.checksum()}, "rules": {{\n' + ",\n".join(rows) + "\n}}\n"


def _lines(hints: list[list[str]]) -> str:
    return ",\n".join(json.dumps(one, ensure_ascii=False) for one in hints)


def main() -> int:
    """Show, write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true")
    group.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    path, text = Path(tables.HINTS), made()
    if asked.write:
        path.write_text(text, encoding="utf-8")
    elif asked.check:
        same = path.exists() and path.read_text(encoding="utf-8") == text
        print("as gates.txt has it" if same else f"{path.name}: run python bench/gate_hints.py --write")
        return 0 if same else 1
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
