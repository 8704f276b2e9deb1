"""An edit whose text is not found: the answer has what the model needs to give it right at once."""

from __future__ import annotations

from harness.builtin.tools import _closest_text
from tests.builtin.tools.benches import Bench
from tests.helpers import is_linear

CODE = "def total(items):\n\tresult = 0\n\tfor item in items:\n\t\tresult += item.price\n\treturn result\n"


def told(bench: Bench, old: str, text: str = CODE) -> str:
    """The answer to an edit of this text."""
    bench.write("a.py", text)
    bench.said("read_file", path="a.py")
    return bench.refused("edit_file", path="a.py", old_string=old, new_string="x")


def test_line_numbers_that_were_pasted_are_recognised(bench: Bench) -> None:
    """As read_file shows them, and as others do."""
    shown = bench.said("read_file", path=bench.write("a.py", CODE).name)
    pasted = "\n".join(shown.split("\n")[1:4])
    assert "line numbers of read_file" in told(bench, pasted)
    assert "line numbers of read_file" in told(bench, "2→\tresult = 0\n3→\tfor item in items:")
    assert "line numbers" not in told(bench, "7: no such line\n8: nor this")


def test_other_white_space_is_named_and_the_lines_are_shown_as_they_are(bench: Bench) -> None:
    """Spaces for tabs: the most frequent mistake. What is shown can be given as it is."""
    said = told(bench, "    for item in items:\n        result += item.price")
    assert "other white space" in said
    lines = [line.split("\t", 1)[1] for line in said.split("\n")[1:]]
    assert bench.said("edit_file", path="a.py", old_string="\n".join(lines), new_string="x")


def test_the_lines_that_are_most_like_it_are_shown_with_the_first_that_differs(bench: Bench) -> None:
    """A name that was remembered wrongly."""
    said = told(bench, "\tresult = 0\n\tfor item in items:\n\t\tresult += item.cost")
    assert "with line 4 the first that differs" in said
    assert "     4\t\t\tresult += item.price" in said


def test_nothing_like_it_is_said_to_be_nothing(bench: Bench) -> None:
    """No random lines are shown."""
    said = told(bench, "completely different words stand here")
    assert said.endswith("nor anything like it. Read the file again.")


def test_the_answer_is_short_whatever_the_file() -> None:
    """A hundred thousand lines, and a line of a megabyte."""
    many = "".join(f"value_{number} = compute({number})\n" for number in range(100_000))
    said = _closest_text.unfound("a.py", "value_77_777 = compute(77777, 1)\nvalue_x = 1", many)
    assert "compute(77777)" in said
    long = _closest_text.unfound("a.py", "needle in the line", "needle in a line " + "x" * 1_000_000)
    assert max(len(said), len(long)) < 2000


def test_it_is_found_in_time_that_grows_with_the_file() -> None:
    """Whether it has many lines or a long one."""
    for part in ("value_1 = compute(2)\n" * 5000, "x" * 100_000):
        assert is_linear(lambda text: _closest_text.unfound("a.py", "value_77 = compute(77, 1)\nx = 1", text), part)
