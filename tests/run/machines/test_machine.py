"""`harness machine` answers over its standard streams, and ends with its input, or in its silence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.base import frames
from tests.missions import PROGRAM


@pytest.mark.parametrize("silent", [False, True])
def test_it_ends_with_its_input_or_after_six_silent_beats(silent: bool) -> None:
    """And pings until then."""
    words = [sys.executable, "-P", str(PROGRAM), "machine", "--beat", "0.2" if silent else "60"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as served:
        assert served.stdin and served.stdout
        assert served.stdout.read(frames.HEAD.size) == frames.PING
        if not silent:
            served.stdin.close()
        assert served.wait(60) == 0
