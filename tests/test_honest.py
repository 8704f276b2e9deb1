"""Honest tools work behind the glass: each in a small project of its own, on every tier, with cold and with warm caches.

HOME is a layer over the HOME of who runs the tests. HARNESS_TORTURE=1 adds the slow tools and those that need a registry.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.process import supervise
from tests.crash import sampled
from tests.honest import (
    CARGO,
    CONTROL,
    PROJECTS,
    TIERS,
    TORTURE,
    Place,
    crate_registry,
    fault,
    listing,
    missing,
    needs_glass,
)

PERSON = Path.home()


def works(tool: str, tier: str, folder: Path, home: Path = PERSON) -> None:
    """Run a tool's project confined; skip with the reason where that cannot be done here."""
    project = PROJECTS[tool]
    if project.slow and not TORTURE:
        pytest.skip("takes longer than 3 s: HARNESS_TORTURE=1 runs it")
    needs_glass(tier)
    if gone := missing(project):
        pytest.skip(f"not installed: {gone}")
    if project.registry and (said := fault(Place(folder / "without", project.files, CONTROL, home), project)):
        pytest.skip(f"no registry can be reached, also without glass: {said[-300:]}")
    said = fault(Place(folder / tier, project.files, tier, home), project)
    assert not said, said


every_tier = pytest.mark.parametrize("tier", TIERS)
both_glasses = pytest.mark.parametrize("tier", sampled(TIERS, CONTROL.__ne__))


@every_tier
@pytest.mark.parametrize("tool", ["cargo", "cargo install", "cargo registry"])
def test_cargo_builds_tests_and_installs(tool: str, tier: str, tmp_path: Path) -> None:
    """Toolchains of rustup are the person's; crates and installed programs stay in the layer."""
    works(tool, tier, tmp_path)


@pytest.fixture
def near_registry(tmp_path: Path) -> Iterator[Path]:
    """A HOME whose cargo takes crates from a server of this machine."""
    home, site = tmp_path / "person", tmp_path / "site"
    (home / ".cargo").mkdir(parents=True)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        (home / ".cargo/config.toml").write_text(crate_registry(site, url, "thing", "other"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield home
        server.shutdown()


@pytest.mark.skipif(not TORTURE, reason="takes longer than 3 s: HARNESS_TORTURE=1 runs it")
@every_tier
def test_cargo_uses_the_crates_that_a_person_has_and_keeps_new_ones_apart(
    tier: str, near_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a warm cache in HOME: a dependency more is fetched, built again offline, and not seen in the person's cache."""
    needs_glass(tier)
    if (gone := missing(PROJECTS["cargo"])) or not (PERSON / ".rustup").exists():
        pytest.skip(f"not installed: {gone or '~/.rustup'}")
    monkeypatch.setenv("RUSTUP_HOME", str(PERSON / ".rustup"))
    files = {**CARGO, "Cargo.toml": CARGO["Cargo.toml"] + 'thing = "0.1"\n', ".gitignore": "target\nCargo.lock\n"}
    person = Place(tmp_path / "warm", files, CONTROL, near_registry)
    ended = person.run("cargo fetch")
    assert ended.code == 0, ended.said
    shutil.copytree(person.layer / ".cargo/registry", near_registry / ".cargo/registry")
    before = listing(near_registry)
    place = Place(tmp_path / tier, files, tier, near_registry)
    for script in ("cargo build --offline", "cargo add other && cargo build && cargo clean && cargo build --offline"):
        ended = place.run(script)
        assert ended.code == 0 and "warning" not in ended.said, ended.said
    assert listing(near_registry) == before


@every_tier
@pytest.mark.parametrize("tool", ["npm", "npm registry"])
def test_npm_installs_packages_and_runs_scripts(tool: str, tier: str, tmp_path: Path) -> None:
    """From a folder, and from the registry through its cache."""
    works(tool, tier, tmp_path)


@both_glasses
def test_node_runs(tier: str, tmp_path: Path) -> None:
    """With a temporary folder that it may write."""
    works("node", tier, tmp_path)


@both_glasses
@pytest.mark.parametrize("tool", ["venv", "pip", "pip registry"])
def test_pip_installs_into_a_virtual_environment(tool: str, tier: str, tmp_path: Path) -> None:
    """Made in the tree, from a wheel and from the registry through its cache."""
    works(tool, tier, tmp_path)


@every_tier
def test_uv_syncs_adds_and_installs_tools(tier: str, tmp_path: Path) -> None:
    """Its cache and its tools are the layer's."""
    works("uv", tier, tmp_path)


@every_tier
@pytest.mark.parametrize("tool", ["pyenv", "pyenv pip"])
def test_pyenv_finds_versions_and_rewrites_its_shims(tool: str, tier: str, tmp_path: Path) -> None:
    """Also after a `pip install`, and never those of the person."""
    works(tool, tier, tmp_path)


@both_glasses
def test_git_lfs_shows_and_restores_large_files(tier: str, tmp_path: Path) -> None:
    """A changed one shows in `git status` and `git diff`, although the project's git folder is read-only."""
    works("git-lfs", tier, tmp_path)


@both_glasses
def test_make_builds_with_ccache(tier: str, tmp_path: Path) -> None:
    """And the second build hits the cache."""
    works("ccache", tier, tmp_path)


@every_tier
def test_go_builds_tests_and_installs(tier: str, tmp_path: Path) -> None:
    """With its build cache in the layer."""
    works("go", tier, tmp_path)


@every_tier
def test_a_check_reaches_a_service_on_its_port(tier: str, tmp_path: Path) -> None:
    """Both are confined, each on its own, with the host's network."""
    needs_glass(tier)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = Place(tmp_path, {"page": "served\n"}, tier, PERSON)
    with supervise.Child(
        ["bash", "-ec", f"exec python3 -m http.server {port} --bind 127.0.0.1"],
        cwd=str(place.tree),
        env=place.env(),
        wall_seconds=60,
        grace_seconds=0.0,
        confine=place.confinement(),
    ):
        until, answer = time.monotonic() + 60, (1, "")
        while answer[0] and time.monotonic() < until:
            answer = place.run(f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /page HTTP/1.0\\n\\n' >&3; cat <&3")
    assert answer[0] == 0 and answer[1].endswith("served\n")


@pytest.mark.parametrize("tier", sampled(TIERS, CONTROL.__eq__))
@pytest.mark.parametrize("tool", ["node", "venv", "npm", "git-lfs", "ccache"])
def test_a_home_with_nothing_in_it_is_enough_and_stays_empty(tool: str, tier: str, tmp_path: Path) -> None:
    """What the tools write lands in the layer, also where nothing but the layer keeps them from the person's HOME."""
    home = tmp_path / "person"
    home.mkdir()
    works(tool, tier, tmp_path, home)
    assert listing(home) == {}


@every_tier
def test_no_tool_changes_the_persons_home(tier: str, tmp_path: Path) -> None:
    """Neither size nor time of a file or a folder, also where nothing but the layer keeps a tool from it."""
    home = tmp_path / "person"
    for name in (
        ".cache/pip/x",
        ".npm/_cacache/x",
        ".npm/_logs/x",
        ".ccache/x",
        ".config/x/y",
        ".local/bin/x",
        ".gitconfig",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("")
    before = listing(home)
    write = "for x in .cache/pip .npm/_cacache .npm/_logs .ccache .config .local/bin; do mkdir -p ~/$x; echo new > ~/$x/new; done"
    needs_glass(tier)
    place = Place(tmp_path, {}, tier, home)
    ended = place.run(f"{write}; git config --global user.name new; mkdir ~/.new; npm ls || true")
    assert ended.code == 0, ended.said
    assert listing(home) == before
    assert (place.layer / ".npm/_cacache/new").read_text() == "new\n"


def _programs(folder: Path, *names: str) -> str:
    """A PATH with these programs alone, each of which succeeds."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to("/bin/true")
    return str(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs without a password")
def test_a_missing_bubblewrap_fails_ci_where_it_can_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And skips on a developer's machine, and where no package manager or no namespace is to be had."""
    can, cannot = _programs(tmp_path / "can", "apt-get", "unshare"), _programs(tmp_path / "cannot", "unshare")
    for path, ci, outcome in ((can, "1", "Failed"), (can, "", "Skipped"), (cannot, "1", "Skipped")):
        monkeypatch.setenv("PATH", path)
        monkeypatch.setenv("CI", ci)
        with pytest.raises(BaseException) as raised:
            needs_glass()
        assert type(raised.value).__name__ == outcome
