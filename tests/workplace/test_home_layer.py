"""A separate HOME per tree: tools find what they need, write without harm, and see no key."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.workplace import _home_list, home_layer


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's HOME with settings, caches and keys."""
    made = tmp_path / "home"
    for name, text in {
        ".gitconfig": "[user]\n\tname = P\n",
        ".ssh/id_ed25519": "secret",
        ".netrc": "secret",
        ".config/gh/hosts.yml": "secret",
        ".config/tool/settings": "mine",
        ".config/pip/pip.conf": "[global]\n",
        ".cargo/bin/cargo": "program",
        ".cargo/registry/cache/host/crate": "crate",
        ".cache/uv/thing": "cached",
        ".npm/_cacache/x": "cached",
        ".npmrc": "registry=x\n//x/:_authToken=secret\n",
        "notes/today": "words",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def made(layer: str, home: Path, *shown: str, env: dict[str, str] | None = None, git: str = "") -> Path:
    """The layer over a HOME, of which also this is shown."""
    return Path(home_layer.make(layer, _home_list.person(str(home), env or {}, shown), git))


def test_a_tool_finds_the_persons_settings_and_programs(home: Path, tmp_path: Path) -> None:
    """By the same names below HOME, as far as they are on the list, or shown."""
    layer = made(str(tmp_path / "layer"), home, ".config/tool", "notes")
    found = {
        name: (layer / name).read_text()
        for name in (".gitconfig", ".config/tool/settings", ".cargo/bin/cargo", "notes/today", ".npmrc")
    }
    assert found == {
        ".gitconfig": '[user]\n\tname = "P"\n',
        ".config/tool/settings": "mine",
        ".cargo/bin/cargo": "program",
        "notes/today": "words",
        ".npmrc": "registry=x\n",
    }


def test_keys_and_logins_are_not_there(home: Path, tmp_path: Path) -> None:
    """Neither as files nor as links; nor is anything else that no list has."""
    layer = made(str(tmp_path / "layer"), home)
    for name in (".ssh", ".netrc", ".config/gh", ".config/tool", "notes"):
        assert not os.path.lexists(layer / name)
    assert "secret" not in (layer / ".npmrc").read_text()
    whole = made(str(tmp_path / "whole"), home, _home_list.ALL)
    assert ((whole / "notes/today").read_text(), os.path.lexists(whole / ".ssh")) == ("words", False)


def test_what_a_layer_of_an_older_harness_links_is_gone(home: Path, tmp_path: Path) -> None:
    """It had links to all but keys."""
    layer = tmp_path / "layer"
    layer.mkdir()
    for name in ("notes", ".npmrc", ".cargo"):
        (layer / name).symlink_to(home / name)
    made(str(layer), home)
    assert (os.path.lexists(layer / "notes"), (layer / ".npmrc").is_symlink()) == (False, False)
    assert (layer / ".cargo/bin/cargo").read_text() == "program"


def test_what_a_tool_writes_into_its_cache_stays_in_the_layer(home: Path, tmp_path: Path) -> None:
    """The person's HOME has the same bytes afterwards, and the next run finds what was written."""
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    layer = made(str(tmp_path / "layer"), home)
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
    made(str(layer), home)
    assert [(layer / name).read_text() for name in written] == ["by a tool"] * len(written)
    assert (layer / ".cargo/registry/cache/host/crate").read_text() == "crate"


def test_a_link_of_the_layer_follows_what_the_person_removes_and_adds(home: Path, tmp_path: Path) -> None:
    """No dangling link, nothing missed."""
    layer = made(str(tmp_path / "layer"), home)
    (home / ".cargo/bin/cargo").unlink()
    (home / ".nvm").mkdir()
    (home / ".nvm/nvm.sh").write_text("set")
    made(str(layer), home)
    assert (os.path.lexists(layer / ".cargo/bin/cargo"), (layer / ".nvm/nvm.sh").read_text()) == (False, "set")


def test_a_layer_below_the_home_itself_does_not_hold_itself(home: Path) -> None:
    """The usual place is ~/.local/state/harness."""
    place = home / ".local/state/harness/mission/home-1"
    layer = made(str(place), home)
    assert (layer / ".gitconfig").exists()
    assert not (layer / ".local/state/harness").exists()


def test_programs_that_a_tool_installs_land_in_the_layer_and_are_found(home: Path, tmp_path: Path) -> None:
    """`cargo install`, `pip install --user` and `go install` add to folders where the person's programs are, too."""
    for name in (
        ".local/bin/mine",
        ".local/lib/python3.11/site-packages/mine.py",
        "go/bin/mine",
        ".rustup/toolchains/a/x",
    ):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("mine")
    layer = made(str(tmp_path / "layer"), home)
    for folder in (".cargo/bin", ".local/bin", ".local/lib/python3.11/site-packages", "go/bin", ".rustup/toolchains"):
        (layer / folder / "new").write_text("by a tool")
        assert not (home / folder / "new").exists()
    env = {"PATH": f"/usr/bin:{home}/.cargo/bin:{home}/.local/bin:{home}/own/bin"}
    path = home_layer.variables(env, str(layer), str(home))["PATH"]
    assert path == f"/usr/bin:{layer}/.cargo/bin:{layer}/.local/bin:{home}/own/bin"


def test_settings_that_tools_rewrite_are_copies_as_new_as_the_persons(home: Path, tmp_path: Path) -> None:
    """A tool's `git config --global` changes the layer's; what the person changes later counts again."""
    layer = made(str(tmp_path / "layer"), home)
    (layer / ".gitconfig").write_text("by a tool")
    made(str(layer), home)
    assert (layer / ".gitconfig").read_text() == "by a tool" and "name = P" in (home / ".gitconfig").read_text()
    (home / ".gitconfig").write_text("[user]\n\tname = Q\n")
    os.utime(home / ".gitconfig", (2_000_000_000, 2_000_000_000))
    made(str(layer), home)
    assert (layer / ".gitconfig").read_text() == '[user]\n\tname = "Q"\n'


def test_git_has_a_persons_identity_and_addresses_without_logins(home: Path, tmp_path: Path) -> None:
    """And what includes add; no key, no program but filters, and no login in an address."""
    (home / ".gitconfig").write_text(
        "[user]\n\tname = P\n[include]\n\tpath = more\n[credential]\n\thelper = store\n[commit]\n\tgpgSign = true\n"
        '[url "https://secret@example.org/"]\n\tinsteadOf = "x:"\n[http]\n\textraHeader = "Authorization: secret"\n'
    )
    (home / "more").write_text("[core]\n\texcludesFile = ~/ignored\n\thooksPath = ~/hooks\n[user]\n\temail = p@x\n")
    (home / "ignored").write_text("*.o\n")
    layer = made(str(tmp_path / "layer"), home)
    text = (layer / ".gitconfig").read_text()
    assert text == (
        '[user]\n\tname = "P"\n[core]\n\texcludesfile = "~/ignored"\n[user]\n\temail = "p@x"\n'
        '[url "https://example.org/"]\n\tinsteadof = "x:"\n'
    )


def test_a_shim_of_pyenv_names_the_layer_and_never_the_persons_folder(home: Path, tmp_path: Path) -> None:
    """A shim exports its root, and `pyenv rehash` rewrites the shims of that root."""
    shim = home / ".pyenv/shims/python"
    shim.parent.mkdir(parents=True)
    shim.write_text(f'export PYENV_ROOT="{home}/.pyenv"\nexec "{home}/.pyenv/libexec/pyenv" exec\n')
    shim.chmod(0o755)
    layer = made(str(tmp_path / "layer"), home)
    copy = layer / ".pyenv/shims/python"
    assert copy.read_text() == f'export PYENV_ROOT="{layer}/.pyenv"\nexec "{layer}/.pyenv/libexec/pyenv" exec\n'
    assert os.access(copy, os.X_OK)


def test_folders_that_variables_name_outside_home_are_opened_too(home: Path, tmp_path: Path) -> None:
    """As in an image that keeps cargo in /usr/local; caches named elsewhere go back below HOME; keys there stay hidden."""
    outside, settings = tmp_path / "usr/cargo", tmp_path / "settings"
    (outside / "bin").mkdir(parents=True)
    (outside / "bin/rustc").write_text("program")
    (settings / "gh").mkdir(parents=True)
    (settings / "gh/hosts.yml").write_text("secret")
    env = {
        "CARGO_HOME": str(outside),
        "XDG_CONFIG_HOME": str(settings),
        "PIP_CACHE_DIR": "/x",
        "PATH": f"{outside}/bin",
        "LANG": "C",
    }
    layer = made(str(tmp_path / "layer"), home, env=env)
    assert (layer / ".cargo/bin/rustc").read_text() == "program"
    assert not os.path.lexists(layer / ".config/gh")
    assert home_layer.variables(env, str(layer), str(home)) == {
        "CARGO_HOME": f"{layer}/.cargo",
        "XDG_CONFIG_HOME": f"{layer}/.config",
        "PATH": f"{layer}/.cargo/bin",
        "LANG": "C",
        "HOME": str(layer),
    }
    assert {f"{home}/.ssh", f"{settings}/gh"} <= set(home_layer.keys(str(home), env))


def test_large_files_of_the_project_are_there_and_new_ones_stay_in_the_layer(home: Path, tmp_path: Path) -> None:
    """git is told of the place by one more setting of its environment."""
    kept = tmp_path / "git/lfs/objects/ab/cd/abcd"
    kept.parent.mkdir(parents=True)
    kept.write_text("large")
    layer = made(str(tmp_path / "layer"), home, git=str(tmp_path / "git"))
    assert (layer / ".git-lfs/objects/ab/cd/abcd").read_text() == "large"
    (layer / ".git-lfs/objects/ab/cd/new").write_text("by a tool")
    assert not (kept.parent / "new").exists()
    env = home_layer.variables({"GIT_CONFIG_COUNT": "1"}, str(layer), str(home))
    assert (env["GIT_CONFIG_COUNT"], env["GIT_CONFIG_KEY_1"], env["GIT_CONFIG_VALUE_1"]) == (
        "2",
        "lfs.storage",
        f"{layer}/.git-lfs",
    )


def test_links_that_a_tool_left_in_the_layer_lead_no_write_of_ours_elsewhere(home: Path, tmp_path: Path) -> None:
    """A folder or a file of the layer replaces a link, also a file or a pipe."""
    layer = made(str(tmp_path / "layer"), home)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("as it was")
    shutil.rmtree(layer / ".cargo")
    (layer / ".cargo").symlink_to(victim)
    shutil.rmtree(layer / ".config")
    os.mkfifo(layer / ".config")
    (layer / ".gitconfig").unlink()
    (layer / ".gitconfig").symlink_to(victim / "file")
    made(str(layer), home)
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"file": "as it was"}
    assert (layer / ".config/pip/pip.conf").read_text() == "[global]\n"
    assert "name" in (layer / ".gitconfig").read_text()


def test_a_home_with_nothing_in_it_has_a_layer(tmp_path: Path) -> None:
    """Or none at all, as in a container."""
    (tmp_path / "home").mkdir()
    for home in ("home", "absent"):
        layer = made(str(tmp_path / f"layer-{home}"), tmp_path / home)
        assert os.listdir(layer) == []


def test_an_index_of_crates_is_a_copy_that_cargo_rewrites(home: Path, tmp_path: Path) -> None:
    """An entry written through a link would change the person's, or would not be written behind glass."""
    entry = ".cargo/registry/index/host/.cache/th/in/thing"
    (home / entry).parent.mkdir(parents=True)
    (home / entry).write_text("1.0")
    layer = made(str(tmp_path / "layer"), home)
    assert (layer / entry).read_text() == "1.0"
    (layer / entry).write_text("1.1")
    made(str(layer), home)
    assert ((layer / entry).read_text(), (home / entry).read_text()) == ("1.1", "1.0")


# the packages of a mission


CACHED = (".cache/pip/http/a", ".npm/_cacache/content/b", "go/pkg/mod/cache/download/c", ".cargo/registry/cache/host/d")


def downloaded(where: Path) -> Path:
    """A HOME of checks after a setup: packages, and what else tools wrote."""
    for name in (*CACHED, ".npm/_logs/today", ".cache/other/x", "go/pkg/mod/module/x", ".local/bin/tool"):
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(name)
    return where


def files_of(folder: Path) -> set[str]:
    """The files below the folder, without links."""
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file() and not one.is_symlink()}


def test_a_new_layer_begins_with_a_copy_of_the_packages_and_of_nothing_else(home: Path, tmp_path: Path) -> None:
    """What is written into it later stays in it, and an existing one is left alone."""
    kept = home_layer.packages_of(str(tmp_path / "tree-1.home"))
    home_layer.take_packages(str(downloaded(tmp_path / "tree-1.home")), kept)
    assert files_of(Path(kept)) == {*CACHED}
    person = _home_list.person(str(home), {})
    layer = Path(home_layer.make(str(tmp_path / "tree-2.home"), person, packages=kept))
    assert {*CACHED} <= files_of(layer)
    assert os.readlink(layer / ".cargo/registry/cache/host/crate") == str(home / ".cargo/registry/cache/host/crate")
    (layer / CACHED[0]).write_text("changed")
    assert (Path(kept) / CACHED[0]).read_text() == CACHED[0]
    old = tmp_path / "tree-3.home"
    old.mkdir()
    assert not {*CACHED} & files_of(Path(home_layer.make(str(old), person, packages=kept)))


def test_packages_are_replaced_as_a_whole_and_what_a_kill_left_is_no_cache(tmp_path: Path) -> None:
    """The folder appears when all of it is there."""
    kept, first = tmp_path / "packages", downloaded(tmp_path / "one")
    (tmp_path / "packages.new/.npm/_cacache").mkdir(parents=True)
    (tmp_path / "packages.new/.npm/_cacache/half").write_text("")
    home_layer.take_packages(str(first), str(kept))
    assert (files_of(kept), sorted(os.listdir(tmp_path))) == ({*CACHED}, ["one", "packages"])
    (tmp_path / "two/.npm/_cacache").mkdir(parents=True)
    (tmp_path / "two/.npm/_cacache/new").write_text("")
    home_layer.take_packages(str(tmp_path / "two"), str(kept))
    assert files_of(kept) == {".npm/_cacache/new"}


def test_no_link_of_a_setup_brings_a_persons_files_into_the_packages(tmp_path: Path) -> None:
    """A cache that is a link, or below one, is left out; a link in a cache stays a link; a pipe is waited for by nobody."""
    made, secret = tmp_path / "layer", tmp_path / "person"
    for name in ("pip/token", "_cacache/token"):
        (secret / name).parent.mkdir(parents=True)
        (secret / name).write_text("secret")
    made.mkdir()
    (made / ".cache").symlink_to(secret)
    (made / ".npm").mkdir()
    (made / ".npm/_cacache").symlink_to(secret / "_cacache")
    (made / "go/pkg/mod/cache/download").mkdir(parents=True)
    (made / "go/pkg/mod/cache/download/in").symlink_to(secret / "pip/token")
    kept = tmp_path / "packages"
    home_layer.take_packages(str(made), str(kept))
    assert files_of(kept) == set()
    assert (kept / "go/pkg/mod/cache/download/in").is_symlink()
    os.mkfifo(made / "go/pkg/mod/cache/download/pipe")
    home_layer.take_packages(str(made), str(tmp_path / "again"))
    assert not (tmp_path / "again").exists() and not (tmp_path / "again.new").exists()
