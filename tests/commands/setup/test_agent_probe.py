"""doctor agents: the agents found, and one small call that shows whether an agent works before money is spent."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness.process.confine import BUBBLEWRAP, available
from harness.state import names
from harness.workplace import environment
from tests.missions import House

ABLE = r"""#!/bin/bash
# An agent that reads its prompt and does what it says.
[ "$1" = --version ] && { echo "codex-cli 0.170.1"; exit 0; }
prompt=$(cat)
echo written > try.txt
uname -s > uname.txt
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1200,"cached_input_tokens":200,"output_tokens":34}}'
"""
UNABLE = r"""#!/bin/bash
cat >/dev/null
echo "the sandbox has no shell" >&2
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: no key"}}'
exit 1
"""


def install(house: House, name: str, text: str) -> str:
    """Install a program on a separate PATH; returns that PATH."""
    folder = house.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"


def lines(out: str) -> dict[str, str]:
    """{agent: its line} of `doctor agents`."""
    rows = [line[6:] for line in out.split("\n") if line]
    return {row.partition(":")[0]: row for row in rows}


def test_every_known_program_has_a_line(house: House) -> None:
    """Found or not, its version next to the tested one, and whether it has a login."""
    path = install(house, "codex", ABLE)
    house.config('agent = "codex"', 'trust = "workspace"')
    done = house.program("doctor", "agents", PATH=path, OPENAI_API_KEY="x")
    assert done.code == 0
    found = lines(done.out)
    assert found["codex"].startswith("codex: 0.170.1, newer than ")
    assert "login: OPENAI_API_KEY" in found["codex"]
    assert "reports no cost" in found["codex"]
    assert found["gemini"] == "gemini: not found (gemini is not on the PATH)"
    assert {"claude", "opencode"} <= found.keys()


def test_an_agent_that_is_configured_and_not_there_is_bad(house: House) -> None:
    """The same for a user's own program; exit code 10."""
    house.config('agent = ["gemini", "mine"]', 'trust = "full"', "[agents.mine]", 'command = ["no-such-program"]')
    done = house.program("doctor", "agents", PATH=install(house, "codex", ABLE))
    assert done.code == 10
    bad = [line for line in done.out.split("\n") if line.startswith("bad")]
    assert [line.split()[1] for line in bad] == ["gemini:", "mine:"]


def test_an_agent_without_trust_is_said_to_wait_for_it(house: House) -> None:
    """Before a run finds out."""
    house.config('agent = "codex"')
    found = lines(house.program("doctor", "agents", PATH=install(house, "codex", ABLE)).out)
    assert "config.toml sets no trust yet" in found["codex"]


def test_an_agent_without_a_login_that_can_be_seen_is_a_warning(house: House) -> None:
    """A login may exist that doctor cannot see, so it is not bad; an agent that is not configured causes no warning."""
    path = install(house, "codex", ABLE)
    house.config('agent = "codex"', 'trust = "workspace"')
    done = house.program("doctor", "agents", PATH=path)
    (line,) = [line for line in done.out.split("\n") if "codex:" in line]
    assert (done.code, line[:6]) == (0, "warn  ")
    assert "no login seen (it may still have one)" in line
    logged_in = house.program("doctor", "agents", PATH=path, CODEX_API_KEY="x").out
    assert [line[:6] for line in logged_in.split("\n") if "codex:" in line] == ["ok    "]
    house.config('agent = "scripted"', 'trust = "workspace"')
    idle = house.program("doctor", "agents", PATH=path).out
    assert [line[:6] for line in idle.split("\n") if "codex:" in line] == ["ok    "]


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
def test_an_agent_that_its_confinement_would_hide_is_found_before_a_run(house: House) -> None:
    """By `init` as a warning, by `doctor` and `doctor agents`; each names the place, why it is hidden, and the remedy."""
    program = house.folder / "home/mine/agent"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (house.project / "agent").symlink_to(program)
    mine = ('agent = "mine"', 'trust = "workspace"', "[agents.mine]", 'command = ["./agent"]')
    house.config(*mine)
    why = (
        f"./agent cannot be started: its confinement hides {program}: runs see only a list of your home folder; "
        'to show it, write into config.toml: [home] show = ["mine/agent"].'
    )
    assert f"warning: mine: {why}\n" in house.harness("init").out
    assert f"bad   agent mine: {why}\n" in house.harness("doctor").out
    assert f"bad   mine: {why}\n" in house.harness("doctor", "agents").out
    house.config(*mine, "[home]", 'show = ["mine/agent"]')
    assert (
        "hides" not in house.harness("init").out + house.harness("doctor").out + house.harness("doctor", "agents").out
    )


def test_the_keys_that_an_agent_does_not_get_are_named(house: House) -> None:
    """Of each configured agent, with the line that passes one: names and no values."""
    path = install(house, "codex", ABLE)
    keys = {"OPENAI_API_KEY": "private", "MY_TOKEN": "private", "OWN_TOKEN": "private", "DEPLOY_KEY": "private"}
    mine = ("[agents.mine]", 'command = ["true"]', 'env = { OWN_TOKEN = "x" }')
    house.config('agent = ["codex", "mine"]', 'trust = "full"', "[env]", 'pass = ["DEPLOY_KEY"]', *mine)
    out = house.program("doctor", "agents", PATH=path, **keys).out
    notes = dict(re.findall(r"^note  withheld from (\w+): (.*);", out, re.M))
    assert set(keys) & set(notes["codex"].split(", ")) == {"MY_TOKEN", "OWN_TOKEN"}
    assert set(keys) & set(notes["mine"].split(", ")) == {"MY_TOKEN", "OPENAI_API_KEY"}
    assert "private" not in out
    assert '[env] pass = ["' in out


def test_an_agent_from_which_no_key_is_withheld_has_no_note(house: House) -> None:
    """Sockets are no keys; an agent that is not configured has no note either."""
    house.env = {name: text for name, text in house.env.items() if not environment.withheld({name: text})}
    house.config('agent = "codex"', 'trust = "full"')
    path = install(house, "codex", ABLE)
    out = house.program("doctor", "agents", PATH=path, CODEX_API_KEY="x", SSH_AUTH_SOCK="/s").out
    assert "withheld" not in out


def test_the_trial_passes_the_keys_that_a_run_passes(house: House) -> None:
    """The settings of this mission hold in the temporary folder."""
    path = install(house, "codex", ABLE.replace("prompt=", '[ "${MY_TOKEN-}" = x ] || exit 1\nprompt=', 1))
    house.config('agent = "codex"', 'trust = "workspace"', "[env]", 'pass = ["MY_TOKEN"]')
    assert house.program("doctor", "agents", "--try", PATH=path, MY_TOKEN="x").code == 0


def test_a_small_real_call_shows_that_an_agent_can_work(house: House) -> None:
    """It answers, writes and runs a command; its usage is shown; the mission itself is untouched."""
    path = install(house, "codex", ABLE)
    house.config('agent = "codex"', 'trust = "workspace"')
    before = (house.head(), house.git("status", "--porcelain"), house.ran())
    done = house.program("doctor", "agents", "--try", PATH=path)
    assert done.code == 0, done
    told = [line.split(None, 1) for line in done.out.split("\n") if line]
    assert [row[0] for row in told] == ["ok", "ok", "ok", "note"]
    assert [row[1] for row in told[:3]] == ["codex: answers", "codex: writes a file", "codex: runs a command"]
    assert told[3][1].endswith("1,000 input, 200 cache_read, 34 output; cost unknown")
    assert (house.head(), house.git("status", "--porcelain"), house.ran()) == before
    assert list((house.folder / "temporary").iterdir()) == []


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
def test_the_trial_is_confined_like_a_run(house: House) -> None:
    """The agent writes its folder alone; nothing of it is left."""
    spec = house.project / "SPEC.md"
    path = install(house, "codex", ABLE.replace("prompt=", f'echo bad >> "{spec}"\nprompt=', 1))
    house.config('agent = "codex"', 'trust = "workspace"')
    assert house.program("doctor", "agents", "--try", PATH=path).code == 0
    assert "bad" not in spec.read_text()


def test_an_agent_that_cannot_work_is_told_with_the_reason(house: House) -> None:
    """Before a mission stops at it."""
    path = install(house, "codex", UNABLE)
    house.config('agent = "codex"', 'trust = "workspace"')
    done = house.program("doctor", "agents", "--try", PATH=path)
    assert done.code == 10
    one, two, *rest = done.out.split("\n")
    assert one.startswith("bad   codex: answers: no. unexpected status 401 Unauthorized: no key")
    assert two.startswith("      Log in to codex, or pay for it: codex login")
    assert rest == [""]


def test_an_agent_that_is_not_there_does_not_keep_the_next_one_from_being_tried(house: House) -> None:
    """As in a run."""
    path = install(house, "codex", ABLE)
    house.config('agent = ["gemini", "codex"]', 'trust = "workspace"')
    done = house.program("doctor", "agents", "--try", PATH=path)
    assert done.code == 10
    assert done.out.startswith("bad   gemini: The agent's program 'gemini' is not installed")
    assert "ok    codex: answers" in done.out


def test_a_program_of_one_s_own_is_tried_as_it_is_configured(house: House) -> None:
    """Also with a path relative to the project."""
    house.write("tools/agent", ABLE)
    Path(house.project, "tools/agent").chmod(0o755)
    path = f"{house.project}/tools{os.pathsep}{house.env['PATH']}"  # of what is below /tmp, only this is seen inside
    for lines in (
        ('agent = "mine"', "[agents.mine]", 'command = ["tools/agent"]', 'format = "codex"'),
        ('agent = "codex"', 'trust = "workspace"', "[agents.codex]", 'path = "tools/agent"'),
    ):
        house.config(*lines)
        done = house.program("doctor", "agents", "--try", PATH=path)
        assert done.code == 0, done


def test_a_confinement_that_is_required_and_missing_is_the_finding_of_each_agent(house: House) -> None:
    """As its runs would not start."""
    install(house, "bwrap", "#!/bin/sh\nexit 1\n")
    path = install(house, "codex", ABLE)
    house.config('agent = ["codex", "mine"]', 'trust = "full"', 'confine = "required"', 'network = "loopback"',
                 "[agents.mine]", 'command = ["codex"]')  # fmt: skip
    done = house.program("doctor", "agents", "--try", PATH=path)
    assert (done.code, done.out.count("bad   codex: "), done.out.count("bad   mine: ")) == (10, 1, 1), done


def test_the_trial_has_the_variables_that_a_run_has(house: House) -> None:
    """Those that `[env] pass` names; a name that only starts like one of ours is the user's own."""
    own = '[ "$REASONING_EFFORT$TRIGGER_CI$FEATURE_IDS" = high12 ] || exit 1\nprompt='
    path = install(house, "codex", ABLE.replace("prompt=", own, 1))
    house.config(
        'agent = "codex"', 'trust = "workspace"', "[env]", 'pass = ["REASONING_EFFORT", "TRIGGER_CI", "FEATURE_IDS"]'
    )
    mine = {"REASONING_EFFORT": "high", "TRIGGER_CI": "1", "FEATURE_IDS": "2"}
    done = house.program("doctor", "agents", "--try", PATH=path, **mine)
    assert done.code == 0, done


def test_nothing_is_tried_inside_a_run(house: House) -> None:
    """An agent must not start agents."""
    house.config('agent = "scripted"')
    house.work({"run": f"'{house.layout.path(names.SHIM)}' doctor agents --try || echo $? > told"})
    assert (house.tree / "told").read_text() == "64\n"


@pytest.mark.parametrize("words", [("doctor", "--try"), ("doctor", "agent")])
def test_a_slip_of_the_tongue_is_a_usage_fault(house: House, words: tuple[str, ...]) -> None:
    """No agent is checked."""
    assert house.harness(*words).code == 64
