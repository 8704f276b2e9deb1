"""Honest small projects, one a tool, and a place that runs their commands confined as a mission's are.

    python -m tests.honest [PROJECT…]     every project on every tier with the HOME of who asks, twice, and what changed there

A place is a linked worktree beside its project, a temporary folder, and a HOME layer over the person's HOME. Behind bubblewrap
the project is read-only, keys are empty, /tmp and /run are private.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.process import confine, landlock, supervise
from harness.process.confine import BUBBLEWRAP, LANDLOCK, NONE, Confinement, Glass
from harness.workplace import _home_list, environment, home_layer

MANAGERS = ("apt-get", "dnf", "apk", "pacman", "zypper")
CONTROL = "control"  # the project's git folder and the person's HOME, where a test makes one, are writable as well
TIERS = (BUBBLEWRAP, LANDLOCK, CONTROL)
TORTURE = os.environ.get("HARNESS_TORTURE") == "1"


class Project(NamedTuple):
    """Files of a project, the programs it needs, and the scripts that a setup, an agent and a check run in it."""

    programs: tuple[str, ...]
    files: Mapping[str, str]
    setup: str
    work: str
    check: str
    registry: bool = False  # it installs from a package registry
    slow: bool = False


WHEEL = """import zipfile
with zipfile.ZipFile("thing-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("thing.py", "NAME = 'thing'")
    wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n")
    wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("thing-1.0.dist-info/RECORD", "")
"""
CARGO = {
    "Cargo.toml": '[package]\nname = "honest"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\npart = { path = "part" }\n',
    "src/main.rs": 'fn main() { println!("{}", part::two()); }\n#[test]\nfn adds() { assert_eq!(part::two(), 2); }\n',
    "part/Cargo.toml": '[package]\nname = "part"\nversion = "0.1.0"\nedition = "2021"\n',
    "part/src/lib.rs": "pub fn two() -> u32 { 1 + 1 }\n",
    ".gitignore": "target\n",
}
NPM = {
    "package.json": '{"name": "honest", "version": "1.0.0", "scripts": {"test": "node --test test/"}}\n',
    "part/package.json": '{"name": "part", "version": "1.0.0", "main": "index.js"}\n',
    "part/index.js": "module.exports = 2;\n",
    "test/part.test.js": 'require("node:test")("part", () => require("node:assert").equal(require("part"), 2));\n',
    ".gitignore": "node_modules\n",
}
PROJECTS: dict[str, Project] = {
    "cargo": Project(
        ("cargo", "rustup"),
        CARGO,
        "cargo fetch",
        "cargo build && cargo run -q",
        "cargo test -q",
        slow=True,
    ),
    "cargo install": Project(
        ("cargo", "rustup"),
        CARGO,
        "cargo install --path . --force",
        "command -v honest",
        '[ "$(honest)" = 2 ]',
        slow=True,
    ),
    "cargo registry": Project(
        ("cargo", "rustup"),
        {**CARGO, "Cargo.toml": CARGO["Cargo.toml"] + 'itoa = "1"\n'},
        "cargo fetch",
        "cargo build",
        "cargo test -q --offline",
        registry=True,
        slow=True,
    ),
    "npm": Project(
        ("npm", "node"), NPM, "npm install ./part", "npm ls part && npm test", "npm run test --silent", slow=True
    ),
    "npm registry": Project(
        ("npm", "node"),
        NPM,
        "npm install is-number@7 ./part",
        "npm ls is-number && npm exec -c 'node -e 0'",
        "npm ci --prefer-offline && node -e 'require(\"is-number\")(2) || process.exit(1)'",
        registry=True,
        slow=True,
    ),
    "node": Project(
        ("node",),
        NPM,
        "node --version",
        'node -e \'require("fs").writeFileSync(require("os").tmpdir() + "/x", "2")\'',
        "node -e 'require(\"./part\") === 2 || process.exit(1)'",
    ),
    "venv": Project(
        ("python3",),
        {"thing.py": "NAME = 'thing'\n", ".gitignore": ".venv\n"},
        "python3 -m venv --clear --without-pip .venv",
        ".venv/bin/python -m compileall -q thing.py",
        "[ $(.venv/bin/python -c 'import thing; print(thing.NAME)') = thing ]",
    ),
    "pip": Project(
        ("python3",),
        {"build.py": WHEEL, ".gitignore": ".venv\n*.whl\n"},
        "python3 -m venv --clear .venv && python3 build.py && .venv/bin/pip install --no-index ./thing-1.0-py3-none-any.whl",
        ".venv/bin/pip list",
        ".venv/bin/python -c 'import thing'",
        slow=True,
    ),
    "pip registry": Project(
        ("python3",),
        {".gitignore": ".venv\n"},
        "python3 -m venv --clear .venv && .venv/bin/pip install six",
        ".venv/bin/pip cache dir && .venv/bin/pip freeze",
        ".venv/bin/python -c 'import six'",
        registry=True,
        slow=True,
    ),
    "uv": Project(
        ("python3",),
        {
            "pyproject.toml": '[project]\nname = "honest"\nversion = "1"\nrequires-python = ">=3.8"\ndependencies = ["six"]\n',
            ".gitignore": ".venv\n.uv\n",
        },
        "[ -x .uv/bin/uv ] || { python3 -m venv .uv && .uv/bin/pip install -q uv; }; .uv/bin/uv venv --clear && .uv/bin/uv sync",
        ".uv/bin/uv add idna && .uv/bin/uv tool install --force pycowsay && $HOME/.local/bin/pycowsay hi",
        ".uv/bin/uv run python -c 'import six, idna'",
        registry=True,
        slow=True,
    ),
    "pyenv": Project(
        ("pyenv",),
        {"thing.py": "NAME = 'thing'\n"},
        "pyenv versions && pyenv local $(pyenv global) && pyenv rehash",
        "python -m venv --clear --without-pip .venv && pyenv exec python -c 'import thing'",
        'python -c "import thing" && [ "$(pyenv root)" = "$HOME/.pyenv" ]',
        slow=True,
    ),
    "pyenv pip": Project(
        ("pyenv",),
        {"build.py": WHEEL},
        "python build.py && pip install --user --no-index ./thing-1.0-py3-none-any.whl",
        "pip list --user",
        'python -c \'import thing; assert thing.__file__.startswith(__import__("os").environ["HOME"])\'',
        slow=True,
    ),
    "git-lfs": Project(
        ("git-lfs",),
        {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": "large\n", "b.txt": "text\n"},
        "git lfs ls-files | grep a.bin && git lfs checkout && [ $(cat a.bin) = large ]",
        "rm a.bin && git diff --stat && git lfs checkout a.bin && [ $(cat a.bin) = large ]",
        "echo larger > a.bin && git diff --stat && git status --porcelain | grep a.bin && git lfs env && echo large > a.bin",
    ),
    "ccache": Project(
        ("make", "gcc", "ccache"),
        {
            "Makefile": "CC = ccache gcc\nhonest: main.o\n\t$(CC) -o $@ $^\nclean:\n\trm -f honest main.o\n",
            "main.c": "int main(void) { return 0; }\n",
        },
        "make clean && make",
        "make clean && make && ccache -s",
        "./honest && ccache --print-stats | grep -E '^(direct|preprocessed)_cache_hit\\s+[1-9]'",
    ),
    "go": Project(
        ("go",),
        {
            "go.mod": "module honest\n\ngo 1.19\n",
            "main.go": "package main\n\nfunc two() int { return 2 }\n\nfunc main() { println(two()) }\n",
            "main_test.go": 'package main\n\nimport "testing"\n\n'
            "func TestTwo(t *testing.T) {\n\tif two() != 2 {\n\t\tt.Fail()\n\t}\n}\n",
        },
        "go mod download && go vet ./...",
        "go build -o honest . && ./honest && go install . && $HOME/go/bin/honest",
        "go test ./...",
        slow=True,
    ),
}


def crate_registry(folder: Path, url: str, *names: str) -> str:
    """A registry of crates as files to serve at `url`; the settings that make cargo use it in the place of the public one."""
    (folder / "dl").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"dl": url + "/dl/{crate}.crate"}))
    for name in names:
        crate = folder / f"dl/{name}.crate"
        with tarfile.open(crate, "w:gz") as packed:
            for path, text in (("Cargo.toml", CARGO["part/Cargo.toml"]), ("src/lib.rs", CARGO["part/src/lib.rs"])):
                data = text.replace('"part"', f'"{name}"').encode()
                member = tarfile.TarInfo(f"{name}-0.1.0/{path}")
                member.size = len(data)
                packed.addfile(member, io.BytesIO(data))
        entry = {"name": name, "vers": "0.1.0", "deps": [], "features": {}, "yanked": False}
        entry["cksum"] = hashlib.sha256(crate.read_bytes()).hexdigest()
        index = folder / name[:2] / name[2:4] / name
        index.parent.mkdir(parents=True)
        index.write_text(json.dumps(entry) + "\n")
    return f'[source.crates-io]\nreplace-with = "near"\n[source.near]\nregistry = "sparse+{url}/"\n'


class Ended(NamedTuple):
    """A script's exit code and all it said."""

    code: int
    said: str


class Place:
    """A project in a repository, a linked worktree beside it, a temporary folder and a HOME layer: one tier's."""

    def __init__(self, folder: Path, files: Mapping[str, str], tier: str, home: Path) -> None:
        self.tier, self.home, self.folder = tier, home, folder
        self.project, self.tree = folder / "project", folder / "kept" / "tree-1"
        self.temporary, self.layer = folder / "kept" / "tmp-1", folder / "kept" / "home-1"
        self.temporary.mkdir(parents=True)
        self._begin(files)

    def _begin(self, files: Mapping[str, str]) -> None:
        """Commit the files as the person, and make the worktree."""
        for name, text in files.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)
        git = ["git", "-C", str(self.project), "-c", "user.name=P", "-c", "user.email=p@example.org"]
        self.project.mkdir(exist_ok=True)
        large = [["lfs", "install", "--local"]] if ".gitattributes" in files else []
        for words in (["init", "-q"], *large, ["add", "-A"], ["commit", "--allow-empty", "-qm", "begin"]):
            subprocess.run([*git, *words], check=True)
        subprocess.run([*git, "worktree", "add", "-q", "--detach", str(self.tree)], check=True)

    def env(self, **more: str) -> dict[str, str]:
        """The variables of a check whose HOME is the layer."""
        plain = {**environment.plain(os.environ, "honest"), "TMPDIR": str(self.temporary), **more}
        return home_layer.variables(plain, str(self.layer), str(self.home))

    def confinement(self) -> Confinement:
        """The confinement of a script; the layer is brought up to date."""
        person = _home_list.person(str(self.home), os.environ)
        home_layer.make(str(self.layer), person, git=str(self.project / ".git"))
        if self.tier == CONTROL:
            made = [str(self.home)] if self.home != Path.home() else []
            return Confinement(glass=Glass(writable=[str(self.folder), *made]), tier=confine.available())
        writable = [str(path) for path in (self.tree, self.temporary, self.layer)]
        readable = [str(self.project), sys.prefix, sys.base_prefix, *map(person.at, person.seen)]
        hidden = [str(self.home), *map(person.at, person.hidden)]
        return Confinement(glass=Glass(writable=writable, readable=readable, hidden=hidden), tier=self.tier)

    def run(self, script: str) -> Ended:
        """Run a script in the tree."""
        said: list[bytes] = []
        ended = supervise.run(
            ["bash", "-ec", script],
            cwd=str(self.tree),
            env=self.env(),
            wall_seconds=600,
            sink=lambda _, chunk: said.append(chunk),
            confine=self.confinement(),
        )
        return Ended(128 if ended.exit is None else ended.exit, b"".join(said).decode("utf-8", "replace"))


def fault(place: Place, project: Project) -> str:
    """Run all scripts of a project twice; what the first that fails says, or nothing."""
    for _ in range(2):
        for script in (project.setup, project.work, project.check):
            ended = place.run(script)
            if ended.code:
                return f"{place.tier}: `{script}` ended with {ended.code}\n{ended.said}"
    return ""


def missing(project: Project) -> str:
    """Which of a project's programs are not here."""
    path = environment.plain(os.environ, "honest")["PATH"]
    return ", ".join(name for name in project.programs if not shutil.which(name, path=path))


def listing(home: Path) -> dict[str, tuple[int, int]]:
    """Size and time of last change of all that stands in a HOME, links not followed."""
    found = {}
    for folder, folders, names in os.walk(home):
        for name in (*folders, *names):
            status = os.lstat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns)
    return found


def needs_glass(tier: str = BUBBLEWRAP) -> None:
    """Skip the test where this machine has no such tier; fail it in CI where bubblewrap can be installed."""
    best = confine.available()
    if tier == best or (tier == LANDLOCK and landlock.abi()) or (tier == CONTROL and best != NONE):
        return
    if tier == BUBBLEWRAP and os.environ.get("CI") and _can_install():
        pytest.fail("CI tests confinement where it can: install bubblewrap (apt-get install bubblewrap)")
    pytest.skip(f"{tier} cannot be used here")


def _can_install() -> bool:
    """Whether bubblewrap is missing, its namespaces are allowed, and a package manager may be called."""
    if shutil.which("bwrap") or not any(shutil.which(name) for name in MANAGERS):
        return False
    may = os.geteuid() == 0 or _succeeds(["sudo", "-n", "true"])
    return may and _succeeds(["unshare", "--mount", "--pid", "--fork", *([] if os.geteuid() == 0 else ["-Ur"]), "true"])


def _succeeds(words: list[str]) -> bool:
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def main(names: list[str]) -> int:
    """Run projects on all tiers, and report each; the exit code is the number of faults."""
    home, faults = Path.home(), 0
    before = listing(home)
    for name in names or list(PROJECTS):
        project = PROJECTS[name]
        for tier in TIERS:
            with tempfile.TemporaryDirectory() as folder:
                place = Place(Path(folder), project.files, tier, home)
                said = f"missing: {gone}" if (gone := missing(project)) else fault(place, project)
            faults += bool(said)
            sys.stdout.write(f"{name} · {tier} · {said or 'works'}\n")
            sys.stdout.flush()
    after = listing(home)
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    sys.stdout.write(f"changed in HOME: {changed or 'nothing'}\n")
    return faults


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
