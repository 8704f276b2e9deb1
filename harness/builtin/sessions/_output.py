"""Answers with a structure: the message asks for JSON of a schema, and the answer is checked against it and asked for again."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pydantic

from harness.base import encoding
from harness.base.errors import UsageFault

ASKED = """{message}

End with an answer that is one JSON value and nothing else: no words around it and no code block. It must be valid for this JSON
schema:
{schema}"""
WRONG = "The answer is not valid for the JSON schema: {fault}. Answer with the corrected JSON value alone."
FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


class OutputFormat:
    """The form of an answer: a type that pydantic knows, or a JSON schema. Raises UsageFault for anything else."""

    def __init__(self, wanted: Any) -> None:
        try:
            if isinstance(wanted, dict):
                jsonschema.validators.validator_for(wanted).check_schema(wanted)
                self._adapter, self.schema = None, wanted
            else:
                self._adapter = pydantic.TypeAdapter[Any](wanted)
                self.schema = self._adapter.json_schema()
        except (jsonschema.SchemaError, pydantic.errors.PydanticUserError) as fault:
            raise UsageFault(f"The output is no JSON schema, and no type that has one: {fault}") from None

    def asked(self, message: str) -> str:
        """The message, with the schema of the answer."""
        return ASKED.format(message=message, schema=encoding.compact(self.schema))

    def value(self, text: str) -> Any:
        """The value of an answer. Raises ValueError."""
        found = FENCE.match(text.strip())
        data = found[1] if found else text
        if self._adapter is not None:
            return self._adapter.validate_json(data)
        value = json.loads(data)
        try:
            jsonschema.validate(value, self.schema)
        except jsonschema.ValidationError as fault:
            raise ValueError(f"{fault.json_path}: {fault.message}") from None
        return value

    def fault(self, text: str) -> str:
        """The fault of an answer, in words for the model; "" for none."""
        try:
            self.value(text)
        except (ValueError, RecursionError) as fault:
            return WRONG.format(fault=str(fault).rstrip("."))
        return ""
