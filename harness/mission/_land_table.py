"""[land] of config.toml: how a person's repository wants the commits of `land`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.base import schema
from harness.base.record import Record

TEMPLATE = r"(?:[^{}\n]|\{title\}|\{feature\})+"
ONLY = "with {title} and {feature} as the only placeholders"

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Subject, Trailers = str, list[str]
else:
    Subject = schema.TEXT.part(f"one line, {ONLY}", re.compile(TEMPLATE).fullmatch)
    Trailers = schema.listed(
        schema.TEXT.part("", re.compile("[A-Za-z0-9-]+: " + TEMPLATE).fullmatch),
        f"a list of 'Key: value' lines, {ONLY}",
    )


class LandTable(Record):
    """[land]. `subject` and `trailers`: of a feature's commit; `sign`: with the person's own key."""

    subject: Subject = "{title}"
    trailers: Trailers = []
    sign: bool = False

    def filled(self, template: str, **values: str) -> str:
        """The template with the placeholders replaced by the values of `title` and `feature`."""
        return re.sub(r"\{(title|feature)\}", lambda found: values[found[1]], template)
