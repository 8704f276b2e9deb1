"""The agent and its trust: asked once, written to the configuration file, and nothing starts without them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from harness.agents import registry
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.commands.setup import agent_choice
from harness.mission import config
from harness.mission.config import Config
from harness.state import names
from tests.missions import PROGRAM, House, differences, listing

LOOP = [registry.LOOP] if registry.installed(registry.LOOP) else []  # offered where its packages are


def program(house: House, name: str) -> None:
    """A program of that name on the PATH of the house."""
    folder = house.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\ncat >/dev/null\n")
    (folder / name).chmod(0o755)


def path_of(house: House) -> str:
    """A PATH with the house's programs, git, and little else."""
    return f"{house.folder / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"


def answers(*given: str) -> list[str]:
    """A person's answers, in turn."""
    return list(given)


def test_without_a_terminal_init_asks_nothing_and_says_what_to_write(unbegun: House) -> None:
    """As under cron: only a person chooses the agent."""
    program(unbegun, "codex")
    done = unbegun.program("init", PATH=path_of(unbegun))
    assert done.code == 0
    assert "run.sh init --agent NAME --trust workspace (found here: codex" in done.out
    assert "cost:" not in done.out
    assert config.load(unbegun.layout) == config.Config()
    assert "#agent = " in Path(unbegun.layout.path(names.CONFIG)).read_text()


def test_what_is_said_on_the_command_line_is_written_down(unbegun: House) -> None:
    """The output shows the next steps from there to DONE."""
    program(unbegun, "codex")
    done = unbegun.program("init", "--agent", "codex", "--trust", "workspace", PATH=path_of(unbegun))
    assert done.code == 0
    settings = config.load(unbegun.layout)
    assert (settings.agent, settings.trust) == (["codex"], "workspace")
    shown = [line.split("  ")[1] for line in done.out.split("\n") if line.startswith("  run.sh")]
    assert shown == ["run.sh doctor agents --try", "run.sh planner", "run.sh status", "run.sh"]


def test_it_is_asked_once(unbegun: House) -> None:
    """The second time everything is known."""
    program(unbegun, "codex")
    unbegun.program("init")
    said, asked = answers("codex", "0", "much", "2.5 USD", "full"), []

    def ask(question: str, choices: dict[str, str], default: str) -> str:
        asked.append((question[-25:], list(choices), default))
        return said.pop(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_of(unbegun))
        agent_choice.choose(unbegun.layout, "", "", ask)
        agent_choice.choose(unbegun.layout, "", "", ask)
    cap = (agent_choice.CAP[-25:], list[str](), "10")
    agent, trust = ("Which agent works here?", ["codex", *LOOP, "playbook"], "codex"), ["workspace", "full"]
    assert asked == [agent, *[cap] * 3, ("How far may it go?", trust, "workspace")]
    settings = config.load(unbegun.layout)
    assert (settings.agent, settings.trust, settings.max_cost_usd) == (["codex"], "full", 2.5)
    assert agent_choice.ceiling(unbegun.layout).startswith("cost: at most 2.50 USD, then it stops with exit 6, once")


@pytest.mark.skipif(not LOOP, reason="the packages of the built-in agent are not installed")
def test_the_loop_of_ours_is_asked_for_its_model(unbegun: House) -> None:
    """Until it is one: a vendor, a colon, a name; then for its address, and for the variable with its key, never a key itself."""
    unbegun.program("init")
    said = answers("builtin", "5", "gpt-5", "openai:gpt-5", "nowhere", "vendor", "sk-secret", "MY_KEY", "workspace")
    agent_choice.choose(unbegun.layout, "", "", lambda question, choices, default: said.pop(0))
    settings = config.load(unbegun.layout)
    table = {"model": "openai:gpt-5", "api_key_env": "MY_KEY"}
    assert (settings.agent, settings.agents["builtin"], said) == (["builtin"], table, [])


def test_a_person_at_a_terminal_is_asked_three_questions(unbegun: House) -> None:
    """Return answers each: the agent that is there, a cap, and the closer trust; what it costs at most is said."""
    program(unbegun, "claude")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-P", str(PROGRAM), "init"]
    env = {**unbegun.env, "PATH": path_of(unbegun)}
    done = subprocess.Popen(words, cwd=unbegun.project, env=env, stdin=theirs, stdout=subprocess.PIPE, text=True)
    os.close(theirs)
    os.write(ours, b"\n\n\n")
    out, _ = done.communicate(timeout=60)
    os.close(ours)
    assert (done.returncode, re.findall(r"\[(\w+)\]: ", out)) == (0, ["claude", "10", "workspace"]), out
    settings = config.load(unbegun.layout)
    assert (settings.agent, settings.trust, settings.max_cost_usd) == (["claude"], "workspace", 10.0)
    assert "cost: at most 10.00 USD, then it stops with exit 6" in out
    written = Path(unbegun.layout.path(names.CONFIG)).read_text()
    assert [line for line in written.split("\n") if line and line[0] not in "#["] == [
        'agent = "claude"',
        'trust = "workspace"',
        "max_cost_usd = 10.0",
    ]


def test_no_cap_is_an_answer_and_an_embedded_agent_needs_none(unbegun: House) -> None:
    """It is said that the mission may cost without bound; who costs nothing is asked nothing more."""
    program(unbegun, "codex")
    unbegun.program("init")

    def choose(*given: str) -> str:
        said = answers(*given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", path_of(unbegun))
            agent_choice.choose(unbegun.layout, "", "", lambda *_: said.pop(0))
        assert said == []
        return agent_choice.ceiling(unbegun.layout)

    assert choose("playbook").startswith("cost: nothing")
    Path(unbegun.layout.path(names.CONFIG)).unlink()
    assert "codex may cost without bound" in choose("codex", "none", "workspace")


def test_a_person_s_configuration_stays_as_it_was_written(house: House) -> None:
    """Only the missing keys are added; comments and tables stay."""
    path = Path(house.layout.path(names.CONFIG))
    path.write_text('# mine\ncheck_seconds = 9\n\n[agents.mine]\ncommand = ["true"]  # mine too\n')
    agent_choice.choose(house.layout, "codex", "workspace", None)
    assert path.read_text() == (
        'agent = "codex"\ntrust = "workspace"\n# mine\ncheck_seconds = 9\n\n[agents.mine]\ncommand = ["true"]  # mine too\n'
    )


SET = 'agent = [  # in turn\n  "codex",\n]\ntrust = "full"\n'


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--agent", "claude"), 'agent = "claude"'),
        (("--agent", "codex,claude"), 'agent = ["codex", "claude"]'),
        (("--trust", "workspace"), 'trust = "workspace"'),
    ],
)
def test_what_the_configuration_sets_is_changed_there(house: House, words: tuple[str, ...], line: str) -> None:
    """64, with the line to write; the same value again is no fault."""
    program(house, "codex")
    path = Path(house.layout.path(names.CONFIG))
    path.write_text(SET)
    done = house.program("init", *words, PATH=path_of(house))
    assert (done.code, f"To change it, write there: {line}\n" in done.err) == (64, True), done
    same = house.program("init", "--agent", "codex", "--trust", "full", PATH=path_of(house))
    assert (same.code, path.read_text()) == (0, SET), same


@pytest.mark.parametrize(
    ("text", "agent", "row"),
    [
        ('agent = ""\n', "codex", 'agent = "codex"'),
        ("limits.max_runs = 5\n", "", "max_cost_usd = 5.0"),
        ("[ limits ]\nmax_runs = 5\n", "", "max_cost_usd = 5.0"),
        ('[[on]]\nevent = "done"\nrun = ["sh", "-c", """\n[limits]\necho x\n"""]\n', "", "max_cost_usd = 5.0"),
    ],
)
def test_a_file_to_which_a_key_cannot_be_added_stays_and_the_row_is_named(
    house: House, text: str, agent: str, row: str
) -> None:
    """Whatever form of TOML it has; a text of several lines is no table."""
    path = Path(house.layout.path(names.CONFIG))
    path.write_text(text)
    program(house, "codex")

    def asked(question: str, answers: dict[str, str], default: str) -> str:
        return "5" if "USD" in question else "codex" if "agent" in question else "full"

    with pytest.raises(UsageFault, match=f"Write into .*config.toml: .*{row}"):
        agent_choice.choose(house.layout, agent, "full" if agent else "", None if agent else asked)
    assert path.read_text() == text


def test_an_unknown_trust_is_refused_before_anything_is_written(house: House) -> None:
    """The message lists the known values."""
    before = Path(house.layout.path(names.CONFIG)).read_text()
    with pytest.raises(UsageFault, match="workspace, full"):
        agent_choice.choose(house.layout, "codex", "some", None)
    assert Path(house.layout.path(names.CONFIG)).read_text() == before


def test_a_broken_configuration_is_not_written_over(house: House) -> None:
    """A person must repair it."""
    Path(house.layout.path(names.CONFIG)).write_text("agent =\n")
    with pytest.raises(BrokenFile):
        agent_choice.choose(house.layout, "codex", "workspace", None)
    assert Path(house.layout.path(names.CONFIG)).read_text() == "agent =\n"


def test_no_agent_cli_is_started_before_somebody_said_what_it_may_do(house: House) -> None:
    """The run ends before it begins, with the line to write; the next agent of the list does not run instead."""
    program(house, "codex")
    house.script("worker", {"run": "echo 1 > 1.txt"})
    house.config('agent = ["codex", "scripted"]')
    done = house.role("worker", "F-001", PATH=path_of(house))
    assert done.code == 69
    assert 'trust = "workspace"' in done.err
    assert 'trust = "full"' in done.err
    assert house.ran() == []


def test_a_mission_with_playbooks_needs_no_trust(unbegun: House) -> None:
    """The embedded agent runs only the project's own text."""
    unbegun.write("playbooks/worker.md")
    assert "run.sh planner" in unbegun.program("init").out


def test_several_agents_are_a_list_and_a_slip_is_told(unbegun: House) -> None:
    """Nothing is written for an unknown name."""
    program(unbegun, "claude")
    program(unbegun, "codex")
    done = unbegun.program("init", "--agent", "claude, codex", "--trust", "full", PATH=path_of(unbegun))
    assert done.code == 0
    assert config.load(unbegun.layout).agent == ["claude", "codex"]
    wrong = unbegun.program("init", "--agent", "codexx")
    assert (wrong.code, config.load(unbegun.layout).agent) == (64, ["claude", "codex"])
    assert "There is no agent 'codexx'" in wrong.err


def test_without_trust_the_next_step_is_to_say_it(unbegun: House) -> None:
    """Not a command that would end with 69."""
    program(unbegun, "codex")
    out = unbegun.program("init", "--agent", "codex", PATH=path_of(unbegun)).out
    assert "run.sh init --trust workspace" in out
    assert "doctor agents --try" not in out


def test_each_trust_is_explained_where_it_is_asked_for(unbegun: House) -> None:
    """The text says what the agent cannot do under it on this machine."""
    program(unbegun, "gemini")
    unbegun.program("init")
    seen: dict[str, str] = {}

    def ask(_: str, choices: dict[str, str], default: str) -> str:
        seen.update(choices)
        return default

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_of(unbegun))
        agent_choice.choose(unbegun.layout, "", "", ask)
    assert "no sandbox: its commands may write anywhere" in seen["workspace"]
    assert "anything" in seen["full"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--agent", "codexx"), 64, "There is no agent 'codexx'"),
        (("--agent", "codex"), 69, "The program of the agent 'codex' is not installed"),
        (("--agent", "claude,codex"), 69, "The program of the agent 'codex' is not installed"),
        (("--agent", "claude", "--trust", "some"), 64, "'some' is not a trust level"),
    ],
)
def test_an_agent_that_cannot_be_leaves_the_folder_as_it_was(
    unbegun: House, words: tuple[str, ...], code: int, said: str
) -> None:
    """No mission, no branch, no line in .git/info/exclude."""
    program(unbegun, "claude")
    before = listing(unbegun.project)
    done = unbegun.program("init", *words, PATH=path_of(unbegun))
    assert (done.code, said in done.err, done.out) == (code, True, ""), done
    assert differences(before, listing(unbegun.project)) == []


def test_the_path_of_an_agent_counts_as_its_program(house: House) -> None:
    """As config.toml says it."""
    program(house, "my-codex")
    path = house.folder / "bin" / "my-codex"
    Path(house.layout.path(names.CONFIG)).write_text(f'[agents.codex]\npath = "{path}"\n')
    assert house.program("init", "--agent", "codex", "--trust", "full", PATH="/usr/bin:/bin").code == 0
    path.unlink()
    assert house.program("init", "--agent", "codex", "--trust", "full", PATH="/usr/bin:/bin").code == 69


TEXT = Path(agent_choice.TEMPLATE).read_text().replace("{role}", "worker")
SETTING = re.compile(r"^#(?! )", re.M)


def test_the_first_configuration_changes_nothing() -> None:
    """As if there were no file."""
    assert config.parse(TEXT, "c") == Config()


def test_with_every_line_uncommented_it_sets_every_key_to_its_default() -> None:
    """Or to an example, if there is no default: no key is missing or invalid."""
    whole = tomllib.loads(SETTING.sub("", TEXT))
    config.parse(SETTING.sub("", TEXT), "c")
    tables: dict[str, type[Record]] = {
        "limits": config.LimitsTable,
        "env": config.EnvTable,
        "home": config.HomeTable,
        "checks": config.ChecksTable,
        "proof": config.ProofTable,
        "workspace": config.WorkspaceTable,
        "team": config.TeamTable,
        "machines": config.MachinesTable,
    }
    named: dict[str, type[Record]] = {
        "roles": config.RoleTable,
        "agents": config.AgentTable,
        "prices": config.PriceTable,
    }
    shapes: list[tuple[dict[str, object], type[Record]]] = [
        (whole, config.TopTable),
        *((whole[name], shape) for name, shape in tables.items()),
        (whole["machines"]["build2"], config.MachineTable),
    ]
    shapes += [(next(iter(whole[name].values())), shape) for name, shape in named.items()]
    assert f"known are {', '.join(registry.KNOWN_CLIS)}\n" in TEXT
    for values, shape in shapes:
        assert [key for key in shape.fields if key not in values] == []
        for key in shape.fields:
            default = getattr(shape, key, None)
            assert default in (None, "", [], {}, 0) or values[key] == default, key


def test_each_setting_of_it_says_what_it_does() -> None:
    """In a separate line, which fits a screen."""
    lines = TEXT.split("\n")
    for before, line in pairwise(lines):
        assert len(line) <= 130
        if SETTING.match(line) and " = " in line:
            assert re.match(r"# \S", before), line


def test_every_single_setting_may_be_uncommented_alone() -> None:
    """Those of a table that is commented out with their table."""
    lines = TEXT.split("\n")
    for number, line in enumerate(lines):
        if not SETTING.match(line) or " = " not in line or "[prices" in TEXT[: TEXT.index(line)]:
            continue
        head = max((at for at in range(number) if lines[at].lstrip("#").startswith("[")), default=number)
        text = "\n".join(row[1:] if at in (number, head) and row[:1] == "#" else row for at, row in enumerate(lines))
        assert config.parse(text, "c") is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT, None),
        ("", "[limits]\nmax_cost_usd = 5.0\n"),
        ("check_seconds = 9\n", "check_seconds = 9\n\n[limits]\nmax_cost_usd = 5.0\n"),
        ("[limits] # mine\nmax_runs = 3\n", "[limits] # mine\nmax_cost_usd = 5.0\nmax_runs = 3\n"),
        ("[roles.worker]\nminutes = 9", "[roles.worker]\nminutes = 9\n\n[limits]\nmax_cost_usd = 5.0\n"),
    ],
)
def test_a_setting_goes_into_its_table(before: str, after: str | None) -> None:
    """At its start; it is created if needed."""
    text = agent_choice.put(before, "limits.max_cost_usd", 5.0)
    assert config.parse(text, "c") == config.parse(before, "c").replace(max_cost_usd=5.0)
    assert after is None or text == after
    assert len(re.findall(r"^max_cost_usd = ", text, re.M)) == 1
