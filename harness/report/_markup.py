"""Builds HTML from values: every text is escaped, except Html, which only this package creates."""

from __future__ import annotations

import html
from collections.abc import Iterable

from harness.base import console

EMPTY = ("rect", "line", "polyline", "meta", "input")  # no end tag if empty


class Html(str):
    """Safe markup."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as page text: control and bidirectional characters become visible, and markup is escaped. Html is unchanged."""
    if isinstance(value, Html):
        return value
    return Html(html.escape(console.sanitise(str(value))))


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. `class_` becomes the attribute class and `data_run` data-run; None and False omit an attribute, and True gives
    it no value."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    inside = "".join(map(text, children))
    return Html(f"<{name}{shown}/>" if name in EMPTY and not inside else f"<{name}{shown}>{inside}</{name}>")


def _attribute(key: str, value: object) -> str:
    name = "viewBox" if key == "viewBox" else key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Join several parts into one."""
    return Html(text(between).join(text(part) for part in parts))


def table(titles: Iterable[str], rows: Iterable[Iterable[object]], caption: str) -> Html:
    """A table with a caption for screen readers; the first cell of a row is its heading."""
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    body = [
        element(
            "tr", *(element("td" if at else "th", cell, scope=None if at else "row") for at, cell in enumerate(row))
        )
        for row in rows
    ]
    name = element("caption", caption, class_="unseen")
    return element("div", element("table", name, element("thead", head), element("tbody", *body)), class_="wide")


def folded(title: object, /, *inside: object, **attributes: object) -> Html:
    """A title that expands its content, by mouse or keyboard."""
    return element("details", element("summary", title), *inside, **attributes)
