"""HOMEs as people have them: each with the tools of one version manager, laid out as its documentation describes, with the real
programs where they are on this machine, and with logins that no run may see.

    python -m tests.homes FOLDER [NAME…]     make them below FOLDER, and print the variables and the check of each
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.other_user import copy_packages

CHECKOUT = Path(__file__).resolve().parent.parent
SECRET = "s3cret-of-a-person"
PYTHON = os.path.realpath(f"{sys.base_prefix}/bin/python3")
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
LOGINS = (
    Path(__file__).with_name("logins.txt").read_text().split()
)  # of a person; the first 17 are withheld under full trust
SHIM = """#!/usr/bin/env bash
set -e
program="${{0##*/}}"
export PYENV_ROOT="{root}"
exec "{root}/libexec/pyenv" exec "$program" "$@"
"""  # as `pyenv rehash` writes it
PYENV = (
    '#!/bin/sh\n[ "$1" = exec ] || exit 64\nexec "$PYENV_ROOT/versions/$(cat "$PYENV_ROOT/version")/bin/$2" -c "$4"\n'
)
RUSTUP = """#!/bin/sh
root="${RUSTUP_HOME:-$HOME/.rustup}"
exec "$root/toolchains/$(sed -n 's/^default_toolchain = "\\(.*\\)"/\\1/p' "$root/settings.toml")/bin/${0##*/}" "$@"
"""  # cargo and rustc are links to it
CARGO = """#!/bin/sh
own="${CARGO_HOME:-$HOME/.cargo}"
[ ! -e "$own/credentials.toml" ] && mkdir -p "$own/registry/cache/x" && : > "$own/.package-cache" && cat "$own/config.toml"
"""
GO = """#!/bin/sh
root="$(dirname "$(dirname "$(readlink -f "$0")")")"
own="${GOPATH:-$HOME/go}"
mkdir -p "$own/pkg/mod/x" "$own/bin" && mktemp "$own/bin/XXXXXX" >&2 && cat "$root/VERSION"
"""
VOLTA = '#!/bin/sh\nexec "${VOLTA_HOME:-$HOME/.volta}/tools/image/node/20.1.0/bin/${0##*/}" "$@"\n'
SAYS = "#!/bin/sh\necho {}\n"


class Home(NamedTuple):
    """A HOME: the variables that its person's shell exports, the folders of PATH below it, and a check that uses its tools."""

    folder: Path
    check: str
    path: tuple[str, ...] = ()
    variables: dict[str, str] = {}

    def env(self) -> dict[str, str]:
        """What a shell of the person has, PATH before that of the tests."""
        own = [str(self.folder / name) for name in self.path]
        path = os.pathsep.join([*own, os.environ["PATH"]])
        return {"HOME": str(self.folder), "PATH": path, **self.variables}


def program(path: Path, text: str) -> Path:
    """Make a program."""
    put(path, text).chmod(0o755)
    return path


def put(path: Path, text: str) -> Path:
    """Make a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def link(path: Path, target: Path | str) -> None:
    """Make a link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def real(name: str, otherwise: str) -> Callable[[Path], object]:
    """Makes a link to the program of this machine, or a program that stands for it."""
    found = shutil.which(name)
    return lambda path: link(path, os.path.realpath(found)) if found else program(path, otherwise)


def pyenv(home: Path) -> Home:
    """pyenv: its own scripts, where this Python is one of its versions."""
    root, theirs = home / ".pyenv", Path(sys.base_prefix).parent.parent
    if (theirs / "libexec/pyenv").exists():
        shutil.copytree(theirs / "libexec", root / "libexec")
        shutil.copytree(theirs / "pyenv.d", root / "pyenv.d")
    else:
        program(root / "libexec/pyenv", PYENV)
    link(root / "bin/pyenv", "../libexec/pyenv")
    put(root / "version", "3.99.1\n")
    link(root / "versions/3.99.1/bin/python3", PYTHON)
    program(root / "shims/python3", SHIM.format(root=root))
    check = """case "$(command -v python3)" in "$HOME"/.pyenv/shims/*) ;; *) exit 1; esac; python3 -c 'import json'"""
    return Home(home, check, (".pyenv/shims", ".pyenv/bin"), {"PYENV_ROOT": str(root)})


def uv(home: Path) -> Home:
    """uv: a Python and a tool that it installed, and links to both where PATH finds them."""
    python = home / ".local/share/uv/python/cpython-3.99.1-linux-x86_64-gnu/bin/python3.99"
    tool = home / ".local/share/uv/tools/tool/bin"
    link(python, PYTHON)
    link(tool / "python", python)
    program(tool / "tool", f"#!{tool}/python\nimport json\nprint('tool')\n")
    link(home / ".local/bin/tool", tool / "tool")
    link(home / ".local/bin/python3.99", python)
    put(home / ".local/share/uv/credentials/credentials.toml", SECRET)
    put(home / ".config/uv/uv.toml", f'[[index]]\nurl = "https://me:{SECRET}@pypi.example/simple"\n')
    check = "tool; python3.99 -c 'import json'; grep -q https://pypi.example/simple ~/.config/uv/uv.toml"
    return Home(home, check, (".local/bin",))


def conda(home: Path) -> Home:
    """conda: programs name its root in their first line; channels have a token in their address."""
    root = home / "miniconda3"
    link(root / "bin/python", PYTHON)
    program(root / "bin/conda", f"#!{root}/bin/python\nprint(open('{root}/conda-meta/history').read())\n")
    put(root / "conda-meta/history", "==> 2026-01-01 <==\n")
    put(home / ".conda/environments.txt", f"{root}\n")
    put(home / ".condarc", f"channels:\n  - https://conda.example/t/{SECRET}/main\n")
    check = 'conda; "$CONDA_EXE" >&2; mktemp ~/.conda/XXXXXX >&2; grep -q https://conda.example ~/.condarc'
    return Home(home, check, ("miniconda3/bin", "miniconda3/condabin"), {"CONDA_EXE": str(root / "bin/conda")})


def pipx(home: Path) -> Home:
    """A harness that pipx installed."""
    venv = home / ".local/share/pipx/venvs/harness-missions"
    link(venv / "bin/python", PYTHON)
    put(venv / "pyvenv.cfg", f"home = {os.path.dirname(PYTHON)}\n")
    program(venv / "bin/harness", f"#!{venv}/bin/python\nimport sys\nassert sys.prefix == '{venv}', sys.prefix\n")
    link(home / ".local/bin/harness", venv / "bin/harness")
    return Home(home, "harness", (".local/bin",))


def checkout(home: Path) -> Home:
    """A checkout with a program in it that a link on PATH leads to, and that needs what lies beside it."""
    program(home / "src/tool/bin/tool", '#!/bin/sh\n. "$(dirname "$(readlink -f "$0")")/../lib/part.sh"\n')
    put(home / "src/tool/lib/part.sh", "echo part\n")
    link(home / "bin/tool", "../src/tool/bin/tool")
    put(home / "src/other/.env", SECRET)
    return Home(home, 'test "$(tool)" = part', ("bin",))


def nvm(home: Path) -> Home:
    """nvm: a function of the shell, and the folder of one version on PATH."""
    root = home / ".nvm/versions/node/v20.1.0"
    real("node", SAYS.format("v20.1.0"))(root / "bin/node")
    program(root / "lib/node_modules/tool/cli.sh", "#!/bin/sh\nnode -v\n")
    link(root / "bin/tool", "../lib/node_modules/tool/cli.sh")
    put(home / ".nvm/alias/default", "v20.1.0\n")
    put(home / ".nvm/nvm.sh", 'nvm() { cat "$NVM_DIR/alias/default"; }\n')
    check = 'tool; . "$NVM_DIR/nvm.sh"; test "$(nvm current)" = v20.1.0; . ~/.nvm/nvm.sh'
    return Home(home, check, (".nvm/versions/node/v20.1.0/bin",), {"NVM_DIR": str(home / ".nvm")})


def volta(home: Path) -> Home:
    """volta: each program is a link to its shim, which looks for the version."""
    program(home / ".volta/bin/volta-shim", VOLTA)
    link(home / ".volta/bin/node", "volta-shim")
    real("node", SAYS.format("v20.1.0"))(home / ".volta/tools/image/node/20.1.0/bin/node")
    put(home / ".volta/tools/user/platform.json", json.dumps({"node": {"runtime": "20.1.0", "npm": None}}))
    return Home(home, "node -v", (".volta/bin",), {"VOLTA_HOME": str(home / ".volta")})


def rustup(home: Path) -> Home:
    """rustup: cargo is a link to it; a toolchain; a login, and a registry beside one."""
    program(home / ".cargo/bin/rustup", RUSTUP)
    link(home / ".cargo/bin/cargo", "rustup")
    put(home / ".cargo/credentials.toml", f'[registry]\ntoken = "{SECRET}"\n')
    put(home / ".cargo/config.toml", f'[registries.corp]\nindex = "sparse+https://c.example/"\ntoken = "{SECRET}"\n')
    put(home / ".rustup/settings.toml", 'default_toolchain = "stable-x86_64-unknown-linux-gnu"\n')
    program(home / ".rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo", CARGO)
    return Home(home, "cargo | grep sparse+https://c.example/", (".cargo/bin",))


def go(home: Path) -> Home:
    """Go: one that was unpacked below HOME, and a program that it installed."""
    program(home / "sdk/go1.99/bin/go", GO)
    put(home / "sdk/go1.99/VERSION", "go1.99\n")
    program(home / "go/bin/tool", SAYS.format("tool"))
    put(home / "go/pkg/mod/cache/x", "x")
    put(home / ".config/go/env", f"GOPROXY=https://me:{SECRET}@go.example\n")
    check = 'test "$(go)" = go1.99; tool; grep -q GOPROXY=https://go.example ~/.config/go/env'
    return Home(home, check, ("sdk/go1.99/bin", "go/bin"))


def sdkman(home: Path) -> Home:
    """sdkman: `current` is a link to a version, and JAVA_HOME leads there; Maven knows a server."""
    java = home / ".sdkman/candidates/java"
    program(java / "21.0.1-tem/bin/java", f'#!/bin/sh\ncat "{java}/current/lib/modules"\n')
    put(java / "21.0.1-tem/lib/modules", "modules\n")
    link(java / "current", "21.0.1-tem")
    put(
        home / ".sdkman/bin/sdkman-init.sh",
        'mkdir -p "$SDKMAN_DIR/tmp"; export SDKMAN_CANDIDATES_DIR="$SDKMAN_DIR/candidates"\n',
    )
    server = f"<servers><server><id>corp</id><password>{SECRET}</password></server></servers>"
    put(home / ".m2/settings.xml", f"<settings>{server}<localRepository>x</localRepository></settings>\n")
    put(home / ".m2/settings-security.xml", f"<settingsSecurity><master>{SECRET}</master></settingsSecurity>\n")
    check = '"$JAVA_HOME/bin/java"; java; grep -q local ~/.m2/settings.xml; SDKMAN_DIR=~/.sdkman; . ~/.sdkman/bin/sdkman-init.sh'
    variables = {"JAVA_HOME": str(java / "current"), "SDKMAN_DIR": str(home / ".sdkman")}
    return Home(home, check, (".sdkman/candidates/java/current/bin",), variables)


def npm(home: Path) -> Home:
    """npm with a private registry, and a prefix of a person's."""
    put(
        home / ".npmrc",
        f"registry=https://npm.example/\n//npm.example/:_authToken={SECRET}\nprefix={home}/.npm-global\n",
    )
    program(home / ".npm-global/lib/node_modules/tool/cli.sh", SAYS.format("tool"))
    link(home / ".npm-global/bin/tool", "../lib/node_modules/tool/cli.sh")
    asked = "npm config get registry" if shutil.which("npm") else "sed -n 's/^registry=//p' ~/.npmrc"
    return Home(home, f'tool; test "$({asked})" = https://npm.example/', (".npm-global/bin",))


def ca(home: Path) -> Home:
    """Certificates of a company, which variables and settings name."""
    for name in ("corp", "git", "pip"):
        put(home / f"certs/{name}.pem", f"{name}\n")
    put(home / "certs/own.key", SECRET)
    put(home / ".gitconfig", f'[http]\n\tsslCAInfo = ~/certs/git.pem\n[url "https://{SECRET}@h/"]\n\tinsteadOf = h:\n')
    put(home / ".config/pip/pip.conf", f"[global]\ncert = {home}/certs/pip.pem\n")
    git, pip = "git config --type=path http.sslCAInfo", "sed -n 's/^cert = //p' ~/.config/pip/pip.conf"
    check = (
        f'cat "$SSL_CERT_FILE" "$NODE_EXTRA_CA_CERTS" "$({git})" "$({pip})" >&2; git config url.https://h/.insteadOf'
    )
    corp = str(home / "certs/corp.pem")
    return Home(home, check, (), {"SSL_CERT_FILE": corp, "NODE_EXTRA_CA_CERTS": corp, "REQUESTS_CA_BUNDLE": corp})


HOMES = {one.__name__: one for one in (pyenv, uv, conda, pipx, checkout, nvm, volta, rustup, go, sdkman, npm, ca)}


def make(name: str, folder: Path) -> Home:
    """One of these HOMEs in a folder, which is made, with logins of a person; its check sees none of them."""
    home = HOMES[name](folder)
    for path in (".ssh/id_ed25519", ".netrc", ".config/gh/hosts.yml", ".aws/credentials", "work/.env"):
        put(folder / path, SECRET)
    found = [path for path in folder.rglob("*") if path.is_file() and SECRET in path.read_text(errors="replace")]
    names = " ".join(f"{path} ~/{path.relative_to(folder)}" for path in found if not path.is_symlink())
    return home._replace(check=f"{home.check}; if cat {names} 2>/dev/null | grep {SECRET}; then exit 1; fi")


def installed(venv: Path, work: Path) -> Path:
    """The harness as pipx installs it, in this environment, built in another folder; its program."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(work), str(CHECKOUT)], check=True
    )
    [wheel] = work.glob("*.whl")
    into = [*PIP, "--python", str(venv / "bin/python"), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(into, check=True)
    [packages] = venv.glob("lib/python*/site-packages")
    copy_packages(packages)
    return venv / "bin/harness"


@functools.cache
def real_uv() -> str:
    """uv from PyPI, in a temporary folder for as long as the tests run; "" where it cannot be had."""
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    done = subprocess.run([*PIP, "install", "--no-deps", "--target", str(folder), "uv"], check=False)
    return str(folder / "bin/uv") if done.returncode == 0 else ""


if __name__ == "__main__":
    for wanted in sys.argv[2:] or HOMES:
        made = make(wanted, Path(sys.argv[1]).resolve() / wanted)
        print(f"{wanted}: {made.variables} PATH={':'.join(made.path)}\n  {made.check}")  # noqa: T201 - a program
