"""config.toml is optional and closed: every key is checked, and each error names its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.mission import config
from harness.mission.config import Config
from harness.state import names
from tests.helpers import mission, put

WHOLE = """
agent = ["codex", "claude"]
user = "alice"
trust = "full"
mcp = true
workplace = "project"
confine = "required"
network = "loopback"
carry = [".env", "secrets/local.toml"]
lanes = 4
check_seconds = 1
sweep_seconds = 2
curate_after = 3
identity = "counted"
otel = "http://localhost:4318"

[limits]
max_runs = 4
max_hours = 5.5
stall_after = 6
max_cost_usd = 7
max_cost_usd_day = 2.5
max_cost_usd_feature = 1.5
max_tokens = 50_000_000
max_log_mb = 9

[env]
pass = ["NPM_TOKEN"]

[checks]
writes = ["Cargo.lock"]
needs = ["CI"]

[home]
show = [".config/tool/", "./.npmrc"]

[workspace]
max_tokens = 10
additional_context = ["docs/style.md"]
instructions = false
knowledge = false
skills = false
memory = false
subagents = false
tools = false

[team]
database = "postgresql://clerk@db/acme"
files = "s3://bucket/acme"
tenant = "acme"

[roles.worker]
agent = "codex"
model = "m"
minutes = 0.5
idle_minutes = 8

[agents.codex]
path = "/x"
args = ["-a"]
env = { A = "b" }
model = "m"
command = ["c"]
format = "claude"
writable = ["~/.x"]
base_url = "http://127.0.0.1:1/v1"
api_key_env = "K"
temperature = 0.5
max_output_tokens = 900
max_steps = 9
request_seconds = 60
curate = false
plans = "notes"
placement = "local"
scope = "agent"
shared = ["notes"]
sandbox_limits = { memory_mb = 512 }
store = "memory:"

[machines]
sweep = "anywhere"

[machines.build2]
command = ["ssh", "build2"]
address = "dask:tls://build2:8786"
insecure = false
program = "~/harness/run.sh"
lanes = 4

[prices."gpt-5.1-codex"]
input = 1.25
output = 10
cache_read = 0.125
cache_write = 0
"""
PRICES = 'prices."gpt-5.1-codex"'
TABLES = {
    "": config.TopTable.fields,
    "limits": config.LimitsTable.fields,
    "env": config.EnvTable.fields,
    "checks": config.ChecksTable.fields,
    "home": config.HomeTable.fields,
    "workspace": config.WorkspaceTable.fields,
    "team": config.TeamTable.fields,
    "roles.worker": config.RoleTable.fields,
    "agents.codex": config.AgentTable.fields,
    "machines": config.MachinesTable.fields,
    "machines.build2": config.MachineTable.fields,
    PRICES: config.PriceTable.fields,
}


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    """An empty file gives the defaults too."""
    layout = mission(tmp_path)
    assert config.load(layout) == Config()
    put(layout.path(names.CONFIG), "")
    assert config.load(layout) == Config()
    assert Config().asdict() | {"max_runs": 200, "max_hours": 48, "stall_after": 3} == Config().asdict()


def test_every_key_is_read() -> None:
    """The text above has each key of the module's tables, and each reaches its field."""
    told = config.parse(WHOLE, "c")
    read = told.asdict()
    carried = [".env", "secrets/local.toml"]
    top = [["codex", "claude"], "alice", "full", True, "project", "required", "loopback", carried, 4, 1, 2, 3]
    top += ["counted", "http://localhost:4318"]
    assert [read[key] for key in config.TopTable.fields] == top
    assert told.passed == ["NPM_TOKEN"]
    assert (told.shown, told.home) == ([".config/tool", ".npmrc"], ["/", ".config/tool", ".npmrc"])
    assert told.replace(trust="workspace").home == told.shown
    assert told.workspace.keys() == set(config.WorkspaceTable.fields)
    assert [read[key] for key in config.LimitsTable.fields] == [4, 5.5, 6, 7, 2.5, 1.5, 50_000_000, 9]
    assert told.roles["worker"].keys() == set(config.RoleTable.fields)
    assert told.agents["codex"].keys() == set(config.AgentTable.fields)
    assert (told.sweep, [*told.machines]) == ("anywhere", ["build2"])
    assert told.machines["build2"].keys() == set(config.MachineTable.fields)
    assert told.prices == {"gpt-5.1-codex": {"input": 1.25, "output": 10, "cache_read": 0.125, "cache_write": 0}}
    for keys in TABLES.values():
        assert [key for key in keys if f"\n{key} = " not in WHOLE] == []


def test_the_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    """At once, in the same process."""
    layout = mission(tmp_path)
    for text in (WHOLE, "max = 1", "check_seconds = 9\n"):
        put(layout.path(names.CONFIG), text)
        if text == "max = 1":
            with pytest.raises(BrokenFile):
                config.load(layout)
        else:
            assert config.load(layout) == config.parse(text, "c")


def test_the_defaults_keep_a_run_apart_and_pass_no_key() -> None:
    """Without a word in the file: a tree, confined where possible, with the network, no copies and no keys."""
    silent = Config()
    assert (silent.workplace, silent.confine, silent.network) == ("tree", "auto", True)
    assert (silent.carry, silent.passed) == ([], [])


@pytest.mark.parametrize(("text", "network"), [("true", True), ("false", False), ('"loopback"', "loopback")])
def test_the_network_is_on_off_or_this_machine(text: str, network: bool | str) -> None:
    """As it is written."""
    assert config.parse(f"network = {text}\n", "c").network == network


@pytest.mark.parametrize(
    ("given", "names"), [(None, []), ("", []), ("a", ["a"]), (["a", "b"], ["a", "b"]), ([], []), (5, [])]
)
def test_one_agent_or_a_list_of_them(given: object, names: list[str]) -> None:
    """Agents are tried in this order."""
    assert config.agent_names(given) == names


def line_of(text: str, part: str) -> int:
    """The 1-based line of a text's first line with this beginning."""
    return 1 + next(number for number, line in enumerate(text.split("\n")) if line.startswith(part))


def fault_in(text: str) -> BrokenFile:
    """The error of a text that is not a config."""
    with pytest.raises(BrokenFile) as caught:
        config.parse(text, "c.toml")
    return caught.value


@pytest.mark.parametrize("table", TABLES)
def test_an_unknown_key_is_named_with_its_line(table: str) -> None:
    """In each table; the same key may be known in another."""
    header = f"[{table}]\n" if table else "\n"
    text = WHOLE.replace(header, header + "minuets = 1\n", 1)
    assert fault_in(text).line == line_of(text, "minuets")
    assert "unknown key 'minuets'" in str(fault_in(text))


def test_a_key_in_the_wrong_table_is_named_where_it_is_wrong() -> None:
    """The error does not point to the place where the key is right."""
    text = WHOLE + "\n[limits2]\nminutes = 1\n"
    assert fault_in(text).line == line_of(text, "[limits2]")
    text = WHOLE.replace("[agents.codex]\n", "[agents.codex]\nminutes = 1\n")
    assert fault_in(text).line == line_of(text, "[agents.codex]") + 1
    text = '# minuets\nagent = "a"\n[roles]\nworker = { minuets = 1 }\n'
    assert fault_in(text).line == 4
    assert fault_in("limits.max_rnus = 3\n").line == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            '[[checkpoint]]\nname = "a"\nwhen = "after-plan"\n[limits]\n[[checkpoint]]\nname = "b c"\nwhen = "after-plan"\n',
            6,
        ),
        ('[[on]]\nevent = "run"\nrun = ["a"]\n[[on]]\nevent = "run"\n', 4),
        ('[[on]]\nevent = "run"\nrun = ["a"]\n[[on]]\nevent = "done"\nrun = ["a"]\nbefore = true\n', 7),
        ('on = [{event = "run", run = ["a"]}, {event = "run"}]\n', 1),
    ],
)
def test_a_fault_in_one_of_several_tables_of_a_name_is_named_there(text: str, line: int) -> None:
    """Not in the first of them, which is right."""
    assert fault_in(text).line == line


OTHERS = ["true", "5", '"x"']  # no key takes all of them


@pytest.mark.parametrize(("table", "key"), [(table, key) for table, keys in TABLES.items() for key in keys])
def test_a_value_of_the_wrong_kind_is_named_with_its_line(table: str, key: str) -> None:
    """Every key of every table."""
    start = WHOLE.index(f"[{table}]") if table else 0
    before, after = WHOLE[:start], WHOLE[start:]
    at = after.index(f"\n{key} = ") + 1
    faults = []
    for other in OTHERS:
        text = before + after[:at] + f"{key} = {other}" + after[after.index("\n", at) :]
        try:
            config.parse(text, "c.toml")
        except BrokenFile as fault:
            faults.append((fault.line, f"'{key}' must be" in str(fault)))
    assert set(faults) == {((before + after[:at]).count("\n") + 1, True)}
    assert len(faults) >= (1 if key in ("agent", "trust", "model", "path", "format", "mcp") else 2)


@pytest.mark.parametrize(
    ("text", "fault", "line"),
    [
        ("agent = \n", "not TOML", 1),
        ('trust = "full"\nagent = "a', "not TOML", 2),
        ("[limits\n", "not TOML", 1),
        ("agent = 'a'\nagent = 'b'\n", "not TOML", 2),
        ('\ntrust = "all"\n', "'trust' must be one of workspace, full", 2),
        ("\ncheck_seconds = 0\n", "'check_seconds' must be above 0", 2),
        ('[agents.b]\n\nbase_url = "http://h/${A}"\n', "'base_url' must be https://… or http://…, in ASCII", 3),
        ('[[on]]\nevent = "run"\nurl = "http://h/a b"\n', "'url' must be https://… or http://…, in ASCII", 3),
        ('[[on]]\nevent = "run"\nurl = "http://h/\\n"\n', "'url' must be https://… or http://…, in ASCII", 3),
        ('[[checkpoint]]\nname = "a b"\nwhen = "after-plan"\n', "'name' must be a name, ASCII letters, digits", 2),
        ("[limits]\nmax_cost_usd = -1.5\n", "'max_cost_usd' must be above 0", 2),
        ("[limits]\nmax_cost_usd = nan\n", "'max_cost_usd' must be above 0 and finite", 2),
        ("[roles.worker]\nidle_minutes = inf\n", "'idle_minutes' must be above 0 and finite", 2),
        ("[roles.worker]\nminutes = 0\n", "'minutes' must be above 0", 2),
        ('workplace = "here"\n', "'workplace' must be one of tree, project", 1),
        ('\nconfine = "yes"\n', "'confine' must be one of auto, required, off", 2),
        ('network = "lan"\n', "'network' must be true, false or \"loopback\"", 1),
        ("network = 1\n", "'network' must be true, false or \"loopback\"", 1),
        ('carry = ["/etc/passwd"]\n', "'carry' must be a list of paths in the project", 1),
        ('carry = ["a/../../b"]\n', "'carry' must be a list of paths in the project", 1),
        ('carry = [""]\n', "'carry' must be a list of paths in the project", 1),
        ('[env]\npass = ["A=b"]\n', "'pass' must be a list of names of variables", 2),
        ('[env]\npass = ["*_TOKEN"]\n', "'pass' must be a list of names of variables", 2),
        *(
            (f"[home]\nshow = ['{path}']\n", "'show' must be a list of paths below your home folder", 2)
            for path in (".", "..", "", "/etc", "~/.ssh", "a/../b")
        ),
        ("env = 5\n", "'env' must be an object", 1),
        ("check_seconds = true\n", "'check_seconds' must be a whole number", 1),
        ("agent = [1]\n", "'agent' must be a name", 1),
        ("agent = 2026-04-24\n", "'agent' must be a name", 1),
        ("[roles.worker]\nagent = 1\n", "'agent' must be a name", 2),
        ("limits = 5\n", "'limits' must be an object", 1),
        ("[roles]\nworker = 5\n", r"\[roles.worker\] must be an object", 2),
        ("[agents.a]\nenv = { A = 2026-04-24 }\n", "'env' must be an object of texts", 2),
        ("[prices.m]\ninput = 1\n\n[prices.n]\noutput = 1\n", r"\[prices.m\] lacks 'output'", 1),
        ("[prices.m]\ninput = 1\noutput = -1\n", "'output' must be a price, 0 or above", 3),
        ("[prices.m]\ninput = nan\noutput = 1\n", "'input' must be a price", 2),
        ("[prices.m]\ninput = 1\noutput = inf\n", "'output' must be a price", 3),
        ("[prices]\nm = 5\n", r"\[prices.m\] must be an object", 2),
        ("[[roles]]\n", "'roles' must be an object", 1),
    ],
)
def test_what_is_no_config_is_named(text: str, fault: str, line: int) -> None:
    """The error has file, line, and where the keys are documented."""
    with pytest.raises(BrokenFile, match=rf"^c\.toml, line {line}: .*{fault}"):
        config.parse(text, "c.toml")
