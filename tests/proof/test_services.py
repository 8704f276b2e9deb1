"""Services: real servers, up while checks need them, each on a port of its own, ended with their process trees."""

from __future__ import annotations

import os
import shutil
import time
import tracemalloc
from pathlib import Path

import pytest

from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Service
from harness.mission.receipts import Receipt
from harness.process import tree
from harness.process.confine import BUBBLEWRAP, Confinement, Glass, available
from harness.proof import check_runs
from harness.proof import services as serving
from tests.helpers import passable
from tests.missions import House
from tests.planned import claim

PAGE = "import os, http.server as h; h.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), h.SimpleHTTPRequestHandler)"
ASK = "import os, urllib.request as u; print(u.urlopen('http://127.0.0.1:' + os.environ['{port}'] + '/page').read())"
SETTLING = "import os, socket; socket.create_connection(('127.0.0.1', int(os.environ['PORT']))).close()"


def web(name: str = "web", prefix: str = "", seconds: int = 30) -> Service:
    """A web server over the working folder, by Python alone."""
    run = f'{prefix}exec python3 -c "{PAGE}.serve_forever()"'
    return Service(name=name, run=run, ready=f'python3 -c "{SETTLING}"', seconds=seconds)


@pytest.fixture
def place(bare: House) -> CheckEnvironment:
    """A working folder with one page."""
    bare.project.mkdir()
    bare.write("page", "hello\n")
    return CheckEnvironment(directory=str(bare.project), tag="m/run-1", seconds=20)


def fired(command: str, place: CheckEnvironment) -> Receipt:
    """The receipt of one check."""
    return check_runs.fire(Check(run=command), claim("VAL-1"), "after", place)


def left(place: CheckEnvironment) -> list[str]:
    """Leftovers in the temporary folder."""
    return os.listdir(Path(place.directory).parent / "temporary")


def alive(pids: str) -> list[int]:
    """The process ids that are alive."""
    return [int(pid) for pid in pids.split() if tree.stat(int(pid))]


def test_a_check_reaches_a_real_web_server_on_its_port(place: CheckEnvironment) -> None:
    """PORT and PORT_WEB reach it; before and after, nothing listens there."""
    with serving.RunningServices([web()], place) as up:
        for name in ("PORT", "PORT_WEB"):
            receipt = fired(f'python3 -c "{ASK.format(port=name)}"', up)
            assert (receipt.exit, receipt.output) == (0, "b'hello\\n'\n")
        port = up.ports["web"]
    receipt = fired(f'PORT={port} python3 -c "{SETTLING}"', place)
    assert (receipt.green, "ConnectionRefused" in receipt.output) == (False, True)
    assert left(place) == []


def test_two_services_have_two_ports_and_know_each_other(place: CheckEnvironment) -> None:
    """A service's PORT is its own, a check's is the first service's; a neighbour's is PORT_<NAME>."""
    second = web("api-2", prefix='echo "$PORT $PORT_API_2 $PORT_WEB" >ports\n')
    with serving.RunningServices([web(), second], place) as up:
        assert fired('echo "$PORT $PORT_WEB $PORT_API_2"', up).output == "{0} {0} {1}\n".format(*up.ports.values())
        own, named, neighbour = Path(place.directory, "ports").read_text().split()
    assert (own, named, neighbour) == (str(up.ports["api-2"]), str(up.ports["api-2"]), str(up.ports["web"]))
    assert own != neighbour


def test_without_services_nothing_is_started(place: CheckEnvironment) -> None:
    """The check environment is unchanged, and no folder is made."""
    with serving.RunningServices([], place) as up:
        assert up is place
        assert left(place) == []


def test_a_service_sees_no_harness_variables_and_has_a_tmpdir(
    place: CheckEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts like a check, in the working folder."""
    monkeypatch.setenv("HARNESS_HOME", "x")
    service = web(prefix='env >environment; pwd >where; touch "$TMPDIR/mine"\n')
    with serving.RunningServices([service], place):
        names = [line.partition("=")[0] for line in Path(place.directory, "environment").read_text().split("\n")]
        assert Path(place.directory, "where").read_text() == place.directory + "\n"
    assert "PATH" in names
    assert not [name for name in names if name.startswith("HARNESS_")]
    assert left(place) == []


# ready


def test_a_service_sees_a_key_only_if_config_toml_passes_it(
    place: CheckEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a check does."""
    monkeypatch.setenv("MY_TOKEN", "private")
    for passed, seen in (([], "none\n"), (["MY_TOKEN"], "private\n")):
        with serving.RunningServices([web(prefix='echo "${MY_TOKEN-none}" >seen\n')], place.replace(passed=passed)):
            assert Path(place.directory, "seen").read_text() == seen


def test_a_service_that_takes_its_time_is_waited_for(place: CheckEnvironment) -> None:
    """`ready` runs again and again."""
    slow = Service(name="slow", run="sleep 0.5; touch up; sleep 60", ready="test -e up", seconds=20)
    with serving.RunningServices([slow], place) as up:
        assert up.fault == ""
        assert Path(place.directory, "up").exists()


def test_a_service_that_is_not_ready_in_time_makes_checks_red_with_its_log(place: CheckEnvironment) -> None:
    """No check is fired without its service; the tail of the log gives the cause."""
    stuck = Service(name="db", run="echo waiting for a lock; echo really >&2; sleep 60", ready="false", seconds=1)
    with serving.RunningServices([stuck], place) as up:
        receipt = fired("touch fired", up)
    assert (receipt.exit, receipt.green) == (check_runs.NOT_FIRED, False)
    assert receipt.output == "the service db was not ready within 1 s; its log:\nwaiting for a lock\nreally\n"
    assert not Path(place.directory, "fired").exists()
    assert left(place) == []


def test_a_service_that_ends_is_not_waited_for(place: CheckEnvironment) -> None:
    """Its last output is reported at once, not after its timeout."""
    started = time.monotonic()
    broken = Service(name="db", run="echo no such port; exit 3", ready="false", seconds=50)
    with serving.RunningServices([broken], place) as up:
        assert up.fault == "the service db ended before it was ready; its log:\nno such port\n"
    assert time.monotonic() - started < 45


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
def test_the_log_of_a_service_names_what_its_confinement_hides(place: CheckEnvironment, tmp_path: Path) -> None:
    """Its own temporary folder is not hidden from it."""
    (hidden := tmp_path / "hidden").mkdir()
    (hidden / "x").touch()
    glass = Glass(readable=[place.directory], hidden=[str(hidden)])
    place = place.replace(confinement=Confinement(glass=glass, tier=BUBBLEWRAP))
    for named, told in (("$TMPDIR", False), (hidden, True)):
        ends = Service(name="web", run=f"touch $TMPDIR/x; echo {named}/x; exit 1", ready="false", seconds=20)
        with serving.RunningServices([ends], place) as up:
            assert ("its confinement hides" in up.fault) == told, up.fault


def test_a_ready_command_that_hangs_is_run_again(place: CheckEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `ready` that never ends does not block a run."""
    monkeypatch.setattr(serving, "ASK_SECONDS", 0.2)  # 5 s are right for a real one, and too long for a test
    ready = "test -e asked || { touch asked; sleep 60; }"
    with serving.RunningServices([Service(name="s", run="sleep 60", ready=ready, seconds=20)], place) as up:
        assert up.fault == ""


def test_of_a_long_log_the_tail_is_reported(place: CheckEnvironment) -> None:
    """The newest 2,000 characters, with any bytes."""
    loud = Service(name="s", run="seq 1 5000; printf '\\377end'; exit 1", ready="false", seconds=30)
    with serving.RunningServices([loud], place) as up:
        said = up.fault.split("its log:\n")[1]
    assert (len(said), said.endswith("5000\n\ufffdend")) == (serving.TAIL_CHARS, True)


def test_the_log_of_a_service_is_plain_text(place: CheckEnvironment) -> None:
    """The tail is of what a terminal shows at last, so a progress bar takes no room in it."""
    bar = "printf 'cause\\n'; for i in $(seq 3000); do printf '\\r\\033[K\\033[32m%04d\\033[0m' $i; done; exit 1"
    with serving.RunningServices([Service(name="s", run=bar, ready="false", seconds=30)], place) as up:
        assert up.fault.endswith("its log:\ncause\n3000")


def test_a_red_neighbour_is_not_fired_twice(place: CheckEnvironment) -> None:
    """When no check can be fired, a second attempt adds nothing: it is red and not flaky."""
    receipt = check_runs.fire_with_retry(
        Check(run="true"), claim("V"), "after", place.replace(fault="the service db is not ready")
    )
    assert (receipt.exit, receipt.flaky, receipt.output) == (check_runs.NOT_FIRED, False, "the service db is not ready")


# the end


TREE = """(trap '' TERM HUP INT; echo $BASHPID >>pids; while :; do sleep 1; done) &
setsid bash -c 'echo $$ >>pids; sleep 1000' &
echo $$ >>pids
sleep 1000
"""


def test_the_whole_tree_of_a_service_is_ended(place: CheckEnvironment) -> None:
    """Children in sessions of their own, and children that ignore signals."""
    tree = Service(name="s", run=TREE, ready="test $(wc -l <pids) = 3", seconds=20)
    with serving.RunningServices([tree], place) as up:
        assert up.fault == ""
        pids = Path(place.directory, "pids").read_text()
        assert len(alive(pids)) == 3
    assert alive(pids) == []


def test_services_end_when_what_needs_them_fails(place: CheckEnvironment) -> None:
    """Also after an interrupt in the middle of a check."""
    service = Service(name="s", run="echo $$ >pid; sleep 1000", ready="test -s pid", seconds=20)
    with pytest.raises(KeyboardInterrupt), serving.RunningServices([service], place):
        raise KeyboardInterrupt
    assert alive(Path(place.directory, "pid").read_text()) == []
    assert left(place) == []


def test_the_first_ends_if_the_second_never_starts(place: CheckEnvironment) -> None:
    """No service outlives the block, whichever failed."""
    first = Service(name="a", run="echo $$ >pid; sleep 1000", ready="test -s pid", seconds=20)
    with serving.RunningServices([first, Service(name="b", run="exit 1", ready="false")], place) as up:
        assert "the service b ended" in up.fault
    assert alive(Path(place.directory, "pid").read_text()) == []


def test_of_a_log_of_any_length_the_end_is_reported(place: CheckEnvironment) -> None:
    """A server that floods its log costs no memory; its last output is complete."""
    flood = 'truncate -s 64M "$TMPDIR/s.log"; exec >>"$TMPDIR/s.log"; echo "é the port is taken"; exit 1'
    tracemalloc.start()
    with serving.RunningServices([Service(name="s", run=flood, ready="false")], place) as up:
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert up.fault.endswith("\0é the port is taken\n")
    assert len(up.fault) < 2200
    assert peak < 8 * 1024 * 1024


# databases


def program(name: str) -> str:
    """The path of a program, also in Debian's folder for PostgreSQL; "" if it is not installed."""
    places = [str(path) for path in Path("/usr/lib/postgresql").glob("*/bin")]
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *sorted(places)])) or ""


def test_a_real_postgresql_serves_a_check(place: CheckEnvironment) -> None:
    """initdb and postgres as an unprivileged user, which they require; a table is created and read."""
    needed = {name: program(name) for name in ("initdb", "postgres", "psql", "setpriv")}
    if not all(needed.values()):
        pytest.skip(f"not installed here: {', '.join(name for name, found in needed.items() if not found)}")
    bins = os.path.dirname(needed["postgres"])
    with_rights = os.geteuid() == 0
    if with_rights:
        passable(Path(place.directory))
    drop = "setpriv --reuid=65534 --regid=65534 --clear-groups " if with_rights else ""
    own = 'chmod 711 "$TMPDIR"; chown 65534 "$TMPDIR/db"; ' if with_rights else ""
    run = (
        f'export PATH="$PATH:{bins}"; mkdir "$TMPDIR/db"; {own}'
        f'{drop}initdb -D "$TMPDIR/db" -U me -A trust --no-sync >/dev/null\n'
        f'exec {drop}postgres -D "$TMPDIR/db" -p "$PORT" -h 127.0.0.1 -k "" -F'
    )
    ask = f'{needed["psql"]} -qtAX -h 127.0.0.1 -p "$PORT_DB" -U me postgres -c'
    database = Service(name="db", run=run, ready=f"{ask} 'select 1'", seconds=60)
    with serving.RunningServices([database], place) as up:
        receipt = fired(f"{ask} 'create table t (n int)'; {ask} 'insert into t values (42)'; {ask} 'table t'", up)
        assert (receipt.exit, receipt.output) == (0, "42\n"), receipt
    assert not fired(f"PORT_DB={up.ports['db']} bash -c '{ask} \"select 1\"'", place).green
    assert left(place) == []


def test_a_real_redis_serves_a_check(place: CheckEnvironment) -> None:
    """A value is set and read; the server is gone afterwards."""
    if not (program("redis-server") and program("redis-cli")):
        pytest.skip("not installed here: redis-server or redis-cli")
    run = 'exec redis-server --port "$PORT" --bind 127.0.0.1 --dir "$TMPDIR" --save ""'
    store = Service(name="redis", run=run, ready='redis-cli -p "$PORT" ping | grep PONG >/dev/null', seconds=30)
    with serving.RunningServices([store], place) as up:
        receipt = fired('redis-cli -p "$PORT" set k 42; redis-cli -p "$PORT_REDIS" get k', up)
        assert (receipt.exit, receipt.output) == (0, "OK\n42\n")
        gone = f"redis-cli -p {up.ports['redis']} ping"
    assert not fired(gone, place).green
