"""The folders of a lane on its machine: it says what it lacks, and lets one run at a time in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import harness
from harness.agents import registry
from harness.base.errors import Unavailable
from harness.mission import config
from harness.process import supervise
from harness.process.confine import BUBBLEWRAP, Confinement, Glass
from harness.run.machines import _site
from harness.state.layout import Layout


def where(tmp_path: Path, lane: str = "m/tree-1") -> dict[str, str]:
    """The folders at home."""
    top = str(tmp_path / "project")
    return {
        "top": top,
        "project": top,
        "state": top + "/.harness",
        "tree": top,
        "identity": str(tmp_path),
        "lane": lane,
    }


def test_it_names_all_that_it_lacks(tmp_path: Path) -> None:
    """Another version, an agent that is not installed, and a path at which nothing can be mounted."""
    layout = Layout(str(tmp_path))
    agents = {
        name: registry.settings_of(layout, config.Config(trust="full"), name, "worker")
        for name in ("codex", "playbook")
    }
    path = os.environ["PATH"]
    os.environ["PATH"] = "/usr/bin:/bin"
    try:
        found = _site.lacks("0.0", agents, "auto", {**where(tmp_path), "tree": "/usr/nowhere"})
    finally:
        os.environ["PATH"] = path
    assert [line.split(" ")[0] for line in found] == ["the", "a", "codex:"], found
    assert "/usr/nowhere" in found[1]


@pytest.mark.parametrize(
    ("place", "why"),
    [("project/home", "a HOME (or XDG_STATE_HOME) outside"), ("file/home", "a folder for its lanes: Not a dir")],
)
def test_a_lane_needs_a_folder_that_no_mount_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, why: str
) -> None:
    """A HOME below the project, and one that cannot be written, are named before a run begins."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / place))
    home = where(tmp_path) | {"identity": str(tmp_path / "identity")}
    (line,) = _site.lacks(harness.__version__, {}, "auto", home)
    assert line.startswith(why)


def test_a_mission_without_confinement_has_no_machines(tmp_path: Path) -> None:
    """The tree could not be mounted at its path."""
    (line,) = _site.lacks(harness.__version__, {}, "off", where(tmp_path))
    assert line.startswith("bubblewrap")


def test_a_path_that_this_machine_lacks_is_mounted_in_a_root_of_its_own(tmp_path: Path) -> None:
    """As that of a person's HOME which only home has."""
    root = _site.root_for(["/nowhere/at/all", str(tmp_path)])
    assert "/usr" in root
    glass = Glass(root=root, moved={"/nowhere/at/all": str(tmp_path)}, writable=["/nowhere/at/all"])
    found: list[bytes] = []
    supervise.run(
        ["bash", "-c", "pwd > here; cat here; echo $?; ls /usr | head -1"],
        cwd=str(tmp_path),
        env={"PATH": "/usr/bin:/bin"},
        wall_seconds=20,
        sink=lambda _, data: found.append(data),
        confine=Confinement(glass=glass, tier=BUBBLEWRAP),
    )
    assert b"".join(found) == b"/nowhere/at/all\n0\nbin\n"
    assert (tmp_path / "here").exists()
    assert _site.root_for([str(tmp_path), "/tmp/x"]) == []


def test_a_lane_is_below_the_state_home(tmp_path: Path) -> None:
    """Whatever home calls it."""
    assert _site.folder_of(where(tmp_path)).endswith("/harness/machines/m/tree-1")
    assert _site.commits(where(tmp_path)) == []
    for lane in ("../x", "m/../../x", "/etc"):
        with pytest.raises(Unavailable):
            _site.folder_of(where(tmp_path, lane))
