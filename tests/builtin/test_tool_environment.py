"""What the system text says of the place, and that it is true."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.builtin.tool_environment import ToolEnvironment, described
from harness.filesystem.local import Local
from harness.process.confine import BUBBLEWRAP, LANDLOCK, Confinement, Glass, available
from tests.builtin.sessions.talking import log_of, said
from tests.builtin.talking import Bench, at, bodies, serving, steps, use


def facts(text: str) -> dict[str, str]:
    """The lines of the place, by what they are about."""
    part = text.split("# Where you work\n\n", 1)[1]
    return dict(line.removeprefix("- ").split(": ", 1) for line in part.strip().split("\n"))


def shell_says(talk: object, command: str) -> str:
    """What a command of the conversation prints."""
    return use(talk, "execute", command=command).text.split("\n", 1)[1]  # type: ignore[arg-type]  # a Conversation


def test_each_line_is_what_a_command_finds(tmp_path: Path) -> None:
    """Date, system, folder, temporary folder, name and shell, of a run that is not confined."""
    talk = at(Bench(tmp_path).environment())
    found = facts(talk.heads[0])
    assert shell_says(talk, "date -u +%F; uname -srm; pwd") == "\n".join(
        [found["Date"], found["Operating system"], found["Folder"]]
    )
    assert (found["Temporary folder"], found["Conversation"]) == ("/tmp", "run of a test")
    assert (found["Confinement of commands"], found["Network of commands"]) == ("not confined", "yes")
    assert found["Shell"] == shell_says(talk, "basename $BASH")


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap does not work here")
def test_what_is_confined_and_cut_off_is_named(tmp_path: Path) -> None:
    """As a command finds it; of a subagent of its parent, too, which has the same place."""
    bench = Bench(tmp_path)
    glass = Glass(readable=[str(tmp_path)], writable=[str(bench.folder)], network="none")
    talk = at(bench.environment().replace(confinement=Confinement(glass=glass, tier=BUBBLEWRAP)))
    found = facts(talk.heads[0])
    assert (found["Confinement of commands"], found["Network of commands"]) == (BUBBLEWRAP, "none")
    assert shell_says(talk, "ls /sys/class/net | grep -v lo; touch /usr/x 2>&1 | grep -c Read-only; pwd").endswith(
        f"1\n{found['Folder']}"
    )


@pytest.mark.parametrize(
    ("network", "tier", "holder", "said"),
    [("host", BUBBLEWRAP, 0, "yes"), ("none", BUBBLEWRAP, 7, "loopback only"), ("none", LANDLOCK, 0, "yes")],
)
def test_the_network_is_that_of_the_tier(network: str, tier: str, holder: int, said: str) -> None:
    """Landlock closes none."""
    held = Confinement(glass=Glass(network=network), tier=tier, holder=holder)
    assert facts(described(ToolEnvironment(folder="/", confinement=held), "x"))["Network of commands"] == said


def test_without_a_shell_there_is_nothing_to_reach(tmp_path: Path) -> None:
    """Also where one is refused; files of a program that are on this machine have their folder. Where a user's own is on the
    machine is said to no model."""
    for known in (
        ToolEnvironment(folder=str(tmp_path), refusal="no"),
        ToolEnvironment(filesystem=Local(str(tmp_path))),
    ):
        found = facts(described(known, "session s"))
        assert {found[name] for name in ("Temporary folder", "Network of commands", "Shell")} == {"none"}
        assert found["Folder"] == os.path.realpath(tmp_path)
    described_own = described(ToolEnvironment(folder=str(tmp_path), shell=False), "session s")
    assert str(tmp_path) not in described_own and facts(described_own)["Folder"].startswith("`.`")


def test_the_place_comes_last_and_the_part_before_it_is_the_same_for_all(tmp_path: Path) -> None:
    """So a vendor can use its cache for other sessions; the key is that of the same part."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with serving(steps()) as server:
        said(tmp_path, server, "hello", session="one")
        said(tmp_path, server, "hello", session="two")
        one, two = (body["messages"][0]["content"] for body in bodies(server))
        keys = {body.get("prompt_cache_key") for body in bodies(server)}
    assert facts(one)["Conversation"] == "session one" and facts(two)["Conversation"] == "session two"
    assert one.split("# Where you work")[0] == two.split("# Where you work")[0] and len(keys) == 1
    parameters = log_of(tmp_path, "one").turns.request(1).parameters
    assert one[: parameters["stable_chars"]].rstrip() == one.split("# Where you work")[0].rstrip()
