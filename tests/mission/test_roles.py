"""Roles are discovered, never listed in code; the mission's own come first, and a malformed one is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.mission import roles
from harness.state import names
from harness.state.layout import Layout
from tests.helpers import mission, put

HEAD = "name: docs\nsummary: writes\nreads: [spec, plan]\n"


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A mission, and a home with the role `docs` and common words."""
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))
    put(f"{tmp_path}/home/roles/common.md", "common\n")
    role(f"{tmp_path}/home/roles", "docs")
    return mission(tmp_path)


def role(folder: str, name: str, head: str = HEAD, words: str = "words\n") -> None:
    """Write a role's two files."""
    put(f"{folder}/{name}.md", f"---\n{head.replace('docs', name)}---\n{words}")
    put(f"{folder}/{name}.py", "")


def test_a_role_is_its_two_files(layout: Layout) -> None:
    """It has defaults for what its front matter omits, and the exact words."""
    found = roles.load(layout, "docs")
    assert (found.name, found.summary, found.reads) == ("docs", "writes", ["spec", "plan"]) and found.agent is None
    assert (found.words, found.common, found.minutes, found.idle_minutes) == ("words\n", "common\n", 60, 10)
    assert found.script == found.path[:-3] + ".py"


def test_without_the_words_that_all_roles_share_no_role_is_started(layout: Layout, tmp_path: Path) -> None:
    """Absent is not empty: the user never asked for an agent without the shared rules."""
    common = tmp_path / "home/roles/common.md"
    common.unlink()
    for name in ("docs", "mine"):
        role(layout.path(names.ROLES), name)
        with pytest.raises(BrokenFile, match=r"roles/common\.md: the text shared by all roles is missing\. Restore it"):
            roles.load(layout, name)
    common.write_text("")
    assert roles.load(layout, "docs").common == ""


def test_everything_that_front_matter_may_say_is_read(layout: Layout) -> None:
    """A closed set of keys, and every value of `reads`."""
    reads = ", ".join(roles.READS)
    role(
        layout.path(names.ROLES),
        "all",
        f"name: all\nsummary: s\nreads: [{reads}]\nagent: [a, b]\nminutes: 0.5\nidle_minutes: 2\njudges: true\n"
        "agent_optional: true\n",
    )
    found = roles.load(layout, "all")
    assert (tuple(found.reads), found.agent, found.minutes, found.idle_minutes) == (roles.READS, ["a", "b"], 0.5, 2)
    assert (found.judges, found.agent_optional, found.commits, found.capability) == (True, True, False, "judges")


def test_the_missions_own_role_wins(layout: Layout) -> None:
    """It wins over a role of ours that was read before; when it is removed, ours is back."""
    assert roles.load(layout, "docs").words == "words\n"
    role(layout.path(names.ROLES), "docs", words="my words\n")
    found = roles.load(layout, "docs")
    assert (found.words, found.path) == ("my words\n", f"{layout.path(names.ROLES)}/docs.md")
    Path(layout.path(names.ROLES), "docs.md").unlink()
    assert roles.load(layout, "docs").words == "words\n"


def test_a_changed_role_is_read_again(layout: Layout) -> None:
    """At once, in the same process."""
    for words in ("one", "two", "one"):
        role(layout.path(names.ROLES), "docs", words=words)
        assert roles.load(layout, "docs").words == words


def test_known_roles_have_both_files(layout: Layout) -> None:
    """common.md is not a role; the mission's own roles count."""
    role(layout.path(names.ROLES), "mine")
    put(f"{layout.path(names.ROLES)}/words-only.md", "x")
    put(f"{layout.path(names.ROLES)}/script_only.py", "")
    assert roles.known(layout) == ["docs", "mine"]


@pytest.mark.parametrize("name", ["none", "../roles/docs", "", "docs.md", "common\n"])
def test_an_unknown_role_is_answered_with_the_known_ones(layout: Layout, name: str) -> None:
    """A name is never a path."""
    with pytest.raises(UsageFault, match=r"(?s)There is no role .* The roles here are: docs\."):
        roles.load(layout, name)


def test_words_without_a_script_are_no_role(layout: Layout) -> None:
    """The error says which file is missing."""
    put(f"{layout.path(names.ROLES)}/half.md", f"---\n{HEAD.replace('docs', 'half')}---\n")
    with pytest.raises(UsageFault, match=r"half\.md but no .*half\.py"):
        roles.load(layout, "half")


@pytest.mark.parametrize(
    ("head", "line", "fault"),
    [
        (HEAD + "color: red\n", 5, "unknown key 'color'"),
        ("color: red\n" + HEAD, 2, "unknown key 'color'"),
        ("name: docs\nsummary: writes\n", 1, "lacks 'reads'"),
        ("", 1, "lacks 'name'"),
        (HEAD.replace("docs", "other"), 2, "'name' must be 'docs'"),
        (HEAD.replace("plan", "plans"), 4, "'reads' has the unknown 'plans'"),
        (HEAD.replace("[spec, plan]", "spec"), 4, "'reads' must be a list of names"),
        (HEAD + "minutes: 0\n", 5, "'minutes' must be above 0"),
        (HEAD + "idle_minutes: soon\n", 5, "'idle_minutes' must be a number"),
        (HEAD + "minutes: true\n", 5, "'minutes' must be a number"),
        (HEAD + "agent: 2026-04-24\n", 5, "'agent' must be a name or a list"),
        (HEAD + "agent: [1]\n", 5, "'agent' must be a name or a list"),
        (HEAD + "commits: 1\n", 5, "'commits' must be true or false"),
        (HEAD + "plans: true\njudges: true\n", 5, "'plans' and 'judges' exclude each other: choose one"),
        (HEAD + "a: [\n", 6, "does not parse"),
        ("- a list\n", 2, "not a list of 'key: value'"),
    ],
)
def test_a_malformed_role_is_named_with_its_line(layout: Layout, head: str, line: int, fault: str) -> None:
    """The error names its file too."""
    put(f"{layout.path(names.ROLES)}/docs.md", f"---\n{head}---\nname: not this line\nreads: nor this\n")
    with pytest.raises(BrokenFile, match=rf"roles/docs\.md, line {line}: .*{fault}"):
        roles.load(layout, "docs")


def test_a_role_without_front_matter_is_malformed(layout: Layout) -> None:
    """The words alone do not say what it reads."""
    put(f"{layout.path(names.ROLES)}/docs.md", "words\n")
    with pytest.raises(BrokenFile, match=r"docs\.md, line 1: the front matter lacks 'name'"):
        roles.load(layout, "docs")


@pytest.mark.parametrize("name", ["planner", "worker", "validator", "curator"])
def test_our_own_roles_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """They are valid as checked out."""
    monkeypatch.delenv("HARNESS_HOME", raising=False)
    found = roles.load(mission(tmp_path), name)
    assert found.words.startswith("# ")
    assert found.common
