"""`init` and `doctor`: what they say, ask and write."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.mission import mission
from harness.state import names
from tests.agents.modelserver import Reply, serving
from tests.missions import CHECKOUT, PROGRAM, House, heard


def test_init_starts_a_mission_and_says_where(unbegun: House) -> None:
    """The second call reports the existing mission; with --quietly it then prints nothing."""
    done = unbegun.harness("init")
    made = mission.load(unbegun.layout)
    assert done.code == 0
    assert done.out.startswith(f"Started the mission {made.id}, working on the branch {made.branch}.\n")
    assert unbegun.harness("init").out.startswith(f"There is the mission {made.id}")
    assert unbegun.harness("init", "--quietly").out == ""


def test_quietly_it_still_sets_an_agent_and_a_trust(unbegun: House) -> None:
    """Both in config.toml, of a new mission and of one that exists; without next steps, and the same again changes nothing."""
    done = unbegun.harness("init", "--quietly", "--agent", "scripted")
    assert (done.code, "Next:" in done.out) == (0, False), done
    assert '.harness/config.toml: agent = "scripted"' in done.out
    config = unbegun.read("config.toml")
    assert config.startswith('agent = "scripted"\n')
    assert unbegun.harness("init", "--quietly", "--agent", "scripted").out == ""
    assert unbegun.harness("init", "--quietly", "--trust", "workspace").code == 0
    assert unbegun.read("config.toml") == f'trust = "workspace"\n{config}'
    other = unbegun.harness("init", "--quietly", "--agent", "playbook")
    assert (other.code, "already sets another agent" in other.err) == (64, True), other


def test_init_and_each_start_name_what_runs_do_not_see(unbegun: House) -> None:
    """Edits and new files, not SPEC.md, playbooks or ignored ones; on another branch it says where to commit them."""
    unbegun.write("SPEC.md", "# Another\n")
    unbegun.write("playbooks/worker.md")
    assert "do not see" not in unbegun.harness("init").out
    unbegun.write("main.py", "print('mine')\n")
    assert "runs do not see main.py; commit it to include it\n" in unbegun.harness("init").out
    for name in ("a", "b", "c/d", "c/e", "f", "g"):
        unbegun.write(name)
    unbegun.git("add", "a")
    line = "runs do not see a, main.py, b, c/, f and 1 more; commit them to include them\n"
    assert line == unbegun.harness("init", "--quietly").out
    assert line in unbegun.run([str(CHECKOUT / "run.sh")]).out
    unbegun.git("switch", "-q", "main")
    line = line.replace("commit them", f"commit them on {mission.load(unbegun.layout).branch}")
    assert line == unbegun.harness("init", "--quietly").out


def test_take_edits_commits_what_is_there_once(unbegun: House) -> None:
    """Tracked files, in the person's name, SPEC.md by itself, and what was staged before the first commit; nothing later."""
    unbegun.git("config", "user.name", "Ann")
    unbegun.git("config", "user.email", "ann@example.org")
    unbegun.write("SPEC.md", "# Another\n")
    unbegun.write("main.py", "print('mine')\n")
    unbegun.write("new", "untracked\n")
    done = unbegun.harness("init", "--take-edits")
    assert "taken into the mission, your uncommitted edits of: SPEC.md, main.py\nruns do not see new;" in done.out, done
    said = ["Ann: Edits in the project folder: main.py", "Ann: Edits in the project folder: SPEC.md", "p: begin"]
    assert unbegun.git("log", "--format=%an: %s").split("\n") == said
    assert unbegun.git("status", "--porcelain") == "?? new"
    assert "there are no edits of tracked files to take\n" in unbegun.harness("init", "--take-edits").out
    unbegun.write("main.py", "print('later')\n")
    unbegun.harness("init", "--quietly")
    assert unbegun.git("status", "--porcelain") == " M main.py\n?? new"


@pytest.mark.parametrize("why", ["another branch", "a bisect"])
def test_edits_that_cannot_be_taken_stay_and_it_says_why(unbegun: House, why: str) -> None:
    """One line with the remedy, and exit code 11."""
    unbegun.harness("init")
    unbegun.write("main.py", "print('mine')\n")
    unbegun.git(*{"another branch": ["switch", "-q", "main"], "a bisect": ["bisect", "start"]}[why])
    done = unbegun.harness("init", "--take-edits")
    assert (done.code, why in done.err, done.err.count("\n")) == (11, True, 1), done
    assert unbegun.git("status", "--porcelain") == " M main.py"


def test_take_edits_takes_what_was_staged_before_the_first_commit(bare: House) -> None:
    """The first commit stays empty; the staged files are a commit of the person on the mission's branch."""
    bare.repository(commit=False)
    bare.git("add", "main.py")
    assert "edits of: main.py\n" in bare.harness("init", "--take-edits").out
    assert bare.git("log", "--format=%s").split("\n") == ["Edits in the project folder: main.py", "Start"]
    assert bare.git("status", "--porcelain") == "?? SPEC.md"


def keyboard() -> None:
    """For `preexec_fn`: standard input becomes this process's controlling terminal, whose Ctrl-C is a signal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    heard()


def test_quietly_it_asks_nothing_in_a_terminal(unbegun: House) -> None:
    """An agent without a trust is written, and one line says how to set that."""
    program = unbegun.folder / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    leader, follower = pty.openpty()
    command = [sys.executable, "-P", str(PROGRAM), "init", "--quietly", "--agent", "codex"]
    env = {**unbegun.env, "PATH": f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    done = subprocess.run(
        command, cwd=unbegun.project, env=env, stdin=follower, capture_output=True, timeout=60, check=True
    )
    os.close(leader)
    os.close(follower)
    assert b"How " not in done.stdout
    assert b"It does not start before you set its trust: run.sh init --trust workspace (or full)" in done.stdout
    assert unbegun.read("config.toml").startswith('agent = "codex"\n')


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_whoever_leaves_the_questions_of_init_is_told_where_things_stand(unbegun: House, key: bytes) -> None:
    """With either key: the mission has started, nothing is chosen, and init says how to be asked again; exit code 130."""
    program = unbegun.folder / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    leader, follower = pty.openpty()
    command = [sys.executable, "-P", str(PROGRAM), "init"]
    env = {**unbegun.env, "PATH": f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    done = subprocess.Popen(
        command,
        cwd=unbegun.project,
        env=env,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        preexec_fn=keyboard,
    )
    os.close(follower)
    said = b""
    while b"Which agent works here?" not in said:
        said += os.read(leader, 65536)
    with suppress(OSError):  # how Linux reports that the other end is closed
        while done.poll() is None or select.select([leader], [], [], 0)[0]:
            if select.select([leader], [], [], 0.3)[0]:
                said += os.read(leader, 65536)
            else:
                os.write(leader, key)  # again: a key is lost while the line editor takes over the terminal
    os.close(leader)
    assert done.wait(60) == 130
    assert b"The mission is started, nothing else was written. run.sh init asks again." in said
    assert not Path(unbegun.layout.path(names.CONFIG)).exists()


@pytest.mark.parametrize("there", [True, False], ids=["a model that answers", "no model there"])
def test_the_model_of_the_built_in_agent_is_tried(unbegun: House, there: bool) -> None:
    """With one tiny request, as soon as address and key are known; the key is in no file."""
    pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")
    ours, theirs = pty.openpty()
    with serving(lambda exchange: Reply("ok")) as server:
        url = f"{server.url}/v1" if there else "http://127.0.0.1:9/v1"
        said = ["builtin", "5", "openai-chat:fake-model", url, "MY_KEY", "workspace"]
        words = [sys.executable, "-P", str(PROGRAM), "init"]
        piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "preexec_fn": keyboard}
        done = subprocess.Popen(words, cwd=unbegun.project, env=unbegun.env, stdin=theirs, **piped)
        os.close(theirs)
        os.write(ours, "".join(f"{line}\n" for line in said).encode())
        shown = os.read(ours, 65536)
        while b"MY_KEY is not set. The key" not in shown:  # what is typed before a hidden answer is dropped
            shown += os.read(ours, 65536)
        os.write(ours, b"sk-1234567890abcdef\n")
        out = done.communicate(timeout=60)[0].decode()
    os.close(ours)
    assert ("tried the model: it answers" in out, "tried the model: no: " in out) == (there, not there), out
    assert "export MY_KEY=" in out and "price: not known: no past run of" in out
    text = Path(unbegun.layout.path(names.CONFIG)).read_text()
    assert f'base_url = "{url}"\n' in text and 'api_key_env = "MY_KEY"\n' in text and "sk-1" not in text


def test_doctor_says_what_it_fixed_and_10_where_something_is_bad(house: House) -> None:
    """One line each."""
    Path(house.layout.path(names.FEATURES)).write_text("{")
    done = house.harness("doctor")
    assert done.code == 10
    assert [line[:6] for line in done.out.split("\n") if "features.json" in line] == ["bad   "]
    house.lay()
    with open(house.layout.path(names.RAW), "w") as file:
        file.write("[2026-04-24T10:05:12Z] person - - torn")
    done = house.harness("doctor", "--fix")
    assert done.out.startswith("fixed  closed the torn last line of memory/raw.md\n")
