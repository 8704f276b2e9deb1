"""One checker for all closed sets of keys: what is wrong is said in words, with the key."""

from __future__ import annotations

import pytest

from harness.base import schema

VALUES: dict[str, tuple[list[object], list[object]]] = {
    "str": (["", "x"], [None, 1, ["x"]]),
    "int": ([0, -1], [1.0, True, "1", None]),
    "number": ([0, 1.5], [True, "1", None]),
    "bool": ([True, False], [0, 1, "true", None]),
    "names": ([[], ["F-1", "a.b_c"]], ["F-1", ["-x"], ["a b"], [""], [1], ["x" * 65], ["x\n"], None]),
    "strs": ([[], ["a b", ""]], ["x", [1], None]),
    "texts": ([{}, {"A": "1"}], [{"A": 1}, {1: "x"}, [], None]),
    "plain": (["", "a\nb\tc"], ["a\0b", "a\rb", 1, None]),
    "line": (["", "a b\tc"], ["a\0b", "a\rb", "a\n", 1, None]),
    "seconds": ([1, 900], [0, -1, True, 1.5, "1", None]),
    "dict": ([{}, {"a": 1}], [[], None]),
    "list": ([[], [1]], [{}, "x", None]),
    "any": ([None, 1, "x", []], []),
}


@pytest.mark.parametrize("kind", schema.WORDS)
def test_every_kind_takes_what_it_says_and_nothing_else(kind: str) -> None:
    """The page of kinds and this table are the same set."""
    assert VALUES.keys() == schema.WORDS.keys()
    good, bad = VALUES[kind]
    assert [value for value in good if not schema.fits(value, kind)] == []
    assert [value for value in bad if schema.fits(value, kind)] == []


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_what_is_no_object_is_said_so(value: object) -> None:
    """Once, and nothing besides."""
    assert schema.faults(value, "the reply", {"a": "str"}) == ["the reply must be an object"]


def test_every_fault_names_its_key() -> None:
    """All of them at once, so that one answer mends all."""
    found = schema.faults({"b": 1, "z": 2}, "it", {"a": "str", "b": "str"}, {"c": "int"})
    assert found == [
        "it has the unknown key 'z' (known: a, b, c)",
        "it lacks 'a'",
        "it: 'b' must be text",
    ]
    assert schema.faults({"a": "", "b": ""}, "it", {"a": "str", "b": "str"}, {"c": "int"}) == []


@pytest.mark.parametrize("name", ["", "-x", ".x", "a b", "a/b", "é", "x" * 65, 5, None, "x\n"])
def test_what_is_no_name_is_refused(name: object) -> None:
    """Names become files and arguments."""
    assert [fault for fault in schema.name_faults([name], "feature") if "is no name" in fault]


def test_names_are_unique_without_case() -> None:
    """Some file systems do not tell them apart."""
    assert schema.name_faults(["F-1", "f-1", "F-2"], "feature") == ["feature 'f-1' stands twice"]
