"""The list of attempts to break out: what stands in it, and on which tier it is refused."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.process.confine import BUBBLEWRAP
from tests.confinement import forbidden
from tests.confinement import stage as trial
from tests.confinement.forbidden import BOTH, GLASS, Stage
from tests.confinement.test_attempts import furnish
from tests.missions import House


@pytest.fixture
def stage(bare: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A mission with a tree, and a person's files."""
    furnish(bare, monkeypatch)
    with trial.Set(trial.begin(str(bare.folder / "try")), []) as made:
        yield made.stage


def tiers(stage: Stage) -> dict[str, tuple[str, ...]]:
    """{attempt: the tiers that refuse it} of what is forbidden."""
    made = forbidden.attempts(stage.replace(processes={"the run": os.getpid()}), BUBBLEWRAP)
    return {one.what: one.tiers for one in made if not one.allowed}


def test_every_part_of_the_promise_is_attempted(stage: Stage) -> None:
    """State, git's common folder and the tree's own, a person's settings, the harness, moves, mounts, orders."""
    listed = tiers(stage)
    for what in (
        *(
            f"{verb} .harness/{name}"
            for verb in ("write", "move", "delete")
            for name in ("features.json", "memory/raw.md")
        ),
        *(f"create the project/.git/{name}" for name in ("hooks/post-checkout", "info/attributes", "refs/heads/x")),
        *("write ~/.gitconfig", "replace ~/.bashrc", "write ~/.config/git/config", "create ~/.zshrc", "crontab -"),
        *("mv .git x; cp -r x .git", "rename the project folder", "rename the folder of the tree"),
        *("mount -o remount,bind,rw /", "mount -o remount,bind,rw the project"),
        *(
            "harness accept",
            "harness claim accept",
            "harness issue close",
            "harness feature retry",
            "harness identity forget",
        ),
        *("setsid env -i harness escalation answer", "write the project/SPEC.md after somebody saved it"),
    ):
        assert listed[what if "accept" not in what or "claim" in what else f"{what} {stage.run_id}"] == BOTH, what
    assert sum(what.endswith("/commondir") for what in listed) == 4
    assert any(what.endswith(f"identity/{forbidden.NEW}") for what in listed)


def test_landlock_promises_refused_reads_and_no_namespace(stage: Stage) -> None:
    """Sockets and signals are for bubblewrap alone."""
    listed = tiers(stage)
    for what in ("read ~/.ssh", "read ~/.aws", "read ~/.gnupg", "read ~/.netrc", "read the tree of another mission"):
        assert listed[what] == BOTH, what
    assert listed[f"connect to {stage.socket}"] == listed["kill the run"] == GLASS
    assert listed["trace the run"] == BOTH


def test_what_a_person_does_not_have_is_not_read(stage: Stage) -> None:
    """There is nothing to see in a folder that is empty or gone."""
    (Path.home() / ".ssh" / "id").unlink()
    (Path.home() / ".netrc").unlink()
    assert not {"read ~/.ssh", "read ~/.netrc"} & tiers(stage).keys()


def test_sockets_are_found_the_own_one_first(stage: Stage) -> None:
    """And that of the session's bus, and no file that is none."""
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    (runtime / "file").touch()
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(runtime / "bus"))
        found = forbidden.sockets(stage.socket)
    assert found[0] == stage.socket and str(runtime / "bus") in found
    assert str(runtime / "file") not in found
    assert len(found) <= forbidden.MOST_SOCKETS
