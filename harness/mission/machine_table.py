"""The machines of lanes: tables in config.toml, and addresses of Dask schedulers, which need no table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from harness.base.errors import Unavailable, UsageFault

DASK = "dask:"  # before the address of a scheduler
PRIVATE = re.compile(r"dask:(tls://.+|tcp://(localhost|127(\.\d+){3}|\[::1\]):\d+/?)")
ADDRESS = re.compile(r"dask:(tls|tcp)://[^\s/,]+:\d+/?")
INSTALL = "pip install 'harness-missions[dask]'"


def table_of(known: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The table of a machine; an address is its own name. Raises UsageFault for an unknown machine and for an address that others
    could read, and Unavailable without Dask."""
    if name not in known and not name.startswith(DASK):
        raise UsageFault(f"There is no [machines.{name}] in config.toml. There are: {', '.join(known) or 'none'}.")
    table = known.get(name, {"address": name})
    if address := table.get("address"):
        _require_usable(address, table)
    return table


def _require_usable(address: str, table: dict[str, Any]) -> None:
    if not ADDRESS.fullmatch(address):
        raise UsageFault(f"{address!r} is not an address such as dask:tls://host:8786.")
    if not (PRIVATE.fullmatch(address) or table.get("insecure")):
        raise UsageFault(
            f"{address} has no TLS, and anyone who reaches the port can run programs there. Use dask:tls://…, or a table in "
            "config.toml with this address and insecure = true (docs/machines.md)."
        )
    if find_spec("distributed") is None:
        raise Unavailable(f"{address} needs the package distributed: {INSTALL}.")
