"""Fresh clones: everything of the commit, and nothing that only the project's own git has."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.git import repository, settings
from harness.git.checkouts import clones
from tests.git_repository import Repository, new


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with a tag and a person's global configuration."""
    (tmp_path / "global").write_text('[user]\n\tname = Ada\n[filter "loud"]\n\tsmudge = tr a-z A-Z\n\tclean = cat\n')
    made = new(tmp_path, monkeypatch)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    made.save(a="one\n")
    made.run("tag", "v1")
    return made


def cloned(repo: Repository, tmp_path: Path, commit: str = "", refs: dict[str, str] | None = None) -> Path:
    """A clone, with the configuration as it is now."""
    recorded = settings.record(repo.project)
    (tmp_path / "home").mkdir(exist_ok=True)
    target = tmp_path / "room" / "repo"
    target.parent.mkdir()
    config = clones.configuration(recorded, str(tmp_path / "home"))
    clones.make(repo.project, str(target), commit or repo.head(), recorded, config, refs=refs)
    return target


def test_a_clone_of_some_refs_has_nothing_newer(repo: Repository, tmp_path: Path) -> None:
    """Those branches and refs of ours alone: no tag, no later commit."""
    first = repo.head()
    repo.save(b="two\n")
    clone = cloned(repo, tmp_path, first, {"refs/heads/old": first, "refs/harness/partial/run": first})
    known = {"refs/harness/partial/run", "refs/heads/old", "refs/remotes/origin/old", "refs/remotes/origin/HEAD"}
    assert set(said(clone, "for-each-ref", "--format=%(refname)").split()) <= known
    assert said(clone, "rev-parse", "refs/harness/partial/run") == first
    assert said(clone, "log", "--all", "--format=%s") == "a"


def said(clone: Path, *words: str) -> str:
    """What git says there."""
    return Repository(clone).run(*words)


def test_a_clone_has_the_commit_its_history_branches_and_tags(repo: Repository, tmp_path: Path) -> None:
    """Detached, with a git folder of its own that hangs on no other."""
    repo.save(b="two\n")
    clone = cloned(repo, tmp_path, repo.run("rev-parse", "HEAD^"))
    assert sorted(path.name for path in clone.iterdir()) == [".git", "a"]
    assert said(clone, "status", "--porcelain", "--branch") == "## HEAD (no branch)"
    assert said(clone, "tag") == "v1"
    assert said(clone, "log", "--format=%s", "origin/main") == "b\na"
    assert not (clone / ".git" / "objects" / "info" / "alternates").exists()
    assert [
        path for path in (clone / ".git").glob("*") if path.is_file() and repo.project.encode() in path.read_bytes()
    ] == []
    said(clone, "fsck", "--strict")


def test_a_commit_that_no_branch_has_is_cloned_too(repo: Repository, tmp_path: Path) -> None:
    """The position of a mission is such a one while its branch is behind."""
    made = repository.commit_tree(repo.project, repo.run("rev-parse", "HEAD^{tree}"), [repo.head()], "ahead")
    assert said(cloned(repo, tmp_path, made), "rev-parse", "HEAD") == made


def test_nothing_local_is_cloned(repo: Repository, tmp_path: Path) -> None:
    """Filters, attributes, hooks, settings, replaced objects, grafts and stashed files of the project's own git."""
    repo.save(**{".gitattributes": "a filter=own\n"})
    git = repo.folder / ".git"
    repo.run("config", "filter.own.smudge", "echo filtered")
    repo.run("config", "words.said", "hello")
    (git / "info").mkdir(exist_ok=True)
    (git / "info" / "attributes").write_text("* filter=own\n")
    (git / "hooks").mkdir(exist_ok=True)
    (git / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch hooked\n")
    (git / "hooks" / "post-checkout").chmod(0o755)
    (tmp_path / "other").write_text("other\n")
    repo.run("replace", repo.run("rev-parse", "HEAD:a"), repo.run("hash-object", "-w", str(tmp_path / "other")))
    repo.run("update-ref", "refs/hidden/kept", "HEAD")
    clone = cloned(repo, tmp_path)
    assert (clone / "a").read_text() == "one\n"
    assert sorted(path.name for path in clone.iterdir()) == [".git", ".gitattributes", "a"]
    assert "refs/replace" not in said(clone, "for-each-ref")
    assert "refs/hidden" not in said(clone, "for-each-ref")
    assert "words.said" not in said(clone, "config", "--list", "--local")
    assert list((clone / ".git").glob("hooks/*")) == []
    assert clones.local(repo.project, settings.record(repo.project)) == [
        "info/attributes",
        "refs/replace",
        "filter.own.smudge",
    ]


def test_a_filter_of_the_persons_own_configuration_works(repo: Repository, tmp_path: Path) -> None:
    """As it would in anybody's clone who has it, as with git-lfs."""
    repo.save(**{".gitattributes": "a filter=loud\n"})
    assert (cloned(repo, tmp_path) / "a").read_text() == "ONE\n"


def test_a_forged_object_is_found(repo: Repository, tmp_path: Path) -> None:
    """An object file whose content is not what its name says: no clone, and git's own words."""
    repo.write("evil", "evil\n")
    made, asked = repo.run("hash-object", "-w", "evil"), repo.run("rev-parse", "HEAD:a")
    objects = repo.folder / ".git" / "objects"
    target = objects / asked[:2] / asked[2:]
    target.chmod(0o644)
    target.write_bytes((objects / made[:2] / made[2:]).read_bytes())
    with pytest.raises(repository.GitFailed, match="git clone failed"):
        cloned(repo, tmp_path)


def test_the_remote_is_the_one_of_the_project(repo: Repository, tmp_path: Path) -> None:
    """So that a submodule with a relative address is found; without one, nothing leads to this machine."""
    repo.run("remote", "add", "origin", "https://example.org/a.git")
    assert said(cloned(repo, tmp_path), "config", "remote.origin.url") == "https://example.org/a.git"


def test_the_configuration_of_a_clone_is_the_recorded_one(repo: Repository, tmp_path: Path) -> None:
    """The person's global one as it was, all directories safe; not what was written there since."""
    recorded = settings.record(repo.project)
    (tmp_path / "global").write_text("[words]\n\tsaid = hello\n")
    (tmp_path / "home").mkdir()
    config = clones.configuration(recorded, str(tmp_path / "home"))
    listed = repo.run("config", "--file", config, "--list")
    assert "user.name=Ada" in listed
    assert "safe.directory=*" in listed
    assert "words.said" not in listed


def test_files_that_name_a_folder_are_found(repo: Repository, tmp_path: Path) -> None:
    """Also in what git takes for binary."""
    repo.write("b", f"\0{repo.project}")
    repo.save(c="none\n")
    clone = cloned(repo, tmp_path)
    config = str(tmp_path / "home" / ".gitconfig")
    assert clones.naming(str(clone), config, [repo.project, "/nowhere"]) == ["b"]
    assert clones.naming(str(clone), config, ["/nowhere"]) == []
