"""What passes of an environment: what the table names, and nothing that logs somebody in."""

from __future__ import annotations

import pytest

from harness.base import tables
from harness.process import variables

RANDOM = "q7Vx2Kd9Tz4Lm8Rw3Yb6Nc1Hs5Jf0Gp7Aa2Ee"
LOGINS = {  # forty, as somebody writes them who wants to read them from a run
    "AWS_ACCESS_KEY_ID": "AKIA" + "Q7VX2KD9TZ4LM8RW",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/token",
    "AZURE_STORAGE_CONNECTION_STRING": f"AccountName=a;AccountKey={RANDOM}{RANDOM}==",
    "ANSIBLE_VAULT_PASSWORD_FILE": "/home/me/.vault",
    "ANDROID_KEYSTORE_PASS": "hunter2",
    "BUNDLE_GEMS__CORP__COM": "me:hunter2",
    "CARGO_REGISTRY_TOKEN": RANDOM,
    "CARGO_REGISTRIES_CORP_TOKEN": RANDOM,
    "CARGO_HTTP_PROXY": "me:hunter2@proxy.corp:3128",
    "CELERY_BROKER_URL": "amqp://me:hunter2@mq/",
    "CONDA_CHANNEL_ALIAS": "https://me:hunter2@conda.corp/",
    "DATABASE_URL": "postgres://me:hunter2@db/app",
    "DOCKER_AUTH_CONFIG": '{"auths": {}}',
    "DOTNET_NUGET_PAT": "hunter2",
    "GEM_HOST_API_KEY_CORP": RANDOM,
    "GITHUB_PAT": f"ghp_{RANDOM}",
    "GIT_CONFIG_VALUE_0": f"Authorization: Bearer {RANDOM}",
    "GODADDY_SECRET_LIVE": "hunter2",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
    "GOPROXY": "https://me:hunter2@go.corp,direct",
    "GRADLE_OPTS": f"-PnexusPassword={RANDOM}",
    "HTTPS_PROXY": "http://me:secret@proxy.corp:3128",
    "KUBECONFIG": "/home/me/.kube/config",
    "MAVEN_PWD": "hunter2",
    "MYSQL_PWD": "hunter2",
    "NIX_CONFIG": f"access-tokens = github.com=ghp_{RANDOM}",
    "NODE_REDIS_URL": "redis://:hunter2@cache/",
    "NPM_TOKEN": RANDOM,
    "OP_SESSION_corp": RANDOM,
    "PGPASSWORD": "hunter2",
    "PIP_INDEX_URL": "https://me:password@pypi.corp/simple",
    "POETRY_HTTP_BASIC_CORP_PASSWORD": "hunter2",
    "POETRY_PYPI_TOKEN_CORP": RANDOM,
    "SENTRY_DSN": f"https://{RANDOM}@sentry.corp/1",
    "SLACK_WEBHOOK_URL": f"https://hooks.slack.com/services/T0/B0/{RANDOM}",
    "SSHPASS": "hunter2",
    "UV_INDEX": f"corp=https://{RANDOM}@pypi.corp/simple",
    "http_proxy": "me:hunter2@proxy.corp:3128",
    "npm_config__auth": RANDOM,
    "npm_config_//registry.corp/:_authToken": RANDOM,
}
HONEST = {
    "PATH": "/opt/python@3/bin:/usr/bin",
    "LANGUAGE": "de:sr@latin",
    "LC_ALL": "C.UTF-8",
    "XDG_CACHE_HOME": "/c",
    "HTTPS_PROXY": "http://proxy.corp:3128",
    "no_proxy": "localhost,.corp",
    "AWS_CA_BUNDLE": "/etc/ca.pem",
    "GIT_AUTHOR_EMAIL": "me@corp",
    "GIT_COMMITTER_NAME": "Me",
    "GOPROXY": "https://go.corp,direct",
    "CARGO_REGISTRIES_CORP_INDEX": "ssh://git@git.corp/index",
    "CFLAGS": "-O2 -DKEY=1",
    "LD_LIBRARY_PATH": "/opt/lib",
    "NODE_OPTIONS": "--max-old-space-size=4096",
    "NODE_TLS_REJECT_UNAUTHORIZED": "0",
    "MAVEN_OPTS": "-Xmx2g",
    "PIP_INDEX_URL": "https://pypi.corp/simple",
    "POETRY_VIRTUALENVS_PATH": "/v",
    "PYTHONHASHSEED": "0",
    "BUNDLE_PATH": "vendor",
    "npm_config_registry": "https://npm.corp/",
}
NOT_LISTED = [
    "https_Proxy",
    "NPM_CONFIG_REGISTRY",
    "PYTHONPATH",
    "GOOGLE_CLOUD_PROJECT",
    "EDITOR",
    "DJANGO_SETTINGS_MODULE",
]


def test_no_login_passes() -> None:
    """By its name or by its value, whatever row of the table it is in; whole names that a person lists do."""
    assert len(LOGINS) == 40
    assert variables.passing(LOGINS) == {}
    assert variables.passing(LOGINS, LOGINS) == LOGINS


def test_what_the_table_names_passes() -> None:
    """Letters count as they are written."""
    assert variables.passing(HONEST) == HONEST
    assert variables.passing(dict.fromkeys(NOT_LISTED, "x")) == {}


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([], []),
        (["GOOGLE_*"], ["GOOGLE_CLOUD_PROJECT"]),
        (["GOOGLE_APPLICATION_CREDENTIALS"], ["GOOGLE_APPLICATION_CREDENTIALS"]),
        (["*_API_KEY"], ["A_API_KEY", "B_API_KEY"]),
        (["GEMINI_*"], ["GEMINI_MODEL"]),
    ],
)
def test_what_an_agent_needs_passes_and_a_login_only_where_that_is_meant(needs: list[str], expected: list[str]) -> None:
    """By its whole name, or by a pattern that is one of logins; what marks a nested agent never does."""
    names = [
        "A_API_KEY",
        "B_API_KEY",
        "GEMINI_CLI",
        "GEMINI_MODEL",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT",
    ]
    base = dict.fromkeys(names, "x")
    assert list(variables.passing(base, [], needs)) == expected


def test_what_is_ours_never_passes() -> None:
    """Not even where a person lists it: the harness's own modules, and the repository of a hook."""
    base = {"PYTHONPATH": "/h", "HARNESS_HOME": "/h", "GIT_DIR": "/g", "CLAUDECODE": "1"}
    assert variables.passing(base, base) == variables.passing(base, [], ["*"]) == {}


def test_each_row_of_the_table_has_a_reason() -> None:
    """Names, and behind a # why."""
    for lines in tables.sections(variables.TABLE).values():
        assert [line for line in lines if not line.partition(" # ")[2].strip()] == []
