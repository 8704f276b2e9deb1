"""A mission goes on where it is carried to: the steps of examples/nightly as they stand there, run by two users one after another
on machines with other folders; and what the next start says of a mission that came in part, or from a killed run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from harness.mission import mission
from tests import other_user
from tests.missions import CHECKOUT, House, differences, listing, tagged, until
from tests.other_user import OtherUser

NIGHTLY = CHECKOUT / "examples/nightly"
ORIGIN = "0123456789abcdef" * 2
DOCKER = """#!/bin/bash
while [ "$1" != night ]; do
  case $1 in
    -v) export CARRIED="$HOME/../${2%%:*}"; shift ;;
    --env-file) set -a; . "$2"; set +a; shift ;;
  esac
  shift
done
cd "$(mktemp -d)" && HOME=$PWD exec bash "$NIGHT_SH" "${@:2}"
"""
FIRST_NIGHT, LATER = "2s", "10m"
PLAN = """{"features": [{"id": "F-001", "title": "One", "description": "one.txt says one", "claims": ["VAL-ONE"], "priority": 1}],
 "contract": [{"id": "VAL-ONE", "claim": "one.txt says one", "checks": ["grep -x one one.txt"]}]}"""
PLAYBOOK = "# {name}\n\n```sh\n{commands}\n```\n\n```json harness\n{reply}\n```\n"
DONE_HERE = '{"status": "implemented", "summary": "one.txt says one"}'
GH = """#!/bin/sh
case $1 in auth) ;; pr) echo "$*" >>"$GH_SAID"; echo https://example.org/1 ;; *) exit 1 ;; esac
"""


@pytest.fixture
def origin(bare: House) -> Path:
    """What the machines clone: a repository with a SPEC.md and playbooks, whose worker works until the first night is over."""
    late = f"printf 'one\\n' >one.txt\nenv | grep HARNESS_ORIGIN >>one.txt || true\nsleep {FIRST_NIGHT}"
    for name, commands, reply in (("planner", ":", PLAN), ("worker-F-001", late, DONE_HERE)):
        bare.write(f"playbooks/{name}.md", PLAYBOOK.format(name=name, commands=commands, reply=reply))
    bare.repository()
    bare.run(["git", "clone", "-q", "--bare", str(bare.project), str(bare.folder / "origin.git")])
    return bare.folder / "origin.git"


class Machine:
    """A machine that is new: an empty HOME below a folder of its own, programs on PATH, and perhaps another user."""

    def __init__(self, house: House, name: str, user: OtherUser | None = None) -> None:
        self.folder, self.user = house.folder / name, user
        programs = self.folder / "bin"
        for folder in (programs, self.folder / "home", self.folder / "tmp"):
            folder.mkdir(parents=True)
        home = user.home if user else CHECKOUT
        (programs / "harness").symlink_to(home / "run.sh")
        (programs / "gh").write_text(GH)
        (programs / "gh").chmod(0o755)
        self.env = {key: value for key, value in house.env.items() if not key.startswith(("XDG_", "HARNESS_IDENTITY"))}
        self.env |= {
            **(user.env if user else {}),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
        }
        self.env |= {"PATH": f"{programs}:{house.env['PATH']}", "GH_SAID": str(self.folder / "tmp/gh")}

    def run(self, words: list[str], where: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, as the machine's user."""
        if self.user:
            other_user.give(self.folder)
            words = [*other_user.BECOME, *words]
        return subprocess.run(
            words,
            cwd=where,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


class Workflow:
    """The steps of the workflow, as a runner takes them; what is not a shell's is stood in for."""

    def __init__(self, origin: Path, store: Path) -> None:
        self.origin, self.store = origin, store
        self.text = yaml.safe_load((NIGHTLY / "github-actions.yml").read_text())

    def night(self, on: Machine, seconds: str) -> tuple[Path, dict[str, str]]:
        """One night: the folder of the clone, and {step: its output}; asserts that no step fails."""
        work, said = on.folder / "work", dict[str, str]()
        known = {"HARNESS_ORIGIN": ORIGIN, "AGENT": "", "FOR": seconds, "GITHUB_OUTPUT": str(on.folder / "tmp/out")}
        assert known.keys() >= self.text["env"].keys()
        for step in self.text["jobs"]["night"]["steps"]:
            if "uses" in step:
                self._stand_in(step["uses"].partition("@")[0], on, work)
            elif step["name"] != "Install" and self._is_due(step.get("if", "always()"), said):
                done = on.run(["bash", "-e", "-c", step["run"]], work, known)
                assert done.returncode == 0, (step["name"], done)
                said[step["name"]] = done.stdout
                if step.get("id") == "work":
                    said["code"] = (on.folder / "tmp/out").read_text().strip()
        return work, said

    def _is_due(self, condition: str, said: Mapping[str, str]) -> bool:
        return {"always()": True, "steps.work.outputs.code == '0'": said.get("code") == "code=0"}[condition]

    def _stand_in(self, action: str, on: Machine, work: Path) -> None:
        if action == "actions/checkout":
            assert on.run(["git", "clone", "-q", str(self.origin), str(work)], on.folder, {}).returncode == 0
        elif action == "actions/cache/restore" and self.store.exists():
            shutil.copytree(self.store, work / ".harness", symlinks=True)
        elif action == "actions/cache/save":
            shutil.rmtree(self.store, ignore_errors=True)
            shutil.copytree(work / ".harness", self.store, symlinks=True)


def rebuilt(on: Machine, work: Path) -> str:
    """The last line of `replay --all` there, and how many receipts count."""
    env = {"HARNESS_ORIGIN": ORIGIN}
    done = on.run(["harness", "replay", "--all"], work, env)
    assert done.returncode == 0, done
    return done.stdout.strip().split("\n")[-1]


def tree_wanted(house: House, origin: Path) -> str:
    """The tree that a mission without a break leaves: what was there, and one.txt."""
    (house.project / "one.txt").write_text("one\n")
    house.git("add", "one.txt")
    return house.git("write-tree")


def someone_else(request: pytest.FixtureRequest) -> OtherUser | None:
    """Another user, where we may become one."""
    return request.getfixturevalue("nobody") if other_user.interpreter() else None


def test_the_workflow_goes_on_on_a_new_machine(bare: House, origin: Path, request: pytest.FixtureRequest) -> None:
    """Another user, other folders, with the state from the cache and the commits that were pushed: DONE, with the same tree."""
    workflow = Workflow(origin, bare.folder / "cache")
    first = Machine(bare, "first")
    _, said = workflow.night(first, FIRST_NIGHT)
    assert said["code"] == "code=75" and "Land" not in said, said
    shutil.rmtree(first.folder)
    second = Machine(bare, "second", someone_else(request))
    if second.user:
        other_user.give(origin)
    work, said = workflow.night(second, LATER)
    assert said["code"] == "code=0" and "DONE" in said["Work"], said
    assert re.fullmatch(r"(\d+) of \1 runs: the prompt is rebuilt byte for byte", rebuilt(second, work))
    refs = subprocess.run(
        ["git", "-c", f"safe.directory={origin}", "for-each-ref", "--format=%(refname) %(tree)", "refs/heads/harness"],
        cwd=origin, env=bare.env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert refs.stdout.split()[1:] == [tree_wanted(bare, origin)]
    assert (second.folder / "tmp/gh").read_text().startswith("pr create --head land/")
    assert second.run(["git", "status", "--short"], work, {}).stdout == ""


def test_the_container_goes_on_from_what_the_last_one_left(bare: House, origin: Path) -> None:
    """By the line for the crontab; a file that was cut is named, and stays as it is."""
    text = (NIGHTLY / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["night"]' in text and "COPY --chmod=755 night.sh /usr/local/bin/night" in text
    [line] = re.findall(r"^# 0 1 \* \* \* (.*) 5h$", text, re.MULTILINE)
    host = Machine(bare, "host")
    (host.folder / "bin/docker").write_text(DOCKER)
    (host.folder / "bin/docker").chmod(0o755)
    (host.folder / "carried").mkdir()
    known = f"HARNESS_ORIGIN={ORIGIN}\nREPOSITORY={shlex.quote(str(origin))}\nAGENT=playbook\n"
    (host.folder / "home/night.env").write_text(known)
    ran, nights = [""], 0
    while (
        len([one for one in ran if one]) < 2
    ):  # a night of one second has one run, or none where there is much else to do
        done = host.run(["sh", "-c", f"{line} {2**nights}s"], host.folder, {"NIGHT_SH": str(NIGHTLY / "night.sh")})
        nights += 1
        assert done.returncode == 75 and nights < 9, done
        [tar] = (host.folder / "carried").iterdir()
        log = host.run(["tar", "-xOf", str(tar), ".harness/runs.jsonl"], host.folder, {}).stdout
        assert log.startswith(ran[-1])
        ran += [log] * (log != ran[-1])
    tar.write_bytes(cut := tar.read_bytes()[: tar.stat().st_size // 2])
    done = host.run(["sh", "-c", f"{line} 1s"], host.folder, {"NIGHT_SH": str(NIGHTLY / "night.sh")})
    assert done.returncode == 2 and "Unexpected EOF" in done.stderr and tar.read_bytes() == cut, done


# what is carried in part, from a killed run, or with the state folder


def carried(house: House, *, with_state: bool = False) -> House:
    """The mission in a clone in another folder, with another HOME and state folder."""
    there = House(house.folder / "there", {**house.env, "HOME": str(house.folder / "there/home")})
    there.env |= {"XDG_STATE_HOME": str(house.folder / "there/state"), "HARNESS_ORIGIN": house.read("origin").strip()}
    there.project.parent.mkdir()
    shutil.copytree(house.folder / "home", there.env["HOME"], symlinks=True)
    house.run(["git", "clone", "-q", "--mirror", str(house.project), str(there.project / ".git")])
    there.git("config", "core.bare", "false")
    there.git("reset", "-q", "--hard")
    pack = ["tar", "-cf", str(house.folder / "carried.tar"), "-C", str(house.project), ".harness"]
    assert house.run(pack).code == 0
    there.run(["tar", "-xf", str(house.folder / "carried.tar")])
    if with_state:
        shutil.copytree(house.folder / "state", there.folder / "state", symlinks=True)
    shutil.move(house.project, house.folder / "gone")
    shutil.move(house.folder / "state", house.folder / "gone state")
    shutil.move(house.folder / "home", house.folder / "gone home")
    return there


def shimmed(house: House) -> None:
    """A shim of pyenv in HOME, which names where it is, as pyenv writes it."""
    root = Path(house.env["HOME"], ".pyenv")
    for name, text in (("shims/tool", f'exec "{root}/libexec/tool"'), ("libexec/tool", "echo works")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"#!/bin/sh\n{text}\n")
        (root / name).chmod(0o755)
        os.utime(root / name, (0, 0))  # older than any copy
    house.env["PATH"] = f"{root}/shims:{house.env['PATH']}"


def test_what_names_an_old_path_is_made_again(house: House) -> None:
    """With the state folder carried, too: shims in the layer of HOME, the tree with what a setup left there, links of git."""
    shimmed(house)
    house.work({"run": "tool >1.txt; mkdir .venv; pwd >.venv/pwd; echo .venv >.gitignore"})
    there = carried(house, with_state=True)
    shimmed(there)
    house.script("worker", {"run": "tool >2.txt; test ! -e .venv"})
    done = there.role("worker", "F-002")
    assert (done.code, there.git("show", "HEAD:2.txt")) == (0, "works"), done
    old = re.compile(rb"%s/(my project|state|home)\b" % os.fsencode(house.folder))
    kept = [there.state / name for name in ("bin", "git-config", "locks", "mission.json", "git.json")]
    for top in (*kept, there.folder / "state"):
        for path in (top, *top.rglob("*")):
            text = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            assert not old.search(text), path
    assert not [*(there.state / "git-config").glob("*.aside")]


@pytest.mark.parametrize("with_state", [True, False])
def test_a_killed_run_is_settled_where_it_is_carried_to(house: House, with_state: bool) -> None:
    """As after a power cut; with the state folder its work is kept, too."""
    house.script("worker", {"run": "echo half >half.txt; sleep 600"})
    role = house.begin_role("worker", "F-001", session=True)
    until(lambda: (house.tree / "half.txt").exists() and (house.tree / "half.txt").read_text() == "half\n")
    for pid in [role.pid, *tagged(mission.load(house.layout).id)]:
        with suppress(ProcessLookupError):  # it may have ended with its parent
            os.kill(pid, signal.SIGKILL)
    role.wait()
    house.begun.clear()
    there = carried(house, with_state=with_state)
    done = there.program("init", "--quietly")
    assert done.code == 0 and "was killed" in done.out, done
    assert there.feature().status == "todo" and there.result()["outcome"] == "killed"
    assert ("half.txt" in there.git("ls-tree", "--name-only", "HEAD")) == with_state


@pytest.mark.parametrize("name", ["format", "git.json", "issues.jsonl"])
def test_a_part_that_is_missing_is_named_and_nothing_begins(house: House, name: str) -> None:
    """Rather than a second mission, a bug, or open questions that nobody knows of; with all of it there, it goes on."""
    house.harness("issue", "it leaks", "--severity", "major")
    house.work({"run": "touch 1.txt"})
    there = carried(house)
    os.rename(there.state / name, there.folder / "part")
    before = listing(there.project)
    done = there.program("init", "--quietly")
    assert done.code == 65 and f".harness/{name}: it is missing" in done.err and "copied in part" in done.err, done
    changed = [one for one in differences(before, listing(there.project)) if not one.startswith(".git/")]
    assert changed in ([], [".harness/bin/harness"])
    os.rename(there.folder / "part", there.state / name)
    assert there.program("init", "--quietly").code == 0


def test_folders_without_content_and_incomplete_runs(house: House) -> None:
    """An archive of files alone lacks empty folders, which are made; a run without its folder is named once."""
    run = house.work({"run": "touch 1.txt"})["run"]
    there = carried(house)
    for name in ("locks", "journal"):
        shutil.rmtree(there.state / name)
    shutil.rmtree(there.state / "runs" / run)
    done = there.run([str(CHECKOUT / "run.sh"), "--once"])
    assert f"receipts do not count: {run}" in done.out and "validator F-001" in done.out, done
