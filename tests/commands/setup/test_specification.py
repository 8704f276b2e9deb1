"""SPEC.md from what a person says: nothing of theirs is lost, and an issue is read where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import Unavailable, UsageFault
from harness.commands.setup import specification
from tests.missions import SPEC, House

GH = """#!/bin/sh
test "$*" = "issue view 7 --json title,body" || { echo "no such issue: $3" >&2; exit 1; }
printf '%s' '{"title": "It crashes", "body": "On an empty file."}'
"""


def test_an_issue_is_read_from_a_file_or_by_gh(unbegun: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `gh`, where `gh` fails, and without a file the fault says what to do."""
    file = unbegun.write("issue.txt", "It is slow.\n")
    folder = unbegun.folder / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    assert specification.issue_text(str(file)) == "It is slow.\n"
    with pytest.raises(Unavailable, match="`gh`, which reads issue 7, is not installed"):
        specification.issue_text("7")
    Path(folder / "gh").write_text(GH)
    Path(folder / "gh").chmod(0o755)
    assert specification.issue_text("7") == "# It crashes\n\nOn an empty file.\n"
    with pytest.raises(Unavailable, match="ended with 1: no such issue: 8"):
        specification.issue_text("8")
    with pytest.raises(UsageFault, match=r"There is no file 'nowhere\.md'"):
        specification.issue_text("nowhere.md")


def test_a_spec_of_a_person_is_never_written_over(unbegun: House) -> None:
    """Only where there is none, or the same text; a beginning that fails leaves what was there."""
    spec = unbegun.project / "SPEC.md"
    with (
        pytest.raises(UsageFault, match=r"There is a SPEC\.md in"),
        specification.drafted(unbegun.layout, "x", new=False),
    ):
        pass
    assert spec.read_text() == SPEC
    with specification.drafted(unbegun.layout, SPEC, new=False):
        pass
    spec.unlink()
    with pytest.raises(Unavailable), specification.drafted(unbegun.layout, "x", new=False):
        assert spec.read_text() == "x\n"
        raise Unavailable("the beginning failed")
    assert not spec.exists()


def test_answers_stand_below_their_questions(unbegun: House) -> None:
    """An empty answer leaves it to the agent."""
    text = "# A\n\n## Questions\n\n- Which one?\n- How many?\n\n## Claims\n- How many?\n"
    unbegun.write("SPEC.md", text)
    assert specification.questions(unbegun.layout) == ["Which one?", "How many?"]
    specification.answer(unbegun.layout, {"Which one?": "the second", "How many?": ""})
    answered = "- Which one?\n  Answer: the second\n- How many?\n  Answer: decide yourself\n"
    assert answered in (unbegun.project / "SPEC.md").read_text()
