"""The contract of a store, and what becomes of lost replies, over S3: obstore has threads, so this process forks nothing."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.errors import StoreRefusal, StoreUnavailable, VersionConflict
from harness.stores.store import ANY, Store
from harness.stores.urls import open_store
from tests.crash import TORTURE
from tests.stores.conftest import made
from tests.stores.places import Place
from tests.stores.servers import Server
from tests.stores.test_engine import *  # noqa: F403 - the same for every engine, over `served` as it is here
from tests.stores.test_gate import *  # noqa: F403 - the contract, over `place` as it is here
from tests.stores.test_log import *  # noqa: F403 - the same
from tests.stores.test_store import *  # noqa: F403 - the same

# of values in a folder, of the store on disk, and of a server that has its values after a kill
del test_a_kill_at_any_step_leaves_the_old_value_or_the_new_one_and_the_next_write_works  # noqa: F821 - see above
del test_the_place_of_a_killed_process_is_free_at_once  # noqa: F821 - see above
del test_a_server_that_is_killed_and_starts_again_keeps_what_it_took_and_a_writer_goes_on  # noqa: F821 - see above

COUNTED = 25 if TORTURE else 6
COUNTS = """import sys
sys.path.insert(0, sys.argv[1])
from harness.base.errors import VersionConflict
from harness.stores.urls import open_store
store = open_store(sys.argv[2])
for _ in range(int(sys.argv[3])):
    while True:
        known = store.get(("n",))
        try:
            store.put(("n",), str(int(known.data) + 1 if known else 1).encode(), known.version if known else "")
            break
        except VersionConflict:
            continue
"""


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty prefix of a bucket."""
    return made("s3", tmp_path, request)


@pytest.fixture(name="served")
def the_same(place: Place) -> Place:
    """The same."""
    return place


@pytest.fixture
def answers(s3_server: Server) -> Iterator[tuple[str, list[int]]]:
    """(the URL of a server that knows no conditions, the status of its answers)."""
    status = [200]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            """Take anything."""
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status[0])
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"s3://tests/x?endpoint=http://127.0.0.1:{server.server_port}", status
    server.shutdown()
    thread.join()
    server.server_close()


def test_of_processes_that_count_together_no_write_is_lost(place: Place) -> None:
    """Each is started anew."""
    words = [sys.executable, "-c", COUNTS, str(Path(__file__).parents[2]), place.url, str(COUNTED)]
    processes = [subprocess.Popen(words) for _ in range(3)]
    assert [one.wait() for one in processes] == [0] * 3
    known = place.first.get(("n",))
    assert known is not None and known.data == b"%d" % (3 * COUNTED)


def test_a_server_that_ignores_conditions_is_refused_before_the_first_write(answers: tuple[str, list[int]]) -> None:
    """On it, writers would replace what they have not seen."""
    with pytest.raises(StoreRefusal, match=r"x/k: .*ignores"):
        open_store(answers[0]).put(("k",), b"v", ANY)


@pytest.mark.parametrize(
    ("status", "error"), [(507, StoreRefusal), (403, StoreRefusal), (503, StoreUnavailable), (429, StoreUnavailable)]
)
def test_a_server_that_is_full_denies_or_is_busy_is_named_with_the_key(
    answers: tuple[str, list[int]], status: int, error: type[Exception]
) -> None:
    """Two of them pass, and two need a person."""
    answers[1][0] = status
    with pytest.raises(error, match="s3://tests/x/k: "):
        open_store(answers[0]).put(("k",), b"v", ANY)


def test_a_bucket_that_is_not_there_is_no_empty_store(s3_server: Server) -> None:
    """Reading says so, too."""
    store = open_store(s3_server.url.replace("tests/PREFIX", "nowhere/x"))
    for act in (lambda: store.get(("k",)), lambda: store.put(("k",), b"", ANY), lambda: store.list(())):
        with pytest.raises(StoreRefusal, match="nowhere/x"):
            act()


def test_a_removed_value_is_a_tombstone_that_nobody_sees(store: Store) -> None:
    """And may be put again; its version is another one than before. A version of elsewhere is none of an absent value."""
    with pytest.raises(VersionConflict):
        store.put(("k",), b"v", "v0")
    version = store.put(("k",), b"v", "")
    store.delete(("k",), version)
    assert store.get(("k",)) is None and store.list(()) == []
    store.delete(("k",), ANY)
    again = store.put(("k",), b"v", "")
    assert again != version and store.get(("k",)) == (b"v", again)
