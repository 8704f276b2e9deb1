"""One checker for all closed sets of keys: it describes each error in words, with the key."""

from __future__ import annotations

import random
import re

import pytest

from harness.base import schema
from harness.base.record import Record

VALUES: dict[str, tuple[list[object], list[object]]] = {
    "str": (["", "x"], [None, 1, ["x"]]),
    "int": ([0, -1], [1.0, True, "1", None]),
    "float": ([0, 1.5], [True, "1", None]),
    "bool": ([True, False], [0, 1, "true", None]),
    "bytes": ([b"", b"x"], ["x", [1], 10**13, None]),
    "Names": ([[], ["F-1", "a.b_c"]], ["F-1", ["-x"], ["a b"], [""], [1], ["x" * 65], ["x\n"], None]),
    "list[str]": ([[], ["a b", ""]], ["x", [1], None]),
    "dict[str, str]": ([{}, {"A": "1"}], [{"A": 1}, {1: "x"}, [], None]),
    "PlainText": (["", "a\nb\tc"], ["a\0b", "a\rb", 1, None]),
    "Line": (["", "a b\tc"], ["a\0b", "a\rb", "a\n", 1, None]),
    "Positive": ([1, 900], [0, -1, True, 1.5, "1", None]),
    "Whole": ([0, 7], [-1, True, 1.5, "1", None, 10**400]),
    "Count": ([0, 7, 1.5], [-1, -0.5, True, "1", None, 10**400, float("nan"), float("inf")]),
    "dict[str, Json]": ([{}, {"a": 1}], [[], None]),
    "list[Json]": ([[], [1]], [{}, "x", None]),
    "Json": ([None, 1, "x", []], []),
}
DERIVED: dict[str, tuple[list[object], list[object]]] = {
    "str | None": (["", None], [1, []]),
    "list[int]": ([[], [1]], [[1, "2"], [None], {}]),
    "list[str] | None": ([None, ["a"]], [[1], "a"]),
    "dict[str, int]": ([{}, {"a": 1}], [{"a": "1"}, {1: 1}, []]),
    "Colour": (["red"], ["blue", 1, None, ["red"]]),
    "list[Colour]": ([["red", "green"]], [["blue"]]),
    "Point": ([{"x": 1}, {"x": 1, "colour": "red"}], [{}, {"x": "1"}, {"x": 1, "z": 1}, []]),
    "list[Point]": ([[], [{"x": 1}]], [[{}], [1], {"x": 1}]),
    "Point | None": ([None, {"x": 1}], [{}, 5]),
    "PointRow": ([{"x": 1}], [{"x": "1"}, 5]),
}
Colour = schema.one_of(("red", "green"), told=True)
Amount = schema.WHOLE.part("below 10", lambda value: value < 10, bound=True)


class Point(Record):
    """One required field, and one optional field."""

    x: int
    colour: Colour = "red"  # type: ignore[valid-type]  # a kind of this module


PointRow = schema.row_of(Point)


class Line(Record):
    """Points in both kinds of field."""

    name: str
    begin: Point
    more: list[Point] = []
    last: Point | None = None
    kept: PointRow = {}  # type: ignore[valid-type]  # a kind of this module
    amount: Amount = 0  # type: ignore[valid-type]  # a kind of this module


class Closer(Line):
    """One more field, and another kind for one."""

    name: bool  # type: ignore[assignment]  # the module of kinds may do this
    tag: Colour  # type: ignore[valid-type]  # a kind of this module


def fits(kind: str, value: object) -> bool:
    """Whether a field with this annotation may hold a value: alone, and in a column of many."""
    made = type("One", (Record,), {"__annotations__": {"field": kind}, "__module__": __name__})
    alone = not schema.invalid_field(made, {"field": value})
    assert schema.all_fit(made, [{"field": value}]) is alone
    assert (schema.faults({"field": value}, "it", made) == []) is alone
    return alone


@pytest.mark.parametrize("kind", [*schema.WORDS, *DERIVED])
def test_every_kind_takes_what_it_says_and_nothing_else(kind: str) -> None:
    """The module of kinds and this table are the same set."""
    assert VALUES.keys() == schema.WORDS.keys()
    good, bad = (VALUES | DERIVED)[kind]
    assert [value for value in good if not fits(kind, value)] == []
    assert [value for value in bad if fits(kind, value)] == []


@pytest.mark.parametrize("kind", ["Nothing", "tuple[int]", "list[Nothing]"])
def test_an_annotation_that_is_no_kind_is_a_fault_of_ours(kind: str) -> None:
    """It is never ignored: otherwise the field would be unchecked."""
    with pytest.raises(TypeError, match="is not a field kind"):
        assert fits(kind, {"x": 5})


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_what_is_no_object_is_said_so(value: object) -> None:
    """The error appears once, and alone."""
    assert schema.faults(value, "the reply", Point) == ["the reply must be an object"]
    with pytest.raises(TypeError):
        schema.record(Point, value, "a test writes")


WRONG: list[tuple[dict[str, object], list[str]]] = [
    (
        {"z": 2, "name": 1},
        [
            "it has the unknown key 'z' (known: name, begin, more, last, kept, amount)",
            "it lacks 'begin'",
            "it: 'name' must be text",
        ],
    ),
    ({"name": "", "begin": 5}, ["it: 'begin' must be an object"]),
    ({"name": "", "begin": {"x": 1}, "more": {}}, ["it: 'more' must be a list"]),
    (
        {"name": "", "begin": {"y": 1, "colour": "blue"}, "more": [{"x": 1}, {"x": ""}, 5], "last": {}},
        [
            "'begin' has the unknown key 'y' (known: x, colour)",
            "'begin' lacks 'x'",
            "'begin': the colour 'blue' is not one of red, green",
            "more[1]: 'x' must be a whole number",
            "more[2] must be an object",
            "'last' lacks 'x'",
        ],
    ),
    ({"name": "", "begin": {"x": 1}, "amount": 10}, ["it: 'amount' must be below 10"]),
    ({"name": "", "begin": {"x": 1}, "amount": "1"}, ["it: 'amount' must be a whole number"]),
    ({"name": "", "begin": {"x": 1}, "last": 5}, ["it: 'last' must be an object"]),
]


@pytest.mark.parametrize(("value", "found"), WRONG)
def test_every_fault_names_its_key_and_the_way_to_it(value: dict[str, object], found: list[str]) -> None:
    """All errors come at once, so that one new reply can fix them all."""
    assert schema.faults(value, "it", Line) == found


def test_a_fault_knows_its_place_and_its_key() -> None:
    """A caller that looks for its line need not parse it."""
    found = schema.faults({"b": 1, "begin": {"x": ""}}, "it", Line)
    assert [(fault.where, fault.key) for fault in found] == [("it", "b"), ("it", ""), ("'begin'", "x")]


def test_a_field_says_again_what_it_is_and_keeps_its_place() -> None:
    """A Record that extends another may redefine a field."""
    assert Closer.fields == ("name", "begin", "more", "last", "kept", "amount", "tag")
    assert schema.faults({"name": True, "begin": {"x": 1}, "tag": "red"}, "it", Closer) == []


def test_a_record_is_made_with_the_records_in_it() -> None:
    """It converts back to the same plain data; a field for a plain object stays one."""
    row = {"name": "n", "begin": {"x": 1, "colour": "green"}, "more": [{"x": 2}], "last": None, "kept": {"x": 3}}
    made = schema.record(Line, row, "a test writes")
    assert (made.begin, made.more, made.last, made.kept) == (Point(x=1, colour="green"), [Point(x=2)], None, {"x": 3})
    assert schema.trusted(Line, schema.plain(made)) == made


@pytest.mark.parametrize(
    ("row", "way"),
    [
        ({"name": 5, "begin": {"x": 1}}, "name"),
        ({"name": "", "begin": {"x": ""}}, "begin: x"),
        ({"name": "", "begin": {"z": 1}}, "begin"),
        ({"name": "", "begin": {"x": 1}, "more": [{"x": ""}]}, "more"),
    ],
)
def test_the_first_odd_field_is_named_with_the_way_to_it(row: dict[str, object], way: str) -> None:
    """In files that only the harness writes one error is enough."""
    with pytest.raises(schema.InvalidField, match=f"^'{way}' is not what a test writes there$"):
        schema.record(Line, row, "a test writes")


@pytest.mark.parametrize("row", [{}, {"x": 1, "z": 1}, {"colour": "red"}])
def test_an_object_with_other_fields_is_no_record(row: dict[str, object]) -> None:
    """One field too many, or one missing without a default."""
    with pytest.raises(TypeError):
        schema.record(Point, row, "a test writes")
    assert not schema.all_fit(Point, [row])


@pytest.mark.parametrize("name", ["", "-x", ".x", "a b", "a/b", "é", "x" * 65, 5, None, "x\n"])
def test_what_is_no_name_is_refused(name: object) -> None:
    """Names become file names and arguments."""
    assert [fault for fault in schema.name_faults([name], "feature") if "invalid feature" in fault]


def test_names_are_unique_without_case() -> None:
    """Some file systems ignore case."""
    assert schema.name_faults(["F-1", "f-1", "F-2"], "feature") == ["feature 'f-1' appears twice"]


def test_a_fault_of_a_name_knows_which_one_it_is() -> None:
    """By index, so that a file can name the line."""
    found = schema.placed_name_faults(["F-1", "F-2", "f-1", "F-1", ""], "feature")
    assert [index for index, _ in found] == [2, 3, 4]


def test_a_name_is_what_the_pattern_says() -> None:
    """The pattern is the words of the rule, which `is_name` reads by hand."""
    pick, pattern = random.Random(1), re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
    for _ in range(5000):
        text = "".join(pick.choice("aZ0._-aZ0._-é \n") for _ in range(pick.choice((0, 1, 2, 3, 4))))
        text += "a" * pick.choice((0, 60, 61, 62, 63, 64))
        assert schema.is_name(text) == bool(pattern.match(text)), text
