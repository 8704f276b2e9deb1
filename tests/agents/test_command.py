"""Any program as an agent: the prompt on its standard input, the reply on its standard output, stderr kept separate."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.agents._command import Command
from harness.agents.base import AgentEvent, AgentSuccess
from harness.base.errors import BrokenFile, Unavailable
from harness.process import tree
from tests.agents.agent_desk import Observed, desk, listen, project, settings

LARGE = "a line of the prompt, ünï¢ode too\n" * 20_000


def think(folder: Path, script: str, prompt: str = "", seconds: float = 60.0) -> Observed:
    """A program that is a bash script."""
    return listen(
        Command("mine", settings(folder, command=["bash", "-c", script])), desk(folder, prompt, seconds), prompt
    )


def test_the_prompt_comes_on_standard_input_and_ends(tmp_path: Path) -> None:
    """The whole prompt, byte for byte, in any size; then the input ends."""
    assert think(project(tmp_path), "cat", LARGE).reply == LARGE


def test_the_reply_is_standard_output_alone(tmp_path: Path) -> None:
    """Its standard error is shown while it works, and is no part of the reply."""
    observed = think(project(tmp_path), "echo thinking >&2; echo reply; echo more thinking >&2")
    assert observed.reply == "reply\n"
    assert observed.said == ["reply\n"]
    assert observed.output == "thinking\nmore thinking\n"


def test_another_exit_code_is_the_agents_fault(tmp_path: Path) -> None:
    """The failure names the code and keeps its output."""
    observed = think(project(tmp_path), "echo half; exit 7")
    assert observed.failure == ("agent_error", "it ended with exit 7")
    assert observed.said == ["half\n"]


def test_a_crash_is_the_agents_fault(tmp_path: Path) -> None:
    """The failure names the signal."""
    assert think(project(tmp_path), "kill -SEGV $$").failure == ("agent_error", "it ended with signal 11")


def test_its_time_is_bounded_and_nothing_survives(tmp_path: Path) -> None:
    """A run over its time ends as `wall`, with all its processes."""
    observed = think(project(tmp_path), "sleep 60 & echo $! >&2; wait", seconds=0.3)
    assert observed.failure == ("wall", "it ran out of time, after 0 s")
    assert not tree.stat(int(observed.output))


def test_it_works_in_the_working_folder_with_its_own_variables(tmp_path: Path) -> None:
    """`env` of its table overrides the execution context's environment, numbers as text; `args` are appended."""
    folder = project(tmp_path)
    agent = Command(
        "mine", settings(folder, command=["bash", "-c"], args=['echo "$PWD $MINE $LC_ALL"'], env={"MINE": 5})
    )
    assert listen(agent, desk(folder, LC_ALL="C")).reply == f"{folder} 5 C\n"


def test_a_program_of_the_project_is_found_from_its_folder(tmp_path: Path) -> None:
    """A relative path is relative to the project, wherever the harness was started."""
    folder = project(tmp_path)
    (folder / "tools").mkdir()
    tool = folder / "tools" / "agent"
    tool.write_text("#!/bin/sh\necho tool\n")
    tool.chmod(0o755)
    assert listen(Command("mine", settings(folder, command=["tools/agent"])), desk(folder)).reply == "tool\n"


def test_a_program_that_is_missing_is_named_before_the_run(tmp_path: Path) -> None:
    """With the remedy, and the place of its configuration."""
    for program in ("no-such-agent-here", "tools/missing"):
        with pytest.raises(Unavailable) as fault:
            Command("mine", settings(tmp_path, command=[program]))
        assert f"'{program}' is not installed" in str(fault.value)
        assert ".harness/config.toml" in str(fault.value)


def test_an_empty_command_is_a_broken_configuration(tmp_path: Path) -> None:
    """The message names the file and the remedy."""
    with pytest.raises(BrokenFile, match=r"config\.toml: 'command' is empty.*program"):
        Command("mine", settings(tmp_path, command=[]))


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    """It is not guessed."""
    with pytest.raises(BrokenFile, match="'format' must be one of text, edits, claude"):
        Command("mine", settings(tmp_path, command=["bash"], format="prose"))
    assert Command("mine", settings(tmp_path, command=["bash"], format="text")).argv == ["bash"]


def test_bytes_that_are_no_text_do_not_break_the_run(tmp_path: Path) -> None:
    """They are replaced, and a character split over two chunks stays whole."""
    folder = project(tmp_path)
    assert think(folder, r"printf 'a\377b'").reply == "a\ufffdb"
    assert think(folder, r"printf '\303'; sleep 0.05; printf '\274'").reply == "ü"
    assert think(folder, r"printf '\303' >&2; sleep 0.05; printf '\274' >&2").output == "ü"


def test_a_program_that_closed_its_output_without_a_reply_is_waited_for(tmp_path: Path) -> None:
    """It may still work, as a script that writes elsewhere; after a reply it is done."""
    folder = project(tmp_path)
    at = desk(folder).replace(after_result_seconds=0.3)
    quiet = Command("mine", settings(folder, command=["bash", "-c", "exec 1>&2; sleep 1; echo over"]))
    assert listen(quiet, at).end == AgentSuccess(reply="")
    said = Command("mine", settings(folder, command=["bash", "-c", "echo done; exec 1>&2; sleep 60"]))
    assert listen(said, at).end == AgentSuccess(reply="done\n", late=True)


def test_a_program_with_a_vendors_format_gets_that_vendors_keys(tmp_path: Path) -> None:
    """It is that vendor's program, behind a script of the user's."""
    mine = Command("mine", settings(tmp_path, command=["bash"], format="codex", env={"CODEX_HOME": "/own"}))
    assert "OPENAI_API_KEY" in mine.needs
    assert mine.writable == ("/own",)


def test_a_failure_names_the_keys_that_the_program_did_not_get(tmp_path: Path) -> None:
    """By name, with the line of config.toml that passes one; what its table gives is not among them."""
    folder = project(tmp_path)
    at = desk(folder).replace(withheld=["B_KEY", "C_KEY", "DATABASE_URL"])
    told = 'withheld from mine: B_KEY, C_KEY; to pass one, write into config.toml: [env] pass = ["B_KEY"]'
    agent = Command("mine", settings(folder, command=["bash", "-c", "exit 7"], env={"A_TOKEN": "x"}))
    assert agent.needs == ("A_TOKEN",)
    assert listen(agent, at).failure == ("agent_error", f"it ended with exit 7\n{told}")
    assert listen(agent, at.replace(withheld=["DATABASE_URL"])).failure == ("agent_error", "it ended with exit 7")


def test_a_program_that_ran_out_of_time_did_not_lack_a_key(tmp_path: Path) -> None:
    """Only a failure of its own may come from a missing key."""
    folder = project(tmp_path)
    agent = Command("mine", settings(folder, command=["sleep", "60"]))
    outcome, reason = listen(agent, desk(folder, seconds=0.3).replace(withheld=["B_KEY"])).failure
    assert (outcome, "withheld" in reason) == ("wall", False)


def test_its_words_come_while_it_speaks(tmp_path: Path) -> None:
    """Piece by piece; a character that arrives in two halves is one; the whole message follows once."""
    folder = project(tmp_path)
    script = r"printf 'gr\303'; sleep 0.2; printf '\266\303\237er\n'; sleep 0.2; echo two"
    agent = Command("mine", settings(folder, command=["bash", "-c", script]))
    found = [one for one in agent.think("", desk(folder)) if isinstance(one, AgentEvent)]
    pieces = [one.text for one in found if one.kind == "saying"]
    assert len(pieces) >= 3
    assert "".join(pieces) == "größer\ntwo\n"
    assert [one.text for one in found if one.kind == "whole"] == ["größer\ntwo\n"]
