"""orders.jsonl: what a person ordered, and what came of it. Each order has a line, and one more once it is applied or refused."""

from __future__ import annotations

from typing import Any

from harness.base import schema
from harness.base.record import Record
from harness.store import json_lines, names
from harness.store.layout import Layout
from harness.store.state import State


class Applied(Record):
    """The result of an order: `state` is applied or refused, `said` the message for the person."""

    id: str
    at: str
    state: str
    said: str


class Order(Record):
    """One order: `verb` is a key of VERBS in `harness/run/orders.py`, `args` its arguments."""

    id: str
    at: str
    by: str
    verb: str
    args: list[str]


def pending(layout: Layout) -> list[Order]:
    """Orders that are not applied yet, oldest first. Raises BrokenFile."""
    waiting: dict[str, Order] = {}

    def take(row: Any) -> None:
        if "state" in row:
            waiting.pop(schema.record(Applied, row, "an order has").id, None)
        else:
            order = schema.record(Order, row, "an order has")
            waiting[order.id] = order

    data = State(layout).data(names.ORDERS)
    json_lines.parse(data, layout.orders, take, "the line is no order", "Remove that line.")
    return list(waiting.values())
