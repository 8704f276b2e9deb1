"""The agent of a folder, as its config.toml says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.builtin.sessions import folder
from harness.builtin.tools.tool import ALWAYS, NO, YES
from harness.state.layout import Layout

pytestmark = pytest.mark.on_disk


def test_the_agent_is_that_of_config_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model, address, key, prices and limits; an option takes the place of the model."""
    monkeypatch.delenv("HARNESS_USER", raising=False)
    (tmp_path / ".harness").mkdir()
    (tmp_path / ".harness/config.toml").write_text(
        'user = "ann"\n[agents.builtin]\nmodel = "openai:m"\nbase_url = "http://127.0.0.1:1/v1"\napi_key_env = "MY_KEY"\n'
        'max_steps = 7\ncurate = false\nplans = "notes"\n[prices.m]\ninput = 1\noutput = 2\n'
    )
    layout = Layout(str(tmp_path))
    made = folder.agent(layout, "", "", None)
    assert (made.name, made.model, made.config.api_key_env) == ("assistant", "openai:m", "MY_KEY")
    assert made.config.base_url == "http://127.0.0.1:1/v1"
    assert (made.config.curate, made.config.plans) == (False, "notes")
    assert folder.agent(layout, "else", "openai:other", None).model == "openai:other"
    limits = folder.limits(layout, 0.5, None, None)
    assert (limits.max_steps, limits.cost_usd, limits.prices["m"]["input"]) == (7, 0.5, 1)
    assert (folder.user(layout, ""), folder.user(layout, "bob")) == ("ann", "bob")


def test_without_a_model_it_says_what_to_write(tmp_path: Path) -> None:
    """65, as in a run; and that a model may be named for this one question. One that is none is the option's fault."""
    with pytest.raises(BrokenFile, match=r"model is not set.*or, for `ask`: --model VENDOR:NAME\.$"):
        folder.agent(Layout(str(tmp_path)), "", "", None)
    with pytest.raises(UsageFault, match=r"^--model: invalid model 'gpt-5'. Name one such as anthropic:NAME"):
        folder.agent(Layout(str(tmp_path)), "", "gpt-5", None)


def test_an_answer_that_is_no_yes_is_a_no() -> None:
    """Whatever a person types."""
    assert [folder.answered(text) for text in ("y\n", "Yes", "a", "always", "", "n", "yeah")] == [
        *(YES, YES, ALWAYS, ALWAYS),
        *(NO, NO, NO),
    ]
