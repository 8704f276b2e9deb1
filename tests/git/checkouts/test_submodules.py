"""Submodules are in trees and clones as plain files of their pins, from addresses that a person committed or accepted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.git import settings
from harness.git.checkouts import submodules
from tests.git_repository import Repository, new
from tests.missions import House
from tests.planned import reply
from tests.run.played import to_done

HERE = "cat lib/a/text lib/a/deep/text"


def library(folder: Path, *added: str) -> Repository:
    """A repository with a file `text` and these submodules, each as `address path`."""
    made = Repository(folder)
    folder.mkdir()
    made.run("init", "-q", "-b", "main", "--template=")
    for one in added:
        made.run("submodule", "-q", "add", *one.split(" "))
    made.save(text=f"of {folder.name}\n", **{"sub/.gitattributes": "* filter=x\n"})
    return made


def vendor(top: Repository) -> Repository:
    """Give the repository a submodule lib/a, which has one at deep; their commits are in git's folder."""
    above = top.folder.parent
    library(above / "inner")
    found = library(above / "outer", "../inner deep")
    top.run("submodule", "-q", "add", "--name", "own", "../outer", "lib/a")
    top.run("submodule", "-q", "update", "--init", "--recursive")
    top.run("commit", "-q", "-m", "modules")
    return found


def vendored(house: House) -> House:
    """A house whose repository has these submodules, by this plan."""
    vendor(Repository(house.project))
    house.config('agent = "scripted"')
    rows = [{"id": "VAL-1", "claim": "It adds", "checks": [f"test -f 1.txt && {HERE}"]}]
    setup = "git submodule update --init --recursive"
    made = {"id": "F-1", "title": "Adding", "claims": ["VAL-1"]}
    house.script("planner", reply(features=[made], contract=rows, setup=setup))
    return house


def test_a_mission_has_its_submodules_from_init_to_done(unbegun: House) -> None:
    """Also nested ones, and in the clones of the sweep; no address is reached. A setup that still fetches them does nothing."""
    house = vendored(unbegun)
    clean = 'test -z "$(git status --porcelain)"'
    house.script("worker", {"run": f"{HERE} && git status && {clean} && echo 1 >1.txt"})
    said = to_done(house)
    assert "note: submodule lib/a at " in said and "note: submodule lib/a/deep at " in said, said
    assert [said.count(word) for word in ("available", "nobody", "warning: submodule")] == [2, 0, 0]
    assert (house.tree / "lib/a/deep/text").read_text() == "of inner\n"
    assert not list(house.tree.glob("lib/**/.git"))
    assert "lib/a at" in house.harness("doctor").out


def test_a_clone_for_checks_has_them(unbegun: House) -> None:
    """Before its setup, which may still fetch them."""
    house = vendored(unbegun)
    setup = "```sh setup\ngit submodule update --init --recursive\n```"
    rows = f"# Contract\n\n{setup}\n\n### VAL-1: It is there\n\n```sh check\n{HERE}\n```\n"
    path = house.folder / "contract.md"
    path.write_text(rows)
    done = house.harness("verify", str(path), "--at", "HEAD")
    assert done.code == 0, done


def fill(top: Repository, folder: Path, commit: str = "", head: str = "") -> list[str]:
    """Lay the submodules of a commit into a folder, for a configuration recorded at `head`; the lines about what is missing."""
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    recorded = settings.record(top.project).replace(head=head or top.head())
    found = submodules.find(top.project, commit or top.head(), recorded, str(folder))
    return [str(one) for one in found if one.fault]


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with submodules, and a person's filter, which the files name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = new(tmp_path, monkeypatch)
    made.save(text="of top\n")
    vendor(made)
    made.run("config", "--file", str(tmp_path / "global"), "filter.x.smudge", "tr a-z A-Z")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    return made


def files_of(folder: Path) -> list[str]:
    """The files in a folder of a submodule."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize(
    "harm",
    [
        "echo x >>lib/a/text",
        "echo x >lib/a/more",
        "rm -r lib/a",
        "git init -q lib/a",
        "git init -q lib/a/deep",
        "mv lib/a elsewhere && ln -s ../elsewhere lib/a",
        "mv lib elsewhere && ln -s elsewhere lib",
        "rm -r lib && echo x >lib",
        "chmod -R a-w lib/a/sub && rm -f lib/a/deep/text",
        "cp -p lib/a/text t; echo OF OUTER >lib/a/text; touch -r t lib/a/text",
    ],
)
def test_what_an_agent_did_there_does_not_stay(top: Repository, tmp_path: Path, harm: str) -> None:
    """Nothing is written through a link, and an untouched folder is left as it is."""
    tree = tmp_path / "tree"
    assert fill(top, tree) == []
    assert (tree / "lib/a/sub/.gitattributes").read_text() == "* filter=x\n"
    known, made = files_of(tree / "lib/a"), (tree / "lib/a/text").stat().st_mtime_ns
    assert fill(top, tree) == [] and (tree / "lib/a/text").stat().st_mtime_ns == made
    os.utime(tree / ".git", (1, 1))
    subprocess.run(harm, shell=True, cwd=tree, check=True)
    assert fill(top, tree) == []
    assert files_of(tree / "lib/a") == known and not (tree / "lib").is_symlink()
    assert (tree / "lib/a/text").read_text() + (tree / "lib/a/deep/text").read_text() == "of outer\nof inner\n"
    assert (tree / ".git").stat().st_mtime > 1


def test_an_ignored_file_of_setup_stays(top: Repository, tmp_path: Path) -> None:
    """As everywhere in a tree."""
    outer = Repository(top.folder / "lib/a")
    outer.save(**{".gitignore": "made\n"})
    top.save()
    fill(top, tmp_path / "tree")
    (tmp_path / "tree/lib/a/made").write_text("x")
    assert fill(top, tmp_path / "tree") == []
    assert (tmp_path / "tree/lib/a/made").exists()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("file:///nowhere", "transport 'file' not allowed"),
        ("ext::sh -c true", "transport 'ext' not allowed"),
        ("http://x/y", "transport 'http' not allowed"),
        ("-x", "strange pathname '-x' blocked"),
        ("--upload-pack=touch x", "blocked"),
        ("https://harness.invalid/x", "harness.invalid"),
    ],
)
def test_a_pin_that_nobody_has_is_one_line(top: Repository, tmp_path: Path, address: str, said: str) -> None:
    """With its path, commit and address, and git's words; the other submodules are there."""
    pin = top.run("rev-parse", ":lib/a")
    shutil.rmtree(top.folder / ".git/modules/own")
    top.run("config", "-f", ".gitmodules", "submodule.own.url", address)
    top.run("add", ".gitmodules")
    top.run("commit", "-q", "-m", "elsewhere")
    (line,) = fill(top, tmp_path / "tree")
    assert line.startswith(f"submodule lib/a at {pin[:12]} ({address}): not to be had: ") and said in line


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("../../x", "lib/a"),
        ("/x", "lib/a"),
        ("own/../own", "lib/a"),
        ("own", "../lib/a"),
        ("own", "/lib/a"),
        ("own", "lib"),
    ],
)
def test_a_name_or_path_that_leads_elsewhere_is_not_followed(
    top: Repository, tmp_path: Path, name: str, path: str
) -> None:
    """Although the objects would be there."""
    text = f'[submodule "{name}"]\n\tpath = {path}\n\turl = ../outer\n'
    top.write(".gitmodules", text)
    top.run("commit", "-q", "-m", "hostile", ".gitmodules")
    (line,) = fill(top, tmp_path / "tree")
    assert "no .gitmodules of yours names it and a safe address" in line
    assert not (tmp_path / "tree/lib/a/text").exists()


@pytest.mark.parametrize(
    ("address", "outer", "found"),
    [
        ("../x.git", "https://h/o/r.git", "https://h/o/x.git"),
        ("../../p/x", "git@h:o/r", "git@h:p/x"),
        ("../x", "h:r", "h:x"),
        ("./x", "https://h/r/", "https://h/r/x"),
        ("../x", "/a/b", "/a/x"),
        ("https://h/x", "https://h/o/r.git", "https://h/x"),
    ],
)
def test_a_relative_address_is_that_of_git(address: str, outer: str, found: str) -> None:
    """Against the remote of the repository that the submodule is in."""
    assert submodules._resolved(address, outer) == found


def test_an_address_by_a_run_waits_for_a_person(house: House) -> None:
    """What they committed counts until they accept the file, or commit it."""
    top = Repository(house.project)
    vendor(top)
    change = "git config -f .gitmodules submodule.own.url https://harness.invalid/x"
    house.work({"run": f"echo 1 >1.txt && {change}"})
    commit = house.git("rev-parse", "HEAD")
    assert "harness.invalid" in house.git("show", f"{commit}:.gitmodules")
    assert "https://harness.invalid" not in (before := house.harness("doctor").out) and "lib/a at" in before
    assert ".gitmodules" in house.harness("workspace", "accept").out
    assert "(https://harness.invalid/x): available" in house.harness("doctor").out


def test_a_missing_pin_is_a_warning_of_the_run(house: House) -> None:
    """Which goes on, since the work may not need it."""
    vendor(Repository(house.project))
    shutil.rmtree(house.project / ".git/modules")
    house.script("worker", {"run": "echo 1 >1.txt"})
    done = house.role("worker")
    assert done.code == 0 and house.result()["outcome"] == "ok", done
    assert (done.out + done.err).count("warning: submodule lib/a at ") == 1
    assert "transport 'file' not allowed" in done.out + done.err


def test_a_fetched_pin_needs_no_second_fetch(top: Repository, tmp_path: Path) -> None:
    """Over ssh, by the program of a person's configuration, which is recorded; later it is read from the state folder."""
    shutil.rmtree(top.folder / ".git/modules")
    Repository(tmp_path / "outer").save(later="x\n")  # so no branch is at the pin
    program = tmp_path / "connect"
    program.write_text(f'#!/bin/sh\necho "$@" >>"{tmp_path}/asked"\nshift\nexec sh -c "$*"\n')
    program.chmod(0o755)
    top.run("config", "--file", str(tmp_path / "global"), "core.sshCommand", f"'{program}'")
    top.run("config", "-f", ".gitmodules", "submodule.own.url", f"ssh://host{tmp_path}/outer")
    top.run("commit", "-q", "-m", "elsewhere", ".gitmodules")
    assert fill(top, tmp_path / "one") == []
    asked = (tmp_path / "asked").read_text()
    assert fill(top, tmp_path / "two") == []
    assert (tmp_path / "two/lib/a/deep/text").read_text() == "of inner\n" and (tmp_path / "asked").read_text() == asked
