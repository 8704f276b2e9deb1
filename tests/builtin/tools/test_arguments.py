"""Arguments: what is unambiguous is taken, else one sentence says what is wrong, so that the next call is right."""

from __future__ import annotations

from typing import Any

import pytest

from harness.builtin.tools import _arguments, registry
from harness.builtin.tools._arguments import Unfit, fitted

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer", "minimum": 1, "maximum": 9},
        "seconds": {"type": "number"},
        "all": {"type": "boolean"},
        "mode": {"type": "string", "enum": ["content", "files"]},
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
    },
    "required": ["path"],
}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"lines": "5"}, {"lines": 5}),
        ({"lines": 5.0}, {"lines": 5}),
        ({"seconds": "1.5"}, {"seconds": 1.5}),
        ({"all": "True"}, {"all": True}),
        ({"all": "false"}, {"all": False}),
        ({"path": 404}, {"path": "404"}),
        ({"mode": "Files"}, {"mode": "files"}),
        ({"items": '[{"name": "x"}]'}, {"items": [{"name": "x"}]}),
        ({"lines": None}, {}),
    ],
)
def test_a_wrong_type_that_can_only_mean_one_thing_is_accepted(given: dict[str, Any], taken: dict[str, Any]) -> None:
    """Models write numbers and lists as texts, and null for what they do not give."""
    assert fitted(SCHEMA, {"path": "p", **given}) == {"path": "p", **taken}


def test_all_arguments_may_come_as_the_text_of_their_json() -> None:
    """Some servers send them so."""
    assert fitted(SCHEMA, '{"path": "p", "lines": "2"}') == {"path": "p", "lines": 2}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "The argument 'path' is missing."),
        ({"path": None}, "The argument 'path' is missing."),
        ({"path": ["p"]}, "'path' must be text, not [\"p\"]."),
        ({"path": True}, "'path' must be text, not true."),
        ({"path": "p", "lines": "five"}, "'lines' must be a whole number, not \"five\"."),
        ({"path": "p", "lines": 2.5}, "'lines' must be a whole number, not 2.5."),
        ({"path": "p", "lines": True}, "'lines' must be a whole number, not true."),
        ({"path": "p", "lines": 0}, "'lines' must be at least 1, not 0."),
        ({"path": "p", "lines": 10}, "'lines' must be at most 9, not 10."),
        ({"path": "p", "seconds": "NaN"}, "'seconds' must be a number, not \"NaN\"."),
        ({"path": "p", "all": "maybe"}, "'all' must be true or false, not \"maybe\"."),
        ({"path": "p", "mode": "lines"}, "'mode' must be one of content, files, not \"lines\"."),
        ({"path": "p", "items": "x"}, "'items' must be a list, not \"x\"."),
        ({"path": "p", "items": [{}]}, "The argument 'items[0].name' is missing."),
        ({"path": "p", "items": [{"name": "x", "nmae": "y"}]}, "Did you mean 'items[0].name'?"),
        ({"file_path": "p"}, "There is no argument 'file_path'. Did you mean 'path'? There are: path, lines,"),
        ([1], "The arguments must be an object, not [1]."),
        ("{broken", 'The arguments must be an object, not "{broken".'),
    ],
)
def test_what_does_not_fit_is_told_with_the_name_and_the_remedy(given: Any, words: str) -> None:
    """The unknown name with the nearest right one."""
    with pytest.raises(Unfit) as told:
        fitted(SCHEMA, given)
    assert words in str(told.value)


def test_the_message_is_short_whatever_was_given() -> None:
    """A megabyte in the wrong place does not come back."""
    with pytest.raises(Unfit) as told:
        fitted(SCHEMA, {"path": ["x" * 1_000_000]})
    assert len(str(told.value)) < 200


def checked_words(schema: dict[str, Any]) -> set[str]:
    """Every word of JSON Schema in a schema."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return {*schema}.union(*(checked_words(one) for one in inner))


@pytest.mark.parametrize("name", registry.TOOLS)
def test_the_schemas_of_our_tools_say_only_what_is_checked(name: str) -> None:
    """What a schema promises and nobody checks would be a wish."""
    schema = registry.TOOLS[name].parameters
    known = {"type", "properties", "required", "items", "enum", "minimum", "maximum", "description"}
    assert checked_words(schema) <= known
    assert set(schema.get("required", ())) <= set(schema["properties"])
    assert schema["type"] in _arguments.WORDS
