"""[land] of config.toml: how a person's repository wants the commits of `land`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.base import schema
from harness.base.record import Record

PLACEHOLDER = re.compile(r"\{(title|feature)\}")
TEMPLATE = r"(?:[^{}\n]|\{title\}|\{feature\})+"

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Subject = str
    Trailers = list[str]
else:
    Subject = schema.TEXT.part(
        "one line, with {title} and {feature} as its only placeholders", re.compile(TEMPLATE).fullmatch
    )
    Trailers = schema.listed(
        schema.TEXT.part("", re.compile("[A-Za-z0-9-]+: " + TEMPLATE).fullmatch),
        'a list of lines such as ["Refs: {feature}"], with {title} and {feature} as their only placeholders',
    )


class LandTable(Record):
    """[land]. `subject` and `trailers`: of a feature's commit; `sign`: with the person's own key."""

    subject: Subject = "{title}"
    trailers: Trailers = []
    sign: bool = False

    def filled(self, template: str, title: str, feature: str) -> str:
        """The template with its placeholders replaced."""
        return PLACEHOLDER.sub(lambda found: {"title": title, "feature": feature}[found[1]], template)
