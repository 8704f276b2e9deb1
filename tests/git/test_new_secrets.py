"""What of a run's work is a secret: a certain one keeps its file out of the tree, others are named, what was there stays."""

from __future__ import annotations

import os
import random
import string
from pathlib import Path

import pytest

from harness.git import new_secrets
from harness.git.new_secrets import SecretCheck
from tests.git_repository import Repository

DICE = random.Random(7)
LETTERS = string.ascii_letters + string.digits


def drawn(count: int, among: str = LETTERS) -> str:
    """Random characters: no token stands in this file, since hosts of code refuse such a push."""
    return "".join(DICE.choice(among) for _ in range(count))


AWS = "AK" + "IA" + drawn(16, string.ascii_uppercase + "234567")
CERTAIN = {
    "aws-key-id": f"aws_access_key_id = {AWS}\n",
    "aws-secret": f"aws_secret_access_key = {drawn(40)}\n",
    "github-token": f"url = gh{'p_'}{drawn(36)}\n",
    "slack-token": f"x: xo{'xb-'}{drawn(12, string.digits)}-{drawn(24)}\n",
    "stripe-key": f"pay('sk{'_live_'}{drawn(24)}')\n",
    "anthropic-key": f"sk-{'ant-'}api03-{drawn(90)}\n",
    "openai-key": f"sk-{'proj-'}{drawn(48)}\n",
    "private-key": f"-----BEGIN {'PRIVATE'} KEY-----\n{drawn(64)}\n{drawn(64)}\n-----END PRIVATE KEY-----\n",
}
DOUBTFUL = {
    "assignment": f'password = "{drawn(14)}7x"\n',
    "stripe-key": f"pay('sk{'_test_'}{drawn(24)}')\n",
    "google-key": f"AI{'za'}{drawn(35)}\n",
}
HARMLESS = [
    "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
    "aws_access_key_id = AKIA1234567890ABCDEF\n",
    "token = ghp_abcdefghijklmnopqrstuvwxyz0123456789\n",
    "password = changeme\n",
    "key: sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
    '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="\n',
    "id = 550e8400-e29b-41d4-a716-446655440000\n",
    "commit 8ef92ae41c3c9d3b6d2c1f0a9b8e7d6c5f4a3b2c\n",
    "if '-----BEGIN PRIVATE KEY-----' in text:\n",
    f"{CERTAIN['github-token'].strip()}  # gitleaks:allow\n",
]


def looked(repo: Repository, **texts: str) -> SecretCheck:
    """What is found when a run leaves these files, on top of what is committed."""
    opened = repo.open()
    for name, text in texts.items():
        repo.write(name, text)
    made = repo.work(opened)
    return new_secrets.keep_out(repo.project, index=repo.index, parent=opened.standing.head, tree=made.tree)


@pytest.mark.parametrize("rule", CERTAIN)
def test_a_certain_secret_keeps_its_file_out_and_only_that(repo: Repository, rule: str) -> None:
    """A new file is not in the tree; the line says where, and which rule."""
    found = looked(repo, **{"conf.txt": f"one\n{CERTAIN[rule]}", "ok.txt": "text\n"})
    assert repo.names(found.tree) == ["a", "b", "ok.txt"]
    assert (found.out, found.tracked, found.doubtful) == (["conf.txt"], [], [])
    assert found.kept_out == [f"conf.txt (line 2 holds a secret: {rule})"]


def test_a_tracked_file_stays_as_it_was(repo: Repository) -> None:
    """Its other changes stay out with it, and the folder has it as before."""
    before = (repo.folder / "a").read_text()
    found = looked(repo, a=before + CERTAIN["github-token"], new=CERTAIN["aws-key-id"])
    assert repo.run("show", found.tree + ":a") == before.rstrip("\n")
    assert (found.out, found.tracked) == (["a", "new"], ["a"])
    new_secrets.put_back(repo.project, repo.index, found)
    assert ((repo.folder / "a").read_text(), (repo.folder / "new").exists()) == (before, False)


@pytest.mark.parametrize("rule", DOUBTFUL)
def test_what_may_be_a_secret_is_committed_and_named(repo: Repository, rule: str) -> None:
    """The value itself is nowhere in what is said."""
    found = looked(repo, **{"conf.txt": DOUBTFUL[rule]})
    assert repo.names(found.tree) == ["a", "b", "conf.txt"]
    assert (found.out, found.doubtful) == ([], [f"conf.txt line 1 ({rule})"])


@pytest.mark.parametrize("text", HARMLESS)
def test_examples_hashes_and_what_its_line_allows_are_no_secrets(repo: Repository, text: str) -> None:
    """Documentation keys, typed ones, lock files, UUIDs, commit ids, the marks of other scanners."""
    found = looked(repo, **{"conf.txt": text})
    assert (found.out, found.doubtful, repo.names(found.tree)) == ([], [], ["a", "b", "conf.txt"])


def test_what_was_committed_before_is_not_the_runs_doing(repo: Repository) -> None:
    """A line beside it may change, and it may move to another file; a second secret there counts."""
    both = CERTAIN["aws-key-id"] + CERTAIN["private-key"] + DOUBTFUL["assignment"]
    repo.save(old=both)
    (repo.folder / "old").unlink()
    found = looked(repo, moved="first\n" + both, again=both + CERTAIN["github-token"])
    assert (found.out, found.doubtful) == (["again"], [])
    assert repo.names(found.tree) == ["a", "b", "moved"]


def test_before_the_first_commit_every_secret_is_new(empty: Repository) -> None:
    """There is no parent to look into."""
    found = looked(empty, conf=CERTAIN["aws-key-id"], ok="1\n")
    assert empty.names(found.tree) == ["ok"]


def test_binary_files_and_links_are_passed_over_and_long_ones_read_in_part(repo: Repository) -> None:
    """A file of 4 MiB is read to its bound, a bound for all files holds, and what it leaves out is said."""
    opened = repo.open()
    (repo.folder / "binary").write_bytes(b"\0" + CERTAIN["aws-key-id"].encode())
    os.symlink("binary", repo.folder / "link")
    repo.write("long", "x\n" * new_secrets.MAX_FILE_BYTES + CERTAIN["aws-key-id"])
    for number in range(new_secrets.MAX_TOTAL_BYTES // new_secrets.MAX_FILE_BYTES):
        repo.write(f"z{number:02}", "x y z\n" * (new_secrets.MAX_FILE_BYTES // 6 + 1))
    made = repo.work(opened)
    found = new_secrets.keep_out(repo.project, index=repo.index, parent=opened.standing.head, tree=made.tree)
    assert (found.tree, found.out) == (made.tree, [])
    assert found.doubtful == ["1 files that were not checked, such as z15"]


def test_many_are_named_in_part(repo: Repository) -> None:
    """So a run's line stays readable."""
    found = looked(repo, conf="".join(f'password_{number} = "{drawn(14)}7x"\n' for number in range(9)))
    assert (len(found.doubtful), found.doubtful[-1]) == (new_secrets.MAX_SHOWN_LINES + 1, "and 4 more")


def test_what_a_filter_encrypts_is_no_secret(repo: Repository) -> None:
    """The commit counts, not the folder."""
    repo.save(**{".gitattributes": "*.enc filter=hide\n"})
    repo.run("config", "filter.hide.clean", "wc -c")
    found = looked(repo, **{"conf.enc": CERTAIN["aws-key-id"]})
    assert (found.out, Path(repo.project, "conf.enc").exists()) == ([], True)
