"""Curations of a mission by code, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.run.settle import curator
from harness.run.settle.curator import CurationPlan, CurationSite
from harness.state.layout import Layout


def compact(*site: Any, rows: list[Any] | None = None, **more: Any) -> CurationPlan:
    """One batch; see `_site`."""
    return curator.compact(_site(*site, **more), rows)


def compact_all(*site: Any, rows: list[Any] | None = None, **more: Any) -> tuple[int, int, str]:
    """All batches; see `_site`."""
    return curator.compact_all(_site(*site, **more), rows)


def _site(
    layout: Layout, folder: str, mission: str, run: str, today: str, own: Iterable[str] = (), **more: Any
) -> CurationSite:
    names = frozenset(own)
    return CurationSite(
        layout=layout, folder=folder, mission=mission, run=run, today=today, project_names=names, **more
    )
