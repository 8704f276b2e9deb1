"""What the pages tell a person to type exists, and what the first pages tell to type works, as one person types it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.base import errors
from harness.cli import quick
from harness.cli.help import GROUPS
from harness.cli.main import COMMANDS, cli
from harness.decision import escalations, rules
from harness.mission import roles, runs
from harness.state.layout import Layout
from tests.missions import CHECKOUT

PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
PROGRAM = r"(?:~/harness/run\.sh|\.\./\.\./\.\./run\.sh|run\.sh|harness)"
LINE = re.compile(rf"^(?: {{4}})*(?:\$ )?{PROGRAM}(?![\w.:/-]| ──)(.*)$")
SPAN = re.compile(rf"(?<!`)`{PROGRAM}( [^`]+)`")
PLAIN = re.compile(r"[\w|-]+")
NOT_TYPED = {  # lines of the first pages that no test types, by their beginning, and why
    "make demo": "installs .venv again; tests/test_installed.py takes this example to DONE",
    "make test": "runs the suite that this test is in",
    "git clone ": "needs this repository's address",
    "pipx ": "needs a network; tests/test_installed.py installs the package",
    "harness schedule remove": "needs a crontab; tests/cli/test_schedule.py has one",
}
FIRST_PAGES = [CHECKOUT / "README.md", CHECKOUT / "docs/first-mission.md"]
VALUES = {
    "N": "1",
    "LINES": "1",
    "SECONDS": "1",
    "TIME": "30m",
    "DIR": ".",
    "FD": "9",
    "HOW": "workspace",
    "COMMAND": "status",
}
ROLE_WORDS = {"ROLE", "documenter", "builder", "auditor"}  # a role of ones own


def block_lines(text: str) -> Iterator[str]:
    """The lines of code blocks: between fences, or indented by four."""
    fenced = False
    for line in text.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line


def commands(text: str) -> Iterator[list[str]]:
    """The words after `run.sh` or `harness` in code blocks and code spans, without comments; `[…]` as if it were typed."""
    found = [matched[1] for line in block_lines(text) if (matched := LINE.match(line))]
    found = [
        part for line in found for part in re.split(rf"; {PROGRAM}(?= )", re.split(r" #|\s{3,}|  (?=\S)", line)[0])
    ]
    for words in [*found, *SPAN.findall(text)]:
        plain = re.sub(r"[\[\]]", "", re.split(r"\s(?:\\?[|<>]|&&)\s", words)[0])
        try:
            yield [word.split("|")[0] if PLAIN.fullmatch(word) else word for word in shlex.split(plain)]
        except ValueError:
            continue  # its text goes on in the next line


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> click.Group:
    """All commands of the program, which parse their words and do nothing else."""
    found: list[click.Command] = [cli]
    for one in found:
        monkeypatch.setattr(one, "callback", None)
        if isinstance(one, click.Group):
            context = click.Context(one)
            found += filter(None, (one.get_command(context, name) for name in one.list_commands(context)))
    return cli


def fault(parser: click.Group, words: list[str]) -> str:
    """Why run.sh would refuse these words; "" if it would not."""
    if words[:1] == ["-C"]:
        words = words[2:]
    words = [VALUES.get(word, word) for word in words]
    try:
        if not words or words[0] in quick.LOOP_OPTIONS:
            quick.loop_options(
                Layout(str(CHECKOUT)),
                [word for word in words if "build" not in word and word[:5] not in ("dask:", "--on")],
            )
        elif words[0] not in COMMANDS and words[0] in {*roles.known(Layout(str(CHECKOUT))), *ROLE_WORDS}:
            return ""
        else:
            parser.main(args=words, prog_name="harness", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError:
        return ""  # a group alone
    except (click.ClickException, errors.HarnessError) as refused:
        return str(getattr(refused, "message", refused))
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_parses(parser: click.Group, page: Path) -> None:
    """Command, options and arguments are those of the program, in blocks and in the text."""
    found = {" ".join(words): fault(parser, words) for words in commands(page.read_text())}
    assert {words: why for words, why in found.items() if why} == {}


def shell_lines(page: Path) -> list[str]:
    """The lines of the `sh` blocks of a page, in their order."""
    return "".join(re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S)).split("\n")


def typed(page: Path) -> str:
    """The `sh` blocks of a page as one script, without the lines of NOT_TYPED."""
    return "\n".join(line for line in shell_lines(page) if not line.startswith(tuple(NOT_TYPED)))


def follow(name: str, home: Path, program: Path, **env: str) -> str:
    """Type the blocks of a page in their order, in an empty HOME with a project, to its last mission's end; `program` is
    `harness`. In the agent's place is a playbook, so that `init` asks nothing. Returns what is shown."""
    shutil.copytree(CHECKOUT / "tests/csv2md", home / "csv2md")
    (home / "bin").mkdir()
    (home / "bin/harness").symlink_to(program)
    env = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", **env}
    env["PATH"] = os.pathsep.join([str(home / "bin"), f"{sys.base_prefix}/bin", os.defpath])
    begin = 'cd ~/csv2md; git init -q -b main; git add -A; git -c user.name=p -c user.email=p@localhost commit -q -m "csv2md"'
    script = f"set -euo pipefail\n{begin}\ncd ~\n{typed(CHECKOUT / name)}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=home, env=env, stdin=-3, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("harness: ")) == (0, 0), done.stdout + done.stderr
    assert re.search(r"^DONE  csv2md-\w{6}: 1 of 1 features passed$", done.stdout, re.M)
    return done.stdout


def test_the_blocks_of_the_first_page_run(tmp_path: Path) -> None:
    """From a checkout; tests/test_installed.py follows the second page with the installed package."""
    follow("README.md", tmp_path / "home", CHECKOUT / "run.sh", HARNESS_PYTHON=sys.executable)


def test_what_is_not_typed_is_on_a_page() -> None:
    """A reason that no line needs any more is not kept."""
    lines = [line for page in FIRST_PAGES for line in shell_lines(page)]
    assert [begin for begin in NOT_TYPED if not any(line.startswith(begin) for line in lines)] == []


@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.name)
def test_each_command_of_a_first_page_is_in_a_block_that_is_typed(page: Path) -> None:
    """A command in a block of another kind would be typed by readers alone; what such blocks have is output and settings."""
    others = re.sub(r"^```sh\n.*?^```$", "", page.read_text(), flags=re.M | re.S)
    begins = r"(?:harness|run\.sh|~/harness/|git|make|pipx?|apt|sudo|cd|cat|mkdir|python3|printf|rm) "
    assert re.findall(rf"^(?: {{4}}|\$ ){begins}.*$", others, re.M) == []


def test_the_first_page_is_short() -> None:
    """A person reads it in a few minutes; the rest is on other pages."""
    assert len((CHECKOUT / "README.md").read_bytes()) <= 9 * 1024


def test_the_page_of_commands_has_each_command() -> None:
    """docs/commands.md names every command that help lists, and no other."""
    text = (CHECKOUT / "docs/commands.md").read_text()
    shown = {name for group in GROUPS.values() for name in group}
    named = {words[0] for words in commands(text) if words and words[0] in COMMANDS}
    also = {span for span in re.findall(r"`([a-z]+)(?: [^`]*)?`", text) if span in COMMANDS}
    assert shown - named - also == set()
    assert named - shown == set()


def test_each_ending_is_explained() -> None:
    """docs/went-wrong.md has every exit code, every decision at which run.sh ends, and every outcome of a run."""
    text = (CHECKOUT / "docs/went-wrong.md").read_text()
    rows = re.findall(r"^\| `?([^|`]+?)`? \| (\d+)?", text, re.M)
    words = {name for name, _ in rows}
    ends = {word for word in rules.CODES if word not in ("NEXT", "ESCALATE")}
    ends |= {f"ESCALATE {kind}" for kind in escalations.WHY} | {f"BUDGET {cap}" for cap in rules.BUDGET_CODES}
    assert {*ends, *runs.OUTCOMES} - words == set()
    assert {str(code) for code in errors.EXIT_CODES} == {code for row in rows for code in row if code.isdigit()}
