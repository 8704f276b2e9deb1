"""What the programs of a run may touch, tried by themselves: their tree, and what trust names; nothing that is believed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.commands import status
from harness.model import mission, receipts
from harness.model.contract import Contract
from harness.process import confine
from harness.process.confine import BUBBLEWRAP
from tests.missions import CHECKOUT, Done, House, copied, surroundings
from tests.planned import claim, lay

pytestmark = pytest.mark.skipif(confine.available()[0] != BUBBLEWRAP, reason="bubblewrap cannot be used here")
WITHOUT_LANDLOCK = """import ctypes, os, struct, sys
rules = ((0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code)))
library = ctypes.CDLL(None, use_errno=True)
assert library.prctl(38, 1, 0, 0, 0) == 0 and library.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
"""  # a filter under which landlock_create_ruleset is a call that the kernel does not have


RENAME = """python3 -c 'import os, sys; os.rename(*sys.argv[1:])'"""  # mv would copy instead


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: Path) -> Iterator[House]:
    """A mission deep below a person's HOME, whose trees are where they are by default."""
    env = surroundings(tmp_path)
    own = tmp_path / "home" / "work" / "here"
    own.mkdir(parents=True)
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        env.pop(variable, None)
        monkeypatch.delenv(variable, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for name in (".ssh/id_rsa", ".netrc", ".config/git/config", ".config/app/settings", ".bashrc", "work/note"):
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs\n")
    for name in ("other", ".local/bin", ".local/share"):
        (tmp_path / "home" / name).mkdir(parents=True)
    env["PATH"] = f"{tmp_path}/home/.local/bin{os.pathsep}{env['PATH']}"
    made = copied(template, own, env)
    yield made
    made.end()


def places(house: House) -> dict[str, Path]:
    """A file in each place that a program might write to, by the name of the place."""
    home = Path(house.env["HOME"])
    mission_id = mission.load(house.layout).id
    names = {
        "other": "other/x",
        "app": ".config/app/x",
        "beside": "work/x",
        "top": ".profile",
        "shell": ".bashrc",
        "settings": ".config/git/config",
        "missions": ".local/state/harness/x",
        "this mission": f".local/state/harness/{mission_id}/x",
        "index": f".local/state/harness/{mission_id}/tree-1.index",
    }
    names |= {"program": ".local/bin/git", "beside programs": ".local/share/x"}
    ours = {"state": house.state / "features.json", "raw": Path(house.layout.raw), "project": house.project / "x"}
    git = {"git": house.project / ".git/config", "hooks": house.project / ".git/hooks/post-checkout"}
    rest = {"checkout": CHECKOUT / "roles/worker.md", "identity": Path(house.env["HARNESS_IDENTITY"]) / "worker.md"}
    return {"tree": house.tree / "x", **{name: home / path for name, path in names.items()}, **ours, **git, **rest}


def attempts(where: dict[str, Path]) -> str:
    """A script that prints the names of the places where it can write, and changes nothing."""
    lines = [f"if (: >>'{path}') 2>/dev/null; then echo 'wrote {name}'; fi" for name, path in where.items()]
    return "\n".join([*lines, "(: >>$TMPDIR/x) && echo 'wrote TMPDIR'", "(: >>$HOME/x) && echo 'wrote HOME'"])


def written(said: str) -> set[str]:
    """The places that a script wrote to."""
    return {line.removeprefix("wrote ") for line in said.split("\n") if line.startswith("wrote ")}


def said_by_agent(house: House, script: str) -> str:
    """What a worker's program prints."""
    house.lay(house.feature().replace(status="todo"))
    house.work({"run": script})
    return Path(house.layout.run(house.result()["run"]).stderr).read_text()


def said_by_check(house: House, script: str) -> str:
    """What a check prints that the validator runs."""
    lay(house, [house.feature().replace(status="validating")], Contract(claims=[claim("VAL-1", script + "\nfalse")]))
    assert house.role("validator", "F-001").code == 10
    return receipts.load(house.layout.run(house.result()["run"]).receipts)[0].output


def test_a_check_writes_in_its_tree_its_temporary_folder_and_its_home(deep: House) -> None:
    """And nowhere else, whatever the trust."""
    for trust in ("workspace", "full"):
        deep.config('agent = "scripted"', f'trust = "{trust}"')
        assert written(said_by_check(deep, attempts(places(deep)))) == {"tree", "TMPDIR", "HOME"}
    assert not (Path(deep.env["HOME"]) / "x").exists()  # its HOME is a layer of the tree's


def test_an_agent_writes_in_its_tree_its_temporary_folder_and_its_home(deep: House) -> None:
    """Trust `workspace` gives no more than a check has."""
    deep.config('agent = "scripted"', 'trust = "workspace"')
    assert written(said_by_agent(deep, attempts(places(deep)))) == {"tree", "TMPDIR", "HOME"}
    assert not (Path(deep.env["HOME"]) / "x").exists()


def test_full_trust_opens_home_but_nothing_that_is_believed(deep: House) -> None:
    """Folders of HOME, down to what lies beside the project; no file at its top, so no shell start-up file, and no folder
    on the PATH, where a program called git would be started by the harness itself."""
    deep.config('agent = "scripted"', 'trust = "full"')
    assert written(said_by_agent(deep, attempts(places(deep)))) == {"tree", "TMPDIR", "other", "app", "beside programs"}


def test_folders_above_the_project_cannot_be_moved_away_under_full_trust(deep: House) -> None:
    """Else a forged state could stand in the place of ours."""
    deep.config('agent = "scripted"', 'trust = "full"')
    home = Path(deep.env["HOME"])
    moved = [
        f"! {RENAME} '{path}' '{path}.old'"
        for path in (deep.project, deep.project.parent, home / "work", home / ".config")
    ]
    said_by_agent(deep, "\n".join(moved))
    assert (deep.result()["outcome"], list(home.rglob("*.old"))) == ("no_op", [])


def test_keys_and_other_missions_are_not_there(deep: House) -> None:
    """Neither for a check nor for an agent under trust `workspace`; HOME itself can be read."""
    home = Path(deep.env["HOME"])
    secret = home / ".local/state/harness/another-mission/tree-1/secret"
    secret.parent.mkdir(parents=True)
    secret.write_text("theirs\n")
    deep.config('agent = "scripted"', 'trust = "workspace"')
    for name in (".ssh/id_rsa", ".netrc", ".local/state/harness/another-mission/tree-1/secret"):
        script = f"! grep theirs '{home}/{name}' $HOME/{name}; grep theirs '{home}/work/note'"
        for said in (said_by_agent(deep, script), said_by_check(deep, script)):
            assert (said.count(f"{home}/work/note:theirs") or said.count("theirs\n")) == 1, said
    deep.config('agent = "scripted"', 'trust = "full"')
    assert "theirs" in said_by_agent(deep, f"cat '{home}/.ssh/id_rsa'")


def without_confinement(house: House, *words: str) -> Done:
    """A command on a machine where neither bubblewrap nor Landlock works."""
    folder = house.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    path = f"{folder}{os.pathsep}{house.env['PATH']}"
    return house.run([sys.executable, "-c", WITHOUT_LANDLOCK, *words], env={"PATH": path})


def test_confinement_that_is_required_is_there_or_nothing_starts(house: House) -> None:
    """Exit 69 with what to install, and no run; `auto` goes on without, and says so."""
    house.script("worker", {"run": "touch 1.txt"})
    house.base = ('confine = "required"',)
    house.config('agent = "scripted"')
    done = without_confinement(house, *house.words("worker", "F-001"))
    assert (done.code, house.ran()) == (69, [])
    assert all(word in done.err for word in ('confine = "required"', "bubblewrap", 'confine = "auto"'))
    assert house.role("worker", "F-001").code == 0
    house.base = ()
    house.config('agent = "scripted"')
    done = without_confinement(house, *house.words("worker", "F-002"))
    assert (done.code, [line["confined"] for line in house.ran()]) == (0, [BUBBLEWRAP, ""])
    assert "1 of 1 runs not confined" in house.harness("status").out


def test_confinement_that_is_required_needs_a_tree(house: House) -> None:
    """The project folder cannot be both the person's and the agent's."""
    house.base = ('confine = "required"', 'workplace = "project"')
    house.config('agent = "scripted"')
    done = house.role("worker", "F-001")
    assert (done.code, 'workplace = "project"' in done.err, house.ran()) == (69, True, [])


@pytest.mark.parametrize("line", ['confine = "off"', 'workplace = "project"'])
def test_a_run_that_is_not_confined_is_marked(house: House, line: str) -> None:
    """In the status while it is the last one, and at DONE for good."""
    house.work({"run": "touch 1.txt"})
    assert "not confined" not in house.harness("status").out
    house.base = (line,)
    house.config('agent = "scripted"')
    house.work({"run": "touch 2.txt"}, feature="F-002")
    words = "1 of 2 runs not confined (docs/threat-model.md)"
    assert "1 of 1 runs not confined" in house.harness("status").out
    assert f"warning   {words}" in status.ending(house.layout, "DONE")
    house.base = ()
    house.config('agent = "scripted"')
    house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
    house.work({"run": "touch 3.txt"})
    assert "not confined" not in house.harness("status").out
    assert "1 of 3 runs not confined" in "\n".join(status.ending(house.layout, "DONE"))
