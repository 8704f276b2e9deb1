"""What a person does in the project folder is theirs, and is merged with what runs did without touching a file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.git import landing, merges, repository, settings
from tests import crash
from tests.git_repository import Repository, conflict, new


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A person's repository, with their name configured, on the mission's branch."""
    made = new(tmp_path, monkeypatch)
    made.run("config", "user.name", "Pia")
    made.run("config", "user.email", "pia@localhost")
    made.save(a="1\n", b="2\n", **{"d/c": "3\n"})
    made.run("switch", "-q", "-c", "harness/m")
    settings.use(made.project, settings.record(made.project), str(tmp_path / "private"))
    return made


def take(repo: Repository) -> merges.PersonEdits:
    """What a run does first."""
    return merges.take_edits(repo.project, "harness/m")


def files(repo: Repository) -> dict[str, tuple[int, bytes]]:
    """Inode and bytes of every file of the person's."""
    found = (path for path in repo.folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path): (path.stat().st_ino, path.read_bytes()) for path in found}


# edits


def test_edits_become_a_commit_with_the_persons_name(repo: Repository) -> None:
    """Changed, removed, staged and newly added files; no file is written, nothing is staged afterwards."""
    head = repo.head()
    repo.write("a", "mine\n")
    (repo.folder / "b").unlink()
    repo.write("new", "staged\n")
    repo.run("add", "new")
    before = files(repo)
    taken = take(repo)
    assert repo.head() == taken.commit
    assert taken.note == "taken into the mission, your uncommitted edits of: a, b, new"
    assert repo.run("log", "-1", "--format=%an <%ae>%n%s%n%P") == (
        f"Pia <pia@localhost>\nEdits in the project folder: a, b, new\n{head}"
    )
    assert repo.names(taken.commit) == ["a", "d/c", "new"]
    assert (repo.run("status", "--porcelain"), files(repo)) == ("", before)


def test_untracked_files_stay_untracked(repo: Repository) -> None:
    """An untracked SPEC.md as any other; also a name that was only taken out of the index."""
    repo.write("SPEC.md", "what I want\n")
    repo.write("a", "mine\n")
    repo.run("rm", "-q", "--cached", "b")
    taken = take(repo)
    assert repo.names(taken.commit) == ["a", "d/c"]
    assert repo.run("status", "--porcelain") == "?? SPEC.md\n?? b"
    assert (repo.folder / "b").read_text() == "2\n"


def test_a_folder_that_became_a_link_is_taken_as_such(repo: Repository) -> None:
    """What lies behind it is not taken."""
    (repo.folder / "d").rename(repo.folder.parent / "elsewhere")
    (repo.folder / "d").symlink_to(repo.folder.parent / "elsewhere")
    assert repo.names(take(repo).commit) == ["a", "b"]


def test_without_edits_nothing_happens(repo: Repository) -> None:
    """Neither for a file that was only touched."""
    os.utime(repo.folder / "a")
    head = repo.head()
    assert take(repo) == merges.PersonEdits()
    assert repo.head() == head


def test_without_a_name_the_commit_is_ours(repo: Repository, tmp_path: Path) -> None:
    """Like every commit without a configured name."""
    repo.run("config", "--unset", "user.name")
    settings.use(repo.project, settings.record(repo.project), str(tmp_path / "private"))
    repo.write("a", "mine\n")
    assert take(repo).commit
    assert repo.run("log", "-1", "--format=%an") == "harness"


def test_a_name_that_was_set_after_init_counts(repo: Repository) -> None:
    """It is data and no program: the person's own, as their git has it now."""
    repo.run("config", "user.name", "Pia Later")
    repo.write("a", "mine\n")
    assert take(repo).commit
    assert repo.run("log", "-1", "--format=%an %cn") == "Pia Later Pia Later"


def test_edits_on_another_branch_are_not_the_missions(repo: Repository) -> None:
    """A person who works elsewhere is left alone; the mission's branch is where it was."""
    tip = repo.head()
    repo.run("switch", "-q", "main")
    repo.write("a", "mine\n")
    assert (take(repo).commit, "git switch harness/m" in take(repo).note) == ("", True)
    assert repo.run("status", "--porcelain") == " M a"
    repo.run("checkout", "-q", "--detach")
    assert take(repo).commit == ""
    assert repo.run("rev-parse", "harness/m") == tip


def test_commits_of_a_person_are_the_tip(repo: Repository) -> None:
    """They need nothing from us."""
    repo.save(a="mine\n")
    assert take(repo) == merges.PersonEdits()


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick", "revert", "bisect", "stash pop"])
def test_in_the_middle_of_something_nothing_is_taken(repo: Repository, what: str) -> None:
    """One line says why, and all is as it was."""
    repo.run("switch", "-q", "-c", "other")
    repo.save(a="theirs\n")
    repo.run("switch", "-q", "harness/m")
    if what == "stash pop":
        repo.write("a", "put aside\n")
        repo.run("stash")
    repo.save(a="ours\n")
    words = {"merge": ["merge", "other"], "rebase": ["rebase", "other"], "cherry-pick": ["cherry-pick", "other"]}
    words |= {"revert": ["revert", "--no-commit", "HEAD"], "bisect": ["bisect", "start"], "stash pop": ["stash", "pop"]}
    subprocess.run(["git", *words[what]], cwd=repo.folder, check=False, capture_output=True)
    if what == "bisect":
        repo.write("a", "mine\n")
    before, status = files(repo), repo.run("status", "--porcelain")
    taken = take(repo)
    assert taken.commit == ""
    assert ("git switch" if what == "rebase" else "is under way") in taken.note  # in a rebase HEAD is detached
    assert "\n" not in taken.note
    assert (files(repo), repo.run("status", "--porcelain")) == (before, status)


def test_a_persons_git_at_work_is_not_disturbed(repo: Repository) -> None:
    """Its lock is respected, and stays."""
    repo.write("a", "mine\n")
    repo.write(".git/index.lock", "")
    taken = take(repo)
    assert (taken.commit, "index.lock exists" in taken.note) == ("", True)
    assert (repo.folder / ".git/index.lock").exists()


def test_a_person_who_switches_meanwhile_loses_nothing(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their edits go along to the other branch, and are no commit of the mission's."""
    unfinished = landing.unfinished
    repo.write("a", "mine\n")

    def switching(project: str) -> bool:
        repo.run("switch", "-q", "main")
        return unfinished(project)

    monkeypatch.setattr(landing, "unfinished", switching)
    assert take(repo) == merges.PersonEdits()
    assert (repo.run("branch", "--show-current"), repo.run("status", "--porcelain")) == ("main", " M a")


def test_killed_at_any_moment_and_done_again_the_edits_are_one_commit(repo: Repository) -> None:
    """With no file touched and no lock left."""
    start = repo.head()
    for number in crash.kills(lambda: take(repo), 1 if crash.TORTURE else 3):
        if number % 2:  # git was killed too, maybe in the middle of it: as git's message says
            (repo.folder / ".git/refs/heads/harness/m.lock").unlink(missing_ok=True)
        before = files(repo)
        take(repo)
        assert repo.run("rev-list", "--count", f"{start}..HEAD") in ("0", "1")
        assert (repo.run("status", "--porcelain"), files(repo)) == ("", before)
        assert not (repo.folder / ".git/index.lock").exists()
        (repo.folder / ".git/refs/heads/harness/m.lock").unlink(missing_ok=True)  # of a git that was killed late
        repo.run("update-ref", "refs/heads/harness/m", start)
        repo.run("reset", "-q", "--hard", start)
        repo.write("a", "mine\n")


# merging


def commit(repo: Repository, parent: str, message: str = "work", **texts: str) -> str:
    """A commit of a run: no branch and no file of the person's is touched."""
    index = {"GIT_INDEX_FILE": str(repo.folder.parent / "run-index")}
    repository.run(repo.project, "read-tree", parent, extra=index)
    for name, text in texts.items():
        blob = repository.run(repo.project, "hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
        repository.run(repo.project, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", extra=index)
    tree = repository.run(repo.project, "write-tree", extra=index).decode().strip()
    return repository.commit_tree(repo.project, tree, [parent], message)


def test_where_one_side_holds_the_other_it_is_the_result(repo: Repository) -> None:
    """No commit is made for nothing."""
    start = repo.head()
    run = commit(repo, start, a="run\n")
    for ours, theirs, result in ((run, start, run), (start, run, run), (run, run, run)):
        assert merges.merge(repo.project, ours, theirs, "m") == merges.MergeCommit(commit=result)


def test_both_sides_are_in_one_commit_and_nothing_else_changes(repo: Repository) -> None:
    """The run's first parent is the run, the person's work keeps its author."""
    start = repo.head()
    run = commit(repo, start, a="run\n")
    theirs = repo.save(b="person\n")
    repo.write("d/c", "not yet taken\n")
    before, refs = files(repo), repo.run("for-each-ref")
    made = merges.merge(repo.project, run, theirs, "Merge edits").commit
    assert repo.run("log", "-1", "--format=%s %P", made) == f"Merge edits {run} {theirs}"
    assert (repo.run("show", f"{made}:a"), repo.run("show", f"{made}:b")) == ("run", "person")
    assert (files(repo), repo.run("for-each-ref"), repo.run("status", "--porcelain")) == (before, refs, " M d/c")


def test_a_conflict_is_a_value_that_names_every_path(repo: Repository) -> None:
    """For the person's screen and the next prompt; nothing changes."""
    repo.save(gone="old\n")
    start = repo.head()
    run = commit(repo, start, a="run\n", gone="run\n", **{"odd \n name": "run"})
    repo.run("rm", "-q", "gone")
    theirs = repo.save(a="person\n", **{"odd \n name": "person"})
    refs = repo.run("for-each-ref")
    merged = merges.merge(repo.project, run, theirs, "m")
    assert merged.commit == ""
    assert sorted(merged.conflicts) == ["a", "gone", "odd \n name"]
    assert repo.run("for-each-ref") == refs


def test_conflicts_are_settled_as_in_ours_only_where_that_was_asked(repo: Repository) -> None:
    """Also a file that one side removed, and odd names; what else the person changed is theirs; an unknown conflict stops it."""
    repo.save(gone="old\n")
    run = commit(repo, repo.head(), a="both\n", gone="run\n", **{"odd \n name": "both"})
    repo.run("rm", "-q", "gone")
    theirs = repo.save(a="person\n", b="person\n", **{"odd \n name": "person"})
    paths = ["a", "gone", "odd \n name"]
    tree = merges.settled(repo.project, run, theirs, paths)
    shown = [repo.run("show", f"{tree}:{name}") for name in (*paths, "b", "d/c")]
    assert shown == ["both", "run", "both", "person", "3"]
    other_way = merges.settled(repo.project, theirs, run, paths)
    assert repo.names(other_way) == ["a", "b", "d/c", "odd \n name"]
    assert merges.settled(repo.project, run, theirs, paths[1:]) == ""


def test_histories_without_an_ancestor_are_merged(repo: Repository) -> None:
    """A person who made the branch again from nothing."""
    run = repo.head()
    repo.run("checkout", "-q", "--orphan", "fresh")
    theirs = repo.save(z="1\n")
    made = merges.merge(repo.project, run, theirs, "m").commit
    assert repo.names(made) == ["a", "b", "d/c", "z"]


def test_the_example_of_a_conflict_is_one(repo: Repository) -> None:
    """Unmerged files without a merge under way are named too."""
    conflict(repo)
    (repo.folder / ".git/MERGE_HEAD").unlink()
    taken = merges.take_edits(repo.project, "main")
    assert "conflicts" in taken.note


def test_a_file_alone_is_merged_without_a_repository(tmp_path: Path) -> None:
    """By lines; what conflicts, and what is no text, is not merged, and no file changes."""

    def merged(*sides: bytes) -> bytes | None:
        paths = [tmp_path / name for name in ("-ours", "base", "theirs")]
        for path, data in zip(paths, sides, strict=True):
            path.write_bytes(data)
        found = merges.merged_file(*map(str, paths))
        assert [path.read_bytes() for path in paths] == [*sides]
        return found

    base = b"1\n2\n3\n4\n5\n"
    assert merged(base.replace(b"1", b"one"), base, base.replace(b"5", b"five")) == b"one\n2\n3\n4\nfive\n"
    assert merged(b"x\n", base, b"y\n") is None
    assert merged(b"\0x", base, b"\0y") is None
