"""Local files with a shell: commands run in place with a timeout, and none of their descendants outlives them."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Self

from harness.base import console, encoding
from harness.base.errors import Unavailable
from harness.filesystem._background import Background
from harness.filesystem._faults import catch_faults
from harness.filesystem._spool import Ends
from harness.filesystem.local import Local, Mount
from harness.filesystem.protocol import CommandResult, FileFault
from harness.process import supervise
from harness.process.confine import Confinement
from harness.process.supervise import ChildEnd
from harness.process.variables import passing

SET = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
GRACE_SECONDS = 1.0  # from TERM to KILL
FOREVER_SECONDS = 14 * 24 * 3600.0
TERMINATED = -15


class LocalShell(Local):
    """A Local that can run commands. `environment`: their whole environment, None: the passing part of this process's;
    `confine`: their confinement; `grace_seconds`: from TERM to KILL at their end; `refusal`: why commands are not
    allowed, or "". The other arguments are those of Local."""

    def __init__(
        self,
        root: str,
        *,
        read_only: Iterable[str] = (),
        also: Mapping[str, Mount] | None = None,
        homes: Iterable[str] = (),
        with_rg: bool = True,
        environment: Mapping[str, str] | None = None,
        confine: Confinement | None = None,
        grace_seconds: float = GRACE_SECONDS,
        refusal: str = "",
    ) -> None:
        seen = [confine.seen(os.path.realpath(root))] if confine else []
        super().__init__(root, read_only=read_only, also=also, homes=[*seen, *homes], with_rg=with_rg)
        self.environment = dict(passing(os.environ) if environment is None else environment)
        self.confine, self.grace_seconds, self.refusal = confine, grace_seconds, refusal

    def id(self) -> str:
        """Equal for every Local of this folder on this machine."""
        return f"local-{encoding.digest(os.fsencode(self.root))[:16]}"

    def confined(self, confinement: Confinement | None, environment: Mapping[str, str] | None, refusal: str) -> Self:
        """The same files with confined commands; itself if its commands are confined already."""
        if self.confine is not None:
            return self
        made = copy.copy(self)
        made.confine, made.refusal = confinement, refusal or self.refusal
        made.environment = dict(self.environment if environment is None else environment)
        made.homes = [confinement.seen(self.root), *self.homes] if confinement else self.homes
        return made

    def execute(self, command: str, *, seconds: float = 120.0, folder: str = ".", variables: Mapping[str, str] | None = None,
                most: int = 100_000, stop: Callable[[], bool] | None = None) -> CommandResult | FileFault:  # fmt: skip
        """Run a command with `bash -c` until its end or timeout; none of its descendants survives."""
        where = self._where(command, variables, folder)
        if isinstance(where, FileFault):
            return where
        ends, cancelled = {name: Ends(most) for name in ("output", "stdout", "stderr")}, False
        plain = console.PlainOutput()
        with self.child(command, where, seconds, variables, merge=False) as child:
            for stream, data in child.output():
                if data:
                    ends["output"].add(plain.add(data))
                    ends[stream].add(data)
                if not cancelled and stop and stop():
                    cancelled = True
                    child.stop()
        ends["output"].add(plain.add(b""))
        assert child.ended, "output() ends only with the tree"
        texts = {name: one.text() for name, one in ends.items()}
        return command_result(child.ended, ends["output"].lost, **texts)

    def start(self, command: str, *, seconds: float = 0.0, folder: str = ".",
              variables: Mapping[str, str] | None = None) -> Background | FileFault:  # fmt: skip
        """Run a command in the background."""
        where = self._where(command, variables, folder)
        if isinstance(where, FileFault):
            return where
        return Background(lambda: self.child(command, where, seconds or FOREVER_SECONDS, variables), command_result)

    def child(
        self, command: str, where: str, seconds: float, variables: Mapping[str, str] | None, *, merge: bool = True
    ) -> supervise.Child:
        """The command as a supervised child; raises Unavailable without bash, and if commands are not allowed."""
        if self.refusal:
            raise Unavailable(self.refusal)
        return supervise.Child(
            ["bash", "-c", command],
            cwd=where,
            env={**self.environment, **SET, "PWD": where, **(variables or {})},
            wall_seconds=seconds,
            grace_seconds=self.grace_seconds,
            merge=merge,
            ordered=not merge,
            confine=self.confine,
        )

    def _where(self, command: str, variables: Mapping[str, str] | None, folder: str) -> str | FileFault:
        """The path without links of the folder in which a valid command runs."""
        known = variables or {}
        texts = [command, *known, *known.values()]
        if not command.strip() or any("\0" in text for text in texts) or any(not name or "=" in name for name in known):
            text = "The command is empty, or it or its variables contain a NUL."
            return FileFault(kind="invalid", path="", text=text)
        return catch_faults(folder, lambda: self._folder(folder))

    def _folder(self, folder: str) -> str:
        """The path of a folder, without links."""
        beneath, names, _ = self.located(folder)
        fd, names = beneath.listed(names)
        os.close(fd)
        return os.path.join(beneath.folder, *names)


def command_result(ended: ChildEnd, lost: int = 0, **texts: bytes) -> CommandResult:
    """Convert the end of a command to a CommandResult."""
    cause = {"exit": "exit", "wall": "timeout"}.get(ended.cause, "cancelled")
    status = ended.exit if ended.exit is not None else -ended.signal if ended.signal else TERMINATED
    return CommandResult(**{"output": b"", **texts}, exit=status, cause=cause, seconds=ended.seconds, lost=lost)
