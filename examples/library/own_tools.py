"""Give the agent a function of yours; types and docstring are what the model reads, an exception is what it is told."""

import os

from harness import Config, HarnessAgent

STOCK = {"apples": 3, "pears": 0}


def stock(fruit: str) -> int:
    """How many pieces of a fruit are there.

    Args:
        fruit: its English name, in the plural
    """
    return STOCK[fruit]


config = Config(base_url=os.environ.get("BASE_URL", ""))
with HarnessAgent("assistant", os.environ.get("MODEL", "openai:gpt-5.2"), tools=[stock], config=config) as agent:
    print(agent.call_sync("How many apples are there?"))
