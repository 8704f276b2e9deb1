"""Kills of git alone, or of git and the process of ours that waits for it, at each disk call of each git that is started.

strace counts the calls of each process for itself, so a point such as `rename 1` strikes the first process that comes to it,
and never a later one. Here the git that shall die is chosen by its number: a program of that name, first on the PATH, counts.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.kill_sweep import CALLS, KILL, STRACE, Point, Sweep
from tests.missions import Done

WRAPPER = """#!/bin/bash
here={here}; number=0
exec 9<>"$here/lock"; flock 9
read -r number <"$here/count"; number=$((number + 1))
{{ echo "$number" >"$here/count"; }} 2>/dev/null || exec {git} "$@"
exec 9>&-
{strike}
exec {git} "$@"
"""
TRACED = 'exec {strace} -o "$here/trace.$number" -e trace={calls} {git} "$@"'
STRUCK = """if [ "$number" = {number} ]; then
    {strace} -o "$here/trace" -e trace={call} -e inject={call}:{fault}:when={at} {git} "$@"; code=$?
    [ "$code" -lt 129 ] || kill -9 {whom}
    exit "$code"
fi"""
ALONE, BOTH = "$$", '"$PPID" $$'


class GitSweep(Sweep):
    """A sweep over the git calls of a program. `both`: what waits for that git dies with it."""

    def __init__(
        self,
        words: Sequence[str],
        prepare: Callable[[], object],
        *,
        where: Path,
        env: Mapping[str, str],
        meanwhile: Callable[[Callable[[], bool]], object],
        both: bool = True,
    ) -> None:
        self.here, self.both, self.git = where.parent / "gits", both, shutil.which("git", path=env["PATH"]) or "git"
        (self.here / "bin").mkdir(parents=True, exist_ok=True)
        env = {**env, "PATH": f"{self.here}/bin:{env['PATH']}"}
        super().__init__(words, prepare, where=where, env=env, meanwhile=meanwhile)
        self.trace = self.here / "trace"

    def points(self) -> list[Point]:
        """Every disk call of every git of a run without a fault: `git 12 rename`, and which of these it is."""
        self.prepare()
        self._wrap(TRACED.format(strace=shlex.join(STRACE), calls=",".join(CALLS), git=shlex.quote(self.git)))
        done = self.plainly()
        assert done.code == 0, done
        found = []
        for path in sorted(self.here.glob("trace.*"), key=lambda path: int(path.suffix[1:])):
            seen: dict[tuple[str, str], int] = {}
            for pid, call in re.findall(r"^(\d+) +(\w+)\(", path.read_text(errors="replace"), re.M):
                seen[pid, call] = seen.get((pid, call), 0) + 1
                found.append(Point(f"git {path.suffix[1:]} {call}", seen[pid, call]))
            path.unlink()
        return list(dict.fromkeys(found))

    def strike(self, point: Point | None) -> Done:
        """Run the program; the git of the point dies at it."""
        assert point is not None
        _, number, call = point.call.split(" ")
        words = {
            "number": number,
            "call": call,
            "at": point.number,
            "fault": KILL,
            "whom": BOTH if self.both else ALONE,
        }
        self._wrap(STRUCK.format(strace=shlex.join(STRACE), git=shlex.quote(self.git), **words))
        self.trace.unlink(missing_ok=True)
        return self.plainly()

    def struck(self) -> bool:
        """Whether that git came to its point."""
        return self.trace.exists() and " = ?" in self.trace.read_text(errors="replace")

    def _wrap(self, strike: str) -> None:
        path = self.here / "bin" / "git"
        path.write_text(WRAPPER.format(here=shlex.quote(str(self.here)), git=shlex.quote(self.git), strike=strike))
        path.chmod(0o755)
        (self.here / "count").write_text("0\n")
        (self.here / "lock").touch()
