"""The schedule of a mission, in `.harness/schedule/` and in the crontab: its times, duration and environment."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from harness.agents import registry
from harness.base import clock, encoding, schema
from harness.base.errors import BrokenFile, Unavailable, UsageFault
from harness.base.record import Record
from harness.mission import mission
from harness.process.variables import holds_login
from harness.state import files, layout, names
from harness.state.layout import Layout, command
from harness.unattended import _crontab
from harness.unattended._crontab import CrontabEntry
from harness.workplace import run_detection

DEFAULT_SHARE = "25m"  # the default duration with --cron
UNITS = {"m": (60, "*/{} * * * *", "* * * * *"), "h": (24, "0 */{} * * *", "0 * * * *"), "d": (1, "", "0 0 * * *")}
MINUTES = {"m": 1, "h": 60, "d": 24 * 60}
FIELDS = re.compile(r"[\w*,/-]+( [\w*,/-]+){4}", re.ASCII)  # their values are judged by the crontab program
UTF8 = "C.UTF-8"
KEPT = (  # variables that a start needs and cron lacks; without keys
    *("PATH", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR"),
    *("HARNESS_IDENTITY", "HARNESS_PYTHON", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY"),
    *("NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
AS_CRON = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}


class Schedule(Record):
    """The settings of a start. `times`: five fields each; `goes_on`: its duration; `lanes`: 0 for that in config.toml;
    `environment`: the person's saved variables."""

    id: str
    times: list[str]
    goes_on: str
    environment: dict[str, str]
    lanes: int = 0
    place: str = ""  # of earlier schedules: nothing reads this and the next
    added: str = ""


def path_of(where: Layout) -> str:
    """The file of a mission's schedule."""
    return os.path.join(where.path(names.SCHEDULE), "schedule.json")


def load(where: Layout) -> Schedule | None:
    """The schedule of this mission, None without one; raises BrokenFile if it is malformed."""
    value = files.read_json(path_of(where))
    if value is None:
        return None
    found = "; ".join(map(str, schema.faults(value, "the schedule", Schedule)))
    wrong = None if found else next((one for one in value["times"] if not FIELDS.fullmatch(one)), None)
    if found or wrong is not None:
        fault = found or f"{wrong!r} is not minute, hour, day, month and weekday"
        remedy = f"Give the times again: {command('schedule add --every 30m')}"
        raise BrokenFile(path_of(where), fault, remedy=remedy)
    return schema.record(Schedule, value, "a schedule has")


def require(where: Layout, schedule_id: str = "") -> Schedule:
    """The schedule of this mission; raises UsageFault without one, or if its id differs, as in a copy of the folder."""
    found = load(where)
    if found is None or schedule_id not in ("", found.id):
        raise UsageFault(
            f"There is no schedule {schedule_id + ' ' if schedule_id else ''}for {where.folders.project}. Add one: "
            f"{command('schedule add --every 30m')}"
            + (
                f"   or remove its line from the crontab: {command('schedule remove')} {schedule_id}"
                if schedule_id
                else ""
            )
        )
    return found


def id_of(where: Layout) -> str:
    """The schedule's id, constant per folder: its name, and a prefix of the digest of its path."""
    name = os.path.basename(where.folders.project).lower()
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name).strip("-")
    return f"{plain[:40].strip('-') or 'mission'}-{encoding.digest(os.fsencode(where.folders.project))[:6]}"


def add(where: Layout, every: str, cron: list[str], goes_on: str, lanes: int) -> Schedule:
    """Store the schedule, and add it to the crontab, or replace an earlier one. Without times, keeps its times, duration and
    lanes."""
    run_detection.refuse(where, "schedule add")
    mission.check_format(where)
    old = None
    with suppress(BrokenFile):  # it is replaced
        old = load(where)
    again = old if old and not every and not cron else None
    if bool(every) == bool(cron) and not again:
        raise UsageFault(f"Give an interval: {command('schedule add --every 30m')}, or --cron '*/30 22-23,0-6 * * *'")
    made = Schedule(
        id=id_of(where),
        times=again.times if again else _times(every, cron),
        goes_on=_duration(goes_on or (again.goes_on if again else _share(every) if every else DEFAULT_SHARE)),
        environment=captured(os.environ),
        lanes=lanes or (again.lanes if again else 0),
    )
    ours = [
        CrontabEntry(times=one, folder=where.folders.project, id=made.id, command=start_words(where))
        for one in made.times
    ]

    def with_ours(found: list[CrontabEntry]) -> list[CrontabEntry]:
        files.replace(path_of(where), encoding.dump_json(made.asdict()))  # first: a start may need it immediately
        moved = {one.id for one in found if old and one.id == old.id and not os.path.isdir(one.folder)}
        return [*(one for one in found if one.id not in {made.id, *moved}), *ours]

    with _put_back(path_of(where)):
        _crontab.change(with_ours)
    return made


def _times(every: str, cron: list[str]) -> list[str]:
    """The five fields of each time."""
    times = [_every(every)] if every else [" ".join(text.split()) for text in cron]
    bad = next((text for text in times if not FIELDS.fullmatch(text)), None)
    if bad is not None:
        example = "'*/30 22-23,0-6 * * 1-5'"
        raise UsageFault(f"'{bad}' is not minute, hour, day, month and weekday, such as {example}.")
    return list(dict.fromkeys(times))


def _every(text: str) -> str:
    """The five fields of `30m`, `2h` or `1d`; raises UsageFault if the times would not be evenly spaced."""
    number, unit = text[:-1], text[-1:]
    most, fields, single = UNITS.get(unit, (0, "", ""))
    count = int(number) if number.isascii() and number.isdigit() and len(number) < 4 else 0
    if not count or not most or most % count or (count == most and unit != "d"):
        known = "1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes (30m), 1, 2, 3, 4, 6, 8 or 12 hours (2h), or 1d"
        raise UsageFault(f"'{text}' does not divide an hour or a day. --every takes {known}; --cron takes any times.")
    return fields.format(count) if count > 1 else single


def _share(text: str) -> str:
    """The default time limit of a start of `--every`: five sixths of the interval, so that it does not meet the next."""
    return f"{max(1, int(text[:-1]) * MINUTES[text[-1]] * 5 // 6)}m"


def _duration(text: str) -> str:
    if text[-1:] not in ("m", "h") or not clock.span(text):
        raise UsageFault(f"invalid duration '{text}': --for takes minutes or hours, such as 25m or 8h.")
    return text


@contextmanager
def _put_back(path: str) -> Iterator[None]:
    """Restore a file if the block fails."""
    before = files.read(path)
    try:
        yield
    except BaseException:
        if files.read(path) != before:
            files.replace(path, before) if before is not None else files.remove(path)
        raise


def remove(where: Layout, schedule_id: str) -> tuple[str, bool]:
    """Remove a schedule from the crontab, by default this mission's, and its settings: (its id, whether it existed). The log
    stays. Raises UsageFault for an unknown id."""
    run_detection.refuse(where, "schedule remove")
    wanted, gone = schedule_id or id_of(where), list[CrontabEntry]()

    def without(found: list[CrontabEntry]) -> list[CrontabEntry]:
        gone[:] = [one for one in found if one.id == wanted]
        if schedule_id and not gone and wanted != id_of(where):
            there = ", ".join(dict.fromkeys(one.id for one in found)) or "none"
            raise UsageFault(f"There is no schedule '{wanted}' in your crontab. There: {there}.")
        return [one for one in found if one.id != wanted]

    if _crontab.available():
        _crontab.change(without)
    folder = gone[0].folder if gone else where.folders.project if wanted == id_of(where) else ""
    path = path_of(Layout(folder)) if folder else ""
    kept = bool(path) and os.path.exists(path)
    if kept:
        files.remove(path)
    return wanted, bool(gone) or kept


def run_now(where: Layout) -> int:
    """Execute the crontab's command with cron's shell and environment; returns its exit code."""
    run_detection.refuse(where, "schedule run-now")
    require(where)
    above = _crontab.variables(_crontab.read()) if _crontab.available() else {}
    line = shlex.join([*start_words(where), "--now"])
    env = {name: value for name, value in {**AS_CRON, **above}.items() if name != "MAILTO"}
    env |= {name: os.environ[name] for name in ("HOME", "LOGNAME") if name in os.environ}
    return subprocess.run([env["SHELL"], "-c", line], cwd=os.path.expanduser("~"), env=env, check=False).returncode


def start_words(where: Layout) -> list[str]:
    """The command that starts this mission: with absolute paths, so that it needs no PATH."""
    script = os.path.join(layout.home(), "run.sh")
    return [_bash(), script, "-C", where.folders.project, "schedule", "start", id_of(where)]


def _bash() -> str:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, "bash")
        if os.path.isabs(folder) and registry.installed(path):
            return path
    raise Unavailable("There is no bash on the PATH, but run.sh needs it.")


def captured(base: Mapping[str, str]) -> dict[str, str]:
    """The variables that a start keeps: without keys, and only absolute folders of the PATH."""
    wanted = {*KEPT, *registry.settings_variables()}
    kept = {name: base[name] for name in sorted(wanted) if base.get(name) and not holds_login(name, base[name])}
    folders = [one for one in base.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(one)]
    locale = next((base[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if _is_utf8(base.get(name, ""))), UTF8)
    return {**kept, "PATH": os.pathsep.join(dict.fromkeys(folders)), "LC_ALL": locale}


def _is_utf8(name: str) -> bool:
    return name.upper().replace("-", "").endswith("UTF8")


@contextmanager
def exchanged(variables: Mapping[str, str]) -> Iterator[None]:
    """Replace all environment variables of this process temporarily."""
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(variables)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
