"""What the library and its vendors' clients are spared at each request; the bytes are the same, and tests compare them."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

KNOWN_LISTS = 32  # of tools
WARNS = "_check_field_type_mismatches"  # what Google's client does before it validates an object, by its name there


def tools(model: Model) -> Model:
    """Spare the library to make the schemas of the same tools over and over, which costs as much as all the rest of a request."""
    fitted = model.customize_request_parameters
    known: list[tuple[list[ToolDefinition], list[ToolDefinition]]] = []

    def once(parameters: ModelRequestParameters) -> ModelRequestParameters:
        given = parameters.function_tools
        made = next((made for same, made in known if same is given), None)
        if made is None:
            made = fitted(parameters).function_tools
            known[KNOWN_LISTS - 1 :] = []
            known.insert(0, (given, made))
        return replace(parameters, function_tools=made)

    model.customize_request_parameters = once  # type: ignore[method-assign, assignment]  # of this one model
    return model


def search(name: str) -> None:
    """Spare OpenAI's client to look through the conversation for names to replace, a second at 500 turns: in what the library
    builds there are none."""
    module = import_module(f"openai.resources.{name}")
    if hasattr(module, "async_maybe_transform"):
        module.async_maybe_transform = _as_it_is  # type: ignore[attr-defined]  # of a module that was imported by name


async def _as_it_is(data: Any, _: object) -> Any:
    """What the client's own function makes of a body of plain data: the fields that are given."""
    from openai._utils import is_given

    return {key: value for key, value in data.items() if is_given(value)} if isinstance(data, dict) else data


def fields() -> None:
    """Spare Google's client to go over all fields of an object, which was half of a request: each time that it looks for one by
    name (it goes over pairs, and no name is one), and before it validates one, for a warning in the log."""
    from google.genai import _common, types

    _common.BaseModel.__contains__ = _has  # type: ignore[operator]  # which it goes without, and so goes over all
    for one in vars(types).values():
        if isinstance(one, type) and issubclass(one, _common.BaseModel):  # none has made its validator yet
            one.__pydantic_decorators__.model_validators.pop(WARNS, None)


def _has(fields: Any, item: object) -> bool:
    """What Python makes of `item in fields` where a class has no such method."""
    return isinstance(item, tuple) and any(item == one for one in fields)
