"""What a conversation has seen: one entry a file, bounded, and a file that was forgotten must be read again."""

from __future__ import annotations

from harness.builtin.tools import _read_digests
from tests.builtin.tools.benches import Bench


def test_every_spelling_of_a_path_is_one_file(bench: Bench) -> None:
    """Read as one, changed as another."""
    bench.write("a/b.txt", "one\n")
    bench.said("read_file", path="./a//b.txt")
    bench.said("write_file", path="/a/../a/b.txt", content="two\n")
    assert list(bench.own.state[_read_digests.KEY]) == ["a/b.txt"]


def test_what_is_kept_of_a_long_conversation_is_bounded(bench: Bench) -> None:
    """The file that was seen longest ago is forgotten, which costs one more read and overwrites nothing."""
    bench.write("first.txt", "mine\n")
    bench.said("read_file", path="first.txt")
    for number in range(_read_digests.MOST):
        _read_digests.remember(bench.own, f"{number}.txt", "digest")
    assert len(bench.own.state[_read_digests.KEY]) == _read_digests.MOST
    assert "read_file" in bench.refused("write_file", path="first.txt", content="x")


def test_a_state_that_others_wrote_is_no_reason_to_overwrite(bench: Bench) -> None:
    """A digest that is none counts as not seen."""
    bench.write("a.txt", "mine\n")
    bench.own.state[_read_digests.KEY] = {"a.txt": None}
    assert "read_file" in bench.refused("write_file", path="a.txt", content="x")
