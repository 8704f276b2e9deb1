"""Real missions in throw-away folders, for tests: real repositories, real roles in separate processes, no mocks."""

from __future__ import annotations

import gc
import inspect
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from harness.__main__ import main
from harness.mission import contract, features, mission, runs
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.process.variables import passing
from harness.run import starting
from harness.state import names
from harness.state.layout import Layout
from harness.workplace import environment, workplace
from harness.workspace import grants
from tests import forked

CHECKOUT = Path(__file__).resolve().parent.parent
PROGRAM = CHECKOUT / "harness" / "__main__.py"
SPEC = "# A program\n\n## Part\n\nIt works.\n"
ROLE_MD = "---\nname: {name}\nsummary: helps\nreads: [spec]\n---\nHelp.\n"
ROLE_PY = """import sys

sys.path.append({checkout!r})

from harness.run import main


def settle(run):
    pass


raise SystemExit(main("{name}", settle))
"""
SURROUNDINGS = (  # beginnings; the second line: folders of tools outside the HOME of a test
    *("HARNESS_", "GIT_", "PROCESS_TAG", "FEATURE_ID", "TRIGGER", "REASON", "FORCE_COLOR", "COLUMNS"),
    *("CARGO_", "RUSTUP_", "PYENV_", "GOPATH", "XDG_"),
)


class Done:
    """The end of a command: exit code, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of every test process: settings, home, identity and temporary folder are all below `folder`. It has what
    passes to checks of that of who runs the tests, so none of it is announced."""
    env = {key: value for key, value in passing(os.environ).items() if not key.startswith(SURROUNDINGS)}
    for name in ("home", "temporary"):
        (folder / name).mkdir(exist_ok=True)
    env |= {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "temporary"),
        "TERM": "dumb",
        "HARNESS_CALLED": "run.sh",
    }
    env["PATH"] = (
        f"{sys.base_prefix}/bin{os.pathsep}{env['PATH']}"  # the interpreter itself, not a version manager's shim
    )
    env |= {"HARNESS_PYTHON": sys.executable, "PYTHONPATH": str(CHECKOUT), "HARNESS_IDENTITY": str(folder / "identity")}
    env |= {"XDG_STATE_HOME": str(folder / "state"), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    return env


def enter(patch: pytest.MonkeyPatch, folder: Path) -> dict[str, str]:
    """Give this process the environment of the tests in `folder`, and return it."""
    env = surroundings(folder)
    for name in list(os.environ):
        if name.startswith(SURROUNDINGS) or environment.withheld({name: os.environ[name]}):
            patch.delenv(name)
    for name, value in env.items():
        patch.setenv(name, value)
    return env


class House:
    """A repository with a mission, or ready for one; the scripted agent reads from `scripts`."""

    def __init__(self, folder: Path, env: dict[str, str], name: str = "my project") -> None:
        self.folder, self.env = folder, env
        self.project = folder / name
        self.scripts = folder / "scripts"
        self.layout = Layout(str(self.project))
        self.state = self.project / ".harness"
        self.identity = folder / "identity"
        self.begun: list[subprocess.Popen[bytes]] = []
        self.base: tuple[str, ...] = ()  # lines that every config.toml of this house has

    def own(self) -> None:
        """Make the `.harness` one that was made here, before something is written into it by hand."""
        grants.begin(self.layout)

    # the repository

    def git(self, *words: str, check: bool = True) -> str:
        """The output of git, with a configured name."""
        named = ["git", "-c", "user.name=p", "-c", "user.email=p@localhost", *words]
        done = subprocess.run(named, cwd=self.project, env=self.env, check=check, capture_output=True, text=True)
        return done.stdout.rstrip("\n")

    def write(self, name: str, text: str = "text\n") -> Path:
        """A file of the project with its folders."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def repository(self, commit: bool = True) -> None:
        """Make the folder a repository on `main`, with a tracked program and a SPEC.md."""
        self.project.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main", "--template=")
        self.write("SPEC.md", SPEC)
        self.write("main.py", "print('hello')\n")
        if commit:
            self.git("add", "-A")
            self.git("commit", "-q", "-m", "begin")

    def head(self) -> str:
        """The id of HEAD's commit."""
        return self.git("rev-parse", "HEAD")

    # the mission

    @property
    def tree(self) -> Path:
        """The folder in which runs work by default."""
        return Path(workplace.folder_of(mission.load(self.layout).id))

    def begin(self) -> None:
        """Start the mission and create a plan of two features as if it had been accepted."""
        starting.start(self.layout)
        Path(self.layout.path(names.SPEC)).write_text(SPEC)
        claims = [Claim(id=f"VAL-{n}", text=f"Part {n} works", checks=[Check(run=f"test -f {n}.txt")]) for n in (1, 2)]
        claims.append(Claim(id="VAL-LOOK", text="It looks right", manual=True))
        Path(self.layout.path(names.CONTRACT)).write_text(contract.render(Contract(claims=claims)))
        self.lay(
            Feature(id="F-001", title="Part one", claims=["VAL-1"]),
            Feature(id="F-002", title="Part two", claims=["VAL-2", "VAL-LOOK"], priority=2),
        )
        self.config('agent = "scripted"')

    def lay(self, *found: Feature) -> None:
        """Write these features, as a person might between runs."""
        Path(self.layout.path(names.FEATURES)).write_bytes(features.render(list(found)))

    def config(self, *lines: str) -> None:
        """Write config.toml, with the scripted agent's folder."""
        self.own()
        table = ["[agents.scripted]", f'path = "{self.scripts}"']
        Path(self.layout.path(names.CONFIG)).write_text("\n".join([*self.base, *lines, *table]) + "\n")

    def script(self, name: str, *steps: dict[str, Any]) -> None:
        """Write the steps of the scripted agent for the runs that `name` serves."""
        self.scripts.mkdir(exist_ok=True)
        (self.scripts / f"{name}.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))

    def role_files(self, name: str) -> None:
        """Write a role of the user's own, whose settle does nothing."""
        self.own()
        folder = Path(self.layout.path(names.ROLES))
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.md").write_text(ROLE_MD.format(name=name))
        (folder / f"{name}.py").write_text(ROLE_PY.format(name=name, checkout=str(CHECKOUT)))

    # running

    def words(self, role: str, *args: str) -> list[str]:
        """The command line of a role."""
        own = Path(self.layout.path(names.ROLES)) / f"{role}.py"
        return [sys.executable, "-P", str(own if own.exists() else CHECKOUT / "roles" / f"{role}.py"), *args]

    def run(self, words: list[str], where: Path | None = None, env: Mapping[str, str] = MappingProxyType({})) -> Done:
        """Run a program to its end, with the house's environment."""
        done = subprocess.run(
            words,
            cwd=where or self.project,
            env={**self.env, **env},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=forked.SECONDS,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def role(self, role: str, *args: str, **env: str) -> Done:
        """One run of a role: its script, in a fork of this process."""
        return self.forked(self.words(role, *args)[2], *args, env=env)

    def forked(self, script: str, *words: str, env: Mapping[str, str] = MappingProxyType({})) -> Done:
        """Run one of our scripts as `run` does, without the start of an interpreter, which takes 0.1 s."""
        if (
            threading.active_count() > 1
        ):  # a fork beside a thread may leave the child with a lock that is never released
            return self.run([sys.executable, "-P", script, *words], env=env)
        return Done(*forked.run(script, words, self.project, {**self.env, **env}))

    def program(self, *words: str, **env: str) -> Done:
        """One `harness` command in a separate process: a fork of this one."""
        return self.forked(str(PROGRAM), *words, env=env)

    def harness(self, *words: str, piped: bytes = b"", **env: str) -> Done:
        """One `harness` command in this process, as `program` without a process of its own. `piped`: its standard input."""
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        out, err = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(out),
            redirect_stderr(err),
            tempfile.TemporaryFile("w+") as given,
        ):
            given.buffer.write(piped)
            given.seek(0)
            patch.setattr(sys, "stdin", given)
            patch.chdir(self.project)
            patch.setattr(sys, "argv", ["harness", *words])
            for name, value in env.items():
                patch.setenv(name, value)
            patch.setenv("HARNESS_INSIDE", os.environ.get("HARNESS_INSIDE", ""))  # `--run` sets it, so it is reset
            try:
                code = main()
            finally:
                gc.enable()
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        return Done(code, out.getvalue(), err.getvalue())

    def work(self, *steps: dict[str, Any], feature: str = "F-001", **env: str) -> dict[str, Any]:
        """One worker's run whose agent takes these steps; returns its result."""
        self.script("worker", *steps)
        done = self.role("worker", feature, **env)
        assert "Traceback" not in done.err, done
        return self.result()

    def loop(self, *words: str) -> subprocess.Popen[str]:
        """Start run.sh in the background; it receives signals, and what it prints can be read."""
        return subprocess.Popen(
            [str(CHECKOUT / "run.sh"), *words],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heard,
        )

    def work_again(self, feature: str = "F-001") -> dict[str, Any]:
        """One more worker's run on a feature that is not due; returns its result."""
        done = self.role("worker", feature, "--again")
        assert "Traceback" not in done.err, done
        return self.result()

    def begin_role(self, role: str, *args: str, session: bool = False, **env: str) -> subprocess.Popen[bytes]:
        """Start a role that runs in the background; its remains end with the test."""
        quiet = subprocess.DEVNULL
        words = self.words(role, *args)
        made = subprocess.Popen(
            words,
            cwd=self.project,
            env={**self.env, **env},
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            start_new_session=session,
            preexec_fn=heard,
        )
        self.begun.append(made)
        return made

    def end(self) -> None:
        """End what `begin_role` started, and its descendants."""
        for role in self.begun:
            role.terminate()
            role.wait()
        for pid in tagged(mission.load(self.layout).id) if self.begun else []:
            with suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(pid, signal.SIGKILL)

    # reading state

    def result(self, run_id: str = "") -> dict[str, Any]:
        """result.json of a run, by default of the newest finished one."""
        run_id = run_id or next(runs.finished(self.layout)).run
        return dict(json.loads(Path(self.layout.run(run_id).result).read_text()))

    def ran(self) -> list[dict[str, Any]]:
        """The lines of runs.jsonl, oldest first."""
        path = Path(self.layout.path(names.RUN_LOG))
        return [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []

    def feature(self, feature_id: str = "F-001") -> Feature:
        """The feature as on disk."""
        return features.find(features.load(self.layout), feature_id)

    def read(self, name: str) -> str:
        """A file below .harness."""
        return (self.state / name).read_text()

    def refused(self, run_id: str = "") -> dict[str, bytes]:
        """The refused files that a run kept, by path."""
        top = Path(self.layout.run(run_id or self.result()["run"]).refused)
        return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}

    def prompt(self, run_id: str = "") -> str:
        """The prompt of a run."""
        return Path(self.layout.run(run_id or self.result()["run"]).prompt).read_text()


def heard() -> None:
    """For `preexec_fn`: the child receives signals, also if the tests run under nohup or in the background."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def listing(top: Path, *passed_over: str) -> dict[str, bytes]:
    """Everything below a folder with its content (folders empty, links their target), except paths that `passed_over` begins."""
    found: dict[str, bytes] = {}
    for folder, folders, held in os.walk(top):
        for name in [*folders, *held]:
            path = Path(folder, name)
            short = str(path.relative_to(top))
            if not short.startswith(passed_over):
                whole = os.readlink(path).encode() if path.is_symlink() else b""
                found[short] = path.read_bytes() if path.is_file() and not whole else whole
    return found


DISPOSABLE = (".harness/cache", ".harness/locks/mission", ".harness/locks/state")


def differences(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Paths that were added, removed or changed."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition holds; the bound is for a machine with much else to do."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it is not so within {seconds:.0f} s: {told(holds)}"
        time.sleep(0.005)


def told(condition: Callable[[], object]) -> str:
    """The lines of a condition in its test, for a message."""
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)


def tagged(mission_id: str) -> list[int]:
    """Live processes that runs of a mission started, including orphans."""
    mark = f"PROCESS_TAG={mission_id}/".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if mark in Path("/proc", name, "environ").read_bytes():
                    found.append(int(name))
            except OSError:
                continue  # it ended meanwhile
    return found


def copied(template: Path, folder: Path, env: dict[str, str]) -> House:
    """A house that is a copy of the one in `template`."""
    shutil.copytree(template / "my project", folder / "my project", symlinks=True)
    states = Path(env.get("XDG_STATE_HOME") or f"{env['HOME']}/.local/state")
    shutil.copytree(template / "state/harness/origins", states / "harness/origins", dirs_exist_ok=True)
    house = House(folder, env)
    house.config('agent = "scripted"')
    starting.write_generated(house.layout)
    return house
