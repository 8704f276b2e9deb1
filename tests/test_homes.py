"""An honest mission works in each HOME as people have them, without a line of configuration; logins in them are not there.

The suite runs one check in each on both tiers, and two whole missions. HARNESS_TORTURE=1 runs a whole mission in each.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.mission.check_environment import CheckEnvironment
from harness.mission.config import Config
from harness.process import supervise
from harness.process.confine import BUBBLEWRAP, LANDLOCK
from harness.workplace import confine, environment
from tests import homes
from tests.crash import TORTURE
from tests.honest import needs_glass
from tests.missions import CHECKOUT, Done, House, surroundings

SPEC = "# A program\n\n## Part\n\nIt works with the tools of this HOME.\n"
SAMPLE = {("pyenv", BUBBLEWRAP), ("npm", LANDLOCK)}  # of the suite
TIERS = (BUBBLEWRAP, LANDLOCK)
READ = """import os, sys
for name in sys.argv[3:]:
    for folder in (os.path.expanduser("~"), sys.argv[2]):
        try:
            if sys.argv[1] in open(f"{folder}/{name}").read():
                print(name)
                break
        except OSError:
            pass
"""  # prints the names of files below HOME or the real one that have a text


@pytest.mark.parametrize("tier", TIERS)
def test_a_check_uses_the_tools_of_each_home_and_sees_no_login(
    house: House, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    """Confined as in a run, and in the HOME layer of a run."""
    needs_glass(tier)
    faults = {}
    for name in homes.HOMES:
        tree = house.folder / f"kept-{name}" / "tree-1"
        tree.mkdir(parents=True)
        with monkeypatch.context() as patch:
            patch.delenv("GIT_CONFIG_GLOBAL")  # of the tests
            home = homes.make(name, house.folder / name)
            for variable, value in home.env().items():
                patch.setenv(variable, value)
            faults[name] = checked(house, str(tree), tier, home.check, Config())
    assert faults == dict.fromkeys(homes.HOMES, "")


@pytest.mark.parametrize("tier", TIERS)
def test_no_place_with_a_login_can_be_read(house: House, monkeypatch: pytest.MonkeyPatch, tier: str) -> None:
    """Of 65; under full trust those can that are not keys: 48, as under any trust before there was a list."""
    needs_glass(tier)
    home = house.folder / "person"
    for name in homes.LOGINS:
        homes.put(home / name, f"password = {homes.SECRET}\n")
    programs = [
        str(home / name / "bin") for name in (".fly", ".pulumi", ".composer/vendor", ".cargo", ".config/composer")
    ]
    for folder in programs:
        homes.program(Path(folder) / "tool", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", os.pathsep.join([*programs, os.environ["PATH"]]))
    monkeypatch.setenv("HOME", str(home))
    found = {}
    for trust in ("workspace", "full"):
        tree = house.folder / trust / "tree-1"
        tree.mkdir(parents=True)
        check = f"python3 -c '{READ}' {homes.SECRET} {home} {' '.join(homes.LOGINS)}; exit 1"
        found[trust] = checked(house, str(tree), tier, check, Config(trust=trust))
    read = {trust: [name for name in homes.LOGINS if f"\n{name}\n" in said] for trust, said in found.items()}
    assert (len(homes.LOGINS), read["workspace"], len(read["full"])) == (65, [], 48)
    assert read["full"] == homes.LOGINS[17:]


def checked(house: House, tree: str, tier: str, check: str, settings: Config) -> str:
    """Run a check of a mission in this tree; what it says where it is red."""
    known = confine.of_mission(house.layout, settings, tree, tier)
    assert known is not None
    place = CheckEnvironment(
        directory=tree, home=confine.home_of_checks(house.layout.folders.top, tree + ".home", settings.home)
    )
    said: list[bytes] = []
    ended = supervise.run(
        ["bash", "-euxo", "pipefail", "-c", check],
        cwd=tree,
        env=environment.of_check(os.environ, place),
        wall_seconds=60,
        sink=lambda _, chunk: said.append(chunk),
        confine=known.opened(tree, place.home),
    )
    return "" if ended.exit == 0 else b"".join(said).decode()


def mission(folder: Path, home: homes.Home, tier: str, run_sh: Path) -> Done:
    """A whole mission below this HOME, with the embedded agent, whose worker and check use its tools."""
    gone = ("PYTHONPATH", "XDG_STATE_HOME", "GIT_CONFIG_GLOBAL")  # of the tests
    env = {key: value for key, value in surroundings(folder).items() if key not in gone} | home.env()
    if tier == LANDLOCK:
        homes.program(folder / "no/bwrap", "#!/bin/sh\nexit 1\n")
        env["PATH"] = f"{folder / 'no'}{os.pathsep}{env['PATH']}"
    house = House(home.folder / "work", env, "mine")
    house.folder.mkdir(exist_ok=True)
    house.repository(commit=False)
    house.write("SPEC.md", SPEC)
    claim = {
        "id": "VAL-1",
        "claim": "It works",
        "checks": [{"run": f"set -euo pipefail; {home.check}; test -f made.txt"}],
    }
    plan = {
        "features": [{"id": "F-001", "title": "Part", "claims": ["VAL-1"], "spec_refs": ["Part"]}],
        "contract": [claim],
    }
    reply = {"status": "implemented", "summary": "made"}
    for role, run, said in (("planner", "true", plan), ("worker", f"{home.check}\necho x > made.txt", reply)):
        house.write(f"playbooks/{role}.md", f"```sh\n{run}\n```\n\n```json harness\n{json.dumps(said)}\n```\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "begin")
    return house.run([str(run_sh)])


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", homes.HOMES)
def test_an_honest_mission_reaches_done(name: str, tier: str, tmp_path: Path) -> None:
    """Without a config.toml; with the harness that pipx installed, or a checkout in HOME, where the HOME is about that."""
    if (name, tier) not in SAMPLE and not TORTURE:
        pytest.skip("takes 5 s: HARNESS_TORTURE=1 runs it")
    needs_glass(tier)
    home = homes.make(name, tmp_path / "home")
    run_sh = CHECKOUT / "run.sh"
    if name == "pipx":
        shutil.rmtree(home.folder / ".local/share/pipx")
        run_sh = homes.installed(home.folder / ".local/share/pipx/venvs/harness-missions", tmp_path)
        home = home._replace(check=home.check.replace("harness;", "harness --version;"))
    elif name == "checkout":
        for folder in ("harness", "roles", "examples"):
            shutil.copytree(CHECKOUT / folder, home.folder / "src/harness" / folder)
        run_sh = Path(shutil.copy(CHECKOUT / "run.sh", home.folder / "src/harness"))
    elif name == "uv" and (uv := homes.real_uv()):
        shutil.copy(uv, home.folder / ".local/bin/uv")
        python = '--python "$(command -v python3.99)"'
        home = home._replace(
            check=f"uv venv -q --clear {python} $TMPDIR/v; $TMPDIR/v/bin/python -c 1; uv tool list; {home.check}"
        )
    done = mission(tmp_path, home, tier, run_sh)
    assert (done.code, "1 of 1 features passed" in done.out) == (0, True), done
