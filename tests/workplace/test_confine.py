"""What the programs of a run may touch, tried by themselves: their tree, and what trust names; nothing that is believed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.commands import status
from harness.filesystem.protocol import CommandResult as Done_
from harness.filesystem.shell import LocalShell
from harness.mission import config, mission, receipts
from harness.mission.contract import Contract
from harness.process import confine, landlock
from harness.process.confine import BUBBLEWRAP, LANDLOCK
from harness.run import opening
from harness.state import names
from harness.state.layout import Layout
from harness.workplace import confine as integrity
from harness.workspace import grants
from tests.agents.modelserver import Reply, Server, serving
from tests.agents.wires import Exchange
from tests.builtin.talking import MODELS, address, calling
from tests.crash import TORTURE
from tests.missions import CHECKOUT, PROGRAM, Done, House, copied, surroundings, tagged, until
from tests.planned import claim, lay
from tests.workspace.workspaces import person

pytestmark = pytest.mark.skipif(confine.available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
WITHOUT_LANDLOCK = """import ctypes, os, struct, sys
rules = ((0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code)))
library = ctypes.CDLL(None, use_errno=True)
assert library.prctl(38, 1, 0, 0, 0) == 0 and library.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
"""  # a filter under which landlock_create_ruleset is a call that the kernel does not have


RENAME = """python3 -c 'import os, sys; os.rename(*sys.argv[1:])'"""  # mv would copy instead


def test_a_team_is_hidden_from_agents(house: House) -> None:
    """Its database and its sources on this disk, of all tenants, also where other files of the folder are shown."""
    at = house.project
    house.write("team.db"), house.write("sources/a")
    house.config(
        'agent = "scripted"', "[team]", f'database = "sqlite://{at}/team.db"', f'files = "file://{at}/sources"'
    )
    assert (
        house.work({"run": f"cd '{at}'; test -s main.py -a ! -s team.db -a -z \"$(ls sources)\""})["outcome"] == "no_op"
    )


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
    homes = {
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
    homes |= {"program": ".local/bin/git", "beside programs": ".local/share/x"}
    ours = {
        "state": house.state / "features.json",
        "raw": Path(house.layout.path(names.RAW)),
        "project": house.project / "x",
    }
    git = {"git": house.project / ".git/config", "hooks": house.project / ".git/hooks/post-checkout"}
    rest = {"checkout": CHECKOUT / "roles/worker.md", "identity": Path(house.env["HARNESS_IDENTITY"]) / "worker.md"}
    return {"tree": house.tree / "x", **{name: home / path for name, path in homes.items()}, **ours, **git, **rest}


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


SEEN = {  # of a person's files, by the trust and what is shown; the suite plays one of each trust
    ("workspace", ".netrc"): [".netrc"],
    ("full", ""): ["work/note"],
    **({("workspace", ""): [], ("full", ".ssh"): [".ssh/id_rsa", "work/note"]} if TORTURE else {}),
}


def test_keys_and_other_missions_are_not_there(deep: House) -> None:
    """Neither for a check nor for an agent, whatever the trust; nor is the rest of HOME but under full trust, and what is
    shown."""
    home = Path(deep.env["HOME"])
    secret = home / ".local/state/harness/another-mission/tree-1/secret"
    secret.parent.mkdir(parents=True)
    secret.write_text("theirs\n")
    logins = (".ssh/id_rsa", ".netrc", "work/note", ".local/state/harness/another-mission/tree-1/secret")
    script = "\n".join(f"grep -sq theirs '{home}/{name}' $HOME/{name} && echo read {name}" for name in logins)
    found: dict[tuple[str, str, int], list[str]] = {}
    for trust, shown in SEEN:
        deep.config('agent = "scripted"', f'trust = "{trust}"', "[home]", f"show = {[shown] if shown else []}")
        for said in (said_by_agent(deep, script + "\ntrue"), said_by_check(deep, script)):
            found[trust, shown, len(found) % 2] = [name for name in logins if f"read {name}\n" in said + "\n"]
    assert list(found.values()) == [one for one in SEEN.values() for _ in ("agent", "check")]


def failing_bubblewrap(house: House) -> Path:
    """A folder with one that does not work."""
    folder = house.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    return folder


def without_confinement(house: House, *words: str) -> Done:
    """A command on a machine where neither bubblewrap nor Landlock works."""
    path = f"{failing_bubblewrap(house)}{os.pathsep}{house.env['PATH']}"
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


@pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")
def test_a_network_that_the_tier_does_not_hold_is_said_at_the_start(house: House) -> None:
    """One line, and the loop goes on; with `required` nothing starts. Where the tier holds it nothing is said."""
    second = f"{failing_bubblewrap(house)}{os.pathsep}{house.env['PATH']}"
    for network, off in (("false", False), ('"loopback"', False), ("false", True)):
        house.base = (f"network = {network}", *(['confine = "off"'] if off else []))
        house.config('agent = "scripted"')
        done = house.harness("init", "--quietly", PATH=second)
        why = 'confine = "off"' if off else "tier: landlock"
        line = f"warning: network = {network} in .harness/config.toml does not hold here ({why}): "
        assert done.code == 0 and [text for text in done.out.split("\n") if text.startswith(line)], done
    house.base = ("network = false", 'confine = "required"')
    house.config('agent = "scripted"')
    for done in (house.harness("init", "--quietly", PATH=second), house.role("worker", "F-001", PATH=second)):
        assert done.code == 69 and "network = false in .harness/config.toml does not hold here" in done.err
    assert house.ran() == []
    held = house.harness("init", "--quietly")
    assert (held.code, "network" in held.out) == (0, False)


HOLDS = """import sys
from harness.base.errors import Unavailable
from harness.mission import config
from harness.state.layout import Layout
from harness.workplace import confine
layout = Layout(sys.argv[1])
try:
    print(confine.of_conversation(layout, config.load(layout), sys.argv[1], "")[0])
except Unavailable as fault:
    print(fault)
"""  # what holds the programs of a conversation


def test_where_nothing_confines_a_conversation_has_programs_by_a_persons_word_alone(house: House) -> None:
    """Without that it is told the line to write. (The next test is a longer form: the conversation goes on.)"""
    words = (sys.executable, "-c", HOLDS, str(house.project))
    said = without_confinement(house, *words).out
    assert said.startswith("No command is run and no server is started") and 'confine = "off"' in said
    house.base = ('confine = "off"',)
    house.config('agent = "scripted"')
    assert without_confinement(house, *words).out == "None\n"


def test_a_command_of_a_conversation_is_refused_where_nothing_confines(house: House) -> None:
    """With the line to write; with that line it runs. The conversation itself goes on, without its programs."""
    servers = {"own": {"command": "true"}}

    def brain(exchange: Exchange) -> Reply:
        if exchange.turns in (1, 3):  # each first answer to "go"
            return calling("execute", {"command": "touch made"})
        return Reply(exchange.results[-1] if exchange.results else "hello")

    def configured(server: Server, line: str) -> None:
        house.config(f'model = "{MODELS["chat"]}"', f'base_url = "{address(server, "chat")}"')
        path = Path(house.layout.path(names.CONFIG))
        path.write_text(f"{line}\n[agents.builtin]\n" + path.read_text())

    pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")
    house.base, words = (), (sys.executable, str(PROGRAM), "ask")
    person(house, {"tools.json": json.dumps({"mcpServers": servers})})
    with serving(brain) as server:
        configured(server, "")
        house.program("ask", "hi")  # whose threads end with it
        house.harness("sessions", "rules", "default", "allow", "execute")
        done = without_confinement(house, *words, "go")
        assert (
            'or write into .harness/config.toml that they may touch all that you may: confine = \\"off\\"' in done.out
        )
        assert done.err.count("No command is run and no server is started") == 1 and "MCP server own" not in done.err
        assert not (house.project / "made").exists()
        configured(server, 'confine = "off"')
        without_confinement(house, *words, "go")
    assert (house.project / "made").exists()


ARMING = r"""mkdir -p ignored folder; echo ignored > .gitignore; chmod g+s folder; ln -s /usr/bin/passwd link
for one in a.bin ignored/b.bin "$HOME/c.bin" "$TMPDIR/d.bin"; do cp /bin/true "$one"; chmod 6755 "$one"; done
cp /bin/true e.bin; chmod 2644 e.bin
cp /bin/true f.bin; python3 -c 'import os, struct
if os.geteuid() == 0:
    os.setxattr("f.bin", "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))'
"""  # the last is what `setcap cap_sys_admin+ep f.bin` does


def armed(house: House) -> list[str]:
    """The files outside the project folder with setuid, setgid or capabilities."""
    found = [path for path in Path(house.env["XDG_STATE_HOME"]).rglob("*") if path.is_file() and not path.is_symlink()]
    return [path.name for path in found if path.stat().st_mode & 0o6000 or os.listxattr(path)]


def test_what_a_run_leaves_has_no_rights_of_its_own(house: House) -> None:
    """Whichever user starts it later; the next prompt of the feature says what was taken off."""
    target = Path("/usr/bin/passwd")
    before = target.stat().st_mode if target.exists() else 0
    result = house.work({"run": ARMING})
    assert result["outcome"] == "ok", result
    assert armed(house) == []
    names_ = {"a.bin", "e.bin", "ignored/b.bin", "../tree-1.agent/c.bin", *(["f.bin"] if os.geteuid() == 0 else [])}
    assert {line.partition(": ")[0] for line in result["refused"]} == names_
    assert (house.tree / "a.bin").stat().st_mode & 0o7777 == 0o755
    assert (target.stat().st_mode if target.exists() else 0) == before
    house.script("worker", {"run": "true"})
    assert house.work_again()["refused"] == []
    assert "a.bin: setuid, setgid or capabilities" in house.prompt()


def test_what_a_killed_run_leaves_has_none_after_the_next_start(house: House) -> None:
    """The start settles the run."""
    house.script("worker", {"run": f"{ARMING}touch begun; sleep 60"})
    role = house.begin_role("worker", "F-001")
    until((house.tree / "begun").exists)
    role.kill()
    role.wait()
    until(lambda: not tagged(mission.load(house.layout).id))
    assert "a.bin" in armed(house)
    assert house.harness("init", "--quietly").code == 0
    assert armed(house) == []


def test_no_other_user_enters_the_folder_of_the_runs(house: House) -> None:
    """A new one, and one of an older harness at the next start of the mission, or of a conversation."""
    folder = Path(house.env["XDG_STATE_HOME"], "harness")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(house.folder / "new"))
        grants.begin(Layout(str(house.folder / "another")))
    assert (house.folder / "new/harness").stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)

    def conversation() -> None:
        integrity.of_conversation(house.layout, config.load(house.layout), str(house.project), "", dict(os.environ))

    for start in (lambda: house.work({"run": "true"}), lambda: house.harness("init", "--quietly"), conversation):
        start()
        assert folder.stat().st_mode & 0o777 == 0o700, start
        folder.chmod(0o755)


@pytest.mark.parametrize("tier", [BUBBLEWRAP, LANDLOCK])
def test_a_conversation_writes_in_its_folder_alone(house: House, monkeypatch: pytest.MonkeyPatch, tier: str) -> None:
    """Not where git, the harness and programs on PATH are; on the second tier also nothing new beside those."""
    if tier == LANDLOCK:
        if not landlock.abi():
            pytest.skip("this kernel has no Landlock")
        failing_bubblewrap(house)
        monkeypatch.setenv("PATH", f"{house.folder}/bin{os.pathsep}{os.environ['PATH']}")
    folder = house.project
    (folder / "bin").mkdir()
    (folder / "src").mkdir()
    (folder / "deep/er/bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", os.pathsep.join([f"{folder}/bin", f"{folder}/deep/er/bin", os.environ["PATH"]]))
    settings = config.load(house.layout)
    known, environment = integrity.of_conversation(house.layout, settings, str(folder), "", dict(os.environ))
    assert known is not None and known.tier == tier
    shell = LocalShell(str(folder), environment=environment, confine=known)
    places = f"new src/new bin/new .git/hooks/new .harness/new {folder.parent}/new {house.env['HOME']}/new $HOME/new $TMPDIR/new"
    moves = "for one in deep deep/er bin .git; do mv $one moved 2>/dev/null && echo $one; done"
    done = shell.execute(f"for one in {places}; do touch $one 2>/dev/null && echo $one; done; {moves}; true")
    assert isinstance(done, Done_)
    made = done.output.decode().split()
    assert not (folder.parent / "new").exists() and not Path(house.env["HOME"], "new").exists()
    assert [path for path in made if path != f"{folder.parent}/new"] == [  # on the first tier /tmp is its own
        *(["new"] if tier == BUBBLEWRAP else []),
        "src/new",
        f"{environment['HOME']}/new",
        f"{environment['TMPDIR']}/new",
    ]


def test_a_folder_that_holds_the_home_is_only_read(house: House) -> None:
    """What a shell reads at its start is there."""
    settings, home = config.load(house.layout), Path(house.env["HOME"])
    known, environment = integrity.of_conversation(house.layout, settings, str(home), "", dict(os.environ))
    done = LocalShell(str(home), environment=environment, confine=known).execute(f"touch {home}/.bashrc")
    assert isinstance(done, Done_) and done.exit != 0 and not (home / ".bashrc").exists()


def test_a_run_that_is_not_confined_is_marked(house: House) -> None:
    """In the status while it is the last one, and at DONE for good."""
    house.work({"run": "touch 1.txt"})
    assert "not confined" not in house.harness("status").out
    house.base = ('confine = "off"',)
    house.config('agent = "scripted"')
    house.script("worker", {"run": "touch 2.txt"})
    assert opening.UNCONFINED in house.role("worker", "F-002").out
    words = "1 of 2 runs not confined (docs/threat-model.md)"
    assert "1 of 1 runs not confined" in house.harness("status").out
    assert f"warning   {words}" in status.ending(house.layout, "DONE")
    house.base = ()
    house.config('agent = "scripted"')
    house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
    house.work({"run": "touch 3.txt"})
    assert "not confined" not in house.harness("status").out
    assert "1 of 3 runs not confined" in "\n".join(status.ending(house.layout, "DONE"))
