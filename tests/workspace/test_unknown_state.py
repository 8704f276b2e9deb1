"""A `.harness` that somebody else made, in a folder without git or beside it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.crash import sampled
from tests.missions import CHECKOUT, House

RUN_SH = str(CHECKOUT / "run.sh")
CONFIG = """agent = "builtin"
confine = "off"
[agents.builtin]
model = "openai:m"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "SECRET"
"""


def theirs(folder: Path, made: Path) -> Path:
    """A folder with a `.harness` of somebody else, whose server and role leave `made`."""
    (folder / ".harness/roles").mkdir(parents=True)
    (folder / ".harness/config.toml").write_text(CONFIG)
    (folder / ".harness/roles/planner.py").write_text(f"open({str(made)!r}, 'w')\n")
    (folder / "SPEC.md").write_text("# A\n")
    return folder


def test_nothing_of_it_starts_wherever_it_comes_from(bare: House) -> None:
    """An archive without git, a repository that ignores it, -C, a folder below, a link, a copy: 69, and one line shows it."""
    bare.repository()
    bare.program("init")
    made = bare.folder / "made"
    archive = theirs(bare.folder / "archive", made)
    ignored = theirs(bare.folder / "ignored", made)
    bare.run(["git", "init", "-q", str(ignored)])
    (ignored / ".git/info/exclude").write_text(".harness\n")
    (archive / "below").mkdir()
    (archive / ".harness/format").write_text("2\n")
    (bare.folder / "link").symlink_to(archive)
    copy = shutil.copytree(archive, bare.folder / "copy")
    commands: tuple[list[str], ...] = (["ask", "hi"], ["planner"], ["status"], ["init"], ["workspace", "show"], [])
    tried = [(archive, command) for command in commands]
    for folder in (ignored, archive / "below", bare.folder / "link", copy):
        tried += [(folder, command) for command in sampled(commands, lambda one: one == ["status"])]
    tried += [(bare.folder, ["-C", str(archive), *command]) for command in sampled(commands, lambda one: not one)]
    for folder, words in tried:
        done = bare.run([RUN_SH, *words], folder, {"SECRET": "s"})
        assert done.code == 69 and "was not made here by your user" in done.err, (folder, words, done)
        assert 'base_url = "http://127.0.0.1:9/v1"' in done.err and "roles/planner.py" in done.err
    assert not made.exists()


@pytest.mark.parametrize("by_digest", [False, True])
def test_a_person_accepts_it_once_here(bare: House, by_digest: bool) -> None:
    """Also by the digest that the refusal shows, which another content does not have; then it is theirs, whatever changes."""
    theirs(bare.project, bare.folder / "made")
    bare.run(["git", "init", "-q", str(bare.project)])
    said = bare.program("status").err
    [digest] = re.findall(r"workspace accept ([0-9a-f]{16})\.", said)
    (bare.state / "roles/other.md").write_text("words\n")
    done = bare.program("workspace", "accept", digest)
    assert done.code == 69 and digest not in done.err
    (bare.state / "roles/other.md").unlink()
    done = bare.program("workspace", "accept", *([digest] if by_digest else []))
    assert done.code == 0 and "accepted: .harness/config.toml: confine" in done.out, done
    (bare.state / "config.toml").write_text('agent = "claude"\n')
    assert "was not made here" not in bare.program("status").err
    bare.env["XDG_STATE_HOME"] = str(bare.folder / "another user")
    assert bare.program("status").code == 69


def test_what_init_and_ask_make_is_known(unbegun: House) -> None:
    """At its place, through a link, moved, and copied; in a conversation without a mission, too."""
    house = unbegun
    assert house.program("init").code == 0
    (house.folder / "link").symlink_to(house.project)
    shutil.copytree(house.project, house.folder / "copy", symlinks=True)
    for name in ("my project", "link", "copy"):
        assert house.run([RUN_SH, "status"], house.folder / name).code == 0
    assert re.fullmatch("[0-9a-f]{32}\n", house.read("origin"))
    house.run([RUN_SH, "init", "--abandon"])
    assert house.run([RUN_SH, "status"]).code == 0


def test_a_person_names_the_id_of_theirs_on_a_machine_that_is_new(unbegun: House) -> None:
    """The id that their variable had at `init`, whatever changes since; no other, and none that is committed."""
    house, key = unbegun, "0f" * 16
    assert house.program("init", HARNESS_ORIGIN="secret").code == 64
    assert house.program("init", HARNESS_ORIGIN=key).code == 0
    assert house.read("origin") == key + "\n"
    (house.state / "config.toml").write_text(CONFIG)
    house.env["XDG_STATE_HOME"] = str(house.folder / "a new machine")
    said = [house.program("status", HARNESS_ORIGIN=value) for value in (key, "0e" * 16, "")]
    assert [done.code for done in said] == [0, 69, 69] and "HARNESS_ORIGIN" in said[2].err
    shutil.rmtree(house.state / ".git")
    house.git("add", "-f", ".harness/origin", ".harness/config.toml")
    house.git("commit", "-q", "-m", "theirs")
    assert house.program("status", HARNESS_ORIGIN=key).code == 69


def test_a_mission_of_before_is_known_by_the_state_folder(unbegun: House) -> None:
    """Without a question; an id that the state folder got later, or that is no mission's, makes nothing known."""
    house = unbegun
    house.program("init")
    known = house.folder / "state/harness"
    begun = re.search('"id": ?"([^"]+)"', house.read("mission.json"))
    assert begun
    (known / begun[1]).mkdir(exist_ok=True)
    os.unlink(house.state / "origin")
    assert house.program("status").code == 69  # the state folder had ids already
    shutil.rmtree(known / "origins")
    assert house.program("status").code == 0
    (house.state / "mission.json").write_text(house.read("mission.json").replace(begun[1], "origins"))
    assert house.program("status").code == 69


def test_an_agent_sees_no_id(house: House) -> None:
    """So it cannot make a `.harness` elsewhere that counts."""
    house.work({"run": "cat .harness/format .harness/origin >said || echo x > 1.txt"})
    assert house.git("show", "HEAD:said") == "2"
