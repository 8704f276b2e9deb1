"""What a mission leaves out is said once where it begins, where it is planned, and at DONE."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.decision import gaps
from harness.state import names
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
def test_a_section_that_no_feature_refers_to_is_named(house: House, refs: list[str], left: list[str]) -> None:
    """A section holds those below it, but the title holds none; one without a text asks for nothing. A plan that refers to no
    section at all says nothing about them."""
    said = [f"SPEC.md: no feature refers to {', '.join(left)}"] if left else []
    assert gaps.find(house.layout, SPEC, [feature(spec_refs=refs)]) == said


def test_a_long_spec_and_submodules_are_named_from_init_to_done(unbegun: House) -> None:
    """One line each; submodules only where the contract's setup does not fetch them."""
    unbegun.write("SPEC.md", f"{SPEC}\n{'More of it. ' * 2000}\n")
    unbegun.write(".gitmodules", '[submodule "a"]\n\tpath = lib/a\n\turl = ../a\n')
    begun = unbegun.harness("init").out
    assert "note: SPEC.md has 24" in begun and "(lib/a)" in begun, begun
    unbegun.config('agent = "scripted"')
    rows = [{"id": "VAL-1", "claim": "It adds", "checks": ["test -f 1.txt"]}]
    made = {"id": "F-1", "title": "Adding", "claims": ["VAL-1"], "spec_refs": ["Adding", "todo"]}
    unbegun.script("planner", reply(features=[made], contract=rows))
    unbegun.script("worker", {"run": "echo 1 >1.txt"})
    parts = to_done(unbegun), unbegun.harness("ending", "DONE").out
    for said in ("SPEC.md: no feature refers to Help", "SPEC.md has 24", "(lib/a)"):
        assert [said in part for part in parts] == [True, True], (said, parts)
    path = Path(unbegun.layout.path(names.CONTRACT))
    path.write_text(
        path.read_text().replace("### VAL-1", "```sh setup\ngit submodule update --init\n```\n\n### VAL-1", 1)
    )
    assert "(lib/a)" not in unbegun.harness("ending", "DONE").out
