"""A HOME of a tree's own: tools find what they need, write where it hurts nobody, and see no key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.integrity import home_layer


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's HOME with settings, caches and keys."""
    made = tmp_path / "home"
    for name, text in {
        ".gitconfig": "[user]\n",
        ".ssh/id_ed25519": "secret",
        ".netrc": "secret",
        ".config/gh/hosts.yml": "secret",
        ".config/tool/settings": "mine",
        ".cargo/bin/cargo": "program",
        ".cargo/registry/cache/host/crate": "crate",
        ".cache/uv/thing": "cached",
        ".npm/_cacache/x": "cached",
        ".npmrc": "registry=x",
        "notes/today": "words",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def test_a_tool_finds_the_persons_settings_and_programs(home: Path, tmp_path: Path) -> None:
    """By the same names below HOME."""
    layer = Path(home_layer.make(str(tmp_path / "layer"), str(home)))
    found = {
        name: (layer / name).read_text()
        for name in (".gitconfig", ".config/tool/settings", ".cargo/bin/cargo", "notes/today")
    }
    assert found == {
        ".gitconfig": "[user]\n",
        ".config/tool/settings": "mine",
        ".cargo/bin/cargo": "program",
        "notes/today": "words",
    }


def test_keys_and_logins_are_not_there(home: Path, tmp_path: Path) -> None:
    """Neither as files nor as links."""
    layer = Path(home_layer.make(str(tmp_path / "layer"), str(home)))
    for name in (".ssh", ".netrc", ".config/gh"):
        assert not os.path.lexists(layer / name)


def test_what_a_tool_writes_into_its_cache_stays_in_the_layer(home: Path, tmp_path: Path) -> None:
    """The person's HOME has the same bytes afterwards, and the next run finds what was written."""
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    layer = Path(home_layer.make(str(tmp_path / "layer"), str(home)))
    written = (
        ".cache/uv/new",
        ".npm/_cacache/new",
        ".cargo/registry/cache/host/new",
        ".config/new/settings",
        ".new-tool",
        ".local/x",
    )
    for name in written:
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        (layer / name).write_text("by a tool")
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    home_layer.make(str(layer), str(home))
    assert [(layer / name).read_text() for name in written] == ["by a tool"] * len(written)
    assert (layer / ".cargo/registry/cache/host/crate").read_text() == "crate"


def test_a_link_of_the_layer_follows_what_the_person_removes_and_adds(home: Path, tmp_path: Path) -> None:
    """No dangling link, nothing missed."""
    layer = Path(home_layer.make(str(tmp_path / "layer"), str(home)))
    (home / ".npmrc").unlink()
    (home / ".vimrc").write_text("set")
    home_layer.make(str(layer), str(home))
    assert (os.path.lexists(layer / ".npmrc"), (layer / ".vimrc").read_text()) == (False, "set")


def test_a_layer_below_the_home_itself_does_not_hold_itself(home: Path) -> None:
    """The usual place is ~/.local/state/harness."""
    place = home / ".local/state/harness/mission/home-1"
    layer = Path(home_layer.make(str(place), str(home)))
    assert (layer / ".gitconfig").exists()
    assert not (layer / ".local/state/harness").exists()
