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
    """With the line ends and the byte order mark of another system; keys of other programs are left alone."""
    wanted = {"name": "deploy-it", "description": "How to deploy, and when.", "body": "# Deploy\n\nRun it.\n"}
    assert parse(GOOD, "p", "deploy-it") == wanted
    assert parse("\ufeff" + GOOD.replace("\n", "\r\n"), "p", "deploy-it") == wanted


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("---\nname", "name", 1, "no front matter"),
        ("name: deploy-it\n", "", 1, "'name' must be text"),
        ("name: deploy-it", "name: Deploy", 2, "lower-case"),
        ("name: deploy-it", "name: deploy--it", 2, "single hyphens"),
        ("name: deploy-it", "name: other", 2, "must be 'deploy-it'"),
        ("name: deploy-it", "name: " + "a" * 65, 2, "more than 64"),
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
