"""Free checks before a start for obstacles: agents, their logins, and disk space."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.agents import registry
from harness.agents.clis import ABOUT
from harness.base import clock
from harness.base.errors import Unavailable, UsageFault
from harness.mission import config, roles, runs
from harness.mission.config import Config
from harness.state import layout, names
from harness.state.layout import Layout, command
from harness.unattended import _logins
from harness.unattended.schedule_log import StartMemory

MIN_FREE_MIB, MIN_FREE_FILES = 1024, 10_000
REFUSED = ("auth", "config")  # the outcomes after which a person must fix an agent
AGAIN_SECONDS = 6 * 3600  # afterwards it may be paid or fixed elsewhere


def faults(where: Layout, role: str, seen: StartMemory) -> list[str]:
    """Why a run of this role would fail, each with a remedy, a line each; [] if nothing is known."""
    settings = config.load(where)
    agents = roles.agents_of(settings, roles.load(where, role))
    agents = registry.choose(agents, where.folders.project, where.shown(names.CONFIG))
    return [*disk(where), *_agents(where, settings, role, agents), *_refused(where, settings, agents, seen)]


def disk(where: Layout) -> list[str]:
    """The places of runs that are nearly full: less than a GiB, or than 10,000 files, left."""
    places = {where.state, layout.state_home(), os.environ.get("TMPDIR") or "/tmp"}
    found = {}
    for place in sorted(places):
        there = place
        while not os.path.isdir(there):
            there = os.path.dirname(there)
        room = os.statvfs(there)
        free, names = room.f_bavail * room.f_frsize // 2**20, room.f_favail
        few = room.f_files > 0 and names < MIN_FREE_FILES  # some file systems do not count files
        if free < MIN_FREE_MIB or few:
            left = f"{free} MiB, less than {MIN_FREE_MIB}" if free < MIN_FREE_MIB else f"room for {names} files"
            found[os.stat(there).st_dev] = (
                f"disk: {left} left at {there}; make room, perhaps: {command('gc --keep-days 30')}"
            )
    return [*found.values()]


def _agents(where: Layout, settings: Config, role: str, names: list[str]) -> list[str]:
    """Why none of the agents can answer: not installed, no trust, or an expired login. An embedded agent always can."""
    if registry.embedded(names) or registry.NONE in names:
        return []
    try:
        ready, missing = registry.available(names, lambda name: registry.settings_of(where, settings, name, role))
    except Unavailable as fault:
        return [f"agent: {fault}"]
    over = [line for name, _ in ready for line in _over(name, settings)]
    return [f"agent: {fault}" for fault in missing.values()] + over if len(over) == len(ready) else []


def _over(name: str, settings: Config) -> list[str]:
    env = environment_of(name, settings)
    if name not in ABOUT or any(env.get(key) for key in ABOUT[name].keys):
        return []
    return [_ended(name, one) for one in _logins.ending(name, env) if one.until <= clock.now() and not one.renews][:1]


def _ended(name: str, login: _logins.Login) -> str:
    when = clock.local(login.until, clock.now())
    return f"login: that of {name} ended at {when} ({login.path}); log in again: {ABOUT[name].login}"


def environment_of(name: str, settings: Config) -> dict[str, str]:
    """The environment of an agent's program: this process's and its table's."""
    own = settings.agents.get(name, {}).get("env", {})
    return {**os.environ, **{key: str(value) for key, value in own.items()}}


def _refused(where: Layout, settings: Config, names: list[str], seen: StartMemory) -> list[str]:
    """A line if the newest run's agent was refused, and since then its login has not changed and little time has passed."""
    last = next(runs.finished(where), None)
    same = bool(seen.failed) and seen.failed == _logins.fingerprint(where, settings, names, os.environ)
    if last is None or last.outcome not in REFUSED or not same or clock.now() - seen.failed_at >= AGAIN_SECONDS:
        return []
    return [f"agent: {last.agent} was refused ({last.outcome}): {' / '.join(last.reason.split(chr(10)))}"]


def refusal(where: Layout) -> str:
    """The present fingerprint of the newest run's logins, if it ended because one was refused; else ""."""
    last = next(runs.finished(where), None)
    if last is None or last.outcome not in REFUSED:
        return ""
    settings = config.load(where)
    try:
        names = roles.agents_of(settings, roles.load(where, last.role))
    except UsageFault:  # a removed custom role
        return ""
    return _logins.fingerprint(where, settings, names, os.environ)


def ends_tonight(names: list[str], settings: Config, hours: int) -> Iterator[tuple[bool, str]]:
    """(whether it stops a run, message) for each login that ends within so many hours."""
    for name in (one for one in names if one in ABOUT):
        env = environment_of(name, settings)
        key = any(env.get(one) for one in ABOUT[name].keys)
        for one in _logins.ending(name, env) if not key else ():
            when = clock.local(one.until, clock.now())
            if one.until > clock.now() + hours * 3600:
                continue
            if one.renews:
                yield False, f"login: that of {name} is valid until {when} and renews itself ({one.path})"
            elif one.until <= clock.now():
                yield True, _ended(name, one)
            else:
                yield True, f"login: that of {name} ends at {when} ({one.path}); log in again: {ABOUT[name].login}"
