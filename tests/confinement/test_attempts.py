"""The program that attempts to break out: what it attempts works where nothing confines it, so that a refusal says something."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.process import tree
from harness.process.confine import BUBBLEWRAP
from tests.confinement import attempts, forbidden
from tests.confinement import stage as trial
from tests.confinement.forbidden import Attempt, Stage
from tests.missions import House

PERSON = (".gitconfig", ".bashrc", ".netrc", ".ssh/id", ".aws/credentials", ".gnupg/key", ".config/git/config")
CRONTAB = '#!/bin/sh\nat="$(dirname "$0")/../home/crontab"\n[ "$1" = -l ] && exec cat "$at"\ncat > "$at"\n'
SEPARATE = ("remount", "remount as another", "order", "order detached")
MAY_TRACE = os.geteuid() == 0 or not os.path.exists("/proc/sys/kernel/yama/ptrace_scope")


@pytest.fixture
def stage(bare: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A mission with a tree, a person's files in a throw-away HOME, a runtime folder and a crontab."""
    furnish(bare, monkeypatch)
    there = trial.begin(str(bare.folder / "try"))
    with trial.Set(there, []) as made:
        yield made.stage


def furnish(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put files where a person has theirs, and a `crontab` that keeps its table in HOME."""
    for name in PERSON:
        path = bare.folder / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of a person\n")
    for name in ("bin", "runtime", "identity"):
        (bare.folder / name).mkdir()
    (bare.folder / "bin" / "crontab").write_text(CRONTAB)
    (bare.folder / "bin" / "crontab").chmod(0o755)
    (bare.folder / "home" / "crontab").write_text("0 0 * * * true\n")
    given = {"XDG_RUNTIME_DIR": str(bare.folder / "runtime"), "PATH": f"{bare.folder / 'bin'}:{os.environ['PATH']}"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
        bare.env[name] = value


def carried_out(stage: Stage, todo: list[Attempt], *before: str) -> dict[str, trial.Answer]:
    """The answers of the program, by attempt, where nothing confines it; `before` starts it."""
    plan = Path(stage.room, "plan")
    plan.write_text(json.dumps([one.words for one in todo]))
    words = [*before, sys.executable, "-I", "-S", attempts.__file__, str(plan)]
    done = subprocess.run(words, cwd=stage.tree, stdout=subprocess.PIPE, check=True)
    answers = [trial.Answer(**json.loads(line)) for line in done.stdout.split(b"\n") if line]
    return {todo[answer.number].what: answer for answer in answers}


def possible(one: Attempt) -> bool:
    """Whether this user may do it at all."""
    kind, *arguments = one.words
    if kind == "trace":
        return MAY_TRACE
    return kind not in ("create", "write", "replace") or os.access(os.path.dirname(arguments[0]), os.W_OK)


def test_all_that_is_refused_behind_glass_works_without_it(stage: Stage) -> None:
    """Files, moves, keys, sockets, processes: no attempt is one that cannot work. What worked is undone."""
    with subprocess.Popen(["sleep", "60"]) as victim:
        aimed = stage.replace(processes={"the run": victim.pid})
        todo = [one for one in forbidden.attempts(aimed, BUBBLEWRAP) if one.words[0] not in SEPARATE]
        assert {one.words[0] for one in todo} == attempts.KINDS.keys() - set(SEPARATE)
        todo = [one for one in todo[:-2] if possible(one)]
        Path(stage.room, "go").touch()
        before = trial._state(stage)
        answers = carried_out(stage, todo)
        victim.kill()
    assert {what: one.why for what, one in answers.items() if not one.worked} == {}
    assert len(answers) == len(todo) > 50
    changed = [one.what for one in todo if answers[one.what].device not in (0, trial._device(one.words[1]))]
    assert changed == []
    assert trial._state(stage) == before
    assert (Path.home() / ".gitconfig").read_text() == "of a person\n"
    assert (Path.home() / "crontab").read_text() == "0 0 * * * true\n"


def test_what_survives_is_noticed(stage: Stage) -> None:
    """Daemons and processes that fork hold the FIFO open for as long as they live, here ten seconds."""
    held = os.open(stage.fifo, os.O_RDONLY | os.O_NONBLOCK)
    survive = ["survive", stage.fifo, "4", "0.1", "10"]
    assert carried_out(stage, [Attempt(what="survive", words=survive)])["survive"].worked
    assert trial._gone_seconds(held, 1.0) is None
    assert trial._gone_seconds(held, 60.0) is not None
    os.close(held)


def test_a_planted_git_folder_runs_its_programs_in_an_ordinary_git(stage: Stage) -> None:
    """So that our git ran none of them says something about our git."""
    plant = Attempt(what="plant", words=["plant", stage.tree, stage.marker])
    assert carried_out(stage, [plant])["plant"].worked
    subprocess.run(["git", "status"], cwd=stage.tree, capture_output=True, check=False)
    assert os.path.exists(stage.marker)


def again(stage: Stage, state: Path) -> None:
    """Put the mission's state back."""
    shutil.rmtree(stage.there.state)
    shutil.copytree(state, stage.there.state, symlinks=True)


def test_a_person_s_commands_do_what_they_say(stage: Stage, bare: House) -> None:
    """Each changes the state where no run is; also without a parent and an environment."""
    shutil.copytree(stage.there.state, bare.folder / "kept", symlinks=True)
    asked = [["order", stage.there.folders.project, *words] for words in forbidden.orders(stage)]
    folder, env, *words = asked[-1][1:]
    asked.append(["order detached", folder, env, f"XDG_STATE_HOME={bare.env['XDG_STATE_HOME']}", *words])
    for words in asked:
        before = trial._state(stage)
        answer = carried_out(stage, [Attempt(what="order", words=words)])["order"]
        assert answer.worked, (words, answer.why)
        assert trial._state(stage) != before, words
        again(stage, bare.folder / "kept")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_remount_works_for_a_root_with_its_capabilities(stage: Stage) -> None:
    """In a mount namespace of the test's own, on a read-only mount; and as root of a user namespace on a writable one."""
    project = stage.there.folders.project
    for kind, then in (("remount", "mount -o remount,bind,ro"), ("remount as another", "true")):
        script = f'mount --bind "$0" "$0" && {then} "$0" && exec "$@"'
        one = Attempt(what=kind, words=[kind, project])
        answer = carried_out(stage, [one], "unshare", "-m", "sh", "-c", script, project)[kind]
        assert answer.worked, (kind, answer.why)


def test_a_process_of_another_age_is_not_the_one_that_is_meant(stage: Stage) -> None:
    """The number of a process outside may be that of one inside."""
    own = [str(os.getpid()), tree.stat(os.getpid())[19].decode()]
    todo = [Attempt(what="it", words=["end", *own]), Attempt(what="another", words=["end", own[0], "1"])]
    answers = carried_out(stage, todo)
    assert (answers["it"].worked, answers["another"].worked) == (True, False)
