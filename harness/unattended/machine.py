"""What this machine does at night, as far as it says: whether it sleeps, whether cron runs, whether its clock is right."""

from __future__ import annotations

import os
import sys

from harness.agents import registry
from harness.process import spawn
from harness.store import files

SECONDS = 10.0
DAEMONS = ("cron", "crond", "fcron", "cronie", "bcron-sched", "dcron", "busybox-crond")
SUSPEND = "suspend.target"
LOGIND = "/etc/systemd/logind.conf"
STATES = "/sys/power/state"
CAN_SLEEP = ("mem", "disk", "standby")
GNOME = "org.gnome.settings-daemon.plugins.power"


def asked(*words: str) -> str:
    """What a program says, "" where it is absent or fails."""
    if not registry.installed(words[0]):
        return ""
    try:
        code, out, _ = spawn.capture([*words], cwd="/", wall_seconds=SECONDS)
    except TimeoutError:
        return ""
    return "" if code else out.decode("utf-8", "replace").strip()


def cron_runs() -> bool | None:
    """Whether a cron daemon runs; None where that cannot be seen. (On macOS launchd starts it once there is a crontab.)"""
    if sys.platform == "darwin":
        return True
    if not os.path.isdir("/proc/self"):
        return None
    names = [_name(pid) for pid in os.listdir("/proc") if pid.isdigit()]
    return any(name in DAEMONS for name in names)


def _name(pid: str) -> str:
    try:
        return files.read_from(f"/proc/{pid}/comm", 0, 64).strip().decode("utf-8", "replace")
    except ProcessLookupError:  # it ended while it was read
        return ""


def sleeps() -> tuple[bool | None, str]:
    """(whether it goes to sleep by itself, how that is known); None where nothing says so."""
    return _mac() if sys.platform == "darwin" else _linux()


def _mac() -> tuple[bool | None, str]:
    """`pmset -g`: minutes of `sleep`, 0 for never."""
    rows = [line.split() for line in asked("pmset", "-g").split("\n")]
    minutes = next((row[1] for row in rows if len(row) > 1 and row[0] == "sleep"), "")
    if not minutes.isdigit():
        return None, "pmset does not say"
    if minutes == "0":
        return False, "pmset: sleep 0"
    return True, f"pmset: it sleeps after {minutes} min; to prevent that: sudo pmset -c sleep 0"


def _linux() -> tuple[bool | None, str]:
    states = files.read_from(STATES, 0, 256).decode("utf-8", "replace").split() if os.path.exists(STATES) else []
    if not any(one in CAN_SLEEP for one in states):
        return False, "this kernel offers no sleep"
    if asked("systemctl", "show", "-p", "LoadState", "--value", SUSPEND) == "masked":
        return False, f"{SUSPEND} is masked"
    if action := _logind():
        return True, f"{LOGIND} has IdleAction={action}; to prevent that: sudo systemctl mask sleep.target {SUSPEND}"
    kind = asked("gsettings", "get", GNOME, "sleep-inactive-ac-type").strip("'")
    after = asked("gsettings", "get", GNOME, "sleep-inactive-ac-timeout").split(" ")[-1]
    if kind in ("suspend", "hibernate") and after.isdigit() and int(after):
        prevent = f"gsettings set {GNOME} sleep-inactive-ac-type nothing"
        return True, f"the desktop suspends after {int(after) // 60} min; to prevent that: {prevent}"
    return (
        None,
        f"nothing says so; a closed lid or a desktop may. To prevent it: sudo systemctl mask sleep.target {SUSPEND}",
    )


def _logind() -> str:
    """What systemd does where nobody is active, "" for nothing."""
    text = files.read_from(LOGIND, 0, 65536).decode("utf-8", "replace")
    rows = [line.partition("=") for line in text.split("\n")]
    action = next((value.strip() for name, _, value in rows if name.strip() == "IdleAction"), "")
    return "" if action in ("", "ignore", "lock") else action


def synchronised() -> bool | None:
    """Whether the clock is kept right over the network; None where nothing says so."""
    said = asked("timedatectl", "show", "-p", "NTPSynchronized", "--value")
    return {"yes": True, "no": False}.get(said)
