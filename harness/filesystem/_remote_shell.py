"""Files and commands of another machine, container or sandbox, reached by a command such as `ssh host` or `docker exec -i
name`.

The command starts `sh` there, which becomes one lasting Python process: it receives the source of the local shell and carries
out its verbs. The other side needs sh, bash, and Python 3.11 or newer; nothing is installed."""

from __future__ import annotations

import functools
import itertools
import json
import os
import shlex
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Generic, Self, TypeVar

from harness.base import encoding
from harness.base.errors import Unavailable
from harness.filesystem import _control_groups, _frames, _relay
from harness.filesystem._ripgrep import source
from harness.filesystem.protocol import (
    CommandResult,
    FileContent,
    FileEntry,
    FileFault,
    Listing,
    Matches,
    OutputPage,
    WriteResult,
)
from harness.process import spawn
from harness.process.confine import Confinement
from harness.process.supervise import Child
from harness.process.variables import passing

T = TypeVar("T")
PACKAGES = ("harness.base", "harness.process", "harness.filesystem", "pathspec")
CLIENTS = ("SSH_AUTH_SOCK", "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "KUBECONFIG", "XDG_RUNTIME_DIR")
START_SECONDS = 30.0
LOST = -9
BOOT = """import json, os, sys, zlib
from importlib import util
if sys.version_info < (3, 11): sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0])
def take(count):
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more: sys.exit(0)
        data += more
    return data
os.write(1, b"%s")
sources = json.loads(zlib.decompress(take(int.from_bytes(take(8), "big"))))
class Sent:
    def find_spec(self, name, path=None, target=None):
        return util.spec_from_loader(name, self, is_package=sources[name][0]) if name in sources else None
    def create_module(self, spec): return None
    def exec_module(self, module):
        module.__file__ = module.__name__
        exec(compile(sources[module.__name__][1], module.__name__, "exec"), module.__dict__)
    def get_source(self, name): return sources[name][1]
sys.meta_path.insert(0, Sent())
from harness.filesystem import _remote_server
_remote_server.RemoteServer().serve()
"""


class RemoteConnection:
    """One lasting process behind a command, for any number of threads. `prefix`: the words before `sh`; `python`: the interpreter
    there; `confine`: confinement of the whole process tree; `environment`: of the command, None: the variables that pass to
    programs, and those by which ssh, Docker and Kubernetes find their agent and settings; `groups`: control groups of the process
    tree. The first call starts it, and the next call after a loss starts it again. Calls raise Unavailable if the other side
    cannot be reached or does not answer for 8 s."""

    def __init__(
        self,
        prefix: Sequence[str],
        *,
        python: str = "python3",
        confine: Confinement | None = None,
        environment: Mapping[str, str] | None = None,
        groups: Sequence[str] = (),
    ) -> None:
        self.prefix, self.python, self.confine = list(prefix), python, confine
        self.environment, self.groups, self._starting = environment, list(groups), threading.Lock()
        self._link: _Link | None = None

    def call(self, root: str, verb: str, *given: object, stop: Callable[[], bool] | None = None, **more: object) -> Any:
        """The result of a verb in the folder `root` there. `stop` is polled, and ends the verb."""
        with self._starting:
            if self._link is None or not self._link.alive():
                self._link = _Link(self)
            link = self._link
        return link.call({"root": root, "verb": verb, "given": given, "more": more}, stop)

    def close(self) -> None:
        """End the other side and its processes."""
        with self._starting:
            if self._link is not None:
                self._link.close()
            self._link = None


class _Link:
    """One start of the other side: a Child. A thread that waits for an answer reads its output."""

    def __init__(self, to: RemoteConnection) -> None:
        reading, self.writing = spawn.pipe()
        self.name, self.owner, self.said = shlex.join(to.prefix) or "sh", os.getpid(), b""
        words = [os.path.realpath(sys.executable), "-I", "-S", "-c", source(_relay), *to.prefix, "sh"]
        environment = dict(passing(os.environ, CLIENTS) if to.environment is None else to.environment)
        try:
            self.child = Child(words, cwd="/", env=environment, stdin=reading, wall_seconds=spawn.FOREVER_SECONDS,
                               grace_seconds=0.5, confine=to.confine)  # fmt: skip
        finally:
            os.close(reading)
        self.buffer, self.numbers = bytearray(), itertools.count(1)
        self.output: Any = self.child.output()
        self.answers, self.reading, self.heard = dict[int, dict[str, Any]](), False, time.monotonic()
        self.turn, self.write_turn, self.ended = threading.Condition(), threading.Lock(), False
        self._boot(to.python, to.groups)

    def _boot(self, python: str, groups: Sequence[str]) -> None:
        """Turn `sh` into the process of the server; earlier output of login files is skipped."""
        token = os.urandom(16).hex().encode()
        code = BOOT % "".join(f"\\x{one:02x}" for one in token)  # an echo of the command is not the token
        self.send(f"exec {shlex.quote(python)} -I -S -B -c {shlex.quote(code)}\n".encode())
        until = time.monotonic() + START_SECONDS
        while token not in self.buffer:
            self._pump()
            if time.monotonic() > until:
                raise self._lost("it does not answer")
        del self.buffer[: self.buffer.index(token) + len(token)]
        for group in groups:
            _control_groups.join(group, self.child.pid)
        data = zlib.compress(json.dumps(_sources()).encode())
        self.send(len(data).to_bytes(8) + data)

    def alive(self) -> bool:
        """Whether it can be used by this process."""
        return not self.ended and self.child.ended is None and self.owner == os.getpid()

    def send(self, data: bytes) -> None:
        """Write a frame for the relay."""
        data = len(data).to_bytes(8) + data
        with self.write_turn:
            try:
                while data:
                    data = data[os.write(self.writing, data) :]
            except OSError:
                self.ended = True
                raise self._unavailable("it ended") from None

    def call(self, request: dict[str, Any], stop: Callable[[], bool] | None) -> Any:
        """Send a request and wait for its answer."""
        number, stopped = next(self.numbers), False
        self.heard = time.monotonic()
        self.send(_frames.pack({"number": number, **request}))
        try:
            while (answer := self._look(number)) is None:
                if stop and not stopped and stop():
                    stopped = True
                    self.send(_frames.pack({"number": number}))
        except (KeyboardInterrupt, SystemExit):
            self.send(_frames.pack({"number": number}))
            raise
        if answer["error"]:
            raise Unavailable(f"{self.name}: {answer['error']}")
        return answer["result"]

    def _look(self, number: int) -> dict[str, Any] | None:
        """The answer, or None after at most 0.2 s. One of the waiting threads reads for all."""
        with self.turn:
            if self.reading and number not in self.answers:
                self.turn.wait(0.2)
            if number in self.answers:
                return self.answers.pop(number)
            if self.reading:
                return None
            self.reading = True
        try:
            self._pump()
            for one in _frames.take_values(self.buffer):
                if one is not None:
                    self.answers[one["number"]] = one
        except ValueError as fault:
            raise self._lost(f"its answer is not understood: {fault}") from None
        finally:
            with self.turn:
                self.reading = False
                self.turn.notify_all()
        if time.monotonic() - self.heard > _frames.SILENT_SECONDS:
            raise self._lost(f"it has not answered for {_frames.SILENT_SECONDS:.0f} s")
        return None

    def _pump(self) -> None:
        """Read available output, waiting at most 0.2 s."""
        stream, data = next(self.output, ("end", b""))
        if stream == "end":
            raise self._lost("it ended")
        if stream == "stdout":
            self.buffer += data
            self.heard = time.monotonic()
        else:
            self.said = (self.said + data)[-2000:]

    def _lost(self, why: str) -> Unavailable:
        self.close()
        return self._unavailable(why)

    def _unavailable(self, why: str) -> Unavailable:
        said = " ".join(self.said.decode("utf-8", "replace").split())
        return Unavailable(f"{self.name}: {why}{f' ({said})' if said else ''}. The request may have been carried out.")

    def close(self) -> None:
        """End the other side."""
        self.ended = True
        self.child.close()

    def __del__(self) -> None:
        """A link without references ends."""
        if hasattr(self, "output"):
            self.output.close()
        os.close(self.writing)


@functools.cache
def _sources() -> dict[str, tuple[bool, str]]:
    """{module: (whether it is a package, its source)} of the modules for the other side."""
    found = {"harness": (True, "")}
    for name in PACKAGES:
        try:
            found |= _below(name, resources.files(name))
        except ModuleNotFoundError:  # pathspec is of an extra
            continue
    return found


def _below(name: str, folder: Traversable) -> Iterator[tuple[str, tuple[bool, str]]]:
    for one in folder.iterdir():
        if one.is_dir() and one.joinpath("__init__.py").is_file():
            yield from _below(f"{name}.{one.name}", one)
        elif one.name.endswith(".py"):
            is_package = one.name == "__init__.py"
            yield name if is_package else f"{name}.{one.name[:-3]}", (is_package, one.read_text("utf-8"))


class _RemoteVerb(Generic[T]):
    """A verb of Filesystem that the other side carries out. `kind`: the type of its result."""

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind

    def __set_name__(self, _: type, name: str) -> None:
        self.name = name

    def __get__(self, shell: RemoteShell, _: type) -> Callable[..., T | FileFault]:
        return functools.partial(shell.ask, self.kind, self.name)


class RemoteShell:
    """A LocalShell in another place: the files below the folder `root` there, which is created if missing, and commands beside
    them. Each verb is one round trip. `before`: a text before each command. Raises as RemoteConnection."""

    def __init__(self, connection: RemoteConnection, root: str, *, before: str = "") -> None:
        self.connection, self.root, self.before = connection, root, before

    def at(self, root: str) -> RemoteShell:
        """Another folder, over the same connection."""
        return RemoteShell(self.connection, root, before=self.before)

    def close(self) -> None:
        """End the other side, and what runs there; the next call begins it anew."""
        self.connection.close()

    def ask(self, kind: type[T], verb: str, *given: object, **more: Any) -> T | FileFault:
        """The result of a verb; raises Unavailable for one of another kind."""
        found = self.connection.call(self.root, verb, *given, **more)
        if not isinstance(found, kind | FileFault):
            raise Unavailable(f"{shlex.join(self.connection.prefix)}: the answer to {verb} is not understood.")
        return found

    ls, glob = _RemoteVerb(Listing), _RemoteVerb(Listing)
    read, grep, stat = _RemoteVerb(FileContent), _RemoteVerb(Matches), _RemoteVerb(FileEntry)
    write, edit, mkdir = _RemoteVerb(WriteResult), _RemoteVerb(WriteResult), _RemoteVerb(WriteResult)
    delete, move, resolve = _RemoteVerb(WriteResult), _RemoteVerb(WriteResult), _RemoteVerb(str)

    def folder(self) -> str:
        """No folder of this machine."""
        return ""

    def id(self) -> str:
        """Equal for the same folder behind the same command."""
        place = shlex.join([*self.connection.prefix, self.root])
        return f"remote-{encoding.digest(os.fsencode(place))[:16]}"

    def confined(self, confinement: Confinement | None, environment: Mapping[str, str] | None, refusal: str) -> Self:
        """Itself: its commands run elsewhere."""
        return self

    def execute(self, command: str, *, seconds: float = 120.0, folder: str = ".", variables: Mapping[str, str] | None = None,
                most: int = 100_000, stop: Callable[[], bool] | None = None) -> CommandResult | FileFault:  # fmt: skip
        """Run a command with `bash -c` there until its end or timeout; none of its descendants survives."""
        command = self.before + command if command.strip() else command
        return self.ask(CommandResult, "execute", command, seconds=seconds, folder=folder, variables=variables, most=most,
                         stop=stop)  # fmt: skip

    def start(
        self, command: str, *, seconds: float = 0.0, folder: str = ".", variables: Mapping[str, str] | None = None
    ) -> RemoteJob | FileFault:
        """Run a command in the background there; it ends with the connection."""
        command = self.before + command if command.strip() else command
        found = self.ask(str, "start", command, seconds=seconds, folder=folder, variables=variables)
        return found if isinstance(found, FileFault) else RemoteJob(self, found)


class RemoteJob:
    """A ShellJob in another place; it is cancelled if its connection is lost."""

    def __init__(self, shell: RemoteShell, id: str) -> None:
        self.shell, self.id = shell, id

    def page(self, offset: int = 0, most: int = 30_000) -> OutputPage:
        found = self.shell.connection.call(self.shell.root, "page", self.id, offset, most)
        return found if isinstance(found, OutputPage) else OutputPage(data=b"", offset=0, next=0, size=0)

    def status(self) -> CommandResult | None:
        """The result; None while it runs."""
        return self._result("status")

    def cancel(self) -> CommandResult:
        return self._result("cancel") or CommandResult(output=b"", exit=LOST, cause="cancelled")

    def _result(self, verb: str) -> CommandResult | None:
        try:
            found = self.shell.connection.call(self.shell.root, verb, self.id)
        except Unavailable as fault:
            return CommandResult(output=str(fault).encode(), exit=LOST, cause="cancelled")
        return found if isinstance(found, CommandResult) else None
