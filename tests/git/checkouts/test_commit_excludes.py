"""New files that no commit takes are named with the reason; all others are taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.git.checkouts import commit_excludes


def split_new(project: Path, *names: str, leave: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    """Create the missing files, then sift their names."""
    for name in names:
        if name[-1:] != "/" and not os.path.lexists(project / name):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text("x")
    return commit_excludes.split_new_files(str(project), sorted(names), leave)


@pytest.mark.parametrize(
    "name", [".env", ".env.local", "a/.ENV", "id_rsa", "id_ed25519.pub", "tls/Server.PEM", "x.key"]
)
def test_what_may_hold_a_secret_stays_out(tmp_path: Path, name: str) -> None:
    """In any folder and in any case."""
    assert split_new(tmp_path, name) == ([], [f"{name} (on the exclude list, it may hold a secret)"])


@pytest.mark.parametrize("name", [".env.example", "environment", "keys.py", "a.keyboard", "rsa.c", "venv.py", "my.env"])
def test_what_only_looks_like_a_secret_is_taken(tmp_path: Path, name: str) -> None:
    """A fresh clone needs `.env.example`."""
    assert split_new(tmp_path, name) == ([name], [])


@pytest.mark.parametrize("folder", ["node_modules", ".venv", "a b/venv", "src/__pycache__"])
def test_a_folder_of_packages_is_named_once(tmp_path: Path, folder: str) -> None:
    """Ten thousand files are one line of the result."""
    names = [f"{folder}/{name}" for name in ("a", "b/c", "z.key")]
    assert split_new(tmp_path, *names, "zz") == (["zz"], [f"{folder}/ (on the exclude list)"])


def test_target_is_excluded_only_where_it_is_cargos(tmp_path: Path) -> None:
    """Such a folder may also hold source."""
    assert split_new(tmp_path, "a/target/x") == (["a/target/x"], [])
    split_new(tmp_path, "Cargo.toml", "b/target/CACHEDIR.TAG")
    assert split_new(tmp_path, "target/x") == ([], ["target/ (on the exclude list)"])
    assert split_new(tmp_path, "b/target/x") == ([], ["b/target/ (on the exclude list)"])


def test_a_large_file_stays_out_and_its_link_does_not(tmp_path: Path) -> None:
    """5 MiB is the maximum."""
    for name, size in (("most", 5 << 20), ("more", (5 << 20) + 1), ("six", 6 << 20)):
        with open(tmp_path / name, "wb") as file:
            file.truncate(size)
    (tmp_path / "link").symlink_to("six")
    taken, out = split_new(tmp_path, "link", "more", "most", "six")
    assert taken == ["link", "most"]
    assert out == ["more (5.0 MiB, over 5 MiB)", "six (6.0 MiB, over 5 MiB)"]


def test_a_repository_inside_stays_out(tmp_path: Path) -> None:
    """Git would take only a link to its commit."""
    assert split_new(tmp_path, "inner/") == ([], ["inner/ (a repository of its own)"])


def test_a_persons_files_and_our_state_stay_out_silently(tmp_path: Path) -> None:
    """Also the content of a person's nested repository that is no longer one."""
    names = (".harness/x", "mine.txt", "theirs/", "was/a", "was/b", "work.txt")
    assert split_new(tmp_path, *names, leave=("mine.txt", "theirs/", "was/")) == (["work.txt"], [])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".harness" / "x").unlink()
    assert split_new(tmp_path, ".harness", ".harnessed") == ([".harnessed"], [])


def test_a_file_that_vanished_meanwhile_is_no_error(tmp_path: Path) -> None:
    """An editor's temporary file; git ignores the name."""
    assert commit_excludes.split_new_files(str(tmp_path), ["gone"], ()) == (["gone"], [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """One such file does not stop the commit of the others."""
    (tmp_path / "locked").write_text("x")
    (tmp_path / "locked").chmod(0)
    assert split_new(tmp_path, "locked") == ([], ["locked (not readable)"])


def test_a_file_behind_a_linked_folder_is_not_the_projects(tmp_path: Path) -> None:
    """Git refuses such a name, and its target is not ours."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nowhere")
    found = [
        name
        for name in ("real/a", "link/a", "link", "dangling", "real", "none")
        if commit_excludes.is_file(str(tmp_path), name)
    ]
    assert found == ["real/a", "link", "dangling"]


@pytest.mark.parametrize("folder", ["sub/.harness", ".Harness", "a/b/.HARNESS"])
def test_the_state_of_a_mission_stays_out_at_any_depth(tmp_path: Path, folder: str) -> None:
    """In any case of letters, as a folder, and as a link or a file of that name."""
    why = "(the state of a mission, which runs must not change)"
    assert split_new(tmp_path, f"{folder}/config.toml", f"{folder}/hooks/x", "sub/harness") == (
        ["sub/harness"],
        [f"{folder}/ {why}"],
    )
    assert split_new(tmp_path / "other", folder, "sub/.harness-notes") == (["sub/.harness-notes"], [f"{folder} {why}"])
