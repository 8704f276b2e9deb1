"""What a person's tools execute by themselves reaches their branch, and their folder only when they accept or merge it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.git import _executables, landing, repository, settings
from tests import crash
from tests.git.test_merges import commit
from tests.git_repository import Repository, new

BRANCH, HELD = "harness/m", "harness/m-held"
STEP = 1 if crash.TORTURE else 7
EXECUTED = {
    **dict.fromkeys(
        (
            ".husky/pre-commit",
            "web/.Husky/_/husky.sh",
            ".envrc",
            "c/d/.ENVRC",
            ".vscode/tasks.json",
            "x/.vscode/tasks.json",
        ),
        "x\n",
    ),
    **dict.fromkeys(("hooks/dir/post-merge", "HOOKS/DIR/post-merge", ".pre-commit-config.yaml", "lefthook.yml"), "x\n"),
    ".gitattributes": "# about\n*.psd  diff=x filter=lfs -text\n",
    "deep/er/.gitattributes": "[attr]big filter=lfs\n",
}
NOT_EXECUTED = {
    ".gitattributes": "* text=auto diff=python -filter\n",
    "c/.gitattributes": "filter=none text\n",
    **dict.fromkeys((".envrc.example", "husky/x", ".vscode/extensions.json", "hooks/direct", "docs/tasks.json"), "x\n"),
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A person's repository on the mission's branch, with a tracked folder of hooks."""
    made = new(tmp_path, monkeypatch)
    made.save(a="1\n", b="1\n")
    made.run("switch", "-q", "-c", BRANCH)
    made.run("config", "core.hooksPath", "hooks/dir")
    settings.use(made.project, settings.record(made.project), str(tmp_path / "private"))
    return made


def found(repo: Repository, **files: str) -> list[str]:
    """What is found of a commit with these files."""
    made = commit(repo, repo.head(), **files)
    return _executables.find(
        repo.project, made, [path for _, path in repository.changed(repo.project, repo.head(), made)]
    )


def test_what_tools_execute_is_found_at_any_depth(repo: Repository) -> None:
    """In any case of letters, with who executes it; other files of these names are not."""
    assert sorted(line.split(" (")[0] for line in found(repo, **EXECUTED)) == sorted(EXECUTED)
    assert found(repo, **NOT_EXECUTED) == []
    assert found(repo, **{".envrc": "x"}) == [".envrc (direnv, in its folder)"]


@pytest.mark.parametrize("hooks", ["", ".git/hooks", "/elsewhere/hooks", "~/hooks"])
def test_hooks_outside_the_tracked_files_concern_no_commit(repo: Repository, hooks: str) -> None:
    """A folder of git's own, of the machine, or none."""
    repo.run("config", "core.hooksPath", hooks)
    assert found(repo, **{"hooks/dir/x": "1", "hooks/y": "1", "elsewhere/hooks/z": "1"}) == []


def state(repo: Repository) -> tuple[str, str, str, str]:
    """The branch and the commit that are checked out, what differs, and where the mission's branch is."""
    words = (("branch", "--show-current"), ("rev-parse", "HEAD"), ("status", "--porcelain"), ("rev-parse", BRANCH))
    here, head, status, branch = (repo.run(*one) for one in words)
    return here, head, status, branch


def test_the_branch_moves_and_the_folder_stays(repo: Repository) -> None:
    """So it is with commits after it; once it is accepted the folder has all of it, on the branch."""
    head = repo.head()
    made = commit(repo, head, **{".envrc": "touch pwned\n", "a": "2\n"})
    line = landing.land(repo.project, BRANCH, made)
    assert line == (
        f"your folder {repo.project} stays at {head[:12]}, on {HELD}: {BRANCH} changes files that your tools execute: .envrc "
        f"(direnv, in its folder). Review: git diff HEAD...{BRANCH}. Accept: harness workspace accept   or git merge {BRANCH}"
    )
    assert (state(repo), (repo.folder / "a").read_text()) == ((HELD, head, "", made), "1\n")
    later = commit(repo, made, b="2\n")
    assert landing.land(repo.project, BRANCH, later) == line
    assert (state(repo), (repo.folder / ".envrc").exists()) == ((HELD, head, "", later), False)
    assert landing.land(repo.project, BRANCH, later, accepted=True) == ""
    assert (state(repo), (repo.folder / ".envrc").read_text()) == ((BRANCH, later, "", later), "touch pwned\n")
    assert repo.run("branch", "--list", HELD) == ""
    assert landing.land(repo.project, BRANCH, commit(repo, later, b="3\n")) == ""
    assert (repo.folder / "b").read_text() == "3\n"


def test_a_commit_that_takes_it_back_frees_the_folder(repo: Repository) -> None:
    """What counts is what the folder would get, not what was in between."""
    made = commit(repo, repo.head(), **{".envrc": "x\n", "a": "2\n"})
    landing.land(repo.project, BRANCH, made)
    tree = repository.tree_of(repo.project, commit(repo, repo.head(), a="2\n", b="2\n"))
    back = repository.commit_tree(repo.project, tree, [made], "back\n")
    assert landing.land(repo.project, BRANCH, back) == ""
    assert (state(repo), (repo.folder / "b").read_text()) == ((BRANCH, back, "", back), "2\n")


@pytest.mark.parametrize("way", ["merge", "switch"])
def test_a_person_who_takes_it_by_hand_is_not_held(repo: Repository, way: str) -> None:
    """By a merge into their folder, or on the mission's branch itself: from then on the folder follows."""
    made = commit(repo, repo.head(), **{".envrc": "x\n"})
    landing.land(repo.project, BRANCH, made)
    repo.run(way, "-q", BRANCH)
    later = commit(repo, made, a="2\n")
    assert landing.land(repo.project, BRANCH, later) == ""
    assert (state(repo), (repo.folder / "a").read_text()) == ((BRANCH, later, "", later), "2\n")


def test_edits_of_a_person_stop_the_folder_and_not_the_branch(repo: Repository) -> None:
    """Of a file that changes; what they edited elsewhere stays as it is."""
    made = commit(repo, repo.head(), **{".envrc": "x\n", "a": "2\n"})
    repo.write("a", "mine\n")
    repo.write("b", "mine\n")
    head = repo.head()
    landing.land(repo.project, BRANCH, made)
    assert state(repo) == (HELD, head, " M a\n M b", made)
    assert "a has changes of yours" in landing.land(repo.project, BRANCH, made, accepted=True)
    assert state(repo) == (HELD, head, " M a\n M b", made)
    repo.run("checkout", "-q", "--", "a")
    assert landing.land(repo.project, BRANCH, made, accepted=True) == ""
    assert state(repo) == (BRANCH, made, " M b", made)


def test_a_branch_of_that_name_with_commits_of_its_own_is_left_alone(repo: Repository) -> None:
    """Then the mission's branch stays behind, as it does where a file is in the way."""
    head, made = repo.head(), commit(repo, repo.head(), **{".envrc": "x\n"})
    theirs = commit(repo, head, b="mine\n")
    repo.run("branch", HELD, theirs)
    assert f"{HELD} has commits of its own" in landing.land(repo.project, BRANCH, made)
    assert (state(repo), repo.run("rev-parse", HELD)) == ((BRANCH, head, "", head), theirs)


def test_killed_at_any_moment_nothing_is_executed_and_nothing_lost(repo: Repository) -> None:
    """While the folder is held and while it is let go: done again it is as if nothing had happened."""
    head = repo.head()
    made = commit(repo, head, **{".envrc": "x\n", "a": "2\n"})
    for step in crash.kills(lambda: landing.land(repo.project, BRANCH, made), STEP):
        assert state(repo)[1:3] == (head, ""), step
        assert "stays at" in landing.land(repo.project, BRANCH, made), step
        assert state(repo) == (HELD, head, "", made), step
        repo.run("switch", "-q", "-C", BRANCH, head)
        repo.run("branch", "-q", "-D", HELD)
    landing.land(repo.project, BRANCH, made)
    for step in crash.kills(lambda: landing.land(repo.project, BRANCH, made, accepted=True), STEP):
        landing.land(repo.project, BRANCH, made, accepted=True)
        assert state(repo) == (BRANCH, made, "", made), step
        (repo.folder / f".git/refs/heads/{HELD}.lock").unlink(missing_ok=True)  # of a killed git; recovery removes it
        repo.run("switch", "-q", "-C", HELD, head)
