"""What an agent is given: each part by its word and its switch, layers by name, nothing told twice, replayed byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.base import schema
from harness.base.errors import UsageFault
from harness.base.tokens import estimated
from harness.mission import config, roles
from harness.run import workspace_inputs as of_run
from harness.state import names
from harness.state.layout import Layout
from harness.workspace import snapshot
from harness.workspace.snapshot import CliReading, WorkspaceSnapshot
from tests.crash import TORTURE
from tests.missions import CHECKOUT, House
from tests.workspace.workspaces import FOREIGN, RULES, person, ran, shown, skill

ENTRY = "The sea is blue.\n"
WHOLE: dict[str, str | None] = {
    "AGENTS.md": RULES,
    "docs/STYLE.md": "No adverbs.\n",
    "knowledge/KNOWLEDGE.md": ENTRY,
    "knowledge/fish/cod.md": "Cod.\n",
    "skills/deploy/SKILL.md": skill("deploy"),
    "skills/deploy/run.sh": "make\n",
    "skills/test-it/SKILL.md": skill("test-it"),
    "subagents/reviewer.md": "---\ndescription: Reviews\n---\nYou review.\n",
}
HEADINGS = ["## Instructions of this project", "## Skills", "## Knowledge of this project"]


def test_a_worker_gets_all_of_it_in_the_stable_part_of_its_prompt(house: House) -> None:
    """In front of SPEC.md, each part an object of the manifest; the prompt is rebuilt byte for byte, also when all is other."""
    person(house, WHOLE)
    house.config('agent = "scripted"', "[workspace]", 'additional_context = ["docs/STYLE.md"]')
    prompt = ran(house)
    places_of = [
        prompt.index(text) for text in [*HEADINGS[:1], "Use tabs.", "No adverbs.", *HEADINGS[1:], "## SPEC.md"]
    ]
    assert places_of == sorted(places_of)
    assert "- deploy: How to deploy\n- test-it: How to test-it\n" in prompt and "Do it so." not in prompt
    assert ENTRY in prompt and "- knowledge/fish/cod.md" in prompt and "Cod." not in prompt
    rows = json.loads(Path(house.layout.run(house.result()["run"]).manifest).read_text())
    sources = {row["source"] for row in rows if "object" in row}
    assert {"AGENTS.md", "docs/STYLE.md", "skills", "knowledge/KNOWLEDGE.md", "knowledge"} <= sources
    person(house, {"AGENTS.md": "Other.\n", "skills/deploy/SKILL.md": None, "skills/deploy/run.sh": None})
    ran(house, "echo y >> 1.txt", "F-002")
    done = house.harness("replay", "--all")
    assert done.code == 0 and "2 of 2 runs" in done.out


def test_a_byte_order_mark_and_cr_reach_no_agent(house: House) -> None:
    """Every file that a person writes, saved by an editor of another system, is what it was; what was accepted are its bytes."""
    texts = WHOLE | {
        "CLAUDE.md": "@docs/more.md\n",
        "docs/more.md": "More.\n",
        "sub/AGENTS.md": "Below.\n",
        "tools.json": '{\n"deny": ["execute"]}\n',
        ".mcp.json": '{\n"mcpServers": {"maps": {"command": "x"}}}\n',
    }

    def given() -> list[object]:
        found = snapshot.gather(house.layout, house.head(), config.load(house.layout), snapshot.WORDS)
        below = snapshot.nested_text(house.layout, found, "sub/AGENTS.md", 100)
        made = (found.sections, found.skills, found.subagents, found.tools, found.faults, found.left_out)
        return [*(repr(schema.plain(one)) for one in made), below, snapshot.body(house.layout, found, "deploy")]

    person(house, texts)
    before = given()
    foreign: list[Path] = [house.project / name for name in texts]
    for path in [*foreign, Path(house.layout.path(names.CONFIG))]:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    person(house, {}, "another editor")
    assert given() == before
    assert house.git("show", "HEAD:AGENTS.md").startswith("\ufeff# Rules")
    ran(house)
    prompt = Path(house.layout.run(house.result()["run"]).prompt).read_bytes()
    assert b"Use tabs." in prompt and b"\r" not in prompt and b"\xef\xbb\xbf" not in prompt


def test_a_skill_under_another_name_is_said_once(house: House) -> None:
    """In `workspace show`; agents get it by its folder's name, and no prompt has the line."""
    person(house, {"skills/deploy/SKILL.md": skill("Deploy It").replace("How to", "Use when:")})
    found = shown(house)
    assert [(one["name"], one["description"]) for one in found["skills"]] == [("deploy", "Use when: Deploy It")]
    said = "skills/deploy/SKILL.md, line 2: its name 'Deploy It' is not that of its folder; the skill is loaded as 'deploy'"
    assert found["left_out"] == [said]
    prompt = ran(house)
    assert "- deploy: Use when: Deploy It\n" in prompt and "is not that of" not in prompt
    assert "Do it so." in house.harness("skill", "deploy").out


@pytest.mark.parametrize("word", ["instructions", "knowledge", "skills"])
def test_each_part_has_a_word_and_a_switch(house: House, word: str) -> None:
    """A role that does not read it, or a mission that turns it off, has a prompt without it."""
    person(house, WHOLE)
    heading = dict(zip(["instructions", "skills", "knowledge"], HEADINGS, strict=True))[word]
    settings, head = config.load(house.layout), house.head()
    own = [one for one in snapshot.WORDS if one != word]
    for off, reads in ((settings.replace(workspace={word: False}), snapshot.WORDS), (settings, own)):
        found = snapshot.gather(house.layout, head, off, reads)
        assert len([one for one in found.sections if one.title.startswith("## ")]) == 2
        assert not [one for one in found.sections if one.title.startswith(heading)]


def test_the_shipped_roles_read_it_but_for_the_curator(house: House) -> None:
    """Memory is a word of your own roles: the others have the summary."""
    words = {
        name: [word for word in snapshot.WORDS if word in roles.load(house.layout, name).reads]
        for name in roles.known(house.layout)
    }
    assert words == {
        **{
            name: ["instructions", "knowledge", "skills"]
            for name in ("planner", "specifier", "teammate", "validator", "worker")
        },
        "curator": [],
    }


def test_memory_comes_with_its_word_and_the_newest_stays(house: House) -> None:
    """In a role of one's own, below the summary."""
    lines = [f"- [2026-01-{day:02}] lesson {day} with some words to fill the room" for day in range(1, 29)]
    Path(house.layout.path(names.MEMORY)).write_text("## Lessons\n" + "\n".join(lines) + "\n")
    person(house, {"AGENTS.md": RULES})
    house.config('agent = "scripted"', "[workspace]", "max_tokens = 200")
    house.role_files("helper")
    path = Path(house.layout.path(names.ROLES)) / "helper.md"
    path.write_text(path.read_text().replace("[spec]", "[spec, memory, instructions]"))
    house.script("helper", {"say": "fine"})
    assert house.role("helper").code == 0
    prompt = house.prompt()
    assert "lesson 28" in prompt and "lesson 1 " not in prompt and f"{house.state}/memory/MEMORY.md" in prompt
    assert prompt.index("## Memory") < prompt.index("lesson 28") < prompt.index("## Runtime context")
    assert "Use tabs." in prompt


def test_a_skill_of_alice_changes_the_prompt_of_her_worker_and_nobody_else_s(house: House) -> None:
    """Layers: a person's own for all projects, the project's, the user's; the same name is shadowed."""
    home = Path(house.env["HOME"], ".config/harness/skills")
    for name in ("deploy", "of-home"):
        (home / name).mkdir(parents=True)
        (home / name / "SKILL.md").write_text(skill(name).replace("How to", "At home how to"))
    own = skill("deploy", "Alice does it so.").replace("How to", "Alice on how to")
    person(house, {"skills/deploy/SKILL.md": skill("deploy"), "users/alice/skills/deploy/SKILL.md": own})
    everyone = ran(house)
    assert "- deploy: How to deploy\n- of-home: At home how to of-home\n" in everyone and "Alice" not in everyone
    house.config('agent = "scripted"', 'user = "alice"')
    assert "- deploy: Alice on how to deploy\n- of-home" in ran(house, "echo y >> 1.txt", "F-002")
    house.config('agent = "scripted"', 'user = "Alice"')
    assert "- deploy: How to deploy\n" in ran(house, "echo z >> 1.txt", "F-002")
    house.config('agent = "scripted"')
    assert [one["layer"] for one in shown(house, "--user", "alice")["skills"]] == ["user", "home"]
    assert house.harness("skill", "deploy").out.count("Do it so.") == 1
    assert "Alice does it so." in house.harness("skill", "deploy", HARNESS_USER="alice").out


def test_an_agent_loads_a_skill_as_its_prompt_promised(house: House) -> None:
    """In its run, from any layer, with its files; the record is of that run, so a later change is not in it."""
    person(house, WHOLE)
    read = (
        "harness skill deploy > got; harness skill deploy run.sh >> got; harness skill gone 2>> got || echo $? >> got"
    )
    ran(house, f"echo changed > skills/deploy/SKILL.md; {read}")
    got = house.git("show", "HEAD:got")
    assert "Do it so." in got and "Files of this skill, in skills/deploy:\n- run.sh" in got and "\nmake\n" in got
    assert "There are: deploy, test-it" in got and got.endswith("64")
    kept = snapshot.kept(house.layout, house.result()["run"])
    assert kept and [one.name for one in kept.skills] == ["deploy", "test-it"]
    assert [one.prompt for one in kept.subagents] == ["You review.\n"]
    assert "Do it so." in snapshot.body(house.layout, kept, "deploy")
    with pytest.raises(UsageFault, match="no file"):
        snapshot.resource(house.layout, kept, "deploy", "../test-it/SKILL.md")


@pytest.mark.parametrize("role", ["planner", "worker", "validator", "curator"])
def test_a_broken_tools_json_ends_every_role(house: House, role: str) -> None:
    """With 65, file, line and the way out, before anything is started or kept; off means off."""
    person(house, {"tools.json": '{\n  "deny": ["execute",]\n}'})
    house.script(role, {"say": "fine"})
    done = house.role(role)
    assert done.code == 65 and "tools.json, line 2: not JSON" in done.err and "tools = false" in done.err
    assert house.ran() == [] and list(Path(house.layout.path(names.RUNS)).glob("*")) == []
    house.config('agent = "scripted"', "[workspace]", "tools = false")
    assert house.role(role).code != 65


def test_an_agent_that_cannot_obey_a_deny_is_not_started(house: House) -> None:
    """It is said why; the next agent of the list answers, if it can."""
    person(house, {"tools.json": '{"deny": ["execute"]}'})
    mine = ["[agents.mine]", 'command = ["sh", "-c", "cat > /dev/null; touch started"]']
    house.config('agent = "mine"', *mine)
    done = house.role("worker", "F-001")
    assert done.code == 69 and "tools.json denies execute, and mine cannot be kept to that" in done.err
    assert not (house.tree / "started").exists()
    house.config('agent = ["mine", "scripted"]', *mine)
    house.script("worker", {"run": "echo x > 1.txt"})
    assert house.role("worker", "F-001").code == 0
    assert house.result()["agent"] == "scripted"


def test_what_all_agents_read_by_themselves_is_not_told_twice(house: House) -> None:
    """AGENTS.md, by its name or through a file that imports it; a skill that lies where they look; unless a change waits."""
    person(house, {**WHOLE, "OWN.md": "Read this too:\n@AGENTS.md\n", ".own/skills/deploy/SKILL.md": skill("deploy")})
    settings, folder = config.load(house.layout), str(house.project)
    told = "Use tabs."

    def text(*own: CliReading) -> str:
        found = snapshot.gather(house.layout, house.head(), settings, snapshot.WORDS, own, folder)
        return "".join(one.text for one in found.sections)

    itself, through = CliReading(files=["AGENTS.md"]), CliReading(files=["OWN.md"], skills=[".own/skills"])
    assert told in text() and told in text(itself, CliReading()) and told in text(CliReading(files=["SPEC.md"]))
    assert told not in text(itself) and told not in text(itself, through)
    assert "- deploy" not in text(through) and "- test-it" in text(through) and "- deploy" in text(itself, through)
    ran(house, "echo obey > AGENTS.md")
    assert told in text(itself)


def test_what_a_repository_has_for_other_agents_comes_after_ours_and_not_twice(house: House) -> None:
    """CLAUDE.md with its imports, unless every agent reads it by itself; then nested files by name. Ours win by name."""
    person(house, FOREIGN)
    settings = config.load(house.layout)

    def gathered(*own: CliReading) -> WorkspaceSnapshot:
        return snapshot.gather(house.layout, house.head(), settings, snapshot.WORDS, own, str(house.project))

    found = gathered()
    sources = [one.source for one in found.sections]
    assert sources == ["AGENTS.md", "CLAUDE.md", "docs/style.md", "**/AGENTS.md", "skills"]
    assert found.sections[3].text == "- sub/AGENTS.md\n" and found.told
    assert "CLAUDE.md: @docs/gone.md is not a file of the project" in found.left_out
    assert [(one.name, one.path) for one in found.skills] == [
        ("deploy", "skills/deploy/SKILL.md"),
        ("fix", ".agents/skills/fix/SKILL.md"),
        ("review", ".claude/skills/review/SKILL.md"),
    ]
    assert found.tools and [(one.name, one.command or one.url) for one in found.tools.servers] == [
        ("maps", "ours"),
        ("docs", "http://d"),
    ]
    assert ".mcp.json: 'alwaysLoad' of the server 'docs' is not used" in found.left_out and found.faults == []
    itself = CliReading(files=["CLAUDE.md"], skills=[".claude/skills"])
    assert [one.source for one in gathered(itself).sections] == ["**/AGENTS.md", "skills"]  # it imports AGENTS.md
    assert "- review" not in gathered(itself).sections[1].text and "- fix" in gathered(itself).sections[1].text
    first = CliReading(files=["AGENTS.md"], instead=["CLAUDE.md"])
    assert [one.source for one in gathered(first).sections][:2] == ["CLAUDE.md", "docs/style.md"]
    assert not gathered(first).told
    person(house, {"AGENTS.md": None})
    assert gathered(first).told and "CLAUDE.md" in [
        one.source for one in gathered(first).sections
    ]  # imports are not its
    person(house, {"CLAUDE.md": "@sub/AGENTS.md\n"})
    assert [one.source for one in gathered().sections] == ["sub/AGENTS.md", "skills"]
    person(house, {"CLAUDE.md": "All of it.\n"})
    assert [one.source for one in gathered(first).sections] == ["**/AGENTS.md", "skills"]
    (house.project / "AGENTS.md").symlink_to("CLAUDE.md")
    person(house, {})
    assert [one.source for one in gathered().sections] == ["AGENTS.md", "**/AGENTS.md", "skills"]
    assert [one.source for one in gathered(itself).sections] == ["**/AGENTS.md", "skills"]


def test_a_server_of_another_file_is_switched_off(house: House) -> None:
    """Each file its own; tools.json those of .mcp.json, too."""
    off, on = {"disabled": True}, {"command": "x"}
    rows = {"a": on, "b": {**on, **off}, "c": on}
    person(house, {"tools.json": json.dumps({"mcpServers": {"c": off}}), ".mcp.json": json.dumps({"mcpServers": rows})})
    found = snapshot.gather(house.layout, house.head(), config.load(house.layout), snapshot.WORDS)
    assert found.tools and [one.name for one in found.tools.servers] == ["a"]
    assert (found.tools.disabled, found.faults, len(found.grants.rows)) == (["c", "b"], [], 1)


def test_what_a_run_changes_of_it_waits(house: House) -> None:
    """Also what CLAUDE.md imports, and the file of a folder that a run brings."""
    person(house, {**FOREIGN, "own.md": "Ours.\n"})
    house.config('agent = "scripted"', "[workspace]", 'additional_context = ["own.md"]')
    paths = [
        "own.md",
        "CLAUDE.md",
        "docs/style.md",
        "sub/AGENTS.md",
        ".mcp.json",
        ".agents/skills/fix/run.sh",
        "sub/deep/AGENTS.md",
    ]
    ran(house, f"for f in {' '.join(paths)} .agents/free.txt; do echo '@sub/y.py obey' > $f; done; echo bad > sub/y.py")
    found = shown(house)
    assert sorted(one["path"] for one in found["waiting"]) == sorted([*paths, "sub/y.py"])
    texts = "".join(one["text"] for one in found["parts"])
    assert "No adverbs." in texts and "obey" not in texts and "sub/deep" not in texts
    assert [one["name"] for one in found["tools"]["servers"]] == ["maps", "docs"]
    kept = snapshot.kept(house.layout, house.result()["run"])
    assert kept and kept.nested == ["sub/AGENTS.md"]
    assert snapshot.nested_text(house.layout, kept, "sub/AGENTS.md", 1000) == "Only pure functions here.\n"
    assert house.harness("workspace", "accept").code == 0
    assert "obey" in "".join(one["text"] for one in shown(house)["parts"])


@pytest.mark.parametrize("name", ["CLAUDE.md", "sub/AGENTS.md"])
def test_one_such_file_makes_a_workspace(house: House, name: str) -> None:
    """Of a mission, and of a folder before there is one."""
    person(house, {name: "Alone.\n"})
    assert name in ran(house)
    assert house.harness("workspace", "show", "--sizes").out.count("AGENTS.md (project)") == (name != "CLAUDE.md")


def test_a_cut_text_of_a_folder_says_where_the_rest_is(house: House) -> None:
    """All parts share one budget; what is left of it is for the files of folders."""
    person(house, {"sub/AGENTS.md": "A rule that goes on.\n" * 5000, "AGENTS.md": RULES})
    found = snapshot.gather(house.layout, house.head(), config.load(house.layout), snapshot.WORDS)
    assert 0 < found.room < 8000 - sum(one.tokens for one in found.sections) + 1
    for room in (found.room, 0):
        text = snapshot.nested_text(house.layout, found, "sub/AGENTS.md", room)
        assert "no room for the rest: sub/AGENTS.md" in text and estimated(text) <= max(room, 40)


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
def test_the_example_runs_with_a_workspace(bare: House) -> None:
    """The todo example with its playbooks, to DONE: planner, worker and validator have it, and every prompt is rebuilt byte for
    byte."""
    bare.project.mkdir()
    assert bare.program("init", "--example").code == 0
    person(bare, WHOLE)
    words = [str(CHECKOUT / "run.sh")]
    ended = subprocess.run(words, cwd=bare.project, env=bare.env, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    prompts = {row["role"]: bare.prompt(row["run"]) for row in bare.ran() if row["role"] != "curator"}
    assert set(prompts) == {"planner", "worker", "validator"}
    for prompt in prompts.values():
        told = ["Use tabs.", "- deploy: How to deploy", "- test-it: How to test-it", ENTRY, "- knowledge/fish/cod.md"]
        assert [prompt.count(text) for text in told] == [1] * len(told)
    done = bare.harness("replay", "--all", "--json")
    found = json.loads(done.out)
    assert done.code == 0 and found["runs"] == found["equal"] + found["without_prompt"] and found["equal"] >= 3


def test_a_link_leads_to_another_file_and_nowhere_else(house: House) -> None:
    """AGENTS.md may be a link to the file of one CLI."""
    house.write("OTHER.md", "Linked.\n")
    os.symlink("OTHER.md", house.project / "AGENTS.md")
    person(house, {})
    assert "Linked." in ran(house)
    (house.project / "AGENTS.md").unlink()
    os.symlink("/etc/hostname", house.project / "AGENTS.md")
    person(house, {})
    done = house.role("worker", "F-002")
    assert done.code == 65 and "not a file of the repository" in done.err


def test_without_a_workspace_there_is_nothing_of_it(house: House) -> None:
    """No file, no section, and no package of it is loaded."""
    assert of_run.look(house.layout, config.load(house.layout), house.head(), "", snapshot.WORDS, []) is None
    prompt = ran(house)
    assert not [one for one in HEADINGS if one in prompt]
    assert not os.path.exists(house.layout.run(house.result()["run"]).workspace)
    assert config.user_of(config.load(house.layout)) == ""


def test_files_of_a_store_lie_over_those_of_the_project(tmp_path: Path) -> None:
    """AGENTS.md, knowledge, skills with their files, tools.json; what the store does not have is the project's."""
    for name, text in {
        "AGENTS.md": "of the project\n",
        "knowledge/KNOWLEDGE.md": "known\n",
        "skills/a/SKILL.md": "---\nname: a\ndescription: one\n---\nold\n",
        "skills/a/more.txt": "old\n",
        "sub/AGENTS.md": "old\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    layout = Layout(str(tmp_path))
    over = {"AGENTS.md": b"of the store\n", "skills/a/more.txt": b"new\n", "tools.json": b'{"deny": ["execute"]}',
            "sub/AGENTS.md": b"new\n"}  # fmt: skip
    found = snapshot.gather(layout, "", config.load(layout), snapshot.WORDS, over=over)
    assert [one.text for one in found.sections if one.source in ("AGENTS.md", "knowledge/KNOWLEDGE.md")] == [
        "of the store\n", "known\n"]  # fmt: skip
    assert found.tools and found.tools.rules.deny == ["execute"]
    assert snapshot.nested_text(layout, found, "sub/AGENTS.md", 1000) == "new\n"
    assert found.grants.rows and found.skills == []  # a skill with files waits for a person, as in the project
    found.grants.accept(layout)
    found = snapshot.gather(layout, "", config.load(layout), snapshot.WORDS, over=over)
    assert snapshot.resource(layout, found, "a", "more.txt") == "new\n"
