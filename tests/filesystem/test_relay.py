"""Promises of harness/filesystem/_relay.py: it passes frames on, says that this side is there, and ends with either side."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from harness.filesystem import _relay
from tests.filesystem.contract import lasting, runs, waited


def started(*words: str) -> subprocess.Popen[bytes]:
    """The relay before a command."""
    return subprocess.Popen(
        [sys.executable, _relay.__file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def frame(data: bytes) -> bytes:
    """A frame of the relay."""
    return len(data).to_bytes(8) + data


def test_frames_pass_and_between_them_a_beat() -> None:
    """The content alone; a beat only where a frame has ended, and after the first two."""
    relay = started("cat")
    assert relay.stdin
    big = bytes(range(256)) * 100  # less than a pipe holds
    relay.stdin.write(frame(b"one") + frame(big)[:5000])
    relay.stdin.flush()
    time.sleep(2 * _relay.BEAT_SECONDS)
    relay.stdin.write(frame(big)[5000:])
    relay.stdin.flush()
    whole = b"one" + big + _relay.BEAT
    assert relay.stdout and relay.stdout.read(len(whole)) == whole
    out, _ = relay.communicate(timeout=60)
    assert (out.strip(b"\0"), len(out) % len(_relay.BEAT), relay.returncode) == (b"", 0, 0), "beats, and nothing else"


@pytest.mark.parametrize(("words", "code"), [(("sh", "-c", "exit 3"), 3), (("/no/such/program",), 127)])
def test_it_ends_with_the_command(words: tuple[str, ...], code: int) -> None:
    """With its exit code, though the input is still open."""
    relay = started(*words)
    assert relay.wait(60) == code
    relay.communicate()


def test_a_command_that_does_not_end_with_its_input_is_ended() -> None:
    """A second later."""
    left = lasting()
    relay = started(*left.split())
    assert waited(lambda: runs(left))
    relay.communicate(timeout=60)
    assert waited(lambda: not runs(left))
