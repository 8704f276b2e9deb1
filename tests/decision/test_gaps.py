"""What a mission leaves out is said once where it begins, where it is planned, and at DONE."""

from __future__ import annotations

import pytest

from harness.decision import gaps
from tests.missions import House
from tests.planned import feature, reply
from tests.run.played import to_done

SPEC = "# todo\n\nA list.\n\n## Adding\n\nIt adds.\n\n### Blanks\n\nNone.\n\n## Numbers\n\n## Help\n\n`--help`.\n"


@pytest.mark.parametrize(
    ("refs", "left"),
    [
        (["Adding", "## help", "todo"], []),
        (["Adding", "Help"], ["todo"]),
        (["todo"], ["Adding", "Blanks", "Help"]),
        (["Blanks", "Help", "todo"], ["Adding"]),
        (["1. **Adding**", "`Help`", "# todo"], []),
        ([], []),
    ],
)
def test_a_section_that_no_feature_refers_to_is_named(refs: list[str], left: list[str]) -> None:
    """A section holds those below it, but the title holds none; one without a text asks for nothing. A plan that refers to no
    section at all says nothing about them."""
    said = [f"SPEC.md: no feature refers to {', '.join(left)}"] if left else []
    assert gaps.find(SPEC, [feature(spec_refs=refs)]) == said


def test_a_long_spec_is_named_from_init_to_done(unbegun: House) -> None:
    """One line each."""
    unbegun.write("SPEC.md", f"{SPEC}\n{'More of it. ' * 2000}\n")
    begun = unbegun.harness("init").out
    assert "note: SPEC.md has 24" in begun, begun
    unbegun.config('agent = "scripted"')
    rows = [{"id": "VAL-1", "claim": "It adds", "checks": ["test -f 1.txt"]}]
    made = {"id": "F-1", "title": "Adding", "claims": ["VAL-1"], "spec_refs": ["Adding", "todo"]}
    unbegun.script("planner", reply(features=[made], contract=rows))
    unbegun.script("worker", {"run": "echo 1 >1.txt"})
    parts = to_done(unbegun), unbegun.harness("ending", "DONE").out
    for said in ("SPEC.md: no feature refers to Help", "SPEC.md has 24"):
        assert [said in part for part in parts] == [True, True], (said, parts)
