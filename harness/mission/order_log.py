"""orders.jsonl: a person's orders and their results. Each order has a line, and another once it is applied or refused."""

from __future__ import annotations

from typing import Any

from harness.base import schema
from harness.base.record import Record
from harness.mission import features
from harness.mission.features import Feature
from harness.state import json_lines, names
from harness.state.layout import Layout
from harness.state.state import Changes, State


class OrderResult(Record):
    """The result of an order. `state`: applied or refused; `said`: the message for the person."""

    id: str
    at: str
    state: str
    said: str


class Order(Record):
    """One order: `verb` is a key of VERBS in `harness/run/requests/orders.py`, `args` its arguments."""

    id: str
    at: str
    by: str
    verb: str
    args: list[str]


class OrderWaits(Exception):
    """The order must wait until this run has ended."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"noted; it is applied when the current run ends ({run_id})")


class OrderContext(Record):
    """The pending effect of an order: features and other changes. `busy`: {feature: the live run that claims it}."""

    layout: Layout
    features: list[Feature]
    changes: Changes
    at: str
    busy: dict[str, str]

    def free(self, feature_id: str) -> Feature:
        """The feature, for a change of its status; raises OrderWaits if a live run claims it."""
        feature = features.find(self.features, feature_id)
        if feature_id in self.busy:
            raise OrderWaits(self.busy[feature_id])
        return feature


def pending(layout: Layout) -> list[Order]:
    """Orders that are not applied yet, oldest first. Raises BrokenFile."""
    waiting: dict[str, Order] = {}

    def take(row: Any) -> None:
        if "state" in row:
            waiting.pop(schema.record(OrderResult, row, "an order has").id, None)
        else:
            order = schema.record(Order, row, "an order has")
            waiting[order.id] = order

    data = State(layout).data(names.ORDERS)
    json_lines.parse(data, layout.path(names.ORDERS), take, "the line is not an order", "Remove that line.")
    return list(waiting.values())
