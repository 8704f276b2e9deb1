"""A run's change of the workspace waits for a person, however it came about; what a person commits counts at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.state import names
from harness.workspace import acceptance
from tests.missions import House, until
from tests.workspace.workspaces import RULES, log, person, ran, shown, skill

OBEY = "echo obey me > AGENTS.md"


def waits(house: House) -> list[str]:
    """The paths that wait."""
    return [one["path"] for one in shown(house)["waiting"]]


def test_a_run_s_instructions_wait_until_a_person_accepts_them(house: House) -> None:
    """The next prompt has those of before; the change is on the screen, in status, and lands in git like any work."""
    person(house, {"AGENTS.md": RULES})
    house.script("worker", {"run": f"{OBEY}; echo x > 1.txt"})
    done = house.role("worker", "F-001")
    assert "AGENTS.md" in done.out and "workspace accept" in done.out
    assert house.git("show", "HEAD:AGENTS.md") == "obey me"
    assert "AGENTS.md" in house.harness("status").out
    before = ran(house, feature="F-002")
    assert "Use tabs." in before and "obey me" not in before
    done = house.harness("workspace", "accept")
    assert done.code == 0 and "AGENTS.md is accepted" in done.out
    after = ran(house, feature="F-002")
    assert "obey me" in after and "Use tabs." not in after
    assert "AGENTS.md" not in house.harness("status").out
    assert house.harness("workspace", "accept").out.strip() == "Nothing to accept."


def test_every_kind_of_change_waits(house: House) -> None:
    """A new skill, a changed tools.json, a deleted subagent, knowledge; what only looks like one does not."""
    tools = '{"deny": ["execute"]}'
    first = {
        "tools.json": tools,
        "subagents/one.md": "---\ndescription: d\n---\nDo.\n",
        "knowledge/KNOWLEDGE.md": "A\n",
    }
    person(house, {**first, "skills/x/SKILL.md": skill("x"), "skills/x/run.sh": "one\n", "lib/skills/y/z.py": "1\n"})
    new = f"mkdir -p skills/new skills/plain; printf -- '{skill('new')}' > skills/new/SKILL.md; echo 1 > skills/plain/code.py"
    rest = "echo {} > tools.json; rm subagents/one.md; echo B > knowledge/KNOWLEDGE.md; echo two > skills/x/run.sh"
    prompt = ran(house, f"{new}; {rest}; echo 2 > lib/skills/y/z.py")
    assert "- x: How to x" in prompt
    wanted = ["knowledge/KNOWLEDGE.md", "skills/new/SKILL.md", "skills/x/run.sh", "subagents/one.md", "tools.json"]
    assert sorted(waits(house)) == wanted
    found = shown(house)
    assert [one["name"] for one in found["skills"]] == ["x"]
    assert [one["id"] for one in found["subagents"]] == ["one"]
    assert found["tools"]["deny"] == ["execute"]
    done = house.harness("workspace", "accept", "skills", "tools.json")
    assert done.code == 0, done
    assert sorted(waits(house)) == ["knowledge/KNOWLEDGE.md", "subagents/one.md"]
    assert [one["name"] for one in shown(house)["skills"]] == ["new", "x"]
    assert house.harness("workspace", "accept", "main.py").code == 64


def test_two_runs_one_after_another_do_not_make_it_count(house: House) -> None:
    """What counts is still what the person wrote; taking it back ends the wait."""
    person(house, {"AGENTS.md": RULES})
    ran(house, OBEY)
    ran(house, "echo obey more > AGENTS.md", "F-002")
    assert "Use tabs." in ran(house, "echo y >> 1.txt")
    assert waits(house) == ["AGENTS.md"]
    ran(house, f"printf '{RULES}' > AGENTS.md")
    assert waits(house) == [] and [row["verb"] for row in log(house)] == ["changed", "changed", "back"]


def test_what_a_person_commits_counts_at_once(house: House) -> None:
    """Also on top of a run's change; and a run's change on top of that waits again."""
    person(house, {"AGENTS.md": RULES})
    ran(house, OBEY)
    person(house, {"AGENTS.md": "Use spaces.\n"})
    assert "Use spaces." in ran(house, "echo y >> 1.txt")
    assert waits(house) == []
    ran(house, OBEY)
    assert "Use spaces." in ran(house, "echo z >> 1.txt")


def test_where_git_joins_both_sides_only_the_person_s_side_counts(house: House) -> None:
    """A person commits while a run works, and both change other lines of one file: what the merge holds of the run waits."""
    lines = "".join(f"rule {number}\n" for number in range(20))
    person(house, {"AGENTS.md": lines})
    house.script(
        "worker",
        {"run": "sed -i '1s/.*/obey me/' AGENTS.md; echo 1 > 1.txt; until test -e go; do sleep 0.05; done; rm go"},
    )
    begun = house.begin_role("worker", "F-001")
    until(lambda: (house.tree / "1.txt").exists())
    person(house, {"AGENTS.md": lines.replace("rule 19", "be kind")})
    (house.tree / "go").touch()
    assert begun.wait(60) == 0
    prompt = ran(house, "echo y >> 1.txt", "F-002")
    joined = house.git("show", f"{house.result()['head']}:AGENTS.md")
    assert "be kind" in joined and "obey me" in joined
    assert "be kind" in prompt and "obey me" not in prompt
    assert waits(house) == ["AGENTS.md"]


def test_an_agent_cannot_accept_and_nobody_accepts_what_is_broken(house: House) -> None:
    """A file that would end every run with 65 is named before it counts."""
    person(house, {"tools.json": '{"deny": []}'})
    house.script("worker", {"run": "echo nonsense > tools.json; harness workspace accept 2> said || echo $? >> said"})
    assert house.role("worker", "F-001").code == 0
    assert "not for the inside of a run" in house.git("show", "HEAD:said")
    done = house.harness("workspace", "accept")
    assert done.code == 65 and "tools.json, line 1" in done.err
    assert waits(house) == ["tools.json"]


def test_a_run_that_dies_after_its_commit_leaves_its_change_waiting(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery knows only the commit."""
    person(house, {"AGENTS.md": RULES})
    with monkeypatch.context() as patch:
        patch.setattr("harness.run.closing.close", _die)  # as a kill between the commit and our files
        with pytest.raises(_Died):
            ran(house, OBEY)
    assert "Use tabs." in ran(house, "echo y >> 1.txt", "F-002")
    assert waits(house) == ["AGENTS.md"]


class _Died(BaseException):
    pass


def _die(*_: object) -> None:
    raise _Died


def test_a_line_that_is_none_is_named(house: House) -> None:
    """Nobody's instructions count by a guess."""
    Path(house.layout.path(names.WORKSPACE_LOG)).write_text(json.dumps({"path": "AGENTS.md"}) + "\n")
    with pytest.raises(BrokenFile, match="line 1"):
        acceptance.lines(house.layout)
