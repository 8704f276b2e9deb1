"""The configuration that our git has is the recorded one, whole, and each call ends in time."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from harness.git import repository, settings
from tests.crash import TORTURE
from tests.git.test_doors import Place, place, repo
from tests.git_repository import Repository
from tests.missions import CHECKOUT, House

__all__ = ["place", "repo"]  # fixtures
LONG = f"1234.{os.getpid()}"  # seconds
PERSON = {"name": ('ä <"#;\\', "\udcff"), "email": ("", "x y")}
ODD: dict[str, tuple[str, ...]] = {  # the oddest values of each key that is kept, and some keys of each section
    **{f"{who}.{what}": values for who in ("user", "author", "committer") for what, values in PERSON.items()},
    "init.defaultbranch": ("ä/b", "HEAD"),
    "core.autocrlf": ("input", "true"),
    "core.eol": ("native", "crlf"),
    "core.logallrefupdates": ("false", "always"),
    "core.checkroundtripencoding": ("UTF-16,SHIFT-JIS", ""),
    "core.filemode": ("false", "1"),
    "core.symlinks": ("false", "on"),
    "core.ignorecase": ("true", "0"),
    "core.precomposeunicode": ("true", "no"),
    "core.protecthfs": ("true", ""),
    "core.protectntfs": ("false", "yes"),
    "core.longpaths": ("true", ""),
    "core.excludesfile": ("", "~/no/such/file"),
    "core.trustctime": ("false", "1"),
    "core.checkstat": ("minimal", "default"),
    "core.repositoryformatversion": ("1", "0"),
    "core.sharedrepository": ("0660", "everybody"),
    "core.compression": ("0", "-1"),
    "core.loosecompression": ("9", "0"),
    "core.sshcommand": ('false "a b"', ""),
    "core.askpass": ("/no/such/program", ""),
    "extensions.noop": ("x", ""),
    "filter.un.used.clean": ("", "false"),
    "filter.lfs.process": ("no-such-program", ""),
    "merge.default": ("text", "no-such-driver"),
    "merge.renames": ("false", "copies"),
    "merge.conflictstyle": ("zdiff3", "diff3"),
    "merge.verifysignatures": ("true", ""),
    "lfs.url": ("https://example.invalid/a b", ""),
    "remote.o.x.url": ("ext::sh -c false", "."),
    "remote.o.x.mirror": ("true", ""),
    "remote.pushdefault": ("nowhere", ""),
    "url./nowhere/.insteadof": ("gh:", "https://"),
    "http.proxy": ("foo", ""),
    "http.https://h/.extraheader": ("a: b", ""),
    "credential.helper": ("!false", ""),
}
OTHERS = {  # keys that are not kept, which would change what git of the harness does, or stop it
    **dict.fromkeys(("core.splitIndex", "core.untrackedCache", "core.fsmonitor", "core.ignoreStat"), "true"),
    "core.bigFileThreshold": "1",
    "core.abbrev": "no",
    "core.logAllRefUpdates": "always",
    "core.commentChar": "x",
    "core.whitespace": "cr-at-eol,tabwidth=63",
    "core.notesRef": "refs/x",
    "core.packedGitLimit": "1",
    "init.templateDir": "/no/where",
    "init.defaultObjectFormat": "sha256",
    "index.version": "4",
    "feature.manyFiles": "true",
    "status.showUntrackedFiles": "no",
    "diff.noprefix": "true",
    "diff.external": "false",
}


def odd(which: int, *only: str) -> dict[str, str]:
    """The first or the second odd value of each key; two that git itself refuses beside each other are left out."""
    made = {key: values[which] for key, values in ODD.items() if key in only or not only}
    return {key: value for key, value in made.items() if (key, value) != ("core.eol", "crlf")}


def configure(repo: Repository, values: dict[str, str], scope: str = "--local") -> None:
    """Set these keys."""
    for key, value in values.items():
        repo.run("config", scope, key, value)


def test_each_kept_key_of_core_has_an_odd_value_here() -> None:
    """So that a key that is added is tried, too."""
    kept = {key for key in settings.KEPT if "." in key}
    assert kept <= ODD.keys()
    assert {key.partition(".")[0] for key in ODD if key not in kept} == {key for key in settings.KEPT if "." not in key}


@pytest.mark.parametrize("only", [(), *([(key,) for key in ODD] if TORTURE else [])], ids=lambda only: only and only[0])
@pytest.mark.parametrize("which", [0, 1])
def test_a_repository_with_odd_settings_is_worked_on_as_any_other(
    repo: Repository, tmp_path: Path, which: int, only: tuple[str, ...]
) -> None:
    """Every kept key with an odd value, the others beside them, and an index that is split already."""
    repo.run("update-index", "--split-index")
    configure(repo, {**odd(which, *only), **OTHERS})
    assert list(Path(repo.folder, ".git").glob("sharedindex.*"))
    Place(repo, tmp_path).everything()


def test_a_mission_under_odd_settings_reaches_done(bare: House) -> None:
    """Of the person, which hold in clones, and of the repository; through run.sh."""
    bare.env["GIT_CONFIG_GLOBAL"] = str(bare.folder / "gitconfig")
    bare.repository(commit=False)
    claim = {"id": "VAL-1", "claim": "It works", "checks": ["grep -q x made.txt", "git status --porcelain"]}
    feature = {"id": "F-001", "title": "Part", "claims": ["VAL-1"], "spec_refs": ["Part"]}
    plan, done = {"features": [feature], "contract": [claim]}, {"status": "implemented", "summary": "made"}
    for role, run, said in (("planner", "true", plan), ("worker", "echo x >made.txt; git status", done)):
        bare.write(f"playbooks/{role}.md", f"```sh\n{run}\n```\n\n```json harness\n{json.dumps(said)}\n```\n")
    bare.git("add", "-A")
    bare.git("commit", "-q", "-m", "begin")
    for scope, which in (("--global", 1), ("--local", 0)):
        for key, value in {**odd(which), **OTHERS}.items():
            bare.git("config", scope, key, value)
    ended = bare.run([str(CHECKOUT / "run.sh")])
    assert (ended.code, "1 of 1 features passed" in ended.out) == (0, True), ended


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
        "core.sshCommand": "trailing\ttab",
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
