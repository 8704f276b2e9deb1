"""What git's configuration names for files runs confined, whatever an agent leaves where it starts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import MutableMapping
from pathlib import Path

import pytest

from harness.base.errors import HarnessError
from harness.git import landing, merges, repository, settings
from harness.git.checkouts import clones, worktrees
from harness.mission.contract import Contract
from harness.process import confine, drivers
from harness.process.confine import BUBBLEWRAP, LANDLOCK
from tests.git_repository import new
from tests.missions import CHECKOUT, House
from tests.planned import accept_all, claim, feature, lay, reply
from tests.run.played import to_done
from tests.workplace.test_confine import WITHOUT_LANDLOCK

ATTACK = """import os, pathlib, socket, sys

home, port, real = pathlib.Path(os.environ["HOME"]), {port}, {base!r}
data = sys.stdin.buffer.read() if {reads} else b""
found = []
try:
    found.append((home / ".ssh/id_rsa").read_text())
except OSError:
    pass
found += [name for name in os.environ if name.endswith(("_TOKEN", "_URL"))]
common = os.environ.get("GIT_COMMON_DIR", ".git")
for place in (home / ".bashrc", home / "new", pathlib.Path("made"), pathlib.Path(common, "config"), pathlib.Path(real, "new")):
    try:
        with open(place, "a") as file:
            file.write("evil")
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", port), 2).close()
except OSError:
    pass
sys.stdout.buffer.write(data.upper() + "".join(found).encode())
"""
PYTHON = os.path.realpath(sys.executable)


class Person:
    """A project of somebody with a key, a `.bashrc` and a server; their HOME is not that of the tests."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base, self.home = folder, folder / "home"
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".ssh/id_rsa").write_text("PRIVATE\n")
        (self.home / ".bashrc").write_text("mine\n")
        self.repo = new(folder, monkeypatch)
        self.project = self.repo.project
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        for name in ("SOME_TOKEN", "APP_URL"):
            monkeypatch.setenv(name, "t")
        self.tree, self.private = str(folder / "state/harness/m/tree-1"), str(folder / "private")
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)
        self.attack = ATTACK.format(port=self.server.getsockname()[1], base=str(folder), reads=True)

    def filter(self, **keys: str) -> None:
        """A filter `nb` for all `*.nb`, committed."""
        for key, value in keys.items():
            self.repo.run("config", f"filter.nb.{key}", value)
        self.repo.save(**{".gitattributes": "*.nb filter=nb\n", "a.nb": "one\n", "b": "two\n"})

    def use(self) -> None:
        """As a mission does from its start on."""
        settings.use(self.project, settings.record(self.project), self.private)
        worktrees.ensure(self.project, self.tree, self.repo.head())

    def commit(self) -> str:
        """The work of the tree as a commit."""
        head = self.repo.head()
        work = repository.working_tree(self.tree, index=worktrees.index(self.tree), parent=head, leave=()).tree
        return repository.commit_tree(self.project, work, [head], "work\n")

    def clone(self, commit: str) -> Path:
        """A fresh clone."""
        target = self.base / "room" / "clone"
        for folder in (self.base / "layer", target.parent):
            folder.mkdir()
        recorded = settings.record(self.project)
        config = clones.configuration(recorded, str(self.base / "layer"))
        clones.make(self.project, str(target), commit, recorded, config)
        return target

    def unharmed(self, *, keys: bool = True, connected: bool = False) -> None:
        """Nothing was written, nothing connected, and with `keys` no key was read."""
        assert (self.home / ".bashrc").read_text() == "mine\n"
        assert not (self.home / "new").exists()
        assert not (self.base / "new").exists()
        assert not any((Path(folder) / "made").exists() for folder in (self.project, self.tree))
        assert "evil" not in Path(self.private, "config").read_text()
        if keys:
            told = self.repo.run("log", "-p", "--all", "--no-textconv")
            assert "PRIVATE" not in told
            assert "SOME_TOKEN" not in told and "APP_URL" not in told
        if not connected:
            with pytest.raises(BlockingIOError):
                self.server.accept()


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """With bubblewrap."""
    if confine.available() != BUBBLEWRAP:
        pytest.skip("bubblewrap cannot be used here")
    return Person(tmp_path, monkeypatch)


def _without_bubblewrap(folder: Path, env: MutableMapping[str, str]) -> None:
    """A PATH that has all but bubblewrap."""
    folder.mkdir()
    for path in sorted(Path("/usr/bin").iterdir()):
        if path.name != "bwrap":
            (folder / path.name).symlink_to(path)
    env["PATH"] = str(folder)


# what an agent leaves


@pytest.mark.parametrize("tier", [BUBBLEWRAP, LANDLOCK])
@pytest.mark.parametrize("kind", ["clean", "smudge", "process"])
def test_a_module_that_an_agent_leaves_beside_a_filter_is_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, tier: str
) -> None:
    """In commits, checkouts, landings and clones; it runs (the text is in capitals), and harms nothing."""
    if tier == LANDLOCK:
        monkeypatch.setenv("PATH", "")  # put back at the end
        _without_bubblewrap(tmp_path / "bin", os.environ)
    if confine.available() != tier:
        pytest.skip(f"{tier} cannot be used here")
    person = Person(tmp_path, monkeypatch)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    (tmp_path / "global").write_text(f"[filter \"nb\"]\n\t{kind} = '{PYTHON}' -m strip\n")
    person.repo.save(a="1\n")
    person.use()
    Path(person.tree, "strip.py").write_text(person.attack.replace("if True", f"if {kind != 'process'}"))
    Path(person.tree, ".gitattributes").write_text("*.nb filter=nb\n")
    Path(person.tree, "sub").mkdir()
    Path(person.tree, "sub/.gitattributes").write_text("*.txt filter=nb\n")
    Path(person.tree, "a.nb").write_text("text\n")
    Path(person.tree, "sub/b.txt").write_text("text\n")
    if kind == "process":  # git ends where such a program does not answer
        with pytest.raises(HarnessError):
            person.commit()
        return person.unharmed(keys=tier == BUBBLEWRAP)
    made = person.commit()
    assert landing.land(person.project, "main", made, accepted=True) == ""
    worktrees.ensure(person.project, person.tree, made)
    Path(person.tree, "a.nb").write_text("more\n")
    person.commit()
    Path(person.project, "a.nb").write_text("theirs\n")
    merges.take_edits(person.project, "main")
    target = person.clone(made)
    if kind == "clean":
        assert person.repo.run("show", f"{made}:a.nb").startswith("TEXT")
    if kind == "smudge":
        assert (target / "sub/b.txt").read_text().startswith("TEXT")
    assert not list(tmp_path.rglob("made"))
    return person.unharmed(keys=tier == BUBBLEWRAP)


def test_a_second_mission_in_the_folder_confines_before_its_record(person: Person) -> None:
    """What the first one landed is beside the filter when git makes the first commit, or looks at the folder."""
    person.filter(clean=f"'{PYTHON}' -m strip")
    person.repo.write("strip.py", person.attack)
    person.repo.write("a.nb", "changed\n")
    Path(person.private).mkdir()
    Path(person.private, "config").write_text("")
    assert "a.nb" in repository.dirty(person.project)
    repository.state(person.project)
    repository.run(person.project, "add", "--", "a.nb")
    assert person.repo.run("show", ":a.nb") == "CHANGED"
    person.unharmed()


def test_a_merge_driver_writes_its_result_and_nothing_else(person: Person) -> None:
    """It gets its files, and the path as git quotes it."""
    person.repo.run("config", "merge.own.driver", f"'{PYTHON}' -m strip <%B >%A 2>/dev/null && echo %P %L >>%A")
    person.repo.save(**{".gitattributes": "* merge=own\n", "it's x": "1\n", "strip.py": person.attack})
    base = person.repo.head()
    ours = person.repo.save(**{"it's x": "ours\n"})
    person.repo.run("switch", "-q", "-c", "side", base)
    theirs = person.repo.save(**{"it's x": "theirs\n"})
    person.use()
    merged = merges.merge(person.project, ours, theirs, "merge\n")
    assert person.repo.run("show", f"{merged.commit}:it's x") == "THEIRS\nit's x 7"
    person.unharmed()


def test_programs_of_relative_folders_and_of_trees_are_not_gits(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PATH that leads into the project does not replace git itself, nor git-lfs."""
    person.filter(clean="git-lfs clean -- %f")
    for name in ("git", "git-lfs"):
        person.repo.write(f"bin/{name}", f"#!/bin/sh\nexec '{PYTHON}' -c 'import strip'\n")
        (person.repo.folder / "bin" / name).chmod(0o755)
    person.repo.write("strip.py", person.attack)
    person.use()
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", os.pathsep.join(["bin", ".", "", f"{person.project}/bin", path]))
    settings.use(person.project, settings.record(person.project), person.private)
    person.repo.write("a.nb", "changed\n")
    repository.run(person.project, "hash-object", "-w", "a.nb")
    repository.state(person.project)
    monkeypatch.setenv("PATH", path)
    person.unharmed()


def test_a_repository_of_an_agents_own_in_its_tree_starts_nothing(person: Person) -> None:
    """Its configuration, that of a worktree and modules of the tree name programs; git reads none of them."""
    person.repo.save(a="1\n")
    person.use()
    program = f"'{PYTHON}' {person.tree}/strip.py"
    lines = f'[core]\n\tfsmonitor = "{program}"\n[filter "nb"]\n\tclean = "{program}"\n[diff "nb"]\n\ttextconv = "{program}"\n'
    Path(person.tree, "strip.py").write_text(person.attack)
    inner = Path(person.tree, "sub")
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    for path in (inner / ".git/config", next(Path(person.project, ".git/worktrees").iterdir()) / "config.worktree"):
        with path.open("a") as file:
            file.write(lines)
    Path(person.tree, ".gitmodules").write_text(f'[submodule "sub"]\n\tpath = sub\n\turl = .\n\tupdate = !{program}\n')
    Path(person.tree, ".gitattributes").write_text("* filter=nb diff=nb merge=nb\n")
    (inner / "a.nb").write_text("text\n")
    made = person.commit()
    assert landing.land(person.project, "main", made, accepted=True) == ""
    person.clone(made)
    person.unharmed()


def test_a_repository_of_which_no_mission_knows_fetches_nothing(bare: House) -> None:
    """An agent of a conversation may make one, whose configuration names the program that fetches a missing object."""
    bare.project.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=bare.project, check=True)
    (bare.project / ".git/refs/heads/main").write_text("1" * 40 + "\n")
    config = {"core.repositoryFormatVersion": "1", "extensions.partialClone": "own", "remote.own.promisor": "true"}
    config |= {"remote.own.url": "ssh://x/y", "core.sshCommand": f"touch '{bare.folder}/made'; false"}
    for key, value in config.items():
        bare.git("config", key, value)
    assert "transport 'ssh' not allowed" in bare.harness("workspace", "accept").err
    assert not (bare.folder / "made").exists()


def test_a_bubblewrap_in_the_project_is_not_used(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever PATH says, with or without a driver."""
    person.repo.write("bin/bwrap", f"#!/bin/sh\ntouch '{person.base}/new'\n")
    (person.repo.folder / "bin/bwrap").chmod(0o755)
    monkeypatch.chdir(person.project)
    monkeypatch.setenv("PATH", os.pathsep.join(["bin", f"{person.project}/bin", os.environ["PATH"]]))
    assert confine.available() == BUBBLEWRAP
    person.filter(clean="tr a-z A-Z")
    person.use()
    person.unharmed()


def test_an_extension_of_git_lfs_is_confined_before_a_record_too(person: Person) -> None:
    """It is a program that git-lfs starts itself."""
    _lfs()
    person.filter(clean="git-lfs clean -- %f")
    person.repo.run("config", "lfs.extension.nb.clean", f"'{PYTHON}' -m strip")
    person.repo.run("config", "lfs.extension.nb.smudge", "cat")
    person.repo.run("config", "lfs.extension.nb.priority", "0")
    person.repo.write("strip.py", person.attack)
    person.repo.write("a.nb", "changed\n")
    Path(person.private).mkdir()
    Path(person.private, "config").write_text("")
    repository.dirty(person.project)
    person.unharmed()


# what is honest


def test_a_filter_does_what_it_is_for(person: Person) -> None:
    """With a path of any letters, in any quotes, in pipes, and with what its program needs."""
    program = person.base / "strip it.py"
    program.write_text("import sys\nprint(sys.argv[1:], sys.stdin.read().replace('secret', '-'))\n")
    person.repo.run("config", "filter.nb.clean", f"'{PYTHON}' '{program}' %f 100%% | sed s/one/two/")
    person.repo.save(**{".gitattributes": "*.nb filter=nb\n"})
    person.use()
    Path(person.tree, "it's $(x) %d.nb").write_text("a secret\n")
    made = person.commit()
    assert person.repo.run("show", f"{made}:it's $(x) %d.nb") == "[\"it's $(x) %d.nb\", '100%'] a -"


PROCESS = """import sys
put, take = sys.stdout.buffer, sys.stdin.buffer
def write(*lines):
    for line in lines:
        put.write(b"%04x" % (len(line) + 4) + line if line is not None else b"0000")
    put.flush()
def read():
    found = []
    while (size := take.read(4)) and size != b"0000":
        found.append(take.read(int(size, 16) - 4))
    return found if size else sys.exit()
read()
write(b"git-filter-server\\n", b"version=2\\n", None)
read()
write(b"capability=clean\\n", None)
while read():
    text = b"".join(read()).upper()
    write(b"status=success\\n", None, text, None, None)
"""


def test_a_filter_that_stays_for_many_files_works(person: Person) -> None:
    """Over git's own protocol."""
    program = person.base / "stays.py"
    program.write_text(PROCESS)
    person.repo.run("config", "filter.nb.process", f"'{PYTHON}' {program} 100%")
    person.repo.save(**{".gitattributes": "*.nb filter=nb\n"})
    person.use()
    for name in ("a.nb", "b.nb"):
        Path(person.tree, name).write_text(f"{name}\n")
    made = person.commit()
    assert [person.repo.run("show", f"{made}:{name}") for name in ("a.nb", "b.nb")] == ["A.NB", "B.NB"]


@pytest.mark.parametrize("tier", [BUBBLEWRAP, LANDLOCK])
def test_a_mission_with_a_filter_ends_done(
    unbegun: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    """Its effect is in the commits, on both tiers; what an agent leaves beside the next mission's harms nothing."""
    house = unbegun
    if tier == LANDLOCK:
        _without_bubblewrap(tmp_path / "bin", house.env)
        monkeypatch.setenv("PATH", house.env["PATH"])
    house.git("config", "filter.nb.clean", f"'{PYTHON}' -m strip")
    program = "import sys\nsys.stdout.write(sys.stdin.read().replace('secret', '-'))\n"
    (house.project / "strip.py").write_text(program)
    (house.project / ".gitattributes").write_text("*.nb filter=nb\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "a filter")
    house.begin()
    lay(house, [feature("F-001")], Contract(claims=[claim("VAL-001", "test -f a.nb")]))
    accept_all(house)
    house.script("planner", reply(features=[], contract=[]))
    house.script("worker", {"run": "echo a secret > a.nb"}, reply(status="implemented"))
    house.script("validator", reply(checks=[]))
    house.script("curator")
    to_done(house)
    assert house.git("show", "HEAD:a.nb") == "a -"


def test_where_nothing_confines_a_driver_does_not_run_unless_a_person_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git ends with an error for the file that needs it; what `confine = "off"` allows."""
    monkeypatch.setenv("PATH", "")  # put back at the end
    _without_bubblewrap(tmp_path / "bin", os.environ)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from harness.git import repository, settings\n"
        "settings.use('.', settings.record('.'), sys.argv[2], '', sys.argv[3] == 'off')\n"
        "print(repository.dirty('.'))\n"
    )
    repo = new(tmp_path, monkeypatch)
    repo.run("config", "filter.nb.clean", "tr a-z A-Z")
    repo.save(**{".gitattributes": "*.nb filter=nb\n", "a.nb": "one\n"})
    repo.write("a.nb", "ONe\n")

    def said(how: str) -> str:
        words = [PYTHON, "-c", WITHOUT_LANDLOCK, sys.executable, "-c", script, str(CHECKOUT), str(tmp_path / "p"), how]
        done = subprocess.run(words, cwd=repo.folder, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "The driver 'tr a-z A-Z' of your git configuration does not run: nothing confines it here" in said("auto")
    assert said("off") == "[]\n"


# git-lfs itself


def _lfs() -> None:
    if not shutil.which("git-lfs"):
        pytest.skip("git-lfs is not installed")


def test_large_files_are_kept_by_git_lfs(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """In commits, trees, landings and clones: pointers in commits, contents in folders and in git's `lfs` folder."""
    _lfs()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(person.base / "global"))
    for key, value in {"clean": "clean -- %f", "smudge": "smudge -- %f", "process": "filter-process"}.items():
        person.repo.run("config", "--global", f"filter.lfs.{key}", f"git-lfs {value}")
    person.repo.run("config", "--global", "filter.lfs.required", "true")
    person.repo.save(**{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": "one " * 300_000})
    assert person.repo.run("show", "HEAD:a.bin").startswith("version https://git-lfs")
    person.use()
    assert Path(person.tree, "a.bin").stat().st_size == 1_200_000
    Path(person.tree, "b.bin").write_text("two " * 1_600_000)  # more than a commit takes of a new file
    made = person.commit()
    assert person.repo.run("show", f"{made}:b.bin").startswith("version https://git-lfs")
    assert landing.land(person.project, "main", made, accepted=True) == ""
    assert (person.repo.folder / "b.bin").stat().st_size == 6_400_000
    assert person.repo.run("status", "--porcelain") == ""
    target = person.clone(made)
    assert (target / "b.bin").stat().st_size == 6_400_000


def test_git_lfs_reaches_its_server(person: Person) -> None:
    """A large file that is nowhere here is asked for, at the address of the repository."""
    _lfs()
    for key, value in {"clean": "clean -- %f", "smudge": "smudge -- %f"}.items():
        person.repo.run("config", f"filter.lfs.{key}", f"git-lfs {value}")
    person.repo.run("config", "lfs.url", f"http://127.0.0.1:{person.server.getsockname()[1]}/")
    person.repo.run("config", "lfs.transfer.maxretries", "1")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 12\n"
    person.repo.save(**{"a.bin": pointer})
    person.repo.save(**{".gitattributes": "*.bin filter=lfs\n"})
    ended = []

    def serve() -> None:
        person.server.setblocking(True)
        made, _ = person.server.accept()
        ended.append(made.recv(9))
        made.sendall(b"HTTP/1.1 404 none\r\nContent-Length: 0\r\n\r\n")
        made.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    person.use()
    thread.join(60)
    assert ended == [b"POST /obj"]


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("git-lfs clean -- %f", True),
        ("git lfs smudge --skip %f", True),
        ("git-lfs filter-process", True),
        ("{outside}/git-lfs clean -- %f", True),
        ("{inside}/git-lfs clean -- %f", False),
        ("git-lfs clean -- %f; ./x", False),
        ("git-lfs clean -- $(./x)", False),
        ("git-lfs install", False),
        ("./git-lfs clean -- %f", False),
        ("sub/git-lfs clean -- %f", False),
    ],
)
def test_git_lfs_is_known_by_its_whole_command(tmp_path: Path, command: str, own: bool) -> None:
    """One in a tree, or with more in its command, is confined as any driver."""
    inside = tmp_path / "tree"
    command = command.format(outside=tmp_path / "bin", inside=inside)
    value = str(drivers.confined([["filter.lfs.clean", command]], "/large", [str(inside)], False)[0][1])
    assert ("/large" in value) == own
    extended: drivers.Config = [["filter.lfs.clean", command], ["lfs.extension.x.clean", "./x"]]
    assert "/large" not in str(drivers.confined(extended, "/large", [str(inside)], False))


def test_only_drivers_are_changed_and_nothing_is_tried_without_one() -> None:
    """Other keys of the same sections stay."""
    config: drivers.Config = [
        ["filter.a.required", "true"],
        ["merge.a.name", "x"],
        ["merge.driver", "x"],
        ["core.eol", None],
    ]
    assert drivers.confined(config, "/large", [], False) == config


def test_placeholders_are_put_in_as_git_does() -> None:
    """A path is quoted, files of a merge are not; a `%%` is one `%`; a filter that stays has none."""
    assert drivers.expand("x %f %% %A", ["it's"]) == "x 'it'\"'\"'s' % %A"
    assert drivers.expand("m %O %A %B %L %P %f", ["o", "a", "b", "7", "p q"]) == "m o a b 7 'p q' %f"
    assert drivers.expand("stay 100% %f", []) == "stay 100% %f"
