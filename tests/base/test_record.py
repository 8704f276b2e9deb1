"""A Record is a small data class: an omitted field has its default, an unknown field is refused."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from harness.base.record import Record


class Point(Record):
    """Two fields with and two without defaults, and something of the class."""

    unit: ClassVar[str] = "m"
    x: int
    y: int = 2
    tags: list[str] = []
    more: dict[str, int] = {"a": 1}


class Named(Point):
    """One more field, and another default."""

    name: str
    y: int = 9


def test_fields_have_their_order_and_defaults() -> None:
    """Inherited ones come first; attributes of the class are not fields."""
    assert Point(x=1).asdict() == {"x": 1, "y": 2, "tags": [], "more": {"a": 1}}
    assert Named(x=1, name="n").asdict() == {"x": 1, "y": 9, "tags": [], "more": {"a": 1}, "name": "n"}
    assert Point.fields == ("x", "y", "tags", "more")


def test_list_and_dict_defaults_are_nobody_elses() -> None:
    """A change to one record changes no other."""
    one = Point(x=1)
    one.tags.append("t")
    one.more["b"] = 2
    assert Point(x=1) == Point(x=1, tags=[], more={"a": 1})
    assert one != Point(x=1)


@pytest.mark.parametrize("values", [{}, {"y": 1}, {"x": 1, "z": 2}, {"x": 1, "unit": "ft"}])
def test_missing_and_unknown_fields_are_refused(values: dict[str, Any]) -> None:
    """The error lists the existing fields."""
    with pytest.raises(TypeError, match="Point takes x, y, tags, more"):
        Point(**values)


def test_a_copy_with_changes_leaves_the_first_alone() -> None:
    """An unknown field is refused."""
    one = Point(x=1)
    assert (one.replace(x=5).x, one.x) == (5, 1)
    with pytest.raises(TypeError):
        one.replace(z=1)


def test_equal_means_same_class_and_same_values() -> None:
    """A record of a subclass is not equal."""
    assert Point(x=1) == Point(x=1)
    assert Point(x=1) != Point(x=2)
    assert Named(x=1, name="n") != Point(x=1)
    assert Point(x=1) != {"x": 1}


def test_a_record_reads_as_it_is_built() -> None:
    """This helps people who debug."""
    assert repr(Point(x=1)) == "Point(x=1, y=2, tags=[], more={'a': 1})"


def test_a_whole_record_takes_over_exactly_its_fields() -> None:
    """Missing and extra fields in a file are refused, as they are by keyword."""

    class Pair(Record):
        one: int
        two: int = 2

    assert Pair.whole({"two": 3, "one": 1}) == Pair(one=1, two=3)
    for values in ({"one": 1}, {"one": 1, "two": 2, "three": 3}):
        with pytest.raises(TypeError, match="takes one, two"):
            Pair.whole(values)


def test_what_a_record_takes_has_every_field_that_has_no_default_and_no_unknown_one() -> None:
    """A file of an older version, without the newer fields, is therefore valid."""

    class Point(Record):
        """Two fields."""

        x: int
        tags: list[str] = []

    assert Point.takes({"x": 1})
    assert Point.takes({"x": 1, "tags": []})
    assert not Point.takes({"tags": []})
    assert not Point.takes({"x": 1, "z": 1})
