"""A pipe through a command: values arrive, and its end has the command's last words."""

from __future__ import annotations

import pytest

from harness.base import frames
from harness.base.errors import MachineGone, Unavailable
from harness.run.machines._pipe import CommandPipe


def test_values_go_through_a_command_and_back() -> None:
    """The words of the harness follow those of the command."""
    pipe = CommandPipe("echo", ["sh", "-c", "exec cat"], "harness")
    values: list[dict[str, object]] = [{"data": bytes(range(256)) * 1000}, {"verb": "x"}]
    for value in values:
        pipe.send(value)
    assert [pipe.receive(10) for _ in values] == values
    assert pipe.receive(0.05) == {}
    pipe.close()
    pipe.close()


def test_what_a_login_prints_first_is_no_frame() -> None:
    """Such as a greeting in ~/.bashrc."""
    pipe = CommandPipe("build2", ["sh", "-c", "echo Welcome to build2; exec cat"], "harness")
    pipe.send({"verb": "x"})
    assert pipe.receive(10) == {"verb": "x"}
    pipe.close()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["sh", "-c", "echo no such pod"], "no such pod"),
        (["sh", "-c", "echo no route >&2; exit 255"], "no route"),
        (["no-such-program"], "no-such-program cannot be started"),
    ],
)
def test_its_end_says_why(command: list[str], words: str) -> None:
    """In the words of the command, on one line; it was never there."""
    pipe = CommandPipe("build2", command, "harness")
    with pytest.raises(MachineGone, match=f"the machine build2 cannot be reached: .*{words}[^[]*$"):
        pipe.receive(10)
    pipe.close()


def test_only_what_was_there_is_gone() -> None:
    """What ended after an answer, whatever its exit code."""
    size = len(frames.PING + frames.pack({"a": 1}))
    pipe = CommandPipe("build2", ["sh", "-c", f"dd bs=1 count={size} status=none; exit 127"], "harness")
    pipe.send({"a": 1})
    assert pipe.receive(10) == {"a": 1}
    with pytest.raises(MachineGone, match="the machine build2 is gone"):
        pipe.receive(10)
    pipe.close()


@pytest.mark.parametrize("command", [["env"], ["sh", "-c", '"$@"', "sh"], ["sh", "-c", "echo hello; exit 126"]])
def test_a_machine_without_the_program_is_named_with_it_and_the_remedy(command: list[str]) -> None:
    """As shells, containers and the like tell it: by their exit code."""
    pipe = CommandPipe("build2", command, "no-such-harness --old")
    remedy = r"build2 lacks the program no-such-harness --old: install .* \[machines.build2\]"
    with pytest.raises(Unavailable, match=remedy):
        pipe.receive(10)
    pipe.close()
