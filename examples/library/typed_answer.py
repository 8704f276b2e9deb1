"""Get a value instead of a text: it is checked, and the model is asked again where it does not fit."""

import os

from pydantic import BaseModel

from harness import Config, HarnessAgent


class Bird(BaseModel):
    """What the answer is."""

    name: str
    eggs: int


config = Config(base_url=os.environ.get("BASE_URL", ""))
with HarnessAgent("assistant", os.environ.get("MODEL", "openai:gpt-5.2"), config=config) as agent:
    bird = agent.call_sync("How many eggs does a grey heron lay?", output=Bird).output
    assert isinstance(bird, Bird)  # None if the call failed
    print(f"{bird.name}: {bird.eggs}")
