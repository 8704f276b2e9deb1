"""Promises of harness/process/_write_order.py: two pipes are read in the order in which they were written."""

from __future__ import annotations

import os
import select
import threading

import pytest

from harness.process import _write_order
from harness.process._write_order import OrderedPoller

pytestmark = pytest.mark.skipif(not _write_order.AVAILABLE, reason="needs epoll and pipes of packets, which Linux has")


def test_writes_are_seen_in_their_order_and_behind_the_limit_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast they come; the last of a pipe that ends, too."""
    monkeypatch.setattr(_write_order, "MAX_ORDERED_BYTES", 3000)
    (one, one_end), (two, two_end) = os.pipe(), os.pipe()
    poller, seen, ends = OrderedPoller({one: one_end, two: two_end}), list[bytes](), {one, two}

    def write() -> None:
        for number in range(1500):
            os.write(two_end if number % 3 else one_end, b"%04d" % number)
        os.close(one_end)
        os.close(two_end)

    for fd in ends:
        os.set_blocking(fd, False)
        poller.register(fd, select.POLLIN)
    writer = threading.Thread(target=write)
    writer.start()
    while ends:
        for fd, _ in poller.poll(200):
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                continue
            if not data:
                poller.unregister(fd)
                ends.remove(fd)
                os.close(fd)
                continue
            seen.append(data)
            poller.passed(len(data))
    writer.join()
    numbers = [int(data[at : at + 4]) for data in seen for at in range(0, len(data), 4)]
    assert numbers[:750] == list(range(750))
    assert sorted(numbers) == list(range(1500))
