"""Parts that a mission does not cover: sections of SPEC.md, the end of a long one. Warnings only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.encoding import few
from harness.mission.features import Feature
from harness.mission.mission import SPEC_CHARS
from harness.state import documents


def find(spec: str, planned: Sequence[Feature] = ()) -> list[str]:
    """The warnings about this SPEC.md and its plan, if there is one yet."""
    refs = {ref for feature in planned for ref in feature.spec_refs}
    named = {line for ref in refs for _, _, line in documents.named(spec, ref)}
    found = [f"SPEC.md: no feature refers to {few(left)}"] if refs and (left := list(_left(spec, named))) else []
    if len(spec) > SPEC_CHARS:
        whole = f"SPEC.md has {len(spec)} characters, and a prompt shows at most {SPEC_CHARS}"
        found.append(f"{whole}: the first of them, or the sections that its feature names")
    return found


def _left(spec: str, named: set[int]) -> Iterator[str]:
    """The sections with text of their own that are not named, directly or by a parent section; a title has none."""
    rows, lines = documents.headings(spec), spec.split("\n")
    ends = [*(start for _, _, start in rows[1:]), len(lines)]
    around: list[tuple[int, int]] = []
    for (title, level, start), end in zip(rows, ends, strict=True):
        around = [one for one in around if one[0] < level]
        own = "\n".join(lines[start + 1 : end]).strip()
        if own and not named & {start, *(line for outer, line in around if outer > 1)}:
            yield title
        around.append((level, start))
