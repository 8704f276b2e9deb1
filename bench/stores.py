"""What each store costs beside the one on disk, on servers that it starts: medians, and how many times those of the disk.

    python bench/stores.py [--count 200]

The servers are those of the tests, on loopback: what a network adds is added to each round trip. S3 is moto, which is slow.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from harness.stores import log
from harness.stores.store import ANY, Store
from tests.stores import servers
from tests.stores.places import IMPLEMENTATIONS, Place


def median_ms(act: Callable[[int], object], count: int) -> float:
    """Milliseconds of one call."""
    found = []
    for number in range(count):
        begun = time.perf_counter()
        act(number)
        found.append(time.perf_counter() - begun)
    return 1000 * statistics.median(found)


def measured(store: Store, count: int) -> dict[str, float]:
    """{what: milliseconds}."""
    data, end = b"x" * 1000, [0]

    def append(number: int) -> None:
        end[0] = log.append(store, ("log",), data + b"\n", end[0])

    found = {"put": median_ms(lambda number: store.put(("k", f"{number:06d}"), data, ANY), count)}
    found["get"] = median_ms(lambda number: store.get(("k", f"{number:06d}")), count)
    found[f"list of {count}"] = median_ms(lambda number: store.list(("k",)), 5)
    found["append, first ones"] = median_ms(append, count // 4)
    for number in range(count // 2):
        append(number)
    found["append, last ones"] = median_ms(append, count // 4)
    found[f"read of {count} appends"] = median_ms(lambda number: log.read(store, ("log",)), 3)
    return found


def main() -> None:
    """All rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    asked = parser.parse_args()
    table: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=HERE) as name, contextlib.ExitStack() as stack:
        makers = {"redis": servers.redis, "postgres": lambda folder: servers.postgres(), "s3": servers.s3}
        for store in IMPLEMENTATIONS:
            (folder := Path(name, store)).mkdir()
            if why := servers.missing(store):
                print(f"{store}: {why}")
                continue
            url = stack.enter_context(makers[store](folder)).url if store in makers else ""
            table[store] = measured(Place(store, folder, url).first, asked.count)
    print(f"{'ms (times the disk)':24}" + "".join(f"{store:>18}" for store in table))
    for row, disk in table["disk"].items():
        cells = (f"{table[store][row]:.2f} ({table[store][row] / disk:.1f})" for store in table)
        print(f"{row:24}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
