"""The schedulers of this machine: whether a cron daemon runs, and the answers of systemd and launchd."""

from __future__ import annotations

import os
import sys

from harness.agents import registry
from harness.process import spawn
from harness.state import files

SECONDS = 10.0
DAEMONS = ("cron", "crond", "fcron", "cronie", "bcron-sched", "dcron", "busybox-crond")


def asked(*words: str) -> str:
    """The output of a program, "" if it is absent or fails."""
    if not registry.installed(words[0]):
        return ""
    try:
        code, out, _ = spawn.capture([*words], cwd="/", wall_seconds=SECONDS)
    except TimeoutError:
        return ""
    return "" if code else out.decode("utf-8", "replace").strip()


def cron_runs() -> bool | None:
    """Whether a cron daemon runs; None if unknown. (On macOS launchd starts it once a crontab exists.)"""
    if sys.platform == "darwin":
        return True
    if not os.path.isdir("/proc/self"):
        return None
    names = [_name(pid) for pid in os.listdir("/proc") if pid.isdigit()]
    return any(name in DAEMONS for name in names)


def _name(pid: str) -> str:
    try:
        return files.read_from(f"/proc/{pid}/comm", 0, 64).strip().decode("utf-8", "replace")
    except ProcessLookupError:  # it ended meanwhile
        return ""
