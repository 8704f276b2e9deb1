"""A proxy between a store and its server that counts round trips, loses replies, or never gives one."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Cost(NamedTuple):
    """Round trips, bytes to the server, bytes from it."""

    trips: int
    taken: int
    given: int


class Proxy:
    """Passes on what comes to `port`. `lost`: the numbers of the replies that are thrown away, each with its connection;
    `share`: of all replies, at random; `silent`: replies are thrown away, and the connections stay. `trips`: how often a client
    spoke after the server did; `taken`, `given`: the bytes of clients and of the server."""

    def __init__(self, target: int) -> None:
        self.target, self.lost, self.share, self.is_silent, self.replies = target, set[int](), 0.0, False, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.is_open, self.random, self.lock = True, random.Random(7), threading.Lock()
        self.trips = self.taken = self.given = 0
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def _accept(self) -> None:
        self.listener.settimeout(0.05)
        while self.is_open:
            with contextlib.suppress(TimeoutError):
                client, _ = self.listener.accept()
                self.threads.append(threading.Thread(target=self._pass, args=(client,)))
                self.threads[-1].start()

    def _pass(self, client: socket.socket) -> None:
        """Until one side ends, or a reply is lost."""
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            watched = selectors.DefaultSelector()
            for one in (client, server):
                watched.register(one, selectors.EVENT_READ)
            is_asked = False
            while self.is_open:
                for key, _ in watched.select(0.05):
                    data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]  # it is a socket
                    if not data or (key.fileobj is server and self._is_lost()):
                        return
                    is_asked = self._counted(len(data), key.fileobj is client, is_asked)
                    if key.fileobj is client:
                        server.sendall(data)
                    elif not self.is_silent:
                        client.sendall(data)

    def _counted(self, count: int, is_clients: bool, is_asked: bool) -> bool:
        """Count what comes; whether the server has been asked now."""
        with self.lock:
            self.trips += is_clients and not is_asked
            self.taken += count * is_clients
            self.given += count * (not is_clients)
        return is_clients

    def cost(self, act: Callable[[], object]) -> Cost:
        """What something takes; nothing else goes through meanwhile."""
        before = Cost(self.trips, self.taken, self.given)
        act()
        return Cost(self.trips - before.trips, self.taken - before.taken, self.given - before.given)

    def _is_lost(self) -> bool:
        with self.lock:
            self.replies += 1
            return self.replies in self.lost or self.random.random() < self.share

    def close(self) -> None:
        """End it with all its connections."""
        self.is_open = False
        for one in self.threads:
            one.join()
        self.listener.close()


@contextlib.contextmanager
def before(target: int) -> Iterator[Proxy]:
    """A proxy before what listens at a port."""
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
