"""A SKILL.md by the specification; what is not one is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.workspace import skills
from harness.workspace.skills import Skill, parse

GOOD = "---\nname: deploy-it\ndescription: >\n  How to deploy,\n  and when.\nlicense: MIT\nunknown: 1\n---\n"
GOOD += "\n# Deploy\n\nRun it.\n"


def test_name_description_and_body_are_read() -> None:
    """Keys of other programs are left alone."""
    wanted = {"name": "deploy-it", "description": "How to deploy, and when.", "body": "# Deploy\n\nRun it.\n"}
    assert parse(GOOD, "p", "deploy-it") == {**wanted, "misnamed": ""}
    assert parse(GOOD.replace("name: deploy-it", "name: 2048"), "p", "2048")["misnamed"] == ""


@pytest.mark.parametrize("folder", ["deploy-it", "Deploy", "deploy it", "v2.1", "a" * 65])
@pytest.mark.parametrize("own", ["Deploy", "PDF Forms", "deploy--it", "other", "b" * 65, "[a, b]", '""', None])
def test_a_skill_goes_by_the_name_of_its_folder(folder: str, own: str | None) -> None:
    """Whatever its own name looks like, or if it has none: a line says so."""
    text = GOOD.replace("name: deploy-it\n", "" if own is None else f"name: {own}\n")
    made = parse(text, "skills/x/SKILL.md", folder)
    assert made["name"] == folder
    said = made["misnamed"]
    if own == folder:
        assert said == ""
    else:
        line = "line 1: it has no name" if own is None else "line 2: its name"
        assert said.startswith(f"skills/x/SKILL.md, {line}") and said.endswith(f"loaded as '{folder}'")


def test_a_folder_whose_name_cannot_be_shown_is_no_skill() -> None:
    """A line break in it would end the line of a prompt."""
    for name in ("a\nb", "a\x1b", "a\udcff"):
        with pytest.raises(BrokenFile, match="characters that cannot be shown"):
            parse(GOOD, "p", name)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("---\nname", "name", 1, "no front matter"),
        ("license: MIT", "license: [MIT]", 6, "'license'"),
        (">\n  How to deploy,\n  and when.", '""', 3, "'description' must be text"),
        (">\n  How to deploy,\n  and when.", "a" * 1025, 3, "more than 1024"),
        ("unknown: 1", "unknown: [", 8, "does not parse"),
    ],
)
def test_what_the_specification_forbids_is_named_with_its_line(old: str, new: str, line: int, words: str) -> None:
    """And with the way to have no skills at all, or the remedy of the parser."""
    with pytest.raises(BrokenFile, match=words) as caught:
        parse(GOOD.replace(old, new, 1), "skills/deploy-it/SKILL.md", "deploy-it")
    assert (caught.value.line, caught.value.code) == (line, 65)


def test_a_body_comes_with_the_names_of_its_files(tmp_path: Path) -> None:
    """For an agent that reads them where they are; an unknown name says which there are."""
    one = Skill(
        name="deploy-it", description="d", layer="project", path="skills/deploy-it/SKILL.md", folder="skills/deploy-it"
    )
    assert "Run it." in skills.shown(one, GOOD) and "Files" not in skills.shown(one, GOOD)
    assert "in skills/deploy-it:\n- run.sh" in skills.shown(one.replace(files=["run.sh"]), GOOD)
    with pytest.raises(UsageFault, match="There are: deploy-it"):
        skills.find([one], "deploy")
