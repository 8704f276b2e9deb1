"""Answers with a structure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import UsageFault
from tests.builtin.simulating import Program

pydantic = pytest.importorskip("pydantic", reason="the built-in agent's packages are not installed: make setup")


class City(pydantic.BaseModel):  # type: ignore[misc, name-defined]  # the extra may be missing
    """A city."""

    name: str
    people: int


def test_an_answer_is_a_value_of_the_type_that_was_asked_for(tmp_path: Path) -> None:
    """Also in a code block; one that does not fit is asked for again, with what is wrong."""
    with Program(tmp_path, '{"name": "Ulm"}', '```json\n{"name": "Ulm", "people": 126000}\n```') as program:
        reply = program.call_sync("a city?", output=City)
    assert reply.output == City(name="Ulm", people=126000)
    first, second = program.simulated.requests
    assert '"people"' in first.messages[0]["text"] and "people" in second.messages[-1]["text"]


def test_a_schema_of_json_will_do_and_three_wrong_answers_are_a_failure(tmp_path: Path) -> None:
    """The reply has the last text and why."""
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}, "minItems": 2}
    with Program(tmp_path, "[1, 2]", "no", "[1]", '["a", 1]') as program:
        assert program.call_sync("numbers?", output=schema).output == [1, 2]
        reply = program.call_sync("numbers?", output=schema)
    assert (reply.outcome, reply.text, reply.output) == ("agent_error", '["a", 1]', None)
    assert "$[0]: 'a' is not of type 'integer'" in reply.reason


def test_what_has_no_schema_is_refused(tmp_path: Path) -> None:
    """Before anything is asked."""
    with Program(tmp_path, "x") as program, pytest.raises(UsageFault, match="no JSON schema"):
        program.call_sync("hi", output={"type": "strange"})
