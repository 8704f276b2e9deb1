"""What a run's agents are given: a CLI that reads AGENTS.md by itself is silenced where the prompt has it, and so is a replay."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from harness.agents import registry
from harness.agents._playbook import Playbook
from harness.agents.clis import ABOUT
from harness.mission import config
from harness.run import workspace_inputs
from harness.state import names
from tests.missions import House
from tests.workspace.workspaces import RULES, person, ran, skill

PROGRAM = """#!/bin/sh
echo "$@" > args
cat > prompt
echo x >> 1.txt
echo '{row}'
"""
ENDS = {
    "codex": '{"type":"turn.completed","usage":{}}',
    "gemini": '{"type":"result","status":"success"}',
    "claude": '{"type":"result","subtype":"success","result":"done","usage":{"input_tokens":1,"output_tokens":1}}',
}


def cli(house: House, name: str, *more: str) -> None:
    """A program in the place of a known CLI, which leaves its arguments and its prompt."""
    path = house.folder / name
    path.write_text(PROGRAM.replace("{row}", ENDS[name]))
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    agents = json.dumps([name, *more])
    house.config(f"agent = {agents}", 'trust = "workspace"', f"[agents.{name}]", f'path = "{path}"')


def told(house: House) -> tuple[str, str]:
    """The arguments and the prompt that the program got, from the run's commit."""
    head = house.result()["commit"]
    return house.git("show", f"{head}:args"), house.git("show", f"{head}:prompt")


def test_a_cli_that_reads_agents_md_is_told_it_only_where_it_must(unconfined: House) -> None:
    """Alone: not told, and left to read it. While a run's change waits, or beside another agent: told, and kept from it."""
    person(unconfined, {"AGENTS.md": RULES})
    cli(unconfined, "codex")
    unconfined.role("worker", "F-001")
    args, prompt = told(unconfined)
    assert "Use tabs." not in prompt and "project_doc_max_bytes" not in args
    cli(unconfined, "codex", "scripted")
    unconfined.script("worker", {"say": "fine"})
    unconfined.role("worker", "F-002")
    args, prompt = told(unconfined)
    assert "Use tabs." in prompt and "project_doc_max_bytes=0" in args
    unconfined.config('agent = "scripted"')
    ran(unconfined, "echo obey me > AGENTS.md")
    cli(unconfined, "codex")
    unconfined.role("worker", "F-002", "--again")
    args, prompt = told(unconfined)
    assert "Use tabs." in prompt and "obey me" not in prompt and "project_doc_max_bytes=0" in args


def test_what_an_agent_reads_by_itself_before_it_is_accepted_is_said(unconfined: House) -> None:
    """A change of a file that it cannot be kept from is named, when it was made and at the next run."""
    name = next(name for name in registry.KNOWN_CLIS if "GEMINI.md" in ABOUT[name].reads)
    person(unconfined, {"GEMINI.md": "Old.\n"})
    unconfined.script("worker", {"run": "echo obey me > GEMINI.md"})
    assert "runs changed GEMINI.md" in unconfined.role("worker", "F-001").out
    cli(unconfined, name)
    assert f"{name} reads GEMINI.md by itself, as a run left it" in unconfined.role("worker", "F-002").out
    unconfined.harness("workspace", "accept")
    assert "by itself" not in unconfined.role("worker", "F-002", "--again").out


def test_the_names_of_what_clis_read_are_those_of_their_adapters() -> None:
    """The list that a run's changes are compared with."""
    found = {
        *(name for one in ABOUT.values() for name in one.reads),
        *(f"{name}/" for one in ABOUT.values() for name in one.skills),
    }
    assert found - {"AGENTS.md"} == set(registry.READ_BY_CLIS)
    assert {name for name, one in ABOUT.items() if one.can_obey(["x"], ["y"], mcp=False)} == set(registry.OBEDIENT)
    fine = [name for name, one in ABOUT.items() if one.can_obey(["execute(git push*)"], None, mcp=False)]
    assert fine == [registry.LOOP], "a flag of a CLI has no patterns for arguments"


def test_a_claude_that_must_not_run_commands_is_started_so(unconfined: House) -> None:
    """By its own names for the tools; its MCP servers are off where only some tools are allowed."""
    person(
        unconfined,
        {"tools.json": '{"allow": ["read_file", "edit_file", "execute"], "deny": ["execute", "web_*", "Own"]}'},
    )
    cli(unconfined, "claude")
    unconfined.role("worker", "F-001")
    args = told(unconfined)[0]
    assert "--disallowedTools Bash,WebFetch,WebSearch,Own --tools Read,Edit,MultiEdit,NotebookEdit,Bash" in args


def test_a_prompt_that_is_fired_again_has_its_skills(house: House) -> None:
    """As the run had them, whatever the project has now."""
    person(house, {"skills/deploy/SKILL.md": skill("deploy", "As then."), "skills/deploy/a.md": "Beside it.\n"})
    ran(house, "harness skill deploy > got; harness skill deploy a.md >> got; echo x > 1.txt")
    person(house, {"skills/deploy/SKILL.md": skill("deploy", "As now.")})
    done = house.harness("replay", house.result()["run"], "--agent", "scripted")
    assert done.code == 0, done
    [patch] = Path(house.layout.path(names.REPLAYS)).glob("*/1/work.patch")
    assert "As then." in patch.read_text() and "Beside it." in patch.read_text()


def test_the_lines_for_a_person_name_a_few() -> None:
    """And how many more there are."""
    assert workspace_inputs.words([]) == []
    [line] = workspace_inputs.words([*"abcdefg"])
    assert "a, b, c, d, e and 2 more" in line and "workspace accept" in line


def test_a_role_that_reads_memory_has_it_without_any_other_file_of_a_workspace(house: House) -> None:
    """MEMORY.md alone is enough; a role that does not read it has none."""
    Path(house.layout.path(names.MEMORY)).write_text("## Lessons\n- use make\n")
    for reads, there in (("[memory]", True), ("[raw]", False)):
        house.role_files("documenter")
        page = house.state / "roles/documenter.md"
        page.write_text("---\nname: documenter\nsummary: mends\nreads: " + reads + "\n---\nMend the manual.\n")
        house.script("documenter", {"say": "done"})
        assert house.role("documenter").code == 0
        assert ("- use make" in house.prompt()) is there


def test_a_playbook_that_a_run_wrote_is_not_carried_out_until_a_person_accepts_it(house: House) -> None:
    """Changed or removed, the one of before is; new, it is as if it were not there. A person's edit counts."""
    said = "```sh\ntouch {}.txt\n```\n"
    own, new = house.write("playbooks/validator.md", said.format("own")), "playbooks/validator-F-002.md"
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "playbooks")
    forged = "".join(f"printf '%s' \"$FORGED\" >{name}; " for name in ("playbooks/validator.md", new))
    result = house.work({"run": f"FORGED='{said.format('forged')}'; {forged} echo 1 >1.txt"})
    assert (result["outcome"], own.read_text()) == ("ok", said.format("forged"))

    def looked() -> list[str]:
        held, settings = workspace_inputs.playbooks(house.layout, house.head()), config.load(house.layout)
        feature = house.feature("F-002")
        made = registry.make(
            "playbook", registry.settings_of(house.layout, settings, "playbook", "validator", feature, held=held)
        )
        assert isinstance(made, Playbook)
        return [made.name, made.text]

    assert looked() == ["playbooks/validator.md", said.format("own")]
    house.work({"run": "rm playbooks/validator.md; echo 2 >2.txt"}, feature="F-002")
    assert looked() == ["playbooks/validator.md", said.format("own")]
    assert house.harness("workspace", "accept", new).code == 0
    assert looked() == [new, said.format("forged")]
    house.write(new, said.format("mine"))
    house.work({"run": "echo 3 >1.txt"}, {"fail": "agent_error"})
    assert looked() == [new, said.format("mine")]
