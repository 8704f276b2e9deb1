"""Real agent CLIs take a mission to DONE, offline. HARNESS_REAL_AGENTS names their folder; `make test-agents` sets it, and
installs socat: with it claude starts a sandbox of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from harness.mission import config
from tests.agents import real, small_mission
from tests.agents.modelserver import Server, serving
from tests.missions import CHECKOUT, House, differences, listing, surroundings

PREFIX = os.environ.get("HARNESS_REAL_AGENTS", "")
LONGEST_SECONDS = 300
DOCS = CHECKOUT / "docs" / "agents.md"
installs = pytest.mark.skipif(
    not PREFIX, reason="installs CLIs from npm and PyPI: only where HARNESS_REAL_AGENTS says so"
)


@installs
@pytest.mark.parametrize("name", real.CLIS)
def test_a_real_cli_takes_a_mission_to_done(name: str, tmp_path: Path) -> None:
    """Its own tool calls write the file, note and reply; no person and no vendor is involved. It is installed below HOME, where
    it can. Then the mission is played back where neither the CLI nor its model can be reached."""
    cli, home = real.CLIS[name], tmp_path / "home"
    real.install(cli, Path(PREFIX))
    prefix = real.below(cli, Path(PREFIX), home)
    house = House(tmp_path, surroundings(tmp_path))
    house.project.mkdir()
    house.git("init", "-q", "-b", "main", "--template=")
    house.git("config", "user.name", "p")
    house.git("config", "user.email", "p@localhost")
    house.write("SPEC.md", small_mission.SPEC)
    path = house.env["PATH"]
    house.env["PATH"] = real.search_path(cli, prefix, path)
    with serving(small_mission.brain) as server:
        real.configure(cli, home, server.url)
        house.program("init")
        (house.state / "config.toml").write_text(real.settings(cli, prefix, home, server.url))
        words = [str(CHECKOUT / "run.sh")]
        done = subprocess.run(
            words, cwd=house.project, env=house.env, capture_output=True, text=True, timeout=LONGEST_SECONDS
        )
        assert done.returncode == 0, done.stdout + done.stderr
        fired_again(house, name, server)
    assert (house.project / "greeting.txt").read_text() == small_mission.GREETING + "\n"
    assert small_mission.TRICK in house.read("memory/raw.md")
    printed = [path.read_text() for path in (house.state / "runs").glob("*/stderr.log")]
    assert not [text for text in printed if "backup file exists" in text]
    house.env["PATH"] = path
    played = house.program("replay", "--mission")
    assert (played.code, "not recorded" in played.out) == (0, False), played


TOLD = ["Greet in seventeen words.", "- greet: How people greet", "Greetings are old."]
OTHER = '\n[agents.other]\ncommand = ["true"]\n'


@installs
@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_a_real_cli_is_told_the_workspace_once(name: str, tmp_path: Path) -> None:
    """Its model gets AGENTS.md exactly once: from the CLI's own reading, or, where another agent may be asked, from the prompt,
    and then the CLI is kept from it. Skills and knowledge are in the prompt."""
    cli, prefix, home = real.CLIS[name], Path(PREFIX), tmp_path / "home"
    real.install(cli, prefix)
    house = House(tmp_path, surroundings(tmp_path))
    house.project.mkdir()
    house.git("init", "-q", "-b", "main", "--template=")
    house.write("SPEC.md", small_mission.SPEC)
    house.write("AGENTS.md", "Greet in seventeen words.\n")
    house.write("knowledge/KNOWLEDGE.md", "Greetings are old.\n")
    house.write("skills/greet/SKILL.md", "---\nname: greet\ndescription: How people greet\n---\nBow.\n")
    house.git("add", "-A")
    house.git("commit", "-qm", "begin")
    house.env["PATH"] = real.search_path(cli, prefix, house.env["PATH"])
    with serving(small_mission.brain) as server:
        real.configure(cli, home, server.url)
        house.program("init")
        config_path, settings = house.state / "config.toml", real.settings(cli, prefix, home, server.url)
        for agents in (f'"{name}"', f'["{name}", "other"]'):
            config_path.write_text(settings.replace(f'agent = "{name}"', f"agent = {agents}") + OTHER)
            assert f"agent = {agents}" in config_path.read_text()
            asked = len(server.seen)
            assert house.program("planner").code == 0
            sent = [
                one.exchange.text for one in server.seen[asked:] if one.exchange and "Run ID: " in one.exchange.text
            ]
            in_prompt = "Greet in seventeen words." in house.prompt(house.ran()[-1]["run"])
            counts = [
                max(text.count(words) for text in sent) for words in TOLD
            ]  # one request of opencode is for a title
            assert (counts[0], in_prompt) == (1, agents != f'"{name}"')
            assert counts[1:] == [1, 1]


def fired_again(house: House, name: str, server: Server) -> None:
    """The prompt of the worker, fired again by the same CLI, reaches the model byte for byte; its work is the same, its checks
    are green, and the mission has no byte of it."""
    run = next(row["run"] for row in house.ran() if row["commit"] and row["feature"])
    before, asked = listing(house.project, ".harness/replays", ".harness/locks", ".harness/cache"), len(server.seen)
    done = house.program("replay", run, "--agent", name, "--json")
    assert done.code == 0, done
    assert differences(before, listing(house.project, ".harness/replays", ".harness/locks", ".harness/cache")) == []
    value, prompt = json.loads(done.out), house.prompt(run)
    assert value["now"][0]["checks"] == [["VAL-GREET-001", "green"]]
    assert value["now"][0]["work_diff"] == []
    sent = [one.exchange.text for one in server.seen[asked:] if one.exchange]
    stable, mark, rest = prompt.partition("## Memory (curated")  # a CLI may send the stable part as its system prompt
    whole = any(stable.strip() in text and f"{mark}{rest}".strip() in text for text in sent)
    assert whole == value["replay"]["mounted"]


@pytest.mark.parametrize("name", real.CLIS)
@pytest.mark.parametrize("trust", ["workspace", "full"])
def test_every_cli_has_settings_that_parse(name: str, trust: str) -> None:
    """TOML without placeholders."""
    cli = real.CLIS[name]
    text = real.settings(cli, Path("/prefix"), Path("/home/user"), "http://127.0.0.1:8080", trust)
    table = tomllib.loads(text)["agents"][name]
    assert ("command" in table) != cli.built_in
    assert not {word for word in ("{url}", "{home}", "{program}", "{python}") if word in text}


@pytest.mark.parametrize("name", real.CLIS)
def test_every_cli_has_a_recorded_transcript(name: str) -> None:
    """Its output as a worker, at the version in the table, without a path of the recording machine."""
    cli = real.CLIS[name]
    ending = "txt" if cli.format in ("text", "edits") else "jsonl"
    folder = Path(__file__).parent / "transcripts" / f"{name}-{cli.version}"
    text = (folder / f"mission-worker.{ending}").read_text()
    assert text if cli.name != "mini-swe-agent" else not text
    for path in folder.iterdir():
        assert path.stat().st_size < 60_000
        if ending == "jsonl":
            assert all(json.loads(line) for line in path.read_text().split("\n") if line)


RECIPES = [cli for cli in real.CLIS.values() if not cli.built_in]
YOURS = {"openai/fake-model": "MODEL", "fake-model": "MODEL", "fake": "MODEL", "{python}": "python3"}


@pytest.mark.parametrize("cli", RECIPES, ids=lambda cli: cli.name)
def test_the_recipe_on_the_page_is_the_one_that_was_run(cli: real.Cli) -> None:
    """Word for word, except your model, your paths, and the key for our server."""
    section = DOCS.read_text().split(f"### {cli.name}\n", 1)[1].split("\n#", 1)[0]
    assert cli.version in section
    block = section.split("```toml\n", 1)[1].split("```", 1)[0]
    settings = config.parse(block, "docs/agents.md")
    table = settings.agents[settings.agent[0]]
    assert table.get("format", "text") == cli.format
    argv = [YOURS.get(word, word.replace("{program}", cli.program)) for word in cli.argv]
    if "--key" in argv:
        del argv[argv.index("--key") : argv.index("--key") + 2]
    if "--provider" in argv:
        argv[argv.index("--provider") + 1] = "PROVIDER"
    assert [os.path.basename(word) if word[:1] in "/{" else word for word in table["command"]] == [
        os.path.basename(word) if word[:1] in "/{" else word for word in argv
    ]


def test_what_a_recipe_needs_beside_it_is_what_was_run() -> None:
    """llm's one tool."""
    assert f"```python\n{real.SHELL_TOOL}```" in DOCS.read_text()
