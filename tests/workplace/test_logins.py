"""Settings of tools without logins: what is left says where packages are, as before, and not who may have them."""

from __future__ import annotations

import pytest

from harness.workplace import _logins

SETTINGS = {
    ".npmrc": """registry=https://npm.corp/
- //npm.corp/:_authToken=s3cret
- ; //npm.corp/:_authToken=s3cret
- //npm.corp/:_password=${SECRET}
- //npm.corp/:username=s3cret
@my-auth:registry=https://auth.corp/
@monkey:registry=https://auth.corp/
cafile=/home/u/ca.pem
""",
    "pip.conf": """[global]
= index-url = https://me:s3cret@pypi.corp/simple -> index-url = https://pypi.corp/simple
extra-index-url =
=     https://s3cret@pypi.corp/simple ->     https://pypi.corp/simple
    https://pypi.org/simple
cert = /home/u/ca.pem
- password =
-    s3cret
trusted-host = key.corp
""",
    "config.toml": """[registries]
- my = { index = "sparse+https://a/", token = "s3cret" }
[registries.other]
index = "sparse+https://b/"
- token = "s3cret"
[registry]
- credential-provider = [
-   "cargo:token s3cret",
- ]
default = "other"
[build]
rustflags = ["-C", "link-arg=x"]
[http]
= proxy = "http://u:s3cret@proxy:3128" -> proxy = "http://proxy:3128"
""",
    ".condarc": """channels:
=   - https://conda.corp/t/s3cret-s3cret/ch ->   - https://conda.corp/t/x/ch
  - defaults
ssl_verify: /home/u/ca.pem
""",
    ".yarnrc.yml": """npmRegistryServer: "https://npm.corp"
- npmAuthToken: "s3cret"
npmScopes:
  corp:
    npmRegistryServer: "https://npm.corp"
-     npmAuthIdent: "u:s3cret"
""",
    ".curlrc": """cacert = /home/u/ca.pem
- user = "u:s3cret"
- user u:s3cret
- -u u:s3cret
- header = "Authorization: Basic s3cret"
""",
    ".bundle/config": """- BUNDLE_GEMS__CORP__COM: "u:s3cret"
BUNDLE_PATH: "vendor"
""",
    "gradle.properties": """org.gradle.jvmargs=-Xmx1g
- artifactoryUser=s3cret
- artifactoryPassword=s3cret
""",
}


def split(marked: str) -> tuple[str, str]:
    """(the text, what is to be left of it): `- ` marks a line that goes, `= … -> …` one that changes."""
    before, after = [], []
    for line in marked.splitlines():
        mark, rest = line[:2], line[2:]
        one, _, two = rest.partition(" -> ") if mark == "= " else (rest if mark == "- " else line, "", line)
        before.append(one)
        after += [] if mark == "- " else [two]
    return "\n".join([*before, ""]), "\n".join([*after, ""])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_login_goes_and_the_rest_stays(name: str) -> None:
    """By the name of a setting, in an inline table, in a comment, over several lines; of an address only the login goes."""
    text, left = split(SETTINGS[name])
    assert "s3cret" in text
    assert _logins.without(text) == left
    assert _logins.without(left) == left


def test_settings_in_xml_lose_servers_and_passwords() -> None:
    """Maven's servers, the login of a proxy, NuGet's credentials."""
    servers = "<servers><server><id>corp</id><password>s3cret</password></server></servers>"
    proxy = "<proxy><host>h</host><username>s3cret</username><password>s3cret</password></proxy>"
    mirror = "<mirror><url>https://u:s3cret@m/</url></mirror>"
    text = f"<?xml version='1.0'?>\n<settings>{servers}{proxy}{mirror}</settings>"
    assert _logins.without(text) == (
        "<?xml version='1.0'?>\n<settings><proxy><host>h</host></proxy><mirror><url>https://m/</url></mirror></settings>"
    )
    nuget = "<configuration><packageSourceCredentials><a/></packageSourceCredentials><b/></configuration>"
    assert _logins.without(nuget) == "<configuration><b/></configuration>"


def test_a_secret_is_masked_whatever_it_is_called() -> None:
    """By the rules that transcripts are masked by."""
    assert _logins.without("x=ghp_" + "aB3dE6gH9" * 4 + "\n") == "x=[masked: github-token]\n"


def test_an_address_in_git_has_no_login_and_ssh_keeps_its_user() -> None:
    """In keys and values."""
    config: _logins.Pairs = [
        ["url.https://s3cret@h/.insteadof", "x:"],
        ["url.ssh://git@h/.insteadof", None],
        ["http.proxy", "http://u:p@h"],
    ]
    assert _logins.without_in_git(config) == [
        ["url.https://h/.insteadof", "x:"],
        ["url.ssh://git@h/.insteadof", None],
        ["http.proxy", "http://h"],
    ]
