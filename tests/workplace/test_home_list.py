"""What of a HOME is there: what tools that its person installed need, and nothing that holds a login."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.workplace import _home_list


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty HOME."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def put(home: Path, *names: str, text: str = "x\n") -> None:
    """Make these files."""
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


def seen(home: Path, *shown: str, **env: str) -> list[str]:
    """What is there."""
    return sorted(_home_list.person(str(home), env, shown).seen)


def test_every_line_of_the_list_says_how_and_why() -> None:
    """And no path twice in one way."""
    with open(_home_list.LIST, encoding="utf-8") as file:
        lines = [line.split(None, 3) for line in file if line.strip() and line[0] != "#"]
    kinds = {"seen", "opened", "fresh", "login", "copy", "settings", "git", "key", "named", "moved", "unset"}
    assert {how for _, how, _, _ in lines} == kinds
    assert all(why.strip() for *_, why in lines)
    paths = [(path, how) for path, how, _, _ in lines if path != "-"]
    assert len(paths) == len(set(paths))


def test_a_version_manager_is_there_as_a_whole_and_nothing_beside_it(home: Path) -> None:
    """Whether PATH names it or not."""
    put(
        home,
        ".nvm/versions/node/v20/bin/node",
        ".local/share/uv/tools/x/bin/x",
        ".ssh/id",
        "work/.env",
        ".config/gh/hosts",
    )
    assert seen(home) == [".local/share/uv", ".nvm"]


def test_a_folder_of_path_is_there_with_what_is_installed_with_it(home: Path) -> None:
    """The whole of an installation; of a folder that holds other things, the known parts, or only the folder itself."""
    put(home, "opt/node-20/lib/x", "opt/node-20/bin/node", "google/lib/x", "google/bin/g", "work/bin/mine", "work/.env")
    put(home, ".fly/bin/fly", ".fly/config.yml", ".fly/lib/x", "bin/own", ".config/tool/bin/tool", ".config/tool/token")
    folders = ("opt/node-20/bin", "google/bin", "work/bin", ".fly/bin", "bin", ".config/tool/bin")
    path = os.pathsep.join(
        [f"{home}/{name}" for name in folders] + [str(home), f"{home}/.config", "/usr/bin", "relative"]
    )
    whole = ["bin", "google", "opt/node-20", "work/bin"]
    assert seen(home, PATH=path) == [".config/tool/bin", ".fly/bin", ".fly/lib", *whole]


def test_links_are_followed_to_where_they_lead(home: Path) -> None:
    """Step by step, since each link on the way must be there; not to keys."""
    put(
        home,
        "src/tool/bin/tool",
        "src/tool/lib/x",
        "apps/v2/run",
        "apps/v2/data",
        "scripts/one.sh",
        "scripts/.env",
        ".ssh/id",
    )
    (home / "apps/current").symlink_to("v2")
    (home / ".local/bin").mkdir(parents=True)
    for name, target in {
        "tool": "../../src/tool/bin/tool",
        "run": f"{home}/apps/current/run",
        "one": f"{home}/scripts/one.sh",
        "key": f"{home}/.ssh/id",
        "away": "/usr/bin/true",
        "nowhere": f"{home}/gone",
    }.items():
        (home / ".local/bin" / name).symlink_to(target)
    assert seen(home) == [".local/bin", "apps/current", "apps/v2", "scripts/one.sh", "src/tool"]


def test_variables_name_toolchains_and_certificates(home: Path) -> None:
    """Not HOME itself, nor a folder that everything is in."""
    put(home, "certs/corp.pem", "certs/own.key", "jdk/lib/x", ".local/x", "gcp.json")
    env = {"SSL_CERT_FILE": f"{home}/certs/corp.pem", "JAVA_HOME": f"{home}/jdk", "GOPATH": str(home)}
    env |= {"N_PREFIX": f"{home}/.local", "GOOGLE_APPLICATION_CREDENTIALS": f"{home}/gcp.json"}
    assert seen(home, **env) == ["certs/corp.pem", "jdk"]


def test_settings_without_a_login_are_there_and_what_they_name(home: Path) -> None:
    """A tool that looks upward from its tree finds them; with a login they are nowhere but in the layer, without it."""
    put(home, ".npmrc", text="registry=https://x/\ncafile=~/certs/corp.pem\n")
    put(home, ".cargo/config.toml", text='[registry]\ntoken = "x"\n')
    put(home, ".cargo/credentials.toml", ".cargo/bin/cargo", "certs/corp.pem", "ignored", ".editorconfig")
    put(home, ".gitconfig", text=f"[core]\n\texcludesFile = {home}/ignored\n[http]\n\tsslCAInfo = ~/certs/git.pem\n")
    put(home, "certs/git.pem")
    put(home, ".curlrc", text="cert = ~/own.pem\n")
    put(home, "own.pem", text="-----BEGIN PRIVATE KEY-----\n")
    found = _home_list.person(str(home), {})
    assert sorted(found.seen) == [
        ".cargo",
        ".curlrc",
        ".editorconfig",
        ".npmrc",
        "certs/corp.pem",
        "certs/git.pem",
        "ignored",
    ]
    assert sorted(found.hidden) == [".cargo/config.toml", ".cargo/credentials.toml"]


def test_what_is_shown_is_there_as_it_is(home: Path) -> None:
    """A login too; with all of HOME, keys are not, unless they are shown."""
    put(home, ".npmrc", text="//x/:_authToken=x\n")
    put(home, ".cargo/credentials.toml", ".ssh/id", ".aws/credentials")
    assert seen(home, ".npmrc", "absent") == [".cargo", ".npmrc"]
    assert _home_list.person(str(home), {}, [".cargo"]).hidden == ()
    keys = _home_list.person(str(home), {}, [_home_list.ALL, ".ssh"]).hidden
    assert ".aws" in keys and ".ssh" not in keys


def test_a_folder_that_a_variable_names_elsewhere_is_a_part_of_home(home: Path, tmp_path: Path) -> None:
    """Its list is the same."""
    put(tmp_path, "settings/pip/pip.conf", "settings/gh/hosts", text="[global]\n")
    one = _home_list.person(str(home), {"XDG_CONFIG_HOME": str(tmp_path / "settings")})
    assert [one.at(path) for path in one.seen] == [f"{tmp_path}/settings/pip/pip.conf"]
    assert (one.below(f"{tmp_path}/settings/gh"), one.below("/usr")) == (".config/gh", None)
