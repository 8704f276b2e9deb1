"""`doctor unattended`: what would stop this mission tonight, a line each with a remedy. Costs and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from harness.agents import registry, spenders
from harness.agents.clis import ABOUT
from harness.base import clock
from harness.base.errors import HarnessError
from harness.commands import status
from harness.commands.setup import agent_probe, doctor
from harness.commands.setup.agent_probe import Finding
from harness.decision import rules, views
from harness.mission import config, contract, roles, runs
from harness.mission.config import Config
from harness.state import names
from harness.state.layout import Layout, command
from harness.unattended import _crontab, _machine, _preflight, _programs, _times, schedules
from harness.unattended.schedules import CRON, Schedule
from harness.workplace import mission_lock

HOURS = 12  # the length of a night, for expiring logins
LOOKS_OF_DOCTOR = ("repository", "mission", "ledger", "names", "state")


def examine(layout: Layout) -> list[Finding]:
    """Find all obstacles, in the environment of a scheduled start."""
    found = [*_guarded(layout, "schedule", _schedule)]
    made, here = _quietly(layout), dict(os.environ)
    variables = schedules.as_started(made, here, _above()) if made else here
    with schedules.exchanged(variables):
        for what, look in LOOKS:
            found += _guarded(layout, what, look)
        found += _guarded(layout, "agents", lambda where: _agents(where, here))
        found += _guarded(layout, "PATH", lambda where: _path(where, here))
    return [*_once(found)]


def _once(found: list[Finding]) -> Iterator[Finding]:
    """Drop faults that an earlier look also found, such as an unreadable settings file."""
    said = set()
    for one in found:
        fault = one.what.partition(": ")[2]
        if one.state != "bad" or fault not in said:
            yield one
        if one.state == "bad":
            said.add(fault)


def _guarded(layout: Layout, what: str, look: Callable[[Layout], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look(layout)
    except HarnessError as fault:
        yield _bad(f"{what}: {fault}")


def _quietly(layout: Layout) -> Schedule | None:
    try:
        return schedules.load(layout)
    except HarnessError:  # `_schedule` reports it
        return None


def _above() -> dict[str, str]:
    """The variables set by the person's crontab lines."""
    try:
        return _crontab.variables(_crontab.read()) if _crontab.available() else {}
    except HarnessError:
        return {}


def _bad(what: str) -> Finding:
    return Finding(state="bad", what=what)


def _ok(what: str) -> Finding:
    return Finding(state="ok", what=what)


def _note(what: str) -> Finding:
    return Finding(state="note", what=what)


def _schedule(layout: Layout) -> Iterator[Finding]:
    """Whether the mission is scheduled."""
    made = schedules.load(layout)
    if made is None:
        loops = mission_lock.looping(layout)
        yield (
            _note("schedule: none, but run.sh is working on the mission now")
            if loops
            else _bad(f"schedule: nothing starts the mission: {command('schedule add --every 30m')}")
        )
        return
    if made.place != CRON:
        yield from _elsewhere(made)
        return
    mine = [one for one in _crontab.entries(_crontab.read()) if one.id == made.id]
    again = f"run it again: {command('schedule add')}"
    if not mine:
        yield _bad(f"schedule: its lines are gone from your crontab; {again}")
    elif sorted(one.times for one in mine) != sorted(made.times) or mine[0].command != schedules.start_words(layout):
        yield _bad(f"schedule: its lines in your crontab were changed; {again}")
    elif _machine.cron_runs() is False:
        yield _bad("cron: no cron daemon runs: sudo systemctl enable --now cron, or: sudo service cron start")
    else:
        unsure = " (unknown whether cron runs)" if _machine.cron_runs() is None else ""
        after = _times.following(made.known_times, clock.now())
        when = clock.local(after, clock.now()) if after else "in more than a month"
        yield _ok(f"schedule: {', '.join(made.times)} for {made.goes_on}; next {when}{unsure}")


def _elsewhere(made: Schedule) -> Iterator[Finding]:
    name = f"harness-{made.id}.timer"
    if made.place == "systemd" and registry.installed("systemctl"):
        if _machine.asked("systemctl", "--user", "is-active", name) != "active":
            yield _bad(f"schedule: the timer is not active: systemctl --user enable --now {name}")
            return
        lingers = _machine.asked("loginctl", "show-user", str(os.getuid()), "-p", "Linger", "--value")
        yield (
            _ok(f"schedule: {name} is active")
            if lingers == "yes"
            else _bad("schedule: the timer ends when you log out: loginctl enable-linger")
        )
        return
    label = f"harness.{made.id}"
    if registry.installed("launchctl"):
        known = _machine.asked("launchctl", "list", label)
        path = f"~/Library/LaunchAgents/{label}.plist"
        yield (
            _ok(f"schedule: {label} is loaded")
            if known
            else _bad(f"schedule: {label} is not loaded: launchctl bootstrap gui/{os.getuid()} {path}")
        )
        return
    yield _note(f"schedule: for {made.place}, which cannot be checked here")


def _folder(layout: Layout) -> Iterator[Finding]:
    """The faults that doctor finds in the folder, as far as they stop a start."""
    found = [one for what, look in doctor.LOOKS if what in LOOKS_OF_DOCTOR for one in _guarded(layout, what, look)]
    bad = [one for one in found if one.state == "bad"]
    yield from bad or [_ok("folder: repository, mission, settings and state are valid")]
    last = next(runs.finished(layout), None)
    if last and last.unlanded:
        yield _note(f"branch: {last.unlanded}")


def _due(layout: Layout) -> Iterator[Finding]:
    """Whether the mission needs a person before anything starts."""
    view = views.gather(layout)
    due = rules.decide(view, clock.now())
    if due.word == "DONE":
        yield _note("due: DONE, so there is nothing to do tonight")
    elif due.word in ("NEXT", "WAIT"):
        yield _ok(f"due: {due.line}")
    else:
        yield _bad(f"due: {due.line}: {status.why(view, due)}")
    for cap in rules.near(view.limits, view.totals):
        if cap.percent < 100:
            yield _note(
                f"caps: {cap.words}; the mission stops when it is used up: {cap.key} in [limits] of config.toml"
            )


def _money(layout: Layout) -> Iterator[Finding]:
    """Whether costly agents have a cap."""
    (costly, hidden), settings = spenders.configured(layout), config.load(layout)
    where = f"[limits] in {layout.shown(names.CONFIG)}"
    if costly and settings.max_cost_usd is None and settings.max_tokens is None:
        yield _bad(f"cost: {', '.join(costly)} may cost without bound: write max_cost_usd = 10 under {where}")
    elif hidden and settings.max_tokens is None:
        tables = " and ".join(f"[prices.{name}]" for name in hidden)
        yield _bad(
            f"cost: max_cost_usd does not cover the cost of {', '.join(hidden)}: write {tables}, or max_tokens under {where}"
        )
    else:
        yield _ok("cost: capped" if costly else "cost: nothing, its agents are free")


def _disk(layout: Layout) -> Iterator[Finding]:
    yield from [_bad(line) for line in _preflight.disk(layout)] or [_ok("disk: enough space")]


def _clock(layout: Layout) -> Iterator[Finding]:
    """Whether the clock was set back, which makes waits and times wrong."""
    last = next(runs.finished(layout), None)
    if last and last.ended > clock.now() + runs.CLOCK_STEP:
        yield _bad(f"clock: it is behind the newest run, which ended at {clock.stamp(last.ended)}: correct it")
    else:
        yield _ok(f"clock: {clock.stamp(clock.now())}, here {clock.local(clock.now(), clock.now())}")


def _wanted(layout: Layout, settings: Config) -> list[str]:
    """The agents of the roles that become due automatically."""
    found = [
        name
        for capability, role in roles.due(layout).items()
        if capability not in ("curates", "answers")
        for name in roles.agents_of(settings, roles.load(layout, role))
    ]
    place = layout.shown(names.CONFIG)
    chosen = registry.choose(list(dict.fromkeys(found)), layout.folders.project, place)
    return [name for name in chosen if name != registry.NONE]


def _agents(layout: Layout, here: dict[str, str]) -> Iterator[Finding]:
    """Whether each agent is installed, trusted and logged in for an unattended start; `here`: the present variables."""
    settings = config.load(layout)
    for name in _wanted(layout, settings):
        found = next((one for one in doctor.agents_of(layout, [name])), None)
        if found and found.state == "bad":
            yield found
        elif name in ABOUT:
            yield _login(layout, name, settings, here)
        else:
            yield _ok(f"agent {name}: ready")
    for stops, text in _preflight.ends_tonight(_wanted(layout, settings), settings, HOURS):
        yield _bad(text) if stops else _note(text)


def _login(layout: Layout, name: str, settings: Config, here: dict[str, str]) -> Finding:
    """Whether a CLI is logged in, as far as visible: by a key, by a file, or because it has answered here."""
    seen, how = agent_probe.login(name, _preflight.environment_of(name, settings)), ABOUT[name].login
    last = next((one for one in runs.finished(layout) if one.agent == name), None)
    if last and last.outcome == "auth":
        return _bad(f"login: {name} refused the newest run: {last.reason.split(chr(10))[0]}; log in again: {how}")
    if seen:
        return _ok(f"agent {name}: login {seen}")
    if key := next((key for key in ABOUT[name].keys if here.get(key)), ""):
        ways = f"put {key}=… at the top of your crontab (crontab -e), or into env of [agents.{name}] in config.toml"
        return _bad(f"login: {key} is set here, but a scheduled start has no keys: {ways}; or log in: {how}")
    if last and last.outcome in runs.GOOD:
        return _note(f"agent {name}: no login found, but it answered in {last.run}")
    return _bad(f"login: none found for {name}: {how}; then: {command('doctor agents --try')}")


def _path(layout: Layout, here: dict[str, str]) -> Iterator[Finding]:
    """The programs that checks call and that exist here, but not on the PATH of a start."""
    path = os.environ.get("PATH", os.defpath)
    known = contract.load(layout)
    texts = [
        known.setup,
        *(one.run for one in known.services),
        *(one.run for claim in known.claims for one in claim.checks),
    ]
    lost = [
        name
        for name in _programs.called(texts)
        if _programs.on(here.get("PATH", ""), name) and not _programs.on(path, name)
    ]
    if lost:
        again = command("schedule add")
        yield _bad(f"PATH: a start will not find {', '.join(lost[:5])}, which checks call: run it again: {again}")
    unset = [name for name in config.load(layout).passed if name in here and name not in os.environ]
    if unset:
        ways = "put each at the top of your crontab (crontab -e)"
        yield _bad(f"environment: {', '.join(unset)} of [env] pass is set here, but not for a scheduled start: {ways}")
    if not lost:
        yield _ok("PATH: has the programs that checks call")


LOOKS: tuple[tuple[str, Callable[[Layout], Iterator[Finding]]], ...] = (
    ("folder", _folder),
    ("due", _due),
    ("cost", _money),
    ("disk", _disk),
    ("clock", _clock),
)
