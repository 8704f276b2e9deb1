"""The configuration that our git has is the recorded one, whole, and each call ends in time."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from harness.git import repository, settings
from tests.git.test_doors import Place, place, repo
from tests.git_repository import Repository

__all__ = ["place", "repo"]  # fixtures
LONG = f"1234.{os.getpid()}"  # seconds


def test_what_somebody_changed_in_our_own_folder_is_made_right(place: Place) -> None:
    """At the start of each process."""
    private = Path(place.private)
    (private / "config").write_text(f'[filter "evil"]\n\tclean = {place.program}\n')
    (private / "info/attributes").write_text("* filter=evil\n")
    (private / "objects").unlink()
    (private / "objects").mkdir()
    place.use()
    place.everything()
    assert not place.canary.exists()


def test_what_a_person_configured_later_is_named_and_not_run(place: Place) -> None:
    """So that they can have it recorded."""
    assert settings.later(place.project, place.recorded) == []
    place.repo.run("config", "filter.new.clean", "tr 9 1")
    place.repo.write(".git/info/attributes", "* filter=new\n")
    place.repo.write("a", "2\n")
    assert repository.dirty(place.project) == ["a"]
    assert settings.later(place.project, place.recorded) == ["filter.new.clean", "info_attributes"]
    place.recorded = settings.RecordedSettings(**json.loads(json.dumps(settings.record(place.project).asdict())))
    place.use()
    place.repo.write("a", "9\n")
    assert repository.dirty(place.project) == []


def test_every_value_survives_the_record(repo: Repository, tmp_path: Path) -> None:
    """Quotes, backslashes, line ends, key without value, section names with dots; as plain values."""
    values = {
        "filter.a b.c.other": 'x "y" \\n #;\n z',
        'merge.q"t.name': " lead ",
        "core.whitespace": "trailing\ttab",
    }
    for key, value in values.items():
        repo.run("config", key, value)
    with (repo.folder / ".git/config").open("a") as file:
        file.write("[lfs]\n\tbare\n")
    place = Place(repo, tmp_path)
    for key, value in values.items():
        assert repository.run(place.project, "config", "--get", key) == os.fsencode(value) + b"\n"
    assert repository.run(place.project, "config", "--type=bool", "--get", "lfs.bare") == b"true\n"


def test_a_filter_that_hangs_ends_with_a_clear_error_and_leaves_nothing(repo: Repository, tmp_path: Path) -> None:
    """Neither it nor the daemon that it started."""
    program = tmp_path / "hang"
    program.write_text(f"#!/bin/sh\n[ -e now ] || exec cat\nsetsid sleep {LONG} &\nsleep {LONG}\n")
    program.chmod(0o755)
    repo.run("config", "filter.slow.clean", str(program))
    repo.save(**{".gitattributes": "a filter=slow\n"})
    place = Place(repo, tmp_path)
    repo.write("now")
    repo.write("a", "2\n")
    begun = time.monotonic()
    with pytest.raises(settings.GitHung, match=r"git status .* did not end within 4 seconds.*filter"):
        settings.call(place.project, "status", wall_seconds=4.0)
    assert time.monotonic() - begun < 60
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    assert not [line for line in lines if LONG.encode() in line]
    assert not (repo.folder / ".git/index.lock").exists()


def test_a_git_that_hangs_without_any_program_is_ended(place: Place) -> None:
    """A pipe that an agent lays where git reads."""
    os.mkfifo(place.repo.folder / "pipe")
    with pytest.raises(settings.GitHung, match="did not end within 1 seconds"):
        settings.call(place.project, "hash-object", "pipe", wall_seconds=1.0)
